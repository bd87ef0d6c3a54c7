"""The accountant of Wishart noise, against Wishart matrices, quadrature and mpmath.

Type-I error: 1e-9 for each of the 2 + 4 + 4 cases of the sampled tests, 1e-8 in total,
 by exact tests (Kolmogorov-Smirnov, binomial) at fixed seeds.
"""

import mpmath
import numpy as np
import pytest
from refusals import refused
from scipy import stats

from dpaudit import Relation
from dpaudit.algorithms.covariance.wishart_accountant import (
    MAX_EXCESS,
    neighbours_delta,
    pair_delta,
    pair_profile,
)
from dpaudit.algorithms.covariance.wishart_approximate import (
    efficient_excess,
    largest_shift,
    smallest_excess,
)
from dpaudit.claims import NO_LOSS
from dpaudit.gaussian import gaussian_delta, gaussian_mu

ADD_REMOVE, REPLACE_ONE = Relation
TYPE_I_ERROR = 1e-9
SIZE = 20_000


def added(epsilon, excess, shift):
    """The divergence of the data without the row, from those with it."""
    return pair_delta(epsilon, excess=excess, gained=0.0, lost=shift)


# The law of the loss, on actual Wishart matrices
def draws(d, excess, seed):
    law = stats.wishart(df=d + excess, scale=np.eye(d))
    return law.rvs(SIZE, random_state=seed).reshape(SIZE, d, d)


def losses(noise, difference, excess):
    """log f(W)/f(W + D) from the density, infinite off the support."""
    moved = noise + difference
    inside = np.linalg.eigvalsh(moved)[:, 0] > 0
    loss = np.full(len(noise), np.inf)
    logs = [np.linalg.slogdet(m[inside]).logabsdet for m in (noise, moved)]
    loss[inside] = (excess - 1) / 2 * (logs[0] - logs[1]) + np.trace(difference) / 2
    return loss


@pytest.mark.parametrize(("d", "excess"), [(1, 4), (3, 6)])
def test_one_row_moves_a_chi_square_variable(d, excess):
    # Null hypothesis: 1/(u^T W^-1 u) is chi-square with excess + 1 degrees of freedom.
    noise = draws(d, excess, seed=d)
    u = np.random.default_rng(0).standard_normal(d)
    u /= np.linalg.norm(u)
    variable = 1 / (np.linalg.inv(noise) @ u @ u)
    fit = stats.kstest(variable, stats.chi2(excess + 1).cdf)
    assert fit.pvalue >= TYPE_I_ERROR
    assert stats.kstest(variable, stats.chi2(excess + 2).cdf).pvalue < TYPE_I_ERROR
    # And the loss is the stated function of it, for either direction.
    a, c = (excess - 1) / 2, 1.7
    possible = variable > c
    removed = np.full(SIZE, np.inf)
    removed[possible] = -a * np.log1p(-c / variable[possible]) - c / 2
    found = losses(noise, -c * np.outer(u, u), excess)
    np.testing.assert_allclose(found, removed, rtol=1e-6, atol=1e-7)
    found = losses(noise, c * np.outer(u, u), excess)
    expected = -a * np.log1p(c / variable) + c / 2
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def divergence(epsilon, loss):
    """(1 - e^(epsilon - L))_+, whose mean is the divergence."""
    return -np.expm1(np.minimum(epsilon - loss, 0.0))


def p_value(loss, epsilon, delta):
    """Null hypothesis: E[(1 - e^(epsilon - L))_+] = delta.

    Of each release a uniform number makes an event of just that probability, so their
    count is binomial.
    """
    uniform = np.random.default_rng(0).random(len(loss))
    events = int((uniform < divergence(epsilon, loss)).sum())
    return stats.binomtest(events, len(loss), delta).pvalue


def expected_of_one_row(epsilon, excess, difference):
    """Integrate over the root of the chi-square variable, by the midpoint rule."""
    end = np.sqrt(excess + 1) + 8
    root = (np.arange(40_000) + 0.5) * end / 40_000
    values = root**2
    weights = stats.chi2(excess + 1).pdf(values) * 2 * root * end / 40_000
    loss = np.full(len(values), np.inf)
    possible = values + difference > 0
    ratio = 1 + difference / values[possible]
    loss[possible] = -(excess - 1) / 2 * np.log(ratio) + difference / 2
    return float(weights @ divergence(epsilon, loss))


@pytest.mark.parametrize(
    ("d", "epsilon", "excess"), [(1, 0.5, 1), (3, 0.0, 4), (3, 0.5, 4), (3, 0.5, 30)]
)
def test_one_row_more_or_less(d, epsilon, excess):
    noise = draws(d, excess, seed=excess)
    x = np.full(d, np.sqrt((1 + excess / 4) / d))
    both = []
    for sign in (1, -1):
        expected = expected_of_one_row(epsilon, excess, sign * (x @ x))
        loss = losses(noise, sign * np.outer(x, x), excess)
        assert p_value(loss, epsilon, expected) >= TYPE_I_ERROR / 2
        if expected > 0.05:
            assert p_value(loss, epsilon, 0.8 * expected) < TYPE_I_ERROR
        both.append(expected)
    found = pair_delta(epsilon, excess=excess, gained=x @ x, lost=0.0)
    assert float(found) == pytest.approx(max(both), rel=3e-4, abs=1e-7)
    assert found == added(epsilon, excess, x @ x)


def expected_of_two_rows(epsilon, excess, gained, lost):
    """Integrate over two variances and a correlation, for rows at two axes.

    N_11 and N_22 of W_2(I, excess + 2) are independent chi-squares, and independent of
    their correlation, which is sin(t) with a density proportional to cos(t)^excess.
    """
    nodes, weights = np.polynomial.legendre.leggauss(100)
    low, high = (np.sqrt(excess + 2) + reach for reach in (-6, 6))
    low = max(low, 0.0)
    root = low + (nodes + 1) * (high - low) / 2
    variance = root**2
    outer = weights * stats.chi2(excess + 2).pdf(variance) * root * (high - low)
    angle = np.linspace(0, np.pi / 2, 101)[:-1] + np.pi / 400
    inner = np.cos(angle) ** excess
    inner /= inner.sum()
    one, two = variance[:, np.newaxis, np.newaxis], variance[:, np.newaxis]
    common = np.sin(angle) ** 2 * one * two
    moved = np.where(two > lost, (one + gained) * (two - lost) - common, -1.0)
    ratio = np.maximum(moved, 1e-300) / (one * two - common)
    loss = (gained - lost) / 2 - (excess - 1) / 2 * np.log(ratio)
    loss[moved <= 0] = np.inf
    return float(outer @ (divergence(epsilon, loss) @ inner) @ outer)


@pytest.mark.parametrize(
    ("angle", "epsilon", "excess"),
    [(0.4, 0.5, 3), (np.pi / 2, 0.0, 3), (0.4, 0.0, 30), (np.pi / 2, 0.5, 30)],
)
def test_a_row_replaced_by_another(angle, epsilon, excess):
    # In three dimensions, for rows of different lengths at any angle.
    length = np.sqrt(1 + excess / 4)
    x = length * np.array([0.6, 0.0, 0.8])
    y = 0.9 * np.cos(angle) * x + 0.9 * length * np.sin(angle) * np.eye(3)[1]
    difference = np.outer(x, x) - np.outer(y, y)
    least, zero, largest = np.linalg.eigvalsh(difference)
    assert least < 0 < largest
    assert abs(zero) < 1e-12
    ways = [
        expected_of_two_rows(epsilon, excess, *way)
        for way in ((largest, -least), (-least, largest))
    ]
    loss = losses(draws(3, excess, seed=excess), difference, excess)
    assert p_value(loss, epsilon, ways[0]) >= TYPE_I_ERROR
    if ways[0] > 0.05:
        assert p_value(loss, epsilon, 0.8 * ways[0]) < TYPE_I_ERROR
    found = pair_delta(epsilon, excess=excess, gained=largest, lost=-least)
    assert float(found) == pytest.approx(max(ways), rel=1e-3)


@pytest.mark.parametrize("excess", [3, 60, 2586])
def test_a_vanishing_eigenvalue_leaves_one_row(excess):
    # Quadrature against the closed form.
    shift = 0.4 * np.sqrt(2 * (excess + 1))
    epsilons = np.array([0.0, 0.3, 1.0])
    one_row = pair_delta(epsilons, excess=excess, gained=0.0, lost=shift)
    two_rows = pair_delta(epsilons, excess=excess, gained=1e-9 * shift, lost=shift)
    np.testing.assert_allclose(two_rows, one_row, rtol=1e-6)


# Against mpmath
def mpmath_added(epsilon, excess, shift):
    """The maximum over half-lines, found by differentiation in high precision."""
    with mpmath.workdps(60):
        half, shift, epsilon = (
            mpmath.mpf(v) for v in ((excess + 1) / 2, shift, epsilon)
        )

        def below(t):
            term = total = 1 / half
            count = 0
            while term > total * mpmath.mpf(10) ** -40:
                count += 1
                term *= t / 2 / (half + count)
                total += term
            return total * mpmath.exp(
                half * mpmath.log(t / 2) - t / 2 - mpmath.loggamma(half)
            )

        def log_ratio(t):
            return -(half - 1) * mpmath.log1p(-shift / t) - shift / 2 - epsilon

        low, high = shift * (1 + mpmath.mpf(10) ** -40), shift
        while log_ratio(high * 2) > 0:
            high *= 2
        high *= 2
        for _ in range(190):
            middle = (low + high) / 2
            low, high = (middle, high) if log_ratio(middle) > 0 else (low, middle)
        return float(below(low) - mpmath.exp(epsilon) * below(low - shift))


@pytest.mark.parametrize("epsilon", [0.0, 4.0])
@pytest.mark.parametrize(
    ("excess", "shift"),
    [(2, 0.01), (16, 1.0), (300, 9.0), (2586, 26.0), (MAX_EXCESS, 1900.0)],
)
def test_the_closed_form_keeps_its_digits(excess, shift, epsilon):
    found = float(added(epsilon, excess, shift))
    assert found == pytest.approx(mpmath_added(epsilon, excess, shift), rel=1e-9, abs=0)


# Structure
def test_one_degree_of_freedom_is_symmetric_noise_and_the_same_matrix_loses_nothing():
    epsilons = np.array([0.0, 0.5, 3.0, 600.0])
    np.testing.assert_allclose(added(epsilons, 1, 2.0), 1 - np.exp(-1), rtol=1e-13)
    # At a replacement no more escapes, and without a finite loss nothing else counts.
    replaced = pair_delta(epsilons, excess=1, gained=2.0, lost=2.0)
    np.testing.assert_allclose(replaced, replaced[0], rtol=1e-12)
    assert replaced[0] < 1 - np.exp(-1)
    epsilons = np.array([-1.0, 0.0, 2.0])
    found = pair_delta(epsilons, excess=7, gained=0.0, lost=0.0)
    np.testing.assert_allclose(found, [1 - np.exp(-1), 0.0, 0.0])
    # d = 54, s = 1: 70 degrees of freedom against the 286 that were published.
    fewest = smallest_excess(1.0, 1e-3, shift=1.0, relation=ADD_REMOVE)
    assert 54 + fewest == 70
    assert 54 + int(28 * np.log(4 / 1e-3)) == 286


@pytest.mark.parametrize(
    ("excess", "shift", "epsilon", "zeros_are_worse"),
    [(14, 1.0, 4.0, True), (3, 0.5, 1.0, True), (60, 3.0, 1.0, False)],
)
def test_the_worse_corner_is_what_a_replaced_row_loses(
    excess, shift, epsilon, zeros_are_worse
):
    # No less, or a pair would break it; and no more, beyond what quadrature may miss.
    apart = pair_delta(epsilon, excess=excess, gained=shift, lost=shift)
    zeros = pair_delta(epsilon, excess=excess, gained=shift, lost=0.0)
    assert (zeros > 1.1 * apart) == zeros_are_worse
    assert (apart > 1.1 * zeros) == (not zeros_are_worse)
    worst = float(max(apart, zeros))
    found = neighbours_delta(epsilon, excess=excess, shift=shift, relation=REPLACE_ONE)
    assert worst <= found <= worst * (1 + 2e-7) + 1e-13


def test_many_degrees_are_gaussian_and_profiles_end_with_the_escaping_mass():
    excess, mu = MAX_EXCESS, 0.5
    shift = mu * np.sqrt(2 * (excess + 1))
    epsilons = np.array([0.0, 0.5, 1.5])
    np.testing.assert_allclose(
        added(epsilons, excess, shift), gaussian_delta(epsilons, mu), rtol=0.02
    )
    np.testing.assert_allclose(
        pair_delta(epsilons, excess=excess, gained=shift, lost=shift),
        gaussian_delta(epsilons, np.sqrt(2) * mu),
        rtol=0.02,
    )
    profile = pair_profile(excess=3, gained=0.0, lost=1.0)
    escaping = stats.chi2(4).cdf(1.0)
    assert float(profile.delta_at(600.0)) == pytest.approx(escaping, rel=2e-3)
    assert profile.epsilon_at(0.9 * escaping) == np.inf
    assert pair_profile(excess=3, gained=0.0, lost=0.0) == NO_LOSS


@pytest.mark.parametrize(("gained", "lost"), [(0.0, 3.0), (3.0, 3.0), (1.0, 3.0)])
def test_epsilons_are_vectorised(gained, lost):
    epsilons = np.array([[-2.0, 0.0, 0.4], [1.0, 2.0, 300.0]])
    found = pair_delta(epsilons, excess=40, gained=gained, lost=lost)
    assert found.shape == (2, 3)
    one_by_one = [
        pair_delta(e, excess=40, gained=gained, lost=lost) for e in epsilons.ravel()
    ]
    np.testing.assert_allclose(found.ravel(), one_by_one, rtol=1e-12, atol=1e-18)
    assert (np.diff(found.ravel()) <= 0).all()


@pytest.mark.parametrize("shifts", [(0.0, 1e6), (1e6, 1e6), (1e5, 1e6)])
def test_what_is_easily_told_apart(shifts):
    found = pair_delta([0.0, 9.0, 700.0], excess=30, gained=shifts[0], lost=shifts[1])
    np.testing.assert_allclose(found, 1.0, rtol=1e-12)
    assert (found <= 1).all()


# Profiles
@pytest.mark.parametrize(("gained", "lost"), [(0.0, 1.0), (4.0, 0.0), (3.0, 3.0)])
def test_profiles_are_exact_at_their_points(gained, lost):
    pair = {"excess": 60, "gained": gained, "lost": lost}
    profile = pair_profile(**pair, knots=(0.123, 1.0))
    for epsilon in (0.0, 0.123, 1.0):
        exact = float(pair_delta(epsilon, **pair))
        assert float(profile.delta_at(epsilon)) == pytest.approx(exact, rel=1e-9)
    between = np.linspace(0.0, 3.0, 37)
    exact = pair_delta(between, **pair)
    assert (profile.delta_at(between) >= exact * (1 - 1e-9) - 1e-15).all()
    np.testing.assert_allclose(profile.delta_at(between), exact, rtol=0.1, atol=2e-3)


# Calibration
BUDGETS = [(1.0, 1e-3), (0.1, 1e-5), (3.0, 1e-9), (1.0, 0.3)]


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("budget", BUDGETS)
def test_one_degree_less_is_too_few(budget, relation):
    epsilon, delta = budget
    fewest = smallest_excess(epsilon, delta, shift=2.0, relation=relation)
    for excess, kept in ((fewest, True), (fewest - 1, False)):
        found = neighbours_delta(epsilon, excess=excess, shift=2.0, relation=relation)
        assert (found <= delta) == kept


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("excess", [1, 400])
@pytest.mark.parametrize("budget", BUDGETS)
def test_a_larger_shift_is_too_much(budget, excess, relation):
    epsilon, delta = budget
    shift = largest_shift(epsilon, delta, excess=excess, relation=relation)
    for factor, kept in ((1.0, True), (1 + 1e-6, False)):
        found = neighbours_delta(
            epsilon, excess=excess, shift=shift * factor, relation=relation
        )
        assert (found <= delta) == kept


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(1e-10, 1e-100), (1e-8, 1e-30), (1.0, 1e-300), (700.0, 1e-300)],
)
def test_what_rounding_takes_off_a_tail_is_not_spent(epsilon, delta):
    excess = efficient_excess(epsilon, delta)
    shift = largest_shift(epsilon, delta, excess=excess, relation=ADD_REMOVE)
    assert mpmath_added(epsilon, excess, shift) <= delta


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_efficient_excess_is_the_first_that_is_nearly_gaussian(budget):
    def spread(excess):
        shift = largest_shift(*budget, excess=excess, relation=ADD_REMOVE)
        return np.sqrt(2 * (excess + 1)) / shift * gaussian_mu(*budget)

    excess = efficient_excess(*budget)
    assert spread(excess) <= 1.05 < spread(excess - 1)
    assert spread(4 * excess) < 1.03


test_bad_arguments_are_named = refused(
    (lambda: pair_delta(1.0, excess=0, gained=1.0, lost=0.0), "excess .* >= 1"),
    (lambda: pair_delta(1.0, excess=2.5, gained=1.0, lost=0.0), "excess"),
    (lambda: pair_delta(1.0, excess=3, gained=-1.0, lost=0.0), "gained .* >= 0"),
    (lambda: pair_delta(1.0, excess=3, gained=1.0, lost=np.nan), "lost"),
    (
        lambda: neighbours_delta(
            1.0, excess=MAX_EXCESS + 1, shift=1.0, relation=ADD_REMOVE
        ),
        f"excess .* <= {MAX_EXCESS}",
    ),
    (
        lambda: neighbours_delta(1.0, excess=3, shift=0.0, relation=ADD_REMOVE),
        "shift .* > 0",
    ),
    (lambda: efficient_excess(0.0, 1e-5), "epsilon .* > 0, got 0.0"),
    (lambda: efficient_excess(701.0, 1e-5), "epsilon .* 700, got 701.0"),
    (lambda: efficient_excess(1.0, 1.0), "delta .* got 1.0"),
    (
        lambda: largest_shift(1.0, 0.0, excess=3, relation=ADD_REMOVE),
        "delta .* got 0.0",
    ),
    (lambda: efficient_excess(1.0, 1e-301), "delta must be at least 1e-300 under add"),
    (
        lambda: largest_shift(1.0, 1e-13, excess=3, relation=REPLACE_ONE),
        "delta must be at least 1e-12 under replace-one",
    ),
    (
        lambda: smallest_excess(1.0, 1e-13, shift=1.0, relation=REPLACE_ONE),
        "delta must be at least 1e-12 under replace-one",
    ),
    (
        lambda: smallest_excess(1e-6, 1e-5, shift=1.0, relation=ADD_REMOVE),
        f"epsilon = 1e-06 and delta = 1e-05 take more than {MAX_EXCESS}",
    ),
)
