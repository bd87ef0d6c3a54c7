"""Mechanisms, statistics and models of diffprivlib (0.6.6).

A class of ``diffprivlib.mechanisms`` is told a sensitivity and nothing of datasets, so
the dataset here is its input, one row, and any two inputs that lie no further apart are
neighbours. ``Bingham`` is in the catalogue
(`dpaudit.algorithms.third_party.diffprivlib`), and the perturbed objective of
``Vector`` stands below ``LogisticRegression``.

The documentation of statistics and models names no neighbouring relation anywhere:
"with differential privacy" (the tools), "differential privacy is guaranteed with
respect to the training sample" (the models). Everything that the documentation asks to
be public is handed over: bounds, ranges, norms, and the classes where a class takes
them.
"""

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from dpaudit import ApproxDP, InputError
from dpaudit.algorithms.third_party.subjects.subject import Subjects

__all__ = ["SUBJECTS"]

_of = Subjects(__name__, "diffprivlib")
_EPSILON: dict[str, Any] = {"epsilon": 1.0}
_AT_ONE = _EPSILON | {"sensitivity": 1.0}
_AT_ONE_INTEGER = _EPSILON | {"sensitivity": 1}
_APPROX: dict[str, Any] = {"delta": 1e-2}
_BOUNDS: dict[str, Any] = {"lower": 0.0, "upper": 2.0}
_INTEGERS: dict[str, Any] = {"lower": 0, "upper": 2}
_ONE_REAL, _ONE_INTEGER = "scalar:0,1:rows=1", "codes:2:rows=1"
_INTEGER: dict[str, Any] = {"read": int, "domain": _ONE_INTEGER} | _AT_ONE_INTEGER


def _mechanism(
    name: str,
    stated: str,
    read: Callable[[Any], Any] = float,
    domain: str = _ONE_REAL,
    **arguments: Any,
) -> None:
    """List a class, made with these arguments, on inputs that are read off a row."""
    epsilon, delta = arguments.get("epsilon", 1e-9), arguments.get("delta")

    @_of(
        f"mechanisms.{name}",
        domain,
        stated=f"mechanisms/{stated}",
        claim=None if delta is None else ApproxDP(epsilon, delta),
        relation="replace-one",
    )
    def randomise(data: Any, rng: Any) -> Any:
        made = getattr(import_module("diffprivlib.mechanisms"), name)(**arguments)
        return made.randomise(read(data[0]))


def _chosen(name: str, stated: str) -> None:
    """List a choice among three candidates, whose utilities are the input."""

    @_of(
        f"mechanisms.{name}",
        _ONE_REAL,
        stated=f"mechanisms/{stated}",
        relation="replace-one",
    )
    def choose(data: Any, rng: Any) -> Any:
        made = getattr(import_module("diffprivlib.mechanisms"), name)
        row = float(data[0])
        return made(**_AT_ONE, utility=[row, 0.5, 1 - row]).randomise()


def _word(row: Any) -> str:
    return str(int(row))


_mechanism("Laplace", "laplace.py:29, epsilon and sensitivity", **_AT_ONE)
_mechanism("LaplaceTruncated", "laplace.py:152", **_AT_ONE, **_BOUNDS)
_mechanism("LaplaceFolded", "laplace.py:221", **_AT_ONE, **_BOUNDS)
_mechanism("LaplaceBoundedDomain", "laplace.py:282", **_AT_ONE, **_BOUNDS)
_mechanism("LaplaceBoundedNoise", "laplace.py:423", **_AT_ONE, **_APPROX)
_mechanism("Geometric", "geometric.py:29", **_INTEGER)
_mechanism("GeometricTruncated", "geometric.py:116", **_INTEGER, **_INTEGERS)
_mechanism("GeometricFolded", "geometric.py:175", **_INTEGER, **_INTEGERS)
_mechanism("Gaussian", "gaussian.py:32", **_AT_ONE, **_APPROX)
_mechanism("GaussianAnalytic", "gaussian.py:120", **_AT_ONE, **_APPROX)
_mechanism("GaussianDiscrete", "gaussian.py:209", **_INTEGER, **_APPROX)
_mechanism("Staircase", "staircase.py:30", **_AT_ONE)
_mechanism("Snapping", "snapping.py:16", **_AT_ONE, **_BOUNDS)
_mechanism("Uniform", "uniform.py:28, (0, delta)", delta=0.1, sensitivity=1.0)
_mechanism(
    "Binary", "binary.py:28", _word, _ONE_INTEGER, **_EPSILON, value0="0", value1="1"
)
_mechanism(
    "ExponentialHierarchical",
    "exponential.py:473",
    _word,
    "codes:4:rows=1",
    **_EPSILON,
    hierarchy=[["0", "1"], ["2", "3"]],
)
_chosen("Exponential", "exponential.py:30")
_chosen("PermuteAndFlip", "exponential.py:193")

_REAL = "scalar:0,1:rows=8"
_PAIRS = "box:0,1:2:rows=8"
_APART = "box:0.1,1:2:rows=8"  # of features that are all 0 no fit ends soon
_UNIT = (0.0, 1.0)


def _tools() -> Any:
    return import_module("diffprivlib.tools")


def _models() -> Any:
    return import_module("diffprivlib.models")


def _statistic(name: str, stated: str, *more: float) -> None:
    """List a statistic of numbers in [0, 1]."""

    @_of(f"tools.{name}", _REAL, stated=f"tools/{stated}")
    def statistic(data: Any, rng: Any) -> Any:
        return getattr(_tools(), name)(data, *more, epsilon=1.0, bounds=_UNIT)


_statistic("mean", "utils.py:151")
_statistic("nanmean", "utils.py:209")
_statistic("var", "utils.py:302")
_statistic("std", "utils.py:460")
_statistic("sum", "utils.py:597")
_statistic("nansum", "utils.py:655")


@_of("tools.count_nonzero", _REAL, stated="tools/utils.py:99")
def count_nonzero(data: Any, rng: Any) -> Any:
    """Count the numbers above one half."""
    return _tools().count_nonzero(data > 0.5, epsilon=1.0)


@_of("tools.histogram", _REAL, stated="tools/histograms.py:60")
def histogram(data: Any, rng: Any) -> Any:
    """Count in three bins of a public range."""
    return _tools().histogram(data, epsilon=1.0, range=_UNIT, bins=3)[0]


@_of("tools.histogram2d", _PAIRS, stated="tools/histograms.py:282")
def histogram2d(data: Any, rng: Any) -> Any:
    """Count in two by two bins of a public range."""
    counted = _tools().histogram2d
    return counted(data[:, 0], data[:, 1], epsilon=1.0, range=[_UNIT, _UNIT], bins=2)[0]


_statistic("quantile", "quantiles.py:35", 0.75)
_statistic("median", "quantiles.py:219")


def _labels(data: Any) -> Any:
    return (data[:, -1] > 0.5).astype(int)


def _both(data: Any) -> Any:
    """Return the labels of data that hold both classes; refuse others."""
    labels = _labels(data)
    if min(labels.sum(), len(labels) - labels.sum()) < 1:
        raise InputError("data must have rows of both classes")
    return labels


def _regression(shown: str, *, intercept: bool) -> None:
    """List a fit of a line, with an intercept or through the origin."""

    @_of(
        f"models.LinearRegression{shown}",
        _APART,
        stated="models/linear_regression.py:182",
    )
    def regression(data: Any, rng: Any) -> Any:
        made = _models().LinearRegression(
            epsilon=1.0, bounds_X=_UNIT, bounds_y=_UNIT, fit_intercept=intercept
        )
        made.fit(data[:, :1], data[:, 1])
        return np.append(made.coef_, made.intercept_) if intercept else made.coef_


_regression("", intercept=True)
_regression("(fit_intercept=False)", intercept=False)


def _naive_bayes(shown: str, fit: Callable[[Any, Any], Any], more: str = "") -> None:
    """List a fit of one feature and two classes."""

    @_of(f"models.GaussianNB{shown}", _PAIRS, stated=f"models/naive_bayes.py:43{more}")
    def naive_bayes(data: Any, rng: Any) -> Any:
        made = _models().GaussianNB(epsilon=1.0, bounds=_UNIT)
        fit(made, data)
        return {"theta": made.theta_, "var": made.var_}


_naive_bayes("", lambda made, data: made.fit(data[:, :1], _labels(data)))
_naive_bayes("(both classes)", lambda made, data: made.fit(data[:, :1], _both(data)))
_naive_bayes(
    ".partial_fit",
    lambda made, data: made.partial_fit(data[:, :1], _labels(data), classes=[0, 1]),
    ", classes are given",
)


@_of("models.LogisticRegression", _PAIRS, stated="models/logistic_regression.py:72")
def logistic(data: Any, rng: Any) -> Any:
    """Fit one feature and two classes, of which there is a row each."""
    made = _models().LogisticRegression(epsilon=1.0, data_norm=1.0)
    return made.fit(data[:, :1], _both(data)).coef_


@_of("models.KMeans", _PAIRS, stated="models/k_means.py:39")
def k_means(data: Any, rng: Any) -> Any:
    """Find two centres."""
    made = _models().KMeans(2, epsilon=1.0, bounds=_UNIT)
    return made.fit(data).cluster_centers_


@_of("models.StandardScaler", _PAIRS, stated="models/standard_scaler.py:103")
def scaler(data: Any, rng: Any) -> Any:
    """Learn means and variances."""
    made = _models().StandardScaler(epsilon=1.0, bounds=_UNIT).fit(data)
    return {"mean": made.mean_, "var": made.var_}


@_of("models.RandomForestClassifier", _PAIRS, stated="models/forest.py:47")
def forest(data: Any, rng: Any) -> Any:
    """Fit two shallow trees for public classes: what they predict on a grid."""
    made = _models().RandomForestClassifier(
        2, epsilon=1.0, bounds=_UNIT, classes=[0, 1], max_depth=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.fit(data[:, :1], _labels(data))
    return made.predict_proba(np.linspace(0, 1, 5)[:, np.newaxis])[:, 0]


SUBJECTS = tuple(_of.subjects)
"""What is audited."""
