"""NumPy's functions on numbers with noise: those that move entries, and linear ones.

Functions that only move entries are called on their places (`Entries` of
`dpaudit.audit.replay.follow.tracked`). All that is not listed looks at the numbers.

Those that choose by comparing noisy numbers are in
`dpaudit.audit.replay.follow.selection`. Noise that is clipped is what it was, or the
end, which is then an atom.
"""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.arithmetic import arithmetic, sums
from dpaudit.audit.replay.follow.derived import derived, joined_noise, rounded
from dpaudit.audit.replay.follow.directions import directed, norm
from dpaudit.audit.replay.follow.frames import in_frame
from dpaudit.audit.replay.follow.kept import outcomes
from dpaudit.audit.replay.follow.linear import linear
from dpaudit.audit.replay.follow.looked import Arithmetic
from dpaudit.audit.replay.follow.plane import polar
from dpaudit.audit.replay.follow.selection import (
    COMPARISONS,
    compared,
    decide,
    decided,
    digitize,
    fair,
    searchsorted,
    select,
)
from dpaudit.audit.replay.follow.tape import Tape
from dpaudit.audit.replay.follow.texts import Text
from dpaudit.audit.replay.follow.tracked import (
    Entries,
    Tracked,
    has_noise,
    is_complex,
    isinstance_tracked,
    looked_at_within,
    numeric,
)

__all__ = ["stacked"]

_MOST_FEW = 6  # numbers of few values that are decided at once
_MOST_CUT = 4  # numbers that are clipped at once
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
    **dict.fromkeys((np.fft.fftshift, np.fft.ifftshift), (0,)),
    np.compress: (1,),
    np.where: (1, 2),
    np.append: (0, 1),
    np.insert: (0, 2),
}


def _ufunc(ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
    """Return what a universal function gives, some inputs of which are tracked."""
    if method == "__call__":
        result = in_frame(ufunc, inputs, kwargs)
        if result is not NotImplemented:
            return result
    out = kwargs.pop("out", None)
    result = NotImplemented
    real = any(isinstance_tracked(each) and not each.is_complex for each in out or ())
    if not any([isinstance_tracked(each) and each.noisy for each in inputs]):
        pass
    elif real and is_complex(inputs):
        pass  # which NumPy refuses
    elif method == "__call__" and not kwargs.keys() - _HARMLESS:
        result = _called(ufunc, inputs)
    elif method == "reduce" and ufunc is np.add:
        result = sums(*inputs, **kwargs)
    elif method == "accumulate" and ufunc is np.add and inputs[0].ndim == 1:
        result = linear(np.cumsum, inputs, kwargs)
    elif method == "at" and ufunc in (np.add, np.subtract):
        return _added_at(ufunc, *inputs)
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


def _added_at(ufunc: Any, target: Any, places: Any, values: Any) -> None:
    """Add ordinary numbers to the entries of an array with noise, as ufunc.at does."""
    numbers = numeric(values)
    if numbers is None or not isinstance_tracked(target) or has_noise(places):
        ordinary = [looked_at_within(each, "at") for each in (target, places, values)]
        ufunc.at(*ordinary)
        return
    added = np.zeros(target.shape)
    ufunc.at(added, places, numbers)
    target.become(target + added)


def _called(ufunc: Any, inputs: Any) -> Any:
    """Return what a universal function gives, by itself."""
    decide(inputs)
    if not has_noise(inputs):  # any more
        return NotImplemented
    if is_complex(inputs):
        return arithmetic(ufunc, *inputs)
    if ufunc in COMPARISONS:
        return _comparison(ufunc, inputs)
    result = NotImplemented
    if ufunc in (np.add, np.subtract):
        result = joined_noise(ufunc, *inputs)
        if result is NotImplemented and all(map(_keeps, inputs)) and _decided(inputs):
            return ufunc(*inputs)
    if result is NotImplemented:
        result = arithmetic(ufunc, *inputs)
    if result is NotImplemented and ufunc is np.multiply:
        result = polar(*inputs)
    if result is NotImplemented:
        result = directed(ufunc.__name__, inputs)
    if result is not NotImplemented:
        return result
    if any(map(_keeps, inputs)):
        result = derived(ufunc.__name__, *inputs, known=True)
        if result is NotImplemented:
            result = _cut_off(ufunc, *inputs)
        if result is NotImplemented and _decided(inputs):
            return ufunc(*inputs)
    return derived(ufunc.__name__, *inputs) if result is NotImplemented else result


def _comparison(ufunc: Any, inputs: Any) -> Any:
    """Return what a comparison gives, by itself."""
    few = any(map(_keeps, inputs))  # of few values, not yet decided
    result = derived(ufunc.__name__, *inputs, few=True) if few else NotImplemented
    if result is NotImplemented:
        result = fair(ufunc, *inputs)
    return compared(ufunc, *inputs) if result is NotImplemented else result


def _keeps(value: Any) -> bool:
    """Say whether it has noise whose draws go on after they are looked at."""
    return bool(isinstance_tracked(value) and value.noisy and value.tape.mode.keeps)


def _decided(inputs: Any) -> bool:
    """Say whether there was a number of few values to be decided, so that others stay.

    A random sign of noise, say, the law of which is not known with it.
    """
    noisy = [each for each in inputs if _keeps(each)]
    few = [e for e in noisy if e.size <= _MOST_FEW and e.on_some_lattice()]
    if all(each.is_finite() for each in noisy):  # sums of which have a law
        return False
    return len(few) < len(noisy) and any([outcomes(each) for each in few])


def _function(func: Any, args: Any, kwargs: Any, tape: Tape) -> Any:
    """Return what another function gives, some arguments of which are tracked."""
    if func is np.where and len(args) == 3:
        result = derived("where", *args)
        if result is not NotImplemented:
            return result
    if func not in (np.shape, np.ndim, np.size):
        args = decided(args)
    if has_noise([args, list(kwargs.values())]):
        known = func in (_OF_COMPLEX if is_complex(args) else _SPECIAL)
        result = _SPECIAL[func](*args, **kwargs) if known else NotImplemented
        if result is NotImplemented and func in _MOVING and "out" not in kwargs:
            result = _moved(func, args, kwargs, tape)
        if result is NotImplemented:
            result = linear(func, args, kwargs)
        if result is not NotImplemented:
            return result
    return func(
        *looked_at_within(args, func.__name__),
        **looked_at_within(kwargs, func.__name__),
    )


def stacked(tape: Tape, value: Any) -> Any:
    """Return nested lists of numbers, some with noise, as np.array would."""
    pool = Entries(tape)
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
    pool, name = Entries(tape), func.__name__
    try:
        places = [
            pool.place(arg) if place in positions else looked_at_within(arg, name)
            for place, arg in enumerate(args)
        ]
    except LookupError:
        return NotImplemented
    return pool.gather(func(*places, **kwargs))


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


def _dot(a: Any, b: Any, out: Any = None) -> Any:
    if out is not None:
        return NotImplemented
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return np.multiply(a, b)
    return np.matmul(a, b) if max(np.ndim(a), np.ndim(b)) < 3 else NotImplemented


def _argmax(a: Any, sign: float, axis: Any, out: Any) -> Any:
    """Return the place of the largest noisy number, as one choice."""
    if not isinstance_tracked(a) or out is not None or axis not in (None, 0, -1):
        return NotImplemented
    if axis is not None and a.ndim != 1:
        return NotImplemented
    place = select(a, sign)
    return NotImplemented if place is None else place


def _full_like(a: Any, fill: Any, dtype: Any = None, **more: Any) -> Any:
    if dtype is not None or set(more) - {"shape"}:
        return NotImplemented
    shape = more.get("shape") or np.shape(a)
    kind = np.result_type(a.dtype, np.float64)
    return Tracked.plain(a.tape, np.full(shape, fill, dtype=kind))


def _clipped(value: Any, low: Any = None, high: Any = None, **more: Any) -> Any:
    """Return a clipped number: one draw, or where draws are kept what is left of it."""
    if more or not (isinstance_tracked(value) and value.tape.mode.keeps):
        return NotImplemented if more else derived("clip", value, low, high)
    made = derived("clip", value, low, high, known=True)
    if made is NotImplemented:
        value = value if low is None else np.maximum(value, low)
        return value if high is None else np.minimum(value, high)
    return made


def _cut_off(ufunc: Any, left: Any, right: Any = None) -> Any:
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


_SPECIAL: dict[Any, Callable[..., Any]] = {
    np.sum: _sum,
    np.mean: _mean,
    np.trace: lambda *args, **how: np.add.reduce(np.diagonal(*args, **how), axis=-1),
    np.clip: _clipped,
    np.round: lambda a, decimals=0: rounded("rint", a, decimals),
    np.searchsorted: searchsorted,
    np.digitize: digitize,
    np.argmax: lambda a, axis=None, out=None: _argmax(a, 1.0, axis, out),
    np.argmin: lambda a, axis=None, out=None: _argmax(a, -1.0, axis, out),
    np.dot: _dot,
    np.outer: lambda a, b, **more: (
        NotImplemented if more else np.multiply(np.ravel(a)[:, None], np.ravel(b))
    ),
    np.linalg.norm: norm,
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: math.prod(a.shape) if axis is None else a.shape[axis],
    np.zeros_like: lambda a, dtype=None, **more: _full_like(a, 0.0, dtype, **more),
    np.ones_like: lambda a, dtype=None, **more: _full_like(a, 1.0, dtype, **more),
    np.empty_like: lambda a, dtype=None, **more: _full_like(a, 0.0, dtype, **more),
    np.full_like: _full_like,
    np.real: lambda val: val.real,
    np.imag: lambda val: val.imag,
    np.iscomplexobj: is_complex,
    np.isrealobj: lambda x: not is_complex(x),
}
# What holds of complex numbers as well; others look at them.
_OF_COMPLEX = frozenset(
    (np.sum, np.mean, np.trace, np.dot, np.outer, np.shape, np.ndim, np.size)
) | {np.zeros_like, np.ones_like, np.real, np.imag, np.iscomplexobj, np.isrealobj}
Arithmetic.ufunc, Arithmetic.function = _ufunc, _function
Tracked.outcomes = outcomes


# -- ways to Python's own numbers and texts: each looks at the numbers


def _native(array: Array) -> Any:
    number = complex if array.dtype.kind == "c" else float
    return array if array.ndim else number(array)


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
    "trunc": lambda array: math.trunc(float(array)),
    "floor": lambda array: math.floor(float(array)),
    "ceil": lambda array: math.ceil(float(array)),
    "format": lambda array, form: format(_native(array), form),
    "contains": operator.contains,
    "reduce": lambda array: _native(array).__reduce__(),
}
for _name, _convert in _CONVERSIONS.items():
    setattr(Tracked, f"__{_name}__", _looking(_name, _convert))


def _texts(how: str, convert: Callable[[Any], str]) -> Callable[[Tracked], str]:
    """Return a method that writes numbers; of a draw alone it may be one again."""

    def method(self: Tracked) -> str:
        if not (self.is_alone and self.size == 1):
            return convert(_native(self.looked_at(how)))
        value = self.tape.draws.value(self.centre.ravel(), self.index, self.coef)
        return Text(convert(_native(value.reshape(self.shape))), self)

    return method


for _write in (str, repr):
    setattr(Tracked, f"__{_write.__name__}__", _texts(_write.__name__, _write))


def _rounded(self: Tracked, digits: Any = None) -> Any:
    """Return what is nearest, as one draw where it is made of draws alone."""
    made = rounded("rint", self, digits or 0)
    if made is not NotImplemented:
        return made
    return round(float(self.looked_at("round")), digits)


Tracked.__round__ = _rounded  # type: ignore[attr-defined]
