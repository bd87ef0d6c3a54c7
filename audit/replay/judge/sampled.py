r"""Secret batches: noisy values over rows that were drawn by flips.

Let every row be in a batch by a flip of its own, and let a claim rest on that
(amplification by sampling). Given the flips of the rows that both datasets have, a
noisy value is a mixture: of its laws with and without the row that differs, with the
probabilities of that row's own flip. This module replays a transcript with the flips of
the common rows as they were, and the row that differs in every batch, or in none; and
the density of a transcript is the product, over batches, of such mixtures.

**Whom that is about.** The loss here is that of an observer who sees the flips of all
the other rows. A proof by amplification bounds it: for each fixed choice of the other
rows in the batches it bounds the divergence of two mixtures, and as the divergence is
jointly convex, that of the averages over all choices is no larger. So a claim that is
proven like this holds against all who see the flips of all the other rows, and is false
where it is not true of them. A claim whose proof needs these flips to be secret, too,
is another one.

**What it takes for granted**, and checks. Given the values before it, each value
depends on the flip of the row for one batch alone: so the density of all of them is a
product, over batches, of mixtures of two products. That is so if all that the code
carries from one batch to the next are noisy values. It is checked by more executions on
either dataset, where the row is in some batches: every other one, and those in between;
every other two, and those in between; some at random; and those of the transcript
itself. Each law must be that with the row, or without it, as one of the last four
batches has it. (Of any two of four batches one has the row and the other not, both ways
round, in some of these executions: so nothing that depends on two of them passes.) If
it is not, nothing is concluded, and the place is shown (`NotThroughNoise`).

Nor is anything proven where a number without noise depends on the batch (its size,
released), or where rows are drawn with other probabilities on the other side: then
more is shown than noisy values over secret batches.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.execute.executor import Trace
from dpaudit.audit.replay.follow.observations import Observation, Shapes, Unfollowed
from dpaudit.audit.replay.follow.tape import DECLARED
from dpaudit.audit.replay.laws.affine import AffineLaw
from dpaudit.audit.replay.laws.amplification import SampledComparison
from dpaudit.audit.replay.laws.choices import ChoiceLaw
from dpaudit.audit.replay.laws.comparison import AnyLaw, are_one, compare, loss
from dpaudit.neighbours import Pair

__all__ = ["NotThroughNoise", "SecretBatches", "Side", "flips_by_row"]

Bits: TypeAlias = NDArray[np.bool_]

_RECENT = 4  # batches that a value may be over


class NotThroughNoise(Exception):
    """A secret batch shows in other ways than through noisy values.

    Parameters
    ----------
    place, why : str
    traces : tuple of Trace
        With the row in no batch, and in every one.
    """

    def __init__(self, place: str, why: str, traces: tuple[Trace, Trace]) -> None:
        super().__init__(why)
        self.place, self.why, self.traces = place, why, traces


def flips_by_row(pair: Pair, first: Trace, second: Trace) -> tuple[Shapes, Shapes]:
    """Return the shapes of the flips of which every row has one, on D and on D'."""
    here: dict[int, tuple[int, ...]] = {}
    there: dict[int, tuple[int, ...]] = {}
    sizes = pair.sizes
    both = zip(first.tape.observations, second.tape.observations, strict=False)
    for number, found in enumerate(both):
        if all(
            isinstance(one.law, ChoiceLaw)
            and one.how != DECLARED  # whose output everybody sees
            and one.law.outcomes == 2
            and math.prod(one.shape) == size
            and len(one.shape) == len(found[0].shape) > 0
            for one, size in zip(found, sizes, strict=True)
        ):
            here[number], there[number] = (one.shape for one in found)
    return here, there


@dataclass(eq=False)
class Side:
    """One dataset, where a transcript is given back with the row in, and out.

    Parameters
    ----------
    without, within : Trace
        With the row in no batch, and in every one; the same where the dataset does not
        have it.
    place : int or None
        Of the row.
    shapes : Shapes
    others : list of tuple of Trace and ndarray of bool
        With the row in some batches, and which.
    """

    without: Trace
    within: Trace
    place: int | None
    shapes: Shapes
    others: list[tuple[Trace, Bits]]

    @classmethod
    def of(cls, ways: Any, seed: int, values: list[Observation]) -> "Side":
        """Return the executions on a dataset.

        Parameters
        ----------
        ways : Ways
            Of `dpaudit.audit.replay.judge.ways`: what gives transcripts back.
        seed : int
        values : list of Observation
            Of the transcript; the flips being those of the common rows, flat.
        """
        drawn, place, shapes = partial(ways.drawn, values), ways.place, ways.shapes
        turns = np.arange(len(shapes))
        without = drawn(turns < 0)
        if place is None:
            return cls(without, without, place, shapes, [])
        random = np.random.default_rng(seed).random(len(turns)) < 0.5
        odd, half = turns % 2 == 1, turns // 2 % 2 == 1
        patterns = (odd, ~odd, half, ~half, random)
        distinct = {
            each.tobytes(): each for each in patterns if 0 < each.sum() < len(each)
        }
        others = [(drawn(each), each) for each in distinct.values()]
        return cls(without, drawn(turns >= 0), place, shapes, others)

    @property
    def unfollowed(self) -> list[Unfollowed]:
        """What could not be followed."""
        return [*self.without.tape.unfollowed, *self.within.tape.unfollowed]

    @property
    def executions(self) -> int:
        """How many there were."""
        return 1 if self.place is None else 2 + len(self.others)

    def laws(self, number: int) -> tuple[AnyLaw, AnyLaw]:
        """Return the laws of a value without the row and with it; -1 is the release."""
        return self.without.law_of(number), self.within.law_of(number)

    def weights(self, number: int | None) -> Array:
        """Return the log-probabilities that the row is out and in by some flips.

        It is out where there are none.
        """
        if number is None or self.place is None:
            return np.array([0.0, -np.inf])
        law = self.without.tape.observations.law(number)
        assert isinstance(law, ChoiceLaw)
        return law.log[self.place]

    def rest(self, number: int) -> ChoiceLaw:
        """Return the law of the flips of all other rows."""
        law = self.without.tape.observations.law(number)
        assert isinstance(law, ChoiceLaw)
        return law if self.place is None else law.without(self.place)

    def differs(self, other: "Side", number: int) -> bool:
        """Say whether values have no common density, or the common rows' flips differ.

        A transcript alone does not say which of the laws it came from.
        """
        if number in self.shapes:
            return not are_one(self.rest(number), other.rest(number))
        laws = [*self.laws(number), *other.laws(number)]
        return not all(_have_densities(laws[0], each) for each in laws[1:])

    def batches(self) -> dict[int, list[int | None]]:
        """Return the flips that each value may depend on, the most recent first.

        None where it depends on no batch.

        Raises
        ------
        NotThroughNoise
            If a value depends on others than one of the last.
        """
        traces = [self.without, self.within, *(trace for trace, _ in self.others)]
        seen = [each.tape.observations for each in traces]
        ends = {
            (len(each), one.tape.script.diverged is None, one.layout)
            for each, one in zip(seen, traces, strict=True)
        }
        if len(ends) > 1:
            least = min(len(each) for each in seen)
            more = [each[least].place for each in seen if len(each) > least]
            place = more[0] if more else self.within.returned_at
            why = "what is looked at depends on the batch"
            raise NotThroughNoise(place, why, (self.without, self.within))
        found: dict[int, list[int | None]] = {}
        drawn: list[int] = []
        turns = {number: turn for turn, number in enumerate(self.shapes)}
        for number in (*range(len(seen[0])), -1):
            recent = drawn[: -_RECENT - 1 : -1]
            laws = self.laws(number)
            by_row = number in self.shapes
            if by_row or not recent or are_one(*laws):
                right = all(are_one(laws[0], each.law_of(number)) for each in traces)
            else:
                for trace, bits in self.others:
                    law = trace.law_of(number)
                    out, within = (are_one(law, each) for each in laws)
                    recent = [
                        each
                        for each in recent
                        if (within if bits[turns[each]] else out)
                    ]
                right = bool(recent)
            if not right:
                # The release, if anything, shows the flips themselves.
                shown = number if number >= 0 else drawn[-1] if drawn else -1
                where = seen[0][shown].place if shown >= 0 else ""
                raise NotThroughNoise(
                    where or self.within.returned_at,
                    "a value depends on more than the batch that it is over",
                    (self.without, self.within),
                )
            if by_row:
                drawn.append(number)
            else:
                found[number] = [*recent] or [None]
        return found


class SecretBatches:
    """A transcript over secret batches, on the two datasets.

    Attributes
    ----------
    here, there : Side
    over : dict
        The flips that each value depends on, by their numbers.

    Raises
    ------
    NotThroughNoise
    """

    def __init__(self, here: Side, there: Side) -> None:
        self.here, self.there = here, there
        self.over: dict[int, int | None] = {}
        first, second = (
            None if each.place is None else each.batches() for each in self
        )
        for number, allowed in (first or second or {}).items():
            if first and second:
                both = second.get(number, allowed)
                allowed = [each for each in allowed if each in both]
            if not allowed:
                place, why = (
                    here.within.returned_at,
                    "a value is over other batches on D'",
                )
                raise NotThroughNoise(place, why, (here.without, here.within))
            self.over[number] = allowed[0]

    def __iter__(self) -> Iterator[Side]:
        return iter((self.here, self.there))

    def compared(self, number: int) -> SampledComparison:
        """Compare the laws of a value on the two sides."""
        sides = [each for each in self if each.place is not None]
        batch = self.over[number]
        rates = tuple(float(np.exp(each.weights(batch)[1])) for each in sides)
        rest, both = map(compare, self.here.laws(number), self.there.laws(number))
        moves = tuple((compare(*side.laws(number)),) for side in sides)
        return SampledComparison(rates, (rest,), (both,), moves)

    def losses(
        self, values: list[Observation], release: Array, of: Trace
    ) -> Iterator[float]:
        """Yield the losses of values, of flips, and of the release, as far as both go.

        Parameters
        ----------
        values : list of Observation
            Of the transcript; the flips being those of the common rows, flat.
        release : ndarray
        of : Trace
            Whose laws the values were drawn from.
        """
        # By batch: of the density on either side, the row being out or in, in units of
        # the law that the value was drawn from. Another may lack it, and not that one.
        logs: defaultdict[int | None, Array] = defaultdict(lambda: np.zeros((2, 2)))
        before: defaultdict[int | None, float] = defaultdict(float)
        for number in (*range(len(values)), -1):
            value = release if number < 0 else values[number].value
            if number in self.here.shapes:
                rest = [each.rest(number).log_probability(value) for each in self]
                yield rest[0] - rest[1]
                continue
            batch = self.over[number]
            logs[batch] += [
                [-loss(of.law_of(number), law, value) for law in side.laws(number)]
                for side in self
            ]
            weights = [each.weights(batch) for each in self]
            first, second = (  # the log-densities of the mixtures
                float(np.logaddexp.reduce((log + part)[log > -np.inf]))
                for log, part in zip(weights, logs[batch], strict=True)
            )
            after, past = first - second, before[batch]
            yield 0.0 if after == past else after - past
            before[batch] = after


def _have_densities(law: AnyLaw, other: AnyLaw) -> bool:
    """Say whether each has a density over the other, on all values that there are."""
    compared = compare(law, other)
    if compared.singular or isinstance(law, AffineLaw):
        return not compared.singular
    # Outcomes are given by their places: they must have the same names.
    keys = [getattr(each, "keys", ()) for each in (law, other)]
    return compared.note is None and not compared.scales_differ and keys[0] == keys[1]
