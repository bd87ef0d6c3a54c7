"""Noise in the plane by an angle and a radius: (r cos t, r sin t) is one vector.

Let t = a u + b for a uniform u, where a is a multiple of the full circle. Then
(cos t, sin t) is uniform on the circle, and with an independent gamma radius of shape 2
the vector has the density e^(-|x|)/(2 pi) (`dpaudit.audit.replay.laws.drawn`), as
planar Laplace noise has (Andres, Bordenabe, Chatzikokolakis, Palamidessi:
*Geo-indistinguishability*, 2013). Its two numbers may be made one after the other:
whichever is made first draws both.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.directions import new_draws, radius_of
from dpaudit.audit.replay.follow.draws import Terms
from dpaudit.audit.replay.follow.made import Joint
from dpaudit.audit.replay.follow.tracked import Tracked, isinstance_tracked
from dpaudit.audit.replay.laws.coded import Family, code_of
from dpaudit.audit.replay.laws.drawn import JointNoise
from dpaudit.audit.replay.laws.expressions import Applied, Expression, Number, Root

__all__ = ["polar"]

_MOST = 300  # numbers that are made at once
_SIDES = {"cos": 0, "sin": 1}


@dataclass(frozen=True)
class _Polar(Joint):
    """A vector of the plane, whose angle is so many times a uniform draw, and more."""

    turn: float = 0.0
    phase: float = 0.0


def polar(one: Any, two: Any) -> Any:
    """Return a radius times the cosine, or sine, of an angle; else NotImplemented."""
    if not all([isinstance_tracked(each) and each.noisy for each in (one, two)]):
        return NotImplemented
    if one.tape is not two.tape or one.is_choice or two.is_choice:
        return NotImplemented
    shape = np.broadcast_shapes(one.shape, two.shape)
    if not 0 < math.prod(shape) <= _MOST:
        return NotImplemented
    for each in (one, two):
        each.settle()
    wide = [each.spread(shape).reshape(-1) for each in (one, two)]
    for side, radius in (wide, wide[::-1]):
        found = [
            _number(side[at : at + 1], radius[at : at + 1]) for at in range(side.size)
        ]
        if None not in found:
            index, coef = np.array(found).T[..., np.newaxis]
            terms = Terms(index.astype(np.intp), coef)
            return Tracked(one.tape, np.zeros(shape), terms, bare=True)
    return NotImplemented


def _number(side: Tracked, radius: Tracked) -> tuple[int, float] | None:
    """Return the draw that a number of a vector is, and how many times over."""
    draws = side.tape.draws
    if side.index.shape[1] != 1 or side.centre.any() or radius.centre.any():
        return None
    made = draws.made.of(side.index[0])
    expression = None if made is None else made.expression
    if made is None or not isinstance(expression, Applied):
        return None
    angle = _affine(expression.parts[0]) if expression.name in _SIDES else None
    length = None if angle is None else radius_of(radius, own=True)
    if angle is None or length is None:
        return None
    slot, turn, phase = angle
    circles = abs(turn) / (2 * math.pi)
    if round(circles) < 1 or abs(circles - round(circles)) > 1e-12 * circles:
        return None
    numbers, scale, shape = length
    roots = [made.roots[slot][side.index[0] - made.start], numbers]
    kind = _Polar("polar", shape, turn, phase)
    start = _known(draws.made.blocks, kind, np.concatenate(roots))
    if start is None:
        if not draws.may_go_into(roots[0]):
            return None
        family = code_of(JointNoise(2, 2.0)) if abs(shape - 2) < 1e-9 else None

        def of(u: Array, several: Array) -> Array:
            t = turn * u[0] + phase
            return several.sum() * np.array([math.cos(t), math.sin(t)])

        law = Family.UNKNOWN if family is None else family
        start = int(new_draws(side.tape, kind, law, 1.0, (2,), roots, of).index[0, 0])
    return start + _SIDES[expression.name], float(side.coef[0, 0]) * scale


def _known(blocks: list[Any], kind: _Polar, roots: Any) -> int | None:
    """Return the first draw of a vector that was made before, None if it was not."""
    for block in blocks:
        if block.expression == kind:
            own = [each[0] for each in block.roots.values()]
            if np.array_equal(own, roots):
                return int(block.start)
    return None


def _affine(expression: Expression) -> tuple[int, float, float] | None:
    """Return slot, a and b of an expression that is a u + b for a uniform draw u."""
    if isinstance(expression, Root):
        return (expression.slot, 1.0, 0.0) if expression.kind == "uniform" else None
    if not isinstance(expression, Applied) or len(expression.parts) != 2:
        return None
    parts = sorted(expression.parts, key=lambda each: isinstance(each, Number))
    inner, number = _affine(parts[0]), parts[1]
    if inner is None or not isinstance(number, Number):
        return None
    slot, a, b = inner
    by = float(number.value)
    if expression.name == "multiply":
        return slot, a * by, b * by
    return (slot, a, b + by) if expression.name == "add" else None
