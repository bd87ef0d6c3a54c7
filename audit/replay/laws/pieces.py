"""Functions of draws that have few values: where each is taken, and how probable it is.

A comparison, or what choices make of such, has few values. As a function of one draw it
is constant between some numbers, and all of these have to be known: a piece that is
missed would be an event of probability 0 on one side, and of another on the other.

So they are found by structure. A composition of monotone functions is monotone; |f|,
f^2 and 1/f turn where f comes past 0, f modulo m where f/m comes past an integer. So
there are known numbers between which it is monotone (`_turns`), and a monotone function
that is the same at both ends of an interval is constant there. Where it is not, the
interval is halved until no double lies between, and so on with what is left of it. A
function of several that have steps has no step but where one of these has one. Where
none of this says where the steps are, there are no pieces.
"""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.coded import Lattice
from dpaudit.audit.replay.laws.cuts import Cut
from dpaudit.audit.replay.laws.expressions import (
    Applied,
    Expression,
    Number,
    Root,
    evaluate,
    roots,
)
from dpaudit.audit.replay.laws.one_draw import distribution

__all__ = ["few_values", "pieces", "resolved"]

_HALF = np.linspace(0.001, 0.5, 500)
_LOWEST = 1e-300  # probability of either tail that is left out
_LEAST = 1e-14  # probability that is no rounding
_RARE = 1e-9  # probability of a piece that is told by no loss
_NONE = np.empty(0)
_MOST_PIECES = 256
_MOST_WAYS = 2**14
_STEPS = frozenset(("sign", "searchsorted"))
_WHOLE = frozenset(("floor", "ceil", "rint", "trunc"))
_OF_ONE = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sinh"),
    *("tanh", "arctan", "arctanh", "negative", "sign", "logical_not", "special.ndtri"),
)
_OF_TWO = (
    *("add", "subtract", "multiply", "maximum", "minimum", "less", "less_equal"),
    *("greater", "greater_equal"),
)
# Functions that are monotone in the argument at a place, whatever the other numbers.
_MONOTONE = {
    0: frozenset((*_OF_ONE, *_WHOLE, *_OF_TWO, "clip", "divide", "floor_divide")),
    1: frozenset((*_OF_TWO, "copysign")),
    2: frozenset(("searchsorted",)),
}


class _Pieces(NamedTuple):
    """Where a function of one draw has which value.

    Parameters
    ----------
    ends : ndarray, shape (k + 1,)
    values : ndarray, shape (k,)
    p : ndarray, shape (k,)
        How probable each piece is.
    """

    ends: Array
    values: Array
    p: Array

    def where(self, value: float) -> tuple[tuple[float, float], ...]:
        """Return the intervals in which it has a value."""
        near = np.abs(self.values - value) <= 1e-9 * max(1.0, abs(value))
        taken = np.flatnonzero(near & (self.p > 0))
        return tuple((float(self.ends[k]), float(self.ends[k + 1])) for k in taken)


@lru_cache(maxsize=1024)
def pieces(expression: Expression, root: Root) -> _Pieces | None:
    """Return the pieces of a function of one draw with a density, None of others."""
    law = distribution(root)
    steps = _steps(expression, root)
    if steps is None:
        return None
    ends = np.concatenate([[-np.inf], steps, [np.inf]])
    p = Cut.between(law, ends[:-1], ends[1:])
    some = np.flatnonzero(p > 0)
    inner = _between(law, ends)[some]
    values = _on(expression, root)(inner)
    if np.isnan(values).any():
        return None
    known = np.zeros(len(p))
    known[some] = values
    return _Pieces(ends, known, p / p.sum())


def resolved(expression: Expression, root: Root, points: Array) -> bool:
    """Say whether points lie in each piece of the parts of a function that have steps.

    Pieces of probability below 1e-9 need none.
    """
    law = distribution(root)
    for part in _with_steps(expression):
        if root.slot not in roots(part):
            continue
        steps = _steps(part, root)
        if steps is None:
            return False
        ends = np.concatenate([[-np.inf], steps, [np.inf]])
        seen = np.diff(np.searchsorted(np.sort(points), ends)) > 0
        if not (seen | (Cut.between(law, ends[:-1], ends[1:]) < _RARE)).all():
            return False
    return True


def _with_steps(expression: Expression) -> Iterator[Expression]:
    """Yield the largest parts of an expression that are comparisons, or signs."""
    if not isinstance(expression, Applied):
        return
    if expression.compares or expression.name in _STEPS:
        yield expression
        return
    for part in expression.parts:
        yield from _with_steps(part)


def _on(expression: Expression, root: Root) -> Callable[[Array], Array]:
    """Return the function of one draw."""

    def of(u: Array) -> Array:
        made = evaluate(expression, [u] * (root.slot + 1))
        return np.broadcast_to(made, u.shape).astype(np.float64)

    return of


def _between(law: Any, ends: Array) -> Array:
    """Return a number of each interval between ends, the median of the law there."""
    low, high = law.cdf(ends[:-1]), law.cdf(ends[1:])
    above, below = law.sf(ends[:-1]), law.sf(ends[1:])
    middle = np.where(
        low > 0.5, law.isf((above + below) / 2), law.ppf((low + high) / 2)
    )
    return np.asarray(np.clip(middle, ends[:-1], ends[1:]))


def _steps(expression: Expression, root: Root) -> Array | None:
    """Return the numbers at and after which a function of one draw has another value.

    None where they are not known, or too many.
    """
    if not isinstance(expression, Applied):
        return None
    turns = _turns(expression, root)
    if turns is not None:
        return _changes(_on(expression, root), root, turns)
    found = [_steps(part, root) for part in expression.parts if _is_over(part, root)]
    if any(each is None for each in found):
        return None
    every = np.unique(np.concatenate([each for each in found if each is not None]))
    return every if len(every) <= _MOST_PIECES else None


def _is_over(expression: Expression, root: Root) -> bool:
    return root.slot in roots(expression)


def _turns(expression: Expression, root: Root) -> Array | None:
    """Return numbers between which a function of one draw is monotone, or None."""
    if isinstance(expression, Root):
        return _NONE
    assert isinstance(expression, Applied)
    name, inner = expression.name, expression.parts
    over = [place for place, part in enumerate(inner) if _is_over(part, root)]
    if len(over) != 1 or not all(
        isinstance(part, Number)
        for place, part in enumerate(inner)
        if place not in over
    ):
        return None
    part = inner[over[0]]
    turns = _turns(part, root)
    quantiles = name.rpartition(".")[2] in ("ppf", "isf", "cdf", "sf") and over == [0]
    if turns is None or name in _MONOTONE.get(over[0], ()) or quantiles:
        return turns
    past: Expression
    match name:
        case "absolute" | "square" | "reciprocal":
            past = Applied("sign", (part,))
        case "divide" | "power" if over == [1 if name == "divide" else 0]:
            past = Applied("sign", (part,))
        case "equal" | "not_equal":
            past = Applied("sign", (Applied("subtract", (part, inner[1 - over[0]])),))
        case "remainder" if over == [0]:
            past = Applied("floor_divide", (part, inner[1]))
        case _:
            return None
    steps = _changes(_on(past, root), root, turns)
    return None if steps is None else np.union1d(turns, steps)


def _changes(of: Callable[[Array], Array], root: Root, turns: Array) -> Array | None:
    """Return where a function changes that is monotone between some numbers.

    None if that is nowhere known, or too often.
    """
    law = distribution(root)
    tails = law.ppf(_LOWEST), law.isf(_LOWEST)
    just = np.nextafter(turns, -np.inf)
    u = np.unique(np.concatenate([law.ppf(_HALF), law.isf(_HALF), tails, turns, just]))
    u = u[np.isfinite(u)]
    values = of(u)
    changes = _NONE
    if np.isnan(values).any() or (values[1:] != values[:-1]).sum() > _MOST_PIECES:
        return None
    last, to, before, after = u[:-1], u[1:], values[:-1], values[1:]
    while (some := before != after).any():
        last, to, before, after = last[some], to[some], before[some], after[some]
        left, right = last, to
        for _ in range(1100):
            middle = left + (right - left) / 2
            if not ((middle > left) & (middle < right)).any():
                break
            still = of(middle) == before
            left, right = np.where(still, middle, left), np.where(still, right, middle)
        changes = np.union1d(changes, right)
        if len(changes) > _MOST_PIECES:
            return None
        last, before = right, of(right)
    return changes


@lru_cache(maxsize=4096)
def few_values(expression: Expression) -> tuple[Array, Array] | None:
    """Return the values of a function of draws, and their probabilities.

    None where they are not few: each draw has to be one of finitely many numbers, or
    to be seen by steps alone.
    """
    over = roots(expression)
    tables = [_table(expression, root) for root in over.values()]
    if not tables or None in tables:
        return None
    points = [table[0] for table in tables if table is not None]
    chances = [table[1] for table in tables if table is not None]
    if math.prod(map(len, points)) > _MOST_WAYS:
        return None
    grid = np.meshgrid(*points, indexing="ij")
    draws: list[Any] = [np.empty(0)] * (max(over) + 1)
    for slot, values in zip(over, grid, strict=True):
        draws[slot] = values.ravel()
    p = np.prod(np.meshgrid(*chances, indexing="ij"), axis=0).ravel()
    made = np.broadcast_to(evaluate(expression, draws), p.shape).astype(np.float64)
    made, p = made[p > _LEAST], p[p > _LEAST]
    return (made, p / p.sum()) if np.isfinite(made).all() else None


def _table(expression: Expression, root: Root) -> tuple[Array, Array] | None:
    """Return numbers that stand for all that a draw may be, and their probabilities."""
    if isinstance(root.lattice, Lattice):
        if not root.lattice.finite:
            return None
        start, p = root.lattice.table()
        return start + np.arange(len(p), dtype=np.float64)[p > 0], p[p > 0]
    ends = [np.array([-np.inf, np.inf])]
    for part in _seen_by(expression, root):
        found = None if part is None else pieces(part, root)
        if found is None:
            return None
        ends.append(found.ends)
    law, cuts = distribution(root), np.unique(np.concatenate(ends))
    p = Cut.between(law, cuts[:-1], cuts[1:])
    return _between(law, cuts)[p > 0], p[p > 0] / p.sum()


def _is_bounded(expression: Expression) -> bool:
    """Say whether a function of a uniform number is an affine one."""
    if not isinstance(expression, Applied):
        return True
    affine = expression.name in ("add", "subtract", "multiply", "negative")
    return affine and all(map(_is_bounded, expression.parts))


def _seen_by(expression: Expression, root: Root) -> Iterator[Expression | None]:
    """Yield the functions with steps in which a draw is; None where it is elsewhere."""
    over = roots(expression)
    if root.slot not in over:
        return
    if isinstance(expression, Root):
        yield None
        return
    assert isinstance(expression, Applied)
    few = expression.compares or expression.name in _STEPS
    if expression.name in _WHOLE and root.kind == "uniform":
        few |= all(map(_is_bounded, expression.parts))
    if few and len(over) == 1:
        yield expression
        return
    for part in expression.parts:
        yield from _seen_by(part, root)
