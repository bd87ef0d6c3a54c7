r"""Measures of subspaces and of the variance that they capture.

A k-dimensional subspace of R^d, a point of the Grassmannian Gr(d, k), is given by an
orthonormal basis V of shape (d, k). Every function here depends on the span of V
alone, and takes stacks of bases of shape (..., d, k), whose leading (trial) axes
broadcast against each other as in `numpy.matmul`; what is no stack of such bases, or
does not fit, is refused with an `InputError`. Of stacks of shape (...) numbers have
that shape, and of none they are scalars.

The distances are functions of the principal angles
:math:`0 \le \theta_1 \le \ldots \le \theta_m \le \pi/2`, m the smaller of the two
dimensions, whose cosines are the singular values of :math:`V^T W`.

References
----------
Björck and Golub, *Numerical methods for computing angles between linear subspaces*,
Mathematics of Computation 27, 1973.
Knyazev and Argentati, *Principal angles between subspaces in an A-based scalar
product*, SIAM Journal on Scientific Computing 23, 2002.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.arrays import Array
from dpaudit.blocks import Rows
from dpaudit.errors import InputError
from dpaudit.gram import gram
from dpaudit.stacks import check_aligned, check_basis, check_symmetric
from dpaudit.validation import check_count, check_name

__all__ = [
    "captured_variance",
    "captured_variance_share",
    "largest_principal_angle_sine",
    "principal_angles",
    "projector_distance",
    "second_moment",
    "top_components",
]


def second_moment(data: Rows) -> Array:
    r"""Return the second-moment matrix :math:`X^T X = \sum_i x_i x_i^T`.

    Neither centred nor divided by n: a row of length at most 1 then changes the matrix
    by at most 1 in Frobenius norm, for every n.

    Parameters
    ----------
    data : array_like, shape (n, d)
        One row per person. Blocks of rows, files and all else that
        `dpaudit.gram.gram` takes will do; that also clips and centres in passing.

    Returns
    -------
    ndarray, shape (d, d)
        Symmetric and positive semi-definite; zero for n = 0.

    Raises
    ------
    InputError
        If `data` is not a finite matrix, or its squares overflow.

    Examples
    --------
    >>> from dpaudit.subspace import second_moment
    >>> second_moment([[1.0, 0.0], [1.0, 1.0]])
    array([[2., 1.],
           [1., 1.]])
    """
    return gram(data).moment


def top_components(matrix: ArrayLike, n_components: int) -> Array:
    """Return the eigenvectors of the largest eigenvalues, in descending order.

    Parameters
    ----------
    matrix : array_like, shape (..., d, d)
        Symmetric; need not be positive semi-definite (noisy covariances are not).
    n_components : int
        k, from 1 to d.

    Returns
    -------
    ndarray, shape (..., d, k)
        Orthonormal columns.

    Raises
    ------
    InputError
        If `matrix` is not finite, square and symmetric, or `n_components` is out of
        range.

    Notes
    -----
    The eigenvectors come from `numpy.linalg.eigh`; their signs are LAPACK's choice, and
    so is the basis inside the eigenspace of a repeated eigenvalue. If the k-th and the
    (k+1)-st eigenvalues are equal, the top-k subspace itself is not unique: the result
    is then one maximiser of the captured variance among many, the same for the same
    input and LAPACK. So compare spans, for example with `principal_angles`, and never
    entries.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit.subspace import top_components
    >>> np.abs(top_components(np.diag([1.0, 3.0, 2.0]), 2))
    array([[0., 0.],
           [1., 0.],
           [0., 1.]])
    """
    symmetric = check_symmetric("matrix", matrix)
    k = check_count("n_components", n_components, maximum=symmetric.shape[-1])
    # eigh sorts ascending.
    components: Array = np.linalg.eigh(symmetric).eigenvectors[..., : -k - 1 : -1]
    return components


def captured_variance(basis: ArrayLike, matrix: ArrayLike) -> Array:
    r"""Return :math:`\operatorname{tr}(V^T A V)`, the variance that a subspace keeps.

    Parameters
    ----------
    basis : array_like, shape (..., d, k)
        Orthonormal columns V.
    matrix : array_like, shape (..., d, d)
        Symmetric A, for example a `second_moment`; the result is in its unit.

    Returns
    -------
    ndarray, shape (...)

    Raises
    ------
    InputError
        If columns are not orthonormal, a matrix is not symmetric, entries are not
        finite, or shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit.subspace import captured_variance
    >>> float(captured_variance([[1.0], [0.0]], np.diag([3.0, 1.0])))
    3.0
    """
    v = check_basis("basis", basis)
    a = check_symmetric("matrix", matrix)
    check_aligned("matrix", a, v)
    captured: Array = np.sum(v * (a @ v), axis=(-2, -1))
    return captured


def captured_variance_share(basis: ArrayLike, matrix: ArrayLike) -> Array:
    """Return the captured variance as a share of the best that rank k can do.

    The optimum is the sum of the k largest eigenvalues (Ky Fan), so the share is at
    most 1, and at least 0 for a positive semi-definite matrix (both up to rounding).

    Parameters
    ----------
    basis, matrix
        As for `captured_variance`.

    Returns
    -------
    ndarray, shape (...)

    Raises
    ------
    InputError
        As for `captured_variance`, and if the optimum is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit.subspace import captured_variance_share
    >>> float(captured_variance_share([[0.0], [1.0]], np.diag([4.0, 1.0])))
    0.25
    """
    captured = captured_variance(basis, matrix)
    eigenvalues = np.linalg.eigvalsh(np.asarray(matrix, dtype=np.float64))
    k = np.shape(basis)[-1]
    optimum = np.sum(eigenvalues[..., -k:], axis=-1)
    if not np.all(optimum > 0):
        raise InputError(
            f"the {k} largest eigenvalues of matrix must have a sum > 0, "
            f"got {np.min(optimum)}"
        )
    share: Array = captured / optimum
    return share


def principal_angles(basis: ArrayLike, other: ArrayLike) -> Array:
    r"""Return the principal angles between two subspaces, in ascending order.

    Parameters
    ----------
    basis : array_like, shape (..., d, k)
        Orthonormal columns V.
    other : array_like, shape (..., d, l)
        Orthonormal columns W.

    Returns
    -------
    ndarray, shape (..., min(k, l))
        In radians, in [0, pi/2].

    Raises
    ------
    InputError
        If columns are not orthonormal, or shapes do not fit.

    Notes
    -----
    The arc cosine of a singular value of :math:`V^T W` loses half of the digits at
    small angles, the arc sine of one of :math:`(I - V V^T) W` at large ones (Björck
    and Golub; Knyazev and Argentati switch between the two at 45 degrees). Both kinds
    of singular values are accurate to a few rounding units, and an error of ds in the
    sine and dc in the cosine moves atan2(sine, cosine) by at most abs(ds) + abs(dc) to
    first order: no switch is needed, and every angle is accurate to rounding.

    Examples
    --------
    >>> from dpaudit.subspace import principal_angles
    >>> principal_angles([[1.0], [0.0]], [[1.0], [1e-12]])
    array([1.e-12])
    """
    v = check_basis("basis", basis)
    w = check_basis("other", other)
    check_aligned("other", w, v)
    # The residual of the smaller subspace has as many columns as there are angles.
    if v.shape[-1] < w.shape[-1]:
        v, w = w, v
    overlap = np.swapaxes(v, -1, -2) @ w
    cosines = np.linalg.svd(overlap, compute_uv=False)
    sines = np.linalg.svd(w - v @ overlap, compute_uv=False)
    # Singular values descend: cosines from the smallest angle, sines from the largest.
    angles: Array = np.arctan2(sines[..., ::-1], cosines)
    return angles


def largest_principal_angle_sine(basis: ArrayLike, other: ArrayLike) -> Array:
    """Return the sine of the largest of the `principal_angles`, in [0, 1], shape (...).

    For k = l it equals the spectral `projector_distance`; otherwise 0 says that one
    subspace contains the other.

    Examples
    --------
    >>> from dpaudit.subspace import largest_principal_angle_sine
    >>> float(largest_principal_angle_sine([[1.0], [0.0]], [[0.0], [1.0]]))
    1.0
    """
    sine: Array = np.sin(principal_angles(basis, other)[..., -1])
    return sine


def projector_distance(
    basis: ArrayLike,
    other: ArrayLike,
    *,
    norm: Literal["spectral", "frobenius"] = "spectral",
) -> Array:
    r"""Return :math:`\lVert V V^T - W W^T \rVert` without forming a d x d matrix.

    Parameters
    ----------
    basis, other
        As for `principal_angles`.
    norm : {"spectral", "frobenius"}
        The matrix norm: in [0, 1], or in [0, sqrt(k + l)]; the result has shape (...).

    Notes
    -----
    In the plane of the i-th pair of principal vectors the difference of the projectors
    has the eigenvalues :math:`\pm\sin\theta_i`; the other abs(k - l) directions of the
    larger subspace have eigenvalue 1 (or -1), and the rest vanishes.

    Examples
    --------
    >>> from dpaudit.subspace import projector_distance
    >>> v, w = [[1.0], [0.0]], [[0.8], [0.6]]
    >>> round(float(projector_distance(v, w)), 12)
    0.6
    >>> round(float(projector_distance(v, w, norm="frobenius")), 6)
    0.848528
    """
    check_name("norm", norm, ("spectral", "frobenius"))
    sines = np.sin(principal_angles(basis, other))
    surplus = abs(np.shape(basis)[-1] - np.shape(other)[-1])
    distance: Array
    if norm == "frobenius":
        distance = np.sqrt(surplus + 2 * np.sum(sines**2, axis=-1))
    else:
        distance = np.maximum(sines[..., -1], min(surplus, 1))
    return distance
