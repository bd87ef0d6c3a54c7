r"""Bounds from scores: an event is chosen on some releases and tested on the others.

A score is any number computed from a release by a rule that was fixed before these
releases were drawn, larger where D is thought more likely. Given the first part, the
event is fixed and the releases of the last part are independent of it: the bound from
its counts holds conditionally, so it holds. Nothing is corrected for the search, whose
quality decides only how good the bound is. The releases are first put in random order,
so that files sorted by score do no harm.

`split_scores` is the baseline: a threshold, and Clopper and Pearson's limits.
`fixed_scores` tests its event with the exact joint bound, and may choose both tails,
{score >= t} for D together with {score < s} for D' (`dpaudit.audit.bounds.paired`).
How the event is chosen stands in `dpaudit.audit.bounds.choice`.

Real numbers, not bits: scores are rounded to 2^-30 of the largest in the first part
before they are compared (as in `dpaudit.audit.game.portfolio`, for the same reason).
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.arrays import Array
from dpaudit.audit.bounds.choice import HitCurve, Sides
from dpaudit.audit.bounds.clopper_pearson import clopper_pearson
from dpaudit.audit.bounds.gaussian import gaussian as gaussian_bound
from dpaudit.audit.bounds.gaussian import gaussian_contrasts, mu_lower
from dpaudit.audit.bounds.joint import epsilon_lower, joint, joint_contrasts
from dpaudit.audit.bounds.paired import PairedCounts, paired_law
from dpaudit.audit.bounds.result import Bound, Counts, check_level
from dpaudit.errors import InputError
from dpaudit.validation import check_fraction, check_real

__all__ = ["fixed_scores", "split_scores"]


_ALMOST_ALL = 0.9  # of the releases
_FEWEST = 20  # scores a side


def split_scores(
    on_data: ArrayLike,
    on_neighbour: ArrayLike,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    fraction: float = 0.2,
    rng: np.random.Generator,
) -> Bound:
    """Return the Clopper-Pearson bound at a threshold chosen by sample splitting.

    Parameters
    ----------
    on_data, on_neighbour : array_like, shapes (n,) and (n',)
        Scores of independent releases on D and on D'; infinities are allowed.
    delta, confidence : float
    fraction : float
        In (0, 1): the share of the releases that chooses the threshold.
    rng : Generator
        Orders the releases.

    Returns
    -------
    Bound

    Raises
    ------
    InputError
        If an argument is outside what is allowed, or a score is NaN.
    """
    delta, confidence, alpha = check_level(delta, confidence)
    chosen, tested = _parts(on_data, on_neighbour, fraction, rng)
    curve = HitCurve.of(chosen, tested)
    contrasts = joint_contrasts(delta)
    # Two limits at alpha/2 add where the joint bound takes a root of squares.
    predicted = curve.single(contrasts, alpha / 8)
    threshold = float(curve.thresholds[np.argmax(predicted)])
    counts = _count(tested, threshold)
    bound = clopper_pearson(counts, delta=delta, confidence=confidence)
    return _with_event(bound, "split clopper-pearson", threshold=threshold)


def fixed_scores(
    on_data: ArrayLike,
    on_neighbour: ArrayLike,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    gaussian: bool = False,
    fraction: float = 0.1,
    rng: np.random.Generator,
) -> Bound:
    """Return the exact bound at an event chosen on the first part of the scores.

    The number of releases must have been fixed beforehand: whoever looks at the bound
    and then draws more releases needs `dpaudit.audit.audit`.

    Parameters
    ----------
    on_data, on_neighbour : array_like, shapes (n,) and (n',)
        Scores of independent releases on D and on D'; infinities are allowed.
    delta, confidence : float
    gaussian : bool
        Bound mu of a Gaussian DP claim instead of epsilon.
    fraction : float
        In (0, 1): the share of the releases that chooses the event.
    rng : Generator
        Orders the releases, and draws the number that is used when both tails are
        tested.

    Returns
    -------
    Bound
        Its counts name the event: ``threshold``, or ``upper`` and ``lower``.

    Raises
    ------
    InputError
        If an argument is outside what is allowed, or a score is NaN.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> with_record = rng.laplace(1.0, size=20_000)
    >>> without = rng.laplace(0.0, size=20_000)
    >>> bound = fixed_scores(with_record, without, rng=rng)
    >>> bound.method, 0.8 < bound.value < 1.0
    ('fixed joint, both tails', True)
    """
    delta, confidence, alpha = check_level(delta, confidence)
    chosen, tested = _parts(on_data, on_neighbour, fraction, rng)
    curve = HitCurve.of(chosen, tested)
    contrasts = gaussian_contrasts() if gaussian else joint_contrasts(delta)
    predicted = curve.single(contrasts, alpha)
    best = int(np.argmax(predicted))
    test = gaussian_bound if gaussian else joint
    law = paired_law(min(len(tested.data), len(tested.neighbour)))
    pair = None if law is None else curve.pair(contrasts, alpha)
    if law is None or pair is None or pair.predicted <= predicted[best]:
        threshold = float(curve.thresholds[best])
        bound = test(_count(tested, threshold), delta=delta, confidence=confidence)
        return _with_event(bound, f"fixed {bound.method}", threshold=threshold)
    drawn = PairedCounts.draw(*tested, pair.lower, pair.upper, law, rng)
    laws, hits = (law, law), (drawn.right, drawn.wrong)
    value = 0.0
    if drawn.enough:
        value = (
            mu_lower(laws, hits, alpha)
            if gaussian
            else epsilon_lower(laws, hits, delta, alpha)
        )
        if drawn.right > _ALMOST_ALL * law.scale:
            # Poisson counts may suggest probabilities above one: releases cannot show
            # more than perfect separation.
            n, other = len(tested.data), len(tested.neighbour)
            perfect = test(Counts(n, n, 0, other), confidence=confidence)
            value = min(value, perfect.value)
    kind = "gaussian" if gaussian else "joint"
    return Bound(
        f"fixed {kind}, both tails",
        "mu" if gaussian else "epsilon",
        value,
        delta,
        confidence,
        {
            "right": drawn.right,
            "wrong": drawn.wrong,
            "releases": drawn.drawn[0],
            "releases_neighbour": drawn.drawn[1],
            "lower": pair.lower,
            "upper": pair.upper,
        },
    )


def _parts(
    on_data: ArrayLike,
    on_neighbour: ArrayLike,
    fraction: float,
    rng: np.random.Generator,
) -> tuple[Sides, Sides]:
    """Return the part that chooses and the part that is tested, in random order."""
    fraction = check_fraction("fraction", fraction)
    sides = []
    for name, scores in (("on_data", on_data), ("on_neighbour", on_neighbour)):
        array = _scores(name, scores)
        order = rng.permutation(array)
        first = min(max(round(fraction * len(order)), 1), len(order) - 1)
        sides.append((order[:first], order[first:]))
    (first_p, last_p), (first_q, last_q) = sides
    step = _resolution(np.concatenate([first_p, first_q]))
    return (
        Sides(_rounded(first_p, step), _rounded(first_q, step)),
        Sides(_rounded(last_p, step), _rounded(last_q, step)),
    )


def _resolution(scores: Array) -> float:
    """Return 2^-30 of the scores' scale, a power of two."""
    finite = np.abs(scores[np.isfinite(scores)])
    largest = float(finite.max(initial=0.0))
    return 2.0 ** (math.floor(math.log2(largest)) - 30) if largest > 1e-290 else 0.0


def _rounded(scores: Array, step: float) -> Array:
    return np.floor(scores / step + 0.5) * step if step else scores


def _scores(name: str, scores: ArrayLike) -> Array:
    array = check_real(name, scores, "an array of numbers")
    if array.ndim != 1 or len(array) < _FEWEST:
        raise InputError(
            f"{name} must hold at least {_FEWEST} scores in one dimension, "
            f"got shape {array.shape}"
        )
    if np.isnan(array).any():
        raise InputError(
            f"{name} must not contain NaN, but score {int(np.argmax(np.isnan(array)))} "
            "is NaN: give such releases the number that your rule means them to have"
        )
    return array


def _count(tested: Sides, threshold: float) -> Counts:
    return Counts(
        int(np.count_nonzero(tested.data >= threshold)),
        len(tested.data),
        int(np.count_nonzero(tested.neighbour >= threshold)),
        len(tested.neighbour),
    )


def _with_event(bound: Bound, method: str, **event: float) -> Bound:
    return Bound(
        method,
        bound.parameter,
        bound.value,
        bound.delta,
        bound.confidence,
        {**bound.counts, **event},
    )
