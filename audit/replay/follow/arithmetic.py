"""Arithmetic that keeps noise a linear map of draws.

Each function returns a `Tracked` array, or NotImplemented where the result is none, or
would have more terms than are worth following: then the numbers are looked at.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, cast

import numpy as np
from numpy import asarray  # the real ones, in an execution too
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.draws import Image, Terms
from dpaudit.audit.replay.follow.tracked import (
    MOST_TERMS,
    Tracked,
    isinstance_tracked,
    numeric,
)
from dpaudit.audit.replay.laws.coded import Family, lattice_of

__all__ = ["arithmetic", "matrix_product", "no_kernel", "over_reals", "sums"]

_ENOUGH = 4  # rows that are tried first, in multiples of the columns
_SMALLEST = 1e-9  # relative eigenvalue of A^T A, of what counts as without a kernel
_SINGLE = (np.float32, np.float16)
_MOST_TRIED = 100  # dimensions in which it is tried whether a map has a kernel


_numbers = partial(numeric, among="fiubc")


def arithmetic(ufunc: Any, left: Any, right: Any = None, *more: Any) -> Any:
    """Return the result of a function that keeps the form, else NotImplemented.

    With numbers in single precision, a noisy number is one, too, as Python's are, and
    so are noisy arrays if some were made to be.
    """
    made = _made(ufunc, left, right)
    for value, other in ((left, right), (right, left)):
        if type(other) in _SINGLE or getattr(other, "dtype", None) in _SINGLE:
            if isinstance_tracked(made) and (not value.ndim or made.tape.draws.rough):
                made.rounded(float(np.finfo(other.dtype).eps), _numbers(other))
    return made


def _made(ufunc: Any, left: Any, right: Any) -> Any:
    if ufunc is np.negative:
        return _scaled(left, np.array(-1.0))
    if ufunc in (np.positive, np.conjugate):
        return left.copy() if ufunc is np.positive else left.conj()
    if ufunc is np.add or ufunc is np.subtract:
        return _added(left, right, 1.0 if ufunc is np.add else -1.0)
    if ufunc is np.multiply or ufunc is np.true_divide:
        divide, second = ufunc is np.true_divide, _noisy(right)
        value, factor = (right, _numbers(left)) if second else (left, _numbers(right))
        if factor is None or (second and divide):
            return NotImplemented
        return _seen(value, factor, _scaled(value, factor, divide=divide))
    if ufunc is np.matmul:
        value, factor = (left, right) if _noisy(left) else (right, left)
        return _seen(value, _numbers(factor), matrix_product(left, right))
    return NotImplemented


def _seen(value: Tracked, factor: Any, made: Any) -> Any:
    """Return a product, looked at in the eager mode where it adds noise to data.

    So does one of complex numbers that have noise in one part alone.
    """
    if made is NotImplemented or not (made.tape.mode.eager and value.is_complex):
        return made
    mixes = factor.dtype.kind == "c" and factor.real.any() and factor.imag.any()
    if not mixes or value.part(0).noisy == value.part(1).noisy:
        return made
    return _looked_at_by_part(made, 2)


def _looked_at_by_part(value: Tracked, parts: int) -> Any:
    """Look at the noise in the real part, or in both, of a sum."""
    for side in range(parts):
        if (part := value.part(side)).noisy:
            part.looked_at("sum")
    return value if value.noisy else value.centre[()]


def _noisy(value: Any) -> bool:
    return bool(isinstance_tracked(value) and value.noisy)


def _scaled(value: Tracked, factor: Array, *, divide: bool = False) -> Any:
    """Return a multiple, or with `divide` a fraction."""
    if not value.noisy:
        return NotImplemented
    with np.errstate(all="ignore"):
        mean = asarray(value.centre / factor if divide else value.centre * factor)
        shape = mean.shape
        block = value.terms.block
        real = factor.dtype.kind == "f"
        if shape == value.shape and block is not None and real and not factor.ndim:
            before, other = value.terms.factor, cast(np.float64, factor[()])
            times = float(before / other if divide else before * other)
            terms = Terms(block=block, factor=times)
            return Tracked(value.tape, mean, terms, bare=value.bare)
        if shape == value.shape and value.terms.image is None:
            flat = factor
            if factor.shape == shape:
                flat = factor.reshape(-1, 1)
            elif factor.ndim:
                flat = np.broadcast_to(factor, shape).reshape(-1, 1)
            # A factor on every term: of the same sign and size as on the mean.
            coef = value.coef / flat if divide else value.coef * flat
            terms = Terms(value.index, coef)
            return Tracked(value.tape, mean, terms, bare=value.bare)
    kept, by = value.copy(), factor.copy()

    def of_noise(noise: Array) -> Array:
        return asarray(noise / by if divide else noise * by)

    def make() -> tuple[NDArray[np.intp], Array]:
        wide = kept.spread(shape)
        flat = np.broadcast_to(by, shape).reshape(-1, 1)
        with np.errstate(all="ignore"):
            return wide.index, wide.coef / flat if divide else wide.coef * flat

    invertible = bool(mean.size and np.isfinite(factor).all() and factor.all())
    terms = _image(value, make, of_noise if invertible else None)
    return Tracked(value.tape, mean, terms, bare=value.bare)


def _image(
    value: Tracked,
    make: Callable[[], tuple[NDArray[np.intp], Array]],
    apply: Callable[[Array], Array] | None,
    injective: Callable[[], bool] = lambda: True,
) -> Terms:
    """Return terms that are an image of those of a value, if it may be one."""
    # Draws by themselves are no noisy value; in the eager mode no value waits.
    if apply is None or value.bare or value.tape.mode.eager:
        return Terms(*make())
    before = value.terms.image
    if before is None:
        image = Image(value, value.copy(), apply, injective)
        return Terms(make=make, image=image)

    def whole(noise: Array) -> Array:
        return apply(before.apply(noise))

    def both() -> bool:
        return before.injective() and injective()

    return Terms(make=make, image=replace(before, apply=whole, injective=both))


def _added(left: Any, right: Any, sign: float) -> Any:
    """Return left + sign * right."""
    for part in (left, right):
        if _noisy(part):
            part.settle()
    if _noisy(left) and _noisy(right):
        return _both_added(left, right, sign)
    if _noisy(left):
        return _number_added(left, 1.0, right, sign)
    return _number_added(right, sign, left, 1.0) if _noisy(right) else NotImplemented


def _number_added(value: Tracked, own: float, other: Any, others: float) -> Any:
    """Return own * value + others * other, of which the second has no noise."""
    addend = _numbers(other)
    if addend is None:
        return NotImplemented
    with np.errstate(all="ignore"):
        if others < 0:
            mean = asarray(value.centre - addend)
        else:
            mean = asarray((value.centre if own > 0 else -value.centre) + addend)
    shape = mean.shape
    if not value.bare:
        value.tape.draws.cancels(mean, value.centre, addend)
    # Spread over no numbers, as where a batch is empty, it is looked at as well.
    nowhere = not (mean.size or value.bare)
    if value.shape != shape and (mean.size > MOST_TERMS or nowhere):
        return NotImplemented
    terms = value.terms
    if value.shape == shape and terms.image is None:
        if own < 0 and terms.block is not None:
            terms = Terms(block=terms.block, factor=-terms.factor)
        elif own < 0:
            terms = Terms(terms.index, -terms.coef)
    else:
        kept = value.copy()

        def make() -> tuple[NDArray[np.intp], Array]:
            wide = kept.spread(shape)
            return wide.index, own * wide.coef

        def spread(noise: Array) -> Array:
            return own * noise

        terms = _image(value, make, spread if mean.size else None)
    joined = Tracked(value.tape, mean, terms)
    waits = _is_no_noise(value) or (type(other) is int and other == 0)
    if waits or not value.tape.mode.eager:
        return joined
    if joined.is_complex:
        return _looked_at_by_part(joined, 2 if addend.dtype.kind == "c" else 1)
    found = joined.looked_at("sum")[()]
    exact = type(other) in (Fraction, Decimal)
    return type(other)(float(found)) if exact else found


def _both_added(left: Tracked, right: Tracked, sign: float) -> Any:
    """Return left + sign * right, both of which have noise."""
    shape = np.broadcast_shapes(left.shape, right.shape)
    if left.tape is not right.tape:
        return NotImplemented
    wide = left.spread(shape), right.spread(shape)
    count = wide[0].size * (wide[0].index.shape[1] + wide[1].index.shape[1])
    if count > MOST_TERMS:
        return NotImplemented
    with np.errstate(all="ignore"):
        mean = asarray(wide[0].centre + sign * wide[1].centre)
    left.tape.draws.cancels(mean, wide[0].centre, wide[1].centre)
    index = np.concatenate([each.index for each in wide], axis=1)
    coef = np.concatenate([wide[0].coef, sign * wide[1].coef], axis=1)
    bare = wide[0].bare and wide[1].bare
    return Tracked(left.tape, mean, Terms(index, coef), bare=bare)


def _is_no_noise(value: Tracked) -> bool:
    """Say whether a draw is one that noise is made of: a uniform number, or a sign."""
    block = value.terms.block
    if block is None:
        return False
    lattice = lattice_of(block.family)
    if lattice is not None:
        return lattice.supremum(1.0) == math.inf
    return block.family in (Family.UNIFORM, Family.UNKNOWN)


def sums(
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
    mean = asarray(value.centre.sum(axis=tuple(axes)))
    if not count:
        return mean
    if not value.bare:
        value.tape.draws.cancels(mean, np.abs(value.centre).max(axis=tuple(axes)))
    places = np.arange(value.size).reshape(value.shape)
    if value.size * value.index.shape[1] > MOST_TERMS:
        return NotImplemented
    rows = places.transpose([*kept, *axes]).reshape(mean.size, count)
    index = value.index[rows].reshape(mean.size, -1)
    coef = value.coef[rows].reshape(mean.size, -1)
    if keepdims:
        mean = np.expand_dims(mean, tuple(axes))
    terms = Terms(index, coef, image=_summed(value, axes, mean.shape))
    return Tracked(value.tape, mean, terms, bare=value.bare)


def _summed(value: Tracked, axes: list[int], shape: tuple[int, ...]) -> Image | None:
    """Return what the sum of an image over axes is an image of.

    As a noisy vector that is taken off every row of a batch, and the rows added up.
    """
    before, whole = value.terms.image, value.shape
    if before is None:
        return None

    def apply(noise: Array) -> Array:
        wide = np.broadcast_to(before.apply(noise), whole)
        return asarray(wide.sum(axis=tuple(axes))).reshape(shape)

    def injective() -> bool:
        k = before.source.size
        if k > min(math.prod(shape), _MOST_TRIED):
            return False
        columns = [apply(one.reshape(before.source.shape)).ravel() for one in np.eye(k)]
        return no_kernel(np.stack(columns, axis=1))

    return replace(before, apply=apply, injective=injective)


def matrix_product(left: Any, right: Any) -> Any:
    """Return the product of an ordinary matrix and one with noise, either way round."""
    if _noisy(left):
        other = _numbers(right)
        if left.ndim not in (1, 2) or other is None or other.ndim not in (1, 2):
            return NotImplemented
        product = matrix_product(other.T, left.T if left.ndim == 2 else left)
        return product if product is NotImplemented or product.ndim < 2 else product.T
    a = _numbers(left)
    if a is None or a.ndim not in (1, 2) or right.ndim not in (1, 2):
        return NotImplemented
    if a.shape[-1] != right.shape[0]:
        return NotImplemented
    rows = a.reshape(-1, a.shape[-1])
    columns = right.centre.reshape(len(right), -1)
    p, q = columns.shape
    m = right.index.shape[1]
    if len(rows) * q * p * m > MOST_TERMS:
        return NotImplemented
    mean = rows @ columns
    if not right.bare:
        right.tape.draws.cancels(mean, np.abs(rows) @ np.abs(columns))
    shape = (*a.shape[:-1], *right.shape[1:])
    kept, rows = right.copy(), rows.copy()

    def make() -> tuple[NDArray[np.intp], Array]:
        index = kept.index.reshape(p, q, m).transpose(1, 0, 2).reshape(1, q, p * m)
        coef = kept.coef.reshape(p, q, m).transpose(1, 0, 2)[np.newaxis]
        coef = coef * rows[:, np.newaxis, :, np.newaxis]
        index = np.broadcast_to(index, (len(rows), q, p * m)).reshape(-1, p * m)
        return index, coef.reshape(-1, p * m)

    def of_noise(noise: Array) -> Array:
        return asarray(rows @ np.broadcast_to(noise, kept.shape)).reshape(shape)

    parts = over_reals(rows, right)
    tall = len(parts) >= p
    terms = _image(right, make, of_noise if tall else None, lambda: no_kernel(parts))
    return Tracked(right.tape, mean.reshape(shape), terms, bare=right.bare)


def over_reals(matrix: Array, value: Tracked) -> Array:
    """Return a matrix that maps real numbers to the parts of what it gives of them."""
    if matrix.dtype.kind != "c" or value.is_complex:
        return matrix
    return np.concatenate([matrix.real, matrix.imag])


def no_kernel(matrix: Array) -> bool:
    """Say whether a matrix maps no vector but 0 to 0, by a wide margin.

    Some rows are enough if the map to them alone has no kernel.
    """
    rows, columns = matrix.shape
    if rows < columns:
        return False
    step = max(1, rows // (_ENOUGH * columns))
    return _positive(matrix[::step]) or (step > 1 and _positive(matrix))


def _positive(matrix: Array) -> bool:
    with np.errstate(all="ignore"):
        gram = matrix.conj().T @ matrix
        shift = _SMALLEST * np.trace(gram).real
        gram.flat[:: len(gram) + 1] -= shift
        if not (np.isfinite(gram).all() and shift > 0):
            return False
    try:
        np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        return False
    return True
