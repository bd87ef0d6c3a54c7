"""How every bound shares its error among its parts: equalities, without chance.

Simulations see an error that exceeds alpha many times over; one that is twice alpha
they hardly tell from chance. Here each part is computed independently, at the exact
share of alpha that the proof gives it.
"""

import math

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import beta

from dpaudit.audit.bounds import (
    Counts,
    clopper_pearson,
    fixed_scores,
    gaussian,
    joint,
    ordering,
    split_scores,
)
from dpaudit.audit.bounds.choice import Sides, Tails
from dpaudit.audit.bounds.counts import epsilon_nulls, mu_nulls
from dpaudit.audit.bounds.laws import Binomial, Poisson
from dpaudit.audit.bounds.scores import PairedCounts, paired_law

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


def test_beyond_a_billion_releases_proportions_get_half_each():
    n = 2 * 10**9
    counts = Counts(6 * n // 10, n, n // 5, n)
    p, q = limits(counts, ALPHA / 2)
    assert joint(counts, **OPTIONS).value == pytest.approx(epsilon_of(p, q, 0.0))
    found = gaussian(counts, **OPTIONS).value
    assert found == pytest.approx(ndtri(p) - ndtri(q), rel=1e-12)
    half = gaussian(counts, confidence=1 - ALPHA / 2).value
    assert gaussian(counts, two_sided=True, **OPTIONS).value == half < found


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
    laws, hits = (Binomial(100), Binomial(90)), (80, 10)
    for off, found in ((-1e-9, True), (1e-9, False)):
        # What is left of alpha, or hardly more, at any theta that meets the box.
        seen["supremum"] = ALPHA - gamma + off
        everywhere = nulls.lower_bound(laws, hits, ALPHA) > 1.0
        assert everywhere == found
    expected = (
        beta.ppf(gamma / 4, 80, 21),
        beta.isf(gamma / 4, 81, 20),
        beta.ppf(gamma / 4, 10, 81),
        beta.isf(gamma / 4, 11, 80),
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
    law, rng = Poisson(2 * 100.0), np.random.default_rng(0)
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
