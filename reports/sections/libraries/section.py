"""The section on other libraries, from what ``make third-party`` has left."""

from typing import Any

import pandas as pd

from dpaudit.reports.sections import Part, Results, Section
from dpaudit.reports.sections.libraries.measures import Comparison, load_comparison
from dpaudit.reports.tables import Printed
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
    fits = pd.DataFrame(comparison.records)
    return [
        Printed(
            name=name,
            centre=centre,
            claim=(f"ε = {number(comparison.epsilon)}", f"δ = {delta(at)}"),
            cells=tuple(
                _fitted(own[own["dimension"].eq(d) & own["n_components"].eq(k)])
                or ("no fit", f"within {setting(comparison.limit_s)} s")
                for d, k in settings_of(comparison)
            ),
        )
        for (name, centre, at), own in fits.groupby(
            ["contender", "centre", "delta"], sort=False
        )
    ]


def library_notes(comparison: Comparison | None) -> list[str]:
    """Return whose fits capture most, in every setting."""
    if comparison is None:
        return []
    fits = pd.DataFrame(comparison.records)
    fits["captured_share"] = fits["captured_share"].astype(float)
    notes = []
    for d, k in settings_of(comparison):
        own = fits[fits["dimension"].eq(d) & fits["n_components"].eq(k)]
        middle = own.groupby("contender", sort=False)["captured_share"].median()
        if middle.notna().any():
            best = middle.idxmax()
            notes.append(
                f"With {k} of {d} components {best} captures most, "
                f"{percent(middle[best])}."
            )
    return notes


def _fitted(fits: pd.DataFrame) -> tuple[str, str] | None:
    """Return the medians of share and time of the fits that ended, if any did."""
    medians = fits[["captured_share", "fit_seconds"]].astype(float).median()
    if medians.isna().any():
        return None
    return percent(medians["captured_share"]), duration(medians["fit_seconds"])


def _context(results: Results) -> dict[str, Any]:
    comparison = results.beside.get("libraries")
    return {
        "comparison": comparison,
        "settings": settings_of(comparison),
        "libraries": library_rows(comparison),
        "library_notes": library_notes(comparison),
    }


SECTION = Section(
    name="libraries",
    parts=(Part("libraries", "Beside other libraries", 700),),
    context=_context,
    beside=lambda folder: load_comparison(folder / "third-party"),
)
