"""Rows on Oja's algorithm and DP-PCA, and the grids that measure them.

Source: Liu, Kong, Jain, Oh, *DP-PCA: statistically optimal and differentially private
PCA*, NeurIPS 2022.
"""

from functools import partial
from typing import Any

from dpaudit.reports.sections.dp_pca import theorem_measures
from dpaudit.reports.sections.dp_pca.measures import PRIVATE_OJA, PUBLISHED
from dpaudit.reports.sections.streaming import measures
from dpaudit.reports.sections.streaming.measures import streaming_errors
from dpaudit.reports.sections.theorems.grids import grid_of
from dpaudit.reports.sections.theorems.measures import oja_error
from dpaudit.reports.sections.theorems.rows import Chance, Row, rows_of

__all__ = ["CHANCES"]

_DELTA = 1e-6


_grid = partial(grid_of, delta=_DELTA)
_oja = partial(_grid, measure=oja_error, share=0.25, effort=4.0)
_private_oja = partial(
    _grid, measure=theorem_measures.private_oja_noise, share=0.1, effort=4.0
)
_zeta = partial(
    _grid,
    variable="zeta",
    values=(0.3, 0.1, 0.03, 0.01),
    measure=theorem_measures.failures,
    most=0.5,
    effort=2.0,
    epsilon=0.8,
    d=2,
)
GRIDS = (
    _zeta("dp-pca-eigenvalue", share=0.5),
    _zeta("dp-pca-window", share=2.0),
    _oja("oja-n", "n", tuple(1000.0 * 2**i for i in range(6)), d=10),
    _oja("oja-d", "d", (5.0, 10.0, 20.0, 40.0, 80.0, 160.0), n=8000),
    _private_oja(
        *("private-oja-n", "n", tuple(10_000.0 * 2**i for i in range(6))),
        d=10,
        epsilon=0.5,
    ),
    _private_oja(
        *("private-oja-d", "d", (5.0, 10.0, 20.0, 40.0, 80.0)), n=20_000, epsilon=1.0
    ),
    _private_oja(
        "private-oja-epsilon", "epsilon", (2.0, 1.0, 0.5, 0.25), n=40_000, d=10
    ),
    _grid(
        *("dp-pca-epsilon", "epsilon", (0.8, 0.6, 0.45, 0.34), streaming_errors),
        most=0.9,
        share=1 / 24,
        effort=10.0,
        d=20,
    ),
)
_LIU = "Liu, Kong, Jain, Oh, NeurIPS 2022"
_SINE: dict[str, Any] = {
    "source": _LIU,
    "error": "sine of the angle",
    "column": "error",
}
_NOISE: dict[str, Any] = {
    "theorem": "DP-PCA, Theorem 5.1, Corollary 5.2, with our constants",
    "source": _LIU,
    "mechanism": measures.DP_PCA,
    "error": "sine of the angle, what noise adds",
    "column": "noise_error",
    "bound": "formula",
}
_NOISE_AT_ONE = {**_NOISE, "regime": "Gaussian rows, ε = 1", "unmet": "ε < 0.9"}

ROWS: tuple[Row, ...] = (
    *rows_of(
        "oja",
        {"n": -0.5, "d": 0.5},
        "theorems-oja",
        theorem="DP-PCA, Theorem 2.2",
        mechanism="oja",
        bound="formula",
        regime="Gaussian rows, no privacy; delay 2 d for the ξ of the proof",
        **_SINE,
    ),
    *rows_of(
        "private-oja-noise",
        {"n": -1.0, "d": 1.0, "epsilon": -1.0},
        "theorems-private-oja",
        theorem="DP-PCA, Theorem 3.3, second term",
        source=_LIU,
        mechanism=PRIVATE_OJA,
        error="sine of the angle, what noise adds",
        column="noise_error",
        bound="formula",
        regime="Gaussian rows, α as printed with C = 1, whatever that proves",
        unmet="ε = O(√(log(n/δ)/n)), if its constant is 1",
    ),
    *rows_of(
        "dp-pca-sampling",
        {"n": -0.5},
        theorem="DP-PCA, Theorem 5.1, first term",
        mechanism=measures.DP_PCA,
        regime="Gaussian rows, ε = 1,000: sampling is all there is",
        unmet="ε < 0.9",
        where={"epsilon": (1000.0,)},
        **_SINE,
    ),
    *rows_of("dp-pca-noise", {"n": -1.0}, where={"epsilon": (1.0,)}, **_NOISE_AT_ONE),
    *rows_of("dp-pca-noise", {"d": 1.0}, **_NOISE_AT_ONE),
    *rows_of(
        "dp-pca-noise",
        {"epsilon": -1.0},
        "theorems-dp-pca",
        regime="Gaussian rows, ε < 0.9",
        **_NOISE,
    ),
    *rows_of(
        "dp-pca-published-noise",
        {"epsilon": -1.0},
        "theorems-dp-pca",
        regime="Gaussian rows, ε < 0.9",
        **{
            **_NOISE,
            "theorem": "DP-PCA, Theorem 5.1, Corollary 5.2, as published",
            "mechanism": PUBLISHED,
        },
    ),
    *rows_of(
        "dp-pca",
        {"noise": 1.0},
        theorem="DP-PCA, Corollary 5.2, Example 4.1",
        mechanism=measures.DP_PCA,
        bound="formula",
        regime="rows that vary by σ about ±v, ε = 1",
        unmet="ε < 0.9",
        **_SINE,
    ),
    *rows_of(
        "minibatch-oja",
        {"noise": 0.0},
        theorem="DP-PCA, equation (7), Example 4.1",
        mechanism=measures.MINIBATCH_OJA,
        bound="formula",
        regime="rows that vary by σ ≤ 0.003 about ±v",
        where={"noise": (0.0003, 0.001, 0.003)},
        **_SINE,
    ),
)

CHANCES: tuple[Chance, ...] = (
    Chance(
        name="dp-pca-eigenvalue",
        theorem="DP-PCA, Theorem 6.1",
        source=_LIU,
        mechanism="top-eigenvalue",
        event="estimate off by more than √2, or bottom",
        column="failed",
        regime="Gaussian rows, d = 2; B as in the theorem, with its O read as 1",
        experiment="theorems-dp-pca-eigenvalue",
    ),
    Chance(
        name="dp-pca-window",
        theorem="DP-PCA, Lemma 6.2",
        source=_LIU,
        mechanism="mean-estimation-published",
        event="a gradient truncated, or bottom",
        column="failed",
        regime="Gaussian rows, d = 2, B = 20,000, K = 1.75",
        experiment="theorems-dp-pca-window",
        sure=True,
    ),
)
