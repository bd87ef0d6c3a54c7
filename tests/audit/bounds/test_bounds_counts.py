"""Bounds from counts: coverage by enumerating every outcome, tightness, refusals.

And how every bound shares its error among its parts: equalities, without chance.
Simulations see an error that exceeds alpha many times over; one that is twice alpha
they hardly tell from chance. There each part is computed independently, at the exact
share of alpha that the proof gives it.
"""

import math
from functools import cache, partial
from itertools import product

import numpy as np
import pytest
from numpy.random import default_rng
from refusals import refused
from scipy.special import ndtr, ndtri
from scipy.stats import beta, binom, poisson

from dpaudit.audit.bounds import (
    Bound,
    Counts,
    clopper_pearson,
    fixed_scores,
    gaussian,
    joint,
    one_run,
    ordering,
    split_scores,
)
from dpaudit.audit.bounds.choice import Sides, Tails
from dpaudit.audit.bounds.counts import epsilon_nulls, mu_nulls
from dpaudit.audit.bounds.laws import BinomialCount, PoissonCount
from dpaudit.audit.bounds.ordering import Rectangle
from dpaudit.audit.bounds.scores import PairedCounts, paired_law
from dpaudit.gaussian import gaussian_epsilon

METHODS = {"joint": joint, "clopper-pearson": clopper_pearson, "gaussian": gaussian}
TRUTHS = (0.0, 0.1, 0.5, 1.0, 2.0, 3.5)
SHAPES = [(8, 8, 0.0, 0.95), (9, 6, 0.02, 0.8)]


@cache
def table(name: str, n: int, other: int, delta: float, confidence: float):
    """Return the bound of every outcome, shape (n + 1, other + 1)."""
    bound = METHODS[name]
    options = {"delta": delta, "confidence": confidence}
    return np.array(
        [
            [bound(Counts(k, n, m, other), **options).value for m in range(other + 1)]
            for k in range(n + 1)
        ]
    )


def worst_error(bounds, n, other, delta, *, mu=False, truths=TRUTHS):
    """Return the largest P(bound > truth) over points on the null's boundary."""
    worst = 0.0
    k, m = np.arange(n + 1), np.arange(other + 1)
    for truth in truths:
        q = np.linspace(0, 1 - delta, 201)
        if mu:
            p = ndtr(ndtri(q) + truth)
        else:
            other_side = 1 - np.exp(-truth) * (1 - q - delta)
            p = np.minimum(np.exp(truth) * q + delta, other_side)
        over = (bounds > truth).astype(float)
        on_data = binom.pmf(k, n, p[:, np.newaxis])
        on_neighbour = binom.pmf(m, other, q[:, np.newaxis])
        errors = np.einsum("ik,km,im->i", on_data, over, on_neighbour)
        worst = max(worst, float(errors.max()))
    return worst


@pytest.mark.parametrize(
    ("name", "shape"),
    [*product(("joint", "clopper-pearson"), SHAPES), ("gaussian", SHAPES[0])],
)
def test_coverage_by_enumeration(name, shape):
    n, other, delta, confidence = shape
    error = worst_error(table(name, *shape), n, other, delta, mu=name == "gaussian")
    assert error <= 1 - confidence
    if name != "clopper-pearson":
        assert error >= 0.7 * (1 - confidence)  # nothing is given away


@pytest.mark.parametrize("kind", ["epsilon", "mu"])
def test_coverage_of_poisson_counts_by_enumeration(kind):
    law, alpha, delta = PoissonCount(3.0), 0.05, 0.01
    size = 13

    nulls = epsilon_nulls(delta) if kind == "epsilon" else mu_nulls()

    def bound(hits):
        return nulls.lower_bound((law, law), hits, alpha)

    bounds = np.array([[bound((k, m)) for m in range(size)] for k in range(size)])
    k = np.arange(size)
    worst = 0.0
    for truth in (0.0, 0.5, 1.5):
        for q in np.linspace(0, 1 - delta, 101):
            p = ndtr(ndtri(q) + truth)
            if kind == "epsilon":
                p = min(np.exp(truth) * q + delta, 1 - np.exp(-truth) * (1 - q - delta))
            weights = np.outer(poisson.pmf(k, 3 * p), poisson.pmf(k, 3 * q))
            error = weights[bounds > truth].sum() + 2 * poisson.sf(size - 1, 3.0)
            worst = max(worst, error)
    assert 0.5 * alpha <= worst <= alpha


def test_complements_tell_the_same_and_widths_are_on_a_grid():
    counts = Counts(816, 1000, 500, 1000)
    for bound in (joint, clopper_pearson, gaussian):
        value = bound(counts).value
        assert bound(counts.complement).value == pytest.approx(value, rel=2e-3)
        assert bound(counts.swapped).value == 0
        assert "seen more often on D'" in str(bound(counts.swapped))
        assert "more often" not in bound(Counts(4, 9, 4, 9)).method
        assert bound(counts.swapped, two_sided=True).method.endswith(", two-sided")
        both = bound(counts, two_sided=True).value
        assert 0 < both < value
        swapped = bound(counts.swapped, two_sided=True).value
        assert swapped == pytest.approx(both, rel=1e-9)
    # Never looser than two intervals, and most often clearly tighter.
    shares = []
    for n in (100, 10_000, 10**6):
        for q, epsilon, delta in product((0.002, 0.27, 0.6), (0.5, 2.0), (0.0, 1e-3)):
            p = min(np.exp(epsilon) * q + delta, 1 - np.exp(-epsilon) * (1 - q - delta))
            counts = Counts(round(n * p), n, round(n * q), n)
            exact = joint(counts, delta=delta).value
            simple = clopper_pearson(counts, delta=delta).value
            assert exact >= simple
            if simple > 0:
                shares.append((epsilon - exact) / (epsilon - simple))
    # One standard error at full alpha, against two at half of it.
    assert len(shares) > 20
    assert np.median(shares) < 0.85


def test_extreme_counts_and_enumerations_that_fail():
    assert joint(Counts(0, 10, 0, 10)).value == 0
    assert joint(Counts(10, 10, 10, 10)).value == 0
    assert joint(Counts(1, 1, 0, 1)).value == 0
    certain = joint(Counts(1000, 1000, 0, 1000)).value
    assert 6 < certain < 8
    rare = joint(Counts(30, 10**9, 0, 10**9), delta=1e-9)
    assert 1 < rare.value < math.inf
    assert gaussian(Counts(1000, 1000, 0, 1000)).value > 4
    n, other, delta, _ = SHAPES[0]
    loose = table("joint", n, other, delta, 0.8)
    assert worst_error(loose, n, other, delta) > 0.05


def test_smaller_errors_give_smaller_bounds_and_tiny_ones_tight_ones():
    counts = Counts(700, 2000, 400, 2000)
    for bound in (joint, clopper_pearson, gaussian):
        values = [bound(counts, confidence=c).value for c in (0.5, 0.9, 0.99, 1 - 1e-9)]
        assert values == sorted(values, reverse=True)
        assert values[-1] > 0 or bound is clopper_pearson
    counts = Counts(7000, 20_000, 4000, 20_000)
    for confidence in (1 - 1e-6, 1 - 1e-9):
        exact = joint(counts, confidence=confidence).value
        simple = clopper_pearson(counts, confidence=confidence).value
        estimate = math.log(7 / 4)
        assert exact < estimate
        assert estimate - exact < 0.85 * (estimate - simple)


def test_beyond_a_billion_releases_the_method_says_so_and_proportions_get_half():
    n = 2 * 10**9
    counts = Counts(n // 2, n, n // 4, n)
    assert joint(counts).method == "clopper-pearson"
    reverse = Counts(n // 4, n, n // 2, n)
    assert joint(reverse).value == 0
    both = {"two_sided": True}
    assert joint(reverse, **both) == clopper_pearson(reverse, **both)
    assert joint(reverse, **both).value > 0
    assert "clopper-pearson" in gaussian(counts).method
    n = 2 * 10**9
    counts = Counts(6 * n // 10, n, n // 5, n)
    p, q = limits(counts, ALPHA / 2)
    assert joint(counts, **OPTIONS).value == pytest.approx(epsilon_of(p, q, 0.0))
    found = gaussian(counts, **OPTIONS).value
    assert found == pytest.approx(ndtri(p) - ndtri(q), rel=1e-12)
    half = gaussian(counts, confidence=1 - ALPHA / 2).value
    assert gaussian(counts, two_sided=True, **OPTIONS).value == half < found


def test_bound_as_text_and_dictionary():
    bound = gaussian(Counts(691, 1000, 309, 1000), delta=1e-5)
    assert bound.epsilon == gaussian_epsilon(1e-5, bound.value)
    assert "as Gaussian DP" in str(bound)
    assert bound.to_dict()["counts"]["hits"] == 691
    assert Bound("gaussian", "mu", 1.0, 0.0, 0.95).epsilon is None
    assert str(Bound("joint", "epsilon", 1.0, 1e-5, 0.999)) == (
        "epsilon >= 1 at delta 1e-05 with 99.9 % confidence (joint)"
    )


test_counts_are_checked = refused(
    ((-1, 10, 0, 10), "hits must be an integer >= 0"),
    ((11, 10, 0, 10), "hits must be an integer >= 0 and <= 10"),
    ((1.5, 10, 0, 10), "hits must be an integer"),
    ((0, 0, 0, 10), "releases must be an integer >= 1"),
    ((0, 10, 0, 0), "releases_neighbour must be an integer >= 1"),
    ((0, 10, 11, 10), "hits_neighbour must be an integer"),
    ((True, 10, 1, 10), "hits must be an integer"),
    by=lambda numbers: Counts(*numbers),
)


BOUNDS = {
    **{n: partial(method, Counts(5, 10, 1, 10)) for n, method in METHODS.items()},
    "fixed scores": partial(fixed_scores, range(20), range(20), rng=default_rng(0)),
    "split scores": partial(split_scores, range(20), range(20), rng=default_rng(0)),
    "one run": partial(one_run, correct=9, guesses=10, canaries=20),
}


test_levels_are_checked = refused(
    ({"delta": 1.0}, r"delta must be in \[0, 1\)"),
    ({"delta": -0.1}, r"delta must be in \[0, 1\)"),
    ({"delta": float("nan")}, r"delta must be in \[0, 1\)"),
    ({"confidence": 1.0}, r"confidence must be in \(0, 1\)"),
    ({"confidence": 0.0}, r"confidence must be in \(0, 1\)"),
    ({"confidence": 1 - 1e-14}, "at most 1 - 1e-12"),
    by=lambda bound, options: bound(**options),
    each=BOUNDS.values(),
)


COUNTS = Counts(60, 100, 20, 90)
ALPHA = 0.03
OPTIONS = {"confidence": 1 - ALPHA}


def limits(counts, alpha):
    """Return Clopper and Pearson's lower limit for p and upper limit for q."""
    k, n, m, other = (getattr(counts, name) for name in counts.to_dict())
    return beta.ppf(alpha, k, n - k + 1), beta.isf(alpha, m + 1, other - m)


def epsilon_of(p, q, delta):
    return max(math.log((p - delta) / q), math.log((1 - q - delta) / (1 - p)))


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_two_proportions_get_half_each(delta):
    found = clopper_pearson(COUNTS, delta=delta, **OPTIONS)
    expected = epsilon_of(*limits(COUNTS, ALPHA / 2), delta)
    assert found.value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("bound", [clopper_pearson, joint, gaussian])
def test_two_directions_get_half_each(bound):
    half = {"confidence": 1 - ALPHA / 2}
    for counts in (COUNTS, COUNTS.swapped):
        found = bound(counts, two_sided=True, **OPTIONS).value
        one, other = (bound(c, **half).value for c in (COUNTS, COUNTS.swapped))
        assert found == pytest.approx(max(one, other), rel=1e-12)
        assert found < bound(COUNTS, **OPTIONS).value


def reached(pieces, q):
    """Return the largest p of segments at q, or at what is less."""
    best = -math.inf
    for (q0, p0), (q1, p1) in pieces:
        if q0 <= q * (1 + 1e-9):
            best = max(best, p0 + (p1 - p0) * min((q - q0) / max(q1 - q0, 1e-300), 1))
    return best


@pytest.mark.parametrize(
    ("nulls", "curve"),
    [
        (mu_nulls(), lambda q, mu: ndtr(ndtri(q) + mu)),
        (
            epsilon_nulls(0.05),
            lambda q, epsilon: np.minimum(
                np.exp(epsilon) * q + 0.05, 1 - (0.95 - q) * np.exp(-epsilon)
            ),
        ),
    ],
    ids=["mu", "epsilon"],
)
def test_segments_are_nowhere_below_the_null_in_the_box(nulls, curve):
    """Nothing is random but the boxes, at a fixed seed."""
    generator, seen = default_rng(0), 0
    for _ in range(200):
        heights = np.sort(ndtr(generator.normal(-0.5, 2, 2)))
        low, high = np.sort(ndtr(generator.normal(-1.5, 2, 2)))
        parameter = float(generator.choice([0.1, 0.5, 1.0, 2.0, 4.0]))
        pieces = nulls.boundary(parameter, Rectangle(*heights, low, high))
        for q in np.linspace(low, high, 40):
            p = float(curve(q, parameter))
            if heights[0] <= p <= heights[1]:
                assert reached(pieces, q) >= p - 1e-12
                seen += 1
    assert seen > 1000


@pytest.mark.parametrize(
    "nulls", [epsilon_nulls(0.01), mu_nulls()], ids=["epsilon", "mu"]
)
def test_the_confidence_set_of_the_nuisance_parameter_is_paid_for(nulls, monkeypatch):
    """A thousandth of alpha: a quarter for each side of the box, and all on top."""
    seen, gamma = {"supremum": 0.0}, 1e-3 * ALPHA

    def supremum(region, pieces, tolerance):
        seen["tolerance"] = tolerance
        return seen["supremum"]

    def box(*sides):
        seen["box"] = sides
        return ordering_box(*sides)

    ordering_box = ordering.Rectangle
    monkeypatch.setattr(ordering, "supremum", supremum)
    monkeypatch.setattr(ordering, "Rectangle", box)
    laws, hits = (BinomialCount(100), BinomialCount(90)), (80, 10)
    for off, found in ((-1e-9, True), (1e-9, False)):
        # What is left of alpha, or hardly more, at any theta that meets the box.
        seen["supremum"] = ALPHA - gamma + off
        everywhere = nulls.lower_bound(laws, hits, ALPHA) > 1.0
        assert everywhere == found
    expected = (
        *(beta.ppf(gamma / 4, 80, 21), beta.isf(gamma / 4, 81, 20)),
        *(beta.ppf(gamma / 4, 10, 81), beta.isf(gamma / 4, 11, 80)),
    )
    assert seen["box"] == pytest.approx(expected, rel=1e-9)
    assert 0 < seen["tolerance"] < 1e-3 * ALPHA


def leaky(rng, n, share):
    """Scores with an atom above all others, which tells D from D' alone."""
    return np.where(rng.random(n) < share, 100.0, rng.integers(0, 64, n))


def scores(rng, n, shift):
    """Scores that the rounding of the last bits leaves as they are."""
    return np.round(64 * rng.laplace(shift, size=n)) / 64


@pytest.mark.parametrize("fraction", [0.3, 0.5])
@pytest.mark.parametrize(
    ("bound", "test"), [(split_scores, clopper_pearson), (fixed_scores, joint)]
)
def test_scores_that_choose_the_event_are_not_counted(bound, test, fraction):
    """And those that are counted get the whole alpha."""
    rng = np.random.default_rng(0)
    sides = leaky(rng, 300, 0.3), leaky(rng, 240, 0.01)
    found = bound(*sides, fraction=fraction, rng=np.random.default_rng(1), **OPTIONS)
    again = np.random.default_rng(1)
    tested = []
    for side in sides:
        order = again.permutation(side)
        tested.append(order[round(fraction * len(side)) :])
    threshold = found.counts["threshold"]
    numbers = [x for t in tested for x in (int((t >= threshold).sum()), len(t))]
    counts = Counts(*numbers)
    assert dict(found.counts) == {**counts.to_dict(), "threshold": threshold}
    assert found.value == test(counts, **OPTIONS).value
    # Nor do those that are counted choose.
    again = np.random.default_rng(1)
    for side in sides:
        order = again.permutation(len(side))
        side[order[round(fraction * len(side)) :]] = 7.0
    found = bound(*sides, fraction=fraction, rng=np.random.default_rng(1), **OPTIONS)
    assert found.counts["threshold"] == threshold


@pytest.mark.parametrize("mu", [False, True])
def test_both_tails_are_counted_once_among_the_rest(mu):
    rng = np.random.default_rng(1)
    sides = scores(rng, 2000, 1.0), scores(rng, 1500, 0.0)
    if mu:
        sides = tuple(np.round(64 * rng.normal(m, size=3000)) / 64 for m in (1, 0))
    options = {"gaussian": mu, "fraction": 0.2, **OPTIONS}
    found = fixed_scores(*sides, rng=np.random.default_rng(1), **options)
    assert "both tails" in found.method
    again = np.random.default_rng(1)
    tested = [again.permutation(side)[round(0.2 * len(side)) :] for side in sides]
    law = paired_law(min(map(len, tested)))
    first, second = again.poisson(law.scale / 2, 2)
    data, neighbour = tested[0][:first], tested[1][:second]
    lower, upper = found.counts["lower"], found.counts["upper"]
    right = int((data >= upper).sum() + (neighbour < lower).sum())
    wrong = int((neighbour >= upper).sum() + (data < lower).sum())
    assert (found.counts["right"], found.counts["wrong"]) == (right, wrong)
    laws, hits = (law, law), (right, wrong)
    nulls = mu_nulls() if mu else epsilon_nulls(0.0)
    assert found.value == nulls.lower_bound(laws, hits, 1 - found.confidence)


@pytest.mark.parametrize(
    ("releases", "releases_neighbour", "enough"),
    [(1000, 1000, True), (20, 1000, False), (1000, 20, False), (20, 20, False)],
)
def test_a_shortage_on_either_side_claims_nothing(
    releases, releases_neighbour, enough, monkeypatch
):
    law, rng = PoissonCount(2 * 100.0), np.random.default_rng(0)
    data, neighbour = np.ones(releases), np.zeros(releases_neighbour)
    tested, tails = Sides(data, neighbour), Tails(0.0, 0.5, 0.5)
    drawn = PairedCounts.draw(tested, tails, law, rng)
    assert min(drawn.drawn) > 20
    assert drawn.enough == enough
    # Nor does the bound of scores that need them.
    rng = np.random.default_rng(0)
    sides = scores(rng, 2000, 1.0), scores(rng, 2000, 0.0)
    monkeypatch.setattr(
        PairedCounts, "draw", lambda *_: drawn._replace(right=1500, wrong=10)
    )
    found = fixed_scores(*sides, rng=rng, **OPTIONS)
    assert "both tails" in found.method
    assert (found.value > 0) == enough
