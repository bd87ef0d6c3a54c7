"""Which pair of neighbours an audit plays next.

A pair is an arm of a bandit. After each round on an arm comes a score, an estimate of
how fast evidence against the claim grows there, and from these alone it is decided
which arm plays next: so the rounds remain bets that are fixed from the past, and a
search costs power, never validity.

Of all releases at most `share` (a third) explore, the rest is played on the arm that
looks best; a round of the best arm at most doubles what was seen of it, so that bets
never stake much more than they learned from. The exploring part is a succession of
tournaments (successive halving: Karnin, Koren, Somekh, *Almost optimal exploration in
multi-armed bandits*, ICML 2013). In a tournament every arm of a field is
played up to a certain number of releases, the better half goes on to twice that
number, and so forth until one is left. The first field are all pairs proposed at the
start. Every later one holds the best arm, moves of its pair (ascent), random pairs,
and the arms that might be better than they look. The step of the ascent grows after a
success and shrinks after a failure. The entry to a tournament rises with the releases
so far, so that the number of rounds stays small.

A score may be noisy: an arm's value is the mean of its scores, weighted by releases,
and its standard error comes from how much the scores of the same arm scatter. Scores
below zero are welcome. They say how far inside its claim a pair lies, and let a search
climb before anything is violated.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from dpaudit.errors import InputError, MechanismError
from dpaudit.neighbours import Pair
from dpaudit.streams import stream
from dpaudit.validation import check_count, check_fraction

__all__ = ["PairSearch", "PairSource", "Round"]

_PROBE = 16  # releases a side at which arms are first compared
_ENTRY = 1 / 500  # later, as a share of all releases
_MOVES, _RANDOM, _REVIEWED = 6, 2, 8  # the field of a later tournament
_OPTIMISM = 2.0  # standard errors by which an arm may be better than it looks
_WIDEN, _NARROW = 1.5, 0.7
_FIRST_STEP, _SMALLEST_STEP = 0.5, 0.01


class PairSource(Protocol):
    """Where pairs come from; `dpaudit.audit.search.proposals.Proposals` is one."""

    @property
    def endless(self) -> bool:
        """Whether there are pairs beyond the first."""
        ...

    def first(self) -> Sequence[Pair]:
        """Return the pairs to begin with, the most promising first."""
        ...

    def random(self, rng: np.random.Generator) -> Pair:
        """Return a random pair."""
        ...

    def ascend(self, pair: Pair, scale: float, rng: np.random.Generator) -> Pair:
        """Return a pair near to one that has done well."""
        ...


class Round(NamedTuple):
    """What is played next: an arm, and how many releases a side."""

    arm: int
    size: int


@dataclass
class _Arm:
    """A pair and what is known of it; `scatter` is the weighted sum of squares."""

    pair: Pair
    releases: int = 0
    reports: int = 0
    mean: float = 0.0
    scatter: float = 0.0

    def add(self, score: float, releases: int) -> None:
        self.releases += releases
        self.reports += 1
        step = score - self.mean
        self.mean += step * releases / self.releases
        self.scatter += releases * step * (score - self.mean)


class PairSearch:
    """Decides from the reported past which pair plays the coming round.

    Parameters
    ----------
    source : PairSource
    seed : int
        >= 0. With the same seed and the same reports come the same decisions, so
        replaying the reports restores a search.
    share : float
        Most of the releases that may explore, at any time, in (0, 1).
    limit_arms : int
        Most arms that are remembered at once, >= 16 (see `live`).

    Examples
    --------
    >>> from dpaudit.audit.search.proposals import Proposals
    >>> from dpaudit.domains import Box
    >>> def black_box(data, rng):
    ...     return data.sum()
    >>> search = PairSearch(Proposals(black_box, Box(0, 1), "add-remove", seed=0), 0)
    >>> search.next_round(10)
    Round(arm=0, size=10)
    >>> search.report(0, score=0.1, releases=10)
    >>> search.best()
    0
    """

    def __init__(
        self,
        source: PairSource,
        seed: int,
        *,
        share: float = 1 / 3,
        limit_arms: int = 48,
    ) -> None:
        self._source = source
        self._share = check_fraction("share", share)
        self._limit = check_count("limit_arms", limit_arms, minimum=16)
        self._rng = stream(seed)
        self._arms = [_Arm(pair) for pair in source.first()[: self._limit]]
        if not self._arms:
            raise InputError("source must propose a pair to begin with")
        self._live = set(range(len(self._arms)))
        self._total = self._explored = 0
        self._step = _FIRST_STEP
        self._plan = self._tournaments()
        self._probe: Round | None = None
        self._exploring = False

    def next_round(self, size: int) -> Round:
        """Return the arm of the coming round, and its size.

        Parameters
        ----------
        size : int
            Most releases a side that the round may draw, >= 1. A probe may need
            fewer.

        Returns
        -------
        Round
            To be followed by `report` before the next call.

        Raises
        ------
        MechanismError
            If every pair so far was refused.
        """
        size = check_count("size", size)
        if not self._live:
            raise MechanismError(
                f"the mechanism refuses all {len(self._arms)} pairs that were proposed"
            )
        probe = self._affordable_probe(size)
        self._exploring = probe is not None
        if probe is not None:
            return probe
        arm = self.best()
        if self.searching:
            size = min(size, max(self._arms[arm].releases, _PROBE))
        return Round(arm, size)

    def report(self, arm: int, score: float, releases: int) -> None:
        """Take note of a round.

        Parameters
        ----------
        arm : int
        score : float
            The estimated violation at the arm's pair, larger is worse for the claim.
            -inf says that the mechanism refuses the pair: it is not played again.
        releases : int
            How many releases a side were spent, >= 1; 0 if the pair was refused.

        Raises
        ------
        InputError
            If the arm is unknown, or the score is NaN or +inf.
        """
        check_count("arm", arm, minimum=0, maximum=len(self._arms) - 1)
        if math.isnan(score) or score == math.inf:
            raise InputError(f"score must be finite or -inf, got {score!r}")
        refused = math.isinf(score)
        releases = check_count("releases", releases, minimum=0 if refused else 1)
        if refused:
            self._live.discard(arm)
        else:
            self._arms[arm].add(float(score), releases)
        self._total += releases
        self._explored += releases * self._exploring

    def pair(self, arm: int) -> Pair:
        """Return the pair of an arm."""
        return self._arms[arm].pair

    def best(self) -> int:
        """Return the arm that looks best, at one standard error below its mean.

        Before anything was reported it is the first, which promised most.
        """
        noise = self._noise()
        seen = [arm for arm in self._live if self._arms[arm].releases]
        return max(
            seen,
            key=lambda arm: (self._bound(arm, -noise), -arm),
            default=min(self._live, default=0),
        )

    @property
    def searching(self) -> bool:
        """Whether there is any pair to choose beside the first."""
        return self._source.endless or len(self._arms) > 1

    @property
    def live(self) -> frozenset[int]:
        """The arms that may be played again; what is kept of others can go."""
        return frozenset(self._live)

    @property
    def explored(self) -> int:
        """How many of the releases reported so far were probes."""
        return self._explored

    def _affordable_probe(self, size: int) -> Round | None:
        """Return the next probe if exploring is within its share, else None."""
        if self._probe is None or self._missing(self._probe) <= 0:
            self._probe = next(self._plan)
        if self._probe is None:
            return None
        size = min(size, self._missing(self._probe))
        if self._explored + size > self._share * (self._total + size):
            return None
        return Round(self._probe.arm, size)

    def _missing(self, probe: Round) -> int:
        """Return how many releases the arm of a probe lacks; none if it was refused."""
        lacking = probe.size - self._arms[probe.arm].releases
        return lacking if probe.arm in self._live else 0

    def _tournaments(self) -> Iterator[Round | None]:
        """Yield arms and the releases that they should reach, or None for a pause."""
        if len(self._arms) > 1:
            yield from self._tournament(range(len(self._arms)), _PROBE)
        while self.searching:
            champion = self.best()
            reviewed = self._retire_all_but_the_promising()[:_REVIEWED]
            fresh = [self._new_arm(pair) for pair in self._new_pairs(champion)]
            field = sorted({champion, *reviewed, *fresh})
            entry = max(_PROBE, math.ceil(_ENTRY * self._total))
            yield from self._tournament(field, entry)
            success = self.best() in fresh
            self._step = min(1.0, self._step * (_WIDEN if success else _NARROW))
            if self._step < _SMALLEST_STEP:
                self._step = _FIRST_STEP
            yield None
        while True:
            yield None

    def _tournament(self, field: Sequence[int], level: int) -> Iterator[Round]:
        """Play arms up to a level; the better half goes on to twice the level."""
        while True:
            for arm in field:
                probe = Round(arm, level)
                if self._missing(probe) > 0:
                    yield probe  # and no more before it is played up to its size
            field = [arm for arm in field if arm in self._live]
            if len(field) <= 1:
                return
            ranked = sorted(field, key=lambda arm: (-self._arms[arm].mean, arm))
            field, level = ranked[: (len(field) + 1) // 2], 2 * level

    def _new_pairs(self, champion: int) -> Iterator[Pair]:
        if not self._source.endless:
            return
        for _ in range(_MOVES):
            yield self._source.ascend(self.pair(champion), self._step, self._rng)
        for _ in range(_RANDOM):
            yield self._source.random(self._rng)

    def _new_arm(self, pair: Pair) -> int:
        self._arms.append(_Arm(pair))
        self._live.add(len(self._arms) - 1)
        return len(self._arms) - 1

    def _retire_all_but_the_promising(self) -> list[int]:
        """Make room for new arms; return those that stay, the most promising first."""
        hope = _OPTIMISM * self._noise()
        ranked = sorted(self._live, key=lambda arm: (-self._bound(arm, hope), arm))
        stay = ranked[: self._limit - _MOVES - _RANDOM - 1]
        self._live = {*stay, self.best()}
        return stay

    def _bound(self, arm: int, noise: float) -> float:
        """Return the mean of an arm plus noise over the root of its releases."""
        known = self._arms[arm]
        return known.mean + noise / math.sqrt(max(known.releases, 1))

    def _noise(self) -> float:
        """Return the standard deviation of a score from one release, over all arms."""
        scatter = sum(arm.scatter for arm in self._arms)
        freedom = sum(max(arm.reports - 1, 0) for arm in self._arms)
        return math.sqrt(scatter / freedom) if freedom else 0.0
