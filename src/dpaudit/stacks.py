"""Checks of stacks, which hold matrices in their last two axes.

As in `dpaudit.validation`, each returns its value in the canonical type, or raises
`~dpaudit.errors.InputError`.
"""

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.validation import check_real

__all__ = ["check_aligned", "check_basis", "check_symmetric"]

# How far an entry of V^T V may be from the identity's, and an entry of a matrix from
# its mirror image relative to the largest entry: far above what rounding leaves, far
# below what a wrong input shows.
ORTHONORMALITY_TOLERANCE = 1e-8
SYMMETRY_TOLERANCE = 1e-8


def check_basis(name: str, value: ArrayLike) -> Array:
    """Return `value` as a float64 stack of orthonormal bases, or raise.

    Parameters
    ----------
    name : str
        What to call the argument in the error.
    value : array_like, shape (..., d, k)
        1 <= k <= d; every entry of V^T V within 1e-8 of the identity's.

    Returns
    -------
    ndarray, shape (..., d, k)

    Raises
    ------
    InputError
        If the shape, the entries or the orthonormality is wrong.

    Examples
    --------
    >>> check_basis("start", [[2.0], [0.0]])
    Traceback (most recent call last):
    ...
    dpaudit.errors.InputError: start must have orthonormal columns, but V^T V differs
    from the identity by 3 (allowed: 1e-08)
    """
    v = _check_stack(name, value, "(..., d, k) with 1 <= k <= d")
    d, k = v.shape[-2:]
    if not 1 <= k <= d:
        raise InputError(
            f"{name} must have shape (..., d, k) with 1 <= k <= d, got shape {v.shape}"
        )
    defect = np.abs(np.swapaxes(v, -1, -2) @ v - np.eye(k)).max(initial=0.0)
    if not defect <= ORTHONORMALITY_TOLERANCE:
        raise InputError(
            f"{name} must have orthonormal columns, but V^T V differs from the "
            f"identity by {defect:.3g} (allowed: {ORTHONORMALITY_TOLERANCE:g})"
        )
    return v


def check_symmetric(name: str, value: ArrayLike) -> Array:
    """Return `value` as a float64 stack of symmetric matrices, or raise.

    Parameters
    ----------
    name : str
        What to call the argument in the error.
    value : array_like, shape (..., d, d)
        d >= 1; every entry within 1e-8 of its mirror image, relative to the largest
        entry of its matrix.

    Returns
    -------
    ndarray, shape (..., d, d)

    Raises
    ------
    InputError
        If the shape, the entries or the symmetry is wrong.

    Examples
    --------
    >>> check_symmetric("covariance", [[1.0, 2.0], [0.0, 1.0]])
    Traceback (most recent call last):
    ...
    dpaudit.errors.InputError: covariance must be symmetric, but an entry differs from
    its mirror image by 2 (allowed: 1e-08 of the largest)
    """
    a = _check_stack(name, value, "(..., d, d) with d >= 1")
    if a.shape[-1] != a.shape[-2] or a.shape[-1] < 1:
        raise InputError(
            f"{name} must have shape (..., d, d) with d >= 1, got shape {a.shape}"
        )
    # eigh reads one triangle only: without this check it would ignore the other.
    defect = np.abs(a - np.swapaxes(a, -1, -2)).max(axis=(-2, -1))
    allowed = SYMMETRY_TOLERANCE * np.abs(a).max(axis=(-2, -1))
    if np.any(defect > allowed):
        raise InputError(
            f"{name} must be symmetric, but an entry differs from its mirror image "
            f"by {np.max(defect):.3g} (allowed: {SYMMETRY_TOLERANCE:g} of the largest)"
        )
    return a


def check_aligned(name: str, array: Array, basis: Array) -> None:
    """Raise unless `array` and `basis` agree in d and broadcast in the leading axes.

    Parameters
    ----------
    name : str
        What to call `array` in the error; `basis` is called by its own name.
    array : ndarray, shape (..., d, m)
        A checked stack.
    basis : ndarray, shape (..., d, k)
        A checked stack.

    Raises
    ------
    InputError
        If they do not.

    Examples
    --------
    >>> import numpy as np
    >>> check_aligned("other", np.ones((7, 3, 2)), np.ones((3, 1)))
    """
    if array.shape[-2] != basis.shape[-2]:
        raise InputError(
            f"{name} must have as many rows as basis, "
            f"got shapes {array.shape} and {basis.shape}"
        )
    try:
        np.broadcast_shapes(array.shape[:-2], basis.shape[:-2])
    except ValueError:
        raise InputError(
            f"the leading axes of {name} and basis must broadcast, "
            f"got shapes {array.shape} and {basis.shape}"
        ) from None


def _check_stack(name: str, value: ArrayLike, form: str) -> Array:
    stack = check_real(name, value, f"a numeric array of shape {form}")
    if stack.ndim < 2:
        raise InputError(f"{name} must have shape {form}, got shape {stack.shape}")
    if not np.isfinite(stack).all():
        raise InputError(f"{name} must be finite, but it has a NaN or infinity")
    return stack
