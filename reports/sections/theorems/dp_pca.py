"""Rows on Oja's algorithm and DP-PCA, and the grids that measure them.

Source: Liu, Kong, Jain, Oh, *DP-PCA: statistically optimal and differentially private
PCA*, NeurIPS 2022.
"""

from typing import Any

from dpaudit.reports.sections.streaming.measures import (
    DP_PCA,
    MINIBATCH_OJA,
    streaming_errors,
)
from dpaudit.reports.sections.theorems.grids import Grid
from dpaudit.reports.sections.theorems.measures import oja_error
from dpaudit.reports.sections.theorems.rows import Row, rows_of

__all__ = ["GRIDS", "ROWS"]

_DELTA = 1e-6


def _oja(variable: str, values: tuple[float, ...], **fixed: float) -> Grid:
    return Grid(
        name=f"theorems-oja-{variable}",
        variable=variable,
        values=values,
        fixed={"delta": _DELTA, **fixed},
        measure=oja_error,
        share=0.25,
        effort=4.0,
    )


GRIDS = (
    _oja("n", tuple(1000.0 * 2**i for i in range(6)), d=10),
    _oja("d", (5.0, 10.0, 20.0, 40.0, 80.0, 160.0), n=8000),
    Grid(
        name="theorems-dp-pca-epsilon",
        variable="epsilon",
        values=(0.8, 0.6, 0.45, 0.34),
        fixed={"delta": _DELTA, "d": 20},
        measure=streaming_errors,
        most=0.9,
        share=1 / 24,
        effort=10.0,
    ),
)

_LIU = "Liu, Kong, Jain, Oh, NeurIPS 2022"
_SINE: dict[str, Any] = {
    "source": _LIU,
    "error": "sine of the angle",
    "column": "error",
}
_NOISE: dict[str, Any] = {
    "theorem": "DP-PCA, Theorem 5.1, Corollary 5.2",
    "source": _LIU,
    "mechanism": DP_PCA,
    "error": "sine of the angle, what noise adds",
    "column": "noise_error",
    "bound": "formula",
}

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
        "dp-pca-sampling",
        {"n": -0.5},
        theorem="DP-PCA, Theorem 5.1, first term",
        mechanism=DP_PCA,
        regime="Gaussian rows, ε = 1,000: sampling is all there is",
        where={"epsilon": (1000.0,)},
        **_SINE,
    ),
    *rows_of(
        "dp-pca-noise",
        {"n": -1.0},
        regime="Gaussian rows, ε = 1, where the theorem has ε < 0.9",
        where={"epsilon": (1.0,)},
        **_NOISE,
    ),
    *rows_of(
        "dp-pca-noise",
        {"d": 1.0},
        regime="Gaussian rows, ε = 1, where the theorem has ε < 0.9",
        **_NOISE,
    ),
    *rows_of(
        "dp-pca-noise",
        {"epsilon": -1.0},
        "theorems-dp-pca",
        regime="Gaussian rows, ε < 0.9",
        **_NOISE,
    ),
    *rows_of(
        "dp-pca",
        {"noise": 1.0},
        theorem="DP-PCA, Corollary 5.2, Example 4.1",
        mechanism=DP_PCA,
        bound="formula",
        regime="rows that vary by σ about ±v",
        **_SINE,
    ),
    *rows_of(
        "minibatch-oja",
        {"noise": 0.0},
        theorem="DP-PCA, equation (7), Example 4.1",
        mechanism=MINIBATCH_OJA,
        bound="formula",
        regime="rows that vary by σ ≤ 0.003 about ±v",
        where={"noise": (0.0003, 0.001, 0.003)},
        **_SINE,
    ),
)
