r"""Scores of any black box: the release itself, tables of atoms, a logistic classifier.

`Identity` is the release itself, where it is one number. Every direction is then the
same one, so that thresholds are all there is to learn, and nothing has to be waited
for. By the Neyman-Pearson lemma no other score is better where the likelihood ratio is
monotone, as it is for a shift of any log-concave noise (Laplace, Gaussian, geometric).

`Atoms` are outputs, or parts of them, that occur again and again. A continuous output
never repeats. Where outputs do, the best score is a table: the estimated log-likelihood
ratio of each output. Mixed outputs (a number, or NaN, or -1) are reduced to their
pattern first: in every entry, a value that repeats stands for itself and all others
stand for "some number". The patterns that say most have a score each; the rest share
one, so a table of bounded size serves any mechanism, and is worth nothing where nearly
every output is new (twenty independent bits: a classifier's work).

An atom may be rare: a mechanism that skips its noise once in a thousand times. Among
numbers that do not repeat, two equal ones are remarkable, however many others there
are; so this attack is never given up.

Entries are compared to the bit: releases are canonical before an attack sees them
(`dpaudit.audit.canonical`), so two results of the same real arithmetic are the same
atom. They have 30 bits, so that among thousands of numbers of one size hardly any two
are equal by accident, and among a million hardly any three.

Of what is counted one by one, an output seen k times in n releases on D and
m times in n' on D' has the estimate log((k + 1/2)/(n + 1)) - log((m + 1/2)/(n' + 1))
(Krichevsky and Trofimov, 1981, for each probability), with a standard error of about
:math:`\sqrt{1/(k + 1/2) + 1/(m + 1/2)}` (Woolf, 1955; Haldane's correction). An event
is a set of scores above a threshold, so what is ranked on top matters most, and among
many rare outputs some have a large estimate by chance alone. The score is therefore the
estimate moved towards 0 by one standard error, and 0 if it would change its sign: a
bound that the truth exceeds in most cases, in both directions alike.

`LogisticClassifier` is the black-box workhorse: it needs no knowledge of the mechanism,
and its score is an estimated log-likelihood ratio, so that one threshold means the same
from one fit to the next. It is linear in the entries of a release and simple functions
of them. For independent entries the log-likelihood ratio is a sum of one function per
entry, and three functions span what common noise needs: the entry itself (a shift of
Gaussian noise; a bit of randomised response), its square (a change of spread), and a
soft step z/(1/2 + |z|) (a shift of Laplace noise, whose loss is linear between the two
locations and constant beyond them).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from dpaudit.arrays import Array
from dpaudit.attacks.base import (
    Attack,
    Parameters,
    Target,
    features,
    flatten,
    learn_features,
    shift_order,
)
from dpaudit.attacks.stated import MeanShift
from dpaudit.batches import repeating_columns
from dpaudit.mechanism import Release

__all__ = ["Atoms", "Identity", "LogisticClassifier", "shrunk_log_ratio"]


class Identity(Attack):
    """Score = the release; NaN counts as the lowest."""

    name = "identity"
    score_is = "the release"
    learns = False

    def suits(self, target: Target, releases: Release) -> bool:
        """Say whether releases are single numbers, and not projected already."""
        return flatten(releases).shape[1] == 1 and not MeanShift().applies(
            target, releases
        )

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        numbers = flatten(releases)[:, 0]
        return np.where(np.isnan(numbers), -np.inf, numbers)


def _log_ratio(
    hits: ArrayLike, releases: int, other_hits: ArrayLike, other_releases: int
) -> Array:
    """As `shrunk_log_ratio`, where what is counted at all is there for a reason."""
    k, m = np.asarray(hits) + 0.5, np.asarray(other_hits) + 0.5
    return np.asarray(np.log(k / (releases + 1)) - np.log(m / (other_releases + 1)))


def shrunk_log_ratio(
    hits: ArrayLike, releases: int, other_hits: ArrayLike, other_releases: int
) -> Array:
    """Return the cautious log-likelihood ratio of each output.

    Parameters
    ----------
    hits, other_hits : array_like of int, shape (...)
        How often it was seen on D and on D'.
    releases, other_releases : int
        Out of how many.

    Returns
    -------
    ndarray, shape (...)

    Examples
    --------
    >>> from dpaudit.attacks.learned import shrunk_log_ratio
    >>> shrunk_log_ratio([1, 100, 0], 1000, [0, 100, 1000], 1000).round(2)
    array([ 0.  ,  0.  , -6.19])
    """
    k, m = np.asarray(hits) + 0.5, np.asarray(other_hits) + 0.5
    estimate = _log_ratio(hits, releases, other_hits, other_releases)
    error = np.sqrt(1 / k + 1 / m)
    return np.sign(estimate) * np.maximum(np.abs(estimate) - error, 0.0) + 0.0


Codes = NDArray[np.uint8]
_MAX_ATOMS = 256
_MAX_COLUMNS = 64
_MAX_VALUES = 255  # per column: codes are bytes, and 0 stands for all other values
_RARE = 1 / 2000  # of many values that repeat, rarer ones are not worth a code
_MANY = 2**13
_FOLDS = 16
_TELLING = 0.1


class Atoms(Attack):
    """Score = cautious log-likelihood ratio of the pattern of repeating values."""

    name = "atoms"
    learns = True
    exclusive = True
    patient = True
    appetite = 2**23

    def suits(self, target: Target, releases: Release) -> bool:
        """Say whether outputs repeat, in full or in some entry that varies."""
        flat = flatten(releases)
        varies, columns = repeating_columns([flat], _least(len(flat)))
        return len(flat) > 1 and (len(columns) > 0 or not varies)

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        table = _Table.of(flatten(on_data), flatten(on_neighbour))
        scores = table.score(*table.hits[0], *table.hits[1])
        # What a pattern contributes to the divergence: its mass times the square.
        share = sum(hits / size for hits, size in table.hits)
        order = np.argsort(-share * scores**2, kind="stable")
        kept, rest = order[:_MAX_ATOMS], order[_MAX_ATOMS:]
        left = [(hits[rest].sum(), size) for hits, size in table.hits]
        return {
            "columns": table.columns,
            "values": table.values,
            "starts": table.starts,
            "patterns": table.patterns[kept],
            "scores": scores[kept],
            "other": table.score(*left[0], *left[1]).reshape(1),
        }

    def honest_scores(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> tuple[Array, Array]:
        table = _Table.of(flatten(on_data), flatten(on_neighbour))
        patterns, (first, second) = len(table.patterns), table.sides
        # One release in so many is judged by the others, on D and on D' alike: to leave
        # out the judged one alone would tell by its score which side it is on.
        scores = np.empty(len(first)), np.empty(len(second))
        for fold in range(_FOLDS):
            mine = [side[fold::_FOLDS] for side in (first, second)]
            (ours, size), (theirs, other_size) = (
                (hits - np.bincount(left, minlength=patterns), total - len(left))
                for (hits, total), left in zip(table.hits, mine, strict=True)
            )
            judged = table.score(ours, size, theirs, other_size)
            for score, left in zip(scores, mine, strict=True):
                score[fold::_FOLDS] = judged[left]
        return scores

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        kept = flatten(releases)[:, parameters["columns"]]
        codes = _encode(kept, parameters["values"], parameters["starts"])
        table = _hash(parameters["patterns"])
        order = np.argsort(table)
        keys = _hash(codes)
        place = order[
            np.searchsorted(table, keys, sorter=order).clip(max=len(order) - 1)
        ]
        other = float(parameters["other"][0])
        return np.where(table[place] == keys, parameters["scores"][place], other)


@dataclass(frozen=True)
class _Table:
    """How often each pattern was seen.

    `sides` says which one every release has, on D and on D'; `hits` how often each
    occurs there, and among how many releases. Where the numbers are `continuous`, what
    repeats is remarkable.
    """

    columns: NDArray[np.intp]
    values: Array
    starts: NDArray[np.intp]
    patterns: Codes
    sides: tuple[NDArray[np.intp], NDArray[np.intp]]
    hits: tuple[tuple[NDArray[np.intp], int], tuple[NDArray[np.intp], int]]
    continuous: bool

    def score(
        self, hits: ArrayLike, size: int, other_hits: ArrayLike, other_size: int
    ) -> Array:
        """Return log-likelihood ratios: cautious ones unless repeats are remarkable."""
        if not self.continuous:
            return shrunk_log_ratio(hits, size, other_hits, other_size)
        ratio = _log_ratio(hits, size, other_hits, other_size)
        # What hardly ever differs, because nearly all is of one pattern, is no atom.
        return np.where(np.abs(ratio) > _TELLING, ratio, 0.0)

    @classmethod
    def of(cls, first: Array, second: Array) -> "_Table":
        columns = _worth_coding(first, second)
        both = np.vstack([first[:, columns], second[:, columns]])
        values, starts, continuous = _values(both)
        codes = _encode(both, values, starts)
        keys, where, pattern = np.unique(
            _hash(codes), return_index=True, return_inverse=True
        )
        pattern, size = pattern.ravel(), len(first)
        ours, theirs = (
            np.bincount(part, minlength=len(keys))
            for part in (pattern[:size], pattern[size:])
        )
        return cls(
            columns,
            values,
            starts,
            codes[where],
            (pattern[:size], pattern[size:]),
            ((ours, size), (theirs, len(second))),
            continuous,
        )


def _least(size: int) -> int:
    """Return how often a number occurs that does not repeat by accident.

    Canonical numbers of one size have 2^29 values or more. Of n spread evenly over
    these two are equal by accident with probability n^2 2^-30 at most, 1/16 for
    2^13, and three with probability n^3 2^-58 / 6, 0.01 for 2^18.
    """
    return 2 if size <= _MANY else 3


def _worth_coding(first: Array, second: Array) -> NDArray[np.intp]:
    """Return the columns that vary and repeat; if too many, those that differ most."""
    least = _least(len(first) + len(second))
    _, candidates = repeating_columns([first, second], least)
    one, two = (
        np.clip(np.nan_to_num(side[:, candidates]), -1e100, 1e100)
        for side in (first, second)
    )
    return np.sort(candidates[shift_order(one, two)[:_MAX_COLUMNS]])


def _values(entries: Array) -> tuple[Array, NDArray[np.intp], bool]:
    """Return the frequent values of all columns, joined, and where each one starts.

    And whether hardly any value repeats, in any column: then each that does is
    remarkable, however rare it is.
    """
    columns = [np.unique(column, return_counts=True) for column in entries.T]
    continuous = [2 * len(values) > len(entries) for values, _ in columns]
    frequent = max(2.0, _RARE * len(entries))
    kept = []
    for (values, counts), alone in zip(columns, continuous, strict=True):
        order = np.argsort(-counts, kind="stable")[:_MAX_VALUES]
        fewest = _least(len(entries)) if alone else frequent
        kept.append(np.sort(values[order][counts[order] >= fewest]))
    lengths = [0, *(len(values) for values in kept)]
    return np.concatenate([np.empty(0), *kept]), np.cumsum(lengths), all(continuous)


def _encode(entries: Array, values: Array, starts: NDArray[np.intp]) -> Codes:
    """Return the number of each entry's value in its column's list, 0 if not there."""
    codes = np.zeros(entries.shape, dtype=np.uint8)
    for index, column in enumerate(entries.T):
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


_MAX_FEATURES = 128
_MAX_CURVED = 64  # features that enter by three functions
_REACH = 20.0  # in interquartile ranges
_STEPS, _ENOUGH, _LEAST_RIDGE = 50, 1e-6, 1e-12  # the latter two a release


class LogisticClassifier(Attack):
    """Score = estimated log-likelihood ratio: log-odds at even odds beforehand."""

    name = "logistic"
    learns = dear = True

    def suits(self, target: Target, releases: Release) -> bool:
        """Say that it applies to whatever has entries."""
        return flatten(releases).shape[1] > 0

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        layout = learn_features(on_data, on_neighbour, _MAX_FEATURES)
        first, second = features(layout, on_data), features(layout, on_neighbour)
        both = np.vstack([first, second])
        # The median and quartiles keep heavy tails from setting the scale.
        low, centre, high = np.quantile(both, [0.25, 0.5, 0.75], axis=0)
        range_ = both.max(axis=0) - both.min(axis=0)
        scale = np.where(high > low, high - low, np.where(range_ > 0, range_, 1.0))
        # Every function of a two-valued entry is a linear one.
        varies = (both != both.min(axis=0)) & (both != both.max(axis=0))
        order = shift_order(first, second)
        curved = order[varies.any(axis=0)[order]][:_MAX_CURVED]
        design = dict(layout, centre=centre, scale=scale, curved=np.sort(curved))
        weights = _fit_logistic(_design(both, design), len(first))
        intercept = weights[-1:] - np.log(len(first) / len(second))
        return dict(design, coefficients=weights[:-1], intercept=intercept)

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        design = _design(features(parameters, releases), parameters)
        return design @ parameters["coefficients"] + parameters["intercept"][0]


def _design(entries: Array, parameters: Parameters) -> Array:
    standard = (entries - parameters["centre"]) / parameters["scale"]
    # Clipped so that a few wild releases cannot drown the rest.
    standard = np.clip(standard, -_REACH, _REACH)
    curved = standard[:, parameters["curved"]]
    return np.hstack([standard, curved**2, curved / (0.5 + np.abs(curved))])


def _fit_logistic(design: Array, n_data: int) -> Array:
    """Return the weights of a logistic regression, and its intercept at the end.

    The first `n_data` rows are of D. Newton's method maximises the likelihood less half
    the squared weights. A fit that stops early is a score like any other.
    """
    x = np.column_stack([design, np.ones(len(design))])
    label, weights = np.arange(len(x)) < n_data, np.zeros(x.shape[1])
    ridge = np.append(np.ones(design.shape[1]), 0.0)
    for _ in range(_STEPS):
        share = expit(x @ weights)
        slope = x.T @ (label - share) - ridge * weights
        curve = (x * (share * (1 - share))[:, np.newaxis]).T @ x
        curve[np.diag_indices_from(curve)] += np.maximum(ridge, _LEAST_RIDGE * len(x))
        step = np.linalg.solve(curve, slope)
        weights += step
        if slope @ step <= _ENOUGH * len(x):
            break
    return weights
