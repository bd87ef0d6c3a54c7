"""Functions that are linear in an array with noise, by their matrices.

So are Fourier and cosine transforms, of real numbers and of complex ones.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import asarray  # the real ones, in an execution too

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.arithmetic import (
    matrix_product,
    no_kernel,
    over_reals,
)
from dpaudit.audit.replay.follow.draws import Terms
from dpaudit.audit.replay.follow.tracked import (
    MOST_TERMS,
    Tracked,
    has_noise,
    isinstance_tracked,
    looked_at_within,
)
from dpaudit.audit.replay.laws.coded import Family

__all__ = ["ScipyTransforms", "linear"]

# The positions of arguments that functions are linear in, the others being ordinary.
LINEAR: dict[Any, tuple[int, ...]] = {
    **dict.fromkeys((np.cumsum, np.diff, np.ediff1d, np.gradient, np.average), (0,)),
    **dict.fromkeys((np.trapezoid, np.pad, np.real, np.nan_to_num, np.nansum), (0,)),
    **dict.fromkeys((np.convolve, np.correlate, np.inner, np.vdot, np.kron), (0, 1)),
    **dict.fromkeys((np.tensordot, np.cross), (0, 1)),
    **{np.einsum: (1, 2, 3), np.interp: (2,), np.linalg.solve: (1,)},
}
# Transforms, by their names in NumPy and SciPy, are linear in the first.
_FOURIER = frozenset(
    f"{kind}{name}{axes}"
    for kind in ("", "i")
    for name in ("fft", "rfft", "hfft", "dct", "dst")
    for axes in ("", "2", "n")
)
_MOST_COLUMNS = 256  # numbers, of which a linear function is known by each
_CANCELS = 1e-13  # beside the parts of a coefficient: it is 0


def linear(func: Any, args: Any, kwargs: Any) -> Any:
    """Return what a function gives that is linear in the one argument with noise.

    It goes by its matrix. NotImplemented where there is none, or fewer numbers would
    have several draws that are not Gaussian: of their sums no law is known, and of the
    array it is.
    """
    noisy = [k for k, arg in enumerate(args) if isinstance_tracked(arg) and arg.noisy]
    others = [arg for k, arg in enumerate(args) if k not in noisy]
    places = LINEAR.get(func, (0,) if func.__name__ in _FOURIER else ())
    if len(noisy) != 1 or noisy[0] not in places or "out" in kwargs:
        return NotImplemented
    if has_noise(others) or has_noise(list(kwargs.values())):
        return NotImplemented
    (place,) = noisy

    def of_one(one: Array) -> Array:
        return asarray(func(*args[:place], one, *args[place + 1 :], **kwargs))

    made = _by_matrix(of_one, args[place])
    if made is NotImplemented and args[place].is_complex:
        # It may be linear over the real numbers alone, as what gives real ones.
        made = _by_matrix(
            lambda both: of_one(both[0] + 1j * both[1]), args[place].both()
        )
    return made


def _by_matrix(func: Callable[[Array], Array], value: Tracked) -> Any:
    """Return a linear function of an array with noise; otherwise as `linear`."""
    value.settle()
    if not (value.noisy and 0 < value.size <= _MOST_COLUMNS):
        return NotImplemented
    mean, none = func(value.centre.copy()), func(np.zeros_like(value.centre))
    if mean.dtype.kind not in "fc" or none.any():
        return NotImplemented
    if mean.size > MOST_TERMS // value.size:
        return NotImplemented
    units = np.eye(value.size).reshape(value.size, *value.shape)
    matrix = np.stack([np.ravel(func(one)) for one in units], axis=1)
    # What is linear in units alone (a largest number) is not so in any numbers.
    rng = np.random.default_rng(value.size)
    any_numbers = rng.standard_normal(value.shape)
    if value.is_complex:
        any_numbers = any_numbers + 1j * rng.standard_normal(value.shape)
    for one, given in ((value.centre, mean), (any_numbers, func(any_numbers.copy()))):
        size = np.abs(matrix) @ np.abs(one.ravel())
        off = np.abs(matrix @ one.ravel() - given.ravel())
        if not (off <= 1e-12 * (1e-300 + size)).all():
            return NotImplemented
    draws = value.index[value.index >= 0]  # which gives them numbers
    drawn = value.tape.draws.families[draws]
    single = ((matrix != 0).sum(axis=1) <= 1).all() and value.index.shape[1] == 1
    gaussian = (drawn == Family.GAUSSIAN).all()
    if not (single or gaussian or no_kernel(over_reals(matrix, value))):
        return NotImplemented
    value = value.reshape(-1)
    if value.index.shape[1] > 1:
        return _merged(matrix, value, mean)
    found = matrix_product(matrix, value)
    return found if found is NotImplemented else found.reshape(mean.shape)


def _merged(matrix: Array, value: Tracked, mean: Array) -> Any:
    """Return the product of a matrix and numbers of several draws each.

    What rounding leaves of draws that cancel is left out.
    """
    rows, places = np.nonzero(value.index >= 0)
    draws, columns = np.unique(value.index[rows, places], return_inverse=True)
    if mean.size * len(draws) > MOST_TERMS:
        return NotImplemented
    dense = np.zeros((value.size, len(draws)), dtype=value.coef.dtype)
    np.add.at(dense, (rows, columns), value.coef[rows, places])
    coef = matrix @ dense
    coef[np.abs(coef) <= _CANCELS * (np.abs(matrix) @ np.abs(dense))] = 0.0
    if not value.bare:
        size = np.abs(matrix) @ np.abs(value.centre)
        value.tape.draws.cancels(mean.ravel(), size)
    terms = Terms(np.where(coef != 0, draws, -1), coef)
    return Tracked(value.tape, mean, terms, bare=value.bare)


class ScipyTransforms:
    """What `scipy.fft` asks for its functions, of which those of noise are ours."""

    __ua_domain__ = "numpy.scipy.fft"

    @staticmethod
    def __ua_function__(method: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if not has_noise(list(args)):
            return NotImplemented
        made = linear(method, args, kwargs)
        if made is not NotImplemented:
            return made
        return method(*looked_at_within(args, "array"), **kwargs)
