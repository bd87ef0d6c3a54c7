"""What the executions on one pair of neighbours show, as plain records."""

import math
import re
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.declare.untrusted import Handed
from dpaudit.audit.replay.follow.forms import Form
from dpaudit.audit.replay.follow.observations import Unfollowed
from dpaudit.audit.replay.follow.outside import varying
from dpaudit.audit.replay.follow.tape import LAZY, Mode
from dpaudit.audit.replay.laws.coded import Family
from dpaudit.audit.replay.laws.comparison import LawComparison
from dpaudit.audit.replay.laws.composition import DeltaAt
from dpaudit.claims import Claim
from dpaudit.neighbours import Pair
from dpaudit.printable import printable, told_apart

__all__ = [
    "OTHER_RELEASE",
    "TWO_MODES",
    "Finding",
    "Findings",
    "Judgement",
    "Repeat",
    "Step",
    "StepTable",
]

Repeat: TypeAlias = Callable[[int], tuple[bool, int]]
"""Executes a pair again, for the n-th time: was all as before? How many a side?"""
TWO_MODES = (
    "numbers to which noise is added may be read as one noisy value or as several, and "
    "the claim falls in one of these readings alone"
)
OTHER_RELEASE = (
    "an ordinary execution gives another release than the one that was followed: there "
    "is randomness, or state, or arithmetic that is not seen, or is followed otherwise"
)
_NUMBERS = 4


@dataclass(frozen=True)
class Finding:
    """Something that differs between the two executions, or could not be followed.

    Parameters
    ----------
    kind : {"structure", "release", "distance", "scale", "budget", "primitive", "coin"}
        Other noisy values, or another layout; a number of the release that has no
        noise, or an ordinary number that differs; an input that moves too far for the
        claim; noise whose scale, bounds or promise depend on the data; steps that cost
        too much together; a primitive that is not trusted, and costs more than it
        declares; randomness or code that cannot be followed.
    where : str
        ``file:line`` on D.
    where_neighbour : str
        ``file:line`` on D'.
    message : str
    proof : bool or float or None
        True where this by itself refutes the claim; the confidence of the test that
        does; None where it is only shown.
    """

    kind: str
    where: str
    where_neighbour: str
    message: str
    proof: bool | float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON-ready Python."""
        return asdict(self)

    def __str__(self) -> str:
        place = self.where
        if self.where_neighbour not in (self.where, ""):
            place = f"{self.where} (on D': {self.where_neighbour})"
        return f"{place}: {self.kind}: {printable(self.message)}"


class Findings(list[Finding]):
    """Findings in the order in which they were made."""

    def add(
        self,
        kind: str,
        where: str,
        message: str,
        *,
        neighbour: str | None = None,
        proof: bool = False,
    ) -> None:
        """Add a finding, if it is the first of its kind at its place."""
        other = where if neighbour is None else neighbour
        # A loop comes by many times.
        if not any(
            (f.kind, f.where) == (kind, where)
            and (kind != "coin" or f.message == message)
            for f in self
        ):
            self.append(Finding(kind, where, other, message, True if proof else None))

    def add_scale(self, where: str, scale: float, other: float, **more: Any) -> None:
        """Add the finding that noise has another scale, or law, on the other side."""
        here, there = told_apart(scale, other, 6)
        text = f"the scale of the noise is {here} on D and {there} on D'"
        if here == there:
            text = "the noise has one law on D, and another on D'"
        self.add("scale", where, text, **more)

    def placed(self, place: str) -> "Findings":
        """Return the same findings, those of no known line with this place."""
        found = Findings()
        for each in self:
            there = place if each.where_neighbour == "?" else each.where_neighbour
            at = place if each.where == "?" else each.where
            found.append(replace(each, where=at, where_neighbour=there))
        return Findings(dict.fromkeys(found))

    def swapped(self) -> "Findings":
        """Return the same findings, D' being D."""
        return Findings(
            replace(
                each,
                where=each.where_neighbour,
                where_neighbour=each.where,
                message=re.sub(
                    r"\bD\b'?", lambda d: "D'" if d[0] == "D" else "D", each.message
                ),
            )
            for each in self
        )

    def with_proof(self, proof: bool | float | None) -> "Findings":
        """Return the same findings, all but coins with this for a proof."""
        return Findings(
            each if each.kind == "coin" else replace(each, proof=proof) for each in self
        )


@dataclass(frozen=True)
class Step:
    """A noisy value of the two executions.

    Parameters
    ----------
    place : str
    family : str
    scale : float
        The smallest of its entries.
    l1, l2 : float
        The distance of its inputs on D and on D'.
    loss : float
        Of this transcript; where nothing was looked at before the release, the
        supremum over transcripts. Of a trusted primitive its epsilon.
    """

    place: str
    family: str
    scale: float
    l1: float
    l2: float
    loss: float

    @classmethod
    def of(cls, place: str, compared: LawComparison, loss: float) -> "Step":
        """Return the step of a noisy value, compared between both sides."""
        l1, l2 = compared.distances
        scale = 0.0
        if len(compared.scale) and not math.isnan(l1):
            scale = float(compared.scale.min())
        family = Family.shown(np.unique(compared.family))
        return cls(place, family, scale, l1, l2, loss)

    @property
    def words(self) -> str:
        """How far its inputs lie apart, for people."""
        if math.isnan(self.l1):
            return f"an outcome of the choice is e^{self.loss:.6g} times as probable"
        far = f"the inputs lie {self.l1:.6g} apart"
        if self.family != "trusted":
            far += f" (l2: {self.l2:.6g}), at scale {self.scale:.6g}"
        return f"{far}: the loss may be {self.loss:.6g}"


class StepTable(Sequence[Step]):
    """Steps in their order, kept in columns."""

    def __init__(self, several: Iterable[Step] = ()) -> None:
        self._places: list[str] = []
        self._families: list[str] = []
        self._numbers = array("d")
        for each in several:
            self.append(each)

    def __len__(self) -> int:
        return len(self._places)

    def append(self, step: Step) -> None:
        """Add a step."""
        numbers = np.array([[step.scale, step.l1, step.l2, step.loss]])
        self.extend([step.place], [step.family], numbers)

    def extend(self, places: list[str], families: list[str], numbers: Array) -> None:
        """Add steps, whose scales, distances and losses are the rows of a matrix."""
        self._places.extend(places)
        self._families.extend(families)
        self._numbers.frombytes(np.ascontiguousarray(numbers, float).tobytes())

    @property
    def losses(self) -> Array:
        """The loss of each step."""
        return np.array(self._numbers).reshape(-1, _NUMBERS)[:, -1]

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        number = range(len(self))[number]
        numbers = self._numbers[_NUMBERS * number : _NUMBERS * (number + 1)]
        return Step(self._places[number], self._families[number], *numbers)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} steps>"


@dataclass(eq=False)
class Judgement:
    """What the executions on one pair show.

    Parameters
    ----------
    pair : Pair
    claim : Claim
    sees : {"release", "transcript"}
    findings : Findings
    steps : StepTable
    loss : float
    executions : int
        On either side.
    proven : bool
        Whether the claim is refuted by proof.
    delta : DeltaAt, optional
        The delta that refutes it, or that of normal noise.
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
    remembers : bool
        Whether the code remembers them, so that a loss takes many executions.
    again : callable, optional
        Executes again what a refutation rests on.
    bare : bool
        Whether it rests on something without recorded noise.
    exceeds : bool
        Whether steps of the distances that were seen would break the claim.
    shows_more : bool
        Whether the code shows what no loss of noisy values has: objects that cannot be
        read, invariants that differ.
    opening : tuple, optional
        Of the first execution on D: its seed, its mode, how many draws it made.
    branches : tuple of set
        The ways that code took which looks at noise, on D and on D'.
    turns : int
        How many executions from seeds of their own these are of, on either side.
    taken : tuple of Unfollowed
        Noise that is taken for what a simulation of it fits.
    untrusted : list of Handed
        What primitives that are not trusted were handed.
    meeting : callable, optional
        Returns where data and noise meet, on D and on D'.
    forms : list of Form
        Of releases of ordinary executions on D and on D', if there are any.
    formal : bool
        Whether all releases on D have one form: nothing was looked at before.
    """

    pair: Pair
    claim: Claim
    sees: str = "release"
    findings: Findings = field(default_factory=Findings)
    steps: StepTable = field(default_factory=StepTable)
    loss: float = 0.0
    executions: int = 0
    proven: bool = False
    delta: DeltaAt | None = None
    suspicious: bool = False
    followed: bool = True
    laws: Any = None
    transcripts: bool = False
    mode: Mode = LAZY
    sampled: bool = False
    remembers: bool = False
    again: Repeat | None = None
    bare: bool = False
    exceeds: bool = False
    shows_more: bool = False
    opening: tuple[int, Mode, int] | None = None
    taken: tuple[Unfollowed, ...] = ()
    branches: tuple[set[int], set[int]] = field(default_factory=lambda: (set(), set()))
    turns: int = 0
    untrusted: list[Handed] = field(default_factory=list)
    meeting: Callable[[], tuple[str, str]] | None = None
    forms: list[Form] = field(default_factory=list)
    formal: bool = False

    def anew(self, **more: Any) -> "Judgement":
        """Return one of the same pair and claim, that nothing is in yet."""
        return Judgement(self.pair, self.claim, self.sees, **more)

    def find(self, kind: str, where: str, message: str, **more: Any) -> None:
        """Add a finding, as `Findings` does."""
        self.findings.add(kind, where, message, **more)

    def find_costs(
        self, costly: Iterable[Step], place: str, total: str, *, proof: bool = False
    ) -> None:
        """Say which steps cost too much by themselves, or that all do together.

        `place` and `total` say where that is, and what they cost.
        """
        alone = list(costly)
        for step in alone:
            self.find("distance", step.place, step.words, proof=proof)
        if not alone:
            self.find("budget", place, f"the losses of {total}", proof=proof)

    def suspect(self, kind: str, place: str, why: str) -> None:
        """Note that the code could not be followed to the end, and why."""
        self.followed, self.suspicious = False, True
        self.find(kind, place, why)

    def unconfirmed(self, unfollowed: Sequence[Unfollowed], trace: Any) -> None:
        """Note that an execution is not what an ordinary one would have been, and why.

        `trace` is the `Trace` of the execution.
        """
        note = Unfollowed(trace.tape.first_place or "?", OTHER_RELEASE)
        note = next(iter(varying(trace.tape)), note)
        note = unfollowed[0] if unfollowed else note
        place = trace.returned_at if note.place == "?" else note.place
        self.suspect("coin", place, note.why)

    def fails_alike(self, trace: Any, other: Any) -> bool:
        """Say, and note, whether both sides failed: nothing is learned from that."""
        if not trace.raises or trace.layout != other.layout:
            return False
        how = "on both sides" if trace.plainly().raises else "only when it is followed"
        self.suspect(
            "structure", trace.returned_at, f"the mechanism {trace.layout} {how}"
        )
        return True

    def withdraw(self, place: str, why: str) -> None:
        """Note that nothing is proven, and why."""
        self.proven, self.followed, self.suspicious = False, False, True
        self.laws, self.transcripts = None, False
        self.findings = self.findings.with_proof(None)
        self.find("coin", place, why)

    def distrust(self, several: Sequence[tuple[str, str, str]]) -> None:
        """Note primitives that cost more than they declare: where, and what of them.

        What rests on the declared laws is no proof then, as where values are impossible
        by them on one side.
        """
        self.followed, self.suspicious, self.transcripts = False, True, False
        self.loss = np.nan
        if not (self.bare and np.isfinite(self.steps.losses).all()):
            self.proven, self.laws = False, None
            self.findings = self.findings.with_proof(None)
        for where, there, text in several:
            self.find("primitive", where, text, neighbour=there)

    @property
    def rank(self) -> tuple[bool, bool, bool, float, float]:
        """By which pairs are compared: the worst is the largest."""
        delta = 0.0 if self.delta is None else self.delta.delta
        return self.proven, self.suspicious, not self.followed, self.loss, delta
