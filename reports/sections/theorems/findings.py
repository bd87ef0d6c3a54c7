"""The scoreboard: its rows and experiments, and what is found, in words and in rows.

Rows of one grid share its draws, with all mechanisms that some row asks for.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import pandas as pd

from dpaudit.reports.experiment import Experiment, experiment_of
from dpaudit.reports.sections import Size
from dpaudit.reports.sections.theorems import judgement, ledger
from dpaudit.reports.sections.theorems.judgement import Ruling
from dpaudit.reports.sections.theorems.rows import (
    BOUNDS,
    CHANCES,
    GRIDS,
    ROWS,
    SYMBOLS,
    Chance,
    ExponentRow,
)
from dpaudit.reports.tables import Printed
from dpaudit.reports.words import (
    fraction,
    listed,
    number,
    percent,
    sentences,
    setting,
    signed,
)

__all__ = ["ROWS"]


def programmed(size: Size) -> tuple[Experiment, ...]:
    """Return what the rows need that no other section measures.

    ``size``: with ``theorem_draws``, the repetitions, ``theorem_points``, how many
    values a grid has, both 2 or more, and ``theorem_stream``, the n of dp-pca.
    """
    every: list[ExponentRow | Chance] = [*ROWS, *CHANCES]
    found = []
    for name, grid in GRIDS.items():
        names = (row.mechanism for row in every if row.experiment == name)
        variable, share = grid["variable"], grid.get("share", 1.0)
        declared = {
            "name": name,
            "title": f"Theorems, in {variable}",
            "source": "the theorems' papers",
            "measure": grid["measure"],
            "mechanisms": dict.fromkeys(names),
            "grid": {variable: grid["values"][: size.theorem_points]},
            "repetitions": max(2, round(share * size.theorem_draws)),
            "options": grid["options"],
            "effort": grid.get("effort", 1.0),
        }
        found.append(experiment_of(declared, size))
    return tuple(found)


def scores(tables: Mapping[str, pd.DataFrame]) -> list[judgement.Score]:
    """Return the score of every row, from the tables of their experiments."""
    return [judgement.score(row, tables[row.experiment]) for row in ROWS]


def scoreboard(
    found: Sequence[judgement.Score], seen: Sequence[judgement.Share] = ()
) -> pd.DataFrame:
    """Return the table of the file ``theorems.csv``.

    ``predicted`` is the exponent that is proven; where another is printed, that is
    beside it on the page. Of an event it is zeta, and ``measured`` a share of draws.
    """
    lines: list[tuple[Any, ...]] = [
        *(
            (e.row, e.row.error, e.row.variable, e.row.predicted, *e.law, e.told)
            for e in found
        ),
        *((e.row, e.row.event, "ζ", e.zeta, *e.law, e.verdict) for e in seen),
    ]
    columns = ["theorem", "source", "mechanism", "error", "variable", "predicted"]
    return pd.DataFrame(
        [(row.theorem, row.source, row.mechanism, *cells) for row, *cells in lines],
        columns=[*columns, *_LAW, "verdict"],
    )


_LAW = ("measured", "low", "high")


def score_rows(found: Sequence[judgement.Score | judgement.Share]) -> list[Printed]:
    """Return the scoreboard, ready to print; what is as above it is not said again."""
    rows, above = [], None
    for each in found:
        row, about = each.row, _about(each.row)
        rows.append(
            Printed(
                theorem=row.theorem,
                about="" if about == above else f"{row.source}; {row.mechanism}",
                mechanism=row.mechanism,
                regime="" if about == above else row.regime,
                **_cells(each),
            )
        )
        above = about
    return rows


def _cells(each: judgement.Score | judgement.Share) -> dict[str, str]:
    """Return what was found, beside what was foretold."""
    if isinstance(each, judgement.Share):
        zeta = setting(each.zeta)
        return {
            **{"error": f"probability: {each.row.event}", "variable": "ζ"},
            **{"printed": zeta, "predicted": zeta, "formula": "–"},
            **dict(zip(_LAW, map(number, each.law), strict=True)),
            "verdict": each.verdict,
            "details": f"{each.seen} of {each.draws} draws",
        }
    return {
        **{"error": each.row.error, "variable": each.row.variable},
        "printed": fraction(each.row.printed),
        "predicted": fraction(each.row.predicted),
        "formula": signed(each.formula) if isfinite(each.formula) else "–",
        **dict(zip(_LAW, map(signed, each.law), strict=True)),
        **{"verdict": each.told, "details": _details(each)},
    }


def chance_summary(seen: Sequence[judgement.Share]) -> str:
    """Return how many events are as rare as a theorem says."""
    by_verdict = {
        verdict: [(e.row.theorem.replace(",", ""), e.zeta) for e in own]
        for verdict in Ruling
        if (own := [each for each in seen if each.verdict == verdict])
    }
    told = {"events": len(seen), "by_verdict": by_verdict}
    (said,) = sentences("theorems", "chance_summary", **told)
    return said


def summary(found: Sequence[judgement.Score]) -> str:
    """Return how many rows have which verdict, and which they are."""
    by_verdict = {
        verdict: [_named(each) for each in found if each.verdict == verdict]
        for verdict in judgement.VERDICTS
    }
    (said,) = sentences(
        *("theorems", "summary"),
        exponents=len(found),
        by_verdict=by_verdict,
        tolerance=judgement.TOLERANCE,
        unmet=sum(bool(each.row.unmet) for each in found),
    )
    return said


def statements(found: Sequence[judgement.Score]) -> str:
    """Return which published statements the slopes support or contradict."""
    groups: dict[str, list[str]] = {words: [] for words in STATED}
    for theorem in dict.fromkeys(each.row.theorem for each in found):
        own = [each for each in found if each.row.theorem == theorem]
        groups[judgement.stated(own)].append(theorem)
    parts = [f"{words} {_by_paper(some)}" for words, some in groups.items() if some]
    if not groups["contradicts"]:
        parts.append("contradicts none of them")
    return f"What is measured {'; '.join(parts)}."


STATED = {
    "supports": ledger.SUPPORTED,
    "supports in some variables only": ledger.PARTLY,
    "does not decide on": ledger.OPEN,
    "contradicts": ledger.CONTRADICTED,
}
"""What rows do to a theorem (`judgement.stated`), and the verdict on it."""


def _by_paper(theorems: Sequence[str]) -> str:
    """Return theorems in words, the name of each paper once."""
    papers: dict[str, list[str]] = {}
    for theorem in theorems:
        paper, its = theorem.split(", ", 1)
        papers.setdefault(paper, []).append(its)
    return listed(f"{paper} ({'; '.join(its)})" for paper, its in papers.items())


def print_notes(found: Sequence[judgement.Score]) -> list[str]:
    """Return what is seen where the print has another exponent than the proof."""
    notes = []
    for each in found:
        slope, proven, printed = each.fit.exponent, each.row.predicted, each.row.printed
        if printed != proven and isfinite(slope):
            nearer = abs(slope - proven) < abs(slope - printed)
            told = fraction(printed), fraction(proven), slope, nearer
            notes.append((_named(each), *told))
    return sentences("theorems", "print_notes", notes=notes)


def bound_rows(tables: Mapping[str, pd.DataFrame]) -> list[Printed]:
    """Return bounds as printed and as provable, and the largest error of all draws.

    Each is the largest over the draws: bounds are of the noise of the draw.
    """
    rows = []
    for theorem, experiment, variable, error, bound in BOUNDS:
        table = tables[experiment]
        table = table[table[f"{bound}_printed"].notna()]
        for i, (x, some) in enumerate(table.groupby(variable, sort=True)):
            rows.append(
                Printed(
                    theorem=theorem if i == 0 else "",
                    named=theorem,
                    variable=f"{SYMBOLS.get(variable, variable)} = {x:g}",
                    printed=number(float(some[f"{bound}_printed"].max())),
                    provable=number(float(some[f"{bound}_bound"].max())),
                    error=number(float(some[error].max())),
                    share=percent(float((some[error] / some[f"{bound}_bound"]).max())),
                )
            )
    return rows


def exponent_lines(name: str, table: pd.DataFrame) -> list[str]:
    """Return what the table of one experiment says of the rows that read it."""
    found = [judgement.score(row, table) for row in ROWS if row.experiment == name]
    own = [row for row in CHANCES if row.experiment == name]
    return [
        f"{each.row.theorem}, {each.row.event}: allowed {setting(each.zeta)}, seen "
        "{} ({} to {}), {}.".format(*map(number, each.law), each.verdict)
        for each in judgement.shares(own, {name: table})
    ] + [
        f"{each.row.theorem}, {each.row.error} in {each.row.variable}: predicted "
        f"{fraction(each.row.predicted)}, measured "
        "{} ({} to {}), {}.".format(*map(signed, each.law), each.verdict)
        for each in found
    ]


def _about(row: ExponentRow | Chance) -> tuple[str, ...]:
    what = row.event if isinstance(row, Chance) else row.error
    return row.theorem, row.mechanism, what, row.regime


def _named(each: judgement.Score) -> str:
    return f"{each.row.theorem.replace(',', '')} in {each.row.variable}"


def _details(each: judgement.Score) -> str:
    """Return by how much a slope is another, and where errors are below the bound."""
    parts = []
    if each.verdict in (Ruling.FASTER, Ruling.STEEPER):
        apart = abs(each.fit.exponent - each.row.predicted)
        parts.append(f"by {signed(apart)} in the exponent")
    if each.verdict == Ruling.WITHIN:
        least, most = each.foretold
        off = max(least - each.fit.exponent, each.fit.exponent - most)
        parts.append(f"by {signed(off)}")
    if each.verdict == Ruling.VACUOUS:
        share = percent(each.beside)
        parts.append(f"errors up to {share} of those of what looks at no row")
    if isfinite(each.share):
        what = "errors" if each.row.sure else "means"
        parts.append(f"{what} ≤ {percent(each.share)} of the bound")
    if each.row.why and not each.fit.low <= each.row.predicted <= each.fit.high:
        parts.append(each.row.why)
    if each.lost:
        parts.append(f"{percent(each.lost)} of the errors left out")
    return "; ".join(parts)
