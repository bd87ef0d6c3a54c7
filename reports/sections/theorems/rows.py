"""A row of the scoreboard: one exponent, or one probability, declared once.

A `Row` says which theorem is meant, and in which column of which experiment's table its
error stands. The experiments are those of other sections, which are not carried out a
second time, or a grid (`dpaudit.reports.sections.theorems.grids`). A `Chance` says so
of an event that a theorem allows with probability zeta.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from dpaudit.errors import InputError

__all__ = ["SYMBOLS", "Chance", "Row", "rows_of"]


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
    proven : str
        The column of a bound on the *mean* error, constants and all; empty if none.
    unmet : str
        A hypothesis of the theorem that does not hold there, in words; empty if none.
    why : str
        Why the slope may be another on this grid; empty where it is not.
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
    proven: str = ""
    unmet: str = ""
    why: str = ""

    def __post_init__(self) -> None:
        for name in ("predicted", "printed"):
            if not isfinite(value := getattr(self, name)):
                raise InputError(f"{name} of row {self.name!r} must be finite: {value}")
        for name, text in vars(self).items():
            if text == "" and name not in ("bound", "proven", "unmet", "why"):
                raise InputError(f"row {self.name!r} must say its {name}")
        if self.sure and not self.bound:
            raise InputError(f"row {self.name!r} is sure of a bound that it has not")


@dataclass(frozen=True, kw_only=True)
class Chance:
    """An event that a theorem says to have probability zeta at most, for any zeta.

    Parameters
    ----------
    name, theorem, source, mechanism, regime
        As in `Row`.
    event : str
        In words.
    column : str
        In the table of the experiment: 1 where the event happened, and else 0.
    experiment : str
        The name of a `Grid` whose variable is ``zeta``.
    sure : bool
        Whether that is proven for what is measured, constants and all.
    """

    name: str
    theorem: str
    source: str
    mechanism: str
    event: str
    column: str
    regime: str
    experiment: str
    sure: bool = False

    def __post_init__(self) -> None:
        for name, text in vars(self).items():
            if text == "":
                raise InputError(f"row {self.name!r} must say its {name}")


SYMBOLS = {
    "epsilon": "ε",
    "noise": "σ",
    "kept": "k′",
    "rows": "m",
    "optimum": "OPT",
    "dimension": "d",
    "n_components": "k",
}
_ELSEWHERE = {
    "optimum": "regret-optimum",
    "dimension": "regret-dimensions",
    "n_components": "regret-components",
    "rows": "regret-length",
    "n": "streaming-rates",
    "d": "streaming-dimensions",
    "noise": "signal-in-noise",
}


def rows_of(
    start: str, exponents: Mapping[str, float], own: str = "", **same: Any
) -> tuple[Row, ...]:
    """Return a row for each variable of a theorem, given by its column.

    They read grids whose names start with `own`, or else other sections' experiments.
    """
    return tuple(
        Row(
            **{
                "name": f"{start}-{against.replace('_', '-')}",
                "variable": SYMBOLS.get(against, against),
                "against": against,
                "predicted": exponent,
                "printed": exponent,
                "experiment": f"{own}-{against}" if own else _ELSEWHERE[against],
                **same,
            }
        )
        for against, exponent in exponents.items()
    )
