r"""Bounds from scores: an event is chosen on some releases and tested on the others.

A score is any number computed from a release by a rule that was fixed before these
releases were drawn, larger where D is thought more likely. (Where the first part
promises nothing that way round, and something the other way round, D and D' change
places: a claim binds them alike.) Given the first part, direction and event are fixed,
and the releases of the last part are independent of them: the bound from its counts
holds conditionally, so it holds. Nothing is corrected for the search, whose quality
decides only how good the bound is. The releases are first put in random order, so that
files sorted by score do no harm.

`split_scores` is the baseline: a threshold, and Clopper and Pearson's limits.
`fixed_scores` tests its event with the exact joint bound, and may choose both tails,
{score >= t} for D together with {score < s} for D' (see below). How the event is chosen
stands in `dpaudit.audit.bounds.choice`.

Real numbers, not bits: scores are rounded to 2^-30 of the largest in the first part
before they are compared (as in `dpaudit.audit.game.portfolio`, for the same reason).

Both tails
----------
They are one pair of counts. Let U be an event meant to be frequent on D, and L a
disjoint one meant to be frequent on D'. A claim bounds P(U) <= g(Q(U)) and
Q(L) <= g(P(L)) by one concave curve g (for (epsilon, delta) and for mu-GDP alike), so
by Jensen's inequality

    a = (P(U) + Q(L)) / 2 <= g(b),   b = (Q(U) + P(L)) / 2.

For rare events this is twice the signal for sqrt(2) times the noise. The counts of U
and of L among the same releases are dependent, though, and each event has a nuisance
parameter of its own. Both difficulties go away when the numbers of releases are drawn
rather than fixed: with independent Poisson(s) numbers of releases on D and on D', the
four counts are independent Poisson variables (splitting), so

    K = #U on D + #L on D' ~ Poisson(2 s a),   M = #U on D' + #L on D ~ Poisson(2 s b)

are independent, with one nuisance parameter. The exact tests of this package apply with
these two laws in place of binomial ones.

Of n releases at hand a side, a Poisson(s) number with s = n - 5 sqrt(n) + 5 is used. If
it exceeds n, which happens with probability below 1e-6, nothing is claimed; that can
only lower the error. The price is the share 5 / sqrt(n) of the releases. That a Poisson
count varies more than a binomial one costs nothing: the negative correlation of K and
M, lost as well, had cost as much.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.arrays import Array
from dpaudit.audit.bounds.choice import HitCurve, Sides, Tails
from dpaudit.audit.bounds.counts import clopper_pearson, epsilon_nulls, joint, mu_nulls
from dpaudit.audit.bounds.counts import gaussian as gaussian_bound
from dpaudit.audit.bounds.laws import PoissonCount
from dpaudit.audit.bounds.ordering import Nulls
from dpaudit.audit.bounds.result import Bound, Counts, check_level
from dpaudit.errors import InputError
from dpaudit.validation import check_fraction, check_real

__all__ = ["PairedCounts", "fixed_scores", "split_scores"]

_ALMOST_ALL = 0.9  # of the releases
_FEWEST = 20  # scores a side
_OTHER = {"hits": "hits_neighbour", "releases": "releases_neighbour"}
_OTHER |= {other: name for name, other in _OTHER.items()}


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
    parts = _parts(on_data, on_neighbour, fraction, rng)
    # Two limits at alpha/2 add where the joint bound takes a root of squares.
    way = _way(*parts, epsilon_nulls(delta), alpha / 8)
    threshold = float(way.curve.thresholds[np.argmax(way.predicted)])
    counts = _count(way.tested, threshold)
    bound = clopper_pearson(counts, delta=delta, confidence=confidence)
    return way.told(_with_event(bound, "split", threshold))


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

    The number of releases must have been fixed beforehand. To look at the bound and
    then draw more releases, use `dpaudit.audit.audit`.

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
    parts = _parts(on_data, on_neighbour, fraction, rng)
    nulls = mu_nulls() if gaussian else epsilon_nulls(delta)
    way = _way(*parts, nulls, alpha)
    tested, curve, predicted = way.tested, way.curve, way.predicted
    best = int(np.argmax(predicted))
    test = gaussian_bound if gaussian else joint
    law = paired_law(min(map(len, tested)))
    pair = None if law is None else curve.pair(nulls, alpha)
    if law is None or pair is None or pair.predicted <= predicted[best]:
        threshold = float(curve.thresholds[best])
        bound = test(_count(tested, threshold), delta=delta, confidence=confidence)
        return way.told(_with_event(bound, "fixed", threshold))
    drawn = PairedCounts.draw(tested, pair, law, rng)
    value = 0.0
    if drawn.enough:
        value = nulls.lower_bound((law, law), (drawn.right, drawn.wrong), alpha)
        if drawn.right > _ALMOST_ALL * law.scale:
            # Poisson counts may suggest probabilities above one: releases cannot show
            # more than perfect separation.
            n, other = map(len, tested)
            perfect = test(Counts(n, n, 0, other), confidence=confidence)
            value = min(value, perfect.value)
    kind, parameter = ("gaussian", "mu") if gaussian else ("joint", "epsilon")
    bound = Bound(
        f"fixed {kind}, both tails",
        parameter,
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
    return way.told(bound)


def paired_law(releases: int) -> PoissonCount | None:
    """Return the law of both counts; None if `releases` a side are too few."""
    size = releases - 5 * math.sqrt(releases) + 5
    return PoissonCount(2 * size) if size > 0 else None


class PairedCounts(NamedTuple):
    """K and M of the module docstring, and the numbers of releases drawn.

    ``enough`` is False where more releases were drawn than there are.
    """

    right: int
    wrong: int
    drawn: tuple[int, int]
    enough: bool

    @classmethod
    def draw(
        cls, tested: Sides, tails: Tails, law: PoissonCount, rng: np.random.Generator
    ) -> "PairedCounts":
        """Count both tails among a Poisson number of scores.

        Parameters
        ----------
        tested : Sides
            In random order, or the order in which they were drawn.
        tails : Tails
            Disjoint.
        law : PoissonCount
            From ``paired_law``.
        rng : Generator
        """
        first, second = (int(number) for number in rng.poisson(law.scale / 2, 2))
        on_data, on_neighbour = tested.data[:first], tested.neighbour[:second]
        right = np.count_nonzero(on_data >= tails.upper)
        right += np.count_nonzero(on_neighbour < tails.lower)
        wrong = np.count_nonzero(on_neighbour >= tails.upper)
        wrong += np.count_nonzero(on_data < tails.lower)
        enough = first <= len(tested.data) and second <= len(tested.neighbour)
        return cls(int(right), int(wrong), (first, second), enough)


class _Way(NamedTuple):
    """Which side the events are frequent on, and what the first part says of them."""

    tested: Sides  # that side first
    curve: HitCurve
    predicted: Array
    swapped: bool

    def told(self, bound: Bound) -> Bound:
        """Return a bound of these sides, with the counts on D and on D' by name."""
        if not self.swapped:
            return bound
        counts = {_OTHER.get(name, name): bound.counts[name] for name in bound.counts}
        method = f"{bound.method}, larger on D'"
        return replace(bound, method=method, counts=counts)


def _way(chosen: Sides, tested: Sides, nulls: Nulls, alpha: float) -> _Way:
    """Return D first, or D' where the first part promises nothing else."""
    curve = HitCurve.of(chosen, tested)
    predicted = curve.single(nulls, alpha)
    if predicted.max() <= 0:
        chosen, back = Sides(*chosen[::-1]), Sides(*tested[::-1])
        other = HitCurve.of(chosen, back)
        promised = other.single(nulls, alpha)
        if promised.max() > 0:
            return _Way(back, other, promised, True)
    return _Way(tested, curve, predicted, False)


def _parts(
    on_data: ArrayLike,
    on_neighbour: ArrayLike,
    fraction: float,
    rng: np.random.Generator,
) -> tuple[Sides, Sides]:
    """Return the part that chooses and the part that is tested, in random order."""
    fraction = check_fraction("fraction", fraction)
    chosen, tested = [], []
    for name, scores in (("on_data", on_data), ("on_neighbour", on_neighbour)):
        order = rng.permutation(_scores(name, scores))
        first = min(max(round(fraction * len(order)), 1), len(order) - 1)
        chosen.append(order[:first])
        tested.append(order[first:])
    step = _resolution(np.concatenate(chosen))
    return (
        Sides(*(_rounded(part, step) for part in chosen)),
        Sides(*(_rounded(part, step) for part in tested)),
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


def _with_event(bound: Bound, how: str, threshold: float) -> Bound:
    kind, _, _ = bound.method.partition(";")  # which side is D, scores have said
    return replace(
        bound,
        method=f"{how} {kind}",
        counts={**bound.counts, "threshold": threshold},
    )
