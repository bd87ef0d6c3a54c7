"""The section on other libraries, from what ``make third-party`` has left."""

from typing import Any

from dpaudit.reports.sections import Part, Results, Section
from dpaudit.reports.sections.libraries.findings import library_rows, settings_of
from dpaudit.reports.sections.libraries.measures import load_comparison

__all__ = ["SECTION"]


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
