"""NumPy's functions on numbers with noise: those that move entries, and linear ones.

A function that only moves entries does with the places of entries what it does with
the entries themselves. So it is called on numbers of places instead, and the entries
follow; place 0 is a zero, for the functions that fill up with zeros. All that is not
listed looks at the numbers.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.audit.replay.follow.arithmetic import arithmetic, matrix_product, sums
from dpaudit.audit.replay.follow.selection import COMPARISONS, compared, select
from dpaudit.audit.replay.follow.tape import Tape
from dpaudit.audit.replay.follow.tracked import (
    Tracked,
    isinstance_tracked,
    joined,
    looked_at_within,
    numeric,
    plain,
)

__all__ = ["has_noise", "stacked"]

_DEEPEST = 8
_HARMLESS = {"dtype", "casting", "subok"}

# The positions of the arguments whose entries are moved.
_MOVING: dict[Any, tuple[int, ...]] = {
    **dict.fromkeys(
        (
            np.take,
            np.take_along_axis,
            np.transpose,
            np.reshape,
            np.ravel,
            np.swapaxes,
            np.moveaxis,
            np.rollaxis,
            np.squeeze,
            np.expand_dims,
            np.broadcast_to,
            np.repeat,
            np.tile,
            np.flip,
            np.fliplr,
            np.flipud,
            np.roll,
            np.rot90,
            np.atleast_1d,
            np.atleast_2d,
            np.triu,
            np.tril,
            np.diag,
            np.diagflat,
            np.diagonal,
            np.split,
            np.array_split,
            np.hsplit,
            np.vsplit,
            np.delete,
            np.copy,
            np.concatenate,
            np.stack,
            np.vstack,
            np.hstack,
            np.dstack,
            np.column_stack,
        ),
        (0,),
    ),
    np.compress: (1,),
    np.where: (1, 2),
    np.append: (0, 1),
    np.insert: (0, 2),
}


class _Entries:
    """The entries of all arguments of a call, one after the other; the first is 0."""

    def __init__(self, tape: Tape) -> None:
        self._tape, self._size = tape, 1
        self._parts: list[Tracked] = [Tracked.plain(tape, np.zeros(1))]

    def place(self, value: Any, depth: int = 0) -> Any:
        """Return places for entries, in lists as they come, or raise `LookupError`."""
        if type(value) in (list, tuple) and has_noise(value):
            if depth > _DEEPEST:
                raise LookupError
            return type(value)(self.place(part, depth + 1) for part in value)
        if isinstance_tracked(value) and value.tape is not self._tape:
            value = value.looked_at("moved")
        if not isinstance_tracked(value):
            array = numeric(value)
            if array is None:
                raise LookupError
            value = Tracked.plain(self._tape, array)
        start = self._size
        self._size += value.size
        self._parts.append(value)
        return np.arange(start, self._size).reshape(value.shape)

    def gather(self, places: Any) -> Any:
        """Return entries in place of their places."""
        if isinstance(places, list | tuple):
            return type(places)(self.gather(part) for part in places)
        return joined(self._tape, self._parts).taken(np.asarray(places))


def _ufunc(ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
    """Return what a universal function gives, some inputs of which are tracked."""
    out = kwargs.pop("out", None)
    result = NotImplemented
    if not any([isinstance_tracked(each) and each.noisy for each in inputs]):
        pass
    elif method == "__call__" and not kwargs.keys() - _HARMLESS:
        follow = compared if ufunc in COMPARISONS else arithmetic
        result = follow(ufunc, *inputs)
    elif method == "reduce" and ufunc is np.add:
        result = sums(*inputs, **kwargs)
    if result is NotImplemented:
        ordinary = [plain(each, ufunc.__name__) for each in inputs]
        kwargs = {k: looked_at_within(v) for k, v in kwargs.items()}
        if out is not None and method != "at":
            kwargs["out"] = tuple(plain(each, "out") for each in out)
        result = getattr(ufunc, method)(*ordinary, **kwargs)
        return result if out is None else (out[0] if len(out) == 1 else out)
    if out is None:
        return result
    (target,) = out
    if not isinstance_tracked(target):
        np.copyto(target, plain(result, ufunc.__name__), casting="same_kind")
        return target
    if not isinstance_tracked(result):
        result = Tracked.plain(target.tape, np.asarray(result))
    return target.become(result.spread(target.shape))


def _function(func: Any, args: Any, kwargs: Any, tape: Tape) -> Any:
    """Return what another function gives, some arguments of which are tracked."""
    if has_noise([args, list(kwargs.values())]):
        result = NotImplemented
        if func in _SPECIAL:
            result = _SPECIAL[func](*args, **kwargs)
        if result is NotImplemented and func in _MOVING and "out" not in kwargs:
            result = _moved(func, args, kwargs, tape)
        if result is not NotImplemented:
            return result
    return func(
        *_ordinary(args, func.__name__),
        **{key: _ordinary(value, func.__name__) for key, value in kwargs.items()},
    )


def has_noise(value: Any, depth: int = 0) -> bool:
    """Say whether there are numbers with noise in a value, or in lists of them."""
    if isinstance_tracked(value):
        return value.noisy
    if type(value) in (list, tuple) and depth <= _DEEPEST:
        return any(has_noise(part, depth + 1) for part in value)
    return False


def stacked(tape: Tape, value: Any) -> Any:
    """Return nested lists of numbers, some with noise, as np.array would."""
    pool = _Entries(tape)
    try:
        return pool.gather(np.array(pool.place(value)))
    except (LookupError, ValueError):
        return NotImplemented


def _moved(func: Any, args: Any, kwargs: Any, tape: Tape) -> Any:
    positions = _MOVING[func]
    others = [arg for place, arg in enumerate(args) if place not in positions]
    if has_noise(others) or has_noise(list(kwargs.values())):
        return NotImplemented
    if kwargs.get("dtype") is not None:
        return NotImplemented
    pool = _Entries(tape)
    try:
        places = [
            pool.place(arg) if place in positions else _ordinary(arg, func.__name__)
            for place, arg in enumerate(args)
        ]
    except LookupError:
        return NotImplemented
    return pool.gather(func(*places, **kwargs))


def _ordinary(value: Any, how: str) -> Any:
    if isinstance_tracked(value):
        return value.looked_at(how)
    if type(value) in (list, tuple):
        return type(value)(_ordinary(part, how) for part in value)
    return value


def _sum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, **more: Any
) -> Any:
    if not isinstance_tracked(a) or out is not None:
        return NotImplemented
    return np.add.reduce(a, axis=axis, dtype=dtype, **more)


def _mean(a: Any, axis: Any = None, dtype: Any = None, **more: Any) -> Any:
    if set(more) - {"keepdims"} or dtype is not None or not isinstance_tracked(a):
        return NotImplemented
    return a.mean(axis=axis, **more)


def _trace(a: Any, *args: Any, **kwargs: Any) -> Any:
    return np.add.reduce(np.diagonal(a, *args, **kwargs), axis=-1)


def _dot(a: Any, b: Any, out: Any = None) -> Any:
    if out is not None:
        return NotImplemented
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return np.multiply(a, b)
    return matrix_product(a, b)


def _argmax(a: Any, sign: float, axis: Any, out: Any) -> Any:
    """Return the place of the largest noisy number, as one choice."""
    if not isinstance_tracked(a) or out is not None or axis not in (None, 0, -1):
        return NotImplemented
    if axis is not None and a.ndim != 1:
        return NotImplemented
    place = select(a, sign)
    return NotImplemented if place is None else place


def _outer(a: Any, b: Any, out: Any = None) -> Any:
    if out is not None:
        return NotImplemented
    return np.multiply(np.ravel(a)[:, np.newaxis], np.ravel(b)[np.newaxis, :])


def _full_like(a: Any, fill: Any, dtype: Any = None, **more: Any) -> Any:
    if dtype is not None or set(more) - {"shape"}:
        return NotImplemented
    shape = more.get("shape") or np.shape(a)
    return Tracked.plain(a.tape, np.full(shape, fill, dtype=np.float64))


_SPECIAL: dict[Any, Callable[..., Any]] = {
    np.sum: _sum,
    np.mean: _mean,
    np.trace: _trace,
    np.argmax: lambda a, axis=None, out=None: _argmax(a, 1.0, axis, out),
    np.argmin: lambda a, axis=None, out=None: _argmax(a, -1.0, axis, out),
    np.dot: _dot,
    np.outer: _outer,
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: math.prod(a.shape) if axis is None else a.shape[axis],
    np.zeros_like: lambda a, dtype=None, **more: _full_like(a, 0.0, dtype, **more),
    np.ones_like: lambda a, dtype=None, **more: _full_like(a, 1.0, dtype, **more),
    np.empty_like: lambda a, dtype=None, **more: _full_like(a, 0.0, dtype, **more),
    np.full_like: _full_like,
}
Tracked.ufunc, Tracked.function = _ufunc, _function
