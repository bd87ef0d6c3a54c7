"""How far an audit is."""

from dataclasses import dataclass

from dpaudit.printable import printable

__all__ = ["Progress"]


@dataclass(frozen=True)
class Progress:
    """An audit between two rounds.

    Parameters
    ----------
    samples, max_samples : int
        Releases a side so far, and at most.
    pairs : int
        How many pairs of neighbours were tried.
    epsilon_lower, at_delta : float
        The lower bound so far, and at which delta.
    attack : str or None
        Whose event is bet on most hopefully.
    seconds : float
        Work so far, that of an interrupted process included.
    seconds_left : float
        At the pace of the last half of the releases, if the audit goes on to
        `max_samples`.
    resumed_at : int
        Releases a side that an interrupted process had drawn; 0 if there was none.

    Examples
    --------
    >>> print(Progress(1_000, 90_000, 1, 0.25, 1e-5, "identity", 0.8, 71.2, 0))
    1,000 of 90,000 releases a side, epsilon >= 0.25 at delta 1e-05 by identity, \
1 min 11 s left
    """

    samples: int
    max_samples: int
    pairs: int
    epsilon_lower: float
    at_delta: float
    attack: str | None
    seconds: float
    seconds_left: float
    resumed_at: int

    def __str__(self) -> str:
        by = "" if self.attack is None else f" by {printable(self.attack)}"
        return (
            f"{self.samples:,} of {self.max_samples:,} releases a side, "
            f"epsilon >= {self.epsilon_lower:.3g} at delta {self.at_delta:.3g}{by}, "
            f"{_duration(self.seconds_left)} left"
        )


def _duration(seconds: float) -> str:
    """Return a time in its two largest units."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
