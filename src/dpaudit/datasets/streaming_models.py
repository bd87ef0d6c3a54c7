r"""The models of the streaming family, and the constants of their moments.

Source: Liu, Kong, Jain, Oh, *DP-PCA: statistically optimal and differentially private
PCA*, NeurIPS 2022: Assumption 1, Remark 3.4 (Gaussian rows), Example 4.1.

For A = x x^T, Sigma = E[A], with the first eigenvalues lambda_1 > lambda_2 of Sigma,

- kappa = lambda_1/(lambda_1 - lambda_2);
- V = ||E[(A - Sigma)^2]||/lambda_1^2 (Assumption A.3);
- gamma^2 = max ||H_u|| over unit u, H_u = Cov(A u)/lambda_1^2 (Assumption A.4).

The privacy term of DP-PCA is in proportion to gamma, that of Oja with clipped gradients
to gamma + 1: they part where gamma vanishes.

Gaussian rows N(0, Sigma). E[A^2] = 2 Sigma^2 + Sigma tr Sigma, hence E[(A - Sigma)^2] =
Sigma^2 + Sigma tr Sigma and V = 1 + tr Sigma/lambda_1; Cov(A u) = (u^T Sigma u) Sigma
+ Sigma u u^T Sigma, which is largest at u = v_1, hence gamma^2 = 2.

Example 4.1. x = s v + n with a random sign s and n ~ N(0, sigma^2 I), so Sigma = v v^T
+ sigma^2 I, and for unit u and z

    Var(z^T A u) = sigma^2 (a^2 + b^2 + 2 a b c) + sigma^4 (1 + c^2)

with a = z.v, b = u.v, c = z.u, which is largest at z = u = v: gamma^2 = (4 sigma^2 +
2 sigma^4)/(1 + sigma^2)^2. And E[(A - Sigma)^2] = (d + 2) sigma^2 v v^T + (sigma^2 +
(d + 1) sigma^4) I: V = ((d + 3) sigma^2 + (d + 1) sigma^4)/(1 + sigma^2)^2.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.datasets.dataset import Dataset
from dpaudit.errors import InputError
from dpaudit.stacks import check_basis
from dpaudit.validation import check_count, check_generator, check_nonnegative

__all__ = [
    "StreamConstants",
    "gaussian_constants",
    "signal_constants",
    "signal_in_noise",
]


@dataclass(frozen=True)
class StreamConstants:
    """What the rates of streaming PCA depend on.

    Parameters
    ----------
    first, second : float
        lambda_1 > lambda_2, the first eigenvalues of Sigma.
    variance : float
        V.
    gamma : float
        The root of gamma^2.
    """

    first: float
    second: float
    variance: float
    gamma: float

    @property
    def gap(self) -> float:
        """lambda_1 - lambda_2."""
        return self.first - self.second

    @property
    def kappa(self) -> float:
        """lambda_1/(lambda_1 - lambda_2)."""
        return self.first / self.gap


def gaussian_constants(eigenvalues: ArrayLike) -> StreamConstants:
    """Return the constants of rows N(0, Sigma).

    Parameters
    ----------
    eigenvalues : array_like, shape (d,)
        Of Sigma, in any order; the largest must stand alone.

    Examples
    --------
    >>> gaussian_constants([1.0, 4.0, 1.0]).variance
    2.5
    """
    values = np.sort(np.asarray(eigenvalues, dtype=np.float64))[::-1]
    if values.ndim != 1 or len(values) < 2 or not (values >= 0).all():
        raise InputError(
            f"eigenvalues must be two or more numbers >= 0, got {eigenvalues!r}"
        )
    first, second = float(values[0]), float(values[1])
    if not first > second:
        raise InputError(
            f"eigenvalues must have one that is largest, got {first!r} twice"
        )
    return StreamConstants(
        first, second, 1 + float(values.sum()) / first, float(np.sqrt(2))
    )


def signal_constants(noise: float, dimension: int) -> StreamConstants:
    """Return the constants of Example 4.1.

    Parameters
    ----------
    noise : float
        sigma >= 0.
    dimension : int
        d >= 2.

    Examples
    --------
    >>> round(signal_constants(0.1, 20).gamma, 3)
    0.199
    """
    square = check_nonnegative("noise", noise) ** 2
    d = check_count("dimension", dimension, minimum=2)
    scale = (1 + square) ** 2
    return StreamConstants(
        first=1 + square,
        second=square,
        variance=((d + 3) * square + (d + 1) * square**2) / scale,
        gamma=float(np.sqrt((4 * square + 2 * square**2) / scale)),
    )


def signal_in_noise(
    n_rows: int,
    dimension: int,
    *,
    noise: float,
    direction: ArrayLike | None = None,
    rng: np.random.Generator,
) -> Dataset:
    r"""Draw rows of Example 4.1: v or -v, as a coin says, plus N(0, noise^2 I).

    Parameters
    ----------
    n_rows : int
        n, the number of rows.
    dimension : int
        d, the length of a row.
    noise : float
        sigma >= 0, the standard deviation of every entry.
    direction : array_like, shape (d,), optional
        v, of length 1. Drawn from the uniform distribution if omitted.
    rng : numpy.random.Generator
        Advanced by the call.

    Returns
    -------
    Dataset
        Rows of unbounded length; `subspace` is v; `labels` is 1 where the sign is +.

    Raises
    ------
    InputError
        If an argument is out of range or the shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit.datasets.streaming_models import signal_in_noise
    >>> rng = np.random.default_rng(0)
    >>> data = signal_in_noise(4, 3, noise=0.0, direction=[0.0, 1.0, 0.0], rng=rng)
    >>> np.abs(data.rows).sum(axis=0)
    array([0., 4., 0.])
    """
    check_generator(rng)
    n = check_count("n_rows", n_rows)
    d = check_count("dimension", dimension)
    noise = check_nonnegative("noise", noise)
    vector = _direction(direction, d, rng)
    positive = rng.integers(2, size=n)
    rows = rng.standard_normal((n, d))
    rows *= noise
    rows += (2 * positive - 1)[:, np.newaxis] * vector
    return Dataset(
        "signal_in_noise",
        rows,
        source=f"drawn: Liu et al. 2022, Example 4.1, noise {noise}",
        labels=positive.astype(np.int64),
        subspace=vector[:, np.newaxis],
    )


def _direction(
    direction: ArrayLike | None, dimension: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    if direction is None:
        vector = rng.standard_normal(dimension)
        return np.asarray(vector / np.linalg.norm(vector))
    if np.shape(direction) != (dimension,):
        raise InputError(
            f"direction must have shape {(dimension,)}, got {np.shape(direction)}"
        )
    return check_basis("direction", np.reshape(direction, (dimension, 1)))[:, 0]
