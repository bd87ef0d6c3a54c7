r"""Errors of mechanisms for private PCA: how they are measured, and those on a grid.

Mechanisms that read nothing but the second moment of the rows depend on the rows by
its eigenvalues and axes alone. So a second moment with given eigenvalues, in random
axes, is enough to measure what is to be expected of rows that are not looked at.
Rows are no longer than 1 here: for rows no longer than R, eigenvalues are in units of
R^2.

The error is the sine of the largest angle between the released components and those
without noise; a release without components errs by 1.

**The grid** of settings is measured once, by ``dpaudit report run recommend-grid``. The
coordinates are d, k, the budget, the relation, and the signal n epsilon gap/R^2, as
docs/choosing.md has them; the k largest eigenvalues are equal, and so are those below a
gap of R^2/(10 k). Every mechanism that reads the second moment alone, and whose claim
is proven, is on the grid with the median of its error and the quantiles between which
four of five releases are. Between its points logarithms are interpolated.
"""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from dpaudit.algorithms.catalogue import entry
from dpaudit.algorithms.covariance.k_norm import BY_REJECTION
from dpaudit.algorithms.estimators.without_bound import (
    WITHOUT_BOUND,
    errors_without_bound,
)
from dpaudit.algorithms.shared.bases import Rng, slices
from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.rows import clip_rows
from dpaudit.streams import stream
from dpaudit.subspace import largest_principal_angle_sine, second_moment, top_components

__all__ = ["GRID", "MECHANISMS", "Grid", "shipped_grid"]

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
OF_ROWS = ("residual-step-pca", "residual-step-pca-pure")
"""Those that read rows; see `errors`."""
SEED = 0
"""Of what `expected` draws."""
_WORK, _MOST, _LEAST = 5_000, 501, 11  # releases times columns; releases
_FEW = 51  # releases of those that read rows
_NO_DECOMPOSITION = ("power-method", "power-method-laplace", "exponential-pca")
_ENOUGH = 101  # releases of those, which cost little and scatter widely
_QUICK_REJECTION = 5  # columns: beyond them a release takes a hundredth of a second
_BATCH_BYTES = 2**25
_NUMBERS = 400_000  # of the rows that are made up
_SETS = 5  # of those


def even(gap: float, *, d: int, k: int, n: float) -> Array:
    """Return eigenvalues of n rows of length 1: k equal ones, and equal ones below.

    Of fewer rows than columns some eigenvalues are 0. The gap is at most 1/k.
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
    return not alone and (delta > 0 or not entry(name.partition("@")[0]).approximate)


def errors(
    name: str,
    spectrum: Array,
    *,
    n: float,
    k: int,
    delta: float,
    size: int,
    rng: Rng,
    **options: Any,
) -> Array:
    """Return the errors of some releases of a mechanism, shape (size,).

    It `takes` k and delta. The data are those of `moment`; options are the epsilon, and
    the relation. For `OF_ROWS` they are normal rows, clipped to length 1 and so many
    more that their second moment has the trace that is asked for. (Where n is large,
    fewer are drawn, and each is there as often.) So they are for `WITHOUT_BOUND`,
    which take the unit of rows besides (`errors_without_bound`); some releases each are
    on rows of their own, as gaps of few rows differ.
    """
    if name in WITHOUT_BOUND:
        budget = {"k": k, "delta": delta, "rng": rng, **options}
        parts = [len(x) for x in np.array_split(np.arange(size), _SETS)]
        of_each = [
            errors_without_bound(name, *normal_rows(spectrum, n, rng), part, **budget)
            for part in parts
        ]
        return np.concatenate(of_each)
    chosen, d = entry(name), len(spectrum)
    if chosen.approximate:
        options["delta"] = delta
    if chosen.has_components:
        options["n_components"] = k
    mechanism: Any = chosen.build(**options)
    if name in OF_ROWS:
        rows, times = normal_rows(spectrum, n, rng)
        components = top_components(second_moment(rows), k)
        bases = mechanism.draw_repeated(rows, times, size, rng=rng)
        return largest_principal_angle_sine(bases, components)
    matrix, components = moment(spectrum, n, k, rng)
    found = np.ones(size)
    for some in slices(size, _BATCH_BYTES // (8 * d * d)):
        drawn = mechanism.draw_from(matrix, some.stop - some.start, rng=rng)
        for place, release in enumerate(drawn, start=some.start):
            basis = mechanism.components(release, k)
            if np.isfinite(basis).all():
                found[place] = largest_principal_angle_sine(basis, components)
    return found


def normal_rows(spectrum: Array, n: float, rng: Rng) -> tuple[Array, float]:
    """Return normal rows, clipped to length 1, and how many each of them stands for.

    All together have the trace of the spectrum, times n.
    """
    d = len(spectrum)
    count = int(max(min(n, _NUMBERS / d), 1))
    rows = clip_rows(rng.standard_normal((count, d)) * np.sqrt(spectrum), 1.0)
    return rows, float(n * spectrum.sum() / np.trace(second_moment(rows)))


def quantiles(found: Array) -> tuple[float, float, float]:
    """Return the 10 % quantile, the median and the 90 % quantile, to three digits."""
    low, middle, high = np.quantile(found, (0.1, 0.5, 0.9))
    return digits(low), digits(middle), digits(high)


def releases(name: str, d: int) -> int:
    """Return how many releases `expected` draws: the fewer, the more columns."""
    usual, name = min(max(_WORK // d, _LEAST), _MOST), name.partition("@")[0]
    if name in OF_ROWS:
        return min(usual, _FEW)
    if name == "k-norm-covariance" and d > _QUICK_REJECTION:
        return min(usual, _ENOUGH)
    return max(usual, _ENOUGH) if name in _NO_DECOMPOSITION else usual


def expected(
    name: str, spectrum: Array, *, n: float, k: int, delta: float, **options: Any
) -> tuple[float, float, float] | None:
    """Return the `quantiles` of some `errors`, always the same ones.

    None if the mechanism does not take this, or if its draws are slow.
    """
    d = len(spectrum)
    if not takes(name, k=k, delta=delta) or slow(name, d):
        return None
    # What is new comes last, so that the others keep their streams.
    known = (*MECHANISMS, *OF_ROWS[:1], *WITHOUT_BOUND, *OF_ROWS[1:])
    if name not in known:
        raise InputError(f"known are {', '.join(known)}")
    rng, size = stream(SEED, known.index(name)), releases(name, d)
    options |= {"n": n, "k": k, "delta": delta, "size": size, "rng": rng}
    return quantiles(errors(name, spectrum, **options))


def slow(name: str, d: int) -> bool:
    """Say whether releases of a mechanism take seconds."""
    return name.startswith("k-norm-covariance") and d > BY_REJECTION


def digits(value: float) -> float:
    """Return a number with the three digits that are shown."""
    return float(f"{value:.3g}")


GRID: Mapping[str, tuple[float, ...]] = {
    "replaced": (0.0, 1.0),
    "delta": (0.0, 1e-9, 1e-5),
    "epsilon": (0.1, 1.0, 10.0),
    "d": (2.0, 5.0, 10.0, 20.0, 50.0, 100.0),
    "k": (1.0, 3.0, 10.0),
    "signal": (10.0, 30.0, 100.0, 1000.0, 10_000.0),
}
"""Where mechanisms were measured; pure ones at delta = 0 alone, for any delta."""
_FILE = "recommendations.csv"


@dataclass(frozen=True)
class Grid:
    """Measured errors.

    Parameters
    ----------
    errors : mapping of str to ndarray
        By mechanism: low, median and high at every point of `GRID`, with the digits
        they are shown with, shape (2, 3, 3, 6, 3, 5, 3); NaN where it was not measured.
    origin : str
        The command that measured them, and the version of dpaudit.
    """

    errors: Mapping[str, Array]
    origin: str

    @classmethod
    def parse(cls, text: str) -> "Grid":
        """Read the table that ``dpaudit report run recommend-grid`` writes.

        Lines that begin with # say where it is from.
        """
        lines = text.splitlines()
        comments = [line[1:].strip() for line in lines if line.startswith("#")]
        shape = (*map(len, GRID.values()), 3)
        errors: dict[str, Array] = {}
        for row in csv.DictReader(line for line in lines if not line.startswith("#")):
            place = tuple(
                int(np.argmin(np.abs(np.array(points) - float(row[axis]))))
                for axis, points in GRID.items()
            )
            found = errors.setdefault(row["mechanism"], np.full(shape, np.nan))
            found[place] = [float(row[x]) for x in ("low", "median", "high")]
        return cls(errors, " ".join(comments))

    def at(
        self, *, replaced: bool, delta: float, d: float, k: float, **others: float
    ) -> dict[str, Array]:
        """Return low, median and high of every mechanism that was measured nearby.

        Others are epsilon and the signal. At a point of the grid these are the very
        numbers that are kept. What is off the grid is taken at its end.
        """
        # Of so few columns nothing was measured with more components.
        columns = min((each for each in GRID["d"] if each >= d), default=d)
        k = min(k, max(each for each in GRID["k"] if each < columns))
        point = {
            "epsilon": others["epsilon"],
            "d": d,
            "k": k,
            "signal": others["signal"],
        }
        found = {}
        for mechanism, errors in self.errors.items():
            here = errors[int(replaced)]
            if not (_measured(here, "d", d) and _measured(here, "k", k)):
                continue
            value = _interpolated(here[0], point)
            if delta > 0 and value is None:
                value = _interpolated(here[1:], {"delta": delta, **point})
            if value is not None:
                found[mechanism] = value
        return found


def _measured(errors: Array, axis: str, value: float) -> bool:
    """Say whether a value is between two of an axis that were measured, or one of them.

    Of the axes after the relation; what is off the grid is at its end.
    """
    place = tuple(GRID).index(axis) - 1
    others = tuple(i for i in range(errors.ndim) if i != place)
    there = np.array(GRID[axis])[(~np.isnan(errors)).any(axis=others)]
    clamped = min(max(value, GRID[axis][0]), GRID[axis][-1])
    return bool(len(there) and there[0] <= clamped <= there[-1])


@cache
def shipped_grid() -> Grid:
    """Return the grid that ships with dpaudit."""
    path = files("dpaudit.algorithms.estimators").joinpath(_FILE)
    return Grid.parse(path.read_text(encoding="utf-8"))


def _interpolated(values: Array, point: Mapping[str, float]) -> Array | None:
    """Return what is between the points of a grid, linear in logarithms.

    Corners that were not measured are left out; None if all of those near were not.
    """
    places, weights = [0], np.ones(1)
    flat = values.reshape(-1, values.shape[-1])
    for axis, wanted in point.items():
        points = [each for each in GRID[axis] if each > 0]
        value = min(max(wanted, points[0]), points[-1])
        low = (
            min(int(np.searchsorted(points, value, side="right")), len(points) - 1) - 1
        )
        share = math.log(value / points[low]) / math.log(points[low + 1] / points[low])
        places = [
            place * len(points) + index for place in places for index in (low, low + 1)
        ]
        weights = np.outer(weights, [1 - share, share]).ravel()
    corners = flat[places]
    weights = np.where(np.isnan(corners[:, 0]), 0.0, weights)
    used = weights > 0
    if not used.any():
        return None
    if used.sum() == 1:  # what was measured is not rounded once more
        return np.asarray(corners[used][0])
    return np.asarray(np.exp(weights[used] @ np.log(corners[used]) / weights.sum()))
