"""What an attack is: a score that separates releases on D from releases on D'.

An attack first fits on releases of the past, which yields its parameters (named
arrays), and then scores releases that it has not seen. It holds no state of its own:
attack name, parameters and a threshold say completely what event was tested, which is
how witnesses store it. An audit is valid whatever an attack does; a better attack only
needs fewer releases.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import DPAuditError, MechanismError
from dpaudit.mechanism import Mechanism, Release
from dpaudit.neighbours import Pair

__all__ = ["Attack", "Parameters", "Target", "as_features", "consult"]

Array: TypeAlias = NDArray[np.float64]
Parameters: TypeAlias = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Target:
    """What is attacked: a mechanism (or a callable) on a pair of neighbours."""

    mechanism: Mechanism | Callable[..., Any]
    pair: Pair


class Attack(ABC):
    """A family of scores; high scores speak for D, low ones for D', or the reverse."""

    name: ClassVar[str]
    """How reports and witnesses call it."""

    learns: ClassVar[bool]
    """Whether `fit` looks at the releases (and so must not be judged on them)."""

    @abstractmethod
    def applies(self, target: Target, releases: Release) -> bool:
        """Say whether the attack can score releases such as these."""

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        """Return parameters fitted to past releases on D and on D'."""
        return {}

    @abstractmethod
    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        """Return one number per release, infinities allowed; shape (size,)."""


def consult(capability: Callable[..., Any], *arguments: Any) -> Any:
    """Call a capability of the mechanism under attack; its failures are its own.

    Raises
    ------
    MechanismError
        If it raises anything that dpaudit does not raise on purpose.
    """
    try:
        return capability(*arguments)
    except DPAuditError:
        raise
    except Exception as error:
        name = getattr(capability, "__name__", "capability")
        raise MechanismError(
            f"the mechanism's {name} raised {type(error).__name__}: {error}"
        ) from error


def as_features(releases: Release) -> Array:
    """Flatten releases to finite features, shape (size, m).

    Symmetric matrices give their upper triangle; dictionaries are joined in the order
    of their sorted keys; NaN and infinities become 0.
    """
    if isinstance(releases, Mapping):
        return np.hstack([as_features(releases[key]) for key in sorted(releases)])
    size, *shape = releases.shape
    if len(shape) == 2 and shape[0] == shape[1]:
        if np.array_equal(releases, releases.swapaxes(-2, -1), equal_nan=True):
            rows, columns = np.triu_indices(shape[0])
            releases = releases[:, rows, columns]
    flat = releases.reshape(size, -1)
    return np.where(np.isfinite(flat), flat, 0.0)
