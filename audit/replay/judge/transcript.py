"""What a transcript of one dataset is on the other, when its values are given back."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.audit.replay.declare.untrusted import Handed
from dpaudit.audit.replay.execute.executor import Trace
from dpaudit.audit.replay.follow.observations import (
    Observation,
    ObservationSlice,
    Unfollowed,
)
from dpaudit.audit.replay.follow.tape import DECLARED
from dpaudit.audit.replay.judge.judgement import Findings, Step, StepTable
from dpaudit.audit.replay.judge.lines import Lines, find_singular
from dpaudit.audit.replay.laws.affine import AffineLaw
from dpaudit.audit.replay.laws.amplification import SampledComparison
from dpaudit.audit.replay.laws.choices import ChoiceLaw
from dpaudit.audit.replay.laws.coded import FIRST, Family
from dpaudit.audit.replay.laws.comparison import (
    AnyLaw,
    LawComparison,
    compare,
    loss,
    unit_losses,
)
from dpaudit.audit.replay.laws.composition import pure_epsilon
from dpaudit.neighbours import Pair

__all__ = ["FLIP_HIDDEN", "Transcript", "handed"]

_RUN = 10_000  # noisy values that are compared at once
FLIP_HIDDEN = "a choice, or a flip, may be hidden"
_GIVEN = ", all noisy values being the same"
_DRAWN = ", all noisy values and choices being the same"
_BEFORE = ", all noisy values before being the same"
_BARE, _NUMBER = "a number without noise is", "a number of the release is"
_SEEN = "what is looked at here is"
_SEEDS = 1_000_003  # how far the seeds lie from those of other executions
_OTHERWISE = (
    "a primitive that is not trusted is handed other arguments when the same noisy "
    "values are given back: they hold randomness, and it cannot be audited by itself"
)

_AnyComparison: TypeAlias = LawComparison | SampledComparison


@dataclass(eq=False)
class Transcript:
    """A transcript of one dataset, and what it is on the other.

    Parameters
    ----------
    trace : Trace
        In which it was recorded.
    findings : Findings
        Takes the findings.
    loss : float
        Of what has a known law.
    compared : list of (LawComparison or SampledComparison, ndarray of int)
        Of the steps, some of them at once: how many units each has.
    composed : list of LawComparison or SampledComparison
        The same, but one for all values over one secret batch.
    steps : StepTable
    unknown_at : str, optional
        Where there is noise whose law is not known.
    unmoved : dict
        Where the values are that have one law on both sides, as its keys.
    coins : list of Unfollowed
        What stands in the way of a proof.
    unfollowed : list of Unfollowed
    executions : tuple of two ints
        That this took, on the transcript's own dataset and on the other.
    sampled : bool
        Whether there are secret batches.
    hidden : bool
        Whether a number of the release that differs has noise that is not followed.
    lines : Lines, optional
        Of the two executions.
    """

    trace: Trace
    findings: Findings
    loss: float = 0.0
    compared: list[tuple[_AnyComparison, NDArray[np.intp]]] = field(
        default_factory=list
    )
    composed: list[_AnyComparison] = field(default_factory=list)
    steps: StepTable = field(default_factory=StepTable)
    unknown_at: str | None = None
    unmoved: dict[str, None] = field(default_factory=dict)
    coins: list[Unfollowed] = field(default_factory=list)
    unfollowed: list[Unfollowed] = field(default_factory=list)
    executions: tuple[int, int] = (0, 1)
    sampled: bool = False
    hidden: bool = False
    lines: Lines | None = None

    @classmethod
    def of(cls, trace: Trace, again: Trace, findings: Findings) -> "Transcript":
        """Return a transcript that was given back in an execution on the other side."""
        made = cls(trace, findings, unfollowed=again.tape.unfollowed)
        made.lines = Lines(trace, again)
        values, others = trace.tape.observations, again.tape.observations
        count = min(len(values), len(others))
        for start in range(0, count, _RUN):
            stop = min(start + _RUN, count)
            parts = values.part(start, stop), others.part(start, stop)
            if not made._compare_many(*parts):
                for number in range(start, stop):
                    made._compare_one(values[number], others[number])
        if not made.comes_to_an_end(again):
            return made
        compared = compare(trace.law, again.law)
        if compared.singular:
            made.end_impossibly(compared)
        elif len(compared.shift) or not compared.known:
            found = loss(trace.law, again.law, trace.value, compared)
            made.add(made.end, compared, found)
        return made

    def _compare_many(
        self, here: ObservationSlice | None, other: ObservationSlice | None
    ) -> bool:
        """Compare many noisy values at once; False if it takes one at a time."""
        if here is None or other is None:
            return False
        if not np.array_equal(here.entries, other.entries):
            return False
        compared = compare(here.law, other.law)
        if compared.singular or not compared.known:
            return False
        count = len(here.places)
        step = np.repeat(np.arange(count), here.units)
        losses, l1, square = (
            np.bincount(step, each, minlength=count)
            for each in (
                unit_losses(here.law, other.law, here.value),
                np.abs(compared.shift),
                compared.shift**2,
            )
        )
        scale = np.full(count, np.inf)
        np.minimum.at(scale, step, compared.scale)
        kinds = np.zeros(count, dtype=np.intp)
        np.bitwise_or.at(kinds, step, 1 << np.minimum(compared.family, FIRST))
        names = {
            kind: Family.shown(each for each in range(FIRST + 1) if kind >> each & 1)
            for kind in np.unique(kinds).tolist()
        }
        numbers = [np.where(here.units, scale, 0.0), l1, np.sqrt(square), losses]
        self.steps.extend(
            here.places, [names[each] for each in kinds.tolist()], np.stack(numbers, 1)
        )
        self.compared.append((compared, here.units))
        self.composed.append(compared)
        self.loss += float(losses.sum())
        for number in np.flatnonzero(np.isnan(losses))[:1].tolist():
            self.unknown_at = self.unknown_at or here.places[number]
        for number in np.flatnonzero(l1 == 0).tolist():
            if here.ways[number] != DECLARED:
                self.unmoved[here.places[number]] = None
        seen = set()
        for unit in np.flatnonzero(~compared.alike).tolist():
            place, there = (each.places[int(step[unit])] for each in (here, other))
            if place not in seen:
                seen.add(place)
                self._find_scales(compared, unit, here.law, place, there)
        return True

    def _compare_one(self, one: Observation, other: Observation) -> None:
        compared = compare(one.law, other.law)
        self.add(one.place, compared, loss(one.law, other.law, one.value, compared))
        seen = isinstance(one.law, ChoiceLaw) and self.trace.tape.mode.public
        if not (compared.moved or seen or one.how == DECLARED):
            self.unmoved[one.place] = None
        self.may_hide(one, compared)
        self.find(compared, one.law, one.place, other.place)

    @property
    def end(self) -> str:
        """Where the noise was drawn that the numbers of the release still have."""
        draws = self._draws(-1)
        return self.trace.place_of(draws[0]) if len(draws) else "?"

    def _draws(self, number: int) -> NDArray[np.intp]:
        """Return the draws in a noisy value; -1 is the release."""
        law = self.trace.law_of(number)
        if number < 0 and not len(getattr(law, "draw", ())):
            index = self.trace.release.index
            return np.asarray(index[index >= 0])
        return law.draw if isinstance(law, AffineLaw) else np.empty(0, dtype=np.intp)

    @property
    def unknown_place(self) -> str:
        """Where noise meets the data whose law is not known."""
        number = int(np.argmax(np.isnan(self.steps.losses)))
        place = self.place_of_step(number)
        return place if self.unknown_at in ("?", self.end) else self.unknown_at or "?"

    def place_of_step(self, number: int) -> str:
        """Return where a step's noise meets the data; else where it was looked at."""
        place = self.steps[number].place
        if self.lines is None:
            return place
        observed = len(self.trace.tape.observations)
        draws = self._draws(number if number < observed else -1)
        return self.lines.noise(draws) or place

    @property
    def by_step(self) -> Iterator[_AnyComparison]:
        """The comparison of each step."""
        for compared, units in self.compared:
            if isinstance(compared, SampledComparison) or len(units) == 1:
                yield compared
                continue
            ends = units.cumsum()
            for end, size in zip(ends.tolist(), units.tolist(), strict=True):
                yield compared.part(np.arange(end - size, end))

    def add(
        self,
        place: str,
        compared: LawComparison,
        step_loss: float,
        of: SampledComparison | None = None,
    ) -> None:
        """Add a step; `of` is what it is by itself, if it composes with others."""
        shown = step_loss
        if of is None:
            self.composed.append(compared)
        if of is None and compared.bound is not None:
            promised = pure_epsilon(compared.bound)
            shown = np.nan if promised is None else promised
        else:
            self.loss += step_loss
            if np.isnan(step_loss) and compared.note is None:
                self.unknown_at = self.unknown_at or place
        self.compared.append((of or compared, np.array([len(compared.shift)])))
        self.steps.append(Step.of(place, compared, shown))

    def add_sampled(self, place: str, step: SampledComparison, found: float) -> None:
        """Add a noisy value over a secret batch."""
        (both,), (rest,) = step.both, step.rest
        self.add(place, both, found, step)
        moves = [each for side in step.moves for each in side]
        if any(each.singular for each in moves):
            self.coin(place, "a number without noise depends on the batch")
        if not any(each.moved for each in (both, rest, *moves)):
            self.unmoved[place] = None

    def coin(self, place: str, why: str) -> None:
        """Note what stands in the way of a proof, and where."""
        self.coins.append(Unfollowed(place, why))

    def may_hide(self, value: Observation, *compared: LawComparison) -> None:
        """Note that a value may be hidden: a flip, or a choice alike on both sides."""
        seen = value.how == DECLARED or self.trace.tape.mode.public
        if seen or not isinstance(value.law, ChoiceLaw):
            return
        moved = any(each.moved for each in compared)
        if not moved or value.law.kind == "flip":
            self.coin(value.place, FLIP_HIDDEN)

    def find(
        self, compared: LawComparison, law: AnyLaw, place: str, other: str
    ) -> None:
        """Add a finding if a value's noise differs on the two sides."""
        if compared.singular:
            text = f"{compared.singular.replace(_BARE, _SEEN)}{_BEFORE}"
            self.findings.add("release", place, text, neighbour=other)
        elif compared.note is not None:
            kind, text = compared.note
            self.findings.add(kind, place, text, neighbour=other)
        elif compared.scales_differ:
            self._find_scales(compared, compared.other_unit, law, place, other)

    def _find_scales(
        self, compared: LawComparison, unit: int, law: AnyLaw, place: str, other: str
    ) -> None:
        scales = compared.scale[unit], compared.other_scale[unit]
        at = None
        if self.lines is not None and isinstance(law, AffineLaw) and len(law.draw):
            at = self.lines.scale(int(law.draw[unit]))
        place, other = at or place, at or other
        self.findings.add_scale(place, *scales, neighbour=other)

    def comes_to_an_end(self, again: Trace) -> bool:
        """Say whether an execution on the other side comes to all that this one did.

        If not, the transcript is impossible there.
        """
        values, others = self.trace.tape.observations, again.tape.observations
        script, fewer = again.tape.script, len(values) - len(others)
        diverged = script.diverged
        if diverged is not None:
            if script.left_at_choice and not again.tape.mode.public:
                self.coin(diverged.place, FLIP_HIDDEN)
            where = values[len(others)].place if fewer > 0 else diverged.place
            what = where, diverged.why, diverged.place
        elif fewer > 0:
            text = f"{fewer} noisy value(s) on D that are not on D'"
            what = values[len(others)].place, text, ""
        elif self.trace.layout != again.layout:
            text = f"the release is {self.trace.told_beside(again)}"
            where = self.trace.returned_at
            what = where, f"{text}, all noisy values being the same", where
        else:
            return True
        self.loss = np.inf
        where, why, there = what
        found = self.lines and self.lines.structure()
        if found:
            where, there = found
        self.findings.add("structure", where, why, neighbour=there)
        return False

    def end_impossibly(self, compared: LawComparison) -> None:
        """Note that the release is impossible on the other side."""
        self.loss = np.inf
        if self.lines is not None and not self.sampled:
            self.hidden = find_singular(
                self.findings, compared, self.lines, more=_GIVEN
            )
            sides = self.lines.sides
            if self.hidden or all(each.has_noise_at(compared.entry) for each in sides):
                # Not without noise, but without any that is followed and not seen yet.
                last = self.findings[-1]
                text = last.message.replace(_BARE, _NUMBER).replace(_GIVEN, _DRAWN)
                self.findings[-1] = replace(last, message=text)
            return
        kind, where = self.trace.origin(compared.entry)
        self.findings.add(kind, where, f"{compared.singular}{_GIVEN}")


def handed(pair: Pair, trace: Trace) -> tuple[list[Handed], list[Unfollowed]]:
    """Return what was handed to primitives that are not trusted, and what may not be.

    The values before a call are the same on both sides: those of an execution on D,
    given back. What is handed to it must follow from them and the data. So the code is
    executed once more on either side, from another seed, with the same values given
    back: a call that is handed something else then (a seed of its own, say) says
    nothing by itself.

    Parameters
    ----------
    pair : Pair
    trace : Trace
        An execution on D.
    """
    script, seed = trace.tape.observations, trace.tape.seed + _SEEDS
    there = trace.again(data=pair.neighbour, script=script)
    once_more = (
        trace.again(seed, script=script),
        trace.again(seed + 1, data=pair.neighbour, script=script),
    )
    found: list[Handed] = []
    unfollowed: list[Unfollowed] = []
    for number, call in trace.tape.untrusted.items():
        other = there.tape.untrusted.get(number)
        if other is None:
            continue  # the code went another way there, which is a finding
        places = (script[number].place, there.tape.observations[number].place)
        same = (
            each.is_like(again.tape.untrusted.get(number))
            for each, again in zip((call, other), once_more, strict=True)
        )
        if call.name == other.name and all(same):
            found.append(Handed(*places, (call, other)))
        else:
            unfollowed.append(Unfollowed(places[0], _OTHERWISE))
    return found, unfollowed
