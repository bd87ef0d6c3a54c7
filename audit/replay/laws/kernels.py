r"""Laws of declared primitives that are no noise: choices with names, and promises.

- `NamedChoiceLaw`: choices whose outcomes have names.
- `TrustedLaw`: only a promise is known, of so much privacy if the inputs lie no further
  apart than that.

Noise has a `dpaudit.audit.replay.laws.non_affine.NonAffineLaw`, or an `AffineLaw` like
any that was followed.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.affine import Family
from dpaudit.audit.replay.laws.choices import ChoiceLaw
from dpaudit.audit.replay.laws.comparison import LawComparison
from dpaudit.claims import Claim
from dpaudit.errors import InputError
from dpaudit.outputs import ADDRESS

__all__ = ["NamedChoiceLaw", "TrustedLaw"]


@dataclass(frozen=True, eq=False)
class NamedChoiceLaw(ChoiceLaw):
    """Choices among outcomes that have names.

    Parameters
    ----------
    names : tuple
        Of the k outcomes. Outcomes of one name on D and on D' are the same.
    """

    names: tuple[Any, ...] = ()
    keys: tuple[Any, ...] = field(init=False, repr=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", tuple(map(_key, self.names)))

    @classmethod
    def among(
        cls, log: Array, names: Sequence[Any], kind: str, error: float = 0.0
    ) -> "NamedChoiceLaw":
        """Return choices; log, shape (c, k). Outcomes of one name are one outcome."""
        made = cls(log, kind, error, tuple(names))
        if len(made.names) != log.shape[1]:
            raise InputError(
                f"there must be as many candidates as scores, got {len(made.names)} "
                f"and {log.shape[1]}"
            )
        # In one order, if the candidates have different ones on D and on D'.
        keys = sorted(set(made.keys), key=repr)
        joined = np.full((len(log), len(keys)), -np.inf)
        columns = {key: column for column, key in enumerate(keys)}
        for place, key in enumerate(made.keys):
            column = columns[key]
            joined[:, column] = np.logaddexp(joined[:, column], log[:, place])
        named = tuple(made.names[made.keys.index(k)] for k in keys)
        return cls(joined, kind, error, named)

    def places(self, output: Any) -> tuple[NDArray[np.intp], tuple[int, ...]]:
        """Return which outcomes these are, shape (c,), and the shape that they have.

        Raises
        ------
        LookupError
            If there are no such outcomes, or not so many.
        """
        columns = {key: place for place, key in enumerate(self.keys)}
        if len(self.log) == 1 and _key(output) in columns:
            return np.array([columns[_key(output)]]), ()
        several = np.asarray(output)
        found = [columns[_key(each)] for each in several.ravel()]
        if len(found) != len(self.log):
            raise LookupError
        return np.array(found, dtype=np.intp), several.shape

    def loss(self, other: ChoiceLaw, value: Array) -> float:
        """Return the loss of c outcomes."""
        assert isinstance(other, NamedChoiceLaw)
        keys = [self.keys[int(place)] for place in value]
        if any(key not in other.keys for key in keys):
            return math.inf
        there = np.array([other.keys.index(key) for key in keys], dtype=np.intp)
        found = other.log_probability(there.astype(np.float64))
        return self.log_probability(value) - found

    def supremum(self, other: ChoiceLaw) -> float:
        """Return the supremum of the loss, the greater of the two ways round."""
        assert isinstance(other, NamedChoiceLaw)
        if self.keys == other.keys:
            return super().supremum(other)
        keys = list(dict.fromkeys((*self.keys, *other.keys)))
        wide = [
            ChoiceLaw(each._spread(keys), error=each.error) for each in (self, other)
        ]
        return wide[0].supremum(wide[1])

    def _spread(self, keys: list[Any]) -> Array:
        log = np.full((len(self.log), len(keys)), -np.inf)
        log[:, [keys.index(key) for key in self.keys]] = self.log
        return log


def _key(name: Any) -> Any:
    """Return what an outcome goes by: equal numbers are one outcome.

    Raises
    ------
    InputError
        If it goes by where it lies in memory, which is elsewhere on the other dataset.
    """
    if isinstance(name, np.ndarray):
        return name.shape, name.tobytes()
    if isinstance(name, np.generic):
        name = name.item()
    if isinstance(name, bool | int | float):
        return float(name)
    text = repr(name)
    if not isinstance(name, str | bytes) and ADDRESS.search(text):
        raise InputError(
            f"outcomes must have a repr that says which is which, got {text}"
        )
    return text


@dataclass(frozen=True, eq=False)
class TrustedLaw:
    """A primitive whose law is not known, and the promise about it.

    Parameters
    ----------
    value : object
        The input.
    terms : tuple
        What the promise depends on: if it is another one on D', nothing is promised.
    distance : callable
        Two inputs -> how far they lie apart, NaN if that is not known.
    promise : callable
        A distance > 0 -> the claim that holds of two inputs so far apart, None if there
        is none.
    words : str
        Of the promise, for people.
    """

    value: Any
    terms: tuple[Any, ...]
    distance: Callable[[Any, Any], float]
    promise: Callable[[float], Claim | None]
    words: str

    @property
    def kind(self) -> str:
        """What it is, for people."""
        return "a trusted primitive"

    def compared(self, other: "TrustedLaw") -> LawComparison:
        """Return the promise about the two."""
        if self.terms != other.terms:
            text = f"{self.words} on D, and {other.words} on D'"
            return _unknown(math.nan, note=("scale", text))
        distance = self.distance(self.value, other.value)
        if distance == 0:
            return LawComparison()
        bound = None if math.isnan(distance) else self.promise(distance)
        if bound is not None:
            return _unknown(distance, bound=bound)
        how = "an unknown distance" if math.isnan(distance) else f"{distance:.6g}"
        text = f"the inputs lie {how} apart: {self.words}"
        return _unknown(distance, note=("distance", text))

    def loss(self, other: "TrustedLaw", value: Array) -> float:
        """Return 0: it is asked for where the inputs are the same, and nowhere else."""
        return 0.0


def _unknown(distance: float, **what: Any) -> LawComparison:
    """Return a comparison of laws that are not known: a bound, or a note, is."""
    return LawComparison.of_unit(Family.TRUSTED, distance, known=False, **what)
