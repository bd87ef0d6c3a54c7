"""The rows of the scoreboard: each theorem's exponents, declared once.

A `Row` says which theorem is meant, and in which column of which experiment's table its
error stands. The experiments are those of other sections, which are not carried out a
second time, or a `Grid` of `GRIDS`: one variable, all else fixed, and all mechanisms
that some row asks for. Rows of one grid share its draws. A profile takes the first
points of a grid, as many as its size says, so that a larger one only adds to it.

Each value of a grid is inside the regime of its theorem and the range of its mechanism,
or the grid is refused by name (`check_grid`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

from dpaudit.errors import InputError
from dpaudit.reports.experiment import Experiment, Measure
from dpaudit.reports.sections import Size
from dpaudit.reports.sections.online.measures import ALGORITHM_3, ALGORITHM_4
from dpaudit.reports.sections.streaming.measures import (
    DP_PCA,
    MINIBATCH_OJA,
    streaming_errors,
)
from dpaudit.reports.sections.theorems.measures import (
    FLAT,
    GAP,
    check_point,
    oja_error,
    second_moment_errors,
)
from dpaudit.validation import check_positive

__all__ = ["GRIDS", "ROWS", "Grid", "Row", "check_grid", "experiments"]


@dataclass(frozen=True)
class Grid:
    """One variable of a measurement, all else fixed.

    Parameters
    ----------
    name : str
        Of its experiment.
    variable : str
        Which coordinate changes.
    values : tuple of float
        The first of them are taken, two or more.
    fixed : mapping of str to object
        The other coordinates.
    measure : callable
    question : str
    share : float
        Of the repetitions of a profile.
    effort : float
        See `dpaudit.reports.experiment.Experiment`.
    """

    name: str
    variable: str
    values: tuple[float, ...]
    fixed: Mapping[str, Any]
    measure: Measure
    question: str
    share: float = 1.0
    effort: float = 1.0


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
    printed : float, optional
        That of the paper, where it is another.
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


_EPSILONS = tuple(2.0**-i for i in range(6))
_GAPS = tuple(1e4 * 2**i for i in range(6))
_LENGTHS = (25.0, 50.0, 100.0, 200.0, 400.0, 800.0)
_RANKS = tuple(2.0**i for i in range(6))
_DELTA = 1e-6


def _spectrum(
    kind: str, variable: str, values: tuple[float, ...], **fixed: Any
) -> Grid:
    about = "with a gap" if kind == GAP else "at worst"
    setting = {"spectrum": kind, "delta": _DELTA, **fixed}
    return Grid(
        name=f"theorems-{kind}-{variable}",
        variable=variable,
        values=values,
        fixed=setting,
        measure=second_moment_errors,
        question=f"How do errors of subspaces change with {variable}, {about}?",
        effort=4.0 if variable == "d" else 1.0,
    )


def _oja(variable: str, values: tuple[float, ...], **fixed: float) -> Grid:
    return Grid(
        name=f"theorems-oja-{variable}",
        variable=variable,
        values=values,
        fixed={"delta": _DELTA, **fixed},
        measure=oja_error,
        share=0.25,
        question=f"How does the error of Oja's algorithm change with {variable}?",
        effort=4.0,
    )


GRIDS = (
    _spectrum(FLAT, "k", _RANKS, d=100, epsilon=1.0),
    _spectrum(FLAT, "d", _LENGTHS, k=2, epsilon=1.0),
    _spectrum(FLAT, "epsilon", _EPSILONS, d=100, k=2),
    _spectrum(FLAT, "n", tuple(1e4 * 4**i for i in range(6)), d=100, k=2, epsilon=1.0),
    _spectrum(GAP, "k", _RANKS, d=100, gap=4e4, epsilon=1.0),
    _spectrum(GAP, "d", _LENGTHS, k=2, gap=4e4, epsilon=1.0),
    _spectrum(GAP, "epsilon", _EPSILONS, d=50, k=2, gap=8e4),
    _spectrum(GAP, "gap", _GAPS, d=50, k=2, epsilon=1.0),
    _oja("n", tuple(1000.0 * 2**i for i in range(6)), d=10),
    _oja("d", (5.0, 10.0, 20.0, 40.0, 80.0, 160.0), n=8000),
    Grid(
        name="theorems-dp-pca-epsilon",
        variable="epsilon",
        values=(0.8, 0.6, 0.45, 0.34),
        fixed={"delta": _DELTA, "d": 20},
        measure=streaming_errors,
        question="How does the noise of dp-pca change with epsilon?",
        share=1 / 24,
        effort=10.0,
    ),
)
_BY_NAME = {grid.name: grid for grid in GRIDS}


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
                question=grid.question,
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


def check_grid(grid: Grid, mechanisms: Sequence[str]) -> None:
    """Raise `InputError` if a value is outside a mechanism's range or a regime."""
    if len(grid.values) < 2 or len(set(grid.values)) < len(grid.values):
        raise InputError(
            f"grid {grid.name!r} must have two different values or more, got "
            f"{grid.values}"
        )
    for value in grid.values:
        at = f"grid {grid.name!r} at {grid.variable} = {value}"
        try:
            check_positive(grid.variable, value)
            if grid.measure is second_moment_errors:
                for name in mechanisms:
                    check_point(name, {**grid.fixed, grid.variable: value})
        except InputError as error:
            raise InputError(f"{at}: {error}") from error


_GAUSS = "Dwork, Talwar, Thakurta, Zhang, STOC 2014"
_LIU = "Liu, Kong, Jain, Oh, NeurIPS 2022"
_SYMBOLS = {"epsilon": "ε", "noise": "σ", "optimum": "OPT", "n_components": "k"}
_SYMBOLS |= {"dimension": "d"}
_WITH_GAP = "gap at least 8 times the norm of the noise; ε ≤ 1"


def _rows(
    start: str, exponents: Mapping[str, float], grid: Callable[[str], str], **same: Any
) -> tuple[Row, ...]:
    """Return a row for each variable of a theorem, by its column."""
    return tuple(
        Row(
            **{
                "name": f"{start}-{against.replace('_', '-')}",
                "variable": _SYMBOLS.get(against, against),
                "against": against,
                "predicted": exponent,
                "printed": exponent,
                "experiment": grid(against),
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
    return _rows(
        start, exponents, lambda against: f"theorems-{kind}-{against}", **usual | same
    )


_VARIANCE = {"error": "variance lost", "column": "variance_lost"}
_DISTANCE = {"error": "distance of projectors", "column": "projector_distance"}
_FROBENIUS = {
    "theorem": "Analyze Gauss, Theorem 9",
    "error": "rank k, Frobenius norm",
    "column": "low_rank_frobenius",
}
_RIVALS = {
    "optimum": "optimum",
    "dimension": "dimensions",
    "n_components": "components",
}
_REGRETS = {
    "optimum": "regret-optimum",
    "dimension": "regret-dimensions",
    "n_components": "regret-components",
}
_REGRET: dict[str, Any] = {
    "exponents": {"optimum": 0.5, "dimension": 0.25, "n_components": 0.5},
    "grid": _REGRETS.__getitem__,
    "source": _GAUSS,
    "error": "regret",
    "column": "regret",
    "bound": "formula",
}
_STREAM: dict[str, Any] = {
    "grid": lambda against: (
        "streaming-rates" if against == "n" else "streaming-dimensions"
    ),
    "source": _LIU,
    "mechanism": DP_PCA,
    "bound": "formula",
}
_NOISE: dict[str, Any] = {
    "error": "sine of the angle, what noise adds",
    "column": "noise_error",
    "regime": "Gaussian rows; noise for privacy above sampling",
}
_SPREAD: dict[str, Any] = {
    "grid": lambda against: "signal-in-noise",
    "source": _LIU,
    "error": "sine of the angle",
    "column": "error",
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
        lambda against: f"theorems-oja-{against}",
        theorem="DP-PCA, Theorem 2.2",
        source=_LIU,
        mechanism="oja",
        error="sine of the angle",
        column="error",
        bound="formula",
        regime="Gaussian rows, no privacy; delay 2 d for the ξ of the proof",
    ),
    *_rows(
        "dp-pca-sampling",
        {"n": -0.5},
        theorem="DP-PCA, Theorem 5.1, first term",
        error="sine of the angle",
        column="error",
        regime="Gaussian rows, ε = 1,000: sampling is all there is",
        where={"epsilon": (1000.0,)},
        **{**_STREAM, "bound": ""},
    ),
    *_rows(
        "dp-pca-noise",
        {"n": -1.0},
        theorem="DP-PCA, Theorem 5.1, Corollary 5.2",
        where={"epsilon": (1.0,)},
        **_NOISE,
        **_STREAM,
    ),
    *_rows(
        "dp-pca-noise",
        {"d": 1.0},
        theorem="DP-PCA, Theorem 5.1, Corollary 5.2",
        **_NOISE,
        **_STREAM,
    ),
    *_rows(
        "dp-pca-noise",
        {"epsilon": -1.0},
        theorem="DP-PCA, Theorem 5.1, Corollary 5.2",
        **_NOISE,
        **{**_STREAM, "grid": lambda against: "theorems-dp-pca-epsilon"},
    ),
    *_rows(
        "dp-pca",
        {"noise": 1.0},
        theorem="DP-PCA, Corollary 5.2, Example 4.1",
        mechanism=DP_PCA,
        regime="rows that vary by σ about ±v",
        **_SPREAD,
    ),
    *_rows(
        "minibatch-oja",
        {"noise": 0.0},
        theorem="DP-PCA, equation (7), Example 4.1",
        mechanism=MINIBATCH_OJA,
        regime="rows that vary by σ ≤ 0.003 about ±v",
        where={"noise": (0.0003, 0.001, 0.003)},
        **_SPREAD,
    ),
)
