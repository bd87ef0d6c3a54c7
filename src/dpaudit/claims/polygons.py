"""What a claim is, and the usual ones: one (epsilon, delta) promise, a polygon.

Their regions are polygons; those of other claims are in `dpaudit.claims.smooth` and
`dpaudit.claims.profile`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.printable import printable
from dpaudit.validation import check_fraction, check_positive

__all__ = [
    "LARGEST",
    "SMALLEST",
    "ApproxDP",
    "Array",
    "Claim",
    "PureDP",
    "check_fpr",
    "lines_tpr",
    "polygon_delta",
]

_DIGITS = 12  # that are printed

SMALLEST, LARGEST = 1e-100, 1e100
"""Between these a parameter's square, and its ratio to another, is a double."""


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

    def to_dict(self) -> dict[str, Any]:
        """Return the claim as JSON-ready Python: its kind, its numbers, and in words.

        Numbers have twelve digits; what is not finite is a text.

        Examples
        --------
        >>> from dpaudit import ApproxDP
        >>> ApproxDP(0.1 + 0.2, 1e-5).to_dict()
        {'kind': 'ApproxDP', 'epsilon': 0.3, 'delta': 1e-05,
         'text': 'ApproxDP(epsilon=0.3, delta=1e-05)'}
        """
        numbers = {name: _plain(value) for name, value in self.parameters.items()}
        return {"kind": type(self).__name__, **numbers, "text": str(self)}

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **self.parameters), ()

    def __repr__(self) -> str:
        return self._called(self.parameters)

    def __str__(self) -> str:
        rounded = {name: _plain(value) for name, value in self.parameters.items()}
        return self._called(rounded)

    def __format__(self, form: str) -> str:
        """Return the claim for a sentence: on one line, for every ``__str__``."""
        return format(printable(self), form)

    def _called(self, parameters: Mapping[str, Any]) -> str:
        arguments = ", ".join(f"{k}={v!r}" for k, v in parameters.items())
        return f"{type(self).__name__}({arguments})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Claim) or type(self) is not type(other):
            return NotImplemented
        return dict(self.parameters) == dict(other.parameters)

    def __hash__(self) -> int:
        return hash((type(self), *self.parameters.items()))

    @abstractmethod
    def delta_at(self, epsilon: ArrayLike) -> Array:
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
    def epsilon_at(self, delta: float) -> float:
        """Return the smallest epsilon >= 0 with ``delta_at(epsilon) <= delta``.

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


def _plain(value: Any) -> Any:
    """Return a number, or numbers, with `_DIGITS` digits, as JSON has them."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    rounded = float(f"{value:.{_DIGITS}g}")
    return rounded if np.isfinite(rounded) else str(rounded)


def check_fpr(fpr: ArrayLike) -> Array:
    """Return false-positive rates as an array, or raise unless all are in [0, 1]."""
    fpr = np.asarray(fpr, dtype=np.float64)
    if not np.all((fpr >= 0) & (fpr <= 1)):
        raise InputError(f"fpr must be in [0, 1], got {fpr}")
    return fpr


def lines_tpr(fpr: ArrayLike, slopes: Array, deltas: Array) -> Array:
    """Return the lower envelope of the lines e^slope fpr + delta and their mirrors."""
    fpr = check_fpr(fpr)
    slopes, deltas = slopes.reshape(-1, 1), deltas.reshape(-1, 1)
    flat = fpr.reshape(1, -1)
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        rising = np.exp(slopes + np.log(flat)) + deltas
        mirrored = np.exp(-slopes) * (deltas + flat) - np.expm1(-slopes)
    envelope = np.minimum(rising, mirrored).min(axis=0)
    return np.clip(envelope, flat[0], 1.0).reshape(fpr.shape)


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
        below = np.minimum(epsilon, 0.0)
        outer = np.exp(below) * delta - np.expm1(below)
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
