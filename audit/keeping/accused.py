"""Whether the mechanism at hand is the one that a witness was found on.

A witness names a mechanism and its arguments, and contests a claim. Whoever replays it
on something else should know what differs, or may take an acquittal for a mended
mechanism, and a conviction for that of the wrong one.
"""

import sys
from types import ModuleType
from typing import Any

from dpaudit.audit.keeping.stored_witness import StoredWitness
from dpaudit.claims import Claim
from dpaudit.codec import differences, encode
from dpaudit.errors import InputError, MechanismError
from dpaudit.printable import printable
from dpaudit.streams import fresh_seed
from dpaudit.validation import check_count

__all__ = ["accused", "seed_for"]

_MOST_NAMED = 8  # differences


def seed_for(witness: StoredWitness, seed: int | None) -> int:
    """Return a seed to replay a witness with: by default one that nobody has used.

    Raises
    ------
    InputError
        If it is the witness's own.
    """
    seed = fresh_seed() if seed is None else check_count("seed", seed, minimum=0)
    if seed == witness.seed:
        raise InputError(f"seed must differ from the witness's own, got {seed}")
    return seed


def accused(witness: StoredWitness, mechanism: Any | None) -> tuple[Any, list[str]]:
    """Return what a witness is replayed on, and what is to be known of it.

    Parameters
    ----------
    witness : StoredWitness
    mechanism : Mechanism or callable, optional
        By default the one that the witness names, **which imports and runs its code**.

    Raises
    ------
    InputError
        If the witness names none and none is given, or its claim is made under another
        relation.
    MechanismError
        If it fails when it is asked what it claims.
    """
    if mechanism is None:
        mechanism, unlike = witness.build_mechanism(), []
    else:
        unlike = _other_than_named(witness, mechanism)
    return mechanism, unlike + _other_than_claimed(witness, mechanism)


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
    """Say whether a mechanism is what a reference leads to, without importing."""
    module, _, name = str(stored.get("$reference")).partition(":")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        if not isinstance(found, ModuleType | type):
            return False
        found = vars(found).get(part)
    return found is mechanism
