r"""Privacy claims as curves.

A claim bounds, for every event S and every pair of neighbours with output laws P and
Q, the true-positive rate P(S) in terms of the false-positive rate Q(S), both ways
round. Each claim answers three equivalent questions:

- ``delta(epsilon)``: the largest hockey-stick divergence sup_S P(S) - e^epsilon Q(S);
- ``epsilon(delta)``: the smallest epsilon at which that divergence is <= delta;
- ``tpr(fpr)``: the largest true-positive rate that any attack may have.

They describe one convex set of points (P(S), Q(S)), symmetric under exchanging P and Q
and under complementing S. Writing R for :math:`e^\epsilon`, the set is the
intersection over all R > 0 of the half-planes p - R q <= delta(log R), where symmetry
extends the profile to negative epsilon:

.. math:: \delta(-\epsilon) = 1 - e^{-\epsilon} (1 - \delta(\epsilon)).

Proof: complement the event and exchange P and Q in the half-plane of epsilon.

References
----------
Dong, Roth, Su, *Gaussian differential privacy*, JRSS B 2022, sections 2.1-2.4.
Balle, Barthe, Gaboardi, *Privacy profiles and amplification by subsampling*, 2020.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from dpaudit.errors import InputError
from dpaudit.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu
from dpaudit.validation import check_fraction, check_nonnegative, check_positive

__all__ = [
    "ApproxDP",
    "Claim",
    "GaussianDP",
    "Profile",
    "PureDP",
    "ZeroConcentratedDP",
    "polygon_delta",
]

Array = NDArray[np.float64]

_MAX_KNOT = 700.0  # so that e^epsilon is a float


class Claim(ABC):
    """What the author of a mechanism promises: a bound on every attack's ROC curve.

    A claim is immutable; it is its class and its `parameters`, which is also how it
    is printed, compared and stored.
    """

    def __init__(self, **parameters: Any) -> None:
        self._parameters = MappingProxyType(parameters)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The constructor's arguments by name (floats, or tuples of floats)."""
        return self._parameters

    def __repr__(self) -> str:
        arguments = ", ".join(f"{k}={v!r}" for k, v in self.parameters.items())
        return f"{type(self).__name__}({arguments})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Claim) or type(self) is not type(other):
            return NotImplemented
        return dict(self.parameters) == dict(other.parameters)

    def __hash__(self) -> int:
        return hash((type(self), *self.parameters.items()))

    @abstractmethod
    def delta(self, epsilon: ArrayLike) -> Array:
        """Return the largest divergence sup_S P(S) - e^epsilon Q(S) that is claimed.

        Parameters
        ----------
        epsilon : array_like
            Finite real numbers, negative ones included.

        Returns
        -------
        ndarray
            Values in [0, 1], of the shape of `epsilon`, non-increasing.
        """

    @abstractmethod
    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon >= 0 with ``delta(epsilon) <= delta``.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        float
            ``inf`` where the claim promises nothing at this delta.
        """

    @abstractmethod
    def tpr(self, fpr: ArrayLike) -> Array:
        """Return the largest true-positive rate at each false-positive rate.

        Parameters
        ----------
        fpr : array_like
            False-positive rates in [0, 1].

        Returns
        -------
        ndarray
            Concave, non-decreasing, >= fpr, of the shape of `fpr`.
        """


def polygon_delta(epsilon: ArrayLike, knot: ArrayLike, delta: ArrayLike) -> Array:
    """Return the privacy profile that one (knot, delta) promise implies.

    The set {p - e^knot q <= delta} and its mirror images is a polygon; its support
    function is linear in e^epsilon between the slopes of neighbouring sides, hence

    - epsilon >= knot: delta;
    - |epsilon| < knot: delta + (1 - delta) (e^knot - e^epsilon) / (e^knot + 1);
    - epsilon <= -knot: 1 - e^epsilon (1 - delta).

    All arguments broadcast.
    """
    epsilon = np.asarray(epsilon, dtype=np.float64)
    knot = np.asarray(knot, dtype=np.float64)
    delta = np.asarray(delta, dtype=np.float64)
    with np.errstate(under="ignore"):
        # Divided through by e^knot, so that nothing overflows for large knots.
        gap = -np.expm1(np.minimum(epsilon - knot, 0.0)) / (1 + np.exp(-knot))
        inner = delta + (1 - delta) * gap
        outer = 1 - np.exp(np.minimum(epsilon, 0.0)) * (1 - delta)
    return np.where(epsilon >= -knot, inner, outer)


def _check_fpr(fpr: ArrayLike) -> Array:
    fpr = np.asarray(fpr, dtype=np.float64)
    if not np.all((fpr >= 0) & (fpr <= 1)):
        raise InputError(f"fpr must be in [0, 1], got {fpr}")
    return fpr


def _lines_tpr(fpr: ArrayLike, slopes: Array, deltas: Array) -> Array:
    """Return the lower envelope of the lines e^slope fpr + delta and their mirrors."""
    fpr = _check_fpr(fpr)
    slopes, deltas = slopes.reshape(-1, 1), deltas.reshape(-1, 1)
    flat = fpr.reshape(1, -1)
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        rising = np.exp(slopes + np.log(flat)) + deltas
        mirrored = 1 - np.exp(-slopes) * (1 - deltas - flat)
    envelope = np.minimum(rising, mirrored).min(axis=0)
    return np.clip(envelope, flat[0], 1.0).reshape(fpr.shape)


def _polygon_epsilon(delta: float, knot: float, knot_delta: float) -> float:
    """Invert `polygon_delta` in its first argument, on [0, inf]."""
    delta = check_fraction("delta", delta, allow_zero=True)
    if delta < knot_delta:
        return float("inf")
    gap = (delta - knot_delta) / (1 - knot_delta)
    ratio = gap * (1 + np.exp(-knot))
    return 0.0 if ratio >= 1 else max(0.0, float(knot + np.log1p(-ratio)))


class PureDP(Claim):
    """Pure differential privacy: P(S) <= e^epsilon Q(S) for every event.

    Parameters
    ----------
    epsilon : float
        Finite and > 0.

    Examples
    --------
    >>> claim = PureDP(1.0)
    >>> claim, float(claim.delta(1.0)), claim.epsilon(0.0)
    (PureDP(epsilon=1.0), 0.0, 1.0)
    >>> round(float(claim.tpr(0.1)), 6)
    0.271828
    """

    def __init__(self, epsilon: float) -> None:
        super().__init__(epsilon=check_positive("epsilon", epsilon))
        self._knot: float = self.parameters["epsilon"]

    def delta(self, epsilon: ArrayLike) -> Array:
        return polygon_delta(epsilon, self._knot, 0.0)

    def epsilon(self, delta: float) -> float:
        return _polygon_epsilon(delta, self._knot, 0.0)

    def tpr(self, fpr: ArrayLike) -> Array:
        return _lines_tpr(fpr, np.array([self._knot]), np.array([0.0]))


class ApproxDP(Claim):
    """Approximate differential privacy: P(S) <= e^epsilon Q(S) + delta.

    Parameters
    ----------
    epsilon : float
        Finite and > 0.
    delta : float
        In [0, 1).

    Examples
    --------
    >>> claim = ApproxDP(1.0, 1e-5)
    >>> claim.epsilon(1e-5), claim.epsilon(1e-6)
    (1.0, inf)
    """

    def __init__(self, epsilon: float, delta: float) -> None:
        super().__init__(
            epsilon=check_positive("epsilon", epsilon),
            delta=check_fraction("delta", delta, allow_zero=True),
        )
        self._knot: float = self.parameters["epsilon"]
        self._knot_delta: float = self.parameters["delta"]

    def delta(self, epsilon: ArrayLike) -> Array:
        return polygon_delta(epsilon, self._knot, self._knot_delta)

    def epsilon(self, delta: float) -> float:
        return _polygon_epsilon(delta, self._knot, self._knot_delta)

    def tpr(self, fpr: ArrayLike) -> Array:
        return _lines_tpr(fpr, np.array([self._knot]), np.array([self._knot_delta]))


class GaussianDP(Claim):
    """Gaussian differential privacy: no easier to attack than N(mu, 1) against N(0, 1).

    Parameters
    ----------
    mu : float
        Finite and > 0.

    Examples
    --------
    >>> claim = GaussianDP(1.0)
    >>> round(claim.epsilon(1e-5), 6)
    4.377178
    >>> round(float(claim.tpr(0.05)), 6)
    0.259511
    """

    def __init__(self, mu: float) -> None:
        super().__init__(mu=check_positive("mu", mu))
        self._mu: float = self.parameters["mu"]

    @classmethod
    def from_approx(cls, epsilon: float, delta: float) -> "GaussianDP":
        """Return the weakest Gaussian claim that implies (epsilon, delta)-DP."""
        return cls(gaussian_mu(epsilon, delta))

    def delta(self, epsilon: ArrayLike) -> Array:
        return gaussian_delta(epsilon, self._mu)

    def epsilon(self, delta: float) -> float:
        if delta == 0:
            return float("inf")
        return gaussian_epsilon(delta, self._mu)

    def tpr(self, fpr: ArrayLike) -> Array:
        return np.asarray(ndtr(ndtri(_check_fpr(fpr)) + self._mu), dtype=np.float64)


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
        Finite and > 0.

    References
    ----------
    Bun, Steinke, *Concentrated differential privacy*, TCC 2016, Definition 1.1.
    Canonne, Kamath, Steinke, *The discrete Gaussian for differential privacy*,
    NeurIPS 2020, Corollary 13.

    Examples
    --------
    >>> claim = ZeroConcentratedDP(0.5)
    >>> bool(claim.delta(2.0) >= GaussianDP(1.0).delta(2.0))
    True
    """

    def __init__(self, rho: float) -> None:
        super().__init__(rho=check_positive("rho", rho))
        self._rho: float = self.parameters["rho"]
        self._knot, self._knot_delta = self._axis_vertex()

    def _axis_vertex(self) -> tuple[float, float]:
        """Return the (epsilon, delta) that cuts off the most on the axis of symmetry.

        Its half-plane meets its mirror image at the largest fpr = 1 - tpr.
        """
        low, high = 0.0, self._rho + 8 * np.sqrt(self._rho)
        for _ in range(5):
            knots = np.linspace(low, high, 101)
            kept = -np.expm1(np.minimum(self._log_delta(knots), 0.0))
            with np.errstate(divide="ignore"):
                best = int(np.argmax(np.log(kept) - np.logaddexp(0.0, knots)))
            low, high = knots[max(best - 1, 0)], knots[min(best + 1, 100)]
        return float(knots[best]), float(1 - kept[best])

    def delta(self, epsilon: ArrayLike) -> Array:
        epsilon = np.asarray(epsilon, dtype=np.float64)
        with np.errstate(under="ignore"):
            delta = np.exp(np.minimum(self._log_delta(np.abs(epsilon)), 0.0))
            mirrored = 1 - np.exp(-np.abs(epsilon)) * (1 - delta)
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
                + order * (log_order - np.log1p(excess))
            )

        grid = np.linspace(-12.0, 12.0, 97)
        best = grid[np.argmin([bound(np.full_like(epsilon, g)) for g in grid], axis=0)]
        low, high = best - 0.25, best + 0.25
        shrink = (np.sqrt(5) - 1) / 2
        for _ in range(45):
            left, right = high - shrink * (high - low), low + shrink * (high - low)
            falls = bound(left) > bound(right)
            low, high = np.where(falls, left, low), np.where(falls, high, right)
        return bound((low + high) / 2)

    def epsilon(self, delta: float) -> float:
        delta = check_fraction("delta", delta, allow_zero=True)
        if delta == 0:
            return float("inf")
        if self.delta(0.0) <= delta:
            return 0.0
        # The textbook conversion rho + 2 sqrt(rho log(1/delta)) is never smaller.
        low, high = 0.0, self._rho + 2 * np.sqrt(self._rho * np.log(1 / delta))
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return float(high)

    def tpr(self, fpr: ArrayLike) -> Array:
        reach = self.epsilon(1e-15)
        slopes = np.linspace(0.0, reach, 2001)
        return _lines_tpr(fpr, slopes, self.delta(slopes))


class Profile(Claim):
    """A privacy profile known at finitely many points: delta(epsilons[i]) <= deltas[i].

    Between the points the claim is what they imply together: the support function of
    the polygon {p - e^epsilons[i] q <= deltas[i]} and its mirror images, which is the
    lower convex hull of the points over e^epsilon. Points above the hull are implied
    by the others and change nothing.

    Parameters
    ----------
    epsilons : sequence of float
        Strictly increasing, in [0, 700].
    deltas : sequence of float
        In [0, 1), non-increasing, one per epsilon.

    Examples
    --------
    >>> claim = Profile(epsilons=(1.0,), deltas=(1e-5,))
    >>> bool(np.isclose(claim.delta(0.5), ApproxDP(1.0, 1e-5).delta(0.5)))
    True
    """

    def __init__(self, epsilons: ArrayLike, deltas: ArrayLike) -> None:
        knots = tuple(check_nonnegative("epsilons", e) for e in np.ravel(epsilons))
        values = tuple(
            check_fraction("deltas", d, allow_zero=True) for d in np.ravel(deltas)
        )
        if not knots or len(knots) != len(values):
            raise InputError(
                "epsilons and deltas must be non-empty and of equal length, "
                f"got lengths {len(knots)} and {len(values)}"
            )
        for low, high in pairwise(knots):
            if low >= high:
                raise InputError(
                    f"epsilons must be strictly increasing, got {high} after {low}"
                )
        for high, low in pairwise(values):
            if low > high:
                raise InputError(
                    f"deltas must be non-increasing, got {low} after {high}"
                )
        if knots[-1] > _MAX_KNOT:
            raise InputError(f"epsilons must be at most {_MAX_KNOT:g}, got {knots[-1]}")
        super().__init__(epsilons=knots, deltas=values)
        slopes = np.concatenate([-np.array(knots[::-1]), np.array(knots)])
        mirrored = 1 - np.exp(-np.array(knots[::-1])) * (1 - np.array(values[::-1]))
        self._slopes, self._deltas = _lower_hull(
            slopes, np.concatenate([mirrored, np.array(values)])
        )

    @classmethod
    def from_pld(
        cls, pld: Any, *, max_epsilon: float = 30.0, points: int = 1001
    ) -> "Profile":
        """Tabulate a privacy loss distribution of ``dp_accounting.pld``.

        Parameters
        ----------
        pld : dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
            A pessimistic one, so that its deltas are upper bounds.
        max_epsilon : float
            The largest epsilon tabulated; beyond it the claim is that of the last
            point.
        points : int
            The number of points, from 0 to `max_epsilon`.
        """
        epsilons = np.linspace(0.0, check_positive("max_epsilon", max_epsilon), points)
        deltas = np.asarray(pld.get_delta_for_epsilon(epsilons), dtype=np.float64)
        return cls(epsilons, np.minimum.accumulate(np.maximum(deltas, 0.0)))

    def delta(self, epsilon: ArrayLike) -> Array:
        epsilon = np.asarray(epsilon, dtype=np.float64)
        ratios = np.exp(self._slopes)
        with np.errstate(over="ignore", under="ignore"):
            inner = np.interp(np.exp(epsilon), ratios, self._deltas)
            outer = 1 - np.exp(np.minimum(epsilon, 0.0)) * (1 - self._deltas[-1])
        return np.where(epsilon >= self._slopes[0], inner, outer)

    def epsilon(self, delta: float) -> float:
        delta = check_fraction("delta", delta, allow_zero=True)
        if delta < self._deltas[-1]:
            return float("inf")
        ratio = np.interp(delta, self._deltas[::-1], np.exp(self._slopes)[::-1])
        return max(0.0, float(np.log(ratio)))

    def tpr(self, fpr: ArrayLike) -> Array:
        # The points as given: mirroring the mirror images would lose all digits.
        return _lines_tpr(
            fpr,
            np.array(self.parameters["epsilons"]),
            np.array(self.parameters["deltas"]),
        )


def _lower_hull(slopes: Array, deltas: Array) -> tuple[Array, Array]:
    """Keep the vertices of the lower convex hull of the points (e^slope, delta)."""
    kept: list[tuple[float, float, float]] = []
    for slope, delta in zip(slopes.tolist(), deltas.tolist(), strict=True):
        ratio = float(np.exp(slope))
        if kept and ratio == kept[-1][0]:
            continue  # epsilon = 0 is its own mirror image
        while len(kept) >= 2:
            (r0, d0, _), (r1, d1, _) = kept[-2:]
            if (d1 - d0) * (ratio - r0) < (delta - d0) * (r1 - r0):
                break
            kept.pop()
        kept.append((ratio, delta, slope))
    # A final level stretch carries no more than its first point.
    while len(kept) >= 2 and kept[-1][1] >= kept[-2][1]:
        kept.pop()
    hull = np.array(kept)
    return hull[:, 2], hull[:, 1]
