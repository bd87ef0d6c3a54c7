"""One pair of neighbours under attack: its releases, its attacks, its rounds.

And what chooses which pair plays the next one: with one pair there is nothing to
choose, and `dpaudit.audit.search` chooses among several.
"""

from collections.abc import Callable, Sequence, Set
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks import Attack, Target
from dpaudit.audit.betting.events import Events, violation
from dpaudit.audit.betting.evidence import SequentialTest
from dpaudit.audit.betting.families import NullFamily
from dpaudit.audit.betting.strategy import best_share, place_bets
from dpaudit.audit.canonical import Canon
from dpaudit.audit.game.portfolio import Portfolio
from dpaudit.audit.sampling.draws import Here
from dpaudit.audit.sampling.sampler import (
    DATA,
    NEIGHBOUR,
    Opening,
    Sampler,
)
from dpaudit.batches import Batch, fingerprint
from dpaudit.domains import Domain
from dpaudit.errors import MechanismError
from dpaudit.mechanism import Mechanism
from dpaudit.neighbours import Pair

__all__ = ["Look", "OnePair", "PairAudit", "PairChoice", "Round"]

_PATIENCE = 40  # releases of a pilot in which nothing but one failure came back
_UNEVEN_FROM = 400  # releases, before which both sides are sampled alike
_RECONSIDER = 1.5  # growth of the past after which the shares are chosen again
_WORTH_A_FIT = 0.5  # share of the past that is to follow where an attack learns anew
_FEW = 10  # releases a side by which a round is known again


class Look(NamedTuple):
    """The first few releases of a round, to be drawn once more.

    Parameters
    ----------
    openings : tuple of Opening
        On D and on D'.
    digest : bytes
        Of the releases.
    """

    openings: tuple[Opening, Opening]
    digest: bytes

    @property
    def size(self) -> int:
        """Releases a side, at least."""
        return min(sum(opening.units) for opening in self.openings)

    def comes_again(self, sampler: Sampler) -> bool:
        """Say whether a round opens now, in this thread, as it did: to the bit.

        Raises
        ------
        DPAuditError
            Whatever the mechanism raises of dpaudit's own.
        """
        again = (
            sampler.again(side, opening).section(0, _FEW)
            for side, opening in enumerate(self.openings)
        )
        return fingerprint(*again) == self.digest


class Round(NamedTuple):
    """What is played next: an arm, how many releases a side, and whether it is bet on.

    A round without bets only teaches.
    """

    arm: int
    size: int
    bets: bool = True


class PairChoice(Protocol):
    """Which pair plays the coming round, by what was reported of those before.

    `dpaudit.audit.search.pair_search.PairSearch` is one, and says what is meant.
    """

    @property
    def searching(self) -> bool:
        """Whether there is any pair to choose beside the first."""
        ...

    @property
    def live(self) -> Set[int]:
        """The pairs that may be played again, by their numbers."""
        ...

    def next_round(self, size: int) -> Round:
        """Return the pair of the coming round and its size: a round of bets.

        It draws at most `size` releases a side; one without bets may draw more.
        """
        ...

    def report(self, arm: int, score: float, releases: int) -> None:
        """Take note of a round."""
        ...

    def pair(self, arm: int) -> Pair:
        """Return a pair."""
        ...

    def best(self) -> int:
        """Return the pair that seems worst now."""
        ...


class OnePair:
    """One pair, of which there is nothing to choose: it plays until it is refused."""

    searching = endless = False
    domain: Domain | None = None

    def __init__(self, pair: Pair, number: int = 0) -> None:
        self._pair, self._number = pair, number
        self.live = {number}

    def first(self) -> tuple[Pair, ...]:
        """Return the pairs to begin with."""
        return (self._pair,)

    def next_round(self, size: int) -> Round:
        if not self.live:
            raise MechanismError("the mechanism refuses the pair")
        return Round(self._number, size)

    def report(self, arm: int, score: float, releases: int) -> None:
        if score == -np.inf:
            self.live.discard(arm)

    def pair(self, arm: int) -> Pair:
        return self._pair

    def best(self) -> int:
        return self._number


class PairAudit:
    """A mechanism on one pair.

    Parameters
    ----------
    mechanism : Mechanism or callable
    pair : Pair
    attacks : sequence of Attack
    seed, key : int
    workers : Here, optional
        As for `Sampler`.
    bits : bool
        Whether attacks see the doubles that were returned, rather than canonical ones.
    """

    def __init__(
        self,
        mechanism: Mechanism | Callable[..., Any],
        pair: Pair,
        attacks: Sequence[Attack],
        seed: int,
        key: int,
        workers: Here | None = None,
        *,
        bits: bool = False,
    ) -> None:
        self.target = Target(mechanism, pair)
        size = data_size(pair.data, pair.neighbour)
        canon = None if bits else Canon(seed, key, size)
        self.portfolio = Portfolio(self.target, attacks, canon)
        self.sampler = Sampler(mechanism, pair, seed, key, workers=workers)
        self._seed, self._key = seed, key
        self.first_look: tuple[Batch, ...] = ()  # of either side, once it was drawn
        self.looks: list[Look] = []  # at the pilot, and at a few of the last releases
        self._share, self._considered = 0.5, 0
        self.drawn = np.zeros(2, dtype=np.intp)
        self._pilots: list[int] = []  # which is drawn in one go, or in two
        self.favourite: str | None = None
        self.score = 0.0  # how promising a search found it

    def pilot(self, size: int, most: int | None = None, *, bets: bool = True) -> None:
        """Draw the round that only teaches.

        Where nothing but one failure comes back it is longer: a mechanism may fail, or
        have nothing to say, nine times in ten.

        Parameters
        ----------
        size : int
            Releases a side.
        most : int, optional
            No more than so many.
        bets : bool
            Whether bets are to follow.

        Raises
        ------
        MechanismError
            If nothing but one failure comes back on both sides.
        """
        openings = self.sampler.opening((size, size), _FEW)
        self._pilots = [size]
        self.first_look = _joined(self.sampler, self._pilots)
        few = (batch.section(0, _FEW) for batch in self.first_look)
        self.looks = [Look(openings, fingerprint(*few))]
        more = min(_PATIENCE, most or 0) - size
        if _failure(self.first_look) is not None and more > 0:
            self._pilots.append(more)
            rest = _joined(self.sampler, [more])
            both = zip(self.first_look, rest, strict=True)
            self.first_look = tuple(map(Batch.join, both))
        if (failure := _failure(self.first_look)) is not None:
            # That is a bug, and no leak.
            allowed = (
                "; releases must be numbers, texts, numeric arrays, or lists, "
                "dictionaries or public attributes of these (a table with texts: its "
                "to_dict(); a model of PyTorch: its state_dict(); an object with "
                "private attributes: its vars())"
            )
            raise MechanismError(
                f"the mechanism {failure} on both datasets, every time"
                f"{self.sampler.last_words()}"
                f"{allowed if failure.startswith('returns') else ''}"
            )
        self.portfolio.begin(*self.first_look, screens=not bets)
        self.drawn += self.pilot_size

    def repeats(self) -> bool:
        """Say whether the same streams give the pilot once more, whoever has drawn.

        Raises
        ------
        DPAuditError
            Whatever the mechanism raises of dpaudit's own; an `ExecutorError` if the
            workers are lost.
        """
        target = self.target
        for workers in (Here(), *self.sampler.others()):
            again = Sampler(
                target.mechanism, target.pair, self._seed, self._key, workers
            )
            both = zip(self.first_look, _joined(again, self._pilots), strict=True)
            if not all(first.equals(second) for first, second in both):
                return False
        return True

    @property
    def pilot_size(self) -> int:
        """Releases a side of the pilot."""
        return sum(self._pilots)

    def play(
        self,
        tests: Sequence[SequentialTest],
        null: int,
        size: int,
        remaining: int,
        *,
        even: bool = False,
        bets: bool = True,
    ) -> None:
        """Fix all bets, draw fresh releases, settle.

        Parameters
        ----------
        tests : sequence of SequentialTest
            The first decides the verdict.
        null : int
            Its null that matters most now: the sampling is divided to suit it.
        size : int
            Releases a side, on average of the two.
        remaining : int
            Releases on both sides that the audit may still draw.
        even : bool
            Whether both sides are drawn alike: one null has no claim to them alone.
        bets : bool
            Whether anything is staked; a round without only teaches, as a pilot does.
        """
        self.portfolio.ending = remaining < _WORTH_A_FIT * self.drawn.sum()
        events = self.portfolio.prepare(screens=not bets)
        n_p, n_q = size, size
        if not even:
            n_p, n_q = self._divide(events, tests[0].family, null, 2 * size)
        if bets:
            bet_on = place_bets(tests, events, n_p, n_q, remaining)
            self.portfolio.trust(events, np.unique(np.concatenate(bet_on)))
            self._note_favourite(events, bet_on[0])
        hits = np.zeros((2, len(events)), dtype=np.intp)
        openings = self.sampler.opening((n_p, n_q), _FEW)
        first = [Batch(0, {})], [Batch(0, {})]
        reading = self.portfolio.reading(_FEW)
        for side, seen in self.sampler.round((n_p, n_q), reading):
            missing = _FEW - sum(part.size for part in first[side])
            first[side].append(seen.kept.section(0, missing))
            hits[side] += self.portfolio.note(side, seen, events)
        for test in tests if bets else ():
            test.update(hits[DATA], hits[NEIGHBOUR], n_p, n_q)
        self.looks.append(Look(openings, fingerprint(*map(Batch.join, first))))
        while sum(look.size for look in self.looks[2:]) >= _FEW:
            del self.looks[1]
        self.drawn += (n_p, n_q)

    def violation(self, family: NullFamily, null: int) -> float:
        """Return by how many standard errors a null seems to be exceeded here.

        Negative inside it. Outputs that were all alike tell as little as a fair coin,
        which falls as often on either side.
        """
        events = self.portfolio.prepare()
        if not len(events):
            drawn = int(self.drawn[DATA]), int(self.drawn[NEIGHBOUR])
            heads = drawn[DATA] // 2, drawn[NEIGHBOUR] // 2
            events = Events.single(0.5, heads, drawn)
        return violation(family, null, events)

    def _note_favourite(self, events: Events, bet_on: NDArray[np.intp]) -> None:
        """Remember whose event tells D from D' best, of those that are bet on."""
        if len(bet_on):
            best = bet_on[np.argmax(np.abs(events.p - events.q)[bet_on])]
            self.favourite = self.portfolio.fitted(int(events.attack[best])).attack.name

    def _divide(
        self, events: Events, family: NullFamily, null: int, total: int
    ) -> tuple[int, int]:
        """Return how many of a round's releases to draw on D and on D'."""
        seen = int(self.drawn.sum())
        if seen >= max(_UNEVEN_FROM, _RECONSIDER * self._considered) and len(events):
            self._share = best_share(family, null, events)
            self._considered = seen
        n_p = min(max(round(total * self._share), 1), total - 1)
        return n_p, total - n_p


def data_size(*datasets: Any) -> float:
    """Return the largest finite magnitude in datasets, 0 where there are no numbers."""
    largest = 0.0
    for data in datasets:
        try:
            numbers = np.abs(np.asarray(data, dtype=np.float64))
        except (TypeError, ValueError):
            continue
        finite = np.isfinite(numbers)
        largest = max(largest, float(numbers.max(initial=0.0, where=finite)))
    return largest


def _joined(sampler: Sampler, sizes: Sequence[int]) -> tuple[Batch, Batch]:
    """Return the outputs of rounds of such sizes a side."""
    sides: tuple[list[Batch], list[Batch]] = ([], [])
    for size in sizes:
        for side, batch in sampler.round((size, size)):
            sides[side].append(batch)
    return Batch.join(sides[DATA]), Batch.join(sides[NEIGHBOUR])


def _failure(sides: Sequence[Batch]) -> str | None:
    """Return of what kind all outputs are failures, if they are of one kind."""
    layouts = {layout for side in sides for layout in side.parts}
    only = layouts.pop() if len(layouts) == 1 else ""
    unread = only.startswith("returns") and " of " not in only
    return only if unread or only.startswith("raises") else None
