"""NumPy's functions on numbers with noise: those that move entries, and linear ones.

A function that only moves entries does with the places of entries what it does with
the entries themselves. So it is called on numbers of places instead, and the entries
follow; place 0 is a zero, for the functions that fill up with zeros. All that is not
listed looks at the numbers.

Two functions choose by comparing noisy numbers. The place of the largest of them is one
choice. A comparison of fresh uniform numbers with ordinary ones, such as
``rng.random(n) < p``, is independent flips: of u < t for a uniform u nothing else is
known afterwards than whether it holds, which it does with probability t.
"""

import math
import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.arithmetic import arithmetic, matrix_product, sums
from dpaudit.audit.replay.follow.tape import Tape
from dpaudit.audit.replay.follow.tracked import (
    DEEPEST,
    Tracked,
    has_noise,
    isinstance_tracked,
    looked_at_within,
    numeric,
)
from dpaudit.audit.replay.laws.affine import Family
from dpaudit.audit.replay.laws.choices import ChoiceLaw, noisy_maximum

__all__ = ["stacked"]

_LESS = frozenset({np.less, np.less_equal})
_COMPARISONS = _LESS | {np.greater, np.greater_equal}
_HARMLESS = {"dtype", "casting", "subok"}

_MOVING_FIRST = """
    take take_along_axis transpose reshape ravel swapaxes moveaxis rollaxis
    squeeze expand_dims broadcast_to repeat tile flip fliplr flipud roll rot90
    atleast_1d atleast_2d triu tril diag diagflat diagonal split array_split
    hsplit vsplit delete copy concatenate stack vstack hstack dstack
    column_stack
"""
# The positions of the arguments whose entries are moved.
_MOVING: dict[Any, tuple[int, ...]] = {
    **{getattr(np, name): (0,) for name in _MOVING_FIRST.split()},
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
            if depth > DEEPEST:
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
        return Tracked.joined(self._tape, self._parts).taken(np.asarray(places))


def _ufunc(ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
    """Return what a universal function gives, some inputs of which are tracked."""
    out = kwargs.pop("out", None)
    result = NotImplemented
    if not any([isinstance_tracked(each) and each.noisy for each in inputs]):
        pass
    elif method == "__call__" and not kwargs.keys() - _HARMLESS:
        follow = _compared if ufunc in _COMPARISONS else arithmetic
        result = follow(ufunc, *inputs)
    elif method == "reduce" and ufunc is np.add:
        result = sums(*inputs, **kwargs)
    if result is NotImplemented:
        ordinary = [looked_at_within(each, ufunc.__name__) for each in inputs]
        kwargs = looked_at_within(kwargs)
        if out is not None and method != "at":
            kwargs["out"] = tuple(looked_at_within(each, "out") for each in out)
        result = getattr(ufunc, method)(*ordinary, **kwargs)
        return result if out is None else (out[0] if len(out) == 1 else out)
    if out is None:
        return result
    (target,) = out
    if not isinstance_tracked(target):
        np.copyto(target, looked_at_within(result, ufunc.__name__), casting="same_kind")
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
        *looked_at_within(args, func.__name__),
        **looked_at_within(kwargs, func.__name__),
    )


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
    pool, name = _Entries(tape), func.__name__
    try:
        places = [
            pool.place(arg) if place in positions else looked_at_within(arg, name)
            for place, arg in enumerate(args)
        ]
    except LookupError:
        return NotImplemented
    return pool.gather(func(*places, **kwargs))


def _select(noisy: Tracked, sign: float = 1.0) -> "np.intp | None":
    """Return where the largest number is, or the smallest if the sign is -1.

    The draws are used up by that: nothing else is known of them than which is ahead.
    None where the choice has no law that is known: the numbers must have one fresh draw
    of one family and one scale each, which only adds to them.
    """
    tape = noisy.tape
    if not tape.mode.selects or tape.closed or noisy.bare:
        return None
    noisy.settle()
    index, mean, coef = noisy.index, sign * noisy.centre.ravel(), sign * noisy.coef
    if index.shape[1] != 1 or not index.size or not np.isfinite(mean).all():
        return None
    draws = index[:, 0]
    family = int(tape.draws.families[draws.max()])
    if not tape.draws.are_fresh(draws, family):
        return None
    if family == Family.LAPLACE:  # the law of which is that of its negative
        coef = np.abs(coef)
    scale = float(coef[0, 0])
    log = None
    if scale > 0 and (coef == scale).all():
        log = noisy_maximum(mean, scale, family)
    if log is None:
        return None
    value = tape.draws.value(noisy.centre.ravel(), index, noisy.coef)
    place = np.asarray(np.argmax(sign * value))
    tape.draws.use_up(draws)
    tape.selected = True
    law = ChoiceLaw(log[np.newaxis], "noisy maximum")
    return np.intp(tape.choose(law, place, ())[()])


def _compared(ufunc: Any, left: Any, right: Any) -> Any:
    """Return a comparison of fresh uniform draws with ordinary numbers, as flips.

    The draws are used up by that. NotImplemented where these are no flips: each number
    must be an affine image of a fresh uniform draw of its own.
    """
    first = isinstance_tracked(left) and left.noisy
    noisy, other = (left, right) if first else (right, left)
    level, tape, below = numeric(other), noisy.tape, (ufunc in _LESS) == first
    if level is None or not tape.mode.selects or tape.closed:
        return NotImplemented
    shape = np.broadcast_shapes(noisy.shape, level.shape)
    noisy = noisy.spread(shape)
    level = np.broadcast_to(level, shape) if level.ndim else level
    noisy.settle()
    level, mean, block = level.ravel(), noisy.centre.reshape(-1), noisy.terms.block
    coef: Any
    if block is not None:
        coef, values = noisy.terms.factor, block.values
        if not block.is_fresh or block.family != Family.UNIFORM:
            return NotImplemented
        if noisy.bare:
            mean = mean[:1]  # which are all zero
    elif noisy.index.shape[1] == 1:
        draws, coef = noisy.index[:, 0], noisy.coef[:, 0]
        if not tape.draws.are_fresh(draws, Family.UNIFORM):
            return NotImplemented
        values = tape.draws.values[draws]
    else:
        return NotImplemented
    if not np.all(np.isfinite(coef) & (coef != 0)):
        return NotImplemented
    as_drawn = block is not None and noisy.bare and coef == 1
    with np.errstate(all="ignore"):
        gap = level - mean
        numbers = values if as_drawn else mean + coef * values
        held = np.asarray(ufunc(numbers, level) if first else ufunc(level, numbers))
    if block is not None:
        block.spend(partly=True)
    else:
        tape.draws.use_up(draws)
    if block is not None and gap.size == 1:
        law = _alike(float(gap[0]), float(coef), below, noisy.size)
    else:
        law = _flips(gap, coef, below, noisy.size)
    tape.selected = True
    return tape.choose(law, held.astype(np.intp), shape).astype(bool)[()]


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
    place = _select(a, sign)
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


# -- ways to Python's own numbers and texts: each looks at the numbers


def _native(array: Array) -> Any:
    return array if array.ndim else float(array)


def _looking(how: str, convert: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that looks at the numbers, and converts them."""

    def method(self: Tracked, *arguments: Any) -> Any:
        return convert(self.looked_at(how), *arguments)

    return method


_CONVERSIONS: dict[str, Callable[..., Any]] = {
    "float": float,
    "int": int,
    "complex": complex,
    "bool": bool,
    "index": lambda array: operator.index(array[()]),
    "round": lambda array, digits=None: round(float(array), digits),
    "trunc": lambda array: math.trunc(float(array)),
    "floor": lambda array: math.floor(float(array)),
    "ceil": lambda array: math.ceil(float(array)),
    "format": lambda array, form: format(_native(array), form),
    "str": lambda array: str(_native(array)),
    "repr": lambda array: repr(_native(array)),
    "contains": operator.contains,
    "reduce": lambda array: _native(array).__reduce__(),
}
for _name, _convert in _CONVERSIONS.items():
    setattr(Tracked, f"__{_name}__", _looking(_name, _convert))
