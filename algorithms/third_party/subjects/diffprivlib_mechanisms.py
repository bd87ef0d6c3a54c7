"""The classes of ``diffprivlib.mechanisms`` (0.6.6), each on one input.

A class is told a sensitivity and nothing of datasets, so the dataset here is its
input, one row, and any two inputs that lie no further apart are neighbours. ``Bingham``
is in the catalogue (`dpaudit.algorithms.third_party.diffprivlib`), and the perturbed
objective of ``Vector`` stands below ``LogisticRegression``.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from dpaudit.algorithms.third_party.subjects.shelf import Shelf
from dpaudit.claims import ApproxDP, Claim, PureDP

__all__ = ["SUBJECTS"]

_EPSILON, _DELTA = 1.0, 1e-2
_of = Shelf(__name__, "diffprivlib")

_E = {"epsilon": _EPSILON}
_S = _E | {"sensitivity": 1.0}
_N = _E | {"sensitivity": 1}
_APPROX = {"delta": _DELTA}
_BOUNDS = {"lower": 0.0, "upper": 2.0}
_INTEGERS = {"lower": 0, "upper": 2}
_REAL, _INTEGER = "scalar:0,1:rows=1", "codes:2:rows=1"


def _list(
    name: str,
    arguments: dict[str, Any],
    domain: str,
    read: Callable[[Any], Any],
    stated: str,
    claim: Claim | None = None,
) -> None:
    """List a class, made with these arguments, on inputs that are read off a row."""

    @_of(
        f"mechanisms.{name}",
        domain,
        stated=f"mechanisms/{stated}",
        claim=claim,
        relation="replace-one",
        sized=True,
    )
    def randomise(data: Any, rng: Any) -> Any:
        made = getattr(import_module("diffprivlib.mechanisms"), name)(**arguments)
        return made.randomise(read(data[0]))


def _utility(row: Any) -> list[float]:
    return [float(row), 0.5, 1 - float(row)]


def _chosen(name: str, stated: str) -> None:
    """List a choice among three candidates, whose utilities are the input."""

    @_of(
        f"mechanisms.{name}",
        _REAL,
        stated=f"mechanisms/{stated}",
        relation="replace-one",
        sized=True,
    )
    def choose(data: Any, rng: Any) -> Any:
        made = getattr(import_module("diffprivlib.mechanisms"), name)
        return made(**_S, utility=_utility(data[0])).randomise()


_list("Laplace", _S, _REAL, float, "laplace.py:29, epsilon and sensitivity")
_list("LaplaceTruncated", _S | _BOUNDS, _REAL, float, "laplace.py:152")
_list("LaplaceFolded", _S | _BOUNDS, _REAL, float, "laplace.py:221")
_list("LaplaceBoundedDomain", _S | _BOUNDS, _REAL, float, "laplace.py:282")
_list(
    "LaplaceBoundedNoise",
    _S | _APPROX,
    _REAL,
    float,
    "laplace.py:423",
    ApproxDP(_EPSILON, _DELTA),
)
_list("Geometric", _N, _INTEGER, int, "geometric.py:29")
_list("GeometricTruncated", _N | _INTEGERS, _INTEGER, int, "geometric.py:116")
_list("GeometricFolded", _N | _INTEGERS, _INTEGER, int, "geometric.py:175")
_list(
    "Gaussian",
    _S | _APPROX,
    _REAL,
    float,
    "gaussian.py:32",
    ApproxDP(_EPSILON, _DELTA),
)
_list(
    "GaussianAnalytic",
    _S | _APPROX,
    _REAL,
    float,
    "gaussian.py:120",
    ApproxDP(_EPSILON, _DELTA),
)
_list(
    "GaussianDiscrete",
    _N | _APPROX,
    _INTEGER,
    int,
    "gaussian.py:209",
    ApproxDP(_EPSILON, _DELTA),
)
_list("Staircase", _S, _REAL, float, "staircase.py:30")
_list("Snapping", _S | _BOUNDS, _REAL, float, "snapping.py:16")
_list(
    "Uniform",
    {"delta": 0.1, "sensitivity": 1.0},
    _REAL,
    float,
    "uniform.py:28, (0, delta)",
    ApproxDP(1e-9, 0.1),
)
_list(
    "Binary",
    _E | {"value0": "0", "value1": "1"},
    _INTEGER,
    lambda row: str(int(row)),
    "binary.py:28",
)
_list(
    "ExponentialHierarchical",
    _E | {"hierarchy": [["0", "1"], ["2", "3"]]},
    "codes:4:rows=1",
    lambda row: str(int(row)),
    "exponential.py:473",
    PureDP(_EPSILON),
)
_chosen("Exponential", "exponential.py:30")
_chosen("PermuteAndFlip", "exponential.py:193")

SUBJECTS = tuple(_of.subjects)
"""What is audited."""
