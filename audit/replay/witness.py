"""Witnesses of replays: both datasets, the seed, and what was found.

As with those of other audits, reading one runs nothing (`dpaudit.audit.witness`), and
it proves nothing by itself: `verify_replay` replays the mechanism on its pair, from
another seed. Where the refutation is a proof, so is its confirmation.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.atomic import replacing
from dpaudit.audit.accused import other_than_claimed, other_than_named
from dpaudit.audit.replay.result import Finding, ReplayResult
from dpaudit.audit.witness import Witness
from dpaudit.claims import Claim
from dpaudit.codec import decode, encode, rebuild
from dpaudit.errors import InputError
from dpaudit.mechanism import Mechanism
from dpaudit.neighbours import Pair, Relation
from dpaudit.printable import printable
from dpaudit.streams import fresh_seed
from dpaudit.strict_json import read_json
from dpaudit.validation import check_count, check_fraction, check_name

__all__ = [
    "ReplayVerification",
    "ReplayWitness",
    "load_witness",
    "stored_mechanism",
    "verify_replay",
]

_FORMAT, _VERSION = "dpaudit-replay-witness", 1


@dataclass(frozen=True)
class ReplayWitness:
    """What it takes to replay a refutation.

    Parameters
    ----------
    name : str
    mechanism : object
        As `dpaudit.codec.encode` stores it, or None if it cannot be imported by name.
    claim : Claim
    pair : Pair
    sees : {"release", "transcript"}
    confidence : float
    seed : int
    findings : tuple of Finding
        The first difference first.
    batches : {"secret", "public"}
    """

    name: str
    mechanism: Any
    claim: Claim
    pair: Pair
    sees: str
    confidence: float
    seed: int
    findings: tuple[Finding, ...]
    batches: str = "secret"

    def to_dict(self) -> dict[str, Any]:
        """Return the witness as JSON-ready Python."""
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "name": self.name,
            "mechanism": self.mechanism,
            "claim": encode(self.claim),
            "relation": self.pair.relation.value,
            "data": encode(self.pair.data),
            "neighbour": encode(self.pair.neighbour),
            "sees": self.sees,
            "batches": self.batches,
            "confidence": self.confidence,
            "seed": self.seed,
            "findings": [finding.to_dict() for finding in self.findings],
        }

    @classmethod
    def from_dict(cls, stored: Any) -> "ReplayWitness":
        """Rebuild a witness from its JSON. Nothing is imported, whatever it says.

        Raises
        ------
        InputError
            If it is not a witness of a replay, is malformed, or is of another version.
        """
        if not isinstance(stored, dict) or stored.get("format") != _FORMAT:
            raise InputError(
                f"not a witness of a replay: its format is not {_FORMAT!r}"
            )
        if stored.get("version") != _VERSION:
            shown = printable(repr(stored.get("version")), longest=80)
            raise InputError(f"witness version {shown} is not supported")
        try:
            return cls(**_fields(stored))
        except InputError as error:
            raise InputError(printable(error)) from None
        except Exception as error:  # of its parts any may be of any kind
            raise InputError(
                f"the witness is truncated or malformed: {printable(error)}"
            ) from None

    def build_mechanism(self) -> Any:
        """Return the mechanism: this **imports and runs the code that is named**."""
        if self.mechanism is None:
            raise InputError(
                f"the witness's mechanism {printable(repr(self.name))} cannot be "
                "imported by name; pass it as mechanism="
            )
        return rebuild(self.mechanism)

    def save(self, path: Path) -> None:
        """Write the witness as JSON, all of it or nothing."""
        text = json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"
        with replacing(path) as new:
            new.write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class ReplayVerification:
    """The outcome of replaying a witness.

    Parameters
    ----------
    confirmed : bool
        Whether the claim is refuted again.
    result : ReplayResult
    warnings : tuple of str
        As in `dpaudit.audit.Verification`.
    """

    confirmed: bool
    result: ReplayResult
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the verification as JSON-ready Python."""
        return {
            "confirmed": self.confirmed,
            "warnings": list(self.warnings),
            **self.result.to_dict(),
        }

    def __str__(self) -> str:
        outcome = "CONFIRMED" if self.confirmed else "NOT CONFIRMED"
        lines = [f"violation {outcome}", str(self.result)]
        lines += [f"  WARNING        {printable(each)}" for each in self.warnings]
        return "\n".join(lines)


def load_witness(path: Path) -> "Witness | ReplayWitness":
    """Read a witness of an audit, or of a replay. Nothing is imported.

    Raises
    ------
    InputError
        As `Witness.load`.
    """
    stored = read_json(path)
    if isinstance(stored, dict) and stored.get("format") == _FORMAT:
        return ReplayWitness.from_dict(stored)
    return Witness.from_dict(stored)


def verify_replay(
    witness: ReplayWitness,
    *,
    mechanism: Mechanism | Callable[..., Any] | None = None,
    confidence: float = 0.999,
    max_samples: int | None = None,
    seed: int | None = None,
) -> ReplayVerification:
    """Replay a witness's mechanism on its pair, against its claim, from another seed.

    Parameters
    ----------
    witness : ReplayWitness
    mechanism : Mechanism or callable, optional
        By default the one that the witness names, **which imports and runs its code**.
    confidence : float
    max_samples : int, optional
        200 by default.
    seed : int, optional
        From the operating system by default.

    Raises
    ------
    InputError
        If the witness names no importable mechanism and none is given, if the
        mechanism states its claim under another relation, or if the seed is the
        witness's own.
    """
    from dpaudit.audit.replay.auditing import replay

    seed = fresh_seed() if seed is None else check_count("seed", seed, minimum=0)
    if seed == witness.seed:
        raise InputError(f"seed must differ from the witness's own, got {seed}")
    warnings: list[str] = []
    if mechanism is None:
        mechanism = witness.build_mechanism()
    else:
        warnings += other_than_named(witness, mechanism)
    warnings += other_than_claimed(witness, mechanism)
    result = replay(
        mechanism,
        pair=witness.pair,
        claim=witness.claim,
        confidence=confidence,
        max_samples=200 if max_samples is None else max_samples,
        seed=seed,
        sees="transcript" if witness.sees == "transcript" else "release",
        batches="public" if witness.batches == "public" else "secret",
        name=witness.name,
    )
    return ReplayVerification(result.refuted, result, tuple(warnings))


def stored_mechanism(mechanism: Any, reference: str | None) -> Any:
    """Return a mechanism for a witness, None if it cannot be imported by name."""
    if reference is not None:
        return {"$reference": reference}
    try:
        return encode(mechanism)
    except InputError:
        return None


def _fields(stored: dict[str, Any]) -> dict[str, Any]:
    values = decode({name: stored[name] for name in ("claim", "data", "neighbour")})
    if not isinstance(values["claim"], Claim):
        raise InputError(f"the witness's claim is no claim: {values['claim']!r}")
    for name in ("data", "neighbour"):
        if not isinstance(values[name], np.ndarray):
            raise InputError(f"the witness's {name} must be an array")
    if not isinstance(stored["name"], str):
        raise InputError("the witness's name must be text")
    mechanism = stored["mechanism"]
    keys = mechanism.keys() if isinstance(mechanism, dict) else set()
    forms: tuple[set[str], ...] = ({"$reference"}, {"$object", "arguments"})
    if mechanism is not None and set(keys) not in forms:
        raise InputError("the witness's mechanism must be an object or a reference")
    return {
        "name": stored["name"],
        "mechanism": mechanism,
        "claim": values["claim"],
        "pair": Pair(
            values["data"],
            values["neighbour"],
            Relation.parse(stored["relation"]),
            allow_nonfinite=True,
        ),
        "sees": check_name("sees", stored["sees"], ("release", "transcript")),
        "batches": check_name(
            "batches", stored.get("batches", "secret"), ("secret", "public")
        ),
        "confidence": check_fraction("the confidence", stored["confidence"]),
        "seed": check_count("the seed", stored["seed"], minimum=0),
        "findings": tuple(_finding(each) for each in stored["findings"]),
    }


def _finding(stored: dict[str, Any]) -> Finding:
    texts = {
        name: str(stored[name])
        for name in ("kind", "where", "where_neighbour", "message")
    }
    proof = stored["proof"]
    if proof is not None and not isinstance(proof, bool):
        proof = check_fraction("the confidence of a finding", proof)
    return Finding(**texts, proof=proof)
