"""The attacks of an audit: fitted on the past, judged on what they did not learn from.

Scores are rounded to a relative 2^-30 of their scale before anything else happens.
This is what makes an audit one of real-number privacy: where the exact score is
constant on an event of positive probability, its floating-point image differs in the
last bits, and those bits can tell D from D' for reasons of arithmetic alone (Mironov,
*On significance of the least significant bits for differential privacy*, CCS 2012).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks import Attack, Parameters, Target
from dpaudit.audit.events import Events, candidates
from dpaudit.audit.sampling import (
    DATA,
    NEIGHBOUR,
    bytes_per_release,
    concatenate,
    length,
    section,
)
from dpaudit.mechanism import Release

__all__ = ["Arsenal", "FittedAttack"]

Array = NDArray[np.float64]

_POOL_RELEASES = 4096
_POOL_BYTES = 64 * 2**20
_SCORES = 200_000  # kept per attack and side
_LATE = 128  # learned attacks wait for this many releases if others apply
_EARLY = 8
_REFIT = 1.5  # refit a learned attack when its pool has grown by this factor
_TRIAL = 1000  # up to this many releases every attack scores, later those in use


@dataclass(frozen=True)
class FittedAttack:
    """An attack with its parameters and the resolution of its scores."""

    attack: Attack
    parameters: Parameters
    resolution: float

    @classmethod
    def fit(
        cls, attack: Attack, target: Target, on_data: Release, on_neighbour: Release
    ) -> "FittedAttack":
        """Fit on past releases."""
        parameters = attack.fit(target, on_data, on_neighbour)
        raw = [
            attack.score(target, parameters, side) for side in (on_data, on_neighbour)
        ]
        finite = np.abs(np.concatenate(raw))
        largest = np.max(finite, where=np.isfinite(finite), initial=0.0)
        exponent = np.floor(np.log2(largest)) if largest > 0 else 0.0
        return cls(attack, parameters, float(2.0 ** (exponent - 30)))

    def score(self, target: Target, releases: Release) -> Array:
        """Return rounded scores; NaN counts as the lowest score."""
        raw = self.attack.score(target, self.parameters, releases)
        rounded = np.floor(raw / self.resolution + 0.5) * self.resolution
        return np.where(np.isnan(rounded), -np.inf, rounded)


@dataclass
class _Contender:
    """An attack in the portfolio, its current fit and its honest scores."""

    attack: Attack
    fitted: FittedAttack | None = None
    fitted_on: int = 0
    scores: tuple[list[Array], list[Array]] = field(default_factory=lambda: ([], []))

    def scored(self, side: int) -> int:
        return sum(map(len, self.scores[side]))

    def keep(self, side: int, scores: Array) -> None:
        room = _SCORES - self.scored(side)
        if room > 0:
            self.scores[side].append(scores[:room])

    def past_scores(self, side: int) -> Array:
        self.scores[side][:] = [np.concatenate(self.scores[side])]
        return self.scores[side][0]


class Arsenal:
    """A portfolio of attacks on one target, learning from the releases it sees.

    Parameters
    ----------
    target : Target
    attacks : sequence of Attack
    """

    def __init__(self, target: Target, attacks: Sequence[Attack]) -> None:
        self._target = target
        self._attacks = attacks
        self._pool: tuple[list[Release], list[Release]] = ([], [])
        self._pool_limit = _POOL_RELEASES
        self._contenders: list[_Contender] = []
        self._patience = _EARLY
        self.seen = 0

    def begin(self, on_data: Release, on_neighbour: Release) -> None:
        """Take the pilot releases, and see which attacks apply."""
        first = concatenate([on_data, on_neighbour])
        affordable = _POOL_BYTES / bytes_per_release(first)
        self._pool_limit = int(np.clip(affordable, 64, _POOL_RELEASES))
        self._pool[DATA].append(on_data)
        self._pool[NEIGHBOUR].append(on_neighbour)
        self.seen = length(on_data)
        self._contenders = [
            _Contender(attack)
            for attack in self._attacks
            if attack.applies(self._target, first)
        ]
        if not all(contender.attack.learns for contender in self._contenders):
            self._patience = _LATE

    def prepare(self) -> Events:
        """Refit what is due, and return the candidate events for the next round."""
        for contender in self._contenders:
            self._refit(contender)
        return candidates(
            [
                (index, contender.past_scores(DATA), contender.past_scores(NEIGHBOUR))
                for index, contender in enumerate(self._contenders)
                if contender.fitted is not None
            ]
        )

    def absorb(
        self,
        side: int,
        releases: Release,
        events: Events,
        in_use: NDArray[np.intp],
    ) -> NDArray[np.intp]:
        """Score new releases, remember them, and count the events they hit.

        Parameters
        ----------
        side : int
        releases : Release
        events : Events
            As `prepare` returned them.
        in_use : ndarray of int
            The events whose counts are needed; those of other attacks may be left 0.

        Returns
        -------
        ndarray of int, shape (len(events),)
        """
        hits = np.zeros(len(events), dtype=np.intp)
        needed = set(events.attack[in_use].tolist())
        for index, contender in enumerate(self._contenders):
            if contender.fitted is None:
                continue
            if index not in needed and self.seen > _TRIAL:
                continue
            scores = contender.fitted.score(self._target, releases)
            contender.keep(side, scores)
            mine = events.attack == index
            below = np.searchsorted(np.sort(scores), events.threshold[mine], "left")
            hits[mine] = len(scores) - below
        self._remember(side, releases)
        if side == DATA:
            self.seen += length(releases)
        return hits

    def fitted(self, index: int) -> FittedAttack:
        """Return the current fit of the attack that `Events.attack` calls `index`."""
        fitted = self._contenders[index].fitted
        assert fitted is not None
        return fitted

    def hits(self, index: int, threshold: float) -> tuple[int, int, int, int]:
        """Return (k, n, m, n'): past hits and scores on D, then on D'."""
        data, neighbour = map(self._contenders[index].past_scores, (DATA, NEIGHBOUR))
        return (
            int((data >= threshold).sum()),
            len(data),
            int((neighbour >= threshold).sum()),
            len(neighbour),
        )

    def _remember(self, side: int, releases: Release) -> None:
        # Releases are independent, so a prefix is as good a sample as any other.
        room = self._pool_limit - sum(map(length, self._pool[side]))
        if room > 0:
            self._pool[side].append(section(releases, slice(room)))

    def _refit(self, contender: _Contender) -> None:
        attack = contender.attack
        available = sum(map(length, self._pool[DATA]))
        if attack.learns:
            due = available >= max(self._patience, _REFIT * contender.fitted_on)
        else:
            due = contender.fitted is None
        if not due:
            return
        pools = []
        for side in (DATA, NEIGHBOUR):
            self._pool[side][:] = [concatenate(self._pool[side])]
            pools.append(self._pool[side][0])
        contender.fitted = FittedAttack.fit(attack, self._target, *pools)
        contender.fitted_on = available
        for side, scores in enumerate(self._honest_scores(contender.fitted, *pools)):
            contender.scores[side][:] = [scores]

    def _honest_scores(
        self, fitted: FittedAttack, on_data: Release, on_neighbour: Release
    ) -> tuple[Array, Array]:
        """Score the pool; by two-fold cross-fitting where the attack learns from it."""
        target, attack = self._target, fitted.attack
        if not attack.learns:
            return fitted.score(target, on_data), fitted.score(target, on_neighbour)
        parts: tuple[list[Array], list[Array]] = ([], [])
        half = length(on_data) // 2
        folds = slice(None, half), slice(half, None)
        for learn, judge in (folds, folds[::-1]):
            other = FittedAttack.fit(
                attack, target, section(on_data, learn), section(on_neighbour, learn)
            )
            for side, releases in enumerate((on_data, on_neighbour)):
                parts[side].append(other.score(target, section(releases, judge)))
        return np.concatenate(parts[DATA]), np.concatenate(parts[NEIGHBOUR])
