"""The state of one audit: rounds on pairs of neighbours, all inside one test.

Before each round everything is fixed from the rounds before: the pair, the fits of the
attacks, the candidate events, each null's bet, how many releases either side gets. Then
fresh releases are drawn and the bets are settled (`dpaudit.audit.betting.evidence`).
The first round on a pair only teaches. Because the nulls are claims about the
mechanism, not about one pair, all pairs play for the same wealth, and a violation found
by searching needs no second look.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from dpaudit.audit.betting.events import Events
from dpaudit.audit.betting.evidence import SequentialTest
from dpaudit.audit.betting.families import families_for
from dpaudit.audit.game.freezing import freeze, thaw
from dpaudit.audit.game.pair_audit import Look, PairAudit, PairChoice
from dpaudit.audit.sampling.draws import Here
from dpaudit.audit.sampling.sampler import Sampler
from dpaudit.audit.settings import Settings, reference_point
from dpaudit.batches import fingerprint
from dpaudit.errors import DPAuditError, InputError, MechanismError
from dpaudit.mechanism import Mechanism
from dpaudit.neighbours import Pair

__all__ = ["AuditState", "SearchTrail"]

_PILOT, _MOST_PILOT = 10, 100  # releases a side; the latter where nothing is bet
_SMALLEST_ROUND = 4
# Growth of the past by one round, where bounds are what counts, and where pairs are to
# be chosen among: the share of the releases that the end of a round costs at most.
_GROWTH = {10_000: 0.15, math.inf: 0.25}
_GROWTH_TO_SEARCH = {200: 0.1, **_GROWTH}
# Where a claim is to fall on one pair, rounds are as dear as releases: beyond dozens
# they grow fast while there is nothing to see, and are a part of what bets promise to
# need as soon as they do.
_GROWTH_TO_REFUTE = {100: 0.1, 2000: 0.4, math.inf: 1.0}
_STEPS_TO_GOAL, _LAST_GROWTH = 6, 0.06
_GROWTH_TO_REFINE = 0.5  # a bound may stop at any release
_OPENING, _OPENING_GROWTH = 200, 1.0  # a bound hardly rests on its first 1/200
# Of what is left, and of all releases, the last rounds are such parts: half as fine
# where a claim is to fall on one pair.
_ENDGAME, _ENDGAME_TO_REFUTE, _FINEST = 3, 2, 50
_LEFT_OVER = 1.25  # of such a part: in one round
# Shares of the eager, the careful and the deadline account, and how finely bounds are
# planned, if the audit is to refute soon and if it is to bound as well as it can.
_TO_REFUTE, _TO_BOUND = (0.75, 0.15, 0.10), (0.05, 0.15, 0.80)
_RENEWED, _SHARED = 2 / 3, 0.9
_PLANNED, _PLANNED_BESIDE = 40, 16
# A pair so many standard errors inside the claim is played in rounds as large as its
# past, for the bounds alone.
_HOPELESS = 2.0
_REFUSED = "{}; so on every pair tried: name columns, ranges and form that it takes"
_SOON = 1000  # releases a side after which a mechanism that does not repeat ends
_NOT_OF_ROWS = ("the mechanism returns", "a hint rng")
# Rounds on a pair that is new to a long search are no smaller than this share of it.
_LEAST_SHARE = 1 / 20
# What is kept of a state between two rounds, beside its trail.
_KEPT = (
    *("tests", "drawn", "pairs", "favourite", "trajectory", "_pair_audits"),
    *("limit", "refuted_at"),
)


class SearchTrail(NamedTuple):
    """What leads a search to where it was, and shows whether the mechanism is the same.

    Parameters
    ----------
    history : list of tuple
        Of each round the size that was asked for, the arm, its score, its releases.
    looks : mapping of int to sequence of Look
        At the pilot and the last rounds of an arm: of the one that was played last, and
        of the best.
    """

    history: list[tuple[int, int, float, int]]
    looks: dict[int, list[Look]]


class AuditState:
    """The state of one audit between rounds.

    Parameters
    ----------
    mechanism : Mechanism or callable
    search : PairChoice
        Which pair plays the coming round.
    settings : Settings
    workers : Here, optional
        Who draws; by default this thread.
    """

    def __init__(
        self,
        mechanism: Mechanism | Callable[..., Any],
        search: PairChoice,
        settings: Settings,
        workers: Here | None = None,
    ) -> None:
        self.claim, self.alpha = settings.claim, settings.alpha
        self.seed = settings.seed
        self.at_epsilon, self.at_delta = reference_point(self.claim)
        families = families_for(self.claim, self.at_delta, self.at_epsilon)
        budget, stops = settings.budget, settings.budget.stop
        self.tests = {
            key: SequentialTest(
                family,
                self.alpha,
                shares=_TO_REFUTE if stops else _TO_BOUND,
                planned=_PLANNED_BESIDE if place and stops else _PLANNED,
                renewed=_RENEWED if stops else 0.0,
                shared=_SHARED if stops else 0.0,
            )
            for place, (key, family) in enumerate(families.items())
        }
        self.verdict = next(iter(self.tests.values()))
        self.drawn = np.zeros(2, dtype=np.intp)
        self.subject, self._attacks = mechanism, settings.attacks
        self._stop, self._bits = stops, settings.bits
        self.limit = budget.releases
        self.refuted_at: int | None = None
        self._refine = budget.refine
        self._search, self.workers = search, workers or Here()
        self.trail = SearchTrail([], {})
        self.trajectory: list[tuple[int, float]] = []
        self._pair_audits: dict[int, PairAudit] = {}
        self.pairs = 0
        self.favourite: str | None = None

    @property
    def samples(self) -> int:
        """Releases so far, on average of the two sides."""
        return math.ceil(int(self.drawn.sum()) / 2)

    @property
    def finished(self) -> bool:
        """Whether there is nothing more to play for."""
        return self.samples >= self.limit

    @property
    def _refining(self) -> bool:
        """Whether the audit goes on for its bounds alone."""
        return self._stop and self.refuted_at is not None

    @property
    def played(self) -> int:
        """How many rounds were played, those on refused pairs included."""
        return len(self.trail.history)

    @property
    def outcome(self) -> bytes:
        """A digest of what the last round showed: the same only if that is the same.

        It covers the evidence after the round, and the releases of a pilot, which are
        no evidence, but tell whether the mechanism repeats itself.
        """
        _, arm, _, _ = self.trail.history[-1]
        seen = self.trail.history[-1], self.drawn.tolist()
        digest = hashlib.sha256(json.dumps(seen).encode())
        for test in self.tests.values():
            digest.update(test.log_wealth.tobytes())
        pair_audit = self._pair_audits.get(arm)
        if (
            pair_audit is not None
            and pair_audit.drawn.sum() == 2 * pair_audit.pilot_size
        ):
            digest.update(fingerprint(*pair_audit.first_look))
        return digest.digest()

    def repeats(self) -> bool:
        """Say whether the releases that a trail looked at come out again as they did.

        They are drawn in this thread: a few dozen, or as many batched draws.
        """
        try:
            return all(
                look.comes_again(
                    Sampler(self.subject, self._search.pair(arm), self.seed, arm)
                )
                for arm, looks in self.trail.looks.items()
                for look in looks
            )
        except DPAuditError:
            return False

    def rounds(self) -> Iterator[tuple[int, float]]:
        """Play to the end; yield the releases a side and the bound after each round.

        The bound is that on epsilon at `at_delta`.
        """
        while not self.finished:
            before = self.samples
            self._play()
            seeded = getattr(self.subject, "seedable", True) is not False
            if before < _SOON <= self.samples and seeded and not self.repeats():
                self.limit = self.samples  # more would tell nothing either
            reached = self.samples, self.tests["epsilon"].lower_bound
            self.trajectory.append(reached)
            yield reached

    def freeze(self) -> bytes:
        """Return the state between two rounds, as `thaw` takes it."""
        kept = {name: getattr(self, name) for name in _KEPT}
        frozen = freeze(kept, self._supplied(self._pair_audits))
        return freeze((self.trail, frozen), {})

    def thaw(self, frozen: bytes) -> None:
        """Bring a state that has not begun to the state of another like it."""
        trail, kept = thaw(frozen, {})
        self.follow(trail)
        played = {arm for _, arm, _, _ in trail.history}
        vars(self).update(thaw(kept, self._supplied(played)))
        self.verdict = next(iter(self.tests.values()))

    def follow(self, trail: SearchTrail) -> None:
        """Bring the search of a state that has not begun to where a trail ends.

        It is asked again what it was asked, and given the same reports: so it comes to
        the same decisions.
        """
        self.trail = trail
        for size, arm, score, releases in trail.history:
            self._search.next_round(size)
            self._search.report(arm, score, releases)

    def _supplied(self, arms: Iterable[int]) -> dict[str, Any]:
        """Return what is not part of the state, and given when it is resumed."""
        return {
            "mechanism": self.subject,
            "claim": self.claim,
            "workers": self.workers,
            **{f"attack {i}": attack for i, attack in enumerate(self._attacks)},
            **{f"pair {arm}": self._search.pair(arm) for arm in arms},
        }

    def excess_of(self, pair: Pair, key: int, size: int) -> float:
        """Return by how many standard errors a pair of a new key exceeds the claim."""
        parts = self.subject, pair, self._attacks, self.seed, key, self.workers
        pair_audit = PairAudit(*parts, bits=self._bits)
        assert self.verdict.family.claimed is not None
        try:
            pair_audit.pilot(size)
        except (InputError, MechanismError):
            return -math.inf
        return pair_audit.violation(self.verdict.family, self.verdict.family.claimed)

    def best(self) -> tuple[PairAudit, Events]:
        """Return the pair that seems worst now, and what is known of its events."""
        pair_audit = self._pair_audits[self._search.best()]
        return pair_audit, pair_audit.portfolio.prepare()

    def _play(self) -> None:
        left = 2 * self.limit - int(self.drawn.sum())
        asked = min(self._round_size(), max(left // 2, 1))
        arm, size, bets = self._search.next_round(asked)
        size = min(size, max(left // 2, 1))
        pair_audit = self._pair_audits.get(arm)
        before = np.zeros(2, dtype=np.intp)
        if pair_audit is None:
            pair_audit = PairAudit(
                self.subject,
                self._search.pair(arm),
                self._attacks,
                self.seed,
                arm,
                self.workers,
                bits=self._bits,
            )
            try:
                most = _PILOT if bets else _MOST_PILOT
                pair_audit.pilot(min(size, most), most=left // 2, bets=bets)
            except (InputError, MechanismError) as error:
                # The mechanism refuses the pair, or does nothing but fail on it.
                self._report(asked, arm, -math.inf, 0)
                if self._search.live:
                    return
                own = any(word in str(error) for word in _NOT_OF_ROWS)
                if self._search.searching and not own:
                    error.args = (_REFUSED.format(error),)
                raise
            self._pair_audits[arm] = pair_audit
            self.pairs += 1
            size = 0 if bets else size - int(pair_audit.drawn.sum()) // 2
        else:
            before = pair_audit.drawn.copy()
            if bets and pair_audit.score > -_HOPELESS:
                least = int(_LEAST_SHARE * self.samples)
                size = min(size, max(self._growth(before.sum() / 2), least))
        if size > 0:
            pair_audit.play(
                list(self.tests.values()),
                self._null_in_play,
                size,
                left,
                even=self._refining,
                bets=bets,
            )
            self.favourite = pair_audit.favourite or self.favourite
        spent = pair_audit.drawn - before
        self.drawn += spent
        if self._search.searching:
            score = pair_audit.violation(self.verdict.family, self._null_in_play)
            pair_audit.score = score
        self._report(asked, arm, pair_audit.score, max(int(spent.sum()) // 2, 1))
        self.trail.looks.clear()
        for each in {arm, self._search.best()}:
            self.trail.looks[each] = list(self._pair_audits[each].looks)
        for retired in set(self._pair_audits) - self._search.live:
            del self._pair_audits[retired]
        if self.refuted_at is None and self.verdict.refutes_claim:
            self.refuted_at = self.samples
            if self._stop:
                more = math.ceil(min(self._refine * self.samples, self.limit))
                self.limit = min(self.limit, self.samples + more)

    def _report(self, asked: int, arm: int, score: float, releases: int) -> None:
        self._search.report(arm, score, releases)
        self.trail.history.append((asked, arm, float(score), releases))

    @property
    def _null_in_play(self) -> int:
        """The null that matters most now: the claim, or what comes after it."""
        claimed = self.verdict.family.claimed
        assert claimed is not None
        return self.verdict.frontier if self.verdict.refutes_claim else claimed

    def _round_size(self) -> int:
        """Return how many releases a side the next round may draw."""
        left = self.limit - self.samples
        size = self._growth(self.samples)
        # The last rounds are small again: the nearer the end, the more it matters to
        # adapt the stakes to what was won so far.
        parts, finest, left_over = _ENDGAME, _FINEST, 1.0
        if self._stop and not self._search.searching:
            parts, finest = _ENDGAME_TO_REFUTE, _FINEST // 2
            left_over = 1.0 if self._refining else _LEFT_OVER
        most = max(left // parts, self.limit // finest)
        return max(1, min(size, left if left < left_over * most else most))

    def _growth(self, past: float) -> int:
        """Return the releases a side that may follow on so many in the past."""
        if self._refining:
            return max(_SMALLEST_ROUND, math.ceil(_GROWTH_TO_REFINE * past))
        pace = _GROWTH_TO_SEARCH if self._search.searching else _GROWTH_TO_REFUTE
        if not self._stop:
            pace = {self.limit / _OPENING: _OPENING_GROWTH, **_GROWTH}
        size = past * next(growth for until, growth in pace.items() if past < until)
        if not self._stop:
            return max(_SMALLEST_ROUND, math.ceil(size))
        if (promised := self.verdict.promised) > 0:
            needed = -math.log(self.alpha) - self.verdict.log_evidence
            soon = needed / (2 * promised) / _STEPS_TO_GOAL
            size = min(size, max(_LAST_GROWTH * past, soon))
        return max(_SMALLEST_ROUND // 2, math.ceil(size))
