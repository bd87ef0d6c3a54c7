"""Executions in which noisy values were looked at: transcripts, and their losses."""

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.execute.executor import Trace, execute, execute_plainly
from dpaudit.audit.replay.follow.tape import Unfollowed
from dpaudit.audit.replay.judge.given_back import Transcript
from dpaudit.audit.replay.judge.hidden import Repeat, in_any_order
from dpaudit.audit.replay.judge.judgement import (
    Judgement,
    distance_words,
    fail_alike,
    unconfirmed,
)
from dpaudit.audit.replay.judge.mixtures import sampled_transcript
from dpaudit.audit.replay.judge.sampled import NotThroughNoise, flips_by_row
from dpaudit.audit.replay.laws.amplification import SampledComparison
from dpaudit.audit.replay.laws.composition import Composition, pure_epsilon
from dpaudit.claims import Claim
from dpaudit.neighbours import Pair

__all__ = ["judge_replayed"]


def judge_replayed(
    mechanism: Any,
    claim: Claim,
    sees: str,
    first: Trace,
    second: Trace,
    judgement: Judgement,
) -> None:
    """Replay the noisy values of either side on the other, and sum up their losses.

    Parameters
    ----------
    mechanism : Mechanism or callable
    claim : Claim
    sees : {"release", "transcript"}
    first, second : Trace
        Executions on D and on D'.
    judgement : Judgement
        Takes what is found.
    """
    pair, judgement.executions = judgement.pair, 3
    if fail_alike(mechanism, first, second, judgement):
        return
    for trace, data in ((first, pair.data), (second, pair.neighbour)):
        plain = execute_plainly(mechanism, data, trace)
        trace.returned = plain.returned
        unfollowed = [*trace.tape.unfollowed, *plain.tape.unfollowed]
        if unfollowed or not _same_release(plain, trace):
            unconfirmed(judgement, unfollowed, trace)
    try:
        there = _held_against(mechanism, pair, first, second, judgement)
        here = _held_against(mechanism, pair.swapped, second, first, None)
    except NotThroughNoise as error:
        judgement.followed, judgement.suspicious = False, True
        judgement.find("coin", error.place, error.why)
        return
    # What is the other dataset one way round is the own one the other way.
    ways = zip(there.executions, reversed(here.executions), strict=True)
    judgement.executions = 2 + max(sum(way) for way in ways)
    for lost_place in (*there.unfollowed, *here.unfollowed):
        judgement.followed = False
        judgement.find("coin", lost_place.place, lost_place.why)
    judgement.steps = there.steps
    known = [each.loss for each in (there, here) if not np.isnan(each.loss)]
    judgement.loss = max(known, default=np.nan)
    unknown = len(known) < 2 and not judgement.loss == np.inf
    spent, back_spent = Composition.of(there.composed), Composition.of(here.composed)
    possible = spent.holds(claim) and back_spent.holds(claim)
    promised = max(spent.promised, back_spent.promised)
    pure = pure_epsilon(claim)
    most = np.inf if pure is None else pure + 1e-9 * (1 + pure)
    # What is promised may be lost, or gained.
    over = judgement.loss > promised + most or (
        judgement.loss == np.inf and pure is not None
    )
    within = possible if pure is None else judgement.loss + promised <= most
    beyond = promised > 0 and not (within or over or unknown)
    coins = [*first.tape.coins, *second.tape.coins]
    coins += [*there.coins, *here.coins]
    if judgement.loss == np.inf:
        # What is the same on both sides may be a coin with a public centre.
        coins += [Unfollowed(place, _BARE) for place in there.unmoved]
        coins += [Unfollowed(place, _BARE) for place in here.unmoved]
    if unknown:
        judgement.followed = False
        place = there.unknown_at or here.unknown_at
        if place is not None:
            judgement.find("coin", place, "noise of a form whose law is not known")
    finite = judgement.loss < np.inf
    if promised:
        judgement.loss += promised
    if judgement.followed and finite and not (over or beyond):
        if possible or pure is not None:
            return
    judgement.suspicious = True
    judgement.bare = judgement.loss == np.inf
    if there.loss == there.loss and not here.loss > there.loss:
        judgement.again = _once_more(mechanism, pair, first, second, there.loss)
    else:
        judgement.again = _once_more(mechanism, pair.swapped, second, first, here.loss)
    if (over and finite) or beyond or _exceeds(spent, claim):
        _say_costs(judgement, max(there, here, key=lambda each: each.loss), claim)
    if coins:
        judgement.followed = False
        for each in list(dict.fromkeys(coins))[:5]:
            judgement.find("coin", each.place, each.why)
    judgement.transcripts = judgement.followed and not promised
    certain = judgement.followed and sees == "transcript" and not coins
    judgement.proven = bool(certain and over)
    if judgement.proven:
        judgement.findings = [
            replace(f, proof=True) if f.kind != "coin" else f
            for f in judgement.findings
        ]
    else:
        judgement.followed = False


_BARE = "noise is used as an ordinary number"


def _held_against(
    mechanism: Any, pair: Pair, trace: Trace, other: Trace, judgement: Judgement | None
) -> Transcript:
    """Return the transcript of an execution on D, given back on D'."""
    tape = trace.tape
    shapes = flips_by_row(pair, trace, other)
    if shapes[0] and not tape.mode.public:
        if judgement is not None:
            judgement.sampled = True
        return sampled_transcript(mechanism, pair, trace, shapes, judgement)
    again = execute(
        mechanism,
        pair.neighbour,
        tape.seed,
        script=tape.observations,
        mode=tape.mode,
    )
    return Transcript.of(mechanism, trace, again, judgement)


def _once_more(
    mechanism: Any, pair: Pair, trace: Trace, other: Trace, known: float
) -> Repeat:
    """Return what gives the transcript of D back again, on D and on D'."""

    def on_its_own() -> bool:
        tape = trace.tape
        own = execute(
            mechanism,
            pair.data,
            tape.seed,
            script=tape.observations,
            mode=tape.mode,
        )
        here = Transcript.of(mechanism, trace, own, None)
        moved = any(
            isinstance(each, SampledComparison) or each.moved or each.scales_differ
            for each in here.by_step
        )
        return not (here.unfollowed or moved or here.loss == np.inf)

    def on_the_other() -> tuple[int, int] | None:
        try:
            there = _held_against(mechanism, pair, trace, other, None)
        except NotThroughNoise:
            return None
        alike = bool(np.isclose(there.loss, known, rtol=1e-6, equal_nan=True))
        return there.executions if alike and not there.unfollowed else None

    def again(turn: int) -> tuple[bool, int]:
        # What was executed counts, in whatever order.
        alike, executions = in_any_order(
            trace.tape.seed, turn, on_its_own, on_the_other
        )
        one, two = (0, 1) if executions is None else executions
        return alike and executions is not None, max(1 + one, two)

    return again


def _same_release(plain: Trace, trace: Trace) -> bool:
    if plain.layout != trace.layout or len(plain.value) != len(trace.value):
        return False
    return _close(plain.value, trace.value)


def _close(value: Array, other: Array) -> bool:
    return bool(np.allclose(value, other, rtol=1e-7, atol=1e-9, equal_nan=True))


def _exceeds(spent: Composition, claim: Claim) -> bool:
    """Say whether the steps, were their distances fixed, would break the claim."""
    return pure_epsilon(claim) is None and spent.refutes(claim)


def _say_costs(judgement: Judgement, worst: Transcript, claim: Claim) -> None:
    """Say which steps cost more than the claim has, or that together they do."""
    pure, losses = pure_epsilon(claim), worst.steps.losses
    if pure is not None:
        costly = iter(np.flatnonzero(losses > pure).tolist())
    else:
        costly = (
            number
            for number, compared in enumerate(worst.by_step)
            if _exceeds(Composition.of([compared]), claim)
        )
    alone = [worst.steps[number] for number in islice(costly, 5)]
    for step in alone:
        judgement.find("distance", step.place, distance_words(step))
    if not alone and worst.steps:
        known = np.where(np.isnan(losses), -np.inf, losses)
        judgement.find(
            "budget",
            worst.steps[int(np.argmax(known))].place,
            f"the losses of {len(worst.steps)} steps add up to {judgement.loss:.6g}",
        )
