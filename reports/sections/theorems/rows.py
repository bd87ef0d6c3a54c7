"""What the scoreboard is made of: rows, declared in ``rows.toml``, and their grids.

An `ExponentRow` says which theorem is meant, and in which column of which experiment's
table its error stands. The experiments are those of other sections, which are not
carried out a second time, or one of `GRIDS`: what is measured for theorems, one
variable at a time. A `Chance` says so of an event that a theorem allows with
probability zeta.

A ``[[theorem]]`` has the fields of a row, and a row for each of its ``mechanisms`` and
each variable (a column) of its ``exponents``. It reads the grids whose names start with
``grids``, the ``experiment``, or else other sections' experiments. By variable, too:
``printed``, the exponent where the paper has another; ``variables``, how it is printed;
``why``. A row's name is ``name``, or begins with ``start``; ``{}`` is the mechanism.

A ``[[grid]]`` has a ``variable``, the coordinate that changes, and its ``values``, two
or more; the others are its ``options``. ``measure`` and ``effort`` are those of any
experiment, and ``share`` says which share of the repetitions of a profile is drawn, by
default all. A profile takes the first values, as many as its size says, so that a
larger one only adds to them. Each value is inside the regime of its theorem and the
range of its mechanism, and each row says all that it must; the tests hold them to it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpaudit.reports.experiment import declarations


@dataclass(frozen=True, kw_only=True)
class ExponentRow:
    """One exponent of one theorem, and where its error is measured."""

    name: str  # unique; names the row to asv
    # theorem, source: its number, and the paper
    theorem: str
    source: str
    mechanism: str  # name in the catalogue
    error: str  # in words
    column: str  # in the table of the experiment
    variable: str  # as it is printed: "d", "ε", ...
    against: str  # the column of the variable
    regime: str  # in words
    predicted: float  # the exponent that is proven
    printed: float  # that of the paper
    experiment: str  # one of `GRIDS`, or the name of an experiment of another section
    # values of other columns, where not the whole table is meant
    where: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    # the column of the bound on the same draws, or of its formula; empty if none
    bound: str = ""
    sure: bool = False  # whether that bounds the error in every draw, constants and all
    # the column of a bound on the *mean* error, constants and all; empty if none
    proven: str = ""
    # a hypothesis of the theorem that does not hold there, in words; empty if none
    unmet: str = ""
    why: str = ""  # why the slope may be another on this grid; empty where it is not
    # the column of the error of what looks at no row; by default ``column``_null
    null: str = ""

    def __post_init__(self) -> None:
        if not self.null:
            object.__setattr__(self, "null", f"{self.column}_null")


@dataclass(frozen=True, kw_only=True)
class Chance:
    """An event that a theorem says to have probability zeta at most, for any zeta."""

    # name, theorem, source, mechanism, regime: as in `ExponentRow`
    name: str
    theorem: str
    source: str
    mechanism: str
    event: str  # in words
    # in the table of the experiment: 1 where the event happened, and else 0; likewise
    # ``column``_null, of a release that looks at no row
    column: str
    regime: str
    experiment: str  # one of `GRIDS`, whose variable is zeta
    sure: bool = False  # whether that is proven for what is measured, constants and all


_DECLARED = declarations(Path(__file__).parent / "rows.toml")
SYMBOLS, SHORT = _DECLARED["symbols"], _DECLARED["short"]
BOUNDS = [tuple(each.values()) for each in _DECLARED["bound"]]


def _rows(whole: Mapping[str, Any]) -> Iterator[ExponentRow]:
    printed = {**whole["exponents"], **whole.get("printed", {})}
    variables, why = {**SYMBOLS, **whole.get("variables", {})}, whole.get("why", {})
    for mechanism in whole["mechanisms"]:
        for against, predicted in whole["exponents"].items():
            usual = {
                "name": f"{whole.get('start')}-{against.replace('_', '-')}",
                "experiment": _DECLARED["elsewhere"].get(against),
            }
            if "grids" in whole:
                usual["experiment"] = f"{whole['grids']}-{against}"
            told = {**usual, **{k: whole[k] for k in whole if k in _SAME}}
            told["name"] = told["name"].format(mechanism)
            told["error"] = told["error"].format(mechanism)
            yield ExponentRow(
                **told,
                mechanism=mechanism,
                variable=variables.get(against, against),
                against=against,
                predicted=predicted,
                printed=printed[against],
                why=_DECLARED["why"].get(why.get(against), ""),
            )


_SAME = {*ExponentRow.__dataclass_fields__} - {"printed", "why"}
ROWS = tuple(row for each in _DECLARED["theorem"] for row in _rows(each))
CHANCES = tuple(Chance(**each) for each in _DECLARED["chance"])
GRIDS = {f"theorems-{each['name']}": each for each in _DECLARED["grid"]}
