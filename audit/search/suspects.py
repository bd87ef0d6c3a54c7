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
from functools import partial
from itertools import islice
from tokenize import TokenError
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.search.cut import PairCut
from dpaudit.domains import Domain
from dpaudit.neighbours import Relation
from dpaudit.streams import FunctionMechanism

__all__ = ["suspects"]

_VALUES, _SIZES, _CUTS = 6, 3, 12  # that are tried at most
_LONGEST = 300  # rows
_PLACES = 100  # of a row, that a value is tried at
_FUNCTIONS = 20  # that are read


def suspects(mechanism: Any, domain: Domain, relation: Relation) -> Iterator[PairCut]:
    """Yield pairs at the numbers and texts that a function compares with; a dozen."""
    values = _compared(mechanism)
    zero, top, *_ = domain.extremes()
    sizes = [v for v in values if isinstance(v, int) and 1 < v <= _LONGEST]
    cuts = []
    for size in sizes[:_SIZES]:
        for n in (size, size - 1):
            cuts.append(PairCut([top] * n, n, zero, top))
    n = domain.n_rows
    for row in islice(_rows(values, domain), _CUTS // 2):
        cuts.append(PairCut([], 0, zero, row))
        cuts.append(PairCut([zero] * n, n, zero, row))
    yield from cuts[:_CUTS]


def _rows(values: list[Any], domain: Domain) -> Iterator[Array]:
    """Yield legal rows that have one of the values in a column, and are plain else."""
    plain = domain.extremes()[0]
    for value in values[:_VALUES]:
        for place in range(min(plain.size, _PLACES)):
            code = domain.code(value, place)
            if code is None:
                continue
            flat = plain.ravel().copy()
            flat[place] = code
            row = flat.reshape(plain.shape)
            if domain.contains(row) and not np.array_equal(row, plain):
                yield row


def _compared(mechanism: Any) -> list[Any]:
    """Return what a function compares with, in the order of its lines.

    Code is read and never executed: no attribute is asked for that a class might
    compute.
    """
    found: dict[Any, None] = {}
    given: dict[str, Any] = {}
    while isinstance(mechanism, partial | FunctionMechanism):
        if isinstance(mechanism, partial):
            given = mechanism.keywords | given
            mechanism = mechanism.func
        else:
            given = {**mechanism.given, **given}
            mechanism = mechanism.function
    if not isinstance(mechanism, FunctionType | MethodType):
        mechanism = inspect.getattr_static(type(mechanism), "release", None)
    waiting = [getattr(mechanism, "__func__", mechanism)]
    for function in waiting:
        if not isinstance(function, FunctionType) or _is_ours(function):
            continue
        called = [vars(function).get("__wrapped__")]
        known = _defaults(function) | given
        for node in _nodes(function):
            if isinstance(node, ast.Compare):
                for part in (node.left, *node.comparators):
                    for value in _values(part, known, function.__globals__):
                        found.setdefault(value)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                name = node.func.id
                called.append(known.get(name, function.__globals__.get(name)))
        for each in called:
            new = type(each) is FunctionType and each not in waiting
            if new and len(waiting) < _FUNCTIONS:
                waiting.append(each)
    return list(found)


def _nodes(function: FunctionType) -> Iterator[ast.AST]:
    """Yield what a function is written of; nothing where that cannot be read."""
    try:
        source = inspect.getsource(function.__code__)
        yield from ast.walk(ast.parse(textwrap.dedent(source)))
    except (OSError, TypeError, SyntaxError, ValueError, TokenError):
        pass
    except (RecursionError, MemoryError):  # it is nested too deep
        pass


def _defaults(function: FunctionType) -> dict[str, Any]:
    code, values = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    last = names[len(names) - len(values) :]
    return dict(zip(last, values, strict=True)) | (function.__kwdefaults__ or {})


def _values(
    part: ast.expr, known: dict[str, Any], beside: dict[str, Any]
) -> Iterator[Any]:
    """Yield the numbers and texts that a part of a comparison names."""
    for node in ast.walk(part):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(node, ast.Name):
            value = known.get(node.id, beside.get(node.id))
        kind = type(value)  # whose own class may say what it equals
        if (kind is int or kind is float or kind is str) and value == value:
            yield value


def _is_ours(function: FunctionType) -> bool:
    name = function.__module__  # or what somebody wrote there
    return isinstance(name, str) and name.partition(".")[0] == "dpaudit"
