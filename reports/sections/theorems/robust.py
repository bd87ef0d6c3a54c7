"""Rows on descent on GLAD and on REAPER, and the grids that measure them.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022. What the theorems say, and what of it is provable, is in `robust_measures`.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from dpaudit.reports.sections.theorems.grids import grid_of
from dpaudit.reports.sections.theorems.robust_measures import (
    SGGD,
    constant_step_error,
    limit_error,
    pca_start_error,
    restart_error,
)
from dpaudit.reports.sections.theorems.rows import Row

_DELTA = 0.01
_HALVES = tuple(2.0**i for i in range(2, 8))


_grid = partial(grid_of, effort=2.0, n_components=2, inlier_share=0.5, epsilon=0.8)
_descent = partial(_grid, share=0.25, n=1000, d=10, delta=_DELTA)
_start = partial(_grid, measure=pca_start_error, share=0.125)
GRIDS = (
    _start("pca-n", "n", tuple(4000.0 * 2**i for i in range(6)), d=20),
    _start("pca-d", "d", (5.0, 10.0, 20.0, 40.0, 80.0), n=20_000),
    _start("pca-epsilon", "epsilon", (1.6, 0.8, 0.4, 0.2), n=16_000, d=20),
    _descent(
        *("glad-steps", "shortness", tuple(2.5 * 2.0**i for i in range(6))),
        measure=constant_step_error,
        iterations=400,
    ),
    _descent(
        *("glad-restarts", "shrunk", _HALVES, restart_error), iterations=350, steps=50
    ),
    _grid(
        *("glad-limit", "shrunk", tuple(2 * x for x in _HALVES), limit_error),
        share=0.25,
        d=10,
        delta=_DELTA,
        rows_each=100,
        steps_each=10,
    ),
    _grid(
        *("reaper-limit", "n", tuple(50.0 * 2**i for i in range(5)), limit_error),
        share=1 / 12,
        n_components=1,
        inlier_share=0.8,
        d=5,
        delta=_DELTA,
        pace=0.02,
    ),
)
_SOURCE = "Maunu, Yu, Lerman, MSML 2022"
_HALF = "half of the rows outliers"
_DISTANCE = "1 − cos of angle"
_START: dict[str, Any] = {
    "mechanism": "dp-ggd-published",
    "error": "distance of projectors",
    "column": "start_error",
    "bound": "start_error_bound",
    "sure": True,
}


def _row(
    number: int, name: str, variable: str, against: str, predicted: float, **more: Any
) -> Row:
    return Row(
        **{
            "name": f"rp-{number}-{name}",
            "theorem": f"Robust PCA, Theorem {number}",
            "source": _SOURCE,
            "variable": variable,
            "against": against,
            "predicted": predicted,
            "printed": predicted,
            "error": _DISTANCE,
            "column": "error",
            **more,
        }
    )


def _of_start(variable: str, against: str, predicted: float, **more: Any) -> Row:
    return _row(
        7,
        against,
        variable,
        against,
        predicted,
        regime=f"{_HALF}, r = 2; the start of the paper, Wishart noise, beside PCA",
        experiment=f"theorems-pca-{against}",
        **{**_START, **more},
    )


def _of_each(
    variable: str,
    against: str,
    experiment: str,
    rows: Iterable[tuple[int, str, str]],
    error: str = _DISTANCE,
    **more: Any,
) -> Iterator[Row]:
    """Yield rows that read one experiment: numbers, names and mechanisms."""
    more = {"predicted": -1.0, "experiment": f"theorems-{experiment}", **more}
    for number, name, mechanism in rows:
        more |= {"mechanism": mechanism, "error": error.format(mechanism)}
        yield _row(number, name, variable, against, **more)


_ON_GLAD = (("dp-ggd", 2), (SGGD, 3), ("dp-sggd", 4))
_FULL, _BATCHES = ("dp-gd-reap", "dp-md-reap"), ("dp-sgd-reap", "dp-smd-reap")
ROWS: tuple[Row, ...] = (
    _row(
        *(1, "n", "N", "n", 0.0),
        theorem="Robust PCA, Theorem 1 as corrected",
        mechanism="noiseless-ggd",
        column="pca_error",
        bound="pca_error_bound",
        sure=True,
        regime=f"{_HALF}, r = 2; the start of the mechanism, PCA; 2 sin γ made sin 2γ",
        experiment="theorems-pca-n",
    ),
    *_of_each(
        *("1/s", "shortness", "glad-steps"),
        [(number, "step", name) for name, number in _ON_GLAD],
        regime=f"{_HALF}, r = 2; 400 steps, all of length s",
    ),
    *_of_each(
        *("2ᴿ", "shrunk", "glad-restarts"),
        [(5, name, name) for name, _ in _ON_GLAD],
        error=f"{_DISTANCE}, {{}}",
        regime=f"{_HALF}, r = 2; R runs of 50 steps, each half as long",
    ),
    _of_start("N", "n", -1.0),
    _of_start("D", "d", 1.0, printed=1.5),
    _of_start("ε", "epsilon", -1.0),
    *_of_each(
        *("2ᴿ", "shrunk", "glad-limit"),
        [(8, name, name) for name in ("dp-ggd", "dp-sggd")],
        error=f"{_DISTANCE}, {{}}",
        theorem="Robust PCA, Corollary 8",
        regime=f"{_HALF}, r = 2; N = 100 R, R runs of N/10 steps",
    ),
    *(
        row
        for names, bound in ((_FULL, "formula"), (_BATCHES, ""))
        for row in _of_each(
            *("N", "n", "reaper-limit"),
            [(9, name, name) for name in names],
            error="excess distance, {}",
            column="excess",
            bound=bound,
            regime="a fifth outliers, r = 1; T = 0.02 (εN)², steps 1/√k",
        )
    ),
    *_of_each(
        *("N", "n", "reaper-limit"),
        [(10, name, name) for name in (*_FULL, *_BATCHES)],
        error="angle, {}",
        printed=-0.5,
        column="distance",
        bound="distance_bound",
        sure=True,
        regime="as for Theorem 9; the print has the square of the angle",
    ),
)
