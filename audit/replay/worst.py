"""Which pair of neighbours shows most of a mechanism, and the simplest that does."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from numpy.random import Generator

from dpaudit.audit.game.pair_audit import OnePair
from dpaudit.audit.replay.follow.forms import LIBRARY
from dpaudit.audit.replay.judge.judgement import Judgement
from dpaudit.errors import DPAuditError
from dpaudit.neighbours import Pair

if TYPE_CHECKING:
    from dpaudit.audit.search.proposals import Proposals

__all__ = ["WorstPair"]

_RANDOM, _MOVES = 10, 20  # pairs beyond the first, where there is a domain
_SHRINKING = 40  # that are tried instead of one that proves it


class WorstPair:
    """The pair of a source whose executions show most.

    Parameters
    ----------
    source : OnePair or Proposals
    judged : callable
        Executes a mechanism on a pair, and says what that shows; with `closely` from
        more seeds.
    rng : numpy.random.Generator
        Of the pairs beyond the first.
    until : float
        Of the clock, when to try no more of them.

    Attributes
    ----------
    opened : Judgement
        Of the first pair that was not refused.
    tried, executions : int
        How many pairs were looked at, and executions on either side.
    """

    def __init__(
        self,
        source: "OnePair | Proposals",
        judged: Callable[..., Judgement],
        rng: Generator,
        until: float,
    ) -> None:
        self._source, self._judged = source, judged
        self._rng, self._until = rng, until
        self._worst: Judgement | None = None
        self._refused: DPAuditError | None = None
        self.tried = self.executions = 0

    def found(self) -> Judgement:
        """Return what the worst pair shows; the first proof ends the search.

        Raises
        ------
        DPAuditError
            Of the mechanism, if it refuses every pair.
        """
        source = self._source
        for each in source.first():
            self._consider(each)
            if self._enough:
                break
        step = 0.5
        for turn in range(_RANDOM + _MOVES):
            if self._enough or isinstance(source, OnePair) or not source.endless:
                break
            if self._worst is None or turn < _RANDOM:
                self._consider(source.random(self._rng))
            else:
                pair = source.ascend(self._worst.pair, step, self._rng)
                better = self._consider(pair)
                step = min(1.0, step * 1.5) if better else max(0.01, step * 0.7)
        if self._worst is None:
            assert self._refused is not None
            raise self._refused
        worst = self._worst
        open_end = worst.turns and worst.followed and not worst.suspicious
        if open_end and not (isinstance(source, OnePair) or self._late):
            self._consider(worst.pair, closely=True)  # ways that the code did not take
        return self._worst

    def shrunk(self) -> Judgement:
        """Return a proof at the same place on the simplest pair that was found for it.

        Where no domain says what rows may be, it is the proof that there is.
        """
        assert self._worst is not None
        if self._source.domain is not None:
            from dpaudit.audit.search.shrinking import descent

            end = self.tried + _SHRINKING
            descent(
                self._worst.pair,
                self._source.domain,
                lambda pair: (
                    None if self._late or self.tried >= end else self._falls(pair)
                ),
            )
        return self._worst

    @property
    def words(self) -> str | None:
        """The worst pair in words, if there is a domain."""
        if self._source.domain is None or self._worst is None:
            return None
        from dpaudit.audit.search.cut import PairCut

        return PairCut.words(self._worst.pair, self._source.domain) or None

    @property
    def _late(self) -> bool:
        return time.perf_counter() > self._until

    @property
    def _enough(self) -> bool:
        return self._worst is not None and (self._worst.proven or self._late)

    def _consider(self, pair: Pair, *, closely: bool | None = None) -> bool:
        """Look at a pair, closely if it is the only one; and say if it is the worst."""
        if closely is None:
            closely = isinstance(self._source, OnePair)
        try:
            shown = self._judged(pair, closely=closely)
        except DPAuditError as error:
            self._refused = error
            return False
        self.tried += 1
        self.executions += shown.executions
        if self._worst is None:
            self.opened = shown
        again = self._worst is not None and pair is self._worst.pair
        better = self._worst is None or again or _rank(shown) > _rank(self._worst)
        if better:
            self._worst = shown
        return better

    def _falls(self, pair: Pair) -> bool:
        """Look at a simpler pair, which replaces the worst if it proves the same."""
        self.tried += 1
        try:
            shown = self._judged(pair, closely=False)
        except DPAuditError:
            return False
        self.executions += shown.executions
        old = self._worst
        assert old is not None
        proven = shown.proven and shown.bare <= old.bare
        if not proven or _first(shown) != _first(old):
            return False
        self._worst = shown
        return True


def _rank(judgement: Judgement) -> tuple[bool, bool, bool, float, float]:
    """Return by what pairs are compared: other forms, not tested yet, are suspect."""
    proven, suspicious, lost, loss, delta = judgement.rank
    here, there = (
        [each for each in form.items() if not each[0].endswith(LIBRARY)]
        for form in (judgement.forms if judgement.formal else ({}, {}))
    )
    return proven, suspicious or here != there, lost, loss, delta


def _first(judgement: Judgement) -> tuple[str, str] | None:
    """Return of which kind the first finding is, and where."""
    found = (each for each in judgement.findings if each.kind != "coin")
    return next(((each.kind, each.where) for each in found), None)
