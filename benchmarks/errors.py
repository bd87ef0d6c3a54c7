"""How far private components are from those of the data, for every mechanism of ours.

The figures of a theorem have sizes of their own (`benchmarks.scaling`); here all
mechanisms have the same rows, and what they have by default.
"""

from typing import Any

import numpy as np

from dpaudit.algorithms import CATALOGUE, build, entry
from dpaudit.arrays import Array
from dpaudit.mechanism import HasComponents
from dpaudit.subspace import largest_principal_angle_sine, top_components

ROWS = (1_000, 8_000)
SPREADS = np.sqrt([1.0, 0.15, 0.1, 0.05])
RELEASES = 9
FEWER = 3  # of online mechanisms, which release after every row
# Those of a declared length, which is 64 rows.
_SHORT = ("tree-aggregation-fresh-noise", "tree-aggregation-reused-noise")


def names() -> list[str]:
    """Return the mechanisms whose releases have principal components."""
    ours = (name for name, each in CATALOGUE.items() if each.extra is None)
    return [
        name
        for name in ours
        if name not in _SHORT and isinstance(build(name), HasComponents)
    ]


def some_rows(count: int) -> Array:
    """Return Gaussian rows of four columns, clipped to the unit ball."""
    rows = SPREADS * np.random.default_rng(0).normal(size=(count, len(SPREADS)))
    return np.asarray(
        rows / np.maximum(1.01 * np.linalg.norm(rows, axis=1), 1)[:, None]
    )


def error(name: str, count: int) -> float:
    """Return the median sine between a first component and that of the data.

    A release that says that there is none counts as orthogonal.
    """
    mechanism: Any = build(name)
    rows = some_rows(count)
    truth, errors = top_components(rows.T @ rows, 1), []
    for seed in range(FEWER if entry(name).family == "online" else RELEASES):
        release = mechanism.release(rows, rng=np.random.default_rng(seed))
        basis = mechanism.components(release, 1)
        basis = basis if basis.ndim == 2 else basis[-1]  # of a stream, the last
        found = np.isfinite(basis).all()
        errors.append(float(largest_principal_angle_sine(basis, truth)) if found else 1)
    return float(np.median(errors))


class ComponentError:
    """Errors of one component, and their exponents in the number of rows."""

    params = (names(),)
    param_names = ("mechanism",)
    version = "2"

    def setup_cache(self) -> dict[tuple[str, int], float]:
        """Measure all mechanisms, in a quarter of a minute."""
        return {(name, count): error(name, count) for name in names() for count in ROWS}

    setup_cache.timeout = 600  # type: ignore[attr-defined]

    def track_error(self, errors: dict[tuple[str, int], float], name: str) -> float:
        """Return the error of many rows."""
        return errors[name, ROWS[-1]]

    track_error.unit = "sine"  # type: ignore[attr-defined]

    def track_exponent(self, errors: dict[tuple[str, int], float], name: str) -> float:
        """Return the slope of log error over log n between the two numbers of rows."""
        few, many = (errors[name, count] for count in ROWS)
        return float(np.log(many / few) / np.log(ROWS[1] / ROWS[0]))

    track_exponent.unit = "exponent"  # type: ignore[attr-defined]
