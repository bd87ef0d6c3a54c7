"""Executions in which noisy values were looked at: transcripts, and their losses."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.chances import Chances
from dpaudit.audit.replay.comparison import Comparison, compare, loss
from dpaudit.audit.replay.composition import Composition, pure_epsilon
from dpaudit.audit.replay.executor import Trace, execute, execute_plainly
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
from dpaudit.audit.replay.tape import DECLARED, Lost
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
        plain = execute_plainly(mechanism, data, trace)
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
    known = [each.loss for each in (there, here) if not np.isnan(each.loss)]
    shown.loss = max(known, default=np.nan)
    unknown = len(known) < 2 and not shown.loss == np.inf
    spent, back_spent = Composition.of(there.compared), Composition.of(here.compared)
    possible = spent.holds(claim) and back_spent.holds(claim)
    promised = max(spent.promised, back_spent.promised)
    pure = pure_epsilon(claim)
    most = np.inf if pure is None else pure + 1e-9 * (1 + pure)
    # What is promised may be lost, or gained.
    over = shown.loss > promised + most or (shown.loss == np.inf and pure is not None)
    within = possible if pure is None else shown.loss + promised <= most
    beyond = promised > 0 and not (within or over or unknown)
    coins = [*first.tape.coins, *second.tape.coins]
    coins += [Lost(place, _PUBLIC) for place in (*there.public, *here.public)]
    if shown.loss == np.inf:
        # What is the same on both sides may be a coin with a public centre.
        coins += [Lost(place, _BARE) for place in there.unmoved]
        coins += [Lost(place, _BARE) for place in here.unmoved]
    if unknown:
        shown.followed = False
        place = there.unknown_at or here.unknown_at
        if place is not None:
            shown.find("coin", place, "noise of a form whose law is not known")
    finite = shown.loss < np.inf
    if promised:
        shown.loss += promised
    if shown.followed and finite and not (over or beyond):
        if possible or pure is not None:
            return
    shown.suspicious = True
    if (over and finite) or beyond or _exceeds(spent, claim):
        _say_costs(shown, max(there, here, key=lambda each: each.loss), claim)
    if coins:
        shown.followed = False
        for each in list(dict.fromkeys(coins))[:5]:
            shown.find("coin", each.place, each.why)
    shown.transcripts = shown.followed and not promised
    certain = shown.followed and sees == "transcript" and not coins
    shown.proven = bool(certain and over)
    if shown.proven:
        shown.findings = [
            replace(f, proof=True) if f.kind != "coin" else f for f in shown.findings
        ]
    else:
        shown.followed = False


_BARE = "noise is used as an ordinary number"
_PUBLIC = "a choice has the same probabilities on both sides, and may be hidden"


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
    unknown_at: str | None = None
    unmoved: list[str] = field(default_factory=list)
    public: list[str] = field(default_factory=list)

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
            hidden = one.how != DECLARED and not compared.singular
            if hidden and not compared.shift.any():
                made.unmoved.append(one.place)
                if isinstance(one.law, Chances):
                    made.public.append(one.place)
            if shown is not None and compared.singular:
                shown.find(
                    "release", one.place, compared.singular, neighbour=other.place
                )
            elif shown is not None and compared.note is not None:
                kind, text = compared.note
                shown.find(kind, one.place, text, neighbour=other.place)
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
        self.compared.append(compared)
        if compared.bound is not None:
            promised = pure_epsilon(compared.bound)
            step_loss = np.nan if promised is None else promised
        else:
            self.loss += step_loss
        self.steps.append(step_at(place, compared, step_loss))
        unknown = compared.bound is None and compared.note is None
        if unknown and np.isnan(step_loss) and self.unknown_at is None:
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


def _say_costs(shown: Judgement, worst: _Transcript, claim: Claim) -> None:
    """Say which steps cost more than the claim has, or that together they do."""
    pure = pure_epsilon(claim)
    alone = [
        step
        for step, compared in zip(worst.steps, worst.compared, strict=True)
        if (
            step.loss > pure
            if pure is not None
            else _exceeds(Composition.of([compared]), claim)
        )
    ]
    for step in alone[:5]:
        shown.find("distance", step.place, distance_words(step))
    if not alone and worst.steps:
        costly = max(worst.steps, key=lambda step: step.loss)
        shown.find(
            "budget",
            costly.place,
            f"the losses of {len(worst.steps)} steps add up to {shown.loss:.6g}",
        )
