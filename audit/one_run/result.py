"""What many canaries say of a claim."""

from dataclasses import dataclass, replace

from dpaudit.audit.bounds.result import Bound
from dpaudit.audit.judged import UNFOUNDED, PrintedResult, Verdict
from dpaudit.claims import Claim, GaussianDP
from dpaudit.neighbours import Relation
from dpaudit.printable import printable, told_apart

__all__ = ["CanaryAudit"]


@dataclass(frozen=True)
class CanaryAudit(PrintedResult):
    """What the guesses of all runs say of a claim.

    Parameters
    ----------
    name : str
    verdict : Verdict
        ``REFUTED`` if the p-value is at most 1 - confidence, which is so just if the
        bound reaches `epsilon`; a true claim is refuted with at most that probability.
        ``NO_VERDICT`` if the runs were seen not to be independent draws: the p-value is
        1 and the bound 0.
    claim : Claim
    relation : Relation
    epsilon : float
        What the claim promises at the bound's delta.
    p_value : float
        Against (epsilon, delta)-DP, or against mu-GDP if that is the claim.
    bound : Bound
        The lower bound on epsilon, or on mu if the claim is of Gaussian DP, with its
        confidence, delta and counts.
    runs, pilots : int
        Runs that were tested, and runs that chose the number of guesses.
    canaries, guesses : int
        Coins per run, and how many of them were guessed.
    warnings : tuple of str
        Signs that the runs are not independent draws of one law, which every statement
        here assumes; and that guesses are the wrong way round.
    seed : int
    seconds : float
    tried : int
        Ways to guess among which the best was chosen; they share the error, which the
        p-value and the bound have paid for.
    """

    name: str
    verdict: Verdict
    claim: Claim
    relation: Relation
    epsilon: float
    p_value: float
    bound: Bound
    runs: int
    pilots: int
    canaries: int
    guesses: int
    warnings: tuple[str, ...]
    seed: int
    seconds: float
    tried: int = 1

    @property
    def refuted(self) -> bool:
        """Whether the verdict is REFUTED."""
        return self.verdict is Verdict.REFUTED

    @property
    def confidence(self) -> float:
        """That of the bound."""
        return self.bound.confidence

    @property
    def findings(self) -> tuple[str, ...]:
        """How many guesses were right, in words, if the claim is refuted."""
        counts = self.bound.counts
        right = f"{counts['correct']} of {counts['guesses']} guesses were right"
        return (right,) if self.refuted else ()

    def withdrawn(self) -> "CanaryAudit":
        """Return what is left of the result where its runs prove nothing."""
        bound = replace(self.bound, value=0.0)
        return replace(self, verdict=Verdict.NO_VERDICT, p_value=1.0, bound=bound)

    def __str__(self) -> str:
        counts = self.bound.counts
        runs = "one run" if self.runs == 1 else f"{self.runs} runs"
        pilots = f", {self.pilots} more to choose them" if self.pilots else ""
        if self.tried > 1:
            pilots = f", the best of {self.tried} ways to guess, which share the error"
        warnings = [f"  WARNING        {warning}" for warning in self.warnings]
        if self.verdict is Verdict.NO_VERDICT:
            return "\n".join(
                (
                    f"{printable(self.name)}: {self.verdict} ({runs}, "
                    f"{self.seconds:.1f} s)",
                    f"  claim          {self.claim} under {self.relation}",
                    f"  no verdict     {UNFOUNDED}",
                    *warnings,
                )
            )
        shown, most = told_apart(self.bound.epsilon or 0.0, self.epsilon)
        of, mu = "epsilon at that delta", []
        if isinstance(self.claim, GaussianDP):
            of, promised = "mu", self.claim.parameters["mu"]
            lower, most_mu = told_apart(self.bound.value, promised)
            mu = [f"  mu_lower       {lower}  (where the claim allows {most_mu})"]
        return "\n".join(
            (
                f"{printable(self.name)}: {self.verdict} at confidence "
                f"{self.bound.confidence:g} ({runs}, {self.seconds:.1f} s)",
                f"  claim          {self.claim} under {self.relation}",
                *mu,
                f"  epsilon_lower  {shown}  (at delta = {self.bound.delta:.3g}, "
                f"where the claim allows {most})",
                f"  p-value        {self.p_value:.3g}  (of the claim's {of})",
                f"  guesses        {counts['correct']} of {counts['guesses']} right; "
                f"{self.guesses} of {self.canaries} canaries a run{pilots}",
                *warnings,
            )
        )
