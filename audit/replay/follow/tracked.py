"""`Tracked`: numbers with noise, as an affine image of draws, in place of an array.

It stands for an array x + sum_j c_j z_j: its mean x is ordinary numbers, its terms name
draws of a `dpaudit.audit.replay.follow.tape.Tape`. What keeps that form is followed:
sums and differences, multiples by ordinary numbers, products with ordinary matrices,
sums over axes, and all that only moves entries (slices, transposes, triangles,
concatenations, assignments: `dpaudit.audit.replay.follow.functions`). All else looks at
the numbers: then the tape takes note, and they are ordinary numbers from then on. There
is no other way to the numbers than through the tape: a `Tracked` is no ndarray to
NumPy's own C code, which has to ask for one (``__array__``).

Of complex numbers x and c_j are complex, and the draws are real. What is linear over
the real numbers keeps the form: conjugates, parts, products with complex numbers and
matrices, Fourier transforms. Both parts are affine images of draws by themselves; of
Gaussian draws they are jointly Gaussian, however they hang together. All else, as sizes
and angles, looks at both parts as one noisy value.
"""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.draws import Terms
from dpaudit.audit.replay.follow.looked import Arithmetic, Composed, Looked
from dpaudit.audit.replay.follow.tape import Tape

__all__ = [
    "MOST_TERMS",
    "Entries",
    "Tracked",
    "has_noise",
    "is_complex",
    "isinstance_tracked",
    "looked_at_within",
    "moved_by",
    "numeric",
]

MOST_TERMS = 300_000  # of one value; beyond, it is looked at
_DEEPEST = 8  # of the lists in lists that numbers with noise are looked for in
_ZERO = bytes(8)
# Methods, and functions that do the same.
_MOVING = {
    **{name: name for name in ("ravel", "squeeze", "swapaxes", "repeat", "take")},
    **{name: name for name in ("diagonal", "trace", "round", "cumsum", "argmax")},
    **{"argmin": "argmin", "flatten": "ravel"},
}


class Tracked(Looked, Arithmetic):
    """An array with noise.

    Parameters
    ----------
    tape : Tape
    mean : ndarray of float
        Of the shape that the array has.
    terms : Terms
        Of each entry, in C order.
    bare : bool
        Whether nothing was added to the draws yet.
    """

    # The conversions to Python's numbers and texts are filled in by
    # `dpaudit.audit.replay.follow.functions`, which imports this.

    __array_priority__ = 1e6
    __pandas_priority__ = 1_000_000
    __slots__ = ()

    @classmethod
    def fresh(
        cls,
        tape: Tape,
        family: int,
        values: Array,
        recipe: Any = None,
        factor: float = 1.0,
    ) -> "Tracked":
        """Return new draws, so many times over."""
        terms = Terms(block=tape.draw(family, values, recipe), factor=factor)
        # One zero for all entries; who writes into it takes an array of its own.
        zero = np.ndarray(values.shape, buffer=_ZERO, strides=(0,) * values.ndim)
        return cls(tape, zero, terms, bare=True)

    @classmethod
    def plain(cls, tape: Tape, mean: Array) -> "Tracked":
        """Return numbers without noise, which noise may be written into."""
        return cls(tape, mean, Terms.none(mean.size), bare=True)

    @classmethod
    def joined(cls, tape: Tape, parts: "list[Tracked]") -> "Tracked":
        """Return the entries of some arrays as one flat array."""
        for part in parts:
            part.follow_whole()
        width = max(part.index.shape[1] for part in parts)
        mean = np.concatenate([part.centre.ravel() for part in parts])
        columns = zip(*[_widened(part, width) for part in parts], strict=True)
        terms = Terms(*[np.concatenate(column) for column in columns])
        return cls(tape, mean, terms, bare=all(part.bare for part in parts))

    # -- what an array has

    @property
    def __class__(self) -> type:
        # So that code that asks isinstance(x, np.ndarray), or float, goes on.
        return np.ndarray if self.ndim else complex if self.is_complex else float

    @__class__.setter
    def __class__(self, kind: type) -> None:
        raise TypeError("the class of an array cannot be changed")

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

    # -- moving entries about

    def moved(self, move: Any) -> Any:
        """Return what becomes of it where entries are only moved: places -> places."""
        if self.is_choice:
            self.looked_at("chosen")
        places = move(np.arange(self.size).reshape(self.shape))
        return self.taken(np.asarray(places))

    def taken(self, places: NDArray[np.intp]) -> "Tracked":
        """Return the entries at some places of the flat array."""
        self.follow_whole()
        flat = places.ravel()
        mean = self.centre.ravel()[flat].reshape(places.shape)
        terms = Terms(self.index[flat], self.coef[flat])
        return Tracked(self.tape, mean, terms, bare=self.bare)

    def spread(self, shape: tuple[int, ...]) -> "Tracked":
        """Return its entries as they are broadcast to a shape."""
        if self.shape == shape:
            return self
        return self.moved(lambda places: np.broadcast_to(places, shape))

    def __getitem__(self, key: Any) -> Any:
        key = looked_at_within(key, "index")
        if not self.noisy:
            return self.centre[key]
        return self.moved(lambda places: places[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        key = looked_at_within(key, "index")
        width = 0
        if isinstance_tracked(value):
            width = max(self.index.shape[1], value.index.shape[1])
            many = self.size * width > max(MOST_TERMS, self.size)
            undecided = value.is_choice or not value.noisy
            undecided |= value.is_complex and not self.is_complex
            if undecided or many or value.tape is not self.tape:
                value = value.looked_at("assigned")
        if not isinstance_tracked(value):
            self._own_centre()[key] = looked_at_within(value)
            if self.noisy:
                places = np.arange(self.size).reshape(self.shape)[key]
                index, coef = self.index.copy(), self.coef.copy()
                index[places], coef[places] = -1, 0.0
                self.terms = Terms(index, coef)
            self._write_back()
            return
        places = np.arange(self.size).reshape(self.shape)[key]
        self._own_centre()[key] = value.centre
        index, coef = _widened(self, width)
        coef = coef.astype(np.result_type(coef, value.coef))
        self.terms = Terms(index.copy(), coef)
        flat, other = places.ravel(), _widened(value.spread(places.shape), width)
        self.terms.index[flat], self.terms.coef[flat] = other[0], other[1]
        self.bare = self.bare and value.bare
        self._write_back()
        if self.tape.trail is not None:
            self.tape.trail.made(self)

    def become(self, other: "Tracked") -> "Tracked":
        """Take over the entries of an array of the same shape."""
        self._own_centre()[...] = other.centre
        self.terms, self.bare = other.terms, other.bare
        self._write_back()
        return self

    def _own_centre(self) -> Array:
        """Return the mean, to write into."""
        if not self.centre.flags.writeable:
            self.centre = self.centre.copy()
        return self.centre

    def reshape(self, *shape: Any, order: Any = "C", copy: Any = None) -> "Tracked":
        shape = shape[0] if len(shape) == 1 else shape
        return self.moved(lambda places: np.reshape(places, shape, order=order))

    def transpose(self, *axes: Any) -> "Tracked":
        return self.moved(lambda places: places.transpose(*axes))

    def copy(self, order: str = "C") -> "Tracked":
        self.follow_whole()
        return Tracked(self.tape, self.centre.copy(), self.terms, bare=self.bare)

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        kind = np.dtype(dtype).kind
        if kind == "c":
            return self * (1 + 0j)
        if kind == "f" and not self.is_complex:
            return self.copy().rounded(float(np.finfo(dtype).eps))
        if kind in "iu" and self.is_alone and self.on_lattice():
            return self.copy()  # over integers it is nothing
        if kind in "iu" and self.tape.mode.keeps and not self.is_complex:
            whole: Any = np.trunc(self)
            return whole if type(whole) is Tracked else whole.astype(dtype)
        return self.looked_at("astype").astype(dtype, *args, **kwargs)

    def view(self, *kinds: Any) -> Any:
        """Return the same numbers; pairs of them as complex ones."""
        if kinds and np.dtype(kinds[0]) == np.complex128:
            return self[..., ::2] + 1j * self[..., 1::2]
        return self.looked_at("view").view(*kinds)

    def sum(
        self, axis: Any = None, dtype: Any = None, out: Any = None, **kw: Any
    ) -> Any:
        reduce: Any = np.add.reduce
        return reduce(self, axis=axis, dtype=dtype, out=out, **kw)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Return the arithmetic mean over axes."""
        total = self.sum(axis=axis, keepdims=keepdims)
        return total * (total.size / self.size)

    def clip(self, low: Any = None, high: Any = None, out: Any = None) -> Any:
        return np.clip(self, low, high)

    def item(self, *place: Any) -> Any:
        """Return an entry as a number, which draws alone are not yet."""
        if place or self.size != 1:
            return self.looked_at("items").item(*place)
        single = self.reshape(())
        return single if self.is_alone else single.looked_at("item").item()

    def tolist(self) -> Any:
        """Return lists of numbers, which draws alone are not yet."""
        if not self.is_alone:
            return self.looked_at("tolist").tolist()
        return [part.tolist() for part in self] if self.ndim else self

    def searchsorted(self, *args: Any, **kwargs: Any) -> Any:
        return np.searchsorted(self, *args, **kwargs)

    # -- other ways to the numbers

    def __getattr__(self, name: str) -> Any:
        kind = np.ndarray if self.ndim else self.dtype.type
        if name.startswith("__"):
            raise AttributeError(name)
        if name in _MOVING and self.noisy:
            return partial(getattr(np, _MOVING[name]), self)
        if hasattr(kind, name):
            return getattr(self.looked_at(name)[()], name)
        for exact in () if self.ndim else (Fraction, Decimal):
            if hasattr(exact, name):
                return getattr(exact(float(self.looked_at(name))), name)
        raise AttributeError(name)


def isinstance_tracked(value: Any) -> bool:
    """Say whether a value is tracked: its class says otherwise."""
    return type(value) is Tracked


def numeric(value: Any, *, among: str = "fiub") -> Any:
    """Return ordinary real numbers as floats, None for anything else.

    With ``among="fiubc"`` complex ones, too.
    """
    if isinstance_tracked(value):
        known = not value.noisy and value.dtype.kind in among
        return value.centre if known else None
    if issubclass(type(value), Composed):
        return None
    if type(value) in (Fraction, Decimal):
        value = float(value)
    try:
        array = np.asarray(value)
    except Exception:
        return None
    if array.dtype.kind not in among:
        return None
    kind = np.complex128 if array.dtype.kind == "c" else np.float64
    return array.astype(kind, copy=False)


def is_complex(value: Any) -> bool:
    """Say whether a value is of complex numbers, with noise or without."""
    if type(value) in (list, tuple):
        return any(map(is_complex, value))
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return kind == "c" or isinstance(value, complex)


def _widened(value: Tracked, width: int) -> tuple[NDArray[np.intp], Array]:
    """Return the terms of an array, with room for so many to an entry."""
    index, coef = value.index, value.coef
    if width == index.shape[1]:
        return index, coef
    shape = value.size, width - index.shape[1]
    return (
        np.concatenate([index, np.full(shape, -1)], axis=1),
        np.concatenate([coef, np.zeros(shape)], axis=1),
    )


def looked_at_within(value: Any, how: str = "value") -> Any:
    """Return a value with all that is tracked in it looked at, in lists too."""
    if isinstance_tracked(value) or issubclass(type(value), Composed):
        return value.looked_at(how)
    if type(value) in (list, tuple):
        return type(value)(looked_at_within(part, how) for part in value)
    if type(value) is dict:
        return {key: looked_at_within(part, how) for key, part in value.items()}
    return value


def has_noise(value: Any, depth: int = 0) -> bool:
    """Say whether there are numbers with noise in a value, or in lists of them."""
    if isinstance_tracked(value) or issubclass(type(value), Composed):
        return bool(value.noisy)
    if type(value) in (list, tuple) and depth <= _DEEPEST:
        return any(has_noise(part, depth + 1) for part in value)
    return False


class Entries:
    """The entries of all arguments of a call, one after the other; the first is 0.

    A function that only moves entries moves their places in the same way. So it is
    called on the numbers of places, and the entries are put where their places went;
    place 0 holds a zero, for functions that fill up with zeros.
    """

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
            array = numeric(value, among="fiubc")
            if array is None:
                raise LookupError
            value = Tracked.plain(self._tape, array)
        if value.is_choice:
            value.looked_at("chosen")
        start = self._size
        self._size += value.size
        self._parts.append(value)
        return np.arange(start, self._size).reshape(value.shape)

    def gather(self, places: Any) -> Any:
        """Return entries in place of their places."""
        if isinstance(places, list | tuple):
            return type(places)(self.gather(part) for part in places)
        return Tracked.joined(self._tape, self._parts).taken(np.asarray(places))


def moved_by(move: Callable[..., Any], tape: Tape, values: list[Any]) -> Any:
    """Return what a function gives that only moves entries; places below 0 are none."""
    pool = Entries(tape)
    try:
        places = move(*map(pool.place, values))
    except LookupError:
        return NotImplemented
    several = places if type(places) is list else [places]
    if any((each < 0).any() for each in several):
        return NotImplemented
    return pool.gather(places)
