r"""Secret batches that the code remembers: all ways in which a row may be in them.

Where a noisy value depends on more than one batch (on all before it, where it is
divided by the size of the last; on those that it is the sum of), the density of a
transcript is no product of mixtures of two (`dpaudit.audit.replay.judge.sampled`). It
still is a mixture over the flips of the row that differs, given those of all others:

.. math:: p(v) = \sum_b P(b) \prod_t p(v_t | v_1, \ldots, v_{t-1}, b).

With few flips all 2^k ways b are executed, each with the values of the transcript given
back, and the sum is exact. With many flips it is a product of such sums over *groups*
of flips, if each value depends on the flips of one group alone. Executions with the row
in one batch at a time find the groups: flips that change the law of one value are in
one group. Executions with all flips drawn at random, anew for each transcript, check
them: each law, also that of a flip, has to depend on the flips of its group alone.

Numbers without noise count as points, all others have densities. So in all ways, and on
both datasets, the same entries must have noise; otherwise the loss is not known. It is
not known either where a number without noise, or what the code looks at, depends on the
batches: only an observer who sees the flips of all other rows may learn the batches
from it. Outcomes are given by their places, so they must have the same names.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.execute.executor import Trace
from dpaudit.audit.replay.follow.observations import Observation, Observations, Shapes
from dpaudit.audit.replay.laws.affine import AffineLaw, log_density
from dpaudit.audit.replay.laws.choices import ChoiceLaw
from dpaudit.audit.replay.laws.coded import FIRST
from dpaudit.audit.replay.laws.comparison import AnyLaw, are_one
from dpaudit.errors import UnsupportedError

__all__ = ["Ways", "check_followed", "gives_all"]

_Way: TypeAlias = NDArray[np.intp]

_MOST_FLIPS, _MOST_IN_GROUP = 5, 4  # of one row: 32 ways, or 16 and checks
_MOST_TRIED = 32  # flips that are looked at one by one
_CHECKS = 4
_RTOL, _ATOL = 1e-7, 1e-9  # of numbers that are one
_ROUGH = 1e-10  # of the scale
_MANY = "more batches are remembered than can be executed"


class _Groups(NamedTuple):
    """Flips of a row that hang together, by their numbers, and what goes by them.

    Parameters
    ----------
    flips : list of list of int
    over : dict of int to int
        The group of each noisy value; -1 is the release.
    """

    flips: list[list[int]]
    over: dict[int, int]


@dataclass(frozen=True)
class Ways:
    """One dataset, on which a transcript is given back.

    Parameters
    ----------
    given : callable
        Executes the mechanism on it, with the values of a ``script``.
    place : int or None
        Of the row that the other dataset does not have.
    shapes : Shapes
        Of the flips by row on this dataset.
    """

    given: Callable[..., Trace]
    place: int | None
    shapes: Shapes

    def groups(self, values: list[Observation]) -> _Groups:
        """Return which flips hang together, by executions with the row in one batch."""
        numbers = [n for n in (*range(len(values)), -1) if n not in self.shapes]
        if len(self.shapes) <= _MOST_FLIPS:
            return _Groups([list(self.shapes)], dict.fromkeys(numbers, 0))
        if len(self.shapes) > _MOST_TRIED:
            raise UnsupportedError(_MANY)
        none = self._in(values, [])
        group = {flip: {flip} for flip in self.shapes}
        meets: dict[int, int] = {}
        for flip in self.shapes:
            one = self._in(values, [flip])
            for number in numbers:
                if not are_one(none.law_of(number), one.law_of(number)):
                    both = group[meets.setdefault(number, flip)] | group[flip]
                    group.update(dict.fromkeys(both, both))
        flips = [
            sorted(each)
            for each in {min(each): each for each in group.values()}.values()
        ]
        if max(map(len, flips)) > _MOST_IN_GROUP:
            raise UnsupportedError(_MANY)
        of = {flip: turn for turn, each in enumerate(flips) for flip in each}
        return _Groups(flips, {n: of[meets[n]] if n in meets else 0 for n in numbers})

    def drawn(self, values: list[Observation], bits: Iterable[bool]) -> Trace:
        """Return an execution with flips of the row, one in each batch."""
        script = Observations.with_flips(values, self.place, self.shapes, bits)
        return self.given(script=script)

    def _in(self, values: list[Observation], within: Iterable[int]) -> Trace:
        """Return an execution with the row in some batches."""
        trace = self.drawn(values, [number in within for number in self.shapes])
        check_followed(trace)
        return trace

    def _executed(
        self, values: list[Observation], release: Array, groups: _Groups, seed: int
    ) -> list[tuple[Trace, _Way]]:
        """Return executions in all ways that are possible, and those that check them.

        A way has a number for each group, the bits of which are flips of the row.
        """
        sizes = 2 ** np.array([len(group) for group in groups.flips])
        ways = np.zeros((1, len(sizes)), dtype=np.intp)
        if self.place is not None:
            every = np.arange(sizes.max())[:, np.newaxis] % sizes
            checks = _CHECKS * (len(sizes) > 1), len(sizes)
            drawn = np.random.default_rng(seed).integers(sizes, size=checks)
            ways = np.concatenate([every, drawn])
        found = []
        for way in ways:
            within = {
                number
                for group, each in zip(groups.flips, way.tolist(), strict=True)
                for turn, number in enumerate(group)
                if each >> turn & 1
            }
            trace = self._in(values, within)
            if gives_all(trace, values, release):
                found.append((trace, way))
        if found and len(found) < len(ways):
            raise UnsupportedError("what is looked at depends on the batch")
        return found

    def _log_density(
        self,
        values: list[Observation],
        release: Array,
        groups: _Groups,
        executed: list[tuple[Trace, _Way]],
    ) -> float:
        """Return the log-density of a transcript that executions were given."""
        if not executed:
            return -math.inf
        turns = {n: turn for turn, each in enumerate(groups.flips) for n in each}
        logs: list[dict[int, float]] = [
            dict.fromkeys([int(way[group]) for _, way in executed], 0.0)
            for group in range(len(groups.flips))
        ]
        for number in (*range(len(values)), -1):
            value = release if number < 0 else values[number].value
            laws: dict[int, AnyLaw] = {}
            group = turns.get(number, groups.over.get(number, 0))
            for trace, ways in executed:
                law = trace.law_of(number)
                known = laws.setdefault(int(ways[group]), law)
                if known is not law and not are_one(known, law):
                    raise UnsupportedError("a value depends on batches of long before")
            possible = {_may_be(law, value) for law in laws.values()}
            if len(possible) > 1:
                raise UnsupportedError("a number without noise depends on the batch")
            for way, law in laws.items():
                if number not in turns:
                    logs[group][way] += _log_density(law, value)
                    continue
                assert isinstance(law, ChoiceLaw)
                rest = law if self.place is None else law.without(self.place)
                logs[group][way] += rest.log_probability(value)
                if self.place is not None:
                    turn = groups.flips[group].index(number)
                    logs[group][way] += float(law.log[self.place][way >> turn & 1])
        mixed = [np.logaddexp.reduce(list(each.values())) for each in logs]
        return float(sum(mixed))

    def loss(
        self,
        other: "Ways",
        values: list[Observation],
        release: Array,
        groups: _Groups,
        seed: int = 0,
    ) -> float:
        """Return the loss of a transcript here, against another dataset.

        Parameters
        ----------
        other : Ways
            On the neighbour.
        values : list of Observation
            Of the transcript, the flips being those of the common rows, flat.
        release : ndarray
        groups : tuple
            What `groups` returned of a transcript like this one.
        seed : int

        Raises
        ------
        UnsupportedError
            If it is not known.
        """
        if len(groups.over) + sum(map(len, groups.flips)) != len(values) + 1:
            raise UnsupportedError("transcripts are not alike")
        sides = self, other
        both = [side._executed(values, release, groups, seed) for side in sides]
        for number in (*range(len(values)), -1):
            laws = [trace.law_of(number) for each in both for trace, _ in each]
            if len({getattr(law, "unit", np.empty(0)).tobytes() for law in laws}) > 1:
                raise UnsupportedError("a number has noise in some batches alone")
            if len({getattr(law, "keys", ()) for law in laws}) > 1:
                raise UnsupportedError("a choice is among others in some batches")
        here, there = (
            side._log_density(values, release, groups, each)
            for side, each in zip(sides, both, strict=True)
        )
        return here - there


def check_followed(trace: Trace) -> None:
    """Raise if an execution drew coins, or could not be followed."""
    for unfollowed in (*trace.tape.unfollowed, *trace.tape.coins):
        raise UnsupportedError(f"{unfollowed.place}: {unfollowed.why}")


def gives_all(trace: Trace, values: Sequence[Observation], release: Array) -> bool:
    """Say whether an execution gives as many values and numbers as a transcript."""
    complete = trace.tape.script.diverged is None
    complete &= len(trace.tape.observations) == len(values)
    return complete and len(trace.value) == len(release)


def _may_be(law: AnyLaw, value: Array) -> bool:
    """Say whether what has no noise of its own is what it is in a value."""
    if not isinstance(law, AffineLaw):
        return True
    u = np.append(_units(law, value), 0.0)[law.unit]
    with np.errstate(all="ignore"):
        expected = law.mean + law.ratio * u
    return np.allclose(value, expected, rtol=_RTOL, atol=_ATOL, equal_nan=True)


def _units(law: AffineLaw, value: Array) -> Array:
    """Return the draws that make a value what it is."""
    with np.errstate(all="ignore"):
        return np.asarray(
            (value[law.first] - law.mean[law.first]) / law.ratio[law.first]
        )


def _log_density(law: AnyLaw, value: Array) -> float:
    """Return the log-density of a value, numbers without noise being points."""
    if isinstance(law, ChoiceLaw):
        return law.log_probability(value)
    if not isinstance(law, AffineLaw) or not law.known or _is_rough(law):
        raise UnsupportedError("the law of a noisy value is not known")
    if (law.family >= FIRST).any():
        raise UnsupportedError("noise on a lattice is over remembered batches")
    if not _may_be(law, value):
        return -math.inf
    logs = log_density(law.family, _units(law, value))
    return float((logs - np.log(np.abs(law.ratio[law.first]))).sum())


def _is_rough(law: AffineLaw) -> bool:
    """Say whether numbers are off by what counts beside their noise."""
    off = 0.0 if law.rough is None else float(law.rough.max(initial=0.0))
    return bool((off > _ROUGH * law.scale).any())
