"""Choices that are made by comparing noisy numbers: the largest of them, and flips.

A comparison of fresh uniform numbers with ordinary ones, such as
``rng.random(n) < p``, is independent flips: of u < t for a uniform u nothing else is
known afterwards than whether it holds, which it does with probability t.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.tracked import Tracked, isinstance_tracked, numeric
from dpaudit.audit.replay.laws.affine import Family
from dpaudit.audit.replay.laws.choices import ChoiceLaw, noisy_maximum

__all__ = ["COMPARISONS", "compared", "select"]

_LESS = frozenset({np.less, np.less_equal})
COMPARISONS = _LESS | {np.greater, np.greater_equal}


def select(noisy: Tracked, sign: float = 1.0) -> "np.intp | None":
    """Return where the largest number is, or the smallest if the sign is -1.

    The draws are used up by that: nothing else is known of them than which is ahead.
    None where the choice has no law that is known: the numbers must have one fresh draw
    of one family and one scale each, which only adds to them.
    """
    tape = noisy.tape
    if not tape.mode.selects or tape.closed or noisy.bare:
        return None
    noisy.settle()
    index, mean, coef = noisy.index, sign * noisy.centre.ravel(), sign * noisy.coef
    if index.shape[1] != 1 or not index.size or not np.isfinite(mean).all():
        return None
    draws = index[:, 0]
    family = int(tape.draws.families[draws.max()])
    if not tape.draws.are_fresh(draws, family):
        return None
    if family == Family.LAPLACE:  # the law of which is that of its negative
        coef = np.abs(coef)
    scale = float(coef[0, 0])
    log = None
    if scale > 0 and (coef == scale).all():
        log = noisy_maximum(mean, scale, family)
    if log is None:
        return None
    value = tape.draws.value(noisy.centre.ravel(), index, noisy.coef)
    place = np.asarray(np.argmax(sign * value))
    tape.draws.use_up(draws)
    tape.selected = True
    law = ChoiceLaw(log[np.newaxis], "noisy maximum")
    return np.intp(tape.choose(law, place, ())[()])


def compared(ufunc: Any, left: Any, right: Any) -> Any:
    """Return a comparison of fresh uniform draws with ordinary numbers, as flips.

    The draws are used up by that. NotImplemented where these are no flips: each number
    must be an affine image of a fresh uniform draw of its own.
    """
    first = isinstance_tracked(left) and left.noisy
    noisy, other = (left, right) if first else (right, left)
    level, tape, below = numeric(other), noisy.tape, (ufunc in _LESS) == first
    if level is None or not tape.mode.selects or tape.closed:
        return NotImplemented
    shape = np.broadcast_shapes(noisy.shape, level.shape)
    noisy = noisy.spread(shape)
    level = np.broadcast_to(level, shape) if level.ndim else level
    noisy.settle()
    level, mean, block = level.ravel(), noisy.centre.reshape(-1), noisy.terms.block
    coef: Any
    if block is not None:
        coef, values = noisy.terms.factor, block.values
        if not block.is_fresh or block.family != Family.UNIFORM:
            return NotImplemented
        if noisy.bare:
            mean = mean[:1]  # which are all zero
    elif noisy.index.shape[1] == 1:
        draws, coef = noisy.index[:, 0], noisy.coef[:, 0]
        if not tape.draws.are_fresh(draws, Family.UNIFORM):
            return NotImplemented
        values = tape.draws.values[draws]
    else:
        return NotImplemented
    if not np.all(np.isfinite(coef) & (coef != 0)):
        return NotImplemented
    as_drawn = block is not None and noisy.bare and coef == 1
    with np.errstate(all="ignore"):
        gap = level - mean
        numbers = values if as_drawn else mean + coef * values
        held = np.asarray(ufunc(numbers, level) if first else ufunc(level, numbers))
    if block is not None:
        block.spend(partly=True)
    else:
        tape.draws.use_up(draws)
    if block is not None and gap.size == 1:
        law = _alike(float(gap[0]), float(coef), below, noisy.size)
    else:
        law = _flips(gap, coef, below, noisy.size)
    tape.selected = True
    return tape.choose(law, held.astype(np.intp), shape).astype(bool)[()]


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
