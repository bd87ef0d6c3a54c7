"""What a transcript of one dataset is on the other, when its values are given back."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpaudit.audit.replay.amplification import Sampled
from dpaudit.audit.replay.chances import Chances
from dpaudit.audit.replay.comparison import Comparison, compare, loss
from dpaudit.audit.replay.executor import Trace
from dpaudit.audit.replay.judgement import Judgement, of_entry, returned_at, step_at
from dpaudit.audit.replay.result import Step
from dpaudit.audit.replay.tape import Lost, Observation

__all__ = ["Transcript"]

_HIDDEN = "a choice, or a flip, may be hidden"


@dataclass(eq=False)
class Transcript:
    """A transcript of one dataset, and what it is on the other.

    Parameters
    ----------
    mechanism : Mechanism or callable
    trace : Trace
        In which it was recorded.
    shown : Judgement, optional
        Takes what is found.
    loss : float
    compared : list of Comparison or Sampled
        Of each step.
    composed : list of Comparison or Sampled
        The same, where what is over one secret batch is one.
    steps : list of Step
    unknown_at : str
        Where there is noise whose law is not known.
    unmoved : list of str
        Where the values are that have one law on both sides.
    coins : list of Lost
        What stands in the way of a proof.
    lost : list of Lost
    executions : tuple of two ints
        That this took, on the transcript's own dataset and on the other.
    """

    mechanism: Any
    trace: Trace
    shown: Judgement | None
    loss: float = 0.0
    compared: list[Comparison | Sampled] = field(default_factory=list)
    composed: list[Comparison | Sampled] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    unknown_at: str = "?"
    unmoved: list[str] = field(default_factory=list)
    coins: list[Lost] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    executions: tuple[int, int] = (0, 1)

    @classmethod
    def of(
        cls, mechanism: Any, trace: Trace, again: Trace, shown: Judgement | None
    ) -> "Transcript":
        """Return a transcript that was given back in an execution on the other side."""
        made = cls(mechanism, trace, shown, lost=again.tape.lost)
        values, others = trace.tape.observations, again.tape.observations
        for one, other in zip(values, others, strict=False):
            compared = compare(one.law, other.law)
            made.add(one.place, compared, loss(one.law, other.law, one.value))
            made.composed.append(compared)
            seen = isinstance(one.law, Chances) and trace.tape.reading.public
            if not (compared.moved or seen):
                made.unmoved.append(one.place)
            made.may_hide(one, compared)
            made.find(compared, one.place, other.place)
        if not made.comes_to_an_end(again):
            return made
        compared = compare(trace.law, again.law)
        if compared.singular:
            made.end_otherwise(compared)
        elif len(compared.shift) or not compared.known:
            made.add(made.end, compared, loss(trace.law, again.law, trace.value))
            made.composed.append(compared)
        return made

    @property
    def end(self) -> str:
        """Where the noise was drawn that the numbers of the release still have."""
        law = self.trace.law
        return self.trace.tape.place_of(int(law.draw[0])) if len(law.draw) else "?"

    def add(
        self, place: str, compared: Comparison, step_loss: float, *, of: Any = None
    ) -> None:
        """Add a step; `of` is what it composes by, if that is not the comparison."""
        self.loss += step_loss
        self.compared.append(compared if of is None else of)
        self.steps.append(step_at(place, compared, step_loss))
        if np.isnan(step_loss) and self.unknown_at == "?":
            self.unknown_at = place

    def may_hide(self, value: Observation, *compared: Comparison) -> None:
        """Note that a value may be hidden: a flip, or what is alike on both sides."""
        if not isinstance(value.law, Chances) or self.trace.tape.reading.public:
            return
        moved = any(each.moved for each in compared)
        if not moved or value.law.kind == "flip":
            self.coins.append(Lost(value.place, _HIDDEN))

    def find(self, compared: Comparison, place: str, other: str) -> None:
        """Note what is to be said of a value's noise on the two sides."""
        if self.shown is None:
            return
        if compared.singular:
            self.shown.find("release", place, compared.singular, neighbour=other)
        elif compared.scales_differ:
            unit = int(np.argmax(~compared.alike))
            self.shown.find(
                "scale",
                place,
                f"the scale of the noise is {compared.scale[unit]:.6g} on D and "
                f"{compared.other_scale[unit]:.6g} on D'",
                neighbour=other,
            )

    def comes_to_an_end(self, again: Trace) -> bool:
        """Say whether an execution on the other side comes to all that this one did.

        If not, the transcript is impossible there.
        """
        values, others = self.trace.tape.observations, again.tape.observations
        diverged, shown = again.tape.diverged, self.shown
        if diverged is not None or len(others) < len(values):
            self.loss = np.inf
            public = again.tape.reading.public
            if diverged is not None and again.tape.left_at_choice and not public:
                self.coins.append(Lost(diverged.place, _HIDDEN))
            if shown is not None:
                _say_structure(shown, self.trace, again)
            return False
        if self.trace.layout != again.layout:
            self.loss = np.inf
            if shown is not None:
                shown.find(
                    "structure",
                    returned_at(self.mechanism, self.trace),
                    f"the release is {self.trace.layout} on D and {again.layout} on "
                    "D', all noisy values being the same",
                )
            return False
        return True

    def end_otherwise(self, compared: Comparison) -> None:
        """Note that the release is impossible on the other side."""
        self.loss = np.inf
        if self.shown is not None:
            kind, where = of_entry(self.mechanism, self.trace, compared.entry)
            self.shown.find(
                kind, where, f"{compared.singular}, all noisy values being the same"
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
