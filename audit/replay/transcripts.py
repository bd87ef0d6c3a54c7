"""Executions in which noisy values were looked at: transcripts, and their losses."""

from dataclasses import replace
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.composition import Composition, pure_epsilon
from dpaudit.audit.replay.executor import Trace, execute
from dpaudit.audit.replay.given_back import Transcript
from dpaudit.audit.replay.judgement import (
    Judgement,
    distance_words,
    fail_alike,
    unconfirmed,
)
from dpaudit.audit.replay.mixtures import sampled_transcript
from dpaudit.audit.replay.sampled import (
    NotThroughNoise,
    flips_by_row,
)
from dpaudit.audit.replay.tape import Lost
from dpaudit.claims import Claim
from dpaudit.neighbours import Pair

__all__ = ["judge_replayed"]


def judge_replayed(
    mechanism: Any,
    claim: Claim,
    sees: str,
    first: Trace,
    second: Trace,
    shown: Judgement,
) -> None:
    """Replay the noisy values of either side on the other, and sum up their losses.

    Parameters
    ----------
    mechanism : Mechanism or callable
    claim : Claim
    sees : {"release", "transcript"}
    first, second : Trace
        Executions on D and on D'.
    shown : Judgement
        Takes what is found.
    """
    pair, seed, shown.executions = shown.pair, first.tape.seed, 3
    if fail_alike(mechanism, first, second, shown):
        return
    for trace, data in ((first, pair.data), (second, pair.neighbour)):
        reading = trace.tape.reading
        plain = execute(mechanism, data, seed, follows=False, reading=reading)
        trace.returned = plain.returned
        lost = [*trace.tape.lost, *plain.tape.lost]
        if lost or not _same_release(plain, trace):
            unconfirmed(shown, lost, trace)
    sides = (first, second), (second, first)
    found: list[Transcript] = []
    try:
        for (trace, other), way, note in zip(
            sides, (pair, pair.swapped), (shown, None), strict=True
        ):
            found.append(_held_against(mechanism, way, trace, other, note))
    except NotThroughNoise as error:
        shown.followed, shown.suspicious = False, True
        shown.find("coin", error.place, error.why)
        return
    there, here = found
    # What is the other dataset one way round is the own one the other way.
    ways = zip(there.executions, reversed(here.executions), strict=True)
    shown.executions = 2 + max(sum(way) for way in ways)
    for lost_place in (*there.lost, *here.lost):
        shown.followed = False
        shown.find("coin", lost_place.place, lost_place.why)
    shown.steps = there.steps
    shown.loss = max(there.loss, here.loss)
    spent = Composition.of(there.composed)
    possible = spent.holds(claim) and Composition.of(here.composed).holds(claim)
    pure = pure_epsilon(claim)
    over = pure is not None and shown.loss > pure + 1e-9 * (1 + pure)
    unknown = not np.isfinite(shown.loss) and not shown.loss == np.inf
    coins = [*first.tape.coins, *second.tape.coins]
    coins += [*there.coins, *here.coins]
    if shown.loss == np.inf:
        # What is the same on both sides may be a coin with a public centre.
        coins += [Lost(place, _BARE) for place in there.unmoved]
        coins += [Lost(place, _BARE) for place in here.unmoved]
    if unknown:
        shown.followed = False
        shown.find("coin", there.unknown_at, "noise of a form whose law is not known")
    if shown.followed and shown.loss < np.inf and not over:
        if possible or pure is not None:
            return
    shown.suspicious = True
    if (over and shown.loss < np.inf) or _exceeds(spent, claim):
        _say_costs(shown, there, claim)
    if coins:
        shown.followed = False
        for each in list(dict.fromkeys(coins))[:5]:
            shown.find("coin", each.place, each.why)
    shown.transcripts = shown.followed
    certain = shown.followed and sees == "transcript" and not coins
    shown.proven = bool(certain and over)
    if shown.proven:
        shown.findings = [
            replace(f, proof=True) if f.kind != "coin" else f for f in shown.findings
        ]
    else:
        shown.followed = False


_BARE = "noise is used as an ordinary number"


def _held_against(
    mechanism: Any, pair: Pair, trace: Trace, other: Trace, shown: Judgement | None
) -> Transcript:
    """Return the transcript of an execution on D, given back on D'."""
    shapes = flips_by_row(pair, trace, other)
    if shapes[0] and not trace.tape.reading.public:
        if shown is not None:
            shown.sampled = True
        return sampled_transcript(mechanism, pair, trace, shapes, shown)
    tape = trace.tape
    again = execute(
        mechanism,
        pair.neighbour,
        tape.seed,
        script=tape.observations,
        reading=tape.reading,
    )
    return Transcript.of(mechanism, trace, again, shown)


def _same_release(plain: Trace, trace: Trace) -> bool:
    if plain.layout != trace.layout or len(plain.value) != len(trace.value):
        return False
    return _close(plain.value, trace.value)


def _close(value: Array, other: Array) -> bool:
    return bool(np.allclose(value, other, rtol=1e-7, atol=1e-9, equal_nan=True))


def _exceeds(spent: Composition, claim: Claim) -> bool:
    """Say whether the steps, were their distances fixed, would break the claim."""
    return pure_epsilon(claim) is None and spent.refutes(claim)


def _say_costs(shown: Judgement, there: Transcript, claim: Claim) -> None:
    """Say which steps cost more than the claim has, or that together they do."""
    pure = pure_epsilon(claim)
    alone = [
        step
        for step, compared in zip(there.steps, there.compared, strict=True)
        if (
            step.loss > pure
            if pure is not None
            else _exceeds(Composition.of([compared]), claim)
        )
    ]
    for step in alone[:5]:
        shown.find("distance", step.place, distance_words(step))
    if not alone and there.steps:
        worst = max(there.steps, key=lambda step: step.loss)
        shown.find(
            "budget",
            worst.place,
            f"the losses of {len(there.steps)} steps add up to {there.loss:.6g}",
        )
