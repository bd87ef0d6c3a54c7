"""The scoreboard in rows ready to print, as a table, and in one sentence."""

from collections.abc import Mapping, Sequence
from math import isfinite

import pandas as pd

from dpaudit.reports.sections.theorems.judgement import (
    CONSISTENT,
    CONTRADICTED,
    FASTER,
    OFTEN,
    RARER,
    STEEPER,
    UNDECIDED,
    Score,
    Share,
    score,
    shares,
)
from dpaudit.reports.sections.theorems.rows import Row
from dpaudit.reports.sections.theorems.scoreboard import CHANCES, ROWS
from dpaudit.reports.tables import Printed
from dpaudit.reports.words import listed, number, percent, setting, signed, spelt

__all__ = [
    "chance_rows",
    "chance_summary",
    "chances",
    "exponent_lines",
    "score_rows",
    "scoreboard",
    "scores",
    "summary",
]


def scores(tables: Mapping[str, pd.DataFrame]) -> list[Score]:
    """Return the score of every row, from the tables of their experiments."""
    return [score(row, tables[row.experiment]) for row in ROWS]


def chances(tables: Mapping[str, pd.DataFrame]) -> list[Share]:
    """Return how often each event was seen that a theorem allows now and then."""
    return shares(CHANCES, tables)


def scoreboard(found: Sequence[Score], seen: Sequence[Share] = ()) -> pd.DataFrame:
    """Return the table of the file ``theorems.csv``.

    ``predicted`` is the exponent that is proven; where another is printed, that is
    beside it on the page. Of an event it is zeta, and ``measured`` a share of draws.
    """
    return pd.DataFrame(
        [
            {
                "theorem": each.row.theorem,
                "source": each.row.source,
                "mechanism": each.row.mechanism,
                "error": each.row.error,
                "variable": each.row.variable,
                "predicted": each.row.predicted,
                "measured": each.fit.exponent,
                "low": each.fit.low,
                "high": each.fit.high,
                "verdict": each.verdict,
            }
            for each in found
        ]
        + [
            {
                "theorem": each.row.theorem,
                "source": each.row.source,
                "mechanism": each.row.mechanism,
                "error": each.row.event,
                "variable": "ζ",
                "predicted": each.zeta,
                "measured": each.measured,
                "low": each.low,
                "high": each.high,
                "verdict": each.verdict,
            }
            for each in seen
        ]
    )


def score_rows(found: Sequence[Score]) -> list[Printed]:
    """Return the scoreboard, ready to print; what is as above it is not said again."""
    rows = []
    for before, each in zip([None, *found], found, strict=False):
        row = each.row
        about = f"{row.source}; {row.mechanism}"
        same = before is not None and _about(before.row) == _about(row)
        rows.append(
            Printed(
                theorem=row.theorem,
                about="" if same else about,
                mechanism=row.mechanism,
                error=row.error,
                regime="" if same else row.regime,
                variable=row.variable,
                printed=_fraction(row.printed),
                predicted=_fraction(row.predicted),
                formula=signed(each.formula) if isfinite(each.formula) else "–",
                measured=signed(each.fit.exponent),
                low=signed(each.fit.low),
                high=signed(each.fit.high),
                verdict=each.verdict,
                details=_details(each),
            )
        )
    return rows


def chance_rows(seen: Sequence[Share]) -> list[Printed]:
    """Return the events as rows of the scoreboard, ready to print."""
    rows = []
    for before, each in zip([None, *seen], seen, strict=False):
        row, same = each.row, before is not None and before.row == each.row
        rows.append(
            Printed(
                theorem=row.theorem,
                about="" if same else f"{row.source}; {row.mechanism}",
                mechanism=row.mechanism,
                error=f"probability: {row.event}",
                regime="" if same else row.regime,
                variable="ζ",
                printed=setting(each.zeta),
                predicted=setting(each.zeta),
                formula="–",
                measured=number(each.measured),
                low=number(each.low),
                high=number(each.high),
                verdict=each.verdict,
                details=f"{each.seen} of {each.draws} draws",
            )
        )
    return rows


def chance_summary(seen: Sequence[Share]) -> str:
    """Return how many events are as rare as a theorem says."""
    parts = []
    for verdict, words in (
        (RARER, "at most half as frequent as the theorem allows"),
        (CONSISTENT, "consistent with it"),
        (OFTEN, "more frequent than it says"),
        (CONTRADICTED, "contradicted"),
    ):
        these = [each for each in seen if each.verdict == verdict]
        if not these and verdict != CONTRADICTED:
            continue
        names = listed(
            [
                f"{e.row.theorem.replace(',', '')} at ζ = {setting(e.zeta)}"
                for e in these
            ]
            or [""]
        )
        named = f" ({names})" if verdict in (OFTEN, CONTRADICTED) and these else ""
        verb = "is" if len(these) == 1 else "are"
        part = f"{spelt(len(these))} {verb} {words}{named}"
        parts.append(part.replace("no are", "none is"))
    return f"Of {spelt(len(seen))} probabilities {listed(parts)}."


def summary(found: Sequence[Score]) -> str:
    """Return how many rows have which verdict, and which they are."""
    groups = {
        verdict: [each for each in found if each.verdict == verdict]
        for verdict in (CONSISTENT, FASTER, STEEPER, CONTRADICTED, UNDECIDED)
    }
    same = groups.pop(CONSISTENT)
    parts = [f"{spelt(len(same))} are consistent with the theorem"]
    if tolerated := sum(each.tolerated for each in same):
        parts[0] += f" ({spelt(tolerated)} of them for the tolerance alone)"
    words = {FASTER: "faster than the bound", STEEPER: "steeper than it on this grid"}
    for verdict, these in groups.items():
        if these or verdict == CONTRADICTED:
            names = f" ({listed([_named(each) for each in these])})" if these else ""
            verb = "is" if len(these) == 1 else "are"
            part = f"{spelt(len(these))} {verb} {words.get(verdict, verdict)}{names}"
            parts.append(part.replace("no are", "none is"))
    return f"Of {len(found)} exponents {listed(parts)}."


def exponent_lines(name: str, table: pd.DataFrame) -> list[str]:
    """Return what the table of one experiment says of the rows that read it."""
    found = [score(row, table) for row in ROWS if row.experiment == name]
    own = [row for row in CHANCES if row.experiment == name]
    return [
        f"{each.row.theorem}, {each.row.event}: allowed {setting(each.zeta)}, seen "
        f"{number(each.measured)} ({number(each.low)} to {number(each.high)}), "
        f"{each.verdict}."
        for each in shares(own, {name: table})
    ] + [
        f"{each.row.theorem}, {each.row.error} in {each.row.variable}: predicted "
        f"{_fraction(each.row.predicted)}, measured {signed(each.fit.exponent)} "
        f"({signed(each.fit.low)} to {signed(each.fit.high)}), {each.verdict}."
        for each in found
    ]


def _about(row: Row) -> tuple[str, ...]:
    return row.theorem, row.mechanism, row.error, row.regime


def _named(each: Score) -> str:
    return f"{each.row.theorem.replace(',', '')} in {each.row.variable}"


def _details(each: Score) -> str:
    """Return by how much a slope is another, and where errors are below the bound."""
    parts = []
    if each.verdict in (FASTER, STEEPER):
        apart = abs(each.fit.exponent - each.row.predicted)
        parts.append(f"by {signed(apart)} in the exponent")
    if each.tolerated:
        least, most = each.foretold
        off = max(least - each.fit.exponent, each.fit.exponent - most)
        parts.append(f"off by {signed(off)}, let pass")
    if isfinite(each.share):
        parts.append(f"errors ≤ {percent(each.share)} of the bound")
    if each.lost:
        parts.append(f"{percent(each.lost)} of the errors left out")
    return "; ".join(parts)


def _fraction(exponent: float) -> str:
    words = {0.25: "1/4", 0.5: "1/2", -0.5: "−1/2"}
    return words.get(exponent, f"{exponent:g}".replace("-", "−"))
