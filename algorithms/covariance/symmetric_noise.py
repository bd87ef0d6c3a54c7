r"""Wishart noise with d + 1 degrees of freedom: as published, and made private.

SymmetricNoise (SN): the second-moment matrix plus one Wishart matrix.

Source: Imtiaz, Sarwate, *Symmetric matrix perturbation for differentially-private
principal component analysis*, ICASSP 2016, Algorithm 1; the same idea in Jiang, Xie,
Zhang, *Wishart mechanism for differentially private principal components analysis*,
AAAI 2016.

1. Z has d + 1 columns i.i.d. N(0, I/(2 epsilon)); E = Z Z^T ~ W_d(I/(2 epsilon), d+1).
2. Output A + E.

Claim (Theorem 1 there): pure epsilon-DP, because the density of E is proportional to
exp(-epsilon tr E), so that densities differ by exp(epsilon tr(A' - A)).

**The claim is false**: that density lives on the positive definite cone alone, and the
cones at A and A' differ. Write D' for D with a row x more, and c = epsilon ||x||^2.
Then A + E is impossible on D' unless E >= x x^T in the Loewner order. Shifting the
integral over {E >= x x^T} by x x^T gives

.. math:: P(E \succeq x x^T) = e^{-\epsilon \, \mathrm{tr}(x x^T)} = e^{-c}

in every dimension, so a release on D is impossible on D' with probability 1 - e^-c:
0.632 at epsilon = 1 and ||x|| = 1. On the common support the ratio is e^-c exactly.
Hence P = e^-c Q + (1 - e^-c) (something that Q cannot produce), the hockey-stick
divergence of P from Q is 1 - e^-c at **every** epsilon' >= 0, and the reverse one is
(1 - e^(epsilon'-c))_+ <= 1 - e^-c: the exact privacy under ADD_REMOVE is
delta = 1 - e^-epsilon for every epsilon' >= 0, no better and no worse. The same holds
with any A' - A >= 0 in place of x x^T, with c = epsilon tr(A' - A).

Under REPLACE_ONE (y for x), the escape probability is at most that for x = 0, and the
ratio on the common support at most e^epsilon, so delta(epsilon) is again exactly
1 - e^-epsilon, attained when a zero row is replaced by a unit row.

The flaw was noted by Sheffet 2019 (footnote 4) and Amin et al. 2019 (section 1.2).
`SymmetrisedWishart` repairs it at the same scale.

**SymmetrisedWishart**: the second-moment matrix plus a difference of two Wisharts.

This is dpaudit's own repair of SymmetricNoise; we know of no earlier publication.

1. E1, E2 i.i.d. W_d(s I, d + 1).
2. Output A + E1 - E2.

With s = 1/(2 epsilon) under ADD_REMOVE and s = 1/epsilon under REPLACE_ONE the release
is **pure epsilon-DP**.

Proof. The density of W_d(s I, d + 1) is proportional to exp(-tr W/(2s)) on the positive
semi-definite cone, so that of Z = E1 - E2 is proportional to

.. math:: f(Z) \propto e^{-\mathrm{tr} Z/(2s)} I(Z), \quad
          I(Z) = \int_{W \succeq 0, \; W \succeq -Z} e^{-\mathrm{tr} W / s} \, dW

(W = E2, E1 = W + Z). Let x be a row of norm <= 1 and Z' = Z + x x^T. The domain of I
grows with Z, so I(Z) <= I(Z'). And W -> W + x x^T maps the domain of I(Z') into that
of I(Z): if W >= 0 and W >= -Z - x x^T then W + x x^T >= 0 and W + x x^T >= -Z. It
multiplies the integrand by exp(-||x||^2/s), so I(Z) >= exp(-||x||^2/s) I(Z'). Together

.. math:: \left| \log \frac{f(Z + x x^T)}{f(Z)} \right| \le \frac{\|x\|^2}{2s} ,

which is epsilon for s = 1/(2 epsilon); replacing a row is one removal and one addition,
hence 1/s. Nothing escapes: f is positive everywhere.

Nothing less is true of any pair. Let D be the difference of the two matrices, and
D = G - L its positive and negative parts. One eigenvector after the other, the proof
says that

.. math:: \left| \log \frac{f(Z)}{f(Z + D)} \right| \le
          \frac{\mathrm{tr} \, G + \mathrm{tr} \, L}{2s} = \frac{\|D\|_*}{2s} .

**The right-hand side is the supremum**, for every D and in every dimension. Let P and
N be the projections onto the ranges of G and L, and Z = a (P - N) for a > 0. With
W = a N + V in I(Z), and W = a N + L + V in I(Z + D),

.. math:: I(Z) = e^{-a \, \mathrm{tr} N/s} J(aP, aN), \quad I(Z + D) =
          e^{-(a \, \mathrm{tr} N + \mathrm{tr} L)/s} J(aP + G, aN + L), \quad
          J(A, B) = \int_{V \succeq -A, \; V \succeq -B} e^{-\mathrm{tr} V/s} \, dV ,

so that the loss at Z is

.. math:: \frac{\mathrm{tr} \, D}{2s} + \log \frac{I(Z)}{I(Z + D)} =
          \frac{\|D\|_*}{2s} - \log \frac{J(aP + G, aN + L)}{J(aP, aN)} .

J grows with A and B. So with m = ||D|| and J(a) = J(aP, aN) the last ratio is between 1
and J(a + m)/J(a), and it is enough that the lower limit of that is 1. Otherwise J(a)
would grow exponentially along a, a + m, a + 2m ..., but it is at most a polynomial: in
a basis of eigenvectors of D, V + aP >= 0 and V + aN >= 0 say that V_ii >= 0 for all i
(each i is outside the range of P or of N), and that |V_ij| <= sqrt((V_ii + a)(V_jj +
a)) <= (V_ii + V_jj)/2 + a, hence

.. math:: J(a) \le \int_{V_{ii} \ge 0} \prod_{i < j} (V_{ii} + V_{jj} + 2a)
          \, e^{-\sum_i V_{ii}/s} \prod_i dV_{ii} .

(f is positive and, by the first inequality, continuous: what is nearly lost at one Z is
lost with positive probability.) So the delta of the pair is 0 from ||D||_*/(2s) on and
positive at every smaller epsilon, whether the supremum is attained or only approached,
and pure DP at that epsilon is the tightest that there is. It is attained if D is
semi-definite: if Z >= 0 and D = G then I(Z + D) = I(Z), and the loss is tr G/(2s) on a
set of positive probability.

For d = 1, Z is a difference of exponentials: the mechanism is the Laplace mechanism.

Density. I depends on the eigenvalues of Z alone. It is constant on Z >= 0 and
exp(tr Z/s) times that constant on Z <= 0. For d = 2 and Z indefinite, write 2 x 2
symmetric matrices as (t, v) with eigenvalues t +- |v|, in units of s/2: the domain of I
at height t is the lens where discs of radii t and t + tau overlap, their centres rho
apart, with 2 tau the sum and 2 rho the difference of the eigenvalues of Z. The area of
a lens grows at the rate of its two arcs, so integration by parts leaves one integral
over arc lengths, done by Gauss-Legendre quadrature. For d >= 3 we know no closed form.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import Claim, Pair, Profile, PureDP, Relation, UnsupportedError
from dpaudit.algorithms.covariance.second_moment import SecondMomentMechanism, wishart
from dpaudit.algorithms.shared.bases import Rng
from dpaudit.algorithms.shared.constructors import PureCalibrated, hands_on
from dpaudit.arrays import Array
from dpaudit.claims.profile import LARGEST_DELTA, lost
from dpaudit.validation import Positive, check_positive

__all__ = ["SymmetricNoise", "SymmetrisedWishart"]


@dataclass(frozen=True, kw_only=True)
class SymmetricNoise(SecondMomentMechanism):
    """A + E with E ~ W_d(scale I, d + 1): published as pure DP, which is false.

    Parameters
    ----------
    scale : float
        Variance of each entry of Z.

    Examples
    --------
    >>> mechanism = SymmetricNoise.as_published(epsilon=1.0)
    >>> exact = mechanism.exact_claim(mechanism.worst_case(dimension=3))
    >>> round(float(exact.delta_at(1.0)), 4)
    0.6321
    """

    scale: Positive

    sensitivity_norm = "nuclear"

    @hands_on()
    @classmethod
    def as_published(cls, epsilon: float, **fields: Any) -> Self:
        """Return Algorithm 1 to the letter, with the paper's claim."""
        epsilon = check_positive("epsilon", epsilon)
        made = cls(scale=1.0, claim=PureDP(epsilon), **fields)
        return replace(made, scale=made.row_norm**2 / (2 * epsilon))

    def noise(self, size: int, dimension: int, *, rng: Rng) -> Array:
        degrees = dimension + 1
        return wishart(size, dimension, degrees=degrees, scale=self.scale, rng=rng)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair at which 1 - e^-epsilon is attained (default d = 2).

        ADD_REMOVE: as everywhere. REPLACE_ONE: a unit row for a zero row.
        """
        if self.relation is Relation.ADD_REMOVE:
            return super().worst_case(dimension)
        pair = replace(self, relation=Relation.ADD_REMOVE).worst_case(dimension)
        return Pair(pair.data, pair.neighbour[1:], self.relation)

    def in_support(self, releases: Array, data: ArrayLike) -> NDArray[np.bool_]:
        """Say whether release - A is positive semi-definite, shape (size,)."""
        return np.linalg.eigvalsh(releases - self.statistic(data))[:, 0] >= 0

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss: constant on the common support, infinite off it."""
        trace = np.trace(self._difference(other, data)) / (2 * self.scale)
        here, there = (self.in_support(releases, rows) for rows in (data, other))
        off = [~here & ~there, ~there, ~here]
        return np.select(off, [np.nan, np.inf, -np.inf], -trace)

    def exact_claim(self, pair: Pair) -> Claim:
        """Return the exact profile of a pair whose A' - A is semi-definite.

        With eigenvalues of both signs (a row replaced by another) the escape
        probability has no closed form here.
        """
        difference = semi_definite_trace(self._difference(pair.data, pair.neighbour))
        escape = -np.expm1(-difference / (2 * self.scale))
        return Profile((0.0,), (min(float(escape), LARGEST_DELTA),))


def semi_definite_trace(difference: Array) -> float:
    """Return |tr S| of a semi-definite S, the sum of its absolute eigenvalues."""
    values = np.linalg.eigvalsh(difference)
    rounding = 1e-12 * np.abs(values).max()
    if values[0] < -rounding and values[-1] > rounding:
        raise UnsupportedError(
            "exact privacy needs A' - A to be semi-definite, but its eigenvalues "
            f"reach from {values[0]:g} to {values[-1]:g}"
        )
    return float(abs(values.sum()))


@dataclass(frozen=True, kw_only=True)
class SymmetrisedWishart(SecondMomentMechanism, PureCalibrated):
    """A + E1 - E2 with E1, E2 i.i.d. W_d(scale I, d + 1).

    Parameters
    ----------
    scale : float
        The s above.

    Examples
    --------
    >>> SymmetrisedWishart.calibrated(epsilon=1.0).scale
    0.5
    """

    scale: Positive

    sensitivity_norm = "nuclear"

    @classmethod
    def _at(cls, epsilon: float, claim: Claim, /, **fields: Any) -> Self:
        made = cls(scale=1.0, claim=claim, **fields)
        return replace(made, scale=made.sensitivity.value / (2 * epsilon))

    def noise(self, size: int, dimension: int, *, rng: Rng) -> Array:
        degrees = dimension + 1
        noise = wishart(size, dimension, degrees=degrees, scale=self.scale, rng=rng)
        noise -= wishart(size, dimension, degrees=degrees, scale=self.scale, rng=rng)
        return noise

    def log_density(self, noise: Array) -> Array:
        """Return the log-density of Z up to a constant, for d <= 2, shape (size,)."""
        dimension = noise.shape[-1]
        if dimension > 2:
            raise UnsupportedError(
                f"the density has a closed form for d <= 2 only, got d = {dimension}"
            )
        values = np.linalg.eigvalsh(noise) * (2 / self.scale)
        low, high = values[:, 0], values[:, -1]
        if dimension == 1:
            return -np.abs(low) / 4
        log_density = -np.abs(low + high) / 4
        mixed = (low < 0) & (high > 0)
        log_density[mixed] = _log_density_of_mixed_signs(low[mixed], high[mixed])
        return log_density

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss for d <= 2, shape (size,); see `log_density`."""
        near, far = (releases - self.statistic(rows) for rows in (data, other))
        return self.log_density(near) - self.log_density(far)

    def exact_claim(self, pair: Pair) -> Claim:
        """Return the pure epsilon of a pair, the supremum of its loss.

        See the module docstring: it need not be attained, but none smaller holds.
        """
        values = np.linalg.eigvalsh(self._difference(pair.data, pair.neighbour))
        largest = float(np.abs(values).sum()) / (2 * self.scale)
        return lost(PureDP, largest)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(80)
_REACH = 6.5  # exp(-x^2) is below 1e-18 beyond


def _log_density_of_mixed_signs(
    low: NDArray[np.floating], high: NDArray[np.floating]
) -> Array:
    """Return the log-density for low < 0 < high, eigenvalues in units of s/2.

    With t = -low/2 + x^2 the arcs are smooth in x; the constant is that of Z >= 0.
    """
    root = (_NODES + 1) * (_REACH / 2)
    height = root**2
    low, high = low[:, np.newaxis], high[:, np.newaxis]
    spread = (high - low) / 2
    radius, other_radius = height - low / 2, height + high / 2
    # Half the opening angle of an arc, from its sine: accurate for small arcs.
    angle = np.arcsin(np.sqrt(np.minimum(height * high / (2 * spread * radius), 1)))
    other_angle = np.arcsin(
        np.sqrt(np.minimum(-height * low / (2 * spread * other_radius), 1))
    )
    arcs = 4 * (radius * angle + other_radius * other_angle)
    integral = (arcs * 2 * root * np.exp(-height)) @ (_WEIGHTS * (_REACH / 2))
    return np.asarray(-spread[:, 0] / 2 + np.log(integral / (2 * np.pi)))
