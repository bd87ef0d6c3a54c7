"""How errors scale, against the theorems: the rows of the report's scoreboard.

And how often what they allow happens. The draws are a quarter of a quick report's: from
the same seeds slopes that change are seen all the same.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dpaudit.reports.sections.theorems.rows import (
    CHANCES,
    GRIDS,
    ROWS,
    Chance,
    ExponentRow,
)

if TYPE_CHECKING:
    import pandas as pd

FEWER = 4  # times fewer draws than in a quick report
EVENTS = {
    f"{row.name}, zeta = {zeta:g}": (row, zeta)
    for row in CHANCES
    for zeta in GRIDS[row.experiment]["values"]
}


def tables(rows: Iterable[ExponentRow | Chance]) -> "dict[str, pd.DataFrame]":
    """Return what rows read, those of one experiment on the same draws."""
    # Not above: each row is read by a process of its own, which needs none of it.
    from dpaudit.reports.experiment import run
    from dpaudit.reports.sections import chosen_sections, plan

    experiments = plan("quick", 0, chosen_sections(("theorems",)))
    names = dict.fromkeys(row.experiment for row in rows)
    some = [experiments[name] for name in names]
    fewer = (replace(e, repetitions=max(2, e.repetitions // FEWER)) for e in some)
    return {each.name: run(each) for each in fewer}


class ErrorExponent:
    """Measured exponents; the rows of the scoreboard say what is predicted."""

    params = ([row.name for row in ROWS],)
    param_names = ("row",)
    version = "3"
    unit = "exponent"

    def setup_cache(self) -> dict[str, float]:
        """Measure all rows."""
        from dpaudit.reports.sections.theorems.judgement import score

        found = tables(ROWS)
        return {
            row.name: score(row, found[row.experiment]).fit.exponent for row in ROWS
        }

    setup_cache.timeout = 600  # type: ignore[attr-defined]

    def track_error_exponent(self, exponents: dict[str, float], name: str) -> float:
        """Return the slope of log error over the log of the row's variable."""
        return exponents[name]


class EventShare:
    """How often an event was seen that a theorem allows with probability zeta."""

    params: Sequence[list[str]] = (list(EVENTS),)
    param_names = ("event",)
    version = "1"
    unit = "share of draws"

    def setup_cache(self) -> dict[str, float]:
        """Measure all events at every zeta."""
        from dpaudit.reports.sections.theorems.judgement import shares

        found = shares(CHANCES, tables(CHANCES))
        return {f"{e.row.name}, zeta = {e.zeta:g}": e.measured for e in found}

    setup_cache.timeout = 600  # type: ignore[attr-defined]

    def track_event_share(self, seen: dict[str, float], name: str) -> float:
        """Return the share of draws with the event."""
        return seen[name]
