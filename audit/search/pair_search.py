"""Which pair of neighbours an audit plays next.

A pair is an arm of a bandit. After each round on an arm comes a score, and from these
alone it is decided which arm plays next: so the rounds remain bets that are fixed from
the past, and a search costs power, never validity.

A score z says by how many standard errors the arm's worst event exceeds the claim, as
all releases of the arm show it; the next score replaces it. An excess of m standard
deviations of a release promises growth of evidence by m^2/2 per release, and after n
of them z is about normal around m sqrt(n), with variance 1. So z^2/(2n), with the sign
of z, estimates the growth; z + k in its place gives a hopeful estimate, z - k a
cautious one. Scores below zero are welcome: they say how far inside its claim a pair
lies, and let a search climb before anything is violated.

Of all releases at most `share` (a third) explore, the rest is played on the arm that
is best by the cautious estimate; a round of the best arm at most doubles what was seen
of it, so that bets never stake much more than they learned from. What explores only
teaches: no bets are planned for a few releases of an arm that is mostly not the worst,
as that costs far more than to draw them. So a probe is one round; and a pair that was
hardly played yet is first brought to a fortieth of all releases, without bets, where it
takes the lead: mostly it does by luck. What explores is

- first a tournament of the pairs proposed at the start (successive halving: Karnin,
  Koren, Somekh, *Almost optimal exploration in multi-armed bandits*, ICML 2013). Every
  arm is played up to a certain number of releases, the better half goes on to twice
  that number, and so forth until one is left, or none that may beat the best arm;
- then, by turns, a tournament of moves of the best arm's pair (ascent) and of random
  pairs, and a review as long: the arm of most hope is played to twice what it has (as
  upper confidence bounds choose: Auer, Cesa-Bianchi, Fischer, *Finite-time analysis of
  the multiarmed bandit problem*, Machine Learning 2002), and so forth. Bad luck is
  made good; but where all arms are clearly worse than the best, it alone is played.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dpaudit.audit.game.pair_audit import Round
from dpaudit.audit.search.proposals import Proposals
from dpaudit.errors import InputError, MechanismError
from dpaudit.neighbours import Pair
from dpaudit.streams import stream
from dpaudit.validation import check_count, check_fraction

__all__ = ["PairSearch"]

_PROBE = 16  # releases a side at which arms are first compared
_ENTRY = 1 / 200  # later, as a share of all releases, so that rounds stay few
_KNOWN = 1 / 40  # of all releases an arm has, before bets are worth their planning
_MOVES, _RANDOM = 6, 2  # the field of a later tournament
_CAUTION, _HOPE = 0.5, 2.0  # standard errors off z, and on it
_WIDEN, _NARROW = 1.5, 0.7  # the step of the ascent, after a success, else
_FIRST_STEP, _SMALLEST_STEP = 0.5, 0.01


@dataclass
class _Arm:
    """A pair, how often it was played, and what the latest report says of it."""

    pair: Pair
    releases: int = 0
    z: float = 0.0

    def growth(self, shift: float = 0.0) -> float:
        """Return how fast evidence grows here, were z by so much larger; signed."""
        z = self.z + shift
        return math.copysign(z * z / (2 * max(self.releases, 1)), z)


class PairSearch:
    """Decides from the reported past which pair plays the coming round.

    Parameters
    ----------
    source : Proposals
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
    Round(arm=0, size=10, bets=True)
    >>> search.report(0, score=0.1, releases=10)
    >>> search.best()
    0
    """

    def __init__(
        self,
        source: Proposals,
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
        self._plan = self._exploration()
        self._probe: Round | None = None
        self._exploring = False

    def next_round(self, size: int) -> Round:
        """Return the arm of the coming round, and its size.

        Parameters
        ----------
        size : int
            Most releases a side that a round of bets may draw, >= 1.

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
        probe = self._affordable_probe()
        self._exploring = probe is not None
        if probe is not None:
            return probe
        arm = self.best()
        if self.searching:
            seen = self._arms[arm].releases
            unknown = int(_KNOWN * self._total) - seen
            if seen and unknown > 0:
                return Round(arm, max(unknown, _PROBE), bets=False)
            size = min(size, max(seen, _PROBE))
        return Round(arm, size)

    def report(self, arm: int, score: float, releases: int) -> None:
        """Take note of a round.

        Parameters
        ----------
        arm : int
        score : float
            Standard errors by which all releases of the arm exceed the claim. -inf
            says that the mechanism refuses the pair: it is not played again.
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
            self._arms[arm].z = float(score)
            self._arms[arm].releases += releases
        self._total += releases
        self._explored += releases * self._exploring

    def pair(self, arm: int) -> Pair:
        """Return the pair of an arm."""
        return self._arms[arm].pair

    def best(self) -> int:
        """Return the arm on which evidence grows fastest, by a cautious estimate.

        Before anything was reported it is the first, which promised most.
        """
        seen = sorted(arm for arm in self._live if self._arms[arm].releases)
        growth = {arm: self._arms[arm].growth(-_CAUTION) for arm in seen}
        return max(seen, key=growth.__getitem__, default=min(self._live, default=0))

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

    def _affordable_probe(self) -> Round | None:
        """Return the next probe if exploring is within its share, else None."""
        if self._probe is None or self._missing(self._probe) <= 0:
            self._probe = next(self._plan)
        if self._probe is None:
            return None
        size = self._missing(self._probe)
        if self._explored + size > self._share * (self._total + size):
            return None
        return Round(self._probe.arm, size, bets=False)

    def _missing(self, probe: Round) -> int:
        """Return how many releases the arm of a probe lacks; none if it was refused."""
        lacking = probe.size - self._arms[probe.arm].releases
        return lacking if probe.arm in self._live else 0

    def _exploration(self) -> Iterator[Round | None]:
        """Yield arms and the releases that they should reach, or None for a pause."""
        if len(self._arms) > 1:
            yield from self._tournament(sorted(self._live), _PROBE)
        while True:
            before = self._explored
            if self._source.endless:
                yield from self._search_beyond()
            yield from self._review(2 * self._explored - before)
            yield None

    def _search_beyond(self) -> Iterator[Round]:
        """Play a tournament of new pairs, and learn from it how far to move."""
        source, best, old = self._source, self.best(), len(self._arms)
        pair, room = self.pair(best), self._limit - _MOVES - _RANDOM - 1
        moves = [source.ascend(pair, self._step, self._rng) for _ in range(_MOVES)]
        others = [source.random(self._rng) for _ in range(_RANDOM)]
        self._arms += [_Arm(pair) for pair in (*moves, *others)]
        fresh = range(old, len(self._arms))
        self._live = {*self._by_hope(self._live)[:room], best, *fresh}
        yield from self._tournament(fresh, max(_PROBE, int(_ENTRY * self._total)))
        step = self._step * (_WIDEN if self.best() in fresh else _NARROW)
        self._step = min(1.0, step) if step >= _SMALLEST_STEP else _FIRST_STEP

    def _review(self, end: int) -> Iterator[Round]:
        """Play hopeful arms to twice what they have, until so many were explored."""
        while others := self._hopeful(self._live - {self.best()}):
            yield Round(others[0], max(2 * self._arms[others[0]].releases, _PROBE))
            if self._explored >= end:
                return

    def _tournament(self, field: Sequence[int], level: int) -> Iterator[Round]:
        """Play arms up to a level; the better half goes on to twice the level."""
        while True:
            for arm in field:
                probe = Round(arm, level)
                if self._missing(probe) > 0:
                    yield probe  # and no more before it is played up to its size
            field = self._hopeful(self._live.intersection(field))
            if len(field) <= 1:
                return
            field, level = field[: (len(field) + 1) // 2], 2 * level

    def _hopeful(self, arms: Iterable[int]) -> list[int]:
        """Return the arms that may beat the best, those of most hope first."""
        least = self._arms[self.best()].growth(-_CAUTION)
        ranked = self._by_hope(arms)
        return [arm for arm in ranked if self._arms[arm].growth(_HOPE) > least]

    def _by_hope(self, arms: Iterable[int]) -> list[int]:
        return sorted(arms, key=lambda arm: (-self._arms[arm].growth(_HOPE), arm))
