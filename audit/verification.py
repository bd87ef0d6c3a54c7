"""Replaying a witness on fresh randomness, with an error budget of its own."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks import BITS, PORTFOLIO, Target
from dpaudit.audit.arsenal import FittedAttack
from dpaudit.audit.betting.events import Events
from dpaudit.audit.betting.families import verdict_family
from dpaudit.audit.betting.sequential import SequentialTest
from dpaudit.audit.layers.layer import Layer, view_transcript
from dpaudit.audit.sampling import DATA, NEIGHBOUR, Sampler
from dpaudit.audit.witness import Witness
from dpaudit.claims import Claim
from dpaudit.codec import decode
from dpaudit.errors import DPAuditError, InputError
from dpaudit.mechanism import Mechanism
from dpaudit.neighbours import Relation
from dpaudit.outputs import Batch
from dpaudit.streams import fresh_seed
from dpaudit.validation import check_count, check_fraction

__all__ = ["Verification", "verify"]

_SMALLEST_ROUND = 8
_GROWTH = 1.25


@dataclass(frozen=True)
class Verification:
    """The outcome of re-testing a witness on fresh randomness.

    Parameters
    ----------
    name : str
    confirmed : bool
        Whether the event violates the claim, at `confidence`, in fresh releases.
    claim : Claim
    relation : Relation
    confidence : float
    samples : int
        Fresh releases on either side.
    hits, hits_neighbour : int
        How many of them hit the event.
    log_evidence : float
    seed : int
    """

    name: str
    confirmed: bool
    claim: Claim
    relation: Relation
    confidence: float
    samples: int
    hits: int
    hits_neighbour: int
    log_evidence: float
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """Return the verification as JSON-ready Python."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        values["claim"] = str(self.claim)
        values["relation"] = self.relation.value
        return values

    def __str__(self) -> str:
        outcome = "CONFIRMED" if self.confirmed else "NOT CONFIRMED"
        return (
            f"{self.name}: violation of {self.claim} under {self.relation} {outcome} "
            f"at confidence {self.confidence:g}\n"
            f"  event          {self.hits} of {self.samples:,} fresh releases on the "
            f"data, {self.hits_neighbour} of {self.samples:,} on the neighbour\n"
            f"  evidence       e^{self.log_evidence:.1f} (seed {self.seed})"
        )


def verify(
    witness: Witness,
    *,
    mechanism: Mechanism | Callable[..., Any] | None = None,
    confidence: float = 0.999,
    max_samples: int | None = None,
    seed: int | None = None,
) -> Verification:
    """Test a witness's event on fresh releases.

    Parameters
    ----------
    witness : Witness
    mechanism : Mechanism or callable, optional
        Imported from the witness by default, which runs the code that it names.
    confidence : float, optional
        0.999 by default, whatever the witness says: who forges one might ask for
        little.
    max_samples : int, optional
        Releases a side; ten times what the audit needed by default.
    seed : int, optional
        From the operating system by default: fresh randomness.

    Raises
    ------
    InputError
        If the witness names no importable mechanism and none is given, or asks for
        the very releases that it was found on.
    """
    if mechanism is None:
        if witness.mechanism is None:
            raise InputError(
                f"the witness's mechanism {witness.name!r} cannot be imported by name; "
                "pass it as mechanism="
            )
        mechanism = decode(witness.mechanism)
    alpha = 1 - check_fraction("confidence", confidence)
    if max_samples is None:
        max_samples = max(1000, 10 * witness.samples)
    limit = check_count("max_samples", max_samples)
    seed = fresh_seed() if seed is None else check_count("seed", seed, minimum=0)
    if seed == witness.seed:
        raise InputError(f"seed must differ from the witness's own, got {seed}")

    attack = next(a for a in PORTFOLIO + BITS if a.name == witness.attack)
    fitted = FittedAttack(
        attack, witness.parameters, witness.resolution, witness.layout
    )
    if witness.layer == Layer.TRANSCRIPT:
        mechanism = view_transcript(mechanism)
    target = Target(mechanism, witness.pair)
    sampler = Sampler(mechanism, witness.pair, seed)
    test = SequentialTest(verdict_family(witness.claim).claim_only(), alpha)

    hits, seen = np.zeros(2, dtype=np.intp), 0
    first, scored, second, scored_neighbour = witness.counts
    round_ = 0
    while seen < limit and not test.refutes_claim:
        size = min(limit - seen, max(_SMALLEST_ROUND, math.ceil((_GROWTH - 1) * seen)))
        # The alternative: what the witness saw, and what was seen since.
        event = Events.single(
            witness.threshold,
            (first + int(hits[DATA]), second + int(hits[NEIGHBOUR])),
            (scored + seen, scored_neighbour + seen),
        )
        test.place_bets(event, size, size, 2 * (limit - seen))
        fresh = np.zeros(2, dtype=np.intp)
        for side in (DATA, NEIGHBOUR):
            for releases in sampler.batches(side, round_, size):
                scores = _scores(fitted, target, releases)
                fresh[side] += int((scores >= witness.threshold).sum())
        test.update(fresh[[DATA]], fresh[[NEIGHBOUR]], size, size)
        hits, seen, round_ = hits + fresh, seen + size, round_ + 1
    return Verification(
        name=witness.name,
        confirmed=test.refutes_claim,
        claim=witness.claim,
        relation=witness.pair.relation,
        confidence=1 - alpha,
        samples=seen,
        hits=int(hits[DATA]),
        hits_neighbour=int(hits[NEIGHBOUR]),
        log_evidence=float(test.log_wealth[0]),
        seed=seed,
    )


def _scores(fitted: FittedAttack, target: Target, batch: Batch) -> NDArray[np.float64]:
    """Score fresh outputs with the parameters that somebody wrote into a file."""
    try:
        return fitted.score(target, batch)
    except DPAuditError:
        raise
    except Exception as error:
        raise InputError(
            f"the witness's parameters do not fit its attack {fitted.attack.name!r}: "
            f"{type(error).__name__}: {error}"
        ) from error
