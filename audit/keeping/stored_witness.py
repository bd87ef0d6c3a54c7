"""What witnesses of every kind have in common: how they are stored, and read.

Anybody may have written a witness, so reading one runs nothing: data and parameters are
numbers, claims those of `dpaudit.claims`, and the mechanism stays a text until it is
built (`StoredWitness.build_mechanism`). What a text can cost is bounded, too.
"""

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from dpaudit import __version__
from dpaudit.atomic import replacing
from dpaudit.claims import Claim
from dpaudit.codec import encode, rebuild
from dpaudit.errors import InputError
from dpaudit.neighbours import Pair, Relation
from dpaudit.printable import printable

__all__ = ["StoredWitness", "accusation", "array", "stored_mechanism", "text"]


class StoredWitness(ABC):
    """A refutation that can be replayed; a file of JSON.

    Parameters
    ----------
    name : str
    mechanism : object
        As `dpaudit.codec.encode` stores it, or None if it cannot be imported by name.
        Nothing is imported before `build_mechanism`.
    claim : Claim
        What is contested.
    pair : Pair
        On which.
    seed : int
        With which it was refuted.
    """

    form: ClassVar[str]
    """Which kind of witness this is; ``format`` in the file."""
    version: ClassVar[int]
    """Which is written."""
    older: ClassVar[tuple[int, ...]] = ()
    """Which are read, too."""

    name: str
    mechanism: Any
    claim: Claim
    pair: Pair
    seed: int

    def __post_init__(self) -> None:
        if not isinstance(self.claim, Claim):
            raise InputError(f"the witness's claim is no claim: {self.claim!r}")

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the witness as JSON-ready Python."""

    @classmethod
    @abstractmethod
    def _read(cls, stored: dict[str, Any]) -> Self:
        """Return the witness of a file of this form and version."""

    @classmethod
    def from_dict(cls, stored: Any) -> Self:
        """Rebuild a witness from its JSON. Nothing is imported, whatever it says.

        Raises
        ------
        InputError
            If it is no such witness, is truncated, is of another version, or holds
            anything of another kind or size than such a witness does.
        """
        if not isinstance(stored, dict) or stored.get("format") != cls.form:
            raise InputError(f"not a witness: its format must be {cls.form!r}")
        known = (*cls.older, cls.version)
        if type(stored.get("version")) is not int or stored["version"] not in known:
            shown = printable(repr(stored.get("version")), longest=80)
            raise InputError(
                f"witness version {shown} is not supported: this is "
                f"dpaudit {__version__}, which reads version "
                f"{' or '.join(map(str, known))}"
            )
        try:
            return cls._read(stored)
        except InputError as error:
            raise InputError(printable(error)) from None
        except Exception as error:  # of its many parts any may be of any kind
            raise InputError(
                f"the witness is truncated or malformed: {printable(error)}"
            ) from None

    def build_mechanism(self) -> Any:
        """Return the mechanism: this **imports and runs the code that is named**.

        Raises
        ------
        InputError
            If it has no name, or cannot be imported and built.
        """
        if self.mechanism is None:
            raise InputError(
                f"the witness's mechanism {printable(repr(self.name))} cannot be "
                "imported by name; pass it as mechanism="
            )
        return rebuild(self.mechanism)

    def save(self, path: str | Path) -> None:
        """Write the witness as JSON, all of it or nothing."""
        path = Path(path)
        content = json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"
        with replacing(path) as new:
            new.write_text(content, encoding="utf-8")


def stored_mechanism(mechanism: Any, reference: str | None) -> Any:
    """Return a mechanism for a witness, None if it cannot be imported by name."""
    if reference is not None:
        return {"$reference": reference}
    try:
        return encode(mechanism)
    except InputError:
        return None


def accusation(stored: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Return which mechanism is accused of what, and on which pair.

    Parameters
    ----------
    stored : dict
    values : dict
        Its ``claim``, ``data`` and ``neighbour``, decoded.

    Raises
    ------
    InputError
        If any of them is of another kind.
    """
    return {
        "name": text("name", stored["name"]),
        "mechanism": _unbuilt(stored["mechanism"]),
        "claim": values["claim"],
        "pair": Pair(
            array("data", values["data"]),
            array("neighbour", values["neighbour"]),
            Relation.parse(text("relation", stored["relation"])),
            allow_nonfinite=True,
        ),
    }


def text(name: str, value: Any) -> str:
    """Return a text of a witness, checked."""
    if not isinstance(value, str):
        raise InputError(f"the witness's {name} must be text, got {value!r}")
    return value


def array(name: str, value: Any) -> np.ndarray[Any, Any]:
    """Return an array of a witness, checked."""
    if not isinstance(value, np.ndarray):
        raise InputError(f"the witness's {name} must be an array, got {value!r}")
    return value


def _unbuilt(value: Any) -> Any:
    """Return a stored mechanism as it is, if it has the form of one."""
    keys = value.keys() if isinstance(value, dict) else set()
    if value is None or keys in ({"$reference"}, {"$object", "arguments"}):
        return value
    raise InputError(
        "the witness's mechanism must be an object or a reference by name, or null, "
        f"got {value!r}"
    )
