"""How often something happened, with an exact interval."""

from dataclasses import dataclass

from scipy.special import betaincinv

from dpaudit.validation import check_count, check_fraction

__all__ = ["Proportion"]


@dataclass(frozen=True)
class Proportion:
    """Hits among independent trials, with Clopper and Pearson's interval.

    Parameters
    ----------
    hits, trials : int
        0 <= hits <= trials, trials at least 1.
    confidence : float
        In (0, 1): the interval covers the probability at least as often.

    Examples
    --------
    >>> print(Proportion(1000, 1000))
    1000 of 1000 (0.9947 to 1 with 99 % confidence)
    """

    hits: int
    trials: int
    confidence: float = 0.99

    def __post_init__(self) -> None:
        check_count("trials", self.trials)
        check_count("hits", self.hits, minimum=0, maximum=self.trials)
        check_fraction("confidence", self.confidence)

    @property
    def share(self) -> float:
        """The observed share."""
        return self.hits / self.trials

    @property
    def interval(self) -> tuple[float, float]:
        """The least and the largest probability of the interval."""
        tail, misses = (1 - self.confidence) / 2, self.trials - self.hits
        low = betaincinv(self.hits, misses + 1, tail) if self.hits else 0.0
        high = betaincinv(self.hits + 1, misses, 1 - tail) if misses else 1.0
        return float(low), float(high)

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.hits} of {self.trials} ({low:.4g} to {high:.4g} with "
            f"{100 * self.confidence:g} % confidence)"
        )
