"""One audit as a page: what it says, its picture, and what repeats it."""

from pathlib import Path

from dpaudit.atomic import replacing
from dpaudit.audit import AuditResult, Verdict
from dpaudit.reports.escaping import Safe
from dpaudit.reports.page import render_one
from dpaudit.reports.svg import element

__all__ = ["write_page"]


def page_of(result: AuditResult) -> str:
    """Return a page in HTML that fetches nothing."""
    context = {
        "headline": str(result).partition("\n")[0],
        "name": result.name,
        "refuted": result.refuted,
        "founded": result.verdict is not Verdict.NO_VERDICT,
        "verdict": result.verdict.replace("_", " "),
        "rows": result.rows(),
        "picture": Safe(element(result.plot())),
        "seed": result.seed,
    }
    return render_one("audit.html.j2", context)


def write_page(result: AuditResult, path: Path) -> None:
    """Write the page.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    with replacing(path) as new:
        new.write_text(page_of(result), encoding="utf-8", errors="replace")
