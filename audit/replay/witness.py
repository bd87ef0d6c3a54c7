"""Witnesses of replays: both datasets, the seed, and what was found.

Reading one runs nothing (`dpaudit.audit.keeping.stored_witness`), and it proves nothing
by itself: `verify_replay` replays the mechanism on its pair, from another seed. Where
the refutation is a proof, so is its confirmation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from dpaudit.audit.keeping.accused import accused, seed_for
from dpaudit.audit.keeping.stored_witness import StoredWitness, accusation, text
from dpaudit.audit.keeping.witness import Witness
from dpaudit.audit.replay.result import Finding, ReplayResult
from dpaudit.audit.settings import Run
from dpaudit.claims import Claim
from dpaudit.codec import decode, encode
from dpaudit.mechanism import Mechanism
from dpaudit.neighbours import Pair
from dpaudit.printable import printable
from dpaudit.strict_json import read_json
from dpaudit.validation import check_count, check_fraction, check_name

__all__ = [
    "ReplayVerification",
    "ReplayWitness",
    "load_witness",
    "verify_replay",
]


@dataclass(frozen=True)
class ReplayWitness(StoredWitness):
    """What it takes to replay a refutation.

    Parameters
    ----------
    name, mechanism, claim, pair, seed
        See `StoredWitness`.
    sees : {"release", "transcript"}
    confidence : float
    findings : tuple of Finding
        The first difference first.
    batches : {"secret", "public"}
    proof : bool
        Whether it was one.
    repeats : int
        Executions a side that repeated what it rests on.
    assumes : str
        What it takes for granted, as in `ReplayResult`.
    """

    form: ClassVar[str] = "dpaudit-replay-witness"
    version: ClassVar[int] = 2
    older: ClassVar[tuple[int, ...]] = (1,)  # without what a proof rests on

    name: str
    mechanism: Any
    claim: Claim
    pair: Pair
    sees: str
    confidence: float
    seed: int
    findings: tuple[Finding, ...]
    batches: str = "secret"
    proof: bool = False
    repeats: int = 0
    assumes: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the witness as JSON-ready Python."""
        return {
            "format": self.form,
            "version": self.version,
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
            "proof": self.proof,
            "repeats": self.repeats,
            "assumes": self.assumes,
        }

    @classmethod
    def _read(cls, stored: dict[str, Any]) -> Self:
        values = decode({name: stored[name] for name in ("claim", "data", "neighbour")})
        return cls(
            **accusation(stored, values),
            sees=check_name("sees", stored["sees"], ("release", "transcript")),
            batches=check_name(
                "batches", stored.get("batches", "secret"), ("secret", "public")
            ),
            confidence=check_fraction("the confidence", stored["confidence"]),
            seed=check_count("the seed", stored["seed"], minimum=0),
            findings=tuple(_finding(each) for each in stored["findings"]),
            proof=stored.get("proof") is True,
            repeats=check_count("the repeats", stored.get("repeats", 0), minimum=0),
            assumes=text("assumption", stored.get("assumes", "")),
        )


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


def load_witness(path: str | Path) -> "Witness | ReplayWitness":
    """Read a witness of an audit, or of a replay. Nothing is imported.

    Raises
    ------
    InputError
        As `Witness.load`.
    """
    stored = read_json(Path(path))
    if isinstance(stored, dict) and stored.get("format") == ReplayWitness.form:
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

    seed = seed_for(witness, seed)
    mechanism, warnings = accused(witness, mechanism)
    result = replay(
        mechanism,
        pair=witness.pair,
        claim=witness.claim,
        confidence=confidence,
        budget=200 if max_samples is None else max_samples,
        seed=seed,
        sees="transcript" if witness.sees == "transcript" else "release",
        batches="public" if witness.batches == "public" else "secret",
        run=Run(name=witness.name),
    )
    return ReplayVerification(result.refuted, result, tuple(warnings))


def _finding(stored: dict[str, Any]) -> Finding:
    texts = {
        name: str(stored[name])
        for name in ("kind", "where", "where_neighbour", "message")
    }
    proof = stored["proof"]
    if proof is not None and not isinstance(proof, bool):
        proof = check_fraction("the confidence of a finding", proof)
    return Finding(**texts, proof=proof)
