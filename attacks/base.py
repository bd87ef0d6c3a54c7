"""What an attack is: a score that separates releases on D from releases on D'.

An attack first fits on releases of the past, which yields its parameters (named
arrays), and then scores releases that it has not seen. It holds no state of its own:
attack name, parameters and a threshold say completely what event was tested, which is
how witnesses store it. An audit is valid whatever an attack does; a better attack only
needs fewer releases.

**A score depends on its release alone**, and on parameters that were fixed before:
``score(batch)[i] == score(batch[i:i+1])[0]``, whatever else is in the batch, up to the
last bits, in which linear algebra depends on the size of its arguments and which the
audit rounds away. The event "score >= t" is then one set of outputs, as the proof of an
audit takes for granted. What is read off a batch, such as "are these matrices
symmetric?", belongs to `fit` and its parameters.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.errors import DPAuditError, MechanismError
from dpaudit.mechanism import Mechanism, Release
from dpaudit.neighbours import Pair
from dpaudit.outputs import raised_by_signal, telling_interrupts
from dpaudit.printable import printable, said

__all__ = ["Attack", "Parameters", "Target", "consult", "score_ordinary"]

Parameters: TypeAlias = Mapping[str, NDArray[Any]]
_LARGEST = 1e100


@dataclass(frozen=True)
class Target:
    """What is attacked: a mechanism (or a callable) on a pair of neighbours."""

    mechanism: Mechanism | Callable[..., Any]
    pair: Pair


class Attack(ABC):
    """A family of scores; high scores speak for D, low ones for D', or the reverse."""

    name: ClassVar[str]
    """How reports and witnesses call it."""

    score_is: ClassVar[str] = ""
    """What a score is, in words; by default "the score of attack NAME"."""

    learns: ClassVar[bool]
    """Whether `fit` looks at the releases (and so must not be judged on them)."""

    sufficient: ClassVar[bool] = False
    """Whether no other score could tell more of the pair, if this one is right."""

    patient: ClassVar[bool] = False
    """Whether what it looks for may turn up late, so that it is never given up."""

    dear: ClassVar[bool] = False
    """Whether a fit takes much longer than to draw what it learns from."""

    exclusive: ClassVar[bool] = False
    """Whether what never occurred on one of the datasets is likely impossible there."""

    reads: ClassVar[Literal["numbers", "bits", "outputs"]] = "numbers"
    """What it is given: releases, the numbers of outputs of one layout, or outputs.

    Outputs are a `~dpaudit.batches.Batch`, in which each has a layout of its own. Who
    reads bits wants the numbers to the last bit: an audit with such an attack is of the
    doubles that are returned, not of the mechanism over the real numbers.
    """

    states: ClassVar[type | None] = None
    """What a mechanism has to state for it: a protocol of `dpaudit.mechanism`."""

    axes: ClassVar[int | None] = 0
    """How many axes releases have at least, where no mechanism states it.

    1 for vectors and dictionaries, 2 for matrices; of outputs, how many layouts there
    are beside the first. None if only what is stated will do.
    """

    appetite: ClassVar[int] = 2**20
    """How many numbers a side `fit` can make use of, at most."""

    def applies(self, target: Target, releases: Release) -> bool:
        """Say whether the attack can score releases such as these.

        By default if they, or the mechanism, have what is declared, and it `suits`.
        """
        if not isinstance(target.mechanism, self.states or ()):
            if isinstance(releases, np.ndarray):
                axes = releases.ndim - 1
            elif isinstance(releases, Mapping):
                axes = 1
            else:  # a `dpaudit.batches.Batch`
                axes = len(releases.parts) - 1
            if self.axes is None or axes < self.axes:
                return False
        return self.suits(target, releases)

    def suits(self, target: Target, releases: Release) -> bool:
        """Say whether it applies where what the class declares is given."""
        return True

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        """Return parameters fitted to past releases on D and on D'."""
        return {}

    def honest_scores(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> tuple[Array, Array] | None:
        """Score releases, each by a fit to most others; None if that would be dear.

        The audit then judges an attack that learns by a fit to the other half.
        """
        return None

    @abstractmethod
    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        """Return one number per release, infinities allowed; shape (size,)."""

    def event(self, threshold: float, *, reached: bool = True) -> str:
        """Return in words that a score reaches a threshold, or that it does not."""
        subject = self.score_is or f"the score of attack {printable(self.name)}"
        if threshold == math.inf:
            return f"{subject} is {'' if reached else 'not '}infinite"
        return f"{subject} {'>=' if reached else '<'} {threshold:.4g}"


def consult(capability: Callable[..., Any], *arguments: Any) -> Any:
    """Call a capability of the mechanism under attack; its failures are its own.

    Raises
    ------
    MechanismError
        If it raises anything that dpaudit does not raise on purpose.
    """
    with telling_interrupts():
        try:
            return capability(*arguments)
        except BaseException as error:
            if isinstance(error, DPAuditError) or raised_by_signal(error):
                raise
            name = getattr(capability, "__name__", "capability")
            raise MechanismError(
                f"the mechanism's {name} raised {said(error)}"
            ) from error


def score_ordinary(releases: Array, score: Callable[[Array], Array]) -> Array:
    """Score releases without NaN and infinities; all others get -inf.

    Parameters
    ----------
    releases : ndarray, shape (size, ...)
    score : callable
        From releases to scores, shape (size,), each of its own release alone. It is
        given 0 in place of a release that is not finite, and 1e100 for what is larger,
        so that squares are finite.
    """
    with np.errstate(all="ignore"):
        if max(releases.max(initial=0.0), -releases.min(initial=0.0)) <= _LARGEST:
            return score(releases)
        finite = np.isfinite(releases).all(axis=tuple(range(1, releases.ndim)))
        kept = finite.reshape(-1, *[1] * (releases.ndim - 1))
        clipped = np.clip(releases, -_LARGEST, _LARGEST)
        scores = score(np.where(kept, clipped, 0.0))
    return np.where(finite, scores, -np.inf)
