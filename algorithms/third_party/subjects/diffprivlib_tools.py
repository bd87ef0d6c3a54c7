"""Statistics and models of diffprivlib (0.6.6).

Their documentation names no neighbouring relation anywhere: "with differential privacy"
(the tools), "differential privacy is guaranteed with respect to the training sample"
(the models). Everything that the documentation asks to be public is handed over:
bounds, ranges, norms, and the classes where a class takes them.
"""

import warnings
from importlib import import_module
from typing import Any

import numpy as np

from dpaudit.algorithms.third_party.subjects.shelf import Shelf
from dpaudit.errors import InputError

__all__ = ["SUBJECTS"]

_of = Shelf(__name__, "diffprivlib")

_REAL = "scalar:0,1:rows=8"
_PAIRS = "box:0,1:2:rows=8"
_APART = "box:0.1,1:2:rows=8"  # of features that are all 0 no fit ends soon
_UNIT = (0.0, 1.0)


def _tools() -> Any:
    return import_module("diffprivlib.tools")


def _models() -> Any:
    return import_module("diffprivlib.models")


def _statistic(name: str, line: int, **arguments: Any) -> None:
    """List a statistic of numbers in [0, 1]."""

    @_of(f"tools.{name}", _REAL, stated=f"tools/utils.py:{line}")
    def statistic(data: Any, rng: Any) -> Any:
        made = getattr(_tools(), name)
        return made(data, epsilon=1.0, bounds=_UNIT, **arguments)


_statistic("mean", 151)
_statistic("nanmean", 209)
_statistic("var", 302)
_statistic("std", 460)
_statistic("sum", 597)
_statistic("nansum", 655)


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


@_of("tools.quantile", _REAL, stated="tools/quantiles.py:35")
def quantile(data: Any, rng: Any) -> Any:
    """Return the upper quartile."""
    return _tools().quantile(data, 0.75, epsilon=1.0, bounds=_UNIT)


@_of("tools.median", _REAL, stated="tools/quantiles.py:219")
def median(data: Any, rng: Any) -> Any:
    """Return the median."""
    return _tools().median(data, epsilon=1.0, bounds=_UNIT)


def _labels(data: Any) -> Any:
    return (data[:, -1] > 0.5).astype(int)


def _both(data: Any) -> Any:
    """Return the labels of data that hold both classes; refuse others."""
    labels = _labels(data)
    if min(labels.sum(), len(labels) - labels.sum()) < 1:
        raise InputError("data must have rows of both classes")
    return labels


@_of("models.LinearRegression", _APART, stated="models/linear_regression.py:182")
def regression(data: Any, rng: Any) -> Any:
    """Fit a line with an intercept."""
    made = _models().LinearRegression(epsilon=1.0, bounds_X=_UNIT, bounds_y=_UNIT)
    made.fit(data[:, :1], data[:, 1])
    return np.append(made.coef_, made.intercept_)


@_of(
    "models.LinearRegression(fit_intercept=False)",
    _APART,
    stated="models/linear_regression.py:182",
)
def regression_through_zero(data: Any, rng: Any) -> Any:
    """Fit a line through the origin."""
    made = _models().LinearRegression(
        epsilon=1.0, bounds_X=_UNIT, bounds_y=_UNIT, fit_intercept=False
    )
    return made.fit(data[:, :1], data[:, 1]).coef_


@_of("models.GaussianNB", _PAIRS, stated="models/naive_bayes.py:43")
def naive_bayes(data: Any, rng: Any) -> Any:
    """Fit one feature and two classes."""
    made = _models().GaussianNB(epsilon=1.0, bounds=_UNIT)
    made.fit(data[:, :1], _labels(data))
    return {"theta": made.theta_, "var": made.var_}


@_of(
    "models.GaussianNB(both classes)",
    _PAIRS,
    stated="models/naive_bayes.py:43",
)
def naive_bayes_of_both(data: Any, rng: Any) -> Any:
    """Fit one feature and two classes, of which there is a row each."""
    made = _models().GaussianNB(epsilon=1.0, bounds=_UNIT)
    made.fit(data[:, :1], _both(data))
    return {"theta": made.theta_, "var": made.var_}


@_of(
    "models.GaussianNB.partial_fit",
    _PAIRS,
    stated="models/naive_bayes.py:43, classes are given",
)
def naive_bayes_of_known_classes(data: Any, rng: Any) -> Any:
    """Fit one feature and two public classes."""
    made = _models().GaussianNB(epsilon=1.0, bounds=_UNIT)
    made.partial_fit(data[:, :1], _labels(data), classes=[0, 1])
    return {"theta": made.theta_, "var": made.var_}


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
