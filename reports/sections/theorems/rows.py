"""The rows of the scoreboard: each theorem's exponents, declared once.

A `Row` says which theorem is meant, and in which column of which experiment's table its
error stands. The experiments are those of other sections, which are not carried out a
second time, or a grid (`dpaudit.reports.sections.theorems.grids`), with all mechanisms
that some row asks for. Rows of one grid share its draws.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

from dpaudit.errors import InputError
from dpaudit.reports.experiment import Experiment
from dpaudit.reports.sections import Size
from dpaudit.reports.sections.online.measures import ALGORITHM_3, ALGORITHM_4
from dpaudit.reports.sections.streaming.measures import (
    DP_PCA,
    MINIBATCH_OJA,
    streaming_errors,
)
from dpaudit.reports.sections.theorems.grids import GRIDS, check_grid
from dpaudit.reports.sections.theorems.measures import FLAT, GAP

__all__ = ["ROWS", "Row", "experiments"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One exponent of one theorem, and where its error is measured.

    Parameters
    ----------
    name : str
        Unique; names the row to ``asv``.
    theorem, source : str
        Its number, and the paper.
    mechanism : str
        Name in the catalogue.
    error : str
        In words.
    column : str
        In the table of the experiment.
    variable : str
        As it is printed: ``"d"``, ``"ε"``, ...
    against : str
        The column of the variable.
    regime : str
        In words.
    predicted : float
        The exponent that is proven.
    printed : float
        That of the paper.
    experiment : str
        The name of a `Grid`, or of an experiment of another section.
    where : mapping of str to tuple of float
        Values of other columns, where not the whole table is meant.
    bound : str
        The column of the bound on the same draws, or of its formula; empty if none.
    sure : bool
        Whether that bounds the error in every draw, constants and all.
    """

    name: str
    theorem: str
    source: str
    mechanism: str
    error: str
    column: str
    variable: str
    against: str
    regime: str
    predicted: float
    printed: float
    experiment: str
    where: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    bound: str = ""
    sure: bool = False

    def __post_init__(self) -> None:
        for name in ("predicted", "printed"):
            if not isfinite(value := getattr(self, name)):
                raise InputError(f"{name} of row {self.name!r} must be finite: {value}")
        for name, text in vars(self).items():
            if text == "" and name != "bound":
                raise InputError(f"row {self.name!r} must say its {name}")
        if self.sure and not self.bound:
            raise InputError(f"row {self.name!r} is sure of a bound that it has not")


def experiments(size: Size) -> tuple[Experiment, ...]:
    """Return what the rows need that no other section measures.

    Parameters
    ----------
    size : Size
        With ``theorem_draws``, the repetitions, ``theorem_points``, how many values a
        grid has, both 2 or more, and ``theorem_stream``, the n of dp-pca.
    """
    found = []
    for grid in GRIDS:
        names = (row.mechanism for row in ROWS if row.experiment == grid.name)
        mechanisms = tuple(dict.fromkeys(names))
        check_grid(grid, mechanisms)
        if grid.measure is streaming_errors:
            grid = replace(grid, fixed={**grid.fixed, "n": size.theorem_stream})
        found.append(
            Experiment(
                name=grid.name,
                title=f"Theorems, in {grid.variable}",
                source="the theorems' papers",
                measure=grid.measure,
                mechanisms=mechanisms,
                grid={grid.variable: grid.values[: size.theorem_points]},
                repetitions=max(2, round(grid.share * size.theorem_draws)),
                options=grid.fixed,
                effort=grid.effort,
            )
        )
    return tuple(found)


_GAUSS = "Dwork, Talwar, Thakurta, Zhang, STOC 2014"
_LIU = "Liu, Kong, Jain, Oh, NeurIPS 2022"
_SYMBOLS = {
    "epsilon": "ε",
    "noise": "σ",
    "optimum": "OPT",
    "dimension": "d",
    "n_components": "k",
}
_ELSEWHERE = {
    "optimum": "regret-optimum",
    "dimension": "regret-dimensions",
    "n_components": "regret-components",
    "n": "streaming-rates",
    "d": "streaming-dimensions",
    "noise": "signal-in-noise",
}
_WITH_GAP = "gap at least 8 times the norm of the noise; ε ≤ 1"


def _rows(
    start: str, exponents: Mapping[str, float], own: str = "", **same: Any
) -> tuple[Row, ...]:
    """Return a row for each variable of a theorem, given by its column.

    They read grids whose names start with `own`, or else other sections' experiments.
    """
    return tuple(
        Row(
            **{
                "name": f"{start}-{against.replace('_', '-')}",
                "variable": _SYMBOLS.get(against, against),
                "against": against,
                "predicted": exponent,
                "printed": exponent,
                "experiment": f"{own}-{against}" if own else _ELSEWHERE[against],
                **same,
            }
        )
        for against, exponent in exponents.items()
    )


def _moments(
    start: str, exponents: Mapping[str, float], *, kind: str = GAP, **same: Any
) -> tuple[Row, ...]:
    """Return rows of theorems on A + noise, by default those of Analyze Gauss."""
    usual = {
        "source": _GAUSS,
        "mechanism": "analyze-gauss-published",
        "bound": f"{same['column']}_bound",
        "sure": True,
        "regime": _WITH_GAP,
    }
    return _rows(start, exponents, f"theorems-{kind}", **usual | same)


_VARIANCE = {"error": "variance lost", "column": "variance_lost"}
_DISTANCE = {"error": "distance of projectors", "column": "projector_distance"}
_FROBENIUS = {
    "theorem": "Analyze Gauss, Theorem 9",
    "error": "rank k, Frobenius norm",
    "column": "low_rank_frobenius",
}
_REGRET: dict[str, Any] = {
    "exponents": {"optimum": 0.5, "dimension": 0.25, "n_components": 0.5},
    "source": _GAUSS,
    "error": "regret",
    "column": "regret",
    "bound": "formula",
}
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
    *_moments(
        "ag-4",
        {"k": 1.0, "d": 0.5, "epsilon": -1.0, "n": 0.0},
        kind=FLAT,
        theorem="Analyze Gauss, Theorem 4",
        regime="k eigenvalues at 0.8 s √d, no gap to speak of; ε ≤ 1",
        **_VARIANCE,
    ),
    *_moments(
        "ag-5",
        {"k": 1.0, "d": 1.0, "epsilon": -2.0, "gap": -1.0},
        theorem="Analyze Gauss, Theorem 5",
        bound="variance_lost_gap_bound",
        **_VARIANCE,
    ),
    *_moments(
        "ag-7",
        {"k": 0.0, "d": 0.5, "epsilon": -1.0, "gap": -1.0},
        theorem="Analyze Gauss, Theorem 7",
        **_DISTANCE,
    ),
    *_moments(
        "ag-13",
        {"k": 0.0, "d": 0.5, "epsilon": -1.0, "gap": -1.0},
        theorem="Analyze Gauss, Theorem 13",
        mechanism="private-subspace-published",
        sure=False,
        **_DISTANCE,
    ),
    *_moments(
        "ag-9-spectral",
        {"k": 0.0, "d": 0.5, "epsilon": -1.0},
        theorem="Analyze Gauss, Theorem 9",
        error="rank k, spectral norm",
        column="low_rank_spectral",
    ),
    *_moments("ag-9-frobenius", {"k": 0.5}, printed=1.0, **_FROBENIUS),
    *_moments("ag-9-frobenius", {"d": 0.5, "epsilon": -1.0}, **_FROBENIUS),
    *_moments(
        "sn-2",
        {"d": 1.0, "epsilon": -1.0, "gap": -1.0},
        theorem="Symmetric noise, Theorem 2",
        source="Imtiaz, Sarwate, ICASSP 2016",
        mechanism="symmetric-noise",
        **_DISTANCE,
    ),
    *_rows(
        "ag-17",
        theorem="Analyze Gauss, Theorem 14 and Corollary 17",
        mechanism=ALGORITHM_3,
        regime="rivals; ε tuned to OPT, δ = 1/m, private in each step only",
        **_REGRET,
    ),
    *_rows(
        "ag-18",
        theorem="Analyze Gauss, Theorem 18",
        mechanism=ALGORITHM_4,
        regime="rivals; OPT many times the first guess, by a large ε",
        **_REGRET,
    ),
    *_rows(
        "oja",
        {"n": -0.5, "d": 0.5},
        "theorems-oja",
        theorem="DP-PCA, Theorem 2.2",
        mechanism="oja",
        bound="formula",
        regime="Gaussian rows, no privacy; delay 2 d for the ξ of the proof",
        **_SINE,
    ),
    *_rows(
        "dp-pca-sampling",
        {"n": -0.5},
        theorem="DP-PCA, Theorem 5.1, first term",
        mechanism=DP_PCA,
        regime="Gaussian rows, ε = 1,000: sampling is all there is",
        where={"epsilon": (1000.0,)},
        **_SINE,
    ),
    *_rows(
        "dp-pca-noise",
        {"n": -1.0},
        regime="Gaussian rows, ε = 1, where the theorem has ε < 0.9",
        where={"epsilon": (1.0,)},
        **_NOISE,
    ),
    *_rows(
        "dp-pca-noise",
        {"d": 1.0},
        regime="Gaussian rows, ε = 1, where the theorem has ε < 0.9",
        **_NOISE,
    ),
    *_rows(
        "dp-pca-noise",
        {"epsilon": -1.0},
        "theorems-dp-pca",
        regime="Gaussian rows, ε < 0.9",
        **_NOISE,
    ),
    *_rows(
        "dp-pca",
        {"noise": 1.0},
        theorem="DP-PCA, Corollary 5.2, Example 4.1",
        mechanism=DP_PCA,
        bound="formula",
        regime="rows that vary by σ about ±v",
        **_SINE,
    ),
    *_rows(
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
