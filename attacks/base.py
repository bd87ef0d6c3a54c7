"""What an attack is: a score that separates releases on D from releases on D'.

An attack first fits on releases of the past, which yields its parameters (named
arrays), and then scores releases that it has not seen. It holds no state of its own:
attack name, parameters and a threshold say completely what event was tested, which is
how witnesses store it. An audit is valid whatever an attack does; a better attack only
needs fewer releases.

What a score depends on must not depend on the company that a release is scored in: a
layout that is read off a batch, such as "are these matrices symmetric?", belongs to
`fit` and its parameters.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import DPAuditError, MechanismError
from dpaudit.mechanism import Mechanism, Release
from dpaudit.neighbours import Pair

__all__ = ["Attack", "Parameters", "Target", "consult", "flatten", "score_ordinary"]

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

    sufficient: ClassVar[bool] = False
    """Whether no other score could tell more of the pair, if this one is right."""

    reads: ClassVar[Literal["values", "labels"]] = "values"
    """What it is given: releases, or a label for each, a 1-d array of str.

    The label is empty for an ordinary release; otherwise it says what came instead,
    such as ``raises ValueError`` or ``shape (3,)``.
    """

    appetite: ClassVar[int] = 2**20
    """How many numbers a side `fit` can make use of, at most."""

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


def flatten(releases: Release) -> Array:
    """Return the entries of each release in one row, shape (size, m).

    Dictionaries are joined in the order of their sorted keys. NaN and infinities stay.
    """
    if isinstance(releases, Mapping):
        return np.hstack([flatten(releases[key]) for key in sorted(releases)])
    return releases.reshape(len(releases), math.prod(releases.shape[1:]))


def score_ordinary(releases: Array, score: Callable[[Array], Array]) -> Array:
    """Score releases without NaN and infinities; all others get -inf.

    Parameters
    ----------
    releases : ndarray, shape (size, ...)
    score : callable
        From releases to scores, shape (size,). It is given 0 in place of a release
        that is not finite, and 1e100 for what is larger, so that squares are finite.
    """
    with np.errstate(all="ignore"):
        scores = score(releases)
    if np.isfinite(scores).all():
        return scores  # what is not finite would have spoilt its score
    finite = np.isfinite(releases).all(axis=tuple(range(1, releases.ndim)))
    kept = finite.reshape(-1, *[1] * (releases.ndim - 1))
    scores = score(np.where(kept, np.clip(releases, -1e100, 1e100), 0.0))
    return np.where(finite, scores, -np.inf)
