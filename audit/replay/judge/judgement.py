"""What the executions on one pair of neighbours show, and the words for it."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpaudit.audit.replay.execute.executor import Trace
from dpaudit.audit.replay.follow.returns import place_of_definition
from dpaudit.audit.replay.follow.steps import Step, Steps
from dpaudit.audit.replay.follow.tape import LAZY, Mode, Unfollowed
from dpaudit.audit.replay.judge.hidden import Repeat
from dpaudit.audit.replay.laws.affine import Family, kind_of
from dpaudit.audit.replay.laws.comparison import LawComparison
from dpaudit.audit.replay.result import Finding
from dpaudit.neighbours import Pair

__all__ = [
    "RAISES",
    "TWO_MODES",
    "Judgement",
    "distance_words",
    "fail_alike",
    "family_names",
    "of_entry",
    "returned_at",
    "step_at",
    "unconfirmed",
]


TWO_MODES = (
    "numbers to which noise is added may be read as one noisy value or as several, and "
    "the claim falls in one of these readings alone"
)
RAISES = "raises "
"""How the layout of a release begins that is an exception."""


@dataclass(eq=False)
class Judgement:
    """What the executions on one pair show.

    Parameters
    ----------
    pair : Pair
    findings : list of Finding
    steps : Steps
    loss : float
    executions : int
        On either side.
    proven : bool
        Whether the claim is refuted by proof.
    suspicious : bool
        Whether something was found that may break the claim.
    followed : bool
        Whether all of the code could be followed.
    laws : tuple of AffineLaw, optional
        Of the release on D and on D', where they are exactly known.
    transcripts : bool
        Whether the losses of all transcripts are known: there are no coins.
    mode : Mode
        The lazy one in which the code could be followed.
    sampled : bool
        Whether there are secret batches.
    again : callable, optional
        Executes what a refutation rests on again (`dpaudit.audit.replay.judge.hidden`).
    bare : bool
        Whether it rests on something without recorded noise.
    shows_more : bool
        Whether the code shows what no loss of noisy values has: objects that cannot be
        read, invariants that differ.
    opening : tuple, optional
        Of the first execution on D: its seed, its mode, how many draws it made.
    branches : tuple of set
        The ways that code took which looks at noise, on D and on D'.
    turns : int
        How many executions from seeds of their own these are of, on either side.
    """

    pair: Pair
    findings: list[Finding] = field(default_factory=list)
    steps: Steps = field(default_factory=Steps)
    loss: float = 0.0
    executions: int = 0
    proven: bool = False
    suspicious: bool = False
    followed: bool = True
    laws: Any = None
    transcripts: bool = False
    mode: Mode = LAZY
    sampled: bool = False
    again: Repeat | None = None
    bare: bool = False
    shows_more: bool = False
    opening: tuple[int, Mode, int] | None = None
    branches: tuple[set[int], set[int]] = field(default_factory=lambda: (set(), set()))
    turns: int = 0

    def find(
        self,
        kind: str,
        where: str,
        message: str,
        *,
        neighbour: str | None = None,
        proof: bool = False,
    ) -> None:
        """Add a finding."""
        other = where if neighbour is None else neighbour
        found = Finding(kind, where, other, message, True if proof else None)
        # One of a kind at a place: a loop comes by many times.
        if not any(
            (f.kind, f.where) == (kind, where)
            and (kind != "coin" or f.message == message)
            for f in self.findings
        ):
            self.findings.append(found)

    def cannot_follow(self, place: str, why: str) -> None:
        """Note that nothing is proven, and why."""
        self.proven, self.followed, self.suspicious = False, False, True
        self.laws, self.transcripts = None, False
        self.findings = [replace(each, proof=None) for each in self.findings]
        self.find("coin", place, why)

    @property
    def rank(self) -> tuple[bool, bool, bool, float]:
        """By which pairs are compared: the worst is the largest."""
        return self.proven, self.suspicious, not self.followed, self.loss


def unconfirmed(
    judgement: Judgement, unfollowed: list[Unfollowed], trace: Trace
) -> None:
    """Note that an execution is not what an ordinary one would have been, and why."""
    judgement.followed, judgement.suspicious = False, True
    for each in unfollowed[:1]:
        judgement.find("coin", each.place, each.why)
    if not unfollowed:
        judgement.find(
            "coin",
            trace.tape.first_place or "?",
            "an ordinary execution gives another release than the one that was "
            "followed: there is randomness, or state, or arithmetic that is not seen",
        )


def of_entry(mechanism: Any, trace: Trace, entry: int) -> tuple[str, str]:
    """Return which kind of finding a number of the release is, and where."""
    whole = trace.release
    terms = whole.index[entry] if entry < len(whole.index) else np.empty(0, np.intp)
    used = terms[terms >= 0]
    if not len(used):
        return "release", returned_at(mechanism, trace)
    place = trace.tape.place_of(int(used[0]))
    coef = whole.coef[entry][terms >= 0]
    return ("scale" if (coef == 0).all() else "release"), place


def returned_at(mechanism: Any, trace: Trace) -> str:
    """Return the line from which the mechanism returned in an execution."""
    return trace.returned or place_of_definition(mechanism)


def step_at(place: str, compared: LawComparison, loss_: float) -> Step:
    """Return the step of a noisy value, given what is known of it on both sides."""
    l1, l2 = compared.distances
    names = family_names({int(kind) for kind in compared.family})
    if math.isnan(l1):
        return Step(place, names, 0.0, l1, l2, loss_)
    scale = float(compared.scale.min()) if len(compared.scale) else 0.0
    return Step(place, names, scale, l1, l2, loss_)


def family_names(kinds: set[int]) -> str:
    """Return the names of families, as a step shows them."""
    return "+".join(sorted(kind_of(Family(kind)) for kind in kinds))


def distance_words(step: Step) -> str:
    """Say how far the inputs of a step lie apart."""
    if math.isnan(step.l1):
        return f"an outcome of the choice is e^{step.loss:.6g} times as probable"
    if step.family == "trusted":
        return f"the inputs lie {step.l1:.6g} apart: the loss may be {step.loss:.6g}"
    return (
        f"the inputs lie {step.l1:.6g} apart (l2: {step.l2:.6g}), at scale "
        f"{step.scale:.6g}: the loss may be {step.loss:.6g}"
    )


def fail_alike(
    mechanism: Any, first: Trace, second: Trace, judgement: Judgement
) -> bool:
    """Say, and note, whether both executions failed: nothing is learned from that."""
    if first.layout != second.layout or not first.layout.startswith(RAISES):
        return False
    judgement.followed, judgement.suspicious = False, True
    where = returned_at(mechanism, first)
    judgement.find("structure", where, f"the mechanism {first.layout} on both sides")
    return True
