"""The input and the result of every fixed-sample bound."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from dpaudit.errors import InputError
from dpaudit.gaussian import gaussian_epsilon
from dpaudit.validation import check_count, check_fraction

__all__ = ["Bound", "Counts", "check_level"]


@dataclass(frozen=True)
class Counts:
    """How often one event, fixed before the releases were drawn, happened.

    Parameters
    ----------
    hits, releases : int
        The event happened in `hits` of `releases` independent releases on D.
    hits_neighbour, releases_neighbour : int
        The same for releases on the neighbour D'.

    Raises
    ------
    InputError
        If a number is not an integer, is negative, is larger than its number of
        releases, or if a side has no release.

    Examples
    --------
    >>> Counts(90, 100, 20, 100)
    Counts(hits=90, releases=100, hits_neighbour=20, releases_neighbour=100)
    """

    hits: int
    releases: int
    hits_neighbour: int
    releases_neighbour: int

    def __post_init__(self) -> None:
        for hits, releases in (
            ("hits", "releases"),
            ("hits_neighbour", "releases_neighbour"),
        ):
            total = check_count(releases, getattr(self, releases))
            count = check_count(hits, getattr(self, hits), minimum=0, maximum=total)
            object.__setattr__(self, releases, total)
            object.__setattr__(self, hits, count)

    @property
    def swapped(self) -> "Counts":
        """The same event with the roles of D and D' exchanged."""
        return Counts(
            self.hits_neighbour, self.releases_neighbour, self.hits, self.releases
        )

    @property
    def complement(self) -> "Counts":
        """The complementary event, with the roles of D and D' exchanged.

        An event that is frequent on D is as good as a complement that is frequent
        on D': under this map the constraint p <= e^eps q + delta becomes
        1 - q <= e^eps (1 - p) + delta.
        """
        return Counts(
            self.releases_neighbour - self.hits_neighbour,
            self.releases_neighbour,
            self.releases - self.hits,
            self.releases,
        )

    def to_dict(self) -> dict[str, int]:
        """Return the four numbers by name."""
        return asdict(self)


@dataclass(frozen=True)
class Bound:
    """A lower confidence bound on a privacy parameter.

    With probability at least `confidence` over the releases, the mechanism satisfies
    no claim whose `parameter` is below `value`.

    Parameters
    ----------
    method : str
        Which bound this is, for example ``"joint"``.
    parameter : str
        ``"epsilon"`` (at `delta`) or ``"mu"`` (of Gaussian DP).
    value : float
        The bound, >= 0; 0 says nothing.
    delta : float
        The delta of the claims refuted; for ``"mu"`` the delta at which `epsilon`
        translates the bound.
    confidence : float
    counts : mapping
        The counts behind the bound, by name.
    """

    method: str
    parameter: str
    value: float
    delta: float
    confidence: float
    counts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def epsilon(self) -> float | None:
        """The bound on epsilon at `delta`; None for mu at delta 0, where none exists.

        For mu it is the epsilon of the mu-GDP Gaussian mechanism: a statement about
        mechanisms that claim Gaussian DP, not about others.
        """
        if self.parameter == "epsilon":
            return self.value
        return gaussian_epsilon(self.delta, self.value) if self.delta > 0 else None

    def __str__(self) -> str:
        share = f"{100 * self.confidence:.10g} %"
        text = f"{self.parameter} >= {self.value:.6g}"
        if self.parameter == "epsilon":
            text += f" at delta {self.delta:g}"
        elif self.epsilon is not None:
            text += f" (as Gaussian DP: epsilon >= {self.epsilon:.6g}"
            text += f" at delta {self.delta:g})"
        return f"{text} with {share} confidence ({self.method})"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary."""
        return {
            "method": self.method,
            "parameter": self.parameter,
            "value": self.value,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "confidence": self.confidence,
            "counts": {name: _readable(value) for name, value in self.counts.items()},
        }


def _readable(value: Any) -> Any:
    """Return a number as JSON can hold it: a threshold may be infinite."""
    infinite = isinstance(value, float) and not math.isfinite(value)
    return str(value) if infinite else value


def check_level(delta: object, confidence: object) -> tuple[float, float, float]:
    """Return delta, confidence and alpha = 1 - confidence, or raise InputError."""
    delta = check_fraction("delta", delta, allow_zero=True)
    confidence = check_fraction("confidence", confidence)
    alpha = 1 - confidence
    if alpha < 1e-12:
        raise InputError(
            f"confidence must be at most 1 - 1e-12, got {confidence!r}: "
            "beyond it double precision cannot tell the tails"
        )
    return delta, confidence, alpha
