r"""Step sizes eta_1, eta_2, ... of Oja's algorithm and of descents, all public.

Source of `HarmonicSteps`: Liu, Kong, Jain, Oh, *DP-PCA: statistically optimal and
differentially private PCA*, NeurIPS 2022, Theorem 2.2 (Jain, Jin, Kakade, Netrapalli,
Sidford, *Streaming PCA*, COLT 2016, Theorem 4.1): with the first two eigenvalues
lambda_1 > lambda_2 of E[A_i], kappa = lambda_1/(lambda_1 - lambda_2), ||A_i - E[A_i]||
<= lambda_1 M and max(||E[(A - EA)(A - EA)^T]||, ||E[(A - EA)^T(A - EA)]||) <=
lambda_1^2 V,

.. math:: \eta_t = \frac{\alpha}{(\lambda_1 - \lambda_2)(\xi + t)}, \quad \alpha > 1/2,
    \quad \xi = 20 \max\Big(\kappa M \alpha,
    \frac{\kappa^2 (V + 1) \alpha^2}{\log(1 + \zeta/100)}\Big).

Those are c1/(c2 + t) with c1 = alpha/(lambda_1 - lambda_2) and c2 = xi. For minibatches
M and V are those of a batch's mean, its noise included, so V is smaller by about the
size of a batch. The theorem's xi has the constants of a proof: it is larger than what
serves best by orders of magnitude.

`HalvingSteps` and `RootSteps` are those of Maunu, Yu, Lerman, *Stochastic and private
nonconvex outlier-robust PCA*, MSML 2022, section 5 (robust PCA).

What the data say about lambda_1 - lambda_2, M and V is private; constants that are
tuned on the data themselves cost privacy
(`dpaudit.algorithms.streaming.step_size_search` pays for them).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import numpy as np

from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.validation import (
    Checked,
    Count,
    Nonnegative,
    Positive,
    check_count,
    check_positive,
)

__all__ = [
    "ConstantSteps",
    "HalvingSteps",
    "HarmonicSteps",
    "ListedSteps",
    "RootSteps",
    "StepSizes",
    "as_step_sizes",
]


class StepSizes(Checked, ABC):
    """How far each step goes."""

    @abstractmethod
    def sizes(self, count: int) -> Array:
        """Return eta_1, ..., eta_count, each > 0, shape (count,)."""


@dataclass(frozen=True)
class HarmonicSteps(StepSizes):
    """eta_t = c1/(c2 + t), as in Theorem 2.2.

    Parameters
    ----------
    numerator : float
        c1 > 0, in the inverse unit of A_i.
    offset : float
        c2 >= 0; more of it makes the first steps smaller.
    """

    numerator: Positive
    offset: Nonnegative = 0.0

    def sizes(self, count: int) -> Array:
        steps = np.arange(1.0, check_count("count", count, minimum=0) + 1)
        return np.asarray(self.numerator / (self.offset + steps))


@dataclass(frozen=True)
class ConstantSteps(StepSizes):
    """The same eta > 0 in every step, in the inverse unit of A_i.

    As it grows without bound, a step on a batch becomes one of the power method.
    """

    size: Positive

    def sizes(self, count: int) -> Array:
        return np.full(check_count("count", count, minimum=0), self.size)


@dataclass(frozen=True)
class HalvingSteps(StepSizes):
    """eta_k = first 2^-floor(k/period), k = 0, 1, ...: Theorem 5's restarts."""

    first: Positive = 1.0
    period: Count = 50

    def sizes(self, count: int) -> Array:
        restarts = np.arange(check_count("count", count, minimum=0)) // self.period
        # 2^-1000 moves nothing, and is not 0.
        return np.asarray(self.first * 0.5 ** np.minimum(restarts, 1000))


@dataclass(frozen=True)
class RootSteps(StepSizes):
    """eta_k = first/sqrt(k), k = 1, 2, ...; 8/sqrt(k) in the paper."""

    first: Positive = 8.0

    def sizes(self, count: int) -> Array:
        steps = np.arange(1.0, check_count("count", count, minimum=0) + 1)
        return np.asarray(self.first / np.sqrt(steps))


@dataclass(frozen=True)
class ListedSteps(StepSizes):
    """Step sizes > 0 one by one, for as many steps as the algorithm takes, or more."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        checked = tuple(
            check_positive(f"step_sizes[{place}]", value)
            for place, value in enumerate(self.values)
        )
        object.__setattr__(self, "values", checked)

    def sizes(self, count: int) -> Array:
        count = check_count("count", count, minimum=0)
        if len(self.values) < count:
            raise InputError(
                f"step_sizes must be at least {count}, one for every step, got "
                f"{len(self.values)}"
            )
        return np.array(self.values[:count])


def as_step_sizes(value: StepSizes | float | Sequence[float]) -> StepSizes:
    """Return step sizes for a number (that of every step), a list, or themselves.

    Raises
    ------
    InputError
        Unless all are finite numbers > 0.

    Examples
    --------
    >>> as_step_sizes([1.0, 0.0])
    Traceback (most recent call last):
        ...
    dpaudit.errors.InputError: step_sizes[1] must be a finite number > 0, got 0.0
    """
    if isinstance(value, StepSizes):
        return value
    if isinstance(value, str | bytes):
        raise InputError(f"step_sizes must be > 0, or a list of them, got {value!r}")
    if isinstance(value, Sequence | np.ndarray) and np.ndim(value) == 1:
        return ListedSteps(tuple(np.asarray(value, dtype=object).tolist()))
    return ConstantSteps(check_positive("step_sizes", value))


Stepped: TypeAlias = Annotated[StepSizes, lambda name, value: as_step_sizes(value)]
"""A field of step sizes that may be given as a number, or a list."""


class TakesSteps(Checked):
    """A mechanism with the field `step_sizes`; without one it takes its usual ones."""

    step_sizes: StepSizes

    @property
    @abstractmethod
    def usual_steps(self) -> StepSizes:
        """What is taken where no step sizes are given."""

    def __post_init__(self) -> None:
        if getattr(self, "step_sizes", None) is None:
            object.__setattr__(self, "step_sizes", self.usual_steps)
        super().__post_init__()
