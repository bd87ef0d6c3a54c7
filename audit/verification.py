"""Replaying a witness on fresh randomness, with an error budget of its own."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks import BITS, PORTFOLIO, Target
from dpaudit.audit.betting.events import Events, reaching_tells
from dpaudit.audit.betting.evidence import SequentialTest
from dpaudit.audit.betting.families import verdict_family
from dpaudit.audit.betting.strategy import place_bets
from dpaudit.audit.canonical import Canon
from dpaudit.audit.game.fitted import BITS_ONLY, FittedAttack
from dpaudit.audit.judged import UNFOUNDED, PrintedResult
from dpaudit.audit.keeping.witness import Witness, grid_of
from dpaudit.audit.layers.layer import Layer, view_transcript
from dpaudit.audit.sampling.sampler import DATA, NEIGHBOUR, Sampler, Signs
from dpaudit.batches import Batch
from dpaudit.claims import Claim
from dpaudit.errors import DPAuditError, InputError
from dpaudit.mechanism import Mechanism
from dpaudit.neighbours import Relation
from dpaudit.printable import printable
from dpaudit.validation import check_confidence, check_count

__all__ = ["Verification", "verify"]

_SMALLEST_ROUND = 8
_GROWTH = 1.25
_KEPT = 500  # releases a side, for a last look at a violation
_FEWEST, _TIMES, _MOST = 1000, 10, 1_000_000


@dataclass(frozen=True)
class Verification(PrintedResult):
    """The outcome of re-testing a witness on fresh randomness.

    Parameters
    ----------
    name : str
    confirmed : bool
        Whether the event violates the claim, at `confidence`, in fresh releases. Never
        where these were seen not to be independent draws.
    claim : Claim
    relation : Relation
    confidence : float
    samples : int
        Fresh releases on either side.
    event : str
        In words.
    hits, hits_neighbour : int
        How many of them hit it.
    log_evidence : float
    seed : int
    warnings : tuple of str
        Where the mechanism that was drawn from is not the one that the witness names,
        or claims something else, whether the releases were fewer than the witness asks
        for, and signs that they were no independent draws, which is taken for granted.
    founded : bool
        Whether it is; if not, a first warning says so, and nothing was shown.
    """

    name: str
    confirmed: bool
    claim: Claim
    relation: Relation
    confidence: float
    samples: int
    event: str
    hits: int
    hits_neighbour: int
    log_evidence: float
    seed: int
    warnings: tuple[str, ...] = ()
    founded: bool = True

    def __str__(self) -> str:
        outcome = "CONFIRMED" if self.confirmed else "NOT CONFIRMED"
        outcome = outcome if self.founded else "NOT JUDGED (no verdict)"
        lines = (
            f"{printable(self.name)}: violation of {self.claim} under {self.relation} "
            f"{outcome} at confidence {self.confidence:g}",
            f"  event          {printable(self.event)} in {self.hits:,} of "
            f"{self.samples:,} fresh releases on D, {self.hits_neighbour:,} of "
            f"{self.samples:,} on D'",
            f"  evidence       e^{self.log_evidence:.1f} (seed {self.seed})",
            *(f"  WARNING        {printable(warning)}" for warning in self.warnings),
        )
        return "\n".join(lines)


def verify(
    witness: Witness,
    *,
    mechanism: Mechanism | Callable[..., Any] | None = None,
    confidence: float = 0.999,
    max_samples: int | None = None,
    seed: int | None = None,
    stop_when_confirmed: bool = True,
) -> Verification:
    """Test a witness's event on fresh releases.

    What is tested is the witness's claim, on the witness's pair, whatever the mechanism
    claims by itself. Where the two disagree, the result's `warnings` say so.

    Parameters
    ----------
    witness : Witness
    mechanism : Mechanism or callable, optional
        By default the one that the witness names, **which imports and runs its code**.
        With a mechanism nothing is imported.
    confidence : float, optional
        0.999 by default, whatever the witness says: who forges one might ask for
        little.
    max_samples : int, optional
        Releases a side. By default ten times what the audit needed by its own account,
        and at most a million, for who forges one might ask for years.
    seed : int, optional
        From the operating system by default: fresh randomness.
    stop_when_confirmed : bool
        Whether to stop as soon as the violation is confirmed. Otherwise `max_samples`
        releases a side are drawn: their number being fixed, and the event, the counts
        may go into a bound (`dpaudit.audit.bounds`, ``dpaudit bound``).

    Raises
    ------
    InputError
        If the witness contradicts itself, or names no importable mechanism and none is
        given, if the mechanism states its claim under another relation, if it asks for
        the very releases that the witness was found on, or if the witness's parameters
        or the mechanism do not fit its attack.
    MechanismError
        If the mechanism fails where it is asked for more than a release.
    """
    alpha = 1 - check_confidence("confidence", confidence)
    witness.check()
    wanted = max(_FEWEST, _TIMES * witness.samples)
    limit = min(wanted, _MOST)
    if max_samples is not None:
        wanted = limit = check_count("max_samples", max_samples)
    seed = witness.other_seed(seed)
    mechanism, warnings = witness.accused(mechanism)
    named = mechanism

    fitted, canon = _fitted(witness, seed)
    if witness.layer == Layer.TRANSCRIPT:
        mechanism = view_transcript(mechanism)
    target = Target(mechanism, witness.pair)
    sampler = Sampler(mechanism, witness.pair, seed)
    family = verdict_family(witness.claim).claim_only()
    test = SequentialTest(family, alpha)

    hits, seen = np.zeros(2, dtype=np.intp), 0
    first, scored = _at_most(_MOST, *witness.counts[:2])
    second, scored_neighbour = _at_most(_MOST, *witness.counts[2:])
    first_look: tuple[list[Batch], list[Batch]] = [], []
    kept: tuple[list[Batch], list[Batch]] = [], []
    while seen < limit and not (stop_when_confirmed and test.refutes_claim):
        size = min(limit - seen, max(_SMALLEST_ROUND, math.ceil((_GROWTH - 1) * seen)))
        # The alternative: what the witness saw, and what was seen since.
        event = Events.single(
            witness.threshold,
            (first + int(hits[DATA]), second + int(hits[NEIGHBOUR])),
            (scored + seen, scored_neighbour + seen),
        )
        place_bets([test], event, size, size, 2 * (limit - seen))
        fresh = np.zeros(2, dtype=np.intp)
        for side in (DATA, NEIGHBOUR):
            for releases in sampler.batches(side, size):
                if not seen:
                    first_look[side].append(releases)
                if seen < _KEPT:
                    kept[side].append(releases)
                scores = _scores(fitted, target, canon, releases)
                fresh[side] += int((scores >= witness.threshold).sum())
        test.update(fresh[[DATA]], fresh[[NEIGHBOUR]], size, size)
        hits, seen = hits + fresh, seen + size
    if seen < wanted and not test.refutes_claim:
        warnings.append(
            f"the witness asks for {wanted:,} releases a side; by default no more than "
            f"{_MOST:,} are drawn, and max_samples sets another limit"
        )
    confirmed = test.refutes_claim
    if confirmed and canon is not None:
        both = Batch.join(kept[DATA]), Batch.join(kept[NEIGHBOUR])
        if fitted.rests_on_bits(witness.threshold, family, 0, target, canon, both):
            confirmed = False
            warnings.append(BITS_ONLY)
    if not (reached := reaching_tells(witness.counts, witness.at_epsilon)):
        hits = seen - hits
    again = Sampler(mechanism, witness.pair, seed)
    signs = Signs.seen(sampler, named, lambda: _repeats(again, first_look))
    warnings += signs.warnings
    if signs.refute_it:
        warnings.insert(0, f"no verdict: {UNFOUNDED}")
    return Verification(
        name=witness.name,
        confirmed=confirmed and not signs.refute_it,
        claim=witness.claim,
        relation=witness.pair.relation,
        confidence=1 - alpha,
        samples=seen,
        event=fitted.attack.event(witness.threshold, reached=reached),
        hits=int(hits[DATA]),
        hits_neighbour=int(hits[NEIGHBOUR]),
        log_evidence=test.log_evidence,
        seed=seed,
        warnings=tuple(warnings),
        founded=not signs.refute_it,
    )


def _fitted(witness: Witness, seed: int) -> tuple[FittedAttack, Canon | None]:
    """Return what scores releases, and what makes them canonical unless bits count."""
    attack = next(a for a in PORTFOLIO + BITS if a.name == witness.attack)
    fitted = FittedAttack(
        attack, witness.parameters, witness.resolution, witness.layout, witness.offset
    )
    if attack in BITS:
        return fitted, None
    grids = {name: grid_of(grid) for name, grid in witness.canon.items()}
    return fitted, Canon(seed, 0, grids=grids)


def _repeats(sampler: Sampler, first_look: tuple[list[Batch], list[Batch]]) -> bool:
    """Say whether the same streams give the releases of the first round once more."""
    before = [Batch.join(batches) for batches in first_look]
    return all(
        Batch.join(sampler.batches(side, seen.size)).equals(seen)
        for side, seen in zip((DATA, NEIGHBOUR), before, strict=True)
    )


def _at_most(most: int, hits: int, scored: int) -> tuple[int, int]:
    """Return counts of that many scores at most, with the same share of hits.

    Beyond it nothing that is seen afresh would move an estimate, and a share of
    1 - 2^-54 is to a double that of a certain event.
    """
    return (hits, scored) if scored <= most else (hits * most // scored, most)


def _scores(
    fitted: FittedAttack, target: Target, canon: Canon | None, batch: Batch
) -> NDArray[np.float64]:
    """Score fresh outputs with the parameters of a file."""
    name = fitted.attack.name
    try:
        with np.errstate(all="ignore"):
            canonical = batch if canon is None else canon(batch)
            scores = fitted.score(target, canonical)
    except DPAuditError:
        raise
    except Exception as error:
        raise InputError(
            "the witness's parameters or the mechanism do not fit the attack "
            f"{name!r}: {type(error).__name__}: {printable(error)}"
        ) from error
    # More scores than outputs could be more hits than outputs, and prove anything.
    if scores.shape != (batch.size,):
        raise InputError(
            f"the witness's parameters do not fit the attack {name!r}: it gives scores "
            f"of shape {scores.shape} to {batch.size} outputs"
        )
    return scores
