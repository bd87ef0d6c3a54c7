"""What witnesses of every kind have in common: how they are stored, and read.

A witness may come from anywhere, so reading one runs nothing: data and parameters are
numbers, claims those of `dpaudit.claims`, and the mechanism stays a text until it is
built (`StoredWitness.build_mechanism`). What a text can cost is bounded, too.

A witness names a mechanism and its arguments, and contests a claim. Where it is
replayed on something else, what differs is said (`StoredWitness.accused`): else an
acquittal may be taken for a mended mechanism, and a conviction for that of the wrong
one.
"""

import json
import secrets
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Self

import numpy as np

from dpaudit import __version__
from dpaudit.atomic import replacing
from dpaudit.claims import Claim
from dpaudit.codec import differences, encode, rebuild
from dpaudit.domains import Domain
from dpaudit.errors import InputError, MechanismError
from dpaudit.neighbours import Pair, Relation
from dpaudit.printable import printable
from dpaudit.validation import check_count

__all__ = ["StoredWitness", "array", "text"]

_MOST_NAMED = 8  # differences


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

    @staticmethod
    def _stored_pair(pair: Pair) -> dict[str, Any]:
        """Return a pair for a file: its rows, and the domain that hands them out."""
        rows = pair.rows
        assert rows is not None  # of other objects there is no witness
        by = {} if pair.domain is None else {"domain": str(pair.domain)}
        return {
            "relation": rows.relation.value,
            **by,
            "data": encode(rows.data),
            "neighbour": encode(rows.neighbour),
        }

    @staticmethod
    def _accusation(stored: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
        """Return which mechanism is accused of what, and on which pair.

        Parameters
        ----------
        stored : dict
        values : dict
            Its ``claim``, ``data`` and ``neighbour``, decoded.
        """
        if not isinstance(claim := values["claim"], Claim):
            raise InputError(f"the witness's claim is no claim: {claim!r}")
        return {
            "name": text("name", stored["name"]),
            "mechanism": _unbuilt(stored["mechanism"]),
            "claim": claim,
            "pair": _pair(stored, values),
        }

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

    def other_seed(self, seed: int | None) -> int:
        """Return a seed to replay with: by default one that was never used.

        Raises
        ------
        InputError
            If it is the witness's own.
        """
        seed = (
            secrets.randbits(63)
            if seed is None
            else check_count("seed", seed, minimum=0)
        )
        if seed == self.seed:
            raise InputError(f"seed must differ from the witness's own, got {seed}")
        return seed

    def accused(self, mechanism: Any | None) -> tuple[Any, list[str]]:
        """Return what the witness is replayed on, and what is to be known of it.

        Parameters
        ----------
        mechanism : Mechanism or callable, optional
            By default the one that is named, **which imports and runs its code**.

        Raises
        ------
        InputError
            If none is named and none is given, or its claim is made under another
            relation.
        MechanismError
            If it fails when it is asked what it claims.
        """
        if mechanism is None:
            mechanism, unlike = self.build_mechanism(), []
        else:
            unlike = _other_than_named(self, mechanism)
        return mechanism, unlike + _other_than_claimed(self, mechanism)

    def save(self, path: str | Path) -> None:
        """Write the witness as JSON, all of it or nothing."""
        path = Path(path)
        content = json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"
        with replacing(path) as new:
            new.write_text(content, encoding="utf-8")


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


def _pair(stored: dict[str, Any], values: dict[str, Any]) -> Pair:
    """Return the pair of a stored witness, as the mechanism is handed it."""
    data, neighbour = (array(name, values[name]) for name in ("data", "neighbour"))
    relation = Relation.parse(text("relation", stored["relation"]))
    if "domain" not in stored:
        return Pair(data, neighbour, relation, allow_nonfinite=True)
    domain = Domain.parse(text("domain", stored["domain"]))
    if not all(map(domain.contains, [*data, *neighbour])):
        raise InputError("the witness's rows must be of its domain")
    pair = domain.pair(data, neighbour, relation)
    if pair is None:
        raise InputError("the witness's datasets must be neighbours")
    return pair


def _unbuilt(value: Any) -> Any:
    """Return a stored mechanism as it is, if it has the form of one."""
    keys = value.keys() if isinstance(value, dict) else set()
    if value is None or keys in ({"$reference"}, {"$object", "arguments"}):
        return value
    raise InputError(
        "the witness's mechanism must be an object or a reference by name, or null, "
        f"got {value!r}"
    )


def _other_than_named(witness: StoredWitness, mechanism: Any) -> list[str]:
    """Say where a mechanism is not the one that a witness names.

    Nothing is imported. Of a mechanism that has no name elsewhere its type is told.
    """
    named = witness.mechanism
    if named is None:
        return []
    try:
        given = encode(mechanism)
    except Exception:  # an object of any make: what cannot be stored is told by type
        given = None
    if given == named or _is_loaded(named, mechanism):
        return []
    found = _called(named)
    other = _called(given) if isinstance(given, dict) else type(mechanism).__qualname__
    if other != found:
        return [f"the mechanism given is {other}, the witness names {found}"]
    unlike = [
        f"{name} is {here!r} there and {there!r} in the witness"
        for name, here, there in differences(given, named)
    ]
    more = len(unlike) - _MOST_NAMED
    rest = [f"{more} more"] if more > 0 else []
    return [
        "the mechanism given differs from the witness's: "
        + "; ".join(printable(each) for each in unlike[:_MOST_NAMED] + rest)
    ]


def _other_than_claimed(witness: StoredWitness, mechanism: Any) -> list[str]:
    """Say whether a mechanism claims something else than a witness contests.

    Raises
    ------
    InputError
        If its claim is made under another relation: no pair of this one can break it.
    MechanismError
        If it fails when it is asked.
    """
    states = {}
    for name in ("claim", "relation"):
        try:
            states[name] = getattr(mechanism, name, None)
        except Exception as error:
            raise MechanismError(
                f"the mechanism's {name} raised {type(error).__name__}: "
                f"{printable(error)}"
            ) from error
    relation, tested = states["relation"], witness.pair.relation
    if isinstance(relation, str) and relation != tested:
        raise InputError(
            f"the mechanism states its claim under {printable(relation)}, and the "
            f"witness has neighbours under {tested}, which say nothing of that claim"
        )
    claim = states["claim"]
    if isinstance(claim, Claim) and claim != witness.claim:
        return [
            f"the mechanism claims {claim}; what is tested is the witness's claim, "
            f"{witness.claim}"
        ]
    return []


def _called(stored: dict[str, Any]) -> str:
    """Return the reference in a stored mechanism."""
    return printable(stored.get("$object", stored.get("$reference")), longest=80)


def _is_loaded(stored: dict[str, Any], mechanism: Any) -> bool:
    """Say whether a mechanism is what a reference leads to, without importing.

    A file, as ``FILE.py:NAME`` has it, is a module of its name.
    """
    module, _, name = str(stored.get("$reference")).partition(":")
    found: Any = sys.modules.get(module.removesuffix(".py").rpartition("/")[2])
    if module.endswith(".py"):
        file = Path(getattr(found, "__file__", None) or "")
        if file.resolve() != Path(module).resolve():
            return False
    for part in name.split("."):
        if not isinstance(found, ModuleType | type):
            return False
        found = vars(found).get(part)
    return found is mechanism
