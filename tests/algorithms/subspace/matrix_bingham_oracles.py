"""What the tests of the exponential mechanism for k components compare it with.

In R^4 the planes are pairs of points on two spheres. With the Pluecker coordinates
p_ij = v_i w_j - v_j w_i of an orthonormal basis (v, w),

    x = (p_12 + p_34, p_13 - p_24, p_14 + p_23),
    y = (p_12 - p_34, p_13 + p_24, p_14 - p_23)

are unit vectors, uniform and independent for a uniform plane, and the other orientation
changes both signs. For S = diag(s) the utility is

    tr V^T S V = sum_(i<j) (s_i + s_j) p_ij^2 = tr S / 2 + sum_l t_l x_l y_l,

t_l = (s_1 + s_(l+1) - the other two)/2. So matrix Bingham planes have the density
exp(sum t_l x_l y_l): given x, y is von Mises-Fisher, and x has the density sinh(r)/r,
r = |(t_1 x_1, t_2 x_2, t_3 x_3)|.
"""

import numpy as np
from bingham_oracles import TYPE_I_ERROR, marginal_cdf
from scipy import stats
from scipy.special import multigammaln

__all__ = [
    "TYPE_I_ERROR",
    "normal_p_values",
    "plane_p_values",
    "same_law_p_values",
    "wide_gap_acceptance",
]


def wide_gap_acceptance(d, k):
    """The acceptance probability of `MatrixACG` for one wide gap, after the k-th value.

    The formula at the head of `dpaudit.algorithms.subspace.exact_exponential`.
    """
    log = multigammaln(d / 2, k) - multigammaln(k / 2, k)
    power = k * (d - k) / 2
    return np.exp(log + power) * 2**power * k ** (k**2 / 2) / d ** (k * d / 2)


def slopes(values):
    """The t_l above."""
    first, *others = values
    return np.array([first + other - sum(values) / 2 for other in others])


def spheres(frames):
    """The points x and y of planes in R^4, shape (size, 4, 2) -> 2 of (size, 3)."""
    v, w = frames[..., 0], frames[..., 1]

    def p(i, j):
        return v[:, i - 1] * w[:, j - 1] - v[:, j - 1] * w[:, i - 1]

    x = np.stack([p(1, 2) + p(3, 4), p(1, 3) - p(2, 4), p(1, 4) + p(2, 3)], axis=-1)
    y = np.stack([p(1, 2) - p(3, 4), p(1, 3) + p(2, 4), p(1, 4) - p(2, 3)], axis=-1)
    return x, y


def log_sinh_ratio(r):
    """log(sinh(r)/r)."""
    small = np.maximum(r, 1e-8)
    return small + np.log(-np.expm1(-2 * small)) - np.log(2 * small)


def absolute_cdf(values, axis):
    """The distribution function of |x_axis|, by the trapezoidal rule."""
    t = np.roll(slopes(values), -axis)
    turns = np.linspace(0, np.pi, 100, endpoint=False)
    # Heights are closer together towards 1, where the density may rise steeply.
    height = np.sin(np.linspace(0, np.pi / 2, 1501))
    rest = (1 - height**2)[:, np.newaxis]
    squares = (t[1] * np.cos(turns)) ** 2 + (t[2] * np.sin(turns)) ** 2
    r = np.sqrt((t[0] * height[:, np.newaxis]) ** 2 + rest * squares)
    log = log_sinh_ratio(r)
    density = np.exp(log - log.max()).mean(axis=1)
    mass = np.concatenate([[0.0], np.diff(height) * (density[1:] + density[:-1]) / 2])
    cumulative = np.cumsum(mass)
    return lambda u: np.interp(u, height, cumulative / cumulative[-1])


def plane_p_values(frames, values):
    """Kolmogorov-Smirnov p-values, d = 4, k = 2, S = diag(values)."""
    x, y = spheres(frames)
    p_values = []
    for one, two in ((x, y), (y, x)):
        direction = slopes(values) * one
        r = np.linalg.norm(direction, axis=-1)
        cosine = (direction * two).sum(axis=-1) / r
        # Given one, the cosine has a density proportional to exp(r cosine).
        share = np.expm1(-r * (1 - cosine)) - np.expm1(-2 * r)
        share /= -np.expm1(-2 * r)
        p_values.append(stats.kstest(share, stats.uniform.cdf).pvalue)
        p_values += [
            stats.kstest(np.abs(one[:, axis]), absolute_cdf(values, axis)).pvalue
            for axis in range(3)
        ]
    return p_values


def normal_p_values(frames, values):
    """Kolmogorov-Smirnov p-values, d = 3, k = 2: the normal w is vector Bingham, -S."""
    normals = np.abs(np.cross(frames[..., 0], frames[..., 1]))

    def p_value(axis):
        cdf = marginal_cdf(-np.roll(values, -axis))
        return stats.kstest(normals[:, axis], lambda u: 2 * cdf(u) - 1).pvalue

    return [p_value(axis) for axis in range(3)]


def same_law_p_values(frames, others, values):
    """Two-sample p-values of the diagonal of V V^T, of an entry, and of the utility."""

    def statistics(v):
        diagonal = (v**2).sum(axis=-1)
        yield from diagonal.T
        yield np.abs((v[:, 0] * v[:, -1]).sum(axis=-1))
        yield diagonal @ np.asarray(values)

    return [
        stats.ks_2samp(one, two, method="asymp").pvalue
        for one, two in zip(statistics(frames), statistics(others), strict=True)
    ]
