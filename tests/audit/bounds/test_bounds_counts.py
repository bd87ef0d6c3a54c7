"""Bounds from counts: coverage by enumerating every outcome, tightness, refusals."""

import math
from functools import cache

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom, poisson

from dpaudit.audit.bounds import Bound, Counts, clopper_pearson, gaussian, joint
from dpaudit.audit.bounds.gaussian import mu_lower
from dpaudit.audit.bounds.joint import epsilon_lower
from dpaudit.audit.bounds.laws import Poisson
from dpaudit.errors import InputError
from dpaudit.gaussian import gaussian_epsilon

METHODS = {"joint": joint, "clopper-pearson": clopper_pearson, "gaussian": gaussian}
TRUTHS = (0.0, 0.1, 0.5, 1.0, 2.0, 3.5)
SHAPES = [(10, 10, 0.0, 0.95), (9, 6, 0.02, 0.8)]


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


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", METHODS)
def test_coverage_by_enumeration(name, shape):
    n, other, delta, confidence = shape
    error = worst_error(table(name, *shape), n, other, delta, mu=name == "gaussian")
    assert error <= 1 - confidence
    if name != "clopper-pearson":
        assert error >= 0.7 * (1 - confidence)  # nothing is given away


def test_the_enumeration_can_fail():
    n, other, delta, _ = SHAPES[0]
    loose = table("joint", n, other, delta, 0.8)
    assert worst_error(loose, n, other, delta) > 0.05
    # Nor is a bound on mu one on epsilon.
    assert worst_error(table("gaussian", *SHAPES[0]), n, other, delta) > 0.05


def test_two_sided_covers_points_inside_both_directions():
    n = 9
    bounds = np.array(
        [
            [joint(Counts(k, n, m, n), two_sided=True).value for m in range(n + 1)]
            for k in range(n + 1)
        ]
    )
    assert np.allclose(bounds, bounds.T)
    k = np.arange(n + 1)
    for truth in (0.0, 0.3):
        for q in np.linspace(0.01, 0.99, 50):
            p = min(np.exp(truth) * q, 1 - np.exp(-truth) * (1 - q))
            weights = np.outer(binom.pmf(k, n, p), binom.pmf(k, n, q))
            assert weights[bounds > truth].sum() <= 0.05


@pytest.mark.parametrize("kind", ["epsilon", "mu"])
def test_coverage_of_poisson_counts_by_enumeration(kind):
    law, alpha, delta = Poisson(3.0), 0.05, 0.01
    size = 17

    def bound(hits):
        if kind == "epsilon":
            return epsilon_lower((law, law), hits, delta, alpha)
        return mu_lower((law, law), hits, alpha)

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


@pytest.mark.parametrize(
    ("n", "q", "epsilon", "delta"),
    [(10**5, 0.2, 1.0, 0.0), (10**5, 3e-4, 1.0, 1e-5), (2000, 0.2689, 1.0, 0.0)],
)
def test_coverage_of_larger_samples_by_simulation(n, q, epsilon, delta):
    # A valid bound fails this with probability below 1e-9.
    audits, alpha = 80, 0.05
    rng = np.random.default_rng(n)
    p = min(np.exp(epsilon) * q + delta, 1 - np.exp(-epsilon) * (1 - q - delta))
    hits = zip(rng.binomial(n, p, audits), rng.binomial(n, q, audits), strict=True)
    over = sum(
        joint(Counts(int(k), n, int(m), n), delta=delta).value > epsilon
        for k, m in hits
    )
    assert over <= binom.isf(1e-9, audits, alpha)


def test_never_looser_than_clopper_pearson():
    for shape in SHAPES:
        exact, simple = table("joint", *shape), table("clopper-pearson", *shape)
        assert np.all(exact >= simple)
        assert np.any(exact > simple + 0.1)


GRID = [
    (n, q, epsilon, delta)
    for n in (100, 10_000, 10**6)
    for q in (0.002, 0.05, 0.27, 0.6)
    for epsilon in (0.5, 2.0)
    for delta in (0.0, 1e-3)
]


def test_widths_on_a_grid():
    shares = []
    for n, q, epsilon, delta in GRID:
        p = min(np.exp(epsilon) * q + delta, 1 - np.exp(-epsilon) * (1 - q - delta))
        counts = Counts(round(n * p), n, round(n * q), n)
        exact = joint(counts, delta=delta).value
        simple = clopper_pearson(counts, delta=delta).value
        assert exact >= simple
        if simple > 0:
            shares.append((epsilon - exact) / (epsilon - simple))
    # One standard error at full alpha, against two at half of it.
    assert len(shares) > 30
    assert np.median(shares) < 0.85


@pytest.mark.parametrize(
    ("counts", "delta"),
    [
        (Counts(900, 10_000, 330, 10_000), 0.0),
        (Counts(700, 10**6, 250, 10**6), 1e-5),
        (Counts(8160, 10_000, 5000, 10_000), 0.0),
    ],
)
def test_near_the_joint_bayesian_bound(counts, delta):
    rng = np.random.default_rng(0)
    draws = 400_000
    misses = counts.releases - counts.hits, counts.releases_neighbour
    p = rng.beta(counts.hits + 0.5, misses[0] + 0.5, draws)
    q = rng.beta(
        counts.hits_neighbour + 0.5, misses[1] - counts.hits_neighbour + 0.5, draws
    )
    with np.errstate(invalid="ignore"):
        sides = np.log((p - delta) / q), np.log((1 - q - delta) / (1 - p))
    credible = float(np.quantile(np.fmax(*sides), 0.05))
    centre = float(np.median(np.fmax(*sides)))
    bound = joint(counts, delta=delta).value
    assert abs(bound - credible) <= 0.03 * (centre - credible)


def test_the_complement_tells_the_same():
    counts = Counts(816, 1000, 500, 1000)
    for bound in (joint, clopper_pearson, gaussian):
        value = bound(counts).value
        assert bound(counts.complement).value == pytest.approx(value, rel=2e-3)
        assert bound(counts.swapped).value == 0
        both = bound(counts, two_sided=True).value
        assert 0 < both < value
        swapped = bound(counts.swapped, two_sided=True).value
        assert swapped == pytest.approx(both, rel=1e-9)


def test_very_small_errors_stay_tight():
    counts = Counts(7000, 20_000, 4000, 20_000)
    for confidence in (1 - 1e-6, 1 - 1e-9):
        exact = joint(counts, confidence=confidence).value
        simple = clopper_pearson(counts, confidence=confidence).value
        estimate = math.log(7 / 4)
        assert exact < estimate
        assert estimate - exact < 0.85 * (estimate - simple)


def test_extreme_counts():
    assert joint(Counts(0, 10, 0, 10)).value == 0
    assert joint(Counts(10, 10, 10, 10)).value == 0
    assert joint(Counts(1, 1, 0, 1)).value == 0
    certain = joint(Counts(1000, 1000, 0, 1000)).value
    assert 6 < certain < 8
    rare = joint(Counts(30, 10**9, 0, 10**9), delta=1e-9)
    assert 1 < rare.value < math.inf
    assert gaussian(Counts(1000, 1000, 0, 1000)).value > 4


def test_a_smaller_error_gives_a_smaller_bound():
    counts = Counts(700, 2000, 400, 2000)
    for bound in (joint, clopper_pearson, gaussian):
        values = [bound(counts, confidence=c).value for c in (0.5, 0.9, 0.99, 1 - 1e-9)]
        assert values == sorted(values, reverse=True)
        assert values[-1] > 0 or bound is clopper_pearson


def test_beyond_a_billion_releases_the_method_says_so():
    n = 2 * 10**9
    counts = Counts(n // 2, n, n // 4, n)
    assert joint(counts).method == "clopper-pearson"
    reverse = Counts(n // 4, n, n // 2, n)
    assert joint(reverse).value == 0
    both = {"two_sided": True}
    assert joint(reverse, **both) == clopper_pearson(reverse, **both)
    assert joint(reverse, **both).value > 0
    bound = gaussian(counts)
    assert "clopper-pearson" in bound.method
    assert bound.value == pytest.approx(-ndtri(0.25), rel=1e-3)


def test_bound_as_text_and_dictionary():
    bound = gaussian(Counts(691, 1000, 309, 1000), delta=1e-5)
    assert bound.epsilon == gaussian_epsilon(1e-5, bound.value)
    assert "as Gaussian DP" in str(bound)
    assert bound.to_dict()["counts"]["hits"] == 691
    assert Bound("gaussian", "mu", 1.0, 0.0, 0.95).epsilon is None
    assert str(Bound("joint", "epsilon", 1.0, 1e-5, 0.999)) == (
        "epsilon >= 1 at delta 1e-05 with 99.9 % confidence (joint)"
    )


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((-1, 10, 0, 10), "hits must be an integer >= 0"),
        ((11, 10, 0, 10), "hits must be an integer >= 0 and <= 10"),
        ((1.5, 10, 0, 10), "hits must be an integer"),
        ((0, 0, 0, 10), "releases must be an integer >= 1"),
        ((0, 10, 0, 0), "releases_neighbour must be an integer >= 1"),
        ((0, 10, 11, 10), "hits_neighbour must be an integer"),
        ((True, 10, 1, 10), "hits must be an integer"),
    ],
)
def test_counts_are_checked(numbers, message):
    with pytest.raises(InputError, match=message):
        Counts(*numbers)


@pytest.mark.parametrize("bound", METHODS.values())
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 1.0}, r"delta must be in \[0, 1\)"),
        ({"delta": -0.1}, r"delta must be in \[0, 1\)"),
        ({"delta": float("nan")}, r"delta must be in \[0, 1\)"),
        ({"confidence": 1.0}, r"confidence must be in \(0, 1\)"),
        ({"confidence": 0.0}, r"confidence must be in \(0, 1\)"),
        ({"confidence": 1 - 1e-14}, "at most 1 - 1e-12"),
    ],
)
def test_levels_are_checked(bound, options, message):
    with pytest.raises(InputError, match=message):
        bound(Counts(5, 10, 1, 10), **options)
