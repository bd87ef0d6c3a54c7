"""`replay`: a mechanism held to its claim by executing it twice on either dataset.

And `verify_replay`, which does so again with what a witness says.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from dpaudit.audit.harness import pair_source
from dpaudit.audit.keeping.witness import Witness
from dpaudit.audit.replay.execute.system import global_generators_kept
from dpaudit.audit.replay.follow.ending import Ended, TimeLimit
from dpaudit.audit.replay.follow.foreign import ForeignGenerators
from dpaudit.audit.replay.follow.logs import DrawLog
from dpaudit.audit.replay.follow.reached import load_imports, place_of_definition
from dpaudit.audit.replay.judge.judge import judge
from dpaudit.audit.replay.judge.judgement import OTHER_RELEASE
from dpaudit.audit.replay.judge.settling import Settlement
from dpaudit.audit.replay.result import (
    Explored,
    ReplayResult,
    ReplayVerdict,
    ReplayVerification,
)
from dpaudit.audit.replay.witness import ReplayWitness
from dpaudit.audit.replay.worst import WorstPair
from dpaudit.audit.sampling.draws import single_threaded
from dpaudit.audit.settings import (
    Budget,
    Run,
    name_of,
    refuse,
    refuse_with_objects,
    stated,
    stored_mechanism,
)
from dpaudit.claims import Claim
from dpaudit.domains import Domain
from dpaudit.errors import InputError
from dpaudit.mechanism import Mechanism
from dpaudit.neighbours import Pair, Relation
from dpaudit.object_pairs import ObjectPair
from dpaudit.streams import put_back, stream
from dpaudit.strict_json import read_json
from dpaudit.validation import check_confidence, check_count, check_name

__all__ = ["EXECUTIONS", "load_witness", "replay", "verify_replay"]

EXECUTIONS = 200
"""Most of them, on either side, that a replay adds for a statistical test."""

_NOTHING_UNSEEN = "there is no randomness that is not seen (executed again {} times)"
_TAKEN = "the noise made at {} has the law that a simulation of it fits ({})"
"""What a refutation takes for granted that rests on the noise that was recorded, and
what a loss does."""

_NEIGHBOURS = "the two datasets, of type {}, are neighbours"
_WAS_THERE = (
    "a generator that was there before is used, which the code does not come to by a "
    "name, and cannot be followed"
)


def replay(
    mechanism: Mechanism | Callable[..., Any],
    *,
    pair: Pair | tuple[Any, Any] | None = None,
    domain: Domain | str | None = None,
    relation: Relation | str | None = None,
    claim: Claim | None = None,
    confidence: float = 0.999,
    seed: int = 0,
    sees: Literal["release", "transcript"] = "release",
    batches: Literal["secret", "public"] = "secret",
    budget: Budget | int = Budget(EXECUTIONS),
    run: Run = Run(),
) -> ReplayResult:
    """Record a mechanism on one dataset, replay it on its neighbour, and compare.

    Parameters
    ----------
    mechanism : Mechanism or callable
    pair, domain, relation, claim
        As for `dpaudit.audit.audit`. With a domain, about 70 pairs are tried. Each
        execution gets its own copy of a dataset.
    confidence : float
        In (0, 1), of the statistical tests that follow where something was found that
        is no proof. A true claim is refuted with probability at most 1 - confidence.
        So is one whose noise is not recorded, by numbers that seem to have none
        (`dpaudit.audit.replay.judge.repeated`).
    seed : int
        >= 0. The same seed gives the same result.
    sees : {"release", "transcript"}
        To whom the claim applies: to those who see the release, or those who see every
        noisy value on the way too. The latter is what a proof by composition promises;
        a proof that hides values (a noisy maximum, secret batches) does not.
    batches : {"secret", "public"}
        Whether the flips, permutations and choices that make batches of rows may be
        hidden, or are values that everybody sees. If they are secret, and each row is
        in a batch by a flip of its own, it is hidden whether the row that differs is,
        and known of the others (`dpaudit.audit.replay.judge.sampled`).
    budget : Budget or int
        Most executions a side of that test; a number is just that. No further pair is
        tried after its seconds: one always is, and what it proves of noise that was
        recorded is executed again. An execution that takes longer than these seconds
        (than one second, if they are fewer) is ended, and a test of releases that takes
        three times as long. To refine, or not to stop, is refused.
    run : Run
        Its name and reference, and the store, where the statistical test is kept;
        others of its fields are refused.

    Returns
    -------
    ReplayResult

    Raises
    ------
    InputError
        If an argument is not allowed, or the mechanism refuses every pair.

    Examples
    --------
    >>> from dpaudit import Pair, PureDP
    >>> def mean(data, rng):
    ...     return (data.sum() + rng.laplace(scale=1.0)) / len(data)
    >>> pair = Pair([[0.2], [0.5]], [[0.2], [0.5], [1.0]])
    >>> result = replay(mean, pair=pair, claim=PureDP(1.0))
    >>> str(result.verdict), result.proof, result.findings[0].kind
    ('REFUTED', True, 'scale')
    """
    promised = stated(mechanism, "claim", claim)
    if not isinstance(promised, Claim):
        raise InputError(f"claim must be a Claim, got {promised!r}")
    alpha = 1 - check_confidence("confidence", confidence)
    budget = Budget.of(budget)
    refuse("replay", budget, "refine", "stop")
    refuse("replay", run, "attacks", "executor", "progress", "should_stop")
    refuse_with_objects("a replay", pair, run)
    seed = check_count("seed", seed, minimum=0)
    check_name("sees", sees, ("release", "transcript"))
    public = check_name("batches", batches, ("secret", "public")) == "public"
    source = pair_source(mechanism, pair, domain, relation, seed)
    how: dict[str, Any] = {"seed": seed, "sees": sees, "public": public}
    judged = partial(judge, mechanism, claim=promised, **how)
    begun = time.perf_counter()
    until = math.inf if budget.seconds is None else begun + budget.seconds
    shown_as = run.name or name_of(mechanism)
    clock = TimeLimit(budget.seconds)
    with clock, DrawLog() as log, global_generators_kept(), put_back():
        load_imports(mechanism)
        with single_threaded(), ForeignGenerators() as watch:
            pairs = WorstPair(source, judged, stream(seed), until)
            worst = pairs.found()
            if watch.used():
                worst.withdraw(place_of_definition(mechanism), _WAS_THERE)
                # It says why an ordinary execution gives another release.
                worst.findings.sort(key=lambda each: each.message == OTHER_RELEASE)
            elif worst.proven:
                worst = pairs.shrunk()
        settled = Settlement(
            mechanism,
            worst,
            log,
            pairs.opened,
            until,
            options={
                "pair": worst.pair,
                "claim": promised,
                "confidence": 1 - alpha,
                "seed": seed,
                "budget": budget.releases,
            },
            budget=replace(budget, seconds=budget.seconds and clock.seconds),
            run=replace(run, name=shown_as),
        )
        try:
            settled.settle()
        except Ended as ended:
            settled.withdraw(ended.why, ended.place)
    refuted, witness = settled.refuted, settled.witness
    if refuted and not worst.proven:
        worst.findings = worst.findings.with_proof(1 - alpha)
    told: dict[str, Any] = {
        "name": shown_as,
        "claim": promised,
        "pair": worst.pair,
        "sees": sees,
        "confidence": 1 - alpha,
        "proof": worst.proven,
        "findings": tuple(worst.findings.placed(place_of_definition(mechanism))),
        "repeats": settled.repeats,
        "seed": seed,
        "assumes": ", and ".join(_taken_for_granted(settled)),
    }
    if refuted and witness is None and worst.pair.rows is not None:
        stored = stored_mechanism(mechanism, run.reference)
        witness = ReplayWitness(**told, mechanism=stored, batches=batches)
    # Of noise that was not followed nothing is in the number.
    unknown = not worst.proven and any(each.kind == "coin" for each in worst.findings)
    verdict = ReplayVerdict.NOT_REFUTED
    if refuted:
        verdict = ReplayVerdict.REFUTED
    elif not worst.followed:
        verdict = ReplayVerdict.NOT_FOLLOWED
    return ReplayResult(
        **told,
        verdict=verdict,
        relation=worst.pair.relation,
        batches="public" if public else "secret" if worst.sampled else "",
        steps=worst.steps,
        executions=pairs.executions + settled.executions,
        samples=settled.samples,
        event=settled.event if refuted else None,
        pairs=pairs.tried,
        loss=math.nan if unknown else float(worst.loss),
        delta=worst.delta
        if worst.proven or not (unknown or worst.suspicious)
        else None,
        seconds=time.perf_counter() - begun,
        witness=witness,
        neighbours=pairs.words,
        assumed=(source.domain.note or None) if source.domain else None,
        primitives=tuple(settled.primitives),
        explored=Explored.of(worst.turns, worst.branches, 1 - alpha),
    )


def _taken_for_granted(settled: Settlement) -> Iterator[str]:
    """Yield what the outcome rests on."""
    worst, pair = settled.worst, settled.worst.pair
    if settled.refuted and settled.exact and not worst.bare:
        yield _NOTHING_UNSEEN.format(settled.repeats)
    if worst.taken and not worst.bare and (settled.exact or not settled.refuted):
        yield _TAKEN.format(worst.taken[0].place, worst.taken[0].why)
    if settled.refuted:
        yield from _rests_on(settled)
        if isinstance(pair, ObjectPair) and not pair.checked:
            yield _NEIGHBOURS.format(type(pair.data).__name__)


def _rests_on(settled: Settlement) -> list[str]:
    """Return what a refutation takes for granted of primitives that are not trusted."""
    refuted = {each.name for each in settled.primitives if each.refuted}
    if refuted and not settled.exact:
        return [f"each call of {' and '.join(sorted(refuted))} draws noise of its own"]
    if settled.exact and not settled.worst.bare:
        return [
            f"{each.name} keeps its declaration (not refuted in {each.releases:,} "
            "releases)"
            for each in settled.primitives
        ]
    return []


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

    Where the refutation is a proof, so is its confirmation.

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
    seed = witness.other_seed(seed)
    mechanism, warnings = witness.accused(mechanism)
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
