"""A portfolio of attacks: fitted on the past, judged on what they did not learn from.

Attacks see canonical releases (`dpaudit.audit.canonical`), and their scores are put on
a grid of the same kind: linear algebra rounds by the size of its arguments, and a batch
of releases on D may be larger than one on D'.

Outputs of another layout than most (another shape, other keys, an exception) are read
as well (`dpaudit.outputs`). An attack on numbers is fitted to one layout, and to each
frequent one apart: its events are sets of outputs of that layout. Attacks on whole
outputs have events across layouts.

A portfolio learns whom to trust: all attacks score the first thousand releases; later
only those score that some null bets on, and those that are not bet on are fitted again
much more rarely. By the Neyman-Pearson lemma no score beats the exact privacy loss. So
where there is one it always scores, and others are on offer only if they tell D from D'
clearly better than it does: then it is wrong.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks import PORTFOLIO, Attack, Target
from dpaudit.audit.betting.events import Events
from dpaudit.audit.betting.families import NullFamily
from dpaudit.audit.canonical import Canon
from dpaudit.audit.game.fitted import CandidateAttack, FittedAttack, Scored, Scoring
from dpaudit.audit.sampling.sampler import DATA, NEIGHBOUR
from dpaudit.batches import Batch
from dpaudit.outputs import UNREAD
from dpaudit.printable import said

__all__ = ["Portfolio"]

_POOL_BYTES = 32 * 2**20  # a side
_NARROW = 32  # releases of fewer numbers count as if they had so many
_LATE = 128  # learned attacks wait for this many releases if others apply
_EARLY = 8
_REFIT = 1.5  # refit a learned attack when its pool has grown by this factor,
_REFIT_SELDOM = 4.0  # or by this one if others do without or no null bets on it,
_RETIRED = 128.0  # or so many have been seen after a trial in which it earned nothing
_STALE = 20  # who has scored that much less than others is not bet on
_CLEARLY = 4.0  # standard errors
_TRIAL = 1000  # up to this many releases every attack scores, later those in use
_LAYOUTS = 8  # that have attacks of their own: the most frequent ones
_SEEN = 8  # outputs of a layout before it has: the first needs none
_NAMED = 3  # kinds of outputs, in a warning
_MOST_UNREPEATED = 0.5  # of all outputs
_LEARNERS = {type(attack) for attack in PORTFOLIO if attack.learns}


class Portfolio:
    """A portfolio of attacks on one target, learning from the outputs it sees.

    Parameters
    ----------
    target : Target
    attacks : sequence of Attack
    canon : Canon, optional
        What makes releases canonical. By default attacks see them as they are, which is
        right where every release of the mechanism is exact, and for audits of doubles.
    """

    def __init__(
        self, target: Target, attacks: Sequence[Attack], canon: Canon | None = None
    ) -> None:
        self._target = target
        self.canon = canon
        self._broken: dict[str, str] = {}
        self._attacks = tuple(attacks)
        # Of past outputs: how many have each layout, which layouts have numbers, and
        # which of those have attacks of their own, each tried on so many outputs.
        self._counts: Counter[str] = Counter()
        self._numeric: set[str] = set()
        self._layouts: list[str] = []
        self._tried: dict[tuple[int, str], float] = {}
        # As they were returned; and, where that was asked for, as attacks see them.
        self._pool: tuple[list[Batch], list[Batch]] = ([], [])
        self._seen_as: dict[int, Batch] = {}
        self._pool_limit = 0
        self._bytes_each = 1.0
        self._recruited = 0
        self._candidates: list[CandidateAttack] = []
        self._prepared: Events | None = None  # until more is seen
        self._screens = self.ending = False  # the latter: no attack is fitted again
        self.seen = np.zeros(2, dtype=np.intp)

    def begin(
        self, on_data: Batch, on_neighbour: Batch, *, screens: bool = False
    ) -> None:
        """Take the pilot outputs; see `prepare`."""
        self._screens = screens
        each = max(on_data.bytes_each, on_neighbour.bytes_each, 1.0)
        self._bytes_each = each
        hungriest = max((self._useful(attack) for attack in self._attacks), default=64)
        self._pool_limit = int(np.clip(_POOL_BYTES / each, 64, hungriest))
        for side, batch in enumerate((on_data, on_neighbour)):
            self._remember(side, batch)
            self.seen[side] += batch.size

    def prepare(self, *, screens: bool | None = None) -> Events:
        """Refit what is due, and return the candidate events for the next round.

        Attacks that are dear to fit wait for many releases where one `screens`, that is
        only asks whether the pair is worth more. By default it is as before.
        """
        if screens is not None and screens is not self._screens:
            self._screens, self._prepared = screens, None
        if self._prepared is not None:
            return self._prepared
        self._learn_sizes()
        self._recruit()
        for candidate in self._candidates:
            if self._due(candidate):
                self._fit(candidate)
        scored = [candidate.record.scored.min() for candidate in self._candidates]
        telling = max(1, max(scored, default=0) / _STALE)
        offers = [
            events
            for index, candidate in enumerate(self._candidates)
            if scored[index] >= telling and len(events := candidate.events(index))
        ]
        offers = self._without_the_beaten(offers)
        unbeaten = len(offers) == 1
        self._prepared = Events.join(
            [
                self._candidates[e.attack[0]].sharpened(e, unbeaten=unbeaten)
                for e in offers
            ]
        )
        return self._prepared

    def _without_the_beaten(self, offers: list[Events]) -> list[Events]:
        """Return the events of the sufficient attack, if any, and of who beats it."""
        for events in offers:
            if not self._candidates[events.attack[0]].attack.sufficient:
                continue
            reached, error = events.separation
            better = []
            for other in offers:
                far, its_error = other.separation
                if far > reached + _CLEARLY * max(error, its_error):
                    better.append(other)
            return [events, *better]
        return offers

    def trust(self, events: Events, in_use: NDArray[np.intp]) -> None:
        """Say which events are bet on in the coming round."""
        needed = set(events.attack[in_use].tolist())
        for index, candidate in enumerate(self._candidates):
            candidate.in_use = index in needed or candidate.attack.sufficient

    def reading(self, few: int = 0) -> Scoring:
        """Return what the coming round asks of its releases.

        Some are kept: those to learn from, and the first `few` of either side.
        """
        fits = tuple(
            (index, each.fitted, each.record.thresholds, _TRIAL if idle else np.inf)
            for index, each in enumerate(self._candidates)
            for idle in [not (each.in_use or each.attack.patient)]
            if each.fitted is not None
        )
        on_data, on_neighbour = np.maximum(self._pool_limit, self.seen + few).tolist()
        return Scoring(self._target, self.canon, (on_data, on_neighbour), fits)

    def note(self, side: int, seen: Scored, events: Events) -> NDArray[np.intp]:
        """Remember what the `reading` saw of outputs; return how many hit each event.

        The events are as `prepare` returned them. The counts of those of attacks that
        no null bets on may be left 0.
        """
        hits = np.zeros(len(events), dtype=np.intp)
        for index, tally in seen.tallies.items():
            mine = events.attack == index
            record = self._candidates[index].record
            counted = record.add(side, tally, events.threshold[mine])
            if mine.any():
                hits[mine] = counted
        self._remember(side, seen.kept)
        self.seen[side] += seen.size
        return hits

    def fitted(self, index: int) -> FittedAttack:
        """Return the current fit of the attack that `Events.attack` calls `index`."""
        fitted = self._candidates[index].fitted
        assert fitted is not None
        return fitted

    def counts(self, events: Events, index: int) -> tuple[int, int, int, int]:
        """Return how often an event was hit, and scored: on D, then on D'."""
        candidate = self._candidates[int(events.attack[index])]
        return candidate.record.counts(float(events.threshold[index]))

    def roc(self, index: int) -> tuple[tuple[float, float], ...]:
        """Return how often each event of an attack was hit on D' and on D, as shares.

        Of the releases that the attack did not learn from, the rarest event first.
        """
        record = self._candidates[index].record
        events = record.events(index)
        shares = (events.hits / np.maximum(events.scored, 1)).tolist()
        return tuple(zip(shares[NEIGHBOUR], shares[DATA], strict=True))

    def rests_on_bits(
        self, event: FittedAttack, threshold: float, family: NullFamily, null: int
    ) -> bool:
        """Say whether an event violates a null by the last bits of past releases."""
        if self.canon is None:
            return False
        past = Batch.join(self._pool[DATA]), Batch.join(self._pool[NEIGHBOUR])
        return event.rests_on_bits(
            threshold, family, null, self._target, self.canon, past
        )

    @property
    def memory(self) -> int:
        """How many outputs a side are remembered, at most, to learn from."""
        return self._pool_limit

    def unreadable(self) -> tuple[str, ...]:
        """Return warnings about outputs that nothing could be learned from.

        An audit sees only what it can read and compare: outputs of which the type alone
        is known, and words that never occur twice, tell it nothing.
        """
        found = []
        if len(self._counts) == 1 and not self._numeric:
            only = next(iter(self._counts))
            only = only.removeprefix("value ").removeprefix("shapes ")
            found.append(
                f"every output was the same one, {only}: does the mechanism return its "
                "result?"
            )
        kinds = sorted(layout for layout in self._counts if layout.startswith(UNREAD))
        if kinds:
            names = ", ".join(kind.removeprefix(UNREAD) for kind in kinds[:_NAMED])
            more = ", ..." if len(kinds) > _NAMED else ""
            found.append(
                f"some outputs are not read, or their entries alone ({names}{more}): "
                "return numbers, words, or lists and dictionaries of them"
            )
        wordless = {layout for layout in self._counts if layout not in self._numeric}
        once = sum(self._counts[layout] == 1 for layout in wordless)
        if once > _MOST_UNREPEATED * self._counts.total():
            found.append(
                "most outputs are words that never occur twice, which cannot be "
                "compared: return the numbers that they hold"
            )
        return tuple(found)

    def canon_of(self, layout: str) -> dict[str, dict[str, NDArray[Any]]]:
        """Return the grids that an event rests on, by layout: of one layout, or all."""
        known = {} if self.canon is None else self.canon.grids
        return {
            name: grid.parameters
            for name, grid in known.items()
            if layout in ("", name)
        }

    def doubts(self, *, refuted: bool) -> tuple[str, ...]:
        """Say what attacks did not see: rounding, and what they failed on."""
        found = () if self.canon is None or refuted else self.canon.doubts
        return (
            *found,
            *(
                f"attack {name!r} was given up: {reason}"
                for name, reason in self._broken.items()
            ),
        )

    def _learn_sizes(self) -> None:
        """Fix the grids of what is new, or of which much more is known by now."""
        counts = {layout: self._counts[layout] for layout in self._numeric}
        if self.canon is None or not self.canon.is_due(counts):
            return
        changed = self.canon.learn(*(Batch.join(side) for side in self._pool))
        self._seen_as.clear()
        for candidate in self._candidates:
            if changed and (not candidate.layout or candidate.layout in changed):
                candidate.forget()

    def _remember(self, side: int, batch: Batch) -> None:
        # Outputs are independent, so a prefix is as good a sample as any other.
        self._prepared = None
        room = self._pool_limit - sum(b.size for b in self._pool[side])
        if room > 0:
            kept = Batch.join([batch.section(0, room)])
            self._seen_as.pop(side, None)
            self._pool[side].append(kept)
            alike = len(self._counts) <= 1
            self._counts.update(kept.counts)
            if alike and len(self._counts) > 1:  # a case for attacks on whole outputs
                self._recruited = 0
                self._tried = {key: at for key, at in self._tried.items() if key[1]}
            self._numeric.update(
                layout
                for layout, part in kept.parts.items()
                if part.numbers is not None
            )

    def _pooled(self, side: int) -> Batch:
        if len(self._pool[side]) > 1:
            self._pool[side][:] = [Batch.join(self._pool[side])]
        if side not in self._seen_as:
            pooled = self._pool[side][0]
            self._seen_as[side] = pooled if self.canon is None else self.canon(pooled)
        return self._seen_as[side]

    def _recruit(self) -> None:
        """Take in the attacks that apply; layouts may turn up at any time."""
        pooled = self._counts.total()
        if not self._find_layouts() and pooled < _REFIT * self._recruited:
            return
        self._recruited, both = pooled, None
        for layout in ["", *self._layouts]:
            seen = self._counts[layout] if layout else pooled
            for place, attack in enumerate(self._attacks):
                key = place, layout
                whole = attack.reads == "outputs"
                if whole == bool(layout) or seen < _REFIT * self._tried.get(key, 0):
                    continue
                both = both or Batch.join([*map(self._pooled, (DATA, NEIGHBOUR))])
                candidate = CandidateAttack(attack, layout)
                applies = candidate.applies(self._target, both)
                if applies:
                    self._candidates.append(candidate)
                settled = applies or (seen > _TRIAL and not attack.patient)
                self._tried[key] = np.inf if settled else seen

    def _find_layouts(self) -> bool:
        """Say whether there are layouts that need attacks of their own from now on."""
        before = len(self._layouts)
        for layout, count in self._counts.most_common():
            enough = count >= _SEEN or not self._layouts
            if len(self._layouts) == _LAYOUTS or not enough:
                break
            if layout in self._numeric and layout not in self._layouts:
                self._layouts.append(layout)
        return len(self._layouts) > before

    def _useful(self, attack: Attack) -> int:
        """Return how many releases a side an attack may learn from."""
        wide = max(self._bytes_each / 8, _NARROW)
        return max(int(attack.appetite / wide), 64)

    def _due(self, candidate: CandidateAttack) -> bool:
        """Say whether an attack should be fitted now."""
        useful = min(self._available(candidate.layout), self._useful(candidate.attack))
        if not candidate.attack.learns:
            # What no null bet on may have become telling since it was last scored.
            late = useful >= _REFIT_SELDOM * candidate.fitted_on
            return candidate.fitted is None or (late and not candidate.in_use)
        learners_only = all(
            c.attack.learns
            for c in self._candidates
            if c.fitted and c.layout == candidate.layout
        )
        waits = not learners_only or (self._screens and candidate.attack.dear)
        patience = _LATE if waits else _EARLY
        needed = (candidate.in_use and learners_only) or candidate.attack.patient
        factor = _REFIT if needed else _REFIT_SELDOM
        due = max(patience, factor * candidate.fitted_on)
        if useful < due or (self.ending and candidate.fitted):
            return False
        if candidate.adds_nothing(self._candidates):
            candidate.rests_until = _RETIRED * candidate.fitted_on
        return bool(self.seen.mean() >= candidate.rests_until)

    def _available(self, layout: str) -> int:
        """Return how many outputs in the pool have a layout, on the side with fewer."""
        if not layout:
            return min(sum(b.size for b in side) for side in self._pool)
        return min(sum(b.count(layout) for b in side) for side in self._pool)

    def _fit(self, candidate: CandidateAttack) -> None:
        """Fit an attack to the pool; give it up if it fails."""
        attack, layout = candidate.attack, candidate.layout
        pools = [self._pooled(side) for side in (DATA, NEIGHBOUR)]
        if attack.learns:
            most = self._useful(attack)
            ends = [b.end(layout, most) if layout else most for b in pools]
            pools = [b.section(0, end) for b, end in zip(pools, ends, strict=True)]
        if not all(map(candidate.can_read, pools)):
            return
        try:
            offset = 0.5 if self.canon is None else self.canon.score_offset
            candidate.fit(self._target, pools, offset)
        except Exception as error:
            # These ask the mechanism for nothing: whatever fails is dpaudit's.
            if type(attack) not in _LEARNERS:
                raise
            self._broken[attack.name] = said(error)
            candidate.fitted, candidate.fitted_on = None, sys.maxsize
            return
        candidate.fitted_on = min(self._available(layout), self._useful(attack))
