"""What an audit can be told, beside what it is an audit of, and its defaults."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Annotated, Any

from dpaudit.attacks import Attack
from dpaudit.audit.layers.layer import Layer
from dpaudit.claims import ApproxDP, Claim, PureDP
from dpaudit.codec import encode
from dpaudit.errors import InputError
from dpaudit.neighbours import Pair
from dpaudit.printable import printable
from dpaudit.streams import FunctionMechanism
from dpaudit.validation import (
    Checked,
    Nonnegative,
    Positive,
    check_confidence,
    check_count,
    check_importable,
)

if TYPE_CHECKING:
    from dpaudit.audit.keeping.store import Store

__all__ = [
    "Budget",
    "Progress",
    "Run",
    "Settings",
    "name_of",
    "reference_point",
    "refuse",
    "refuse_with_objects",
    "stated",
    "stored_mechanism",
]

_REFERENCE_DELTAS = (1e-5, 1e-3, 0.1, 0.5, 0.9)
_SAMPLED = (Layer.BLACK_BOX, Layer.TRANSCRIPT)


def _check_layer(name: str, value: Any) -> Layer:
    if value not in _SAMPLED:
        raise InputError(
            f"{name} must be one of {[x.value for x in _SAMPLED]}, got {value!r}"
        )
    return Layer(value)


@dataclass(frozen=True)
class Budget(Checked):
    """How much an audit may do.

    Where a budget is asked for, a number stands for one with so many releases.

    Parameters
    ----------
    releases : int
        Most releases to draw on either side, >= 2; on average of the two sides, where
        one of them needs more.
    seconds : float, optional
        > 0: about how long to go on at most. The audit ends before a round that would
        likely take longer, as if it had been told to stop; the pilot, of ten releases a
        side, and one more round are always played.
    refine : float
        >= 0: an audit that would stop at its refutation goes on for so many times as
        many releases, within `releases`, for better bounds.
    stop : bool
        Whether to stop as soon as the claim is refuted, or to go on to the last of the
        `releases` for tighter lower bounds.

    Raises
    ------
    InputError
        If one of them is not allowed.
    """

    releases: Annotated[int, partial(check_count, minimum=2)] = 200_000
    seconds: Positive | None = None
    refine: Nonnegative = 0.0
    stop: Annotated[bool, lambda _, value: bool(value)] = True

    @classmethod
    def of(cls, budget: "Budget | int") -> "Budget":
        """Return a budget, or that of so many releases.

        Raises
        ------
        InputError
            If it is neither.
        """
        if isinstance(budget, cls):
            return budget
        if isinstance(budget, Integral) and not isinstance(budget, bool):
            return cls(int(budget))
        raise InputError(
            f"budget must be a Budget or a number of releases, got {budget!r}"
        )


@dataclass(frozen=True)
class Progress:
    """An audit between two rounds.

    Parameters
    ----------
    samples, max_samples : int
        Releases a side so far, and at most.
    pairs : int
        How many pairs of neighbours were tried.
    epsilon_lower, at_delta : float
        The lower bound so far, and at which delta.
    attack : str or None
        Whose event is bet on most hopefully.
    seconds : float
        Work so far, that of an interrupted process included.
    seconds_left : float
        At the pace of the last half of the releases, if the audit goes on to
        `max_samples`.
    resumed_at : int
        Releases a side that an interrupted process had drawn; 0 if there was none.

    Examples
    --------
    >>> print(Progress(1_000, 90_000, 1, 0.25, 1e-5, "identity", 0.8, 71.2, 0))
    1,000 of 90,000 releases a side, 1,250 a second, epsilon >= 0.25 at delta 1e-05 \
by identity, 1 min 11 s left
    """

    samples: int
    max_samples: int
    pairs: int
    epsilon_lower: float
    at_delta: float
    attack: str | None
    seconds: float
    seconds_left: float
    resumed_at: int

    def __str__(self) -> str:
        by = "" if self.attack is None else f" by {printable(self.attack)}"
        left = self.max_samples - self.samples
        pace = ""
        if self.seconds_left > 0:
            each = left / self.seconds_left
            pace = f"{each:,.0f} a second, " if each >= 1 else f"{each:.2g} a second, "
        return (
            f"{self.samples:,} of {self.max_samples:,} releases a side, {pace}"
            f"epsilon >= {self.epsilon_lower:.3g} at delta {self.at_delta:.3g}{by}, "
            f"{_duration(self.seconds_left)} left"
        )


@dataclass(frozen=True, kw_only=True)
class Run:
    """How an audit is carried out: who attacks and draws, who keeps and watches.

    All but the attacks leave its verdict and its bounds as they are.

    Parameters
    ----------
    attacks : sequence of Attack, optional
        By default `dpaudit.attacks.PORTFOLIO`. With attacks that read bits, such as
        `dpaudit.attacks.BITS`, the audit is of the doubles that are returned, rather
        than of the mechanism over the real numbers.
    executor : concurrent.futures.Executor, optional
        Who draws the releases: `dpaudit.audit.process_pool`, or a Dask client, whose
        workers hold the mechanism and the pair; or another, which is sent both with
        every task. Threads gain only where the mechanism leaves Python's lock, and may
        call it twice at a time. By default, and where that is less work than to ask
        others, this thread draws.
    store : Store or path, optional
        Where the audit is kept while it runs. The same audit (of the same code) with
        the same store goes on where the last was interrupted; if it was finished, its
        result comes back, with `from_store` set. A few releases are drawn again first,
        and must come out as they did: a mechanism with randomness of its own is
        refused. A store is to be trusted like code: see `dpaudit.audit.keeping.store`.
    progress : callable, optional
        Called with a `Progress` after every round.
    should_stop : callable, optional
        Asked after every round whether to end the audit here. Its verdict and bounds
        hold no less, whatever the reason, since they hold at all rounds at once. The
        result is marked as `interrupted`, and is not kept; the state is, so that the
        same audit can still be finished.
    name : str, optional
        Of the mechanism in the result; by default that of its class or function.
    reference : str, optional
        ``module:object`` under which a witness finds the mechanism, where it is not
        a dataclass or a function of a module.

    Raises
    ------
    InputError
        If `attacks`, `name` or `reference` is not allowed.
    """

    attacks: Sequence[Attack] | None = None
    executor: Executor | None = None
    store: "Store | str | Path | None" = None
    progress: Callable[[Progress], None] | None = None
    should_stop: Callable[[], bool] | None = None
    name: str | None = None
    reference: str | None = None

    def __post_init__(self) -> None:
        if self.attacks is not None:
            object.__setattr__(self, "attacks", tuple(self.attacks))
        for attack in self.attacks or ():
            if not isinstance(attack, Attack):
                raise InputError(f"attacks must be instances of Attack, got {attack!r}")
        for field in ("name", "reference"):
            given = getattr(self, field)
            if not isinstance(given, str | None):
                raise InputError(f"{field} must be a string or None, got {given!r}")


def refuse(what: str, options: Budget | Run, *names: str) -> None:
    """Raise an error if options were given that something cannot honour.

    Parameters
    ----------
    what : str
        Who does not take them, as in ``"replay"``.
    options : Budget or Run
    *names : str
        Which of its fields are not honoured.

    Raises
    ------
    InputError
        If one of these fields is not what it is by default.
    """
    unsaid = type(options)()
    given = [name for name in names if getattr(options, name) != getattr(unsaid, name)]
    if given:
        raise InputError(f"{what} takes no {' or '.join(given)}")


@dataclass(frozen=True, kw_only=True)
class Settings(Checked):
    """What determines an audit of a mechanism on given pairs, or on those of a search.

    A store knows an audit by all of these fields (`dpaudit.audit.keeping.identity`):
    whatever changes a result is a field here. Who draws, where the work is kept and who
    watches it change none, and are not.

    Parameters
    ----------
    claim : Claim
    confidence : float
    seed : int
    layer : Layer
        Of those from which releases are drawn.
    budget : Budget
        Without its seconds, which are not the same twice.
    attacks : sequence of Attack
    name, reference : str or None
        As for `Run`.

    Raises
    ------
    InputError
        If one of them is not allowed.
    """

    claim: Claim
    confidence: Annotated[float, check_confidence]
    seed: Annotated[int, partial(check_count, minimum=0)]
    layer: Annotated[Layer, _check_layer]
    budget: Annotated[Budget, lambda _, budget: replace(budget, seconds=None)]
    attacks: Annotated[tuple[Attack, ...], lambda _, attacks: tuple(attacks)]
    name: str | None
    reference: str | None

    @property
    def alpha(self) -> float:
        """The error probability of each statement of the audit."""
        return 1 - self.confidence

    @property
    def bits(self) -> bool:
        """Whether the doubles are audited, since an attack reads their bits."""
        return any(attack.reads == "bits" for attack in self.attacks)


def refuse_with_objects(what: str, pair: Any, run: Run) -> None:
    """Raise an error if datasets that are objects were to be kept, or sent elsewhere.

    Raises
    ------
    InputError
        If a store, or an executor, was given with a pair of objects; if `run` is none.
    """
    if not isinstance(run, Run):
        raise InputError(f"run must be a Run, got {run!r}")
    if isinstance(pair, tuple) or (isinstance(pair, Pair) and pair.rows is None):
        refuse(f"{what} of datasets that are objects", run, "store", "executor")


def stated(mechanism: Any, what: str, given: Any) -> Any:
    """Return what is given, else what the mechanism states.

    Raises
    ------
    InputError
        If it states none.
    """
    found = getattr(mechanism, what, None) if given is None else given
    if found is None:
        raise InputError(f"{what} is needed: the mechanism states none")
    return found


def name_of(mechanism: Any) -> str:
    """Return the name of a function, or of the class of an instance."""
    mechanism = FunctionMechanism.written(mechanism)
    kind = mechanism if hasattr(mechanism, "__qualname__") else type(mechanism)
    return str(kind.__qualname__)


def stored_mechanism(mechanism: Any, reference: str | None) -> Any:
    """Return a mechanism for a witness, None if it cannot be imported by name."""
    if reference is not None:
        return {"$reference": reference}
    try:
        if isinstance(mechanism, FunctionType):
            return {"$reference": check_importable(mechanism)}
        return encode(mechanism)
    except InputError:
        return None


def reference_point(claim: Claim) -> tuple[float, float]:
    """Return where epsilon and delta are bounded: at the claim's own if it has them.

    Raises
    ------
    InputError
        If the claim promises nothing at any of the deltas that are tried.
    """
    if isinstance(claim, PureDP | ApproxDP):
        return claim.parameters["epsilon"], claim.parameters.get("delta", 0.0)
    for delta in _REFERENCE_DELTAS:
        epsilon = claim.epsilon_at(delta)
        if math.isfinite(epsilon):
            return max(epsilon, 0.1), delta
    raise InputError(f"the claim {claim} promises next to nothing")


def _duration(seconds: float) -> str:
    """Return a time in its two largest units."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
