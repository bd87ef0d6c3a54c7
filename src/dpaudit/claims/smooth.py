"""Claims with smooth privacy profiles: Gaussian and zero-concentrated DP."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from dpaudit.arrays import Array
from dpaudit.claims.polygons import SMALLEST, Claim, check_fpr, lines_tpr, polygon_delta
from dpaudit.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu
from dpaudit.validation import check_fraction, check_positive

__all__ = ["GaussianDP", "ZeroConcentratedDP"]

# A profile is a difference whose terms are e^x for x of the order of mu^2 or rho. Where
# x is so large that its last digit counts, a true claim would seem to be broken.
_LARGEST_MU, _LARGEST_RHO = 1e7, 5e7


class GaussianDP(Claim):
    """Gaussian differential privacy: no easier to attack than N(mu, 1) against N(0, 1).

    Parameters
    ----------
    mu : float
        From 1e-100 to 1e7. Beyond 1e4 deltas are right to 1e-9 only.

    Examples
    --------
    >>> claim = GaussianDP(1.0)
    >>> round(claim.epsilon_at(1e-5), 6)
    4.377178
    >>> round(float(claim.tpr(0.05)), 6)
    0.259511
    """

    def __init__(self, mu: float) -> None:
        super().__init__(
            mu=check_positive("mu", mu, smallest=SMALLEST, largest=_LARGEST_MU)
        )
        self._mu: float = self.parameters["mu"]

    @classmethod
    def from_approx(cls, epsilon: float, delta: float) -> "GaussianDP":
        """Return the weakest Gaussian claim that implies (epsilon, delta)-DP."""
        return cls(gaussian_mu(epsilon, delta))

    def delta_at(self, epsilon: ArrayLike) -> Array:
        return gaussian_delta(epsilon, self._mu)

    def epsilon_at(self, delta: float) -> float:
        if delta == 0:
            return float("inf")
        return gaussian_epsilon(delta, self._mu)

    def tpr(self, fpr: ArrayLike) -> Array:
        fpr = check_fpr(fpr)
        # Rounding may take the curve of a small shift below the diagonal.
        return np.maximum(ndtr(ndtri(fpr) + self._mu), fpr)


class ZeroConcentratedDP(Claim):
    r"""Zero-concentrated differential privacy: D_alpha(P || Q) <= rho alpha, alpha > 1.

    The privacy profile is the conversion

    .. math:: \delta(\epsilon) = \inf_{\alpha > 1}
        \frac{e^{(\alpha - 1)(\alpha \rho - \epsilon)}}{\alpha - 1}
        \left(1 - \frac{1}{\alpha}\right)^\alpha ,

    tightened about epsilon = 0 to what its values at other epsilons, and symmetry,
    imply. Every alpha gives an upper bound, so a numerical minimum never refutes
    wrongly.

    Parameters
    ----------
    rho : float
        From 1e-100 to 5e7.

    References
    ----------
    Bun, Steinke, *Concentrated differential privacy*, TCC 2016, Definition 1.1.
    Canonne, Kamath, Steinke, *The discrete Gaussian for differential privacy*,
    NeurIPS 2020, Corollary 13.

    Examples
    --------
    >>> claim = ZeroConcentratedDP(0.5)
    >>> bool(claim.delta_at(2.0) >= GaussianDP(1.0).delta_at(2.0))
    True
    """

    def __init__(self, rho: float) -> None:
        super().__init__(
            rho=check_positive("rho", rho, smallest=SMALLEST, largest=_LARGEST_RHO)
        )
        self._rho: float = self.parameters["rho"]
        self._knot, self._knot_delta = self._axis_vertex()

    def _axis_vertex(self) -> tuple[float, float]:
        """Return the (epsilon, delta) that cuts off the most on the axis of symmetry.

        Its half-plane meets its mirror image at the largest fpr = 1 - tpr.
        """
        low, high = 0.0, self._rho + 8 * np.sqrt(self._rho)
        for _ in range(5):
            knots = np.linspace(low, high, 101)
            deltas = np.exp(np.minimum(self._log_delta(knots), 0.0))
            with np.errstate(divide="ignore"):
                kept = np.log1p(-deltas) - knots - np.log1p(np.expm1(-knots) / 2)
            best = int(np.argmax(kept))
            low, high = knots[max(best - 1, 0)], knots[min(best + 1, 100)]
        return float(knots[best]), float(deltas[best])

    def delta_at(self, epsilon: ArrayLike) -> Array:
        epsilon = np.asarray(epsilon, dtype=np.float64)
        with np.errstate(under="ignore"):
            size = np.abs(epsilon)
            delta = np.exp(np.minimum(self._log_delta(size), 0.0))
            mirrored = np.exp(-size) * delta - np.expm1(-size)
        delta = np.where(epsilon >= 0, delta, mirrored)
        # The conversion is not convex in e^epsilon about 0; the half-plane is tighter.
        return np.minimum(delta, polygon_delta(epsilon, self._knot, self._knot_delta))

    def _log_delta(self, epsilon: Array) -> Array:
        """Minimise over log(alpha - 1) on a coarse grid, then by golden section."""

        def bound(log_order: Array) -> Array:
            excess = np.exp(log_order)
            order = 1 + excess
            return (
                excess * (order * self._rho - epsilon)
                - log_order
                - order * np.log1p(1 / excess)
            )

        # A delta of 1e-300 has its minimum at alpha < 30/sqrt(rho).
        grid = np.arange(-12.0, max(12.0, 4 - np.log(self._rho) / 2), 0.25)
        every = grid.reshape(-1, *(1 for _ in np.shape(epsilon)))
        best = grid[np.argmin(bound(every), axis=0)]
        low, high = best - 0.25, best + 0.25
        shrink = (np.sqrt(5) - 1) / 2
        for _ in range(45):
            left, right = high - shrink * (high - low), low + shrink * (high - low)
            falls = bound(left) > bound(right)
            low, high = np.where(falls, left, low), np.where(falls, high, right)
        return bound((low + high) / 2)

    def epsilon_at(self, delta: float) -> float:
        delta = check_fraction("delta", delta, allow_zero=True)
        if delta == 0:
            return float("inf")
        if self.delta_at(0.0) <= delta:
            return 0.0
        # The textbook conversion rho + 2 sqrt(rho log(1/delta)) is never smaller.
        low, high = 0.0, self._rho + 2 * np.sqrt(self._rho * np.log(1 / delta))
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (
                (low, middle) if self.delta_at(middle) <= delta else (middle, high)
            )
        return float(high)

    def tpr(self, fpr: ArrayLike) -> Array:
        reach = self.epsilon_at(1e-15)
        slopes = np.linspace(0.0, reach, 2001)
        return lines_tpr(fpr, slopes, self.delta_at(slopes))
