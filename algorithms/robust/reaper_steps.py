r"""How far descent on REAPER goes in each step, and in which geometry.

Source: Maunu, Yu, Lerman, MSML 2022, section 5.1 (step sizes 8/sqrt k) and appendix A,
Algorithms 1 and 2. With the step S = -eta times a subgradient, symmetric:

- `Euclidean`, gradient descent: P' = the Frobenius projection of P + S onto H;
- `Entropic`, mirror descent with the von Neumann entropy: P' = the Bregman projection
  of exp(log P + S) onto H. The state is log P, and it is never exponentiated before the
  projection has capped it at 0: an eigenvalue may be e^-1000 and grow again.
- `Renormalised`, Algorithm 2 as printed: P' = r Y/tr Y, Y = exp(log P + S), without the
  cap, so P' may have eigenvalues > 1 and is then outside H.

The projections are those of `dpaudit.algorithms.robust.fantope`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from dpaudit.algorithms.robust.fantope import (
    bregman_logs,
    clipped_eigenvalues,
    renormalised_logs,
    spectrum,
)
from dpaudit.algorithms.robust.glad import Array
from dpaudit.algorithms.shared.step_sizes import StepSizes
from dpaudit.validation import check_count, check_positive

__all__ = ["Entropic", "Euclidean", "Geometry", "Renormalised", "RootSteps"]

_LEAST_LOG = -700.0


@dataclass(frozen=True)
class RootSteps(StepSizes):
    """eta_k = first/sqrt(k), k = 1, 2, ...

    Parameters
    ----------
    first : float
        > 0; 8 in the paper.

    Examples
    --------
    >>> RootSteps().sizes(4)
    array([8.        , 5.65685425, 4.61880215, 4.        ])
    """

    first: float = 8.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", check_positive("first", self.first))

    def sizes(self, count: int) -> Array:
        steps = np.arange(1.0, check_count("count", count, minimum=0) + 1)
        return np.asarray(self.first / np.sqrt(steps))


class Geometry(ABC):
    """Where steps lead; arrays of shape (trials, D, D), symmetric."""

    @abstractmethod
    def begin(self, matrices: Array) -> Array:
        """Return the state at P_0."""

    @abstractmethod
    def moved(
        self, state: Array, step: Array, n_components: int
    ) -> tuple[Array, Array]:
        """Return the next state, and the next P."""


@dataclass(frozen=True)
class Euclidean(Geometry):
    """Gradient descent, projected onto H in Frobenius norm."""

    def begin(self, matrices: Array) -> Array:
        return matrices

    def moved(
        self, state: Array, step: Array, n_components: int
    ) -> tuple[Array, Array]:
        eigen = spectrum(state + step)
        matrices = eigen.with_values(clipped_eigenvalues(eigen.values, n_components))
        return matrices, matrices


@dataclass(frozen=True)
class Entropic(Geometry):
    """Mirror descent with the von Neumann entropy, projected onto H."""

    def begin(self, matrices: Array) -> Array:
        eigen = spectrum(matrices)
        # A random P_0 may be singular up to rounding.
        floor = np.exp(_LEAST_LOG)
        return eigen.with_values(np.log(np.maximum(eigen.values, floor)))

    def moved(
        self, state: Array, step: Array, n_components: int
    ) -> tuple[Array, Array]:
        eigen = spectrum(state + step)
        logs = self._projected(eigen.values, n_components)
        return eigen.with_values(logs), eigen.with_values(np.exp(logs))

    def _projected(self, values: Array, n_components: int) -> Array:
        return bregman_logs(values, n_components)


@dataclass(frozen=True)
class Renormalised(Entropic):
    """Mirror descent as printed, without the cap at 1."""

    def _projected(self, values: Array, n_components: int) -> Array:
        return renormalised_logs(values, n_components)
