"""Choices that are made by comparing noisy numbers: the largest of them, and flips.

A comparison of fresh uniform numbers with ordinary ones, such as
``rng.random(n) < p``, is independent flips: of u < t for a uniform u nothing else is
known afterwards than whether it holds, which it does with probability t.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.tracked import Tracked
from dpaudit.audit.replay.laws.affine import Family
from dpaudit.audit.replay.laws.choices import ChoiceLaw, noisy_maximum

__all__ = ["flip", "select"]


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
    index, mean = noisy.index, sign * noisy.centre.ravel()
    coef = np.abs(noisy.coef) if _even(noisy) else sign * noisy.coef
    if index.shape[1] != 1 or not index.size or not np.isfinite(mean).all():
        return None
    draws, scale = index[:, 0], float(coef[0, 0])
    distinct = (draws >= 0).all() and len(np.unique(draws)) == len(draws)
    if not (distinct and scale > 0 and (coef == scale).all()):
        return None
    families = tape.families[draws]
    if (families != families[0]).any() or not tape.are_fresh(draws):
        return None
    log = noisy_maximum(mean, scale, int(families[0]))
    if log is None:
        return None
    place = np.asarray(
        np.argmax(sign * tape.value(noisy.centre.ravel(), index, noisy.coef))
    )
    tape.use_up(draws)
    tape.selected = True
    law = ChoiceLaw(log[np.newaxis], "noisy maximum")
    return np.intp(tape.choose(law, place, ())[()])


def flip(noisy: Tracked, other: Array, compare: Any, *, below: bool) -> Any:
    """Return how fresh uniform numbers compare with ordinary ones, as flips.

    Parameters
    ----------
    noisy : Tracked
    other : ndarray
        Of the same shape, or one number.
    compare : callable
        From the numbers and the ordinary ones to truth values.
    below : bool
        Whether it asks if the numbers are below the ordinary ones, or above them.

    Returns
    -------
    ndarray of bool, or None
        The draws are used up by that. None where they are not flips: each number must
        be an affine image of a fresh uniform draw of its own.
    """
    tape = noisy.tape
    if not tape.mode.selects or tape.closed:
        return None
    noisy.settle()
    level, mean, block = other.ravel(), noisy.centre.reshape(-1), noisy.terms.block
    draws: Any
    coef: Any
    if block is not None:
        draws, coef, values = block, noisy.terms.factor, block.values
        if not tape.is_fresh(block) or block.family != Family.UNIFORM:
            return None
        if noisy.bare:
            mean = mean[:1]  # which are all zero
    elif noisy.index.shape[1] == 1:
        draws, coef = noisy.index[:, 0], noisy.coef[:, 0]
        distinct = (draws >= 0).all() and len(np.unique(draws)) == len(draws)
        if not (distinct and tape.are_fresh(draws)):
            return None
        if (tape.families[draws] != Family.UNIFORM).any():
            return None
        values = tape.drawn(draws)
    else:
        return None
    if not np.all(np.isfinite(coef) & (coef != 0)):
        return None
    as_drawn = block is not None and noisy.bare and coef == 1
    with np.errstate(all="ignore"):
        gap = level - mean
        held = np.asarray(compare(values if as_drawn else mean + coef * values, level))
    if block is not None and gap.size == 1:
        law = _alike(float(gap[0]), float(coef), below, noisy.size)
    else:
        law = _flips(gap, coef, below, noisy.size)
    tape.use_up(draws)
    tape.selected = True
    return tape.choose(law, held.astype(np.intp), noisy.shape).astype(bool)[()]


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


def _even(noisy: Tracked) -> bool:
    """Say whether the draws have the law of their negatives."""
    used = noisy.index[noisy.index >= 0]
    return bool((noisy.tape.families[used] == Family.LAPLACE).all())
