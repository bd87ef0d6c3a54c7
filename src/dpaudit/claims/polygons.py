"""Claims made of one (epsilon, delta) promise: their regions are polygons."""

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.arrays import Array
from dpaudit.claims.base import LARGEST, SMALLEST, Claim, lines_tpr
from dpaudit.validation import check_fraction, check_positive

__all__ = ["ApproxDP", "PureDP", "polygon_delta"]


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


class _OnePromise(Claim):
    """P(S) <= e^epsilon Q(S) + delta."""

    def __init__(self, epsilon: float, **delta: float) -> None:
        super().__init__(
            epsilon=check_positive(
                "epsilon", epsilon, smallest=SMALLEST, largest=LARGEST
            ),
            **{
                name: check_fraction(name, value, allow_zero=True)
                for name, value in delta.items()
            },
        )
        self._knot: float = self.parameters["epsilon"]
        self._knot_delta: float = self.parameters.get("delta", 0.0)

    @property
    def epsilon(self) -> float:
        """The epsilon that is promised; `epsilon_at` has that of another delta."""
        return self._knot

    @property
    def delta(self) -> float:
        """The delta that is promised, 0 of a pure claim."""
        return self._knot_delta

    def delta_at(self, epsilon: ArrayLike) -> Array:
        return polygon_delta(epsilon, self._knot, self._knot_delta)

    def epsilon_at(self, delta: float) -> float:
        delta = check_fraction("delta", delta, allow_zero=True)
        if delta < self._knot_delta:
            return float("inf")
        gap = (delta - self._knot_delta) / (1 - self._knot_delta)
        ratio = gap * (1 + np.exp(-self._knot))
        return 0.0 if ratio >= 1 else max(0.0, float(self._knot + np.log1p(-ratio)))

    def tpr(self, fpr: ArrayLike) -> Array:
        return lines_tpr(fpr, np.array([self._knot]), np.array([self._knot_delta]))


class PureDP(_OnePromise):
    """Pure differential privacy: P(S) <= e^epsilon Q(S) for every event.

    Parameters
    ----------
    epsilon : float
        From 1e-100 to 1e100.

    Examples
    --------
    >>> claim = PureDP(1.0)
    >>> claim, float(claim.delta_at(1.0)), claim.epsilon_at(0.0)
    (PureDP(epsilon=1.0), 0.0, 1.0)
    >>> round(float(claim.tpr(0.1)), 6)
    0.271828
    """

    def __init__(self, epsilon: float) -> None:
        super().__init__(epsilon)


class ApproxDP(_OnePromise):
    """Approximate differential privacy: P(S) <= e^epsilon Q(S) + delta.

    Parameters
    ----------
    epsilon : float
        From 1e-100 to 1e100.
    delta : float
        In [0, 1).

    Examples
    --------
    >>> claim = ApproxDP(1.0, 1e-5)
    >>> claim.epsilon_at(1e-5), claim.epsilon_at(1e-6)
    (1.0, inf)
    """

    def __init__(self, epsilon: float, delta: float) -> None:
        super().__init__(epsilon, delta=delta)
