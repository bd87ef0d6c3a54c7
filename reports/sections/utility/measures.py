"""What privacy costs: captured variance, and time."""

import math
from dataclasses import dataclass
from functools import cache, partial
from timeit import timeit

import numpy as np
from numpy.typing import NDArray

from dpaudit.datasets import load, spiked_gaussian
from dpaudit.errors import UnsupportedError
from dpaudit.mechanism import HasBatchedDraw, HasComponents
from dpaudit.reports.experiment import Cell, Record, repeated
from dpaudit.reports.measures import BASELINE
from dpaudit.rows import clip_rows
from dpaudit.subspace import captured_variance_share, second_moment, top_components

FIRST_COMPONENT = "first-component-alone"
RANDOM_SUBSPACE = "random-subspace"

SYNTHETIC = "geometric-spectrum"
"""20,000 Gaussian rows in R^54, each eigenvalue 3/4 of the one before.

After the synthetic set of Imtiaz and Sarwate 2016, of whose covariance the paper says
that ten components capture 90 % of the variance or more: here they capture 94 %. The
mean of the squared lengths is 1/5 by construction, as it is where Gaussian rows of such
a spectrum are scaled to a largest length of about 1.
"""

_ROWS, _DIMENSION, _RATIO, _MEAN_SQUARE = 20_000, 54, 0.75, 0.2


@dataclass(frozen=True)
class MeasuredRows:
    """Rows, with what their components are measured by."""

    rows: NDArray[np.float64]
    moment: NDArray[np.float64]  # their second moment, not clipped
    source: str  # one line


@cache
def problem_named(name: str) -> MeasuredRows:
    """Return a dataset that needs no options, or `SYNTHETIC`."""
    if name == SYNTHETIC:
        return geometric_spectrum(_DIMENSION)
    data = load(name)
    return MeasuredRows(data.rows, second_moment(data.rows), data.source)


@cache
def geometric_spectrum(dimension: int) -> MeasuredRows:
    """Return `SYNTHETIC`, or the like of it in another dimension."""
    spikes = _RATIO ** np.arange(dimension)
    rows = spiked_gaussian(
        _ROWS,
        dimension,
        spikes=spikes * (_MEAN_SQUARE / spikes.sum()),
        noise=0.0,
        rng=np.random.default_rng(0),
    ).rows
    source = f"Gaussian rows, eigenvalues in the ratio {_RATIO:g}"
    return MeasuredRows(rows, second_moment(rows), source)


def captured_variance(cell: Cell) -> list[Record]:
    """Return the share of the best possible variance that each release captures.

    The components are those of releases on clipped rows; their variance is measured
    on the rows as they are, so that what clipping costs is included. A release that
    says that there are no components captures nothing.
    """
    return captured_by(cell, problem_named(cell.options["dataset"]))


def captured_by(cell: Cell, problem: MeasuredRows) -> list[Record]:
    """Return what `captured_variance` does, for rows that have no name."""
    mechanism = cell.build(row_norm=cell.options["row_norm"])
    if not (
        isinstance(mechanism, HasBatchedDraw) and isinstance(mechanism, HasComponents)
    ):
        raise UnsupportedError(f"{cell.mechanism} does not draw components in batches")
    releases = np.asarray(mechanism.draw(problem.rows, cell.size, rng=cell.rng()))
    components = mechanism.components(releases, cell.options["n_components"])
    some = np.isfinite(components).all(axis=(1, 2))
    shares = np.zeros(cell.size)
    shares[some] = captured_variance_share(components[some], problem.moment)
    return repeated(cell, captured_share=shares)


def reference_variance(cell: Cell) -> list[Record]:
    """Return what is captured without any privacy noise, by three yardsticks.

    ``BASELINE`` is PCA of the clipped rows, ``FIRST_COMPONENT`` its first component
    alone, ``RANDOM_SUBSPACE`` the expectation over uniformly random subspaces,
    k tr(A) / d, all as shares of the best that k components can do.
    """
    problem, k = problem_named(cell.options["dataset"]), cell.options["n_components"]
    optimum = np.linalg.eigvalsh(problem.moment)[-k:].sum()
    clipped = second_moment(clip_rows(problem.rows, cell.options["row_norm"]))
    match cell.mechanism:
        case "non-private-pca":
            basis = top_components(clipped, k)
            share = float(captured_variance_share(basis, problem.moment))
        case "first-component-alone":
            first = top_components(clipped, 1)[:, 0]
            share = float(first @ problem.moment @ first / optimum)
        case _:
            mean = np.trace(problem.moment) / len(problem.moment)
            share = float(k * mean / optimum)
    return [{"captured_share": share}]


def run_time(cell: Cell) -> list[Record]:
    """Time a fit (release and eigenvectors) and the drawing of many releases.

    Each fit is timed right beside a fit without privacy on the same rows: the ratio
    of the two is less at the mercy of the machine than either.
    """
    rows, k = problem_named(cell.options["dataset"]).rows, cell.options["n_components"]
    norm, batch = cell.options["row_norm"], cell.options["batch"]
    rng = cell.rng()

    def without_privacy() -> object:
        return top_components(second_moment(clip_rows(rows, norm)), k)

    mechanism = None if cell.mechanism == BASELINE else cell.build(row_norm=norm)

    def fit() -> object:
        if mechanism is None:
            return without_privacy()
        assert isinstance(mechanism, HasComponents)
        return mechanism.components(np.asarray(mechanism.release(rows, rng=rng)), k)

    # Twice unmeasured: caches, page faults and lazy imports are not what is compared.
    timed = [
        (timeit(without_privacy, number=1), timeit(fit, number=1))
        for _ in range(cell.size + 2)
    ]
    throughput = [math.nan] * cell.size
    if isinstance(mechanism, HasBatchedDraw):
        draw = partial(mechanism.draw, rows, batch, rng=rng)
        throughput = [batch / timeit(draw, number=1) for _ in range(cell.size)]
    baselines, seconds = np.array(timed[2:]).T
    return repeated(
        cell,
        fit_seconds=seconds,
        ratio=seconds / baselines,
        releases_per_second=throughput,
    )
