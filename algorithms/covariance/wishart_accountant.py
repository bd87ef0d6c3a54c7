r"""What one Wishart matrix, added to a second-moment matrix, does for privacy: exactly.

E ~ W_d(s I, k) with k = d + excess, excess >= 1. Its density is proportional to
det(W)^a exp(-tr W/(2s)) on the positive definite cone, a = (excess - 1)/2, which is
log-concave. Everything below is in units of s; D is the difference of the two
second-moment matrices, that of the data minus that of the other dataset.

**One row more or less.** Let D = -c u u^T or c u u^T, u of length 1 and c = ||x||^2/s.
By the matrix determinant lemma the loss of a release with noise W is

.. math:: -a \log(1 - c/G) - c/2 \;\; (\infty \text{ if } G \le c), \qquad
          -a \log(1 + c/G) + c/2, \qquad G = 1/(u^T W^{-1} u),

and G is chi-square with excess + 1 degrees of freedom (Muirhead, section 3.2): it is a
Schur complement of W, rotated. More is true: T = 1/(u^T (Y - A)^{-1} u), A being the
matrix without the row, is G on the one dataset and G + c on the other (Sherman and
Morrison), and the loss is a function of T. So **the pair is that of a scalar that moves
by c, under chi-square noise**. With f the density and F the distribution function of G,
the loss is monotone in T because log f is concave, the best events are half-lines, and
the hockey-stick divergences are F(t) - e^eps F(t - c) at its maximum over t, and the
same of the upper tails. Each grows with c for every t: **shorter rows are dominated**,
and these closed forms are the exact privacy under ADD_REMOVE.

**A row replaced.** D has at most one eigenvalue of each sign, gained >= 0 and -lost,
both at most c in size, and W is rotation invariant: let D = diag(gained, -lost, 0 ...).
Only the inverse N of the top left 2 x 2 block of W^{-1} matters: N ~ W_2(I, excess + 2)
is a Schur complement, to which D is added as it is to W. Write y = N_11, q = N_12^2/y
and u = N_22 - q: independent chi-squares with excess + 2, 1 and excess + 1 degrees of
freedom (Bartlett). Then

.. math:: \frac{\det(N + D)}{\det N} = \left(1 + \frac{g}{y}\right)
          \left(1 - \frac{C}{u}\right), \qquad C = l - \frac{g \, q}{y + g},

g and l being gained and lost; N + D is positive definite where u > max(C, 0), and the
loss is -a log of that ratio plus (g - l)/2. It is monotone in u, and the expectation
over u is again made of chi-square tails; y and q are left to Gauss-Legendre quadrature.
The same holds with the roles of the two axes exchanged.

**All replacements at once.** With f the density of W, the divergence at epsilon is

.. math:: \delta(D) = 1 - \int \min(f(W), \; e^\epsilon f(W + D)) \, dW .

Both terms are log-concave in (W, D) jointly, hence so is their minimum, and by
Prekopa's theorem so is its integral as a function of D. So delta is **quasi-convex** in
D, and largest over a polytope at one of its corners. Those of the square of all
diag(g, -l, 0 ...) are 0, which loses nothing at epsilon >= 0, and (c, 0), (0, c) and
(c, c); each is attained where rows have two dimensions or more. Hence

.. math:: \delta(\epsilon) = \max(\delta_{orthogonal}(\epsilon),
                                  \delta_{add}(\epsilon), \delta_{remove}(\epsilon)),

the first for two orthogonal rows of full length. None of them is always the largest: in
the Gaussian limit it is the first, but for few degrees a full row in the place of a row
of zeros can lose more than in the place of an orthogonal one.

**Monotonicity.** W_d(k + 1) is W_d(k) plus something independent, so every divergence
falls as the excess grows (post-processing). A quasi-convex function that is least at 0,
as delta is, grows along every ray; so every divergence grows with c.

References
----------
Muirhead, *Aspects of multivariate statistical theory*, 1982, chapter 3.
Prekopa, *On logarithmic concave measures and functions*, Acta Sci. Math. 34, 1973.
"""

from functools import cache, partial
from math import ceil, log, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfc, gammainc, gammaincc, gammaln

from dpaudit import Claim, Profile, Relation, UnsupportedError
from dpaudit.arrays import Array
from dpaudit.claims.profile import LARGEST_DELTA, NO_LOSS
from dpaudit.validation import check_count, check_nonnegative, check_positive

__all__ = ["neighbours_delta", "pair_delta", "pair_profile"]

MAX_EXCESS = 10_000_000
"""Beyond, the chi-square tails are no longer trusted."""

LARGEST_EPSILON = 700.0
"""e^epsilon is a float, and a Profile can hold it."""

_ORDERS = (48, 96, 192, 384)
_REACH = 8.0  # chi variables stray further from their centre with probability < 2e-15
_SETTLED = 1e-7  # relative change from one order of the quadrature to the next
_OMITTED = 1e-14  # more than the quadrature leaves out
_ROUNDED = 1e-11  # more than rounding takes off a tail, relative
_MANY = 1e5  # halves of degrees beyond which series take too many terms
# Of Temme's expansion: powers of eta, highest first; then what is over the parameter.
_TEMME = (-139 / 777600, 1 / 2835, 1 / 864, -2 / 135, 1 / 12, -1 / 3)
_TEMME_NEXT = (1 / 378, -1 / 288, -1 / 540)


def pair_delta(epsilon: ArrayLike, *, excess: int, gained: float, lost: float) -> Array:
    """Return the exact divergence of a pair, the larger of both ways round.

    Parameters
    ----------
    epsilon : array_like
        At most 700; negative values are allowed.
    excess : int
        Degrees of freedom beyond d, >= 1.
    gained, lost : float
        The eigenvalues of the difference D over the scale of the noise are gained,
        -lost and zeros; both >= 0. A row more or less has one of them 0.

    Raises
    ------
    UnsupportedError
        If both eigenvalues are positive and the last two orders of the quadrature
        differ by more than one part in 1e7, as they may for few degrees of freedom.

    Examples
    --------
    One degree beyond d is SymmetricNoise: 1 - e^(-c/2) escapes, at every epsilon.

    >>> float(pair_delta(5.0, excess=1, gained=0.0, lost=2.0).round(6))
    0.632121
    """
    excess = _check_excess(excess)
    gained = check_nonnegative("gained", gained)
    lost = check_nonnegative("lost", lost)
    epsilon = np.asarray(epsilon, dtype=np.float64)
    ways = {(gained, lost), (lost, gained)}
    if min(gained, lost) == 0:
        found = [_one_row(epsilon, excess, one - other) for one, other in ways]
        return np.asarray(np.max(found, axis=0))
    coarse = None
    for order in _ORDERS:
        found = [_two_rows(epsilon, excess, *way, order) for way in ways]
        fine = np.asarray(np.max(found, axis=0))
        if coarse is not None and np.allclose(fine, coarse, rtol=_SETTLED, atol=1e-15):
            return fine
        coarse = fine
    raise UnsupportedError(
        f"quadrature does not settle for {excess} degrees of freedom beyond d and "
        f"eigenvalues {gained:g} and {-lost:g}"
    )


def neighbours_delta(
    epsilon: ArrayLike, *, excess: int, shift: float, relation: Relation | str
) -> Array:
    """Return the delta that all neighbours keep at each epsilon >= 0.

    Exact under ADD_REMOVE, and under REPLACE_ONE for rows of two dimensions or more
    (for one it is an upper bound). It errs upwards by what rounding may take off tails,
    1e-11 of them, and for a replaced row by one part in 1e7 and 1e-14, which the
    quadrature may miss. The excess is that of degrees of freedom beyond d,
    the shift c the square of the longest row over the scale of the noise.
    """
    excess = _check_excess(excess)
    shift = check_positive("shift", shift)
    epsilon = np.asarray(epsilon, dtype=np.float64)
    ways = [_one_row(epsilon, excess, m, _ROUNDED) for m in (shift, -shift)]
    one_row = np.minimum(np.maximum(*ways), 1.0)
    if Relation.parse(relation) is Relation.ADD_REMOVE:
        return one_row
    two_rows = pair_delta(epsilon, excess=excess, gained=shift, lost=shift)
    two_rows = np.minimum(two_rows * (1 + _SETTLED) + _OMITTED, 1.0)
    return np.maximum(one_row, two_rows)


def pair_profile(
    *, excess: int, gained: float, lost: float, knots: tuple[float, ...] = ()
) -> Claim:
    """Return the privacy profile of a pair, tabulated.

    Exact at its points, at `knots` among them; between them too large by what a chord
    lies above a convex curve, beyond the last (where it is within a thousandth of its
    limit, or below 1e-15) by that.
    """

    def delta(epsilon: ArrayLike) -> Array:
        return pair_delta(epsilon, excess=excess, gained=gained, lost=lost)

    if max(gained, lost) == 0:
        return NO_LOSS
    limit = float(delta(LARGEST_EPSILON))
    end = 1.0
    while end < LARGEST_EPSILON and delta(end) > max(1e-15, 1.001 * limit):
        end = min(2 * end, LARGEST_EPSILON)
    points = 1001 if min(gained, lost) == 0 else 65  # quadrature takes longer
    at = np.union1d(np.linspace(0.0, end, points), knots)
    deltas = np.minimum.accumulate(delta(at))
    return Profile(at, np.minimum(deltas, LARGEST_DELTA))


_check_excess = partial(check_count, "excess", maximum=MAX_EXCESS)


# Divergences, one way round


def _one_row(epsilon: Array, excess: int, moved: float, more: float = 0.0) -> Array:
    """Return the divergence where the one eigenvalue of D is `moved`, of any sign."""
    return _over_schur_complement(epsilon - moved / 2, np.asarray(-moved), excess, more)


def _lower(half: float, at: Array) -> Array:
    """Return the lower tail of the gamma law of that shape.

    By Temme's expansion if it is large (*The asymptotic expansion of the incomplete
    gamma functions*, SIAM J. Math. Anal. 10, 1979), where SciPy ends a series early.
    """
    if half <= _MANY:
        return np.asarray(gammainc(half, at))
    off = np.clip(at / half - 1, -0.5, 0.5)  # beyond, it is 0 or 1
    eta = np.copysign(np.sqrt(2 * np.maximum(off - np.log1p(off), 0.0)), off)
    rest = np.polyval(_TEMME, eta) + np.polyval(_TEMME_NEXT, eta) / half
    rest *= np.exp(-half * eta**2 / 2) / sqrt(2 * np.pi * half)
    return np.asarray(erfc(-eta * sqrt(half / 2)) / 2 - rest)


def _over_schur_complement(
    gap: Array, pole: Array, excess: int, more: float = 0.0
) -> Array:
    """Return the divergence where the loss is epsilon - gap - a log(1 - pole/u).

    u is chi-square with excess + 1 degrees of freedom; where u <= pole the loss is
    infinite. `gap` is epsilon minus the limit of the loss for u to infinity. The loss
    exceeds epsilon below u = end if the pole is positive, above it if negative, with
    1 - pole/end = e^(-gap/a). Shifting u by the pole turns e^-L into a density.
    `more` is the share of a tail that is added.
    """
    half, a = (excess + 1) / 2, (excess - 1) / 2
    gap, pole = np.broadcast_arrays(gap, pole)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        steps = gap / a if a else np.where(gap > 0, np.inf, -np.inf)
        end = np.maximum(pole / -np.expm1(-steps), 0.0)
        shifted = np.maximum(pole / np.expm1(steps), 0.0)  # end - pole
        weight = np.exp(np.minimum(gap - pole / 2, LARGEST_EPSILON))
        # Everything exceeds epsilon where the loss falls to a limit above it, nothing
        # where it rises to one below.
        delta = np.where(pole > 0, -np.expm1(gap - pole / 2), 0.0)
    for tail, some in (
        (_lower, (pole > 0) & (gap > 0)),
        (gammaincc, (pole <= 0) & (gap < 0)),
    ):
        delta[some] = (1 + more) * tail(half, end[some] / 2)
        delta[some] -= weight[some] * tail(half, shifted[some] / 2)
    return np.asarray(np.maximum(delta, 0.0))


def _two_rows(
    epsilon: Array, excess: int, gained: float, lost: float, order: int
) -> Array:
    """Return the divergence where the eigenvalues of D are gained and -lost.

    The integral over y and q of the module docstring, at a given order.

    The outer axis is that of the smaller eigenvalue, which the integrand depends on
    the less. Both variables are integrated in their roots, which are chi variables; q
    is split where the pole changes its sign, and the integrand its form.
    """
    outer, inner = (gained, -lost) if gained <= lost else (-lost, gained)
    center, singular = sqrt(excess + 2), sqrt(max(-outer, 0.0))
    escape = gammainc(excess / 2 + 1, singular**2 / 2)  # y < -outer
    if singular >= center + _REACH:
        return np.full(epsilon.shape, escape)
    start = max(center - _REACH, singular)
    root, outer_weight = _panel(start, center + _REACH, order)
    y = root**2
    log_density = (excess + 1) * np.log(root) - y / 2 - excess / 2 * log(2)
    outer_weight = outer_weight * np.exp(log_density - gammaln(excess / 2 + 1))

    ratio = sqrt(abs(inner)) / sqrt(abs(outer))  # which does not overflow
    split = np.minimum(np.sqrt(y + outer) * ratio, _REACH)
    near = _panel(0.0, split, ceil(order / 3))
    far = _panel(split, _REACH, ceil(order / 3))
    root, weight = (np.concatenate(two, axis=-1) for two in zip(near, far, strict=True))
    weight = weight * np.exp(-(root**2) / 2) * sqrt(2 / np.pi)
    weight *= outer_weight[:, np.newaxis]

    limit = (outer + inner) / 2 - (excess - 1) / 2 * np.log1p(outer / y)
    pole = -inner - outer * root**2 / (y + outer)[:, np.newaxis]
    kept = weight > 1e-24
    weight, pole = weight[kept], pole[kept]
    limit = np.broadcast_to(limit[:, np.newaxis], kept.shape)[kept]
    gap = epsilon[..., np.newaxis] - limit
    integral = _over_schur_complement(gap, pole, excess) @ weight + escape
    return np.asarray(np.minimum(integral, 1.0))


_legendre = cache(np.polynomial.legendre.leggauss)


def _panel(start: ArrayLike, end: ArrayLike, order: int) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes and weights of intervals, shape (..., order)."""
    nodes, weights = _legendre(order)
    low, high = np.broadcast_arrays(start, end)
    half = np.asarray((high - low) / 2, dtype=np.float64)[..., np.newaxis]
    return low[..., np.newaxis] + half * (1 + nodes), half * weights
