"""Functions of draws that have few values: where each is taken, and how probable it is.

A comparison, or what choices make of such, has few values. As a function of one draw it
is constant between some numbers. These are looked for among 4,000 quantiles, and then
halved until no double lies between: a piece that no quantile lies in, and is of a
probability below 1e-3, may be missed, which no comparison of a monotone function has.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.coded import Lattice
from dpaudit.audit.replay.laws.cuts import Cut
from dpaudit.audit.replay.laws.expressions import (
    Applied,
    Expression,
    Root,
    evaluate,
    roots,
)
from dpaudit.audit.replay.laws.one_draw import distribution

__all__ = ["few_values", "pieces"]

_TAILS = 10.0 ** -np.linspace(3, 15, 200)
_HALF = np.sort(np.concatenate([_TAILS, np.linspace(0.001, 0.5, 2000)]))
_LEAST = 1e-14  # probability that is no rounding
_MOST_PIECES = 256
_MOST_WAYS = 2**14
_STEPS = frozenset(("sign", "searchsorted"))
_WHOLE = frozenset(("floor", "ceil", "rint", "trunc"))


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

    def of(u: Array) -> Array:
        made = evaluate(expression, [u] * (root.slot + 1))
        return np.broadcast_to(made, u.shape).astype(np.float64)

    u = np.unique(np.concatenate([law.ppf(_HALF), law.isf(_HALF)]))
    u = u[np.isfinite(u)]
    values = of(u)
    change = np.flatnonzero(values[1:] != values[:-1])
    if np.isnan(values).any() or len(change) > _MOST_PIECES:
        return None
    left, right, before = u[change], u[change + 1], values[change]
    for _ in range(1100):
        middle = left + (right - left) / 2
        if not ((middle > left) & (middle < right)).any():
            break
        still = of(middle) == before
        left, right = np.where(still, middle, left), np.where(still, right, middle)
    ends = np.concatenate([[-np.inf], right, [np.inf]])
    p = Cut.between(law, ends[:-1], ends[1:])
    return _Pieces(ends, np.append(before, values[-1]), p / p.sum())


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
    low, high = law.cdf(cuts[:-1]), law.cdf(cuts[1:])
    above, below = law.sf(cuts[:-1]), law.sf(cuts[1:])
    middle = np.where(
        low > 0.5, law.isf((above + below) / 2), law.ppf((low + high) / 2)
    )
    return middle[p > 0], p[p > 0] / p.sum()


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
