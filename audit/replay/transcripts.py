"""Executions in which noisy values were looked at: transcripts, and their losses."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.comparison import Comparison, compare, loss, unit_losses
from dpaudit.audit.replay.composition import Composition, pure_epsilon
from dpaudit.audit.replay.executor import Trace, execute
from dpaudit.audit.replay.judgement import (
    Judgement,
    distance_words,
    fail_alike,
    family_names,
    of_entry,
    returned_at,
    step_at,
    unconfirmed,
)
from dpaudit.audit.replay.laws import Family
from dpaudit.audit.replay.observations import Observation, Run
from dpaudit.audit.replay.steps import Steps
from dpaudit.audit.replay.tape import Lost
from dpaudit.claims import Claim

__all__ = ["judge_replayed"]

_RUN = 10_000  # noisy values that are compared at once


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
    pair, seed, eager = shown.pair, first.tape.seed, first.tape.eager
    if fail_alike(mechanism, first, second, shown):
        return
    for trace, data in ((first, pair.data), (second, pair.neighbour)):
        plain = execute(mechanism, data, seed, follows=False)
        trace.returned = plain.returned
        lost = [*trace.tape.lost, *plain.tape.lost]
        if lost or not _same_release(plain, trace):
            unconfirmed(shown, lost, trace)
    script = first.tape.observations
    again = execute(mechanism, pair.neighbour, seed, script=script, eager=eager)
    found = Judgement(shown.pair)
    there = _Transcript.of(mechanism, first, again, found)
    again_lost = again.tape.lost
    del again  # a trace may be large
    script = second.tape.observations
    back = execute(mechanism, pair.data, seed, script=script, eager=eager)
    here = _Transcript.of(mechanism, second, back, None)
    for lost_place in (*again_lost, *back.tape.lost):
        shown.followed = False
        shown.find("coin", lost_place.place, lost_place.why)
    shown.findings += found.findings
    shown.steps = there.steps
    shown.loss = max(there.loss, here.loss)
    spent, back_spent = (
        Composition.of([compared for compared, _ in each.compared])
        for each in (there, here)
    )
    possible = spent.holds(claim) and back_spent.holds(claim)
    pure = pure_epsilon(claim)
    over = pure is not None and shown.loss > pure + 1e-9 * (1 + pure)
    unknown = not np.isfinite(shown.loss) and not shown.loss == np.inf
    coins = [*first.tape.coins, *second.tape.coins]
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

    loss: float = 0.0
    # With how many units each noisy value has, of those that were compared at once.
    compared: list[tuple[Comparison, NDArray[np.intp]]] = field(default_factory=list)
    steps: Steps = field(default_factory=Steps)
    unknown_at: str = "?"
    # Places, in their order.
    unmoved: dict[str, None] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        mechanism: Any,
        trace: Trace,
        again: Trace,
        shown: Judgement | None,
    ) -> "_Transcript":
        made = cls()
        values, others = trace.tape.observations, again.tape.observations
        count = min(len(values), len(others))
        for start in range(0, count, _RUN):
            stop = min(start + _RUN, count)
            runs = values.run(start, stop), others.run(start, stop)
            if not made._take(*runs, shown):
                for number in range(start, stop):
                    made._take_one(values[number], others[number], shown)
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

    def _take(
        self, run: Run | None, other: Run | None, shown: Judgement | None
    ) -> bool:
        """Compare many noisy values at once; False if it takes one at a time."""
        if run is None or other is None:
            return False
        if not np.array_equal(run.entries, other.entries):
            return False
        compared = compare(run.law, other.law)
        if compared.singular or not compared.known:
            return False
        count = len(run.places)
        step = np.repeat(np.arange(count), run.units)
        losses, l1, square = (
            np.bincount(step, each, minlength=count)
            for each in (
                unit_losses(run.law, other.law, run.value),
                np.abs(compared.shift),
                compared.shift**2,
            )
        )
        scale = np.full(count, np.inf)
        np.minimum.at(scale, step, compared.scale)
        kinds = np.zeros(count, dtype=np.intp)
        np.bitwise_or.at(kinds, step, 1 << compared.family)
        names = {each: _names(each) for each in np.unique(kinds).tolist()}
        numbers = [np.where(run.units, scale, 0.0), l1, np.sqrt(square), losses]
        self.steps.extend(
            run.places, [names[each] for each in kinds.tolist()], np.stack(numbers, 1)
        )
        self.compared.append((compared, run.units))
        self.loss += float(losses.sum())
        for number in np.flatnonzero(np.isnan(losses))[:1].tolist():
            self._not_known(run.places[number])
        still = np.flatnonzero(l1 == 0).tolist()
        self.unmoved.update(dict.fromkeys(run.places[number] for number in still))
        if shown is not None:
            seen = set()
            for unit in np.flatnonzero(~compared.alike).tolist():
                number = int(step[unit])
                if run.places[number] not in seen:
                    seen.add(run.places[number])
                    _say_scales(
                        shown,
                        (run.places[number], other.places[number]),
                        (compared.scale[unit], compared.other_scale[unit]),
                    )
        return True

    def _take_one(
        self, one: Observation, other: Observation, shown: Judgement | None
    ) -> None:
        compared = compare(one.law, other.law)
        step_loss = loss(one.law, other.law, one.value)
        self._add(one.place, compared, step_loss)
        if not compared.singular and not compared.shift.any():
            self.unmoved[one.place] = None
        if shown is not None and compared.singular:
            shown.find("release", one.place, compared.singular, neighbour=other.place)
        elif shown is not None and compared.scales_differ:
            unit = int(np.argmax(~compared.alike))
            scales = compared.scale[unit], compared.other_scale[unit]
            _say_scales(shown, (one.place, other.place), scales)

    def _add(self, place: str, compared: Comparison, step_loss: float) -> None:
        self.loss += step_loss
        self.compared.append((compared, np.array([len(compared.shift)])))
        self.steps.append(step_at(place, compared, step_loss))
        if np.isnan(step_loss):
            self._not_known(place)

    def _not_known(self, place: str) -> None:
        if self.unknown_at == "?":
            self.unknown_at = place

    @property
    def by_step(self) -> Iterator[Comparison]:
        """The comparison of each step."""
        for compared, units in self.compared:
            ends = units.cumsum()
            for end, size in zip(ends.tolist(), units.tolist(), strict=True):
                yield compared.part(np.arange(end - size, end))


def _names(kinds: int) -> str:
    return family_names({int(kind) for kind in Family if kinds >> kind & 1})


def _say_scales(shown: Judgement, places: tuple[str, str], scales: Any) -> None:
    shown.find(
        "scale",
        places[0],
        f"the scale of the noise is {scales[0]:.6g} on D and {scales[1]:.6g} on D'",
        neighbour=places[1],
    )


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
    if pure is not None:
        costly = iter(np.flatnonzero(there.steps.losses > pure).tolist())
    else:
        costly = (
            number
            for number, compared in enumerate(there.by_step)
            if _exceeds(Composition.of([compared]), claim)
        )
    alone = [there.steps[number] for number in islice(costly, 5)]
    for step in alone:
        shown.find("distance", step.place, distance_words(step))
    if not alone and there.steps:
        worst = there.steps[int(np.argmax(there.steps.losses))]
        shown.find(
            "budget",
            worst.place,
            f"the losses of {len(there.steps)} steps add up to {there.loss:.6g}",
        )
