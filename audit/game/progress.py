"""How far an audit is."""

import time
from dataclasses import dataclass

from dpaudit.audit.game.state import AuditState
from dpaudit.printable import printable

__all__ = ["Clock", "Progress"]

_FEWEST_LAPS = 3  # before a round, after the pilot, and after one more


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


class Clock:
    """The time that an audit takes, over all processes that worked on it.

    Parameters
    ----------
    state : AuditState
    before : float
        Seconds that it took until now.
    """

    def __init__(self, state: AuditState, before: float) -> None:
        self._state, self._before = state, before
        self._drawn_before = state.samples
        self._started = time.perf_counter()
        # After every round: the releases a side, and the seconds of this process.
        self._laps = [(state.samples, 0.0)]

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return self._before + time.perf_counter() - self._started

    def lap(self) -> None:
        """Note the end of a round."""
        self._laps.append((self._state.samples, time.perf_counter() - self._started))

    def runs_out(self, most: float | None) -> bool:
        """Say whether another round would likely end later than so many seconds.

        Of this process; a round takes longer than the one before by what it grows.
        """
        if most is None or len(self._laps) < _FEWEST_LAPS:
            return False
        (_, before), (_, now) = self._laps[-2:]
        return now + (now - before) > most

    @property
    def _pace(self) -> float:
        """Seconds a release, over the rounds that drew the last half of them.

        The first rounds are small, and hardly cheaper than large ones.
        """
        drawn, now = self._laps[-1]
        half = (drawn + self._drawn_before) / 2
        since, then = next(lap for lap in reversed(self._laps) if lap[0] <= half)
        return (now - then) / max(drawn - since, 1)

    def progress(self) -> Progress:
        """Return how far the audit is."""
        state, seconds = self._state, self.seconds
        return Progress(
            samples=state.samples,
            max_samples=state.limit,
            pairs=state.pairs,
            epsilon_lower=state.tests["epsilon"].lower_bound,
            at_delta=state.at_delta,
            attack=state.favourite,
            seconds=seconds,
            seconds_left=self._pace * (state.limit - state.samples),
            resumed_at=self._drawn_before,
        )


def _duration(seconds: float) -> str:
    """Return a time in its two largest units."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
