"""`Tracked`: numbers with noise, as an affine image of draws, in place of an array.

It stands for an array x + sum_j c_j z_j: its mean x is ordinary numbers, its terms name
draws of a `dpaudit.audit.replay.tape.Tape`. What keeps that form is followed: sums and
differences, multiples by ordinary numbers, products with ordinary matrices, sums over
axes, and whatever only moves entries (slices, transposes, triangles, concatenations,
assignments: `dpaudit.audit.replay.moves`). In whatever else is done with it the code
looks at the numbers: then the tape takes note, and they are ordinary numbers from then
on. There is no other way to the numbers than through the tape: a `Tracked` is no
ndarray to NumPy's own C code, which has to ask for one (``__array__``).
"""

import math
import operator
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws import Family
from dpaudit.audit.replay.tape import Tape

__all__ = ["MOST_TERMS", "Tracked", "isinstance_tracked", "numeric"]

MOST_TERMS = 300_000  # of one value; beyond, it is looked at
_IN_PLACE = frozenset({"fill", "sort", "partition", "put", "itemset", "resize"})


class Tracked(NDArrayOperatorsMixin):
    """An array with noise.

    Parameters
    ----------
    tape : Tape
    mean : ndarray of float
        Of the shape that the array has.
    index, coef : ndarray, shape (size, m)
        The terms of each entry, in C order; an index of -1 is no term.
    bare : bool
        Whether nothing was added to the draws yet.
    """

    __array_priority__ = 1e6
    __slots__ = ("bare", "centre", "coef", "index", "tape")

    def __init__(
        self,
        tape: Tape,
        mean: Array,
        index: NDArray[np.intp],
        coef: Array,
        *,
        bare: bool = False,
    ) -> None:
        self.tape, self.centre, self.bare = tape, mean, bare
        self.index, self.coef = index, coef

    @classmethod
    def fresh(
        cls, tape: Tape, family: Family, values: Array, recipe: Any = None
    ) -> "Tracked":
        """Return new draws."""
        index = tape.draw(family, values, recipe).reshape(-1, 1)
        zero = np.zeros(values.shape)
        return cls(tape, zero, index, np.ones(index.shape), bare=True)

    @classmethod
    def plain(cls, tape: Tape, mean: Array) -> "Tracked":
        """Return numbers without noise, which noise may be written into."""
        none = np.empty((mean.size, 0))
        return cls(tape, mean, none.astype(np.intp), none, bare=True)

    # -- what an array has

    @property
    def __class__(self) -> type:
        # So that code that asks isinstance(x, np.ndarray), or float, goes on.
        return np.ndarray if self.centre.ndim else float

    @__class__.setter
    def __class__(self, kind: type) -> None:
        raise TypeError("the class of an array cannot be changed")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.centre.shape

    @property
    def ndim(self) -> int:
        return self.centre.ndim

    @property
    def size(self) -> int:
        return self.centre.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.centre.dtype

    @property
    def T(self) -> "Tracked":
        return self.moved(lambda places: places.T)

    @property
    def real(self) -> "Tracked":
        return self

    @property
    def noisy(self) -> bool:
        """Whether there is any noise in it."""
        return self.index.shape[1] > 0

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return len(self.centre)

    def __iter__(self) -> Any:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[place] for place in range(len(self)))

    # -- moving entries about

    def moved(self, move: Any) -> Any:
        """Return what becomes of it where entries are only moved: places -> places."""
        places = move(np.arange(self.size).reshape(self.shape))
        return self.taken(np.asarray(places))

    def taken(self, places: NDArray[np.intp]) -> "Tracked":
        """Return the entries at some places of the flat array."""
        flat = places.ravel()
        mean = self.centre.ravel()[flat].reshape(places.shape)
        return Tracked(
            self.tape, mean, self.index[flat], self.coef[flat], bare=self.bare
        )

    def __getitem__(self, key: Any) -> Any:
        key = _plain_key(key)
        if not self.noisy:
            return self.centre[key]
        return self.moved(lambda places: places[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        key = _plain_key(key)
        if isinstance_tracked(value):
            width = max(self.index.shape[1], value.index.shape[1])
            if not value.noisy or self.size * width > max(MOST_TERMS, self.size):
                value = value.looked_at("assigned")
        if not isinstance_tracked(value):
            value = _looked_at_within(value)
            self.centre[key] = value
            if self.noisy:
                places = np.arange(self.size).reshape(self.shape)[key]
                self.index[places] = -1
                self.coef[places] = 0.0
            return
        places = np.arange(self.size).reshape(self.shape)[key]
        spread = np.broadcast_to(
            np.arange(value.size).reshape(value.shape), places.shape
        )
        flat, source = np.ravel(places), spread.ravel()
        width = max(self.index.shape[1], value.index.shape[1])
        index, coef = _widened(self.index, self.coef, width)
        other_index, other_coef = _widened(value.index, value.coef, width)
        index[flat], coef[flat] = other_index[source], other_coef[source]
        self.centre[key] = value.centre
        self.index, self.coef = index, coef
        self.bare = self.bare and value.bare

    def reshape(self, *shape: Any, order: Any = "C", copy: Any = None) -> "Tracked":
        shape = shape[0] if len(shape) == 1 else shape
        return self.moved(lambda places: np.reshape(places, shape, order=order))

    def transpose(self, *axes: Any) -> "Tracked":
        return self.moved(lambda places: places.transpose(*axes))

    def copy(self, order: str = "C") -> "Tracked":
        return self.moved(lambda places: places)

    def __copy__(self) -> "Tracked":
        return self.copy()

    def __deepcopy__(self, memo: Any) -> "Tracked":
        return self.copy()

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        if np.dtype(dtype).kind == "f":  # over the real numbers that is nothing
            return self.copy()
        return self.looked_at("astype").astype(dtype, *args, **kwargs)

    def sum(
        self, axis: Any = None, dtype: Any = None, out: Any = None, **kw: Any
    ) -> Any:
        reduce: Any = np.add.reduce
        return reduce(self, axis=axis, dtype=dtype, out=out, **kw)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Return the arithmetic mean over axes."""
        total = self.sum(axis=axis, keepdims=keepdims)
        return total * (total.size / self.size)

    def dot(self, other: Any) -> Any:
        return np.dot(self, other)

    def argmax(self, axis: Any = None, out: Any = None) -> Any:
        return np.argmax(self, axis, out)

    def argmin(self, axis: Any = None, out: Any = None) -> Any:
        return np.argmin(self, axis, out)

    def settle(self) -> None:
        """Make draws that are known by now part of the ordinary numbers."""
        mean, index, coef, _ = self.tape.settled(
            self.centre.ravel(), self.index, self.coef
        )
        if index is not self.index:
            used = (index >= 0).any(axis=0)
            self.index, self.coef = index[:, used], coef[:, used]
            self.centre = mean.reshape(self.shape)
            self.bare = False

    # -- looking at the numbers

    def looked_at(self, how: str) -> Array:
        """Return the numbers as an ordinary array, with a note on the tape."""
        if self.noisy:
            flat = self.tape.observe(
                self.copy(),
                self.centre.ravel(),
                self.index,
                self.coef,
                self.shape,
                self.bare,
                how,
            )
            self.centre = flat.reshape(self.shape)
            self.index = np.empty((self.size, 0), dtype=np.intp)
            self.coef = np.empty((self.size, 0))
            self.bare = False
        return self.centre

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.looked_at("array")
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.looked_at(name), name)

    def __float__(self) -> float:
        return float(self.looked_at("float"))

    def __int__(self) -> int:
        return int(self.looked_at("int"))

    def __index__(self) -> int:
        return operator.index(self.looked_at("index")[()])

    def __complex__(self) -> complex:
        return complex(self.looked_at("complex"))

    def __bool__(self) -> bool:
        return bool(self.looked_at("bool"))

    def __round__(self, digits: int | None = None) -> Any:
        return round(float(self.looked_at("round")), digits)

    def __trunc__(self) -> int:
        return math.trunc(float(self.looked_at("trunc")))

    def __floor__(self) -> int:
        return math.floor(float(self.looked_at("floor")))

    def __ceil__(self) -> int:
        return math.ceil(float(self.looked_at("ceil")))

    def __format__(self, form: str) -> str:
        return format(self._native("format"), form)

    def __str__(self) -> str:
        return str(self._native("str"))

    def __repr__(self) -> str:
        return repr(self._native("repr"))

    def __contains__(self, item: Any) -> bool:
        return item in self.looked_at("in")

    def __reduce__(self) -> Any:
        return self._native("pickle").__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return np.asarray(self.looked_at("pickle")).__reduce_ex__(protocol)

    __hash__ = None  # type: ignore[assignment]

    def _native(self, how: str) -> Any:
        array = self.looked_at(how)
        return array if array.ndim else float(array)

    # -- arithmetic

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        from dpaudit.audit.replay.arithmetic import followed, sums

        out = kwargs.pop("out", None)
        result = NotImplemented
        if not any(isinstance_tracked(each) and each.noisy for each in inputs):
            pass
        elif method == "__call__" and not set(kwargs) - {"dtype", "casting", "subok"}:
            result = followed(ufunc, inputs)
        elif method == "reduce" and ufunc is np.add:
            result = sums(*inputs, **kwargs)
        if result is NotImplemented:
            ordinary = [_plain(each, ufunc.__name__) for each in inputs]
            kwargs = {k: _looked_at_within(v) for k, v in kwargs.items()}
            if out is not None and method != "at":
                kwargs["out"] = tuple(
                    each.looked_at("out") if isinstance_tracked(each) else each
                    for each in out
                )
            result = getattr(ufunc, method)(*ordinary, **kwargs)
            return result if out is None else (out[0] if len(out) == 1 else out)
        if out is None:
            return result
        (target,) = out
        if not isinstance_tracked(result):
            result = (
                Tracked.plain(target.tape, np.asarray(result))
                if isinstance_tracked(target)
                else result
            )
        if isinstance_tracked(target):
            whole = np.broadcast_to(
                np.arange(result.size).reshape(result.shape), target.shape
            )
            whole = result.taken(whole)
            target.centre[...] = whole.centre
            target.index, target.coef = whole.index, whole.coef
            target.bare = whole.bare
            return target
        np.copyto(target, _plain(result, ufunc.__name__), casting="same_kind")
        return target

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        from dpaudit.audit.replay.moves import call

        return call(func, args, kwargs, self.tape)


def isinstance_tracked(value: Any) -> bool:
    """Say whether a value is tracked: its class says otherwise."""
    return type(value) is Tracked


def numeric(value: Any) -> Array | None:
    """Return ordinary real numbers as floats, None for anything else."""
    if isinstance_tracked(value):
        return None
    try:
        array = np.asarray(value)
    except Exception:
        return None
    if array.dtype.kind not in "fiub":
        return None
    return array.astype(np.float64, copy=False)


def _widened(
    index: NDArray[np.intp], coef: Array, width: int
) -> tuple[NDArray[np.intp], Array]:
    """Return terms as copies, with room for so many an entry."""
    more = width - index.shape[1]
    return (
        np.pad(index, ((0, 0), (0, more)), constant_values=-1),
        np.pad(coef, ((0, 0), (0, more))),
    )


def _plain(value: Any, how: str) -> Any:
    return value.looked_at(how) if isinstance_tracked(value) else value


def _plain_key(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(_plain(part, "index") for part in key)
    return _plain(key, "index")


def _looked_at_within(value: Any) -> Any:
    """Return a value with all that is tracked in it looked at, in lists too."""
    if isinstance_tracked(value):
        return value.looked_at("value")
    if type(value) in (list, tuple):
        return type(value)(_looked_at_within(part) for part in value)
    if type(value) is dict:
        return {key: _looked_at_within(part) for key, part in value.items()}
    return value
