"""What the tests of the Bingham sampler compare it with."""

import mpmath
import numpy as np
from scipy import special, stats

TYPE_I_ERROR = 1e-9


def series(eigenvalues, digits=40):
    """log c(S) by its power series, all of whose terms are positive.

    E[(sum s_i u_i^2)^n] / n! = p_n / (d/2)_n, where prod (1 - s_i t)^(-1/2) is the
    sum of p_n t^n; eigenvalues are shifted to s_i >= 0.
    """
    with mpmath.workdps(digits):
        shift = min(eigenvalues)
        values = [mpmath.mpf(s) - mpmath.mpf(shift) for s in eigenvalues]
        half = mpmath.mpf(len(values)) / 2
        power_sums, coefficients = [mpmath.mpf(0)], [mpmath.mpf(1)]
        total = rising = mpmath.mpf(1)
        for n in range(1, 10_000):
            power_sums.append(sum(s**n for s in values))
            terms = (power_sums[k] * coefficients[n - k] for k in range(1, n + 1))
            coefficients.append(sum(terms) / (2 * n))
            rising *= half + n - 1
            total += coefficients[-1] / rising
            if n > 2 * max(values) and coefficients[-1] / rising < total * 1e-25:
                return float(mpmath.log(total) + shift)
    raise AssertionError("the series has not converged")


def angle_law(gap):
    """The law of twice the angle to the first eigenvector, for d = 2."""
    return stats.vonmises(gap / 2)


def angles(points):
    """Twice the angle to the first axis, which an axis determines modulo 2 pi."""
    return np.angle((points[:, 0] + 1j * points[:, 1]) ** 2)


def angle_p_value(points, gap):
    """Kolmogorov-Smirnov against the von Mises law: points of shape (size, 2)."""
    return stats.kstest(angles(points), angle_law(gap).cdf).pvalue


def marginal_cdf(values):
    """The distribution function of u_1 for S = diag(values), d = 3, by quadrature.

    Given u_1 the others are sqrt(1 - u_1^2) (cos a, sin a), and a integrates to I_0.
    """
    first, second, third = values
    # Gauss-Legendre between neighbouring knots.
    knots = np.sin(np.linspace(-np.pi / 2, np.pi / 2, 2001))
    nodes, weights = np.polynomial.legendre.leggauss(8)
    middle, half = (knots[1:] + knots[:-1]) / 2, np.diff(knots) / 2
    x = middle[:, np.newaxis] + half[:, np.newaxis] * nodes
    rest = 1 - x**2
    spread = rest * abs(second - third) / 2
    log = first * x**2 + rest * max(second, third) + np.log(special.i0e(spread))
    mass = (np.exp(log - log.max()) @ weights) * half
    cumulative = np.concatenate([[0.0], np.cumsum(mass)])
    return lambda u: np.interp(u, knots, cumulative / cumulative[-1])


def naive_draws(values, size, *, rng):
    """Rejection step by step, for S = diag(values).

    Returns the draws, and the share of proposals that was accepted.
    """
    values = np.asarray(values, dtype=np.float64)
    d, gaps = len(values), values.max() - values
    low, high = 1.0, float(d)
    while high - low > 1e-13:
        b = (low + high) / 2
        low, high = (b, high) if np.sum(1 / (b + 2 * gaps)) > 1 else (low, b)
    omega = 1 + 2 * gaps / low
    # Where the ratio of the densities is largest.
    top = (d - low) / 2
    log_bound = -top + d / 2 * np.log(1 + 2 * top / low)
    kept, proposed = [], 0
    while sum(map(len, kept)) < size:
        z = rng.standard_normal((50_000, d)) / np.sqrt(omega)
        u = z / np.linalg.norm(z, axis=1, keepdims=True)
        log_chance = -(u**2 @ gaps) + d / 2 * np.log(u**2 @ omega) - log_bound
        assert log_chance.max() <= 1e-9
        kept.append(u[np.log(rng.random(len(u))) <= log_chance])
        proposed += len(u)
    draws = np.concatenate(kept)
    return draws[:size], len(draws) / proposed


def bernstein_radius(variance, size, statements=1):
    """How far a mean of variables in an interval of length 1 may be off.

    Bernstein's inequality, two-sided, at level TYPE_I_ERROR / statements.
    """
    log_term = np.log(2 * statements / TYPE_I_ERROR)
    return np.sqrt(2 * variance * log_term / size) + log_term / (3 * size)
