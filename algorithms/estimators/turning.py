"""How far the noise of a mechanism for private PCA turns the components, measured.

Mechanisms that read nothing but the second moment of the rows depend on the rows by
its eigenvalues and axes alone. So a second moment with given eigenvalues, in random
axes, is enough to measure what is to be expected of rows that nobody has looked at.
Rows are no longer than 1 here: for rows no longer than R, eigenvalues are in units of
R^2.

The error is the sine of the largest angle between the released components and those
without noise; a release without components errs by 1.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpaudit.algorithms.catalogue import entry
from dpaudit.algorithms.covariance.nuclear_law import BY_REJECTION
from dpaudit.algorithms.shared.bases import Rng
from dpaudit.arrays import Array
from dpaudit.neighbours import Relation
from dpaudit.streams import stream
from dpaudit.subspace import largest_principal_angle_sine

__all__ = [
    "MECHANISMS",
    "SEED",
    "digits",
    "errors",
    "even",
    "expected",
    "filled",
    "quantiles",
    "releases",
    "slow",
    "takes",
]

MECHANISMS = (
    "goe-gaussian",
    "analyze-gauss",
    "wishart-approximate",
    "private-subspace",
    "power-method",
    "k-norm-covariance",
    "symmetrised-wishart",
    "laplace-covariance",
    "power-method-laplace",
    "exponential-pca",
    "exponential-pca-deflation",
)
"""Those that read the second moment alone, are exact, and have a proven claim."""

SEED = 0
"""Of what `expected` draws."""

_WORK, _MOST, _LEAST = 5_000, 501, 11  # releases times columns; releases
_NO_DECOMPOSITION = ("power-method", "power-method-laplace", "exponential-pca")
_ENOUGH = 101  # releases of those, which cost little and scatter widely
_QUICK_REJECTION = 5  # columns: beyond them a release takes a hundredth of a second
_BATCH_BYTES = 2**25


def even(gap: float, *, d: int, k: int, n: float) -> Array:
    """Return eigenvalues of rows of length 1: k equal ones, and equal ones below.

    Of fewer rows than columns some eigenvalues are 0.

    Parameters
    ----------
    gap : float
        At most 1/k.
    d, k : int
    n : float
        Rows, more than k.
    """
    places = int(min(d, n))
    spectrum = np.zeros(d)
    spectrum[:places] = max(1 - k * gap, 0.0) / places
    spectrum[:k] += gap
    return spectrum


def filled(spectrum: Sequence[float], *, d: int, n: int, total: float = 1.0) -> Array:
    """Return all eigenvalues, given the largest ones.

    The others are equal, and as large as they can be: no larger than the last one
    given, and together no larger than what it leaves of the total.
    """
    places, given = min(d, n), len(spectrum)
    whole = np.zeros(d)
    if places > given:
        share = max(total - sum(spectrum), 0.0) / (places - given)
        whole[given:places] = min(spectrum[-1], share)
    whole[:given] = spectrum
    return whole


def moment(spectrum: Array, n: float, k: int, rng: Rng) -> tuple[Array, Array]:
    """Return the second moment of n rows in random axes, (d, d), and its components.

    The spectrum is that of the mean second moment, the largest first.
    """
    d = len(spectrum)
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return n * (axes * spectrum) @ axes.T, axes[:, :k]


def takes(name: str, *, k: int, delta: float) -> bool:
    """Say whether a mechanism releases k components at that delta.

    Pure mechanisms take any delta; some release one component alone, or several alone.
    """
    alone = (name == "exponential-pca") != (k == 1) and name.startswith("exponential")
    return not alone and (delta > 0 or not entry(name).approximate)


def errors(
    name: str,
    spectrum: Array,
    *,
    n: float,
    k: int,
    epsilon: float,
    delta: float,
    relation: Relation,
    size: int,
    rng: Rng,
) -> Array:
    """Return the errors of some releases, shape (size,).

    Parameters
    ----------
    name : str
        One of `MECHANISMS` that `takes` k and delta.
    spectrum, n, k, rng
        See `moment`.
    epsilon, delta : float
    relation : Relation
    size : int
    """
    chosen, d = entry(name), len(spectrum)
    options: dict[str, Any] = {"epsilon": epsilon, "relation": relation}
    if chosen.approximate:
        options["delta"] = delta
    if chosen.has_components:
        options["n_components"] = k
    mechanism: Any = chosen.build(**options)
    matrix, components = moment(spectrum, n, k, rng)
    found = np.ones(size)
    at_once = max(_BATCH_BYTES // (8 * d * d), 1)
    for start in range(0, size, at_once):
        count = min(at_once, size - start)
        for place, release in enumerate(mechanism.draw_from(matrix, count, rng=rng)):
            basis = mechanism.components(release, k)
            if np.isfinite(basis).all():
                error = largest_principal_angle_sine(basis, components)
                found[start + place] = error
    return found


def quantiles(found: Array) -> tuple[float, float, float]:
    """Return the 10 % quantile, the median and the 90 % quantile, to three digits."""
    low, middle, high = np.quantile(found, (0.1, 0.5, 0.9))
    return digits(low), digits(middle), digits(high)


def releases(name: str, d: int) -> int:
    """Return how many releases `expected` draws: the fewer, the more columns."""
    usual = min(max(_WORK // d, _LEAST), _MOST)
    if name == "k-norm-covariance" and d > _QUICK_REJECTION:
        return min(usual, _ENOUGH)
    return max(usual, _ENOUGH) if name in _NO_DECOMPOSITION else usual


def expected(
    name: str,
    spectrum: Array,
    *,
    n: float,
    k: int,
    epsilon: float,
    delta: float,
    relation: Relation,
) -> tuple[float, float, float] | None:
    """Return the `quantiles` of some errors, always the same ones.

    None if the mechanism does not take this, or if its draws are slow.
    """
    d = len(spectrum)
    if not takes(name, k=k, delta=delta) or slow(name, d):
        return None
    drawn = errors(
        name,
        spectrum,
        n=n,
        k=k,
        epsilon=epsilon,
        delta=delta,
        relation=relation,
        size=releases(name, d),
        rng=stream(SEED, MECHANISMS.index(name)),
    )
    return quantiles(drawn)


def slow(name: str, d: int) -> bool:
    """Say whether releases of a mechanism take seconds."""
    return name == "k-norm-covariance" and d > BY_REJECTION


def digits(value: float) -> float:
    """Return a number with the three digits that are shown."""
    return float(f"{value:.3g}")
