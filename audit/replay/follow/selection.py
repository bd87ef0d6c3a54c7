"""Choices that code makes with noisy numbers: the largest of them, flips, intervals.

A comparison of fresh uniform numbers with ordinary ones, such as
``rng.random(n) < p``, makes independent flips: u < t holds with probability t for a
uniform u, and afterwards the code knows only whether it holds. Where the code looks up
one uniform number among ascending levels, as in ``searchsorted(cumsum(p), u)``, it
knows afterwards between which two levels the number lies. A flip of a fair coin waits
until it is looked at: it may become the sign of noise.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import logsumexp

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.derived import derived
from dpaudit.audit.replay.follow.kept import split
from dpaudit.audit.replay.follow.tracked import Tracked, isinstance_tracked, numeric
from dpaudit.audit.replay.laws.choices import ChoiceLaw, noisy_maximum
from dpaudit.audit.replay.laws.coded import STANDARD, Family
from dpaudit.audit.replay.laws.expressions import Number
from dpaudit.audit.replay.laws.thresholds import Event, ThresholdLaw

__all__ = [
    "COMPARISONS",
    "compared",
    "decide",
    "decided",
    "digitize",
    "fair",
    "searchsorted",
    "select",
]

_LESS = frozenset({np.less, np.less_equal})
_MOST_EVENTS = 6  # that are compared at once
_PARTS = 2.0**20  # of one: sums of multiples of such are not rounded
_TIE = "a number on a lattice is compared with one of its values: rounding decides"
COMPARISONS = _LESS | {np.greater, np.greater_equal}


def select(noisy: Tracked, sign: float = 1.0) -> "np.intp | None":
    """Return where the largest number is, or the smallest if the sign is -1.

    The draws are used up by that: nothing else is known of them than which is ahead.
    None where the choice has no law that is known: the numbers must have one fresh draw
    of one family and one scale each, which only adds to them.
    """
    tape = noisy.tape
    if not tape.mode.selects or tape.closed:
        return None
    noisy.settle()
    index, mean, coef = noisy.index, sign * noisy.centre.ravel(), sign * noisy.coef
    possible = mean > -np.inf  # of a weight of 0, whose logarithm that is, it is not
    finite = possible.any() and np.isfinite(mean[possible]).all()
    if index.shape[1] != 1 or not finite:
        return None
    draws = index[:, 0]
    family = int(tape.draws.families[draws.max()])
    if not tape.draws.are_fresh(draws, family):
        return None
    if family == Family.LAPLACE:  # the law of which is that of its negative
        coef = np.abs(coef)
    scale = float(coef[0, 0])
    known = None
    if family == Family.EXPONENTIAL and not mean.any() and (coef < 0).all():
        # The least of exponential draws: of rates r_i it is the i-th by r_i/(sum of r).
        rates = -np.log(np.abs(coef[:, 0]))
        known = rates - logsumexp(rates) if np.isfinite(coef).all() else None
    elif not noisy.bare and scale > 0 and (coef == scale).all():
        known = noisy_maximum(mean[possible], scale, family)
    if known is None:
        return None
    log = np.full(mean.shape, -np.inf)
    log[possible] = known
    value = tape.draws.value(noisy.centre.ravel(), index, noisy.coef)
    place = np.asarray(np.argmax(sign * value))
    tape.draws.use_up(draws)
    tape.selected = True
    law = ChoiceLaw(log[np.newaxis], "noisy maximum")
    return np.intp(tape.choose(law, place, ())[()])


def compared(ufunc: Any, left: Any, right: Any) -> Any:
    """Return a comparison of fresh uniform draws, which uses them up, as flips.

    NotImplemented where it is none of affine images of them, each of one of its own.
    """
    first = isinstance_tracked(left) and left.noisy
    noisy, other = (left, right) if first else (right, left)
    level, tape = numeric(other), noisy.tape
    if level is not None and np.isinf(level).all() and not tape.closed:
        mean = noisy.centre  # which decides, whatever the noise is
        if np.isfinite(mean).all() and np.isfinite(noisy.coef).all():
            return ufunc(*((mean, level) if first else (level, mean)))
    if tape.mode.decides and not tape.closed:
        held = _kept(ufunc, left, right, tape) if tape.mode.keeps else NotImplemented
        if held is NotImplemented:
            held = _events(ufunc, left, right, tape)
        if held is not NotImplemented:
            return held
    if level is None or not tape.mode.selects or tape.closed:
        return NotImplemented
    if noisy.size == 1 and level.size > 1:
        return _compared_with_all(ufunc, left, right, noisy, level)
    return _flipped(ufunc, noisy, level, first=first)


def _flipped(ufunc: Any, noisy: Tracked, level: Array, *, first: bool) -> Any:
    """Return a comparison of fresh uniform draws with numbers, as flips."""
    tape, below = noisy.tape, (ufunc in _LESS) == first
    shape = np.broadcast_shapes(noisy.shape, level.shape)
    noisy = noisy.spread(shape)
    level = np.broadcast_to(level, shape) if level.ndim else level
    noisy.settle()
    level, mean, block = level.ravel(), noisy.centre.reshape(-1), noisy.terms.block
    coef: Any
    if block is not None:
        coef = noisy.terms.factor
        if not block.is_fresh or block.family != Family.UNIFORM:
            return NotImplemented
        if noisy.bare:
            mean = mean[:1]  # which are all zero
    elif noisy.index.shape[1] == 1:
        draws, coef = noisy.index[:, 0], noisy.coef[:, 0]
        if not tape.draws.are_fresh(draws, Family.UNIFORM):
            return NotImplemented
    else:
        return NotImplemented
    if not np.all(np.isfinite(coef) & (coef != 0)):
        return NotImplemented

    def hold() -> Array:
        values = tape.draws.values[draws] if block is None else block.values
        with np.errstate(all="ignore"):
            bare = block is not None and noisy.bare and coef == 1
            numbers = values if bare else mean + coef * values
            return np.asarray(ufunc(*((numbers, level) if first else (level, numbers))))

    with np.errstate(all="ignore"):
        gap = level - mean
    if block is not None:
        block.spend(partly=True)
    else:
        tape.draws.use_up(draws)
    if block is not None and gap.size == 1:
        law = _alike(float(gap[0]), float(coef), below, noisy.size)
    else:
        law = _flips(gap, coef, below, noisy.size)
    tape.selected = True
    return tape.choose(law, hold, shape, bool)[()]


def _kept(ufunc: Any, left: Any, right: Any, tape: Any) -> Any:
    """Return a comparison after which draws go on as what is left of them.

    NotImplemented where it is none of one draw each with ordinary numbers.
    """
    first = isinstance_tracked(left) and left.noisy
    noisy, level = (left, numeric(right)) if first else (right, numeric(left))
    if level is None:
        return NotImplemented
    shape = np.broadcast_shapes(noisy.shape, level.shape)
    if math.prod(shape) > _MOST_EVENTS:
        return NotImplemented
    noisy = noisy.spread(shape)
    noisy.settle()
    if noisy.index.shape[1] != 1:
        return NotImplemented
    draws, coef = noisy.index[:, 0], noisy.coef[:, 0]
    mean = noisy.centre.reshape(-1)
    if len(np.unique(draws)) < len(draws) or (draws < 0).any() or not coef.all():
        return NotImplemented
    level = np.broadcast_to(level, shape).ravel()
    with np.errstate(all="ignore"):
        ends = (level - mean) / coef
    if np.isnan(ends).any():
        return NotImplemented
    if _rounded_away(mean, coef, level, ends) and Tracked.on_some_lattice(noisy):
        tape.cannot_follow(_TIE)
        return NotImplemented
    above = (coef < 0) == ((ufunc in _LESS) == first)

    def holds(place: int, u: Array) -> Any:
        """Compare as the code does, for any value of the draw at a place."""
        numbers = mean[place] + coef[place] * u
        return ufunc(*((numbers, level[place]) if first else (level[place], numbers)))

    return split(tape, draws, ends, above, shape, holds)


def _rounded_away(mean: Array, coef: Array, level: Array, ends: Array) -> bool:
    """Say whether rounding may decide how a whole number compares with its end."""
    numbers = np.stack([mean, coef, level])
    exact = (numbers * _PARTS == np.rint(numbers * _PARTS)) & (abs(numbers) < _PARTS)
    whole = np.abs(ends - np.rint(ends)) <= 1e-9 * np.maximum(1.0, np.abs(ends))
    return bool((whole & ~exact.all(axis=0)).any())


def _events(ufunc: Any, left: Any, right: Any, tape: Any) -> Any:
    """Return a comparison of numbers with noise of which nothing else is seen.

    Each may be compared several times. NotImplemented where they may not be taken for
    that: a comparison must be one of at most two draws of densities that are known.
    """
    sides = []
    for each in (left, right):
        if not (isinstance_tracked(each) and each.noisy):
            number = numeric(each)
            if number is None:
                return NotImplemented
            each = Tracked.plain(tape, number)
        elif each.tape is not tape:
            return NotImplemented
        sides.append(each)
    shape = np.broadcast_shapes(*(each.shape for each in sides))
    if math.prod(shape) > _MOST_EVENTS:
        return NotImplemented
    one, other = (each.spread(shape) for each in sides)
    events, held = [], []
    for each in (one, other):
        each.settle()
    sign = -1.0 if ufunc in _LESS else 1.0
    for k in range(one.size):
        coefs = _difference(one, other, k, sign)
        level = sign * (one.centre.flat[k] - other.centre.flat[k])
        if len(coefs) > 2 or not np.isfinite([level, *coefs.values()]).all():
            return NotImplemented
        families = {draw: int(tape.draws.families[draw]) for draw in coefs}
        if not set(families.values()) <= set(STANDARD):
            return NotImplemented
        values = tape.draws.values
        number = level + sum(coef * values[draw] for draw, coef in coefs.items())
        held.append(number > 0 if coefs else bool(ufunc(sign * level, 0.0)))
        events.append(Event(level if coefs else held[-1] - 0.5, coefs, families))
    for draw, family in {
        d: f for each in events for d, f in each.families.items()
    }.items():
        fresh = tape.draws.are_fresh(np.array([draw]), family)
        if not (fresh or draw in tape.compared):
            return NotImplemented
    law = ThresholdLaw.of_events(events)
    if law is None:
        return NotImplemented
    used = [draw for event in events for draw in event.coefs]
    tape.draws.use_up(np.array(used, dtype=np.intp))
    tape.compared.update(used)
    tape.selected = True
    return tape.choose(law, np.array(held, dtype=np.intp), shape).astype(bool)[()]


def _difference(one: Tracked, other: Tracked, k: int, sign: float) -> dict[int, float]:
    """Return the coefficients of the draws in a number of sign * (one - other)."""
    coefs: dict[int, float] = {}
    for each, by in ((one, sign), (other, -sign)):
        for draw, coef in zip(
            each.index[k].tolist(), each.coef[k].tolist(), strict=True
        ):
            if draw >= 0:
                coefs[draw] = coefs.get(draw, 0.0) + by * coef
    return {draw: coef for draw, coef in coefs.items() if coef}


def _compared_with_all(
    ufunc: Any, left: Any, right: Any, noisy: Tracked, level: Array
) -> Any:
    """Return how one uniform number compares with ascending ones, by one choice."""
    place = None if noisy.ndim else _interval(level, noisy, "left")
    if place is None:
        return NotImplemented
    # Of the number nothing is seen but between which levels it lies.
    above = np.arange(level.size) >= place
    return above if ufunc(0.0, 1.0) == (noisy is left) else ~above


def _interval(levels: Array, noisy: Tracked, side: Any) -> Any:
    """Return between which of ascending levels a fresh uniform number lies, a choice.

    None where it is none.
    """
    tape = noisy.tape
    noisy.settle()
    if noisy.size != 1 or noisy.index.shape[1] != 1 or tape.closed:
        return None
    draws, coef = noisy.index[:, 0], noisy.coef[0, 0]
    if not (tape.mode.selects and tape.draws.are_fresh(draws, Family.UNIFORM)):
        return None
    if levels.ndim != 1 or not (np.diff(levels) >= 0).all() or not coef > 0:
        return None
    with np.errstate(all="ignore"):
        ends = np.clip((levels - noisy.centre.flat[0]) / coef, 0.0, 1.0)
    place = np.searchsorted(ends, tape.draws.values[draws], side=side)
    tape.draws.use_up(draws)
    tape.selected = True
    p = np.diff(np.concatenate([[0.0], ends, [1.0]]))
    return int(tape.choose(ChoiceLaw.of(p), place, ())[()])


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Do what `numpy.searchsorted` does, where that is a choice."""
    levels = numeric(a)
    if levels is None or sorter is not None or not isinstance_tracked(v):
        return NotImplemented
    if v.tape.mode.keeps and levels.ndim == 1 and (np.diff(levels) >= 0).all():
        table = Number(tuple(levels.tolist()))
        return derived("searchsorted", table, Number(side), v)
    if v.ndim:
        return NotImplemented
    place = _interval(levels, v, side)
    return NotImplemented if place is None else np.intp(place)


def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """Do what `numpy.digitize` does, where that is a choice."""
    return searchsorted(bins, x, "left" if right else "right")


def _flips(gap: Array, coef: Any, below: bool, count: int) -> ChoiceLaw:
    """Return how multiples of uniform numbers compare with gaps, as flips."""
    with np.errstate(all="ignore"):
        chance = np.clip(gap / coef, 0.0, 1.0)
    chance = np.where((coef > 0) == below, chance, 1 - chance)
    chance = np.where(np.isnan(chance), 0.0, chance)  # no comparison with NaN holds
    return ChoiceLaw.flips(chance, count)


@lru_cache(maxsize=256)
def _alike(gap: float, coef: float, below: bool, count: int) -> ChoiceLaw:
    """Return flips that all have one probability: a loop comes by many times."""
    return _flips(np.array([gap]), coef, below, count)


def fair(ufunc: Any, left: Any, right: Any) -> Any:
    """Return a comparison that is fair, not yet decided: it may become a sign."""
    first = isinstance_tracked(left) and left.noisy
    noisy, other = (left, right) if first else (right, left)
    level, block = numeric(other), noisy.terms.block
    if level is None or level.ndim or not noisy.size or not noisy.tape.mode.selects:
        return NotImplemented
    if noisy.tape.mode.keeps:
        return NotImplemented  # it waits by itself
    if block is None or block.family != Family.UNIFORM or not block.is_fresh:
        return NotImplemented
    middle = noisy.centre.flat[0] + noisy.terms.factor / 2
    if level != middle or (noisy.centre != noisy.centre.flat[0]).any():
        return NotImplemented
    made = derived(ufunc.__name__, left, right)
    if made is NotImplemented:
        return made
    block = made.terms.block
    tape = made.tape
    law = ChoiceLaw.flips(np.array([0.5]), made.size)

    def choose(values: Array) -> Array:
        tape.selected = True
        return tape.choose(law, values.astype(np.intp), values.shape) > 0

    block.choose = choose
    return made


def decide(inputs: Any) -> None:
    """Look at choices that meet numbers that differ from entry to entry."""
    choices = [e for e in inputs if isinstance_tracked(e) and e.is_choice]
    if choices and any(
        np.ndim(each) and not (isinstance_tracked(each) and each.noisy)
        for each in inputs
    ):
        for each in choices:
            each.looked_at("chosen")


def decided(args: Any) -> Any:
    """Return arguments in which choices are looked at."""
    return tuple(
        each.looked_at("chosen")
        if isinstance_tracked(each) and each.is_choice
        else each
        for each in args
    )
