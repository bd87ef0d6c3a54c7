"""Functions of complex numbers with noise, and Fourier transforms of real ones.

What works by entry or moves entries does with a real and an imaginary part what it does
with the whole. A transform is linear over the real numbers, and goes by its matrix.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import asarray, zeros  # the real ones, in an execution too

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.arithmetic import LINEAR, by_matrix
from dpaudit.audit.replay.follow.complex_numbers import (
    TrackedComplex,
    joined,
    split,
    tape_of,
)
from dpaudit.audit.replay.follow.tape import Tape
from dpaudit.audit.replay.follow.tracked import (
    has_noise,
    isinstance_tracked,
    looked_at_within,
)

__all__ = ["ScipyTransforms", "by_part", "is_complex", "transformed"]

_FOURIER = frozenset(
    f"{kind}{name}{axes}"
    for kind in ("", "i")
    for name in ("fft", "rfft", "hfft", "dct", "dst")
    for axes in ("", "2", "n")
)
_SHIFTS = (np.fft.fftshift, np.fft.ifftshift)
_BY_OTHERS = frozenset({"shape", "ndim", "size", "outer"})
_BY_PART = frozenset({np.sum, np.mean, np.cumsum, np.diff, np.trace, *_SHIFTS})


def is_complex(value: Any) -> bool:
    """Say whether a value is of complex numbers, with noise or without."""
    if isinstance(value, complex | np.complexfloating) or (
        type(value) is TrackedComplex
    ):
        return True
    if type(value) in (list, tuple):
        return any(map(is_complex, value))
    return type(value) is np.ndarray and value.dtype.kind == "c"


def _split_within(value: Any) -> tuple[Any, Any] | None:
    """Return lists of real and of imaginary parts, None where there are others."""
    if type(value) in (list, tuple):
        every = [_split_within(part) for part in value]
        known = [each for each in every if each is not None]
        if len(known) < len(every):
            return None
        return [each[0] for each in known], [each[1] for each in known]
    parts = split(value)
    if parts is None:
        return None
    zero = zeros(np.shape(value))
    return tuple(zero if part is None else part for part in parts)  # type: ignore[return-value]


def by_part(tape: Tape, value: Any, made_of: Callable[[Tape, Any], Any]) -> Any:
    """Return what is made of nested lists of numbers, by their parts."""
    parts = _split_within(value)
    if parts is None:
        return NotImplemented
    return joined(tape, *(made_of(tape, part) for part in parts))


def transformed(
    func: Any, args: Any, kwargs: Any, moving: dict[Any, tuple[int, ...]]
) -> Any:
    """Return what a function makes of complex numbers, or a transform of real ones.

    NotImplemented where neither is asked for. What is not followed is looked at.

    Parameters
    ----------
    func : callable
    args, kwargs : tuple, dict
    moving : dict
        The positions of arguments whose entries functions move.
    """
    name, several = getattr(func, "__name__", ""), is_complex(args)
    if not (several or name in _FOURIER or name == "imag") or name in _BY_OTHERS:
        return NotImplemented
    made, tape = NotImplemented, tape_of(args)
    if tape is not None and not ("out" in kwargs or has_noise(list(kwargs.values()))):
        made = _followed(tape, func, args, kwargs, moving.get(func))
    if made is NotImplemented and several:
        made = func(*looked_at_within(args, name), **looked_at_within(kwargs, name))
    return made


def _followed(
    tape: Tape, func: Any, args: Any, kwargs: Any, moved: tuple[int, ...] | None
) -> Any:
    name, value = func.__name__, args[0]
    noisy = [k for k, arg in enumerate(args) if has_noise(arg)]
    if name in ("iscomplexobj", "isrealobj"):
        return is_complex(value) == (name == "iscomplexobj")
    if name in ("real", "imag"):
        return getattr(value, name)
    if name in ("zeros_like", "ones_like") and not (kwargs or args[1:]):
        whole = np.full(value.shape, float(name == "ones_like"), dtype=np.complex128)
        return TrackedComplex.plain(tape, whole)
    if name == "dot" and 0 not in map(np.ndim, args[:2]):
        return np.matmul(*args, **kwargs)
    if moved is not None or func in _BY_PART:
        moved = (0,) if moved is None else moved
        parts = {k: _split_within(args[k]) for k in moved if k < len(args)}
        if None in parts.values() or not set(noisy) <= set(moved):
            return NotImplemented
        both = []
        for side in (0, 1):
            own = {k: part[side] for k, part in parts.items() if part is not None}
            mine = [own.get(k, arg) for k, arg in enumerate(args)]
            both.append(func(*mine, **kwargs))
        if isinstance_tracked(both[0]) or not isinstance(both[0], list | tuple):
            return joined(tape, *both)
        return [joined(tape, x, y) for x, y in zip(*both, strict=True)]
    places = LINEAR.get(func, (0,) if name in _FOURIER else ())
    if len(noisy) != 1 or noisy[0] not in places:
        return NotImplemented
    return _linear(tape, func, args, kwargs, noisy[0])


def _linear(tape: Tape, func: Any, args: Any, kwargs: Any, place: int) -> Any:
    """Return a map that is linear over the real numbers, by its matrix."""
    value = args[place]
    source: Any = value
    ways: list[complex] = [1.0]
    if type(value) is TrackedComplex:
        given = [k for k, part in enumerate(value.parts) if part is not None]
        ways = [(1.0, 1j)[k] for k in given]
        source = value.both() if len(given) == 2 else value.parts[given[0]]
    kinds: set[str] = set()

    def of_parts(one: Array) -> Array:
        several = one if len(ways) > 1 else one[np.newaxis]
        whole = sum(way * part for way, part in zip(ways, several, strict=True))
        out = asarray(func(*args[:place], whole, *args[place + 1 :], **kwargs))
        kinds.add(out.dtype.kind)
        if out.dtype.kind == "f":
            return out
        return np.stack([out.real, out.imag])

    made = by_matrix(of_parts, source)
    if made is NotImplemented or kinds == {"f"}:
        return made
    return TrackedComplex(tape, made[0], made[1], made.shape[1:], joint=made)


class ScipyTransforms:
    """What `scipy.fft` asks for its functions, of which those of noise are ours."""

    __ua_domain__ = "numpy.scipy.fft"

    @staticmethod
    def __ua_function__(method: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if not has_noise(list(args)):
            return NotImplemented
        made = transformed(method, args, kwargs, {})
        if made is not NotImplemented:
            return made
        return method(*looked_at_within(args, "array"), **kwargs)
