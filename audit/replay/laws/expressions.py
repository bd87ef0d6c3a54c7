"""Expressions: what code computes from draws alone, and from nothing else.

An expression is a tree: draws, ordinary numbers, and NumPy functions of these. Two
expressions that are equal have one law, whatever execution they come from.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dpaudit.arrays import Array

__all__ = ["Applied", "Expression", "Number", "Root", "evaluate", "roots"]

_FUNCTIONS: dict[str, Callable[..., Any]] = {"where": np.where, "clip": np.clip}


@dataclass(frozen=True)
class Root:
    """A standard draw.

    Parameters
    ----------
    slot : int
        Which of the draws that an expression is over.
    kind : str
        "gaussian", "laplace", "exponential", "uniform", "gumbel" or "logistic"; or
        "lattice".
    lattice : Lattice, optional
        With it: of which integers, `dpaudit.audit.replay.laws.coded`.
    """

    slot: int
    kind: str
    lattice: Any = None


@dataclass(frozen=True)
class Number:
    """An ordinary number, the same for all entries."""

    value: float


@dataclass(frozen=True)
class Applied:
    """What a NumPy function of that name makes of its arguments."""

    name: str
    parts: "tuple[Expression, ...]"


Expression: TypeAlias = Root | Number | Applied


def evaluate(expression: Expression, draws: Sequence[Array]) -> Array:
    """Return what an expression is for draws, one array for each slot."""
    if isinstance(expression, Root):
        return draws[expression.slot]
    if isinstance(expression, Number):
        return np.asarray(expression.value)
    parts = [evaluate(part, draws) for part in expression.parts]
    function = _FUNCTIONS.get(expression.name) or getattr(np, expression.name)
    with np.errstate(all="ignore"):
        return np.asarray(function(*parts))


def roots(expression: Expression) -> dict[int, Root]:
    """Return the draws that an expression is over, by their slots."""
    if isinstance(expression, Root):
        return {expression.slot: expression}
    found: dict[int, Root] = {}
    for part in getattr(expression, "parts", ()):
        found |= roots(part)
    return found
