"""What a replay says: its verdict, findings and steps."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dpaudit.audit.judged import PrintedResult
from dpaudit.audit.replay.judge.judgement import Finding, Step
from dpaudit.audit.replay.judge.primitive_audits import PrimitiveAudit
from dpaudit.audit.replay.judge.remedies import remedy_for
from dpaudit.audit.replay.laws.composition import DeltaAt, pure_epsilon
from dpaudit.claims import Claim
from dpaudit.neighbours import Pair, Relation
from dpaudit.printable import printable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Explored", "ReplayResult", "ReplayVerdict", "ReplayVerification"]


class ReplayVerdict(StrEnum):
    """The three things that a replay can say about a privacy claim."""

    REFUTED = "REFUTED"
    NOT_REFUTED = "NOT_REFUTED"
    NOT_FOLLOWED = "NOT_FOLLOWED"


@dataclass(frozen=True)
class Explored:
    """Which ways code took that looks at noise, and so may take others.

    Of n independent executions none takes a way of probability p with probability
    (1 - p)^n. So of each single way, fixed before, that no execution took, it is known
    at `confidence` that its probability is at most 1 - (1 - confidence)^(1/n); nothing
    is said of all of them together. It makes no difference that executions may have
    ended early: if the bound is below p after n of them, then the way was missed by as
    many first ones as bring it below p, which is as unlikely.

    Parameters
    ----------
    executions : int
        From seeds of their own, on either side.
    branches, branches_neighbour : int
        Ways that they took on D and on D': other noisy values, or another layout.
    confidence : float
    unseen : float
        The most that the probability is of a way that no execution took.
    """

    executions: int
    branches: int
    branches_neighbour: int
    confidence: float
    unseen: float

    @classmethod
    def of(
        cls, executions: int, ways: tuple[set[int], set[int]], confidence: float
    ) -> "Explored | None":
        """Return what executions saw, None where they looked at no noise."""
        if not executions:
            return None
        unseen = -math.expm1(math.log1p(-confidence) / executions)
        return cls(executions, len(ways[0]), len(ways[1]), confidence, unseen)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready Python."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.branches} on D and {self.branches_neighbour} on D', in "
            f"{self.executions} execution{'s' * (self.executions != 1)} a side; a "
            f"branch that no execution took has, with confidence {self.confidence:g}, "
            f"probability at most {math.ceil(1e4 * self.unseen) / 1e4:.4g}"
        )


@dataclass(frozen=True)
class ReplayResult(PrintedResult):
    """The outcome of a replay.

    Parameters
    ----------
    name : str
    verdict : ReplayVerdict
        ``REFUTED``: the claim is false, by proof or at `confidence` (see `proof`).
        ``NOT_REFUTED``: this replay did not show it; that is no proof of privacy.
        ``NOT_FOLLOWED``: something was found that may break the claim, or could not be
        followed, and nothing settled it.
    claim : Claim
    relation : Relation
    pair : Pair
        The last that was played: the one that refutes, or else the worst.
    sees : str
        Whether the claim is held to the release or to every noisy value.
    batches : {"secret", "public", ""}
        Whether rows are drawn in secret, of which `sees` takes those that differ for
        hidden and the others for seen, or everybody sees them; empty if there are none.
    confidence : float
        Of a refutation that is no proof.
    proof : bool
        Whether a refutation is one.
    findings : tuple of Finding
    steps : sequence of Step
    executions : int
        Of the mechanism, on either side; those of a statistical test, and those that
        look for the line of a finding, are left out.
    samples : int
        Releases a side that such a test drew.
    repeats : int
        Executions a side that repeated what refutes, in search of randomness that was
        not recorded (`dpaudit.audit.replay.judge.repeated`), besides `executions`.
    event : str or None
        Where releases refuted the claim: the event that shows it, in words.
    pairs : int
    loss : float
        The largest loss that was seen; the supremum, where nothing was looked at. Where
        there are trusted primitives, the largest that it may be: their epsilons are
        part of it. NaN if it is not known, as where noise was not followed and nothing
        was proven. Where noise is taken for a law that a simulation of it fits, as
        `assumes` says, it may be a hundredth too small.
    delta : DeltaAt or None
        The delta that breaks the claim, where a proof goes by one; that of a pure claim
        mostly goes by the loss. Or, where nothing breaks the claim, the delta at its
        epsilon: of a release with normal noise, whose loss is infinite, or the most
        that it may be by the deltas of trusted primitives.
    seed : int
    seconds : float
    assumes : str
        What ``REFUTED`` takes for granted: that there is no randomness that is not
        seen, where it rests on noise that was recorded; that datasets are neighbours
        of which no rows are known. Else what the loss does, if anything.
    primitives : tuple of PrimitiveAudit
        What came of those that are not trusted, audited by themselves.
    explored : Explored or None
        None without noise to look at, or if all ways were executed.
    neighbours : str or None
        The pair in words, where a domain was searched. A proof is on the simplest pair
        that was found to have it at the same line.
    assumed : str or None
        As of `dpaudit.audit.AuditResult`.
    witness : object or None
        For ``REFUTED``: what `verify` replays. None for datasets that are objects.
    """

    name: str
    verdict: ReplayVerdict
    claim: Claim
    relation: Relation
    pair: Pair
    sees: str
    batches: str
    confidence: float
    proof: bool
    findings: tuple[Finding, ...]
    steps: Sequence[Step]
    executions: int
    samples: int
    repeats: int
    pairs: int
    loss: float
    seed: int
    seconds: float
    delta: DeltaAt | None = None
    assumes: str = ""
    event: str | None = None
    primitives: tuple[PrimitiveAudit, ...] = ()
    explored: Explored | None = None
    neighbours: str | None = None
    assumed: str | None = None
    witness: Any = field(default=None, repr=False)

    @property
    def refuted(self) -> bool:
        """Whether the claim was refuted."""
        return self.verdict is ReplayVerdict.REFUTED

    @property
    def remedy(self) -> str:
        """What would make ``NOT_FOLLOWED`` code followed, or settle it; else empty."""
        if self.verdict is not ReplayVerdict.NOT_FOLLOWED:
            return ""
        return remedy_for(self.findings, self.sees)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready Python; infinity and NaN as text."""
        told = super().to_dict()
        told = {"layer" if name == "pair" else name: told[name] for name in told}
        told.pop("primitives")
        if self.primitives:
            told["primitives"] = [each.to_dict() for each in self.primitives]
        steps = [asdict(step) for step in self.steps]
        return told | {
            "layer": "replay",
            "remedy": self.remedy,
            "findings": [finding.to_dict() for finding in self.findings],
            "steps": [{k: _finite(step[k]) for k in step} for step in steps],
        }

    def to_pandas(self) -> "pd.DataFrame":
        """Return the steps as a table, a row to each."""
        import pandas as pd

        names = list(Step.__dataclass_fields__)
        return pd.DataFrame([asdict(step) for step in self.steps], columns=names)

    @property
    def _trusted(self) -> list[float]:
        """The losses that trusted primitives promise."""
        return [step.loss for step in self.steps if step.family == "trusted"]

    def _told_loss(self) -> str:
        if math.isnan(self.loss):
            return "not known"
        loss, trusted = f"{self.loss:.4g}", self._trusted
        if self.loss == math.inf and not self.refuted:
            if any(map(math.isnan, trusted)):
                loss = "inf: what is trusted has a delta, and promises no bound"
            elif pure_epsilon(self.claim) is None:
                loss = "inf, and the claim asks for no bound"
        elif trusted:
            loss += ", as far as what is trusted keeps its promise"
        elif self.explored and not self.refuted:
            loss += ", the largest that was seen"
        if self.assumes and not self.refuted:
            loss = f"about {loss}, if {self.assumes}"
        return loss

    def __str__(self) -> str:
        how = ""
        if self.refuted:
            how = " by proof" if self.proof else f" at confidence {self.confidence:g}"
            how += f", if {self.assumes}" if self.assumes else ""
        seen = "the release" if self.sees == "release" else "every noisy value"
        if self.batches == "public":
            seen += ", and every batch"
        elif self.batches and self.sees == "transcript":
            seen += ", and which of the other rows are in a batch"
        again = self.repeats and not (self.refuted and self.assumes)  # which says so
        drawn = f", repeated {self.repeats} times" if again else ""
        drawn += f", {self.samples:,} releases a side" if self.samples else ""
        lines = [
            f"{printable(self.name)}: {self.verdict}{how} "
            f"({self.executions} executions a side{drawn}, {self.seconds:.1f} s)",
            f"  claim          {self.claim} under {self.relation}, against an observer "
            f"of {seen}",
            f"  loss           {self._told_loss()}",
        ]
        if self.delta is not None:
            most = "at most " * bool(self._trusted and not self.refuted)
            lines.append(f"  delta          {most}{self.delta}")
        if self.event is not None:
            lines.append(f"  event          {printable(self.event)}")
        if self.explored is not None and not self.refuted:
            lines.append(f"  branches       {self.explored}")
        if self.pairs > 1:
            lines.append(f"  pairs          {self.pairs} tried")
        if self.neighbours:
            lines.append(f"  pair           {printable(self.neighbours)}")
        if self.assumed:
            lines.append(f"  domain         {printable(self.assumed)}")
        lines.extend(f"  primitive      {each}" for each in self.primitives)
        if self.refuted and self.pair.rows is None:
            kind = type(self.pair.data).__name__
            lines.append(f"  witness        none: no file holds data of type {kind}")
        lines.extend(f"  {finding}" for finding in self.findings)
        if self.remedy:
            lines.append(f"  to settle it   {printable(self.remedy)}")
        return "\n".join(lines)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value


@dataclass(frozen=True)
class ReplayVerification:
    """The outcome of replaying a witness.

    Parameters
    ----------
    confirmed : bool
        Whether the claim is refuted again.
    result, warnings
        As in `dpaudit.audit.Verification`.
    """

    confirmed: bool
    result: ReplayResult
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the verification as JSON-ready Python."""
        return {
            "confirmed": self.confirmed,
            "warnings": list(self.warnings),
            **self.result.to_dict(),
        }

    def __str__(self) -> str:
        outcome = "CONFIRMED" if self.confirmed else "NOT CONFIRMED"
        lines = [f"violation {outcome}", str(self.result)]
        lines += [f"  WARNING        {printable(each)}" for each in self.warnings]
        return "\n".join(lines)
