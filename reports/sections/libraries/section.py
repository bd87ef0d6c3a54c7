"""The section on other libraries, from what ``make third-party`` has left."""

from typing import Any

import numpy as np

from dpaudit.reports.sections import Part, Results, Section
from dpaudit.reports.sections.libraries.measures import Comparison, load_comparison
from dpaudit.reports.tables import Printed, Row
from dpaudit.reports.words import delta, duration, number, percent, setting

__all__ = ["SECTION", "library_rows", "settings_of"]


def settings_of(comparison: Comparison | None) -> list[tuple[int, int]]:
    """Return the dimensions and numbers of components in which libraries compared."""
    records = [] if comparison is None else comparison.records
    return list(dict.fromkeys((r["dimension"], r["n_components"]) for r in records))


def library_rows(comparison: Comparison | None) -> list[Printed]:
    """Return the comparison of libraries, medians in the order of the records."""
    if comparison is None:
        return []
    fits: dict[tuple[str, str, float], dict[tuple[int, int], list[Row]]] = {}
    for row in comparison.records:
        who = fits.setdefault((row["contender"], row["centre"], row["delta"]), {})
        who.setdefault((row["dimension"], row["n_components"]), []).append(row)
    return [
        Printed(
            name=name,
            centre=centre,
            claim=(f"ε = {number(comparison.epsilon)}", f"δ = {delta(at)}"),
            cells=tuple(
                _fitted(found.get(each, []), comparison.limit_s)
                for each in settings_of(comparison)
            ),
        )
        for (name, centre, at), found in fits.items()
    ]


def _fitted(fits: list[Row], limit_s: float) -> tuple[str, str]:
    """Return the medians of share and time, or what there is instead."""
    ended = [row for row in fits if row["captured_share"] is not None]
    if not ended:
        return "no fit", f"within {setting(limit_s)} s"
    share, seconds = (
        float(np.median([row[column] for row in ended]))
        for column in ("captured_share", "fit_seconds")
    )
    return percent(share), duration(seconds)


def _context(results: Results) -> dict[str, Any]:
    comparison = results.beside.get("libraries")
    return {
        "comparison": comparison,
        "settings": settings_of(comparison),
        "libraries": library_rows(comparison),
    }


SECTION = Section(
    name="libraries",
    parts=(Part("libraries", "Beside other libraries", 700),),
    context=_context,
    beside=lambda folder: load_comparison(folder / "third-party"),
)
