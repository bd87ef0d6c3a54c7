"""Noise that is clipped: it is what it was, or the end, which is then an atom."""

import math
from typing import Any

import numpy as np

from dpaudit.audit.replay.follow.derived import derived
from dpaudit.audit.replay.follow.tracked import Tracked, isinstance_tracked, numeric

__all__ = ["clipped", "cut_off"]

_MOST_CUT = 4  # numbers that are clipped at once


def clipped(value: Any, low: Any = None, high: Any = None, **more: Any) -> Any:
    """Return a clipped number: one draw, or where draws are kept what is left of it."""
    if more or not (isinstance_tracked(value) and value.tape.mode.keeps):
        return NotImplemented if more else derived("clip", value, low, high)
    made = derived("clip", value, low, high, known=True)
    if made is NotImplemented:
        value = value if low is None else np.maximum(value, low)
        return value if high is None else np.minimum(value, high)
    return made


def cut_off(ufunc: Any, left: Any, right: Any = None) -> Any:
    """Return the larger, or smaller, of numbers with noise and of ordinary ones.

    That is a comparison of each number, after which it is what it was, or the ordinary
    one: noise that is clipped has atoms where it is cut. NotImplemented where there are
    many, or draws are not kept.
    """
    if ufunc not in (np.maximum, np.fmax, np.minimum, np.fmin):
        return NotImplemented
    first = isinstance_tracked(left) and left.noisy
    noisy, level = (left, numeric(right)) if first else (right, numeric(left))
    if level is None or not noisy.tape.mode.keeps:
        return NotImplemented
    shape = np.broadcast_shapes(noisy.shape, level.shape)
    if math.prod(shape) > _MOST_CUT or np.isnan(level).any():
        return NotImplemented
    several = noisy.spread(shape).reshape(-1)
    made = Tracked.plain(noisy.tape, np.empty(several.size))
    for place, end in enumerate(np.broadcast_to(level, shape).ravel().tolist()):
        one = several[place]
        above, larger = bool(one > end), ufunc in (np.maximum, np.fmax)
        made[place] = one if above == larger else end
    return made.reshape(shape)
