"""What a white-box run says: two-sided bounds for a pair's privacy profile."""

from dataclasses import dataclass

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.judged import PrintedResult
from dpaudit.claims import Claim, Profile
from dpaudit.neighbours import Relation
from dpaudit.validation import check_fraction

__all__ = ["WhiteBoxResult"]

_MARGIN = 1e-9  # relative rounding error of a claim's delta


@dataclass(frozen=True, eq=False)
class WhiteBoxResult(PrintedResult):
    """Two-sided bounds for delta(epsilon) of one pair, which all hold together.

    Parameters
    ----------
    epsilon : ndarray, shape (k,)
    low_by_direction, high_by_direction, estimate_by_direction : ndarray, shape (2, k)
        For P against Q (the law on `pair.data` against that on `pair.neighbour`), then
        for Q against P.
    samples : int
        Releases per direction and proposal, pilots not counted.
    confidence : float
        Of all the intervals together, whenever one looks.
    relation : Relation
    seed : int
    proposals : tuple of str
        Where releases were drawn, as "direction, epsilon: where".
    assumptions : tuple of str
        What both bounds rest on, beside the mechanism's privacy loss.
    upper_assumptions : tuple of str
        What the upper bounds rest on in addition.
    """

    derived = "delta_low", "delta_high", "estimate"

    epsilon: Array
    low_by_direction: Array
    high_by_direction: Array
    estimate_by_direction: Array
    samples: int
    confidence: float
    relation: Relation
    seed: int
    proposals: tuple[str, ...]
    assumptions: tuple[str, ...]
    upper_assumptions: tuple[str, ...]

    @property
    def delta_low(self) -> Array:
        """Lower bounds for the pair's delta, the larger of both directions; (k,)."""
        return self.low_by_direction.max(axis=0)

    @property
    def delta_high(self) -> Array:
        """Upper bounds for the pair's delta; shape (k,)."""
        return self.high_by_direction.max(axis=0)

    @property
    def estimate(self) -> Array:
        """Estimates of the pair's delta, no bounds; shape (k,)."""
        return self.estimate_by_direction.max(axis=0)

    def refutes(self, claim: Claim) -> bool:
        """Say whether some lower bound exceeds what the claim allows.

        A claim that holds on the pair is refuted with probability at most
        1 - confidence. Differences below one part in 1e9 of the claimed delta count
        as rounding.
        """
        return bool(
            np.any(self.delta_low > claim.delta_at(self.epsilon) * (1 + _MARGIN))
        )

    def epsilon_lower(self, delta: float) -> float:
        """Return a bound below which the pair's epsilon at `delta` is not; 0 if none.

        If delta(e) >= d > `delta`, some event S has P(S) - e^e Q(S) >= d, where
        Q(S) <= e^-e (1 - d), so delta(e') >= 1 - e^(e' - e) (1 - d) for e' > e, which
        exceeds `delta` as long as e' < e + log((1 - delta)/(1 - d)).
        """
        delta = check_fraction("delta", delta, allow_zero=True)
        low = self.delta_low
        useful = low > delta
        if not useful.any():
            return 0.0
        with np.errstate(divide="ignore"):
            reach = np.log1p(-delta) - np.log1p(-low[useful])
        return float(np.max(self.epsilon[useful] + reach))

    def epsilon_upper(self, delta: float) -> float:
        """Return a bound above which the pair's epsilon at `delta` is not.

        It is what the upper bounds at all epsilons imply together; ``inf`` if nothing.
        """
        delta = check_fraction("delta", delta, allow_zero=True)
        order = np.argsort(self.epsilon)
        epsilon, high = self.epsilon[order], self.delta_high[order]
        high = np.minimum.accumulate(high)
        useful = high < 1
        if not useful.any():
            return float("inf")
        return Profile(epsilon[useful], high[useful]).epsilon_at(delta)

    def __str__(self) -> str:
        lines = [
            f"white box: {self.samples:,} releases a direction, confidence "
            f"{self.confidence:g} for all intervals together, {self.relation}"
        ]
        bounds = (self.epsilon, self.delta_low, self.delta_high, self.estimate)
        for epsilon, low, high, estimate in zip(*bounds, strict=True):
            lines.append(
                f"  delta({epsilon:.4g})  in [{low:.4g}, {high:.4g}]  "
                f"(estimate {estimate:.4g})"
            )
        lines += [f"  assumes: {text}" for text in self.assumptions]
        lines += [f"  upper bounds assume: {text}" for text in self.upper_assumptions]
        return "\n".join(lines)
