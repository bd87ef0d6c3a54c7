"""Bounds from counts: coverage by enumerating every outcome, tightness, refusals."""

import math
from functools import cache, partial
from itertools import product

import numpy as np
import pytest
from numpy.random import default_rng
from refusals import refused
from scipy.special import ndtr, ndtri
from scipy.stats import binom, poisson

from dpaudit.audit.bounds import (
    Bound,
    Counts,
    clopper_pearson,
    fixed_scores,
    gaussian,
    joint,
    one_run,
    split_scores,
)
from dpaudit.audit.bounds.counts import epsilon_nulls, mu_nulls
from dpaudit.audit.bounds.laws import Poisson
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


def test_the_enumeration_can_fail():
    n, other, delta, _ = SHAPES[0]
    loose = table("joint", n, other, delta, 0.8)
    assert worst_error(loose, n, other, delta) > 0.05


@pytest.mark.parametrize("kind", ["epsilon", "mu"])
def test_coverage_of_poisson_counts_by_enumeration(kind):
    law, alpha, delta = Poisson(3.0), 0.05, 0.01
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


def test_widths_on_a_grid():
    """Never looser than two intervals, and most often clearly tighter."""
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
    assert "clopper-pearson" in gaussian(counts).method


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
