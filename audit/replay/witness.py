"""The witness of a replay: what it takes to replay a refutation.

Reading one runs nothing (`dpaudit.audit.keeping.stored_witness`), and it proves nothing
by itself.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from dpaudit.audit.keeping.stored_witness import StoredWitness, text
from dpaudit.audit.replay.judge.judgement import Finding
from dpaudit.claims import Claim
from dpaudit.codec import decode, encode
from dpaudit.neighbours import Pair
from dpaudit.validation import check_count, check_fraction, check_name

__all__ = ["ReplayWitness"]


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
            **self._stored_pair(self.pair),
            **{n: getattr(self, n) for n in ("sees", "batches", "confidence", "seed")},
            "findings": [finding.to_dict() for finding in self.findings],
            **{n: getattr(self, n) for n in ("proof", "repeats", "assumes")},
        }

    @classmethod
    def _read(cls, stored: dict[str, Any]) -> Self:
        values = decode({name: stored[name] for name in ("claim", "data", "neighbour")})
        return cls(
            **cls._accusation(stored, values),
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


def _finding(stored: dict[str, Any]) -> Finding:
    texts = {
        name: str(stored[name])
        for name in ("kind", "where", "where_neighbour", "message")
    }
    proof = stored["proof"]
    if proof is not None and not isinstance(proof, bool):
        proof = check_fraction("the confidence of a finding", proof)
    return Finding(**texts, proof=proof)
