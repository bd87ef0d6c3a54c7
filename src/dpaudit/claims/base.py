"""The interface of a claim, and what all claims share."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.arrays import Array
from dpaudit.errors import InputError

__all__ = ["LARGEST", "SMALLEST", "Array", "Claim", "check_fpr", "lines_tpr"]


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

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **self.parameters), ()

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
        mirrored = 1 - np.exp(-slopes) * (1 - deltas - flat)
    envelope = np.minimum(rising, mirrored).min(axis=0)
    return np.clip(envelope, flat[0], 1.0).reshape(fpr.shape)
