"""Complex numbers with noise: a real and an imaginary part, each followed by itself.

Sums and differences, products with ordinary complex numbers and matrices, conjugates,
what moves entries, and Fourier transforms are linear maps of the two parts over the
real numbers. So each part of what comes out is an affine image of draws again
(`dpaudit.audit.replay.follow.tracked`); of Gaussian draws both parts are jointly
Gaussian, however they hang together. All else, as sizes and angles, looks at both parts
as one noisy value.

A part that is None is 0 by what the number is (a real one, a multiple of the imaginary
unit), and not by its value.
"""

import math
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy import asarray, zeros  # the real ones, in an execution too
from numpy.typing import NDArray

from dpaudit.audit.replay.follow.looked import Arithmetic, Composed
from dpaudit.audit.replay.follow.tape import Tape
from dpaudit.audit.replay.follow.tracked import (
    Tracked,
    has_noise,
    isinstance_tracked,
    looked_at_within,
)

__all__ = ["TrackedComplex", "called", "joined", "split", "tape_of"]

_Part: TypeAlias = Any  # a `Tracked`, an ordinary array, or None

_METHODS = {
    **{name: name for name in ("ravel", "transpose", "squeeze", "swapaxes", "repeat")},
    **{"flatten": "ravel", "take": "take", "sum": "sum", "mean": "mean"},
}
_BILINEAR = (np.multiply, np.matmul)


class TrackedComplex(Composed, Arithmetic):
    """An array of complex numbers with noise.

    Parameters
    ----------
    tape : Tape
    real, imag : Tracked, ndarray or None
    shape : tuple of int
        To which both are broadcast.
    joint : Tracked, optional
        Both parts, one after the other, as they come from one linear map.
    """

    __array_priority__ = 2e6
    __slots__ = ("_imag", "_joint", "_real", "_whole", "shape", "tape")

    def __init__(
        self,
        tape: Tape,
        real: _Part,
        imag: _Part,
        shape: tuple[int, ...],
        joint: Tracked | None = None,
    ) -> None:
        self.tape, self.shape, self._joint = tape, shape, joint
        self._real, self._imag = _spread(real, shape), _spread(imag, shape)
        self._whole: NDArray[Any] | None = None

    @classmethod
    def plain(cls, tape: Tape, whole: NDArray[Any]) -> "TrackedComplex":
        """Return numbers without noise, which noise may be written into."""
        made = cls(tape, None, None, whole.shape)
        made._set(whole)
        return made

    def _set(self, whole: NDArray[Any]) -> None:
        self._whole, self._joint = whole, None
        self._real, self._imag = whole.real, whole.imag

    @property
    def __class__(self) -> type:
        return np.ndarray if self.shape else complex

    @__class__.setter
    def __class__(self, kind: type) -> None:
        raise TypeError("the class of an array cannot be changed")

    @property
    def parts(self) -> tuple[_Part, _Part]:
        return self._real, self._imag

    @property
    def noisy(self) -> bool:
        """Whether there is any noise in it."""
        return has_noise([self._real, self._imag])

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.complex128)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def T(self) -> Any:
        return np.transpose(self)

    @property
    def real(self) -> Any:
        self._hand_out()
        return self._real

    @real.setter
    def real(self, value: Any) -> None:
        self._write(..., value, self.imag)

    @property
    def imag(self) -> Any:
        self._hand_out()
        return self._imag

    @imag.setter
    def imag(self, value: Any) -> None:
        self._write(..., self.real, value)

    def _hand_out(self) -> None:
        """Have parts that others may write into."""
        self._joint = None
        if self._real is None or self._imag is None:
            self._real, self._imag = (
                zeros(self.shape) if part is None else part for part in self.parts
            )

    def both(self) -> Tracked:
        """Return both parts as one array of shape (2, ...)."""
        if self._joint is not None:
            return self._joint
        every = [_tracked(self.tape, part) for part in (self.real, self.imag)]
        return Tracked.joined(self.tape, every).reshape((2, *self.shape))

    def looked_at(self, how: str) -> NDArray[Any]:
        """Return the numbers as an ordinary array, as one noisy value."""
        if self._whole is None or self.noisy:
            both = self.both()
            seen = both.looked_at(how) if both.noisy else both.centre
            handed, whole = self.parts, zeros(self.shape, dtype=np.complex128)
            whole.real, whole.imag = seen[0], seen[1]
            self._set(whole)
            for part, own in zip(handed, (whole.real, whole.imag), strict=True):
                if isinstance_tracked(part):  # which others may write into
                    part._set(own)
        assert self._whole is not None
        return self._whole

    def __getitem__(self, key: Any) -> Any:
        key = looked_at_within(key, "index")
        return joined(self.tape, *(None if p is None else p[key] for p in self.parts))

    def __setitem__(self, key: Any, value: Any) -> None:
        key = looked_at_within(key, "index")
        parts = split(value) if has_noise(value) else None
        if parts is None and self._whole is not None:
            self._whole[key] = looked_at_within(value)
            return
        if parts is None:
            whole = asarray(looked_at_within(value), dtype=np.complex128)
            parts = whole.real, whole.imag
        self._write(key, *(0.0 if part is None else part for part in parts))

    def _write(self, key: Any, *values: Any) -> None:
        every = []
        for part, value in zip((self.real, self.imag), values, strict=True):
            own = part if isinstance_tracked(part) else part.copy()
            own = _tracked(self.tape, own)
            own[key] = value.copy() if isinstance_tracked(value) else value
            every.append(own)
        self._real, self._imag = every
        self._whole = self._joint = None

    def become(self, other: Any) -> "TrackedComplex":
        """Take over the numbers of another array."""
        self[...] = other
        return self

    def reshape(self, *shape: Any, order: Any = "C") -> Any:
        return np.reshape(self, shape[0] if len(shape) == 1 else shape, order=order)

    def copy(self, order: str = "C") -> Any:
        real, imag = map(_copied, self.parts)
        return joined(self.tape, real, imag, shape=self.shape)

    def conj(self) -> Any:
        return np.conjugate(self)

    conjugate = conj

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        if np.dtype(dtype).kind == "c":
            return self.copy()
        return self.looked_at("astype").astype(dtype, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(name)
        if name in _METHODS and self.noisy:
            return partial(getattr(np, _METHODS[name]), self)
        return getattr(self.looked_at(name), name)

    def __complex__(self) -> complex:
        return complex(self.looked_at("complex"))

    def __bool__(self) -> bool:
        return bool(self.looked_at("bool"))

    def __repr__(self) -> str:
        return repr(self.looked_at("repr"))


def _tracked(tape: Tape, part: Any) -> Tracked:
    if isinstance_tracked(part):
        made: Tracked = part
        return made
    return Tracked.plain(tape, asarray(part, dtype=np.float64))


def _spread(part: _Part, shape: tuple[int, ...]) -> _Part:
    if part is None or np.shape(part) == shape:
        return part
    if isinstance_tracked(part):
        return part.spread(shape)
    return np.broadcast_to(part, shape).copy()


def _copied(part: _Part) -> _Part:
    return None if part is None else part.copy()


def joined(
    tape: Tape, real: _Part, imag: _Part, shape: tuple[int, ...] | None = None
) -> Any:
    """Return a number by its parts: an ordinary one if neither is followed."""
    if shape is None:
        shape = np.broadcast_shapes(
            *(np.shape(part) for part in (real, imag) if part is not None)
        )
    if isinstance_tracked(real) or isinstance_tracked(imag):
        return TrackedComplex(tape, real, imag, shape)
    whole = zeros(shape, dtype=np.complex128)
    whole.real, whole.imag = (0.0 if part is None else part for part in (real, imag))
    return whole[()]


def split(value: Any, *, factor: bool = False) -> tuple[_Part, _Part] | None:
    """Return copies of the parts of a number, None if it is none.

    Of a factor that is one number, what is 0 is left out, as of the imaginary unit.
    """
    if type(value) is TrackedComplex:
        return _copied(value.parts[0]), _copied(value.parts[1])
    if isinstance_tracked(value):
        return value.copy(), None
    try:
        array = asarray(value)
    except Exception:
        return None
    if array.dtype.kind in "fiub":
        return array.astype(np.float64), None
    if array.dtype.kind != "c":
        return None
    parts: list[_Part] = [
        np.array(part, dtype=np.float64) for part in (array.real, array.imag)
    ]
    if factor and not array.ndim:
        parts = [part if part else None for part in parts]
    return parts[0], parts[1]


def called(ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
    """Return what a universal function makes of complex numbers with noise.

    NotImplemented where that is no complex number that is followed.
    """
    if kwargs and (method != "reduce" or ufunc is not np.add):
        return NotImplemented
    tape = tape_of(inputs)
    factors = ufunc not in (np.add, np.subtract)
    parts = [split(each, factor=factors) for each in inputs]
    if tape is None or any(each is None for each in parts):
        return NotImplemented
    pairs = [each for each in parts if each is not None]
    if method == "reduce" and ufunc is np.add:
        sums = (p if p is None else np.add.reduce(p, **kwargs) for p in pairs[0])
        return joined(tape, *sums)
    if method != "__call__":
        return NotImplemented
    if len(pairs) == 1 and ufunc in (np.negative, np.positive, np.conjugate):
        real, imag = pairs[0]
        if ufunc is np.negative:
            real = None if real is None else np.negative(real)
        if ufunc is not np.positive:
            imag = None if imag is None else np.negative(imag)
        return joined(tape, real, imag, shape=np.shape(inputs[0]))
    if ufunc in (np.add, np.subtract):
        shape = np.broadcast_shapes(*map(np.shape, inputs))
        both = [_plus(x, y, ufunc) for x, y in zip(*pairs, strict=True)]
        return joined(tape, both[0], both[1], shape=shape)
    if ufunc is np.true_divide and not has_noise(inputs[1]):
        with np.errstate(all="ignore"):
            ufunc, pairs[1] = (
                np.multiply,
                split(np.divide(1, inputs[1]), factor=True) or pairs[1],
            )
    if ufunc not in _BILINEAR or all(map(has_noise, inputs)):
        return NotImplemented
    return _product(tape, ufunc, pairs)


def _product(tape: Tape, times: Any, pairs: list[tuple[_Part, _Part]]) -> Any:
    (a, b), (c, d) = pairs
    for part in (a, b, c, d):
        numbers = part.centre if isinstance_tracked(part) else part
        if part is not None and not np.isfinite(numbers).all():
            return NotImplemented

    def of(x: _Part, y: _Part) -> _Part:
        return None if x is None or y is None else times(x, y)

    real = _plus(of(a, c), of(b, d), np.subtract)
    return joined(tape, real, _plus(of(a, d), of(b, c), np.add))


def _plus(one: _Part, two: _Part, ufunc: Any) -> _Part:
    if two is None:
        return one
    if one is None:
        return two if ufunc is np.add else np.negative(two)
    return ufunc(one, two)


def tape_of(values: Any) -> Tape | None:
    """Return the tape of the noise in some values, None if there are several."""
    found: dict[int, Tape] = {}
    for value in values:
        tape = None
        if type(value) in (list, tuple):
            tape = tape_of(value)
        elif isinstance_tracked(value) or type(value) is TrackedComplex:
            tape = value.tape
        if tape is not None:
            found[id(tape)] = tape
    return next(iter(found.values())) if len(found) == 1 else None
