"""Expressions: what code computes from draws alone, and from nothing else.

An expression is a tree: draws, ordinary numbers, and NumPy functions of these. Two
expressions that are equal have one law, whatever execution they come from.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dpaudit.arrays import Array

__all__ = ["Applied", "Expression", "Number", "Root", "evaluate", "roots"]


def _whole(name: str) -> Callable[..., Any]:
    """Return a function of integers, of numbers that are such."""
    function = getattr(np, name)
    return lambda x, y: function(x.astype(np.int64), y.astype(np.int64))


def _lambertw(z: Array, branch: Any, tolerance: Any) -> Array:
    """Return Lambert's W where it is real.

    On the lower branch -1 - W(-q/e) is the number that a gamma draw of shape 2 exceeds
    with probability q: (1 + r) exp(-r) = q. So it has all its digits close to -1/e.
    """
    from scipy import special

    if branch == -1:
        return np.asarray(-1 - special.gammainccinv(2.0, -math.e * z))
    w = special.lambertw(z, int(branch), tolerance)
    return np.where(w.imag == 0, w.real, np.nan)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "special._lambertw": _lambertw,
    "where": np.where,
    "clip": np.clip,
    "searchsorted": lambda table, side, u: table.searchsorted(u, str(side)),
    **{f"bitwise_{each}": _whole(f"bitwise_{each}") for each in ("and", "or", "xor")},
}

_COMPARISONS = frozenset(
    ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
)


@dataclass(frozen=True)
class Root:
    """A standard draw.

    Parameters
    ----------
    slot : int
        Which of the draws that an expression is over.
    kind : str
        "gaussian", "laplace", "exponential", "uniform", "gumbel" or "logistic"; or
        "lattice", or "coded".
    lattice : Lattice, optional
        With it: of which integers, `dpaudit.audit.replay.laws.coded`.
    law : object, optional
        With "coded": the law, another one that has a code.
    """

    slot: int
    kind: str
    lattice: Any = None
    law: Any = None


@dataclass(frozen=True)
class Number:
    """An ordinary number, the same for all entries; or what else is handed over."""

    value: Any


@dataclass(frozen=True)
class Applied:
    """What a NumPy function of that name makes of its arguments."""

    name: str
    parts: "tuple[Expression, ...]"

    @property
    def compares(self) -> bool:
        """Whether it is a comparison, or made of such."""
        return self.name in _COMPARISONS or self.name.startswith("logical")


Expression: TypeAlias = Root | Number | Applied


def evaluate(expression: Expression, draws: Sequence[Array]) -> Array:
    """Return what an expression is for draws, one array for each slot."""
    if isinstance(expression, Root):
        return draws[expression.slot]
    if isinstance(expression, Number):
        return np.asarray(expression.value)
    parts = [evaluate(part, draws) for part in expression.parts]
    with np.errstate(all="ignore"):
        return np.asarray(_function(expression.name)(*parts))


def _function(name: str) -> Callable[..., Any]:
    """Return a function of NumPy, or by the name of a law its quantiles in SciPy."""
    law, _, method = name.partition(".")
    if not method or name in _FUNCTIONS:
        return _FUNCTIONS.get(name) or getattr(np, name)
    from scipy import special, stats

    return getattr(special if law == "special" else getattr(stats, law), method)


def roots(expression: Expression) -> dict[int, Root]:
    """Return the draws that an expression is over, by their slots."""
    if isinstance(expression, Root):
        return {expression.slot: expression}
    found: dict[int, Root] = {}
    for part in getattr(expression, "parts", ()):
        found |= roots(part)
    return found
