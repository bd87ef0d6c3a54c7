"""Witnesses of replays, read and replayed.

Reading one runs nothing (`dpaudit.audit.keeping.stored_witness`), and it proves nothing
by itself: `verify_replay` replays the mechanism on its pair, from another seed. Where
the refutation is a proof, so is its confirmation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit.audit.keeping.accused import accused, seed_for
from dpaudit.audit.keeping.witness import Witness
from dpaudit.audit.replay.auditing import replay
from dpaudit.audit.replay.result import ReplayResult, ReplayWitness
from dpaudit.audit.settings import Run
from dpaudit.mechanism import Mechanism
from dpaudit.printable import printable
from dpaudit.strict_json import read_json

__all__ = [
    "ReplayVerification",
    "ReplayWitness",
    "load_witness",
    "verify_replay",
]


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
