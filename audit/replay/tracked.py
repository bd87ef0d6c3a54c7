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

__all__ = ["Tracked", "numeric"]

_MOST_TERMS = 300_000  # of one value; beyond, it is looked at
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
            if not value.noisy or self.size * width > max(_MOST_TERMS, self.size):
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
        out = kwargs.pop("out", None)
        result = NotImplemented
        if not any(isinstance_tracked(each) and each.noisy for each in inputs):
            pass
        elif method == "__call__" and not set(kwargs) - {"dtype", "casting", "subok"}:
            result = _followed(ufunc, inputs)
        elif method == "reduce" and ufunc is np.add:
            result = _sum(*inputs, **kwargs)
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
        np.positive(_plain(result, ufunc.__name__), out=target, casting="same_kind")
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


def _followed(ufunc: Any, inputs: tuple[Any, ...]) -> Any:
    """Return the result of a function that keeps the form, else NotImplemented."""
    if len(inputs) == 1:
        (only,) = inputs
        if ufunc is np.negative:
            return _scaled(only, np.array(-1.0))
        return only.copy() if ufunc in (np.positive, np.conjugate) else NotImplemented
    if len(inputs) != 2:
        return NotImplemented
    left, right = inputs
    if ufunc is np.add or ufunc is np.subtract:
        return _added(left, right, 1.0 if ufunc is np.add else -1.0)
    if ufunc is np.multiply or ufunc is np.true_divide:
        if isinstance_tracked(left) and not (isinstance_tracked(right) and right.noisy):
            factor = numeric(_unwrapped(right))
            if factor is None:
                return NotImplemented
            with np.errstate(all="ignore"):
                inverse = ufunc is np.true_divide
                return _scaled(left, factor, divide=inverse)
        if isinstance_tracked(right) and ufunc is np.multiply:
            factor = numeric(_unwrapped(left))
            return NotImplemented if factor is None else _scaled(right, factor)
        return NotImplemented
    if ufunc is np.matmul:
        return matrix_product(left, right)
    if ufunc is np.copysign:
        return _with_random_sign(left, right)
    return NotImplemented


def _unwrapped(value: Any) -> Any:
    return value.centre if isinstance_tracked(value) and not value.noisy else value


def _scaled(value: Tracked, factor: Array, *, divide: bool = False) -> Any:
    if not value.noisy:
        return NotImplemented
    shape = np.broadcast_shapes(value.shape, factor.shape)
    wide = value if value.shape == shape else _spread(value, shape)
    with np.errstate(all="ignore"):
        mean = wide.centre / factor if divide else wide.centre * factor
        # A factor on every term: of the same sign and size as on the mean.
        flat = np.broadcast_to(factor, shape).reshape(-1, 1)
        coef = wide.coef / flat if divide else wide.coef * flat
    return Tracked(wide.tape, np.asarray(mean), wide.index, coef, bare=wide.bare)


def _spread(value: Tracked, shape: tuple[int, ...]) -> Tracked:
    places = np.arange(value.size).reshape(value.shape)
    return value.taken(np.broadcast_to(places, shape))


def _added(left: Any, right: Any, sign: float) -> Any:
    """Return left + sign * right."""
    parts: list[tuple[Any, float]] = [(left, 1.0), (right, sign)]
    for part, _ in parts:
        if isinstance_tracked(part) and part.noisy:
            part.settle()
    noisy = [p for p in parts if isinstance_tracked(p[0]) and p[0].noisy]
    if not noisy:
        return NotImplemented
    if len(noisy) == 1:
        ((value, own),) = noisy
        other, others = parts[1] if parts[0][0] is value else parts[0]
        addend = numeric(_unwrapped(other))
        if addend is None:
            return NotImplemented
        shape = np.broadcast_shapes(value.shape, addend.shape)
        if value.shape != shape and math.prod(shape) > _MOST_TERMS:
            return NotImplemented
        wide = value if value.shape == shape else _spread(value, shape)
        with np.errstate(all="ignore"):
            mean = np.asarray(own * wide.centre + others * addend)
        coef = wide.coef if own > 0 else -wide.coef
        joined = Tracked(wide.tape, mean, wide.index, coef)
        if wide.tape.eager and not (type(other) is int and other == 0):
            return joined.looked_at("sum")[()]
        return joined
    shape = np.broadcast_shapes(left.shape, right.shape)
    if left.tape is not right.tape:
        return NotImplemented
    wide = _spread(left, shape), _spread(right, shape)
    terms = wide[0].size * (wide[0].index.shape[1] + wide[1].index.shape[1])
    if terms > _MOST_TERMS:
        return NotImplemented
    with np.errstate(all="ignore"):
        mean = np.asarray(wide[0].centre + sign * wide[1].centre)
    index = np.concatenate([each.index for each in wide], axis=1)
    coef = np.concatenate([wide[0].coef, sign * wide[1].coef], axis=1)
    return Tracked(left.tape, mean, index, coef, bare=wide[0].bare and wide[1].bare)


def _sum(
    value: Tracked,
    axis: Any = 0,
    dtype: Any = None,
    keepdims: bool = False,
    **other: Any,
) -> Any:
    """Return sums over axes, as np.add.reduce does."""
    if other or (dtype is not None and np.dtype(dtype).kind != "f"):
        return NotImplemented
    axes = range(value.ndim) if axis is None else np.atleast_1d(axis).tolist()
    axes = sorted(each % value.ndim for each in axes) if value.ndim else []
    kept = [each for each in range(value.ndim) if each not in axes]
    count = math.prod(value.shape[each] for each in axes)
    mean = np.asarray(value.centre.sum(axis=tuple(axes)))
    if not count:
        return mean
    places = np.arange(value.size).reshape(value.shape)
    if value.size * value.index.shape[1] > _MOST_TERMS:
        return NotImplemented
    rows = places.transpose([*kept, *axes]).reshape(mean.size, count)
    index = value.index[rows].reshape(mean.size, -1)
    coef = value.coef[rows].reshape(mean.size, -1)
    if keepdims:
        mean = np.expand_dims(mean, tuple(axes))
    return Tracked(value.tape, mean, index, coef, bare=value.bare)


def matrix_product(left: Any, right: Any) -> Any:
    """Return the product of an ordinary matrix and one with noise, either way round."""
    if isinstance_tracked(left) and left.noisy:
        if isinstance_tracked(right) and right.noisy:
            return NotImplemented
        if left.ndim != 2 and not (left.ndim == 1):
            return NotImplemented
        other = numeric(_unwrapped(right))
        if other is None or other.ndim not in (1, 2):
            return NotImplemented
        product = matrix_product(other.T, left.T if left.ndim == 2 else left)
        return product if product is NotImplemented or product.ndim < 2 else product.T
    a = numeric(_unwrapped(left))
    if a is None or a.ndim not in (1, 2) or right.ndim not in (1, 2):
        return NotImplemented
    if a.shape[-1] != right.shape[0]:
        return NotImplemented
    rows = a.reshape(-1, a.shape[-1])
    columns = right if right.ndim == 2 else right.reshape(-1, 1)
    p, q = columns.shape
    m = columns.index.shape[1]
    if len(rows) * q * p * m > _MOST_TERMS:
        return NotImplemented
    mean = rows @ columns.centre
    index = columns.index.reshape(p, q, m).transpose(1, 0, 2).reshape(1, q, p * m)
    coef = columns.coef.reshape(p, q, m).transpose(1, 0, 2)[np.newaxis]
    coef = coef * rows[:, np.newaxis, :, np.newaxis]
    index = np.broadcast_to(index, (len(rows), q, p * m)).reshape(-1, p * m)
    shape = (*a.shape[:-1], *right.shape[1:])
    return Tracked(
        right.tape, mean.reshape(shape), index, coef.reshape(-1, p * m), bare=right.bare
    )


def _with_random_sign(size: Any, sign: Any) -> Any:
    """Return Laplace noise made of an exponential and the sign of a centred uniform."""
    if not (isinstance_tracked(size) and isinstance_tracked(sign)):
        return NotImplemented
    tape = size.tape
    pure = size.bare and size.index.shape[1] == 1 and size.shape == sign.shape
    # The uniform may have been shifted by one half: u - 1/2 has a fair sign.
    if not (pure and sign.index.shape[1] == 1 and sign.tape is tape):
        return NotImplemented
    draws, signs = size.index[:, 0], sign.index[:, 0]
    if not _are_fresh(tape, draws, Family.EXPONENTIAL, size.coef, size.centre, 0.0):
        return NotImplemented
    if not _are_fresh(tape, signs, Family.UNIFORM, sign.coef, sign.centre, -0.5):
        return NotImplemented

    ones, centre = np.ones(size.coef.shape), sign.centre.ravel()
    parts = (np.zeros(size.size), size.index, ones), (centre, sign.index, sign.coef)

    def signed(seed: int = 0) -> Array:  # of the draws as they are by then
        return np.copysign(tape.value(*parts[0]), tape.value(*parts[1]))

    made = Tracked.fresh(tape, Family.LAPLACE, signed(), signed)
    tape.use_up(np.concatenate([draws, signs]))
    return Tracked(tape, np.zeros(size.shape), made.index, np.abs(size.coef), bare=True)


def _are_fresh(
    tape: Tape,
    draws: NDArray[np.intp],
    family: Family,
    coef: Array,
    mean: Array,
    wanted: float,
) -> bool:
    """Say whether entries are draws of a family of their own, none used before."""
    return bool(
        (draws >= 0).all()
        and len(np.unique(draws)) == len(draws)
        and (tape.families[draws] == family).all()
        and tape.are_fresh(draws)
        and (mean == wanted).all()
        and ((coef == 1.0).all() if wanted else (coef > 0).all())
    )


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
