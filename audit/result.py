"""What an audit says, and what it does not."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dpaudit.audit.judged import UNFOUNDED, PrintedResult, Verdict
from dpaudit.audit.keeping.witness import Witness
from dpaudit.audit.layers.exact import ExactVerdict
from dpaudit.audit.layers.layer import Layer
from dpaudit.claims import ApproxDP, Claim, GaussianDP, PureDP
from dpaudit.gaussian import gaussian_mu
from dpaudit.neighbours import Relation
from dpaudit.printable import printable, told_apart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["AuditResult"]

_BY_THE_VERDICT = "; that it is more is what the verdict says"


@dataclass(frozen=True, repr=False)
class AuditResult(PrintedResult):
    """The outcome of one audit.

    Each lower bound, and the verdict, holds with probability at least `confidence` on
    its own, at whatever moment the audit stopped. The verdict and the bound on the
    claim's own parameter (`mu_lower` for a Gaussian claim, `epsilon_lower` for an
    (epsilon, delta) claim) hold together: it is ``REFUTED`` just if that bound is at
    least what is claimed.

    Parameters
    ----------
    name : str
        What was audited.
    verdict : Verdict
        ``REFUTED``: some event on this pair violates the claim. ``NOT_REFUTED``: this
        run did not show one; that is no proof of privacy. ``NO_VERDICT``: the releases
        were seen not to be independent draws, see `warnings`, so that nothing follows:
        the bounds are 0, and there is no event and no witness.
    claim : Claim
    relation : Relation
    layer : Layer
        What the attacker saw: final releases (black box) or the whole transcript.
    bits : bool
        Whether the audit was one of doubles rather than of real numbers.
    confidence : float
        In (0, 1); the error probability is 1 - confidence.
    samples : int
        Releases drawn on either side, on average of the two.
    refuted_at : int or None
        How many of them had been drawn when the claim fell.
    drawn : tuple of int
        Releases drawn on the data and on the neighbour, over all pairs.
    pairs : int
        How many pairs of neighbours were tried.
    epsilon_lower, at_delta : float
        The mechanism is not (e, `at_delta`)-DP for any e below `epsilon_lower`.
    delta_lower, at_epsilon : float
        The mechanism is not (`at_epsilon`, d)-DP for any d below `delta_lower`.
    mu_lower : float or None
        The mechanism is not m-GDP for any m below this (Gaussian claims only).
    attack : str or None
        Whose event it is.
    event : str or None
        The event that spoke loudest against the claim, and if that stands, for the
        bound: in words, and how often past outputs hit it. It was chosen with
        hindsight: the verdict does not rest on these counts.
    log_evidence : float
        Natural logarithm of the evidence (an e-value) against the claim itself.
    detectable_epsilon : float or None
        For NOT_REFUTED: had the best of the events that this run ended with shown
        this epsilon (at `at_delta`), a run of this length would have refuted the
        claim with probability 0.9. Never below `allowed_epsilon`. For a Gaussian claim
        it is the epsilon of `detectable_mu`, which the event would have shown. None if
        no violation of theirs is detectable.
    rarest_event : float
        How likely an output that only one dataset gives (a raw value among noisy ones,
        a word) must be, for nine runs in ten of this length to refute the claim by it.
        What is rarer mostly evades this audit.
    exact : ExactVerdict or None
        What the mechanism's exact privacy profile says of the claim on the last pair,
        where it has one. The verdict does not rest on it.
    trajectory : tuple of (int, float)
        Releases a side after each round, and the bound on epsilon by then.
    roc : tuple of (float, float)
        Of the attack's events, rarest first: the share of past releases that hit one,
        on D' and on D. Estimates, no bounds.
    warnings : tuple of str
        Signs that the releases are not independent draws of one law, which every
        statement here assumes, and that there was something they could not tell.
    seed : int
    seconds : float
        Wall-clock time, sampling included.
    witness : Witness or None
        For REFUTED: what it takes to replay the refutation.
    neighbours : str or None
        The last pair in words, where it was found in a domain.
    assumed : str or None
        What was taken to be public, where the domain was read from an example; or
        which ranges of a domain are a few integers.
    shrunk : AuditResult or None
        For REFUTED, of a pair that was found in a domain: the audit of a smaller pair,
        by fresh releases, which refutes the claim there with an error probability of
        its own, 1 - `confidence` at most. The verdict does not rest on it.
    interrupted : bool
        Whether the audit was ended before its time; what it says holds no less.
    from_store : bool
        Whether an earlier run, kept in a store, brought this result.
    """

    derived = "allowed_epsilon", "allowed_delta"

    name: str
    verdict: Verdict
    claim: Claim
    relation: Relation
    layer: Layer
    bits: bool
    confidence: float
    samples: int
    refuted_at: int | None
    drawn: tuple[int, int]
    pairs: int
    epsilon_lower: float
    at_delta: float
    delta_lower: float
    at_epsilon: float
    mu_lower: float | None
    attack: str | None
    event: str | None
    log_evidence: float
    detectable_epsilon: float | None
    rarest_event: float
    exact: ExactVerdict | None
    trajectory: tuple[tuple[int, float], ...]
    roc: tuple[tuple[float, float], ...]
    warnings: tuple[str, ...]
    seed: int
    seconds: float
    witness: Witness | None
    neighbours: str | None = None
    assumed: str | None = None
    shrunk: "AuditResult | None" = None
    interrupted: bool = False
    from_store: bool = field(default=False, compare=False)

    @property
    def refuted(self) -> bool:
        """Whether the verdict is REFUTED."""
        return self.verdict is Verdict.REFUTED

    def withdrawn(self) -> "AuditResult":
        """Return what is left of the result where its releases prove nothing."""
        return replace(
            self,
            verdict=Verdict.NO_VERDICT,
            refuted_at=None,
            epsilon_lower=0.0,
            delta_lower=0.0,
            mu_lower=None if self.mu_lower is None else 0.0,
            attack=None,
            event=None,
            log_evidence=0.0,
            detectable_epsilon=None,
            rarest_event=1.0,
            trajectory=(),
            roc=(),
            witness=None,
            neighbours=None,
        )

    @property
    def allowed_epsilon(self) -> float:
        """What the claim allows at `at_delta`; its own epsilon if it has one."""
        return self.claim.epsilon_at(self.at_delta)

    @property
    def allowed_delta(self) -> float:
        """What the claim allows at `at_epsilon`; its own delta if it has one."""
        return float(self.claim.delta_at(self.at_epsilon))

    @property
    def detectable_mu(self) -> float | None:
        """`detectable_epsilon` as the mu of a Gaussian mechanism (Gaussian claims)."""
        if not isinstance(self.claim, GaussianDP) or not self.detectable_epsilon:
            return None
        return gaussian_mu(self.detectable_epsilon, self.at_delta)

    @property
    def findings(self) -> tuple[str, ...]:
        """The event that breaks the claim, in words, if it is refuted."""
        return (self.event,) if self.refuted and self.event is not None else ()

    def plot(self) -> "Figure":
        """Draw the bound against releases, and the attack's ROC against the claim.

        Returns
        -------
        matplotlib.figure.Figure
            A notebook shows it; ``savefig`` writes it.
        """
        from dpaudit.audit.plotting import draw

        return draw(self)

    def __repr__(self) -> str:
        if self.verdict is Verdict.NO_VERDICT:
            return f"<AuditResult {printable(self.name, longest=60)}: {self.verdict}>"
        return (
            f"<AuditResult {printable(self.name, longest=60)}: {self.verdict} at "
            f"confidence {self.confidence:g}, epsilon >= {self.epsilon_lower:.4g} at "
            f"delta = {self.at_delta:.3g}>"
        )

    def __str__(self) -> str:
        after = ""
        if self.refuted_at is not None and self.refuted_at < self.samples:
            after = f"after {self.refuted_at:,} of "
        founded = self.verdict is not Verdict.NO_VERDICT
        at = f" at confidence {self.confidence:g}" if founded else ""
        head = (
            f"{printable(self.name)}: {self.verdict}{at} "
            f"({after}{self.samples:,} releases a side, {self.seconds:.1f} s)"
        )
        numbers = "doubles" if self.bits else "real numbers"
        lines = [
            head,
            f"  claim          {self.claim} under {self.relation}",
            f"  layer          {self.layer}, over {numbers}",
        ]
        lines += self._bounds() if founded else [f"  no verdict     {UNFOUNDED}"]
        if self.assumed:
            lines.append(f"  domain         {printable(self.assumed)}")
        if self.interrupted:
            lines.insert(1, "  INTERRUPTED    before its end; what it says holds")
        if self.from_store:
            lines.insert(1, "  from the store: this audit was finished before")
        lines.extend(f"  WARNING        {printable(w)}" for w in self.warnings)
        return "\n".join(lines)

    def _bounds(self) -> list[str]:
        """Return what the releases say."""
        # Where a bound is at the claim's own point, the verdict speaks of it.
        own = self.refuted and isinstance(self.claim, PureDP | ApproxDP)
        at_delta, at_epsilon = f"{self.at_delta:.3g}", f"{self.at_epsilon:.4g}"
        lines = [
            "  epsilon_lower  "
            + _held(
                self.epsilon_lower, self.allowed_epsilon, own, f"delta = {at_delta}"
            ),
            "  delta_lower    "
            + _held(
                self.delta_lower, self.allowed_delta, own, f"epsilon = {at_epsilon}"
            ),
        ]
        if self.mu_lower is not None:
            allowed = self.claim.parameters["mu"]
            lines.append(
                "  mu_lower       " + _held(self.mu_lower, allowed, self.refuted)
            )
        if self.attack is not None:
            lines.append(
                f"  evidence       e^{self.log_evidence:.1f} against the claim, "
                f"attack {printable(self.attack)}"
            )
        if self.event is not None:
            lines.append(f"  event          {printable(self.event)}")
        if self.neighbours:
            lines.append(f"  pair           {printable(self.neighbours)}")
        if self.shrunk is not None:
            small = self.shrunk
            lines.append(
                f"  smaller pair   {printable(small.neighbours)}: refuted there too at "
                f"confidence {small.confidence:.7g}, by {small.samples:,} fresh "
                "releases a side"
            )
        if self.drawn[0] != self.drawn[1]:
            lines.append(
                f"  releases       {self.drawn[0]:,} on the data, {self.drawn[1]:,} on "
                "the neighbour"
            )
        if self.pairs > 1:
            lines.append(f"  pairs          {self.pairs} tried")
        if self.exact is not None:
            lines.append(f"  exact layer    {self.exact}")
        if not self.refuted:
            if self.epsilon_lower > self.allowed_epsilon:
                lines.append(
                    "  NOTE           epsilon_lower alone exceeds what the claim "
                    "allows: a test of its own; the verdict is that of the claim itself"
                )
            lines.append(f"  {self._limits()}")
        return lines

    def _limits(self) -> str:
        """Say what a run like this could not have seen."""
        rare = f"events rarer than {self.rarest_event:.2g} would mostly be missed"
        if self.detectable_epsilon is None:
            return f"no violation of its last events was detectable; {rare}"
        mu = self.detectable_mu
        as_mu = "" if mu is None else f" (mu >= {mu:.4g})"
        return (
            f"epsilon >= {self.detectable_epsilon:.4g} at delta = {self.at_delta:.3g}"
            f"{as_mu} on its best event would have been refuted with 90 % power; {rare}"
        )


def _held(bound: float, allowed: float, refuted: bool, at: str = "") -> str:
    """Return a bound beside what a claim allows there, with digits to tell them apart.

    Whether the claim is refuted there may be known where the bound is not above it.
    """
    shown, most = told_apart(bound, allowed)
    where = f"at {at}, where the" if at else "the"
    verdict = _BY_THE_VERDICT if refuted and bound <= allowed else ""
    return f"{shown}  ({where} claim allows {most}{verdict})"
