"""Algorithms of PyDP (python-dp 1.1.5), the wrapper of Google's C++ library.

The package says "in a differentially private manner" and names no relation. Rows are
people, each in the data once.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from dpaudit.algorithms.third_party.subjects.shelf import Shelf
from dpaudit.claims import ApproxDP

__all__ = ["SUBJECTS"]

_of = Shelf(__name__, "pydp", "python-dp")
_REAL = "scalar:0,1:rows=8"
_DELTA = 1e-2


def _bounded(name: str, line: int) -> None:
    """List a statistic of numbers in [0, 1]."""

    @_of(
        f"algorithms.laplacian.{name}",
        _REAL,
        stated=f"algorithms/laplacian/_bounded_algorithms.py:{line}",
    )
    def statistic(data: Any, rng: Any) -> Any:
        made = getattr(import_module("pydp.algorithms.laplacian"), name)
        algorithm = made(epsilon=1.0, lower_bound=0.0, upper_bound=1.0, dtype="float")
        return algorithm.quick_result(data.tolist())


_bounded("BoundedMean", 5)
_bounded("BoundedSum", 22)
_bounded("BoundedStandardDeviation", 33)
_bounded("BoundedVariance", 51)
_bounded("Max", 74)
_bounded("Min", 82)
_bounded("Median", 90)


@_of("algorithms.laplacian.Count", _REAL, stated="algorithms/laplacian/_count.py:10")
def count(data: Any, rng: Any) -> Any:
    """Count rows."""
    made = import_module("pydp.algorithms.laplacian").Count(epsilon=1.0, dtype="float")
    return made.quick_result(data.tolist())


@_of(
    "algorithms.laplacian.Percentile",
    _REAL,
    stated="algorithms/laplacian/_percentile.py",
)
def percentile(data: Any, rng: Any) -> Any:
    """Return the upper quartile."""
    made = import_module("pydp.algorithms.laplacian").Percentile(
        epsilon=1.0, percentile=0.75, lower_bound=0.0, upper_bound=1.0, dtype="float"
    )
    return made.quick_result(data.tolist())


@_of(
    "algorithms.numerical_mechanisms.LaplaceMechanism",
    "scalar:0,1:rows=1",
    relation="replace-one",
    sized=True,
    stated="by its sensitivity",
)
def laplace(data: Any, rng: Any) -> Any:
    """Add noise to one number."""
    made = import_module("pydp.algorithms.numerical_mechanisms")
    return made.LaplaceMechanism(1.0, 1.0).add_noise(float(data[0]))


@_of(
    "algorithms.numerical_mechanisms.GaussianMechanism",
    "scalar:0,1:rows=1",
    claim=ApproxDP(1.0, _DELTA),
    relation="replace-one",
    sized=True,
    stated="by its sensitivity",
)
def gaussian(data: Any, rng: Any) -> Any:
    """Add noise to one number."""
    made = import_module("pydp.algorithms.numerical_mechanisms")
    return made.GaussianMechanism(1.0, _DELTA, 1.0).add_noise(float(data[0]))


def _selection(strategy: str) -> Callable[..., Any]:
    @_of(
        f"algorithms.partition_selection.{strategy}",
        "scalar:0,1:rows=2",
        claim=ApproxDP(1.0, _DELTA),
        relation="add-remove",
        stated="algorithms/partition_selection.py:22, by its number of users",
    )
    def keep(data: Any, rng: Any) -> Any:
        made = import_module("pydp.algorithms.partition_selection")
        chosen = made.create_partition_strategy(strategy, 1.0, _DELTA, 1)
        return float(chosen.should_keep(len(data)))

    return keep


_selection("truncated_geometric")
_selection("laplace")
_selection("gaussian")

SUBJECTS = tuple(_of.subjects)
"""What is audited."""
