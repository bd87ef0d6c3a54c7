"""Pairs at the numbers with which a function compares: values, and sizes of data.

Where code asks whether ``x == 42`` or ``len(rows) > 12``, it may do one thing on one
side and another on the other; a search that knows ranges alone seldom comes there. The
comparisons of a function, and of functions that it calls by name, are read for
numbers and texts, and for names that stand for them. Nothing of it is taken for
granted: these are pairs to try.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.search.cut import Cut
from dpaudit.domains import Domain
from dpaudit.functions import FunctionMechanism
from dpaudit.neighbours import Relation

__all__ = ["suspects"]

_VALUES, _SIZES, _CUTS = 6, 3, 12  # that are tried at most
_LONGEST = 300  # rows
_FUNCTIONS = 20  # that are read


def suspects(mechanism: Any, domain: Domain, relation: Relation) -> Iterator[Cut]:
    """Yield pairs at the numbers and texts that a function compares with; a dozen."""
    values = _compared(mechanism)
    zero, top, *_ = domain.extremes()
    sizes = [v for v in values if isinstance(v, int) and 1 < v <= _LONGEST]
    cuts = []
    for size in sizes[:_SIZES]:
        for n in (size, size - 1):
            cuts.append(Cut([top] * n, n, zero, top))
    n = domain.n_rows
    for row in _rows(values, domain):
        cuts.append(Cut([], 0, zero, row))
        cuts.append(Cut([zero] * n, n, zero, row))
    yield from cuts[:_CUTS]


def _rows(values: list[Any], domain: Domain) -> Iterator[Array]:
    """Yield legal rows that have one of the values in a column, and are plain else."""
    plain = domain.extremes()[0]
    for value in values[:_VALUES]:
        for place in range(plain.size):
            code = domain.code(value, place)
            if code is None:
                continue
            flat = plain.ravel().copy()
            flat[place] = code
            row = flat.reshape(plain.shape)
            if domain.contains(row) and not np.array_equal(row, plain):
                yield row


def _compared(mechanism: Any) -> list[Any]:
    """Return what a function compares with, in the order of its lines."""
    found: dict[Any, None] = {}
    given: dict[str, Any] = dict(getattr(mechanism, "keywords", {}))
    given |= dict(getattr(mechanism, "given", {}))
    written = FunctionMechanism.written(mechanism)
    written = getattr(written, "release", written)
    waiting = [getattr(written, "__func__", written)]
    for function in waiting:
        if not isinstance(function, FunctionType) or _is_ours(function):
            continue
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
            defaults = inspect.signature(function).parameters.values()
        except (OSError, TypeError, SyntaxError, ValueError):
            continue
        known = function.__globals__ | {each.name: each.default for each in defaults}
        known |= given
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare):
                for part in (node.left, *node.comparators):
                    for value in _values(part, known):
                        found.setdefault(value)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                called = known.get(node.func.id)
                new = isinstance(called, FunctionType) and called not in waiting
                if new and len(waiting) < _FUNCTIONS:
                    waiting.append(called)
    return list(found)


def _values(part: ast.expr, known: dict[str, Any]) -> Iterator[Any]:
    """Yield the numbers and texts that a part of a comparison names."""
    for node in ast.walk(part):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(node, ast.Name):
            value = known.get(node.id)
        if type(value) in (int, float, str) and value == value:
            yield value


def _is_ours(function: FunctionType) -> bool:
    return (function.__module__ or "").partition(".")[0] == "dpaudit"
