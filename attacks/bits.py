r"""Bit patterns: which doubles a release can be.

A sampler of Laplace or Gaussian noise on doubles does not reach every double, and
adding the noise to f(D) rounds it to the grid of the sum. Which low bits of the release
can be set then depends on f(D) (Mironov, *On significance of the least significant
bits for differential privacy*, CCS 2012): near 0, a sum of 1 and noise is always a
multiple of 2^-53, whereas noise by itself seldom is. One such release can reveal D, so
such samplers have no finite epsilon on doubles, whatever holds for real numbers.

This is a different audit from one over the reals, and not part of the portfolio. The
features of an entry y are two numbers: the exponent of its lowest set bit, which says
of which power of two it is a multiple, and how many bits of its significand are zero at
the end; the same of the differences y - f(D) and y - f(D'), where the mechanism states
its statistic f. What has no lowest set bit is told apart in another way: zeros and
infinities by their signs, NaN by their bits modulo 61: most that differ in sign
or payload are told apart. Each feature has a table of log-likelihood ratios
(`dpaudit.attacks.learned`), and the score of a release is their sum.
"""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.attacks.base import Attack, Parameters, Target, consult, flatten
from dpaudit.attacks.learned import shrunk_log_ratio
from dpaudit.attacks.stated import MeanShift
from dpaudit.mechanism import HasStatistic, Release

__all__ = ["BitPatterns"]

_MAX_ENTRIES = 64
_SIGNIFICAND = 53
_LOWEST, _HIGHEST = -130, 70  # exponents of lowest set bits are clipped to these
_EXPONENTS = _HIGHEST - _LOWEST + 1
_ZERO = _EXPONENTS + _SIGNIFICAND
_INFINITE = _ZERO + 2  # zeros and infinities of either sign
_NAN = _INFINITE + 2
_PAYLOADS = 61  # a prime: bits of NaN that differ in one place differ by it
_CODES = _NAN + _PAYLOADS


class BitPatterns(Attack):
    """Score = sum of cautious log-likelihood ratios of low-order bit features."""

    name = "bits"
    learns = True
    reads = "bits"

    def suits(self, target: Target, releases: Release) -> bool:
        """Say whether there is a grid, or NaN, or a zero with a sign."""
        flat = flatten(releases)
        finite = flat[np.isfinite(flat)]
        signed = np.signbit(finite) & (finite == 0)
        between = finite != np.round(finite)
        return bool((signed | between).any() or np.isnan(flat).any())

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        references = _references(target, on_data)
        sides = flatten(on_data), flatten(on_neighbour)
        counts = []
        for side in sides:
            columns = _codes(side, references)
            counts.append([np.bincount(c, minlength=_CODES) for c in columns.T])
        hits = np.array(counts).reshape(2, -1, _CODES)
        table = shrunk_log_ratio(hits[0], len(sides[0]), hits[1], len(sides[1]))
        return {"references": references, "table": table}

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        codes = _codes(flatten(releases), parameters["references"])
        table = parameters["table"]
        return table[np.arange(len(table)), codes].sum(axis=1)


def _references(target: Target, releases: Release) -> Array:
    """Return what is subtracted from the entries: 0, f(D), f(D'); shape (r, m)."""
    width = min(flatten(releases).shape[1], _MAX_ENTRIES)
    references = [np.zeros(width)]
    if MeanShift().applies(target, releases):
        statistic = cast(HasStatistic, target.mechanism).statistic
        for data in (target.pair.data, target.pair.neighbour):
            references.append(np.ravel(consult(statistic, data))[:width])
    return np.unique(np.array(references, dtype=np.float64), axis=0)


def _codes(flat: Array, references: Array) -> NDArray[np.intp]:
    """Return two features per reference and entry, shape (size, 2 r m)."""
    kept = flat[:, : references.shape[1]]
    parts = []
    for reference in references:
        lowest, trailing = _low_bits(kept - reference)
        parts += [lowest, trailing]
    return np.hstack(parts)


def _low_bits(numbers: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the codes of lowest set bits and of trailing zeros, as for the table."""
    ordinary = np.isfinite(numbers) & (numbers != 0)
    significand, exponent = np.frexp(np.where(ordinary, numbers, 1.0))
    integer = np.abs(significand * 2.0**_SIGNIFICAND).astype(np.int64)
    # x & -x is the lowest set bit, a power of two below 2^53 and hence exact.
    _, position = np.frexp((integer & -integer).astype(np.float64))
    trailing = position.astype(np.intp) - 1
    lowest = exponent.astype(np.intp) - _SIGNIFICAND + trailing
    kinds = [numbers == 0, np.isinf(numbers), np.isnan(numbers)]
    signs = np.signbit(numbers).astype(np.intp)
    payloads = numbers.view(np.uint64) % np.uint64(_PAYLOADS)
    codes = [_ZERO + signs, _INFINITE + signs, _NAN + payloads.astype(np.intp)]
    others = np.select(kinds, codes)
    return (
        np.where(ordinary, np.clip(lowest, _LOWEST, _HIGHEST) - _LOWEST, others),
        np.where(ordinary, _EXPONENTS + trailing, others),
    )
