"""Whether the mechanism at hand is the one that a witness was found on.

A witness names a mechanism and its arguments, and contests a claim. Whoever replays it
on something else should know what differs, or may take an acquittal for a mended
mechanism, and a conviction for that of the wrong one.
"""

import sys
from types import ModuleType
from typing import Any, Protocol

from dpaudit.claims import Claim
from dpaudit.codec import differences, encode
from dpaudit.errors import InputError, MechanismError
from dpaudit.neighbours import Pair
from dpaudit.printable import printable

__all__ = ["Accusation", "other_than_claimed", "other_than_named"]

_MOST_NAMED = 8  # differences


class Accusation(Protocol):
    """What a witness of any kind holds."""

    @property
    def mechanism(self) -> Any:
        """As `dpaudit.codec.encode` stores it."""
        ...

    @property
    def claim(self) -> Claim:
        """What is contested."""
        ...

    @property
    def pair(self) -> Pair:
        """On which."""
        ...


def other_than_named(witness: Accusation, mechanism: Any) -> list[str]:
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


def other_than_claimed(witness: Accusation, mechanism: Any) -> list[str]:
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
    """Say whether a mechanism is what a reference leads to, without importing."""
    module, _, name = str(stored.get("$reference")).partition(":")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        if not isinstance(found, ModuleType | type):
            return False
        found = vars(found).get(part)
    return found is mechanism
