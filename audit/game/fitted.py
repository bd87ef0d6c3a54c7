"""Attacks that were fitted: their scores on a grid, and what is asked of them.

A score must depend on its release alone, and an event on more than last bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dpaudit.arrays import Array
from dpaudit.attacks import Attack, Parameters, Target
from dpaudit.audit.betting.events import Events, violation
from dpaudit.audit.betting.families import NullFamily
from dpaudit.audit.betting.scores import ScoreRecord, Tally
from dpaudit.audit.canonical import Canon
from dpaudit.audit.sampling.sampler import DATA, NEIGHBOUR
from dpaudit.batches import Batch
from dpaudit.errors import MechanismError

__all__ = ["BITS_ONLY", "CandidateAttack", "FittedAttack", "Scored", "Scoring"]

BITS_ONLY = (
    "what seemed a violation differs in its last bits only: over the real numbers this "
    "is no violation; attacks.BITS audit the doubles themselves"
)
"""What is said of a refutation that vanished when releases were nudged."""

_SHORT_TRIAL, _LONG_TRIAL = 500, 1000  # releases that a dear attack was fitted to
_LOOK, _SAME = 3, 1e-6  # outputs whose scores are compared, and how far they may differ


@dataclass(frozen=True)
class FittedAttack:
    """An attack with its parameters and the resolution of its scores.

    Parameters
    ----------
    attack : Attack
    parameters : mapping of str to ndarray
    resolution : float
    layout : str
        Whose numbers it scores; empty if it reads whole outputs.
    offset : float
        In [0, 1): where the grid of scores begins, in resolutions.
    """

    attack: Attack
    parameters: Parameters
    resolution: float
    layout: str
    offset: float = 0.5

    @classmethod
    def fit(
        cls,
        attack: Attack,
        target: Target,
        on_data: Batch,
        on_neighbour: Batch,
        layout: str,
        offset: float = 0.5,
    ) -> "FittedAttack":
        """Fit on past outputs, of which some must be readable on either side."""
        first, second = (_read_by(attack, b, layout) for b in (on_data, on_neighbour))
        assert first is not None
        assert second is not None
        with np.errstate(all="ignore"):
            parameters = attack.fit(target, first, second)
            scores = [attack.score(target, parameters, x) for x in (first, second)]
        finite = np.abs(np.concatenate(scores))
        largest = np.max(finite, where=np.isfinite(finite), initial=0.0)
        exponent = np.floor(np.log2(largest)) if largest > 0 else 0.0
        resolution = float(2.0 ** max(exponent - 30, -1022))
        return cls(attack, parameters, resolution, layout, offset)

    def score(self, target: Target, batch: Batch) -> Array:
        """Return rounded scores; other layouts than its own, and NaN, score lowest."""
        readable = _read_by(self.attack, batch, self.layout)
        if readable is None:
            return np.full(batch.size, -np.inf)
        with np.errstate(all="ignore"):
            raw = self.attack.score(target, self.parameters, readable)
        return self.rounded(batch, raw)

    def rounded(self, batch: Batch, raw: Array) -> Array:
        """Return the rounded scores of a batch, given those of what is read of it."""
        if len(raw) < batch.size:
            every = np.full(batch.size, -np.inf)
            every[batch.parts[self.layout].places] = raw
            raw = every
        with np.errstate(all="ignore"):
            rounded = np.floor(raw / self.resolution + self.offset) * self.resolution
        return np.where(np.isnan(rounded), -np.inf, rounded)

    def honest_scores(
        self, target: Target, on_data: Batch, on_neighbour: Batch
    ) -> tuple[Array, Array]:
        """Score what it was fitted on: by cross-fitting, if the attack learns."""
        attack, layout = self.attack, self.layout
        if not attack.learns:
            return self.score(target, on_data), self.score(target, on_neighbour)
        both = on_data, on_neighbour
        first, second = (_read_by(attack, batch, layout) for batch in both)
        with np.errstate(all="ignore"):
            scores = attack.honest_scores(target, first, second)
        if scores is not None:
            first, second = scores
            return self.rounded(on_data, first), self.rounded(on_neighbour, second)
        parts: tuple[list[Array], list[Array]] = ([], [])
        folds = [batch.halves() for batch in both]
        for learn, judge in ((0, 1), (1, 0)):
            mine = [sides[learn] for sides in folds]
            if not all(_can_read(attack, batch, layout) for batch in mine):
                continue  # nothing to learn from in this half
            other = self.fit(attack, target, mine[0], mine[1], layout, self.offset)
            for side in (DATA, NEIGHBOUR):
                parts[side].append(other.score(target, folds[side][judge]))
        return (
            np.concatenate([*parts[DATA], []]),
            np.concatenate([*parts[NEIGHBOUR], []]),
        )

    def rests_on_bits(
        self,
        threshold: float,
        family: NullFamily,
        null: int,
        target: Target,
        canon: Canon,
        returned: tuple[Batch, Batch],
    ) -> bool:
        """Say whether an event violates a null by the last bits of releases alone.

        It does if it seems to violate it by the releases as they are, and no longer
        once every entry is moved, at random, by a small part of the step of its grid.
        To ask only makes an audit more careful.
        """
        rng = canon.nudges()
        counts = np.zeros((2, 2), dtype=np.intp)
        for side, outputs in enumerate(returned):
            for way, batch in enumerate((canon(outputs), canon.nudged(outputs, rng))):
                reached = self.score(target, batch) >= threshold
                counts[way, side] = np.count_nonzero(reached)
        if (counts[0] == counts[1]).all():
            return False
        sizes = returned[DATA].size, returned[NEIGHBOUR].size
        before, after = (
            violation(family, null, Events.single(threshold, hits, sizes))
            for hits in counts
        )
        return after <= 0 < before


@dataclass
class CandidateAttack:
    """An attack on a layout in the portfolio, its current fit and honest scores."""

    attack: Attack
    layout: str
    fitted: FittedAttack | None = None
    fitted_on: int = 0
    in_use: bool = True
    rests_until: float = 0.0  # this many releases it is not fitted again
    record: ScoreRecord = field(default_factory=ScoreRecord)
    # Of the scores of which they were said: how many, the events, and sharpened ones.
    _known: tuple[list[int], Events] | None = None
    _sharpened: tuple[Events, Events] | None = None

    def applies(self, target: Target, batch: Batch) -> bool:
        """Say whether the attack applies to outputs like these."""
        return self.attack.applies(target, _read_by(self.attack, batch, self.layout))

    def can_read(self, batch: Batch) -> bool:
        """Say whether there is anything that the attack reads of a batch."""
        return _can_read(self.attack, batch, self.layout)

    def fit(self, target: Target, pools: Sequence[Batch], offset: float) -> None:
        """Fit the attack to past outputs, and forget what its last fit scored."""
        first, second = pools
        fitted = FittedAttack.fit(
            self.attack, target, first, second, self.layout, offset
        )
        if self.fitted is None:
            for pool in pools:
                _check_company(fitted, target, pool)
        honest = fitted.honest_scores(target, first, second)
        self.forget()
        self.fitted = fitted
        for side, scores in enumerate(honest):
            self.record.add(side, scores)

    def forget(self) -> None:
        """Forget the fit, and what it scored."""
        self.fitted, self.fitted_on, self.record = None, 0, ScoreRecord()
        self._known = self._sharpened = None

    def adds_nothing(self, rivals: "Sequence[CandidateAttack]") -> bool:
        """Say whether a dear fit has earned nothing.

        No null bets on it, and another attack tells D from D' better, by releases that
        neither learned from: by a standard error, after a short trial.
        """
        if self.in_use or not self.attack.dear or self.fitted_on < _SHORT_TRIAL:
            return False
        others = (
            rival.separation[0] for rival in rivals if rival.layout == self.layout
        )
        reached, error = self.separation
        return max(others) > reached + error * (self.fitted_on < _LONG_TRIAL)

    @property
    def separation(self) -> tuple[float, float]:
        """As of the `Events` of the attack; 0 without any."""
        events = self.record.events(0, exclusive=self.attack.exclusive)
        return events.separation if len(events) else (0.0, 0.0)

    def events(self, index: int) -> Events:
        """Return the candidate events of the attack, which goes by that index."""
        scored = self.record.scored.tolist()
        if self._known is None or self._known[0] != scored:
            exclusive = self.attack.exclusive
            self._known = scored, self.record.events(index, exclusive=exclusive)
        return self._known[1]

    def sharpened(self, events: Events, *, unbeaten: bool) -> Events:
        """Return its events with what is known, or can be fitted, of their ratios."""
        if self.attack.sufficient:
            return self.record.informed(events) if unbeaten else events
        if self.attack.exclusive:
            return events
        if self._sharpened is None or self._sharpened[0] is not events:
            self._sharpened = events, self.record.modelled(events)
        return self._sharpened[1]


class Scored(NamedTuple):
    """What a round learns of a batch of releases.

    Parameters
    ----------
    size : int
        How many there are.
    bytes_each : float
        As of the batch.
    kept : Batch
        The first of them: none where enough are remembered.
    tallies : mapping of int to Tally
        Of the attacks that score, by their index: what `ScoreRecord.add` takes.
    """

    size: int
    bytes_each: float
    kept: Batch
    tallies: dict[int, Tally]


@dataclass(frozen=True)
class Scoring:
    """What a round asks of its releases: a function of each batch, fixed before it.

    So it may be asked wherever the batch is drawn.

    Parameters
    ----------
    target : Target
    canon : Canon or None
    until : tuple of float
        Up to which number releases are kept, on D and on D'.
    fits : tuple
        Of each attack its index, its fit, its thresholds if these are fixed, and up to
        which number of a release it scores.
    """

    target: Target
    canon: Canon | None
    until: tuple[int, int]
    fits: tuple[tuple[int, FittedAttack, Array | None, float], ...]

    def __call__(self, side: int, first: int, batch: Batch) -> Scored:
        """Read a batch of one side, whose first release has that number."""
        canonical = batch if self.canon is None else self.canon(batch)
        tallies = {
            index: ScoreRecord.tally(fitted.score(self.target, canonical), thresholds)
            for index, fitted, thresholds, last in self.fits
            if first <= last
        }
        kept = batch.section(0, max(self.until[side] - first, 0))
        return Scored(batch.size, batch.bytes_each, kept, tallies)


def _read_by(attack: Attack, batch: Batch, layout: str) -> Any:
    """Return what an attack reads of a batch, None if there is nothing."""
    return batch if attack.reads == "outputs" else batch.numbers(layout)


def _can_read(attack: Attack, batch: Batch, layout: str) -> bool:
    return batch.size > 0 and _read_by(attack, batch, layout) is not None


def _check_company(fitted: FittedAttack, target: Target, batch: Batch) -> None:
    """Raise if some outputs score otherwise by themselves than beside each other.

    The proof of an audit takes for granted that they do not; of foreign attacks and
    mechanisms this look at a few finds the usual mistakes, not all.
    """
    few = batch.section(0, _LOOK)
    together = fitted.score(target, few)
    alone = np.array(
        [fitted.score(target, few.section(i, i + 1))[0] for i in range(few.size)]
    )
    # Far more than linear algebra owes to the size of its arguments.
    allowed = np.maximum(_SAME * np.abs(together), 4 * fitted.resolution)
    with np.errstate(invalid="ignore"):
        differ = (together != alone) & ~(np.abs(together - alone) <= allowed)
    if differ.any():
        place = int(np.argmax(differ))
        raise MechanismError(
            f"attack {fitted.attack.name!r} scores a release {alone[place]:g} by "
            f"itself and {together[place]:g} beside others; a score (or the privacy "
            "loss, statistic or support that it asks the mechanism for) must depend on "
            "the release alone"
        )
