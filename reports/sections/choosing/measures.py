"""How far the noise of a mechanism turns the components of a known second moment."""

from typing import Any

import numpy as np

from dpaudit.algorithms import entry
from dpaudit.arrays import Array
from dpaudit.neighbours import Relation
from dpaudit.reports.experiment import Cell, Record
from dpaudit.streams import stream
from dpaudit.subspace import largest_principal_angle_sine

__all__ = ["MECHANISMS", "held_out", "measured", "moment"]

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

_QUICK = {("k-norm-covariance", 0.0): 20, ("k-norm-covariance", 1.0): 10}
"""Up to which d a draw takes less than a fifth of a second, by mechanism and relation.

Beyond it they are left out of the grid, and so of what is recommended."""

_SHARE = 0.1  # k times the gap, of the mean squared length of a row
_BATCH_BYTES = 2**25


def moment(
    d: int, k: int, signal: float, epsilon: float, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return a second moment of rows of length 1, and its components.

    Its k largest eigenvalues are equal, and so are the others.

    Parameters
    ----------
    d, k : int
    signal : float
        n epsilon gap.
    epsilon : float
    rng : numpy.random.Generator
        Turns the axes.

    Returns
    -------
    moment : ndarray, shape (d, d)
    components : ndarray, shape (d, k)
    """
    gap = _SHARE / k
    n = signal / (epsilon * gap)
    spectrum = np.full(d, (1 - _SHARE) / d)
    spectrum[:k] += gap
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return n * (axes * spectrum) @ axes.T, axes[:, :k]


def measured(cell: Cell) -> list[Record]:
    """Measure one mechanism at one point of the grid.

    Returns
    -------
    list of dict
        One record: ``low``, ``median``, ``high`` of the sine of the largest angle. None
        where the mechanism takes no such point: one component alone, or a delta that
        it does not need.
    """
    point = {name: float(value) for name, value in cell.point.items()}
    error = _errors(cell.mechanism, point, cell.size, cell.rng())
    if error is None:
        return []
    low, middle, high = np.quantile(error, (0.1, 0.5, 0.9))
    return [{"low": _digits(low), "median": _digits(middle), "high": _digits(high)}]


def held_out(cell: Cell) -> list[Record]:
    """Measure one mechanism at a point between those of the grid.

    The point is that of the number ``setting``, the same for all mechanisms.

    Returns
    -------
    list of dict
        One record, or none: the coordinates, and ``median``.
    """
    point = _between(int(cell.point["setting"]), cell.options["grid"], cell.seed)
    error = _errors(cell.mechanism, point, cell.size, cell.rng(), spare=True)
    return [] if error is None else [{**point, "median": float(np.median(error))}]


def _between(setting: int, grid: dict[str, Any], seed: int) -> dict[str, float]:
    """Return a point of which every coordinate is drawn between the ends of an axis."""
    rng = stream(seed, setting)
    point = {
        name: float(np.exp(rng.uniform(*np.log([axis[0], axis[-1]]))))
        for name, axis in grid.items()
        if name not in ("replaced", "delta")
    }
    point["d"] = float(round(point["d"]))
    point["k"] = float(min(round(point["k"]), point["d"] - 1))
    positive = [each for each in grid["delta"] if each > 0]
    approximate = float(np.exp(rng.uniform(*np.log([positive[0], positive[-1]]))))
    delta = approximate if rng.random() < 0.5 else 0.0
    return {"replaced": float(rng.random() < 0.5), "delta": delta, **point}


def _errors(
    name: str,
    point: dict[str, float],
    size: int,
    rng: np.random.Generator,
    *,
    spare: bool = False,
) -> Array | None:
    """Return the errors of some releases, None where the mechanism takes no such point.

    Pure mechanisms take a delta only if it is to `spare`.
    """
    chosen, d, k = entry(name), int(point["d"]), int(point["k"])
    wanted = chosen.approximate == (point["delta"] > 0) or (
        spare and not chosen.approximate
    )
    alone = (name == "exponential-pca") != (k == 1) and name.startswith("exponential")
    slow = d > _QUICK.get((name, point["replaced"]), d)
    if k >= d or not wanted or alone or slow:
        return None
    relation = Relation.REPLACE_ONE if point["replaced"] else Relation.ADD_REMOVE
    options: dict[str, Any] = {"epsilon": point["epsilon"], "relation": relation}
    if chosen.approximate:
        options["delta"] = point["delta"]
    if chosen.has_components:
        options["n_components"] = k
    mechanism: Any = chosen.build(**options)
    matrix, components = moment(d, k, point["signal"], point["epsilon"], rng)
    errors = np.ones(size)
    at_once = max(_BATCH_BYTES // (8 * d * d), 1)
    for start in range(0, size, at_once):
        count = min(at_once, size - start)
        for place, release in enumerate(mechanism.draw_from(matrix, count, rng=rng)):
            found = mechanism.components(release, k)
            if np.isfinite(found).all():  # a release without components errs by 1
                error = largest_principal_angle_sine(found, components)
                errors[start + place] = error
    return errors


def _digits(value: float) -> float:
    return float(f"{value:.3g}")
