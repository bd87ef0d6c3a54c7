"""Rows on Analyze Gauss, and the grids that measure them.

Source: Dwork, Talwar, Thakurta, Zhang, *Analyze Gauss*, STOC 2014. Theorem 2 of Imtiaz,
Sarwate, ICASSP 2016 is Theorem 7 with other noise, and reads the same grids.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpaudit.reports.sections.online import measures
from dpaudit.reports.sections.theorems.measures import FLAT, GAP, second_moment_errors
from dpaudit.reports.sections.theorems.rows import ExponentRow, Sweep, grid_of, rows_of

_EPSILONS = tuple(2.0**-i for i in range(6))
_GAPS = tuple(1e4 * 2**i for i in range(6))
_LENGTHS = (25.0, 50.0, 100.0, 200.0, 400.0, 800.0)
_RANKS = tuple(2.0**i for i in range(6))
_DELTA = 1e-6
_KEPT = "kept"


def _spectrum(
    kind: str, variable: str, values: tuple[float, ...], **fixed: Any
) -> Sweep:
    """Return a grid; `_KEPT` is the spectrum with a gap, of which more is kept."""
    spectrum = GAP if kind == _KEPT else kind
    return grid_of(
        *(f"{kind}-{variable}", variable, values, second_moment_errors),
        effort=4.0 if variable == "d" else 1.0,
        spectrum=spectrum,
        delta=_DELTA,
        **fixed,
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
    _spectrum(_KEPT, "kept", _RANKS, d=100, k=1, gap=4e4, epsilon=1.0),
    _spectrum(_KEPT, "k", _RANKS, d=100, kept=40, gap=4e4, epsilon=1.0),
    _spectrum(_KEPT, "d", _LENGTHS, k=2, kept=4, gap=4e4, epsilon=1.0),
    _spectrum(_KEPT, "epsilon", _EPSILONS, d=50, k=2, kept=4, gap=8e4),
    _spectrum(_KEPT, "gap", _GAPS, d=50, k=2, kept=4, epsilon=1.0),
)

_GAUSS = "Dwork, Talwar, Thakurta, Zhang, STOC 2014"
_WITH_GAP = "gap at least 8 times the norm of the noise; ε ≤ 1"


def _moments(
    start: str, exponents: Mapping[str, float], *, kind: str = GAP, **same: Any
) -> tuple[ExponentRow, ...]:
    """Return rows of theorems on A + noise, by default those of Analyze Gauss."""
    usual = {
        "source": _GAUSS,
        "mechanism": "analyze-gauss-published",
        "bound": f"{same['column']}_bound",
        "sure": True,
        "regime": _WITH_GAP,
    }
    return rows_of(start, exponents, f"theorems-{kind}", **usual | same)


_VARIANCE = {"error": "variance lost", "column": "variance_lost"}
_DISTANCE = {"error": "distance of projectors", "column": "projector_distance"}
_FROBENIUS = {
    "theorem": "Analyze Gauss, Theorem 9",
    "error": "rank k, Frobenius norm",
    "column": "low_rank_frobenius",
}
_MORE = {
    "kind": _KEPT,
    "theorem": "Analyze Gauss, Theorem 5, k′ ≥ k",
    "bound": "variance_lost_gap_bound",
    "regime": f"k′ components kept, k wanted; {_WITH_GAP}",
    **_VARIANCE,
}
_REGRET: dict[str, Any] = {
    "source": _GAUSS,
    "error": "regret",
    "column": "regret",
    "bound": "formula",
}
_EXPONENTS = {"optimum": 0.5, "dimension": 0.25, "n_components": 0.5, "rows": 0.5}
_FIRST = {
    "theorem": "Analyze Gauss, Theorem 14 and Corollary 17",
    "mechanism": measures.ALGORITHM_3,
    "regime": "rivals; ε tuned to OPT, δ = 1/m, private in each step only",
    "proven": "proven",
    **_REGRET,
}
_SECOND = {
    "theorem": "Analyze Gauss, Theorem 18",
    "unmet": "ε < 0.1",
    "mechanism": measures.ALGORITHM_4,
    **_REGRET,
}

REGRET: tuple[ExponentRow, ...] = (
    *rows_of("ag-17", _EXPONENTS, **_FIRST),
    *rows_of(
        "ag-18",
        _EXPONENTS,
        regime="rivals; OPT many times the first guess, by a large ε",
        **_SECOND,
    ),
    *(
        row
        for epsilon in measures.SMALLER
        for row in rows_of(
            f"ag-18-epsilon-{epsilon:g}",
            {"optimum": 0.5},
            experiment="regret-epsilon",
            where={"epsilon": (epsilon,)},
            variable=f"OPT, ε = {epsilon:g}",
            regime=f"rivals; ε = {epsilon:g}, d = 4",
            **_SECOND,
        )
    ),
)

_BLOCK = "a block of the noise, (d − k) × k, has a norm of about s (√(d − k) + √k)"
_ENTRIES = "of the noise k (d − k′) entries turn what is kept, about, and not k d"
_WHY = {
    "ag-4-k": "the mean of the k largest eigenvalues of the noise falls with k",
    "ag-4-d": "in few dimensions more of what the noise hides is found all the same",
    **dict.fromkeys(("ag-5-k", "ag-5-d"), _ENTRIES.replace("k′", "k")),
    **dict.fromkeys(("ag-5-more-kept", "ag-5-more-k", "ag-5-more-d"), _ENTRIES),
    **dict.fromkeys(("ag-7-k", "ag-7-d", "ag-13-k", "ag-13-d"), _BLOCK),
    **dict.fromkeys(("ag-9-spectral-k", "ag-9-spectral-d"), _BLOCK),
    **dict.fromkeys(
        ("ag-17-dimension", "ag-18-dimension"),
        "a random subspace earns k/d of the stream, the less the larger d",
    ),
}
"""Why slopes may be others on these grids, by the name of the row."""

_ALL: tuple[ExponentRow, ...] = (
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
    *_moments("ag-5-more", {"kept": 0.0}, printed=1.0, **_MORE),
    *_moments("ag-5-more", {"k": 1.0}, printed=0.0, **_MORE),
    *_moments("ag-5-more", {"d": 1.0, "epsilon": -2.0, "gap": -1.0}, **_MORE),
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
    *REGRET,
    *_moments(
        "sn-2",
        {"d": 1.0, "epsilon": -1.0, "gap": -1.0},
        theorem="Symmetric noise, Theorem 2",
        source="Imtiaz, Sarwate, ICASSP 2016",
        mechanism="symmetric-noise",
        **_DISTANCE,
    ),
)

ROWS = tuple(replace(row, why=_WHY.get(row.name, "")) for row in _ALL)
