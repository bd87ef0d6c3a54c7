"""Executions in which noisy values were looked at: transcripts, and their losses."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.chances import Chances
from dpaudit.audit.replay.comparison import Comparison, compare, loss
from dpaudit.audit.replay.composition import Composition, pure_epsilon
from dpaudit.audit.replay.executor import Trace, execute
from dpaudit.audit.replay.judgement import (
    Judgement,
    distance_words,
    fail_alike,
    of_entry,
    returned_at,
    step_at,
    unconfirmed,
)
from dpaudit.audit.replay.result import Step
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
    pair, seed, reading = shown.pair, first.tape.seed, first.tape.reading
    if fail_alike(mechanism, first, second, shown):
        return
    for trace, data in ((first, pair.data), (second, pair.neighbour)):
        plain = execute(mechanism, data, seed, follows=False)
        trace.returned = plain.returned
        lost = [*trace.tape.lost, *plain.tape.lost]
        if lost or not _same_release(plain, trace):
            unconfirmed(shown, lost, trace)
    script = first.tape.observations
    again = execute(mechanism, pair.neighbour, seed, script=script, reading=reading)
    script = second.tape.observations
    back = execute(mechanism, pair.data, seed, script=script, reading=reading)
    for lost_place in (*again.tape.lost, *back.tape.lost):
        shown.followed = False
        shown.find("coin", lost_place.place, lost_place.why)
    there = _Transcript.of(mechanism, first, again, pair, shown)
    here = _Transcript.of(mechanism, second, back, pair, None)
    shown.steps = there.steps
    shown.loss = max(there.loss, here.loss)
    spent = Composition.of(there.compared)
    possible = spent.holds(claim) and Composition.of(here.compared).holds(claim)
    pure = pure_epsilon(claim)
    over = pure is not None and shown.loss > pure + 1e-9 * (1 + pure)
    unknown = not np.isfinite(shown.loss) and not shown.loss == np.inf
    coins = [*first.tape.coins, *second.tape.coins]
    coins += [Lost(place, _HIDDEN) for place in (*there.hidden, *here.hidden)]
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
_HIDDEN = "a choice, or a flip, may be hidden"


def _same_release(plain: Trace, trace: Trace) -> bool:
    if plain.layout != trace.layout or len(plain.value) != len(trace.value):
        return False
    return _close(plain.value, trace.value)


def _close(value: Array, other: Array) -> bool:
    return bool(np.allclose(value, other, rtol=1e-7, atol=1e-9, equal_nan=True))


def _exceeds(spent: Composition, claim: Claim) -> bool:
    """Say whether the steps, were their distances fixed, would break the claim."""
    return pure_epsilon(claim) is None and spent.refutes(claim)


@dataclass(eq=False)
class _Transcript:
    """A transcript of one dataset, and what it is on the other."""

    loss: float
    compared: list[Comparison]
    steps: list[Step]
    unknown_at: str = "?"
    unmoved: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        mechanism: Any,
        trace: Trace,
        again: Trace,
        pair: Pair,
        shown: Judgement | None,
    ) -> "_Transcript":
        made = cls(0.0, [], [])
        values, others = trace.tape.observations, again.tape.observations
        for one, other in zip(values, others, strict=False):
            compared = compare(one.law, other.law)
            step_loss = loss(one.law, other.law, one.value)
            made._add(one.place, compared, step_loss)
            unmoved = not compared.singular and not compared.shift.any()
            if unmoved:
                made.unmoved.append(one.place)
            if isinstance(one.law, Chances) and (unmoved or one.law.kind == "flip"):
                made.hidden.append(one.place)
            if shown is not None and compared.singular:
                shown.find(
                    "release", one.place, compared.singular, neighbour=other.place
                )
            elif shown is not None and compared.scales_differ:
                unit = int(np.argmax(~compared.alike))
                shown.find(
                    "scale",
                    one.place,
                    f"the scale of the noise is {compared.scale[unit]:.6g} on D and "
                    f"{compared.other_scale[unit]:.6g} on D'",
                    neighbour=other.place,
                )
        if again.tape.diverged is not None or len(others) < len(values):
            made.loss = np.inf
            if again.tape.diverged is not None and again.tape.left_at_choice:
                made.hidden.append(again.tape.diverged.place)
            if shown is not None:
                _say_structure(shown, trace, again)
            return made
        if trace.layout != again.layout:
            made.loss = np.inf
            if shown is not None:
                shown.find(
                    "structure",
                    returned_at(mechanism, trace),
                    f"the release is {trace.layout} on D and {again.layout} on D', "
                    "all noisy values being the same",
                )
            return made
        compared = compare(trace.law, again.law)
        if compared.singular:
            made.loss = np.inf
            if shown is not None:
                kind, where = of_entry(mechanism, trace, compared.entry)
                shown.find(
                    kind,
                    where,
                    f"{compared.singular}, all noisy values being the same",
                )
        elif len(compared.shift) or not compared.known:
            place = "?"
            if len(trace.law.draw):
                place = trace.tape.place_of(int(trace.law.draw[0]))
            made._add(place, compared, loss(trace.law, again.law, trace.value))
        return made

    def _add(self, place: str, compared: Comparison, step_loss: float) -> None:
        self.loss += step_loss
        self.compared.append(compared)
        self.steps.append(step_at(place, compared, step_loss))
        if np.isnan(step_loss) and self.unknown_at == "?":
            self.unknown_at = place


def _say_structure(shown: Judgement, trace: Trace, again: Trace) -> None:
    values, others = trace.tape.observations, again.tape.observations
    diverged = again.tape.diverged
    if diverged is not None:
        missing = len(others) < len(values)
        where = values[len(others)].place if missing else diverged.place
        shown.find("structure", where, diverged.why, neighbour=diverged.place)
        return
    fewer = len(values) - len(others)
    shown.find(
        "structure",
        values[len(others)].place,
        f"{fewer} noisy value(s) on D that are not on D'",
        neighbour="",
    )


def _say_costs(shown: Judgement, there: _Transcript, claim: Claim) -> None:
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
