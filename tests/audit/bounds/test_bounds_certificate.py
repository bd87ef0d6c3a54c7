from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, poisson

from dpaudit.audit.bounds.certificate import Region, supremum
from dpaudit.audit.bounds.counts import epsilon_nulls, mu_nulls
from dpaudit.audit.bounds.laws import BinomialCount, PoissonCount

TOLERANCE = 1e-7


def staircase(rng: np.random.Generator, width: int, height: int) -> np.ndarray:
    """Return a random non-decreasing threshold per m."""
    return np.sort(rng.integers(0, height + 1, size=width))


def direct(data, neighbour, least, p, q):
    """P(K >= least[M]) by its definition, for scalar p and q."""
    m = np.arange(len(least))
    if isinstance(data, BinomialCount):
        return float(binom.pmf(m, neighbour.n, q) @ binom.sf(least - 1, data.n, p))
    weights = poisson.pmf(m, neighbour.scale * q)
    return float(weights @ poisson.sf(least - 1, data.scale * p))


def whole(data, neighbour, least, height):
    return Region(data, neighbour, np.arange(height), np.arange(len(least)), least, 0.0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["binomial", "poisson"])
def test_supremum_is_the_maximum_of_brute_force(kind, seed):
    rng = np.random.default_rng(seed)
    if kind == "binomial":
        n, other = (int(x) for x in rng.integers(5, 60, size=2))
        data, neighbour = BinomialCount(n), BinomialCount(other)
    else:
        n, other = 300, 300  # far beyond the means below
        data, neighbour = PoissonCount(50.0), PoissonCount(70.0)
    least = staircase(rng, other + 1, min(n, 60))
    region = whole(data, neighbour, least, n + 1)
    slope, delta = np.exp(rng.uniform(0, 2)), rng.uniform(0, 0.1)
    start, end = np.sort(rng.uniform(0, (1 - delta) / slope, size=2))
    piece = ((start, slope * start + delta), (end, slope * end + delta))
    found = supremum(region, [piece], TOLERANCE)
    q = np.linspace(start, end, 301)
    values = [direct(data, neighbour, least, slope * x + delta, x) for x in q]
    assert found >= max(values) - 1e-12  # which is the rounding of the oracle
    assert found <= max(values) + 2 * TOLERANCE + 0.01 * np.ptp(values)
    # What the values err by is paid for: itself, and three times in the interpolant.
    erring = supremum(replace(region, outside=1e-4), [piece], TOLERANCE)
    assert min(1.0, found + 4e-4) <= erring <= found + 2e-3


def test_suprema_are_found_and_probabilities_in_windows_err_upwards():
    # K = 30 and M = 30 of 60: a peak that a coarse grid of q would miss.
    data = neighbour = BinomialCount(60)
    least = np.full(61, 61)
    least[:31] = 30
    region = whole(data, neighbour, least, 61)
    found = supremum(region, [((0.0, 0.0), (1.0, 1.0))], TOLERANCE)
    q = np.linspace(0, 1, 401)
    values = [direct(data, neighbour, least, x, x) for x in q]
    assert max(values) <= found <= max(values) * 1.01
    data, neighbour = BinomialCount(1000), BinomialCount(800)
    least = 300 + np.arange(801) // 2
    tail = 1e-8
    k = np.arange(*np.add(data.window(0.4, 0.5, tail), (0, 1)))
    m = np.arange(*np.add(neighbour.window(0.2, 0.3, tail), (0, 1)))
    inside = np.clip(least[m] - k[0], 0, len(k))
    region = Region(data, neighbour, k, m, inside, 3 * tail)
    for p, q in ((0.4, 0.3), (0.45, 0.22), (0.5, 0.2)):
        exact = direct(data, neighbour, least, p, q)
        found = float(region.probability(np.array([p]), np.array([q]))[0])
        assert exact <= found <= exact * (1 + 1e-8) + 6 * tail


@pytest.mark.parametrize("count", [7, 100_000, 100_001, 10**8])
@pytest.mark.parametrize("tail", [1e-3, 1e-9])
def test_limits_of_large_counts_are_missed_no_more_often_than_said(count, tail):
    low, high = PoissonCount(2e8).interval(count, tail)
    steps = np.arange(200_000)
    so_large = poisson.pmf(count + steps, 2e8 * low).sum()
    so_small = poisson.pmf(count - steps, 2e8 * high).sum()
    assert 0.98 * tail <= so_large <= tail * (1 + 1e-6)
    assert 0.98 * tail <= so_small <= tail * (1 + 1e-6)


def test_windows_hold_the_mass_and_growth_is_the_sum_of_weights():
    tail = 1e-6
    for n, low, high in ((30, 0.0, 0.1), (1000, 0.2, 0.6), (10**6, 1e-5, 2e-5)):
        first, last = BinomialCount(n).window(low, high, tail)
        assert binom.cdf(first - 1, n, low) <= tail
        assert binom.sf(last, n, high) <= tail
        first, last = PoissonCount(n).window(low, high, tail)
        assert poisson.cdf(first - 1, n * low) <= tail
        assert poisson.sf(last, n * high) <= tail
    theta = np.array([0.3 + 0.2j, -0.1 + 0.05j, 1.2 - 0.4j])
    counts = np.arange(400)
    weights = np.abs(theta[:, np.newaxis]) ** counts[:13]
    choose = np.array([1, 12, 66, 220, 495, 792, 924, 792, 495, 220, 66, 12, 1])
    total = weights * np.abs(1 - theta[:, np.newaxis]) ** counts[12::-1] @ choose
    assert np.allclose(BinomialCount(12).log_growth(theta), np.log(total))
    mean = 9.0 * theta
    total = np.abs(np.exp(-mean)) * np.exp(np.abs(mean))
    assert np.allclose(PoissonCount(9.0).log_growth(theta), np.log(total))


@pytest.mark.parametrize("law", [BinomialCount(40), PoissonCount(40.0)])
def test_intervals_are_exact(law):
    tail = 0.01
    limits = np.array([law.interval(k, tail) for k in range(41)])
    for theta in (0.01, 0.2, 0.5, 0.9):
        pmf = (
            binom.pmf(np.arange(41), 40, theta)
            if isinstance(law, BinomialCount)
            else poisson.pmf(np.arange(41), 40 * theta)
        )
        assert pmf[limits[:, 0] > theta].sum() <= tail
        assert pmf[limits[:, 1] < theta].sum() <= tail


@pytest.mark.parametrize(
    "law", [BinomialCount(30), PoissonCount(10.0), PoissonCount(40.0)]
)
@pytest.mark.parametrize("alpha", [0.3, 0.05, 1e-6])
@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_orderings_are_monotone(law, alpha, delta):
    counts = np.arange(31)
    for nulls in (epsilon_nulls(delta), mu_nulls()):
        k, m = (grid.ravel() for grid in np.meshgrid(counts, counts, indexing="ij"))
        fitted = ordering(law, nulls, alpha, k, m).reshape(31, 31)
        with np.errstate(invalid="ignore"):  # both minus infinity
            assert not np.any(np.diff(fitted, axis=0) < -1e-9)
            assert not np.any(np.diff(fitted, axis=1) > 1e-9)
        assert np.any(fitted > 0) or alpha < 1e-3


def ordering(law, nulls, alpha, k, m):
    """Return T at integer counts, through the parameters that have them as means."""
    unit = law.mean(np.ones(1))
    return nulls.approximate_bound((law, law), k / unit, m / unit, alpha)


@pytest.mark.parametrize("law", [BinomialCount(50), PoissonCount(50.0)])
@pytest.mark.parametrize("z", [0.5, 1.6, 5.0])
def test_score_limits_are_ordered_and_non_decreasing(law, z):
    centre, low, high = law.wilson(np.arange(51), z)
    assert np.all(low <= centre)
    assert np.all(centre <= high)
    for limit in (centre, low, high):
        assert np.all(np.diff(limit) >= -1e-12)
