"""Atoms: outputs, or parts of them, that occur again and again.

A continuous output never repeats. Where outputs do, the best score is a table: the
estimated log-likelihood ratio of each output (`dpaudit.attacks.tables`). Mixed outputs
(a number, or NaN, or -1) are reduced to their pattern first: in every entry, a value
that repeats stands for itself and all others stand for "some number". The patterns that
say most have a score each; the rest share one, so a table of bounded size serves any
mechanism, and is worth nothing where nearly every output is new (twenty independent
bits: a classifier's work).

Entries are compared after rounding to 2^-30 of the largest entry of their column, so
that two results of the same real arithmetic are the same atom whatever their last bits
are: those are the subject of another audit (`dpaudit.attacks.bits`).
"""

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.base import Array, Attack, Parameters, Target, flatten
from dpaudit.attacks.features import shift_order
from dpaudit.attacks.tables import shrunk_log_ratio
from dpaudit.mechanism import Release

__all__ = ["Atoms"]

Codes = NDArray[np.uint8]

_MAX_ATOMS = 256
_MAX_COLUMNS = 64
_MAX_VALUES = 255  # per column: codes are bytes, and 0 stands for all other values
_LOOK = 256  # releases a side in which repeats are looked for
_RARE = 1 / 2000  # values rarer than this are not worth a code


class Atoms(Attack):
    """Score = cautious log-likelihood ratio of the pattern of repeating values."""

    name = "atoms"
    learns = True
    appetite = 2**23

    def applies(self, target: Target, releases: Release) -> bool:
        """Say whether outputs repeat, in full or in some entry that varies."""
        rounded = _round(flatten(releases), _resolution(flatten(releases)))
        varies, repeats = _varies(rounded), _repeats(rounded)
        return len(rounded) > 1 and bool((varies & repeats).any() or not varies.any())

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        sides = flatten(on_data), flatten(on_neighbour)
        resolution = _resolution(np.vstack(sides))
        first, second = (_round(side, resolution) for side in sides)
        columns = _worth_coding(first, second)
        values, starts = _values(np.vstack([first, second])[:, columns])
        codes = [_encode(side[:, columns], values, starts) for side in (first, second)]
        both = np.vstack(codes)
        keys, where, key = np.unique(
            _hash(both), return_index=True, return_inverse=True
        )
        hits = np.stack(
            [
                np.bincount(part, minlength=len(keys))
                for part in np.split(key.ravel(), [len(first)])
            ]
        )
        sizes = len(first), len(second)
        scores = shrunk_log_ratio(hits[0], sizes[0], hits[1], sizes[1])
        # What a pattern contributes to the divergence: its mass times the square.
        telling = (hits[0] / sizes[0] + hits[1] / sizes[1]) * scores**2
        order = np.argsort(-telling, kind="stable")
        kept, rest = order[:_MAX_ATOMS], order[_MAX_ATOMS:]
        left = hits[:, rest].sum(axis=1)
        return {
            "columns": columns,
            "resolution": resolution[columns],
            "values": values,
            "starts": starts,
            "patterns": both[where[kept]],
            "scores": scores[kept],
            "other": shrunk_log_ratio(left[:1], sizes[0], left[1:], sizes[1]),
        }

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        kept = flatten(releases)[:, parameters["columns"]]
        rounded = _round(kept, parameters["resolution"])
        codes = _encode(rounded, parameters["values"], parameters["starts"])
        table = _hash(parameters["patterns"])
        order = np.argsort(table)
        keys = _hash(codes)
        place = order[
            np.searchsorted(table, keys, sorter=order).clip(max=len(order) - 1)
        ]
        other = float(parameters["other"][0])
        return np.where(table[place] == keys, parameters["scores"][place], other)


def _resolution(flat: Array) -> Array:
    """Return 2^-30 of the largest finite entry of each column, shape (m,)."""
    largest = np.max(np.abs(flat), axis=0, where=np.isfinite(flat), initial=0.0)
    exponent = np.floor(np.log2(np.where(largest > 0, largest, 1.0)))
    return np.exp2(np.maximum(exponent - 30, -1000.0))


def _round(flat: Array, resolution: Array) -> Array:
    """Round, with one NaN and one zero only, so that equal values have equal bytes."""
    rounded = np.floor(flat / resolution + 0.5) * resolution + 0.0
    rounded[np.isnan(rounded)] = np.nan
    return rounded


def _varies(rounded: Array) -> NDArray[np.bool_]:
    same = (rounded == rounded[:1]) | (np.isnan(rounded) & np.isnan(rounded[:1]))
    return ~same.all(axis=0)


def _repeats(rounded: Array) -> NDArray[np.bool_]:
    ordered = np.sort(rounded, axis=0)
    equal = ordered[1:] == ordered[:-1]
    return (equal | (np.isnan(ordered[1:]) & np.isnan(ordered[:-1]))).any(axis=0)


def _worth_coding(first: Array, second: Array) -> NDArray[np.intp]:
    """Return the columns that vary and repeat; if too many, those that differ most."""
    look = np.vstack([first[:_LOOK], second[:_LOOK]])
    candidates = np.flatnonzero(_repeats(look))
    both = np.vstack([first, second])[:, candidates]
    candidates = candidates[_varies(both)]
    one, two = (
        np.clip(np.nan_to_num(side[:, candidates]), -1e100, 1e100)
        for side in (first, second)
    )
    return np.sort(candidates[shift_order(one, two)[:_MAX_COLUMNS]])


def _values(rounded: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return the frequent values of all columns, joined, and where each one starts."""
    fewest = max(2.0, _RARE * len(rounded))
    per_column = []
    for column in rounded.T:
        values, counts = np.unique(column, return_counts=True)
        order = np.argsort(-counts, kind="stable")[:_MAX_VALUES]
        per_column.append(np.sort(values[order][counts[order] >= fewest]))
    lengths = [0, *(len(values) for values in per_column)]
    return np.concatenate([np.empty(0), *per_column]), np.cumsum(lengths)


def _encode(rounded: Array, values: Array, starts: NDArray[np.intp]) -> Codes:
    """Return the number of each entry's value in its column's list, 0 if not there."""
    codes = np.zeros(rounded.shape, dtype=np.uint8)
    for index, column in enumerate(rounded.T):
        known = values[starts[index] : starts[index + 1]]
        if len(known):
            place = np.minimum(np.searchsorted(known, column), len(known) - 1)
            found = (known[place] == column) | (
                np.isnan(known[place]) & np.isnan(column)
            )
            codes[:, index] = np.where(found, place + 1, 0)
    return codes


def _hash(codes: Codes) -> NDArray[np.uint64]:
    """Return one number for each row; that two rows share one is beyond bad luck."""
    rng = np.random.default_rng(0)
    multipliers = np.atleast_1d(rng.integers(2**64, size=codes.shape[1], dtype="u8"))
    result = np.zeros(len(codes), dtype=np.uint64)
    for index in range(codes.shape[1]):
        result += codes[:, index].astype(np.uint64) * multipliers[index]
    return result
