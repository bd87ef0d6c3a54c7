"""The section on the auditor, from what ``dpaudit bench-audit`` has left."""

from pathlib import Path
from typing import Any

from dpaudit.reports.bench import study
from dpaudit.reports.escaping import Safe
from dpaudit.reports.sections import Results


def beside(folder: Path) -> study.Summary | None:
    return study.load_summary(folder / "bench")


def context(results: Results) -> dict[str, Any] | None:
    found = results.beside.get("auditor")
    if found is None:
        return None
    return {
        "html": Safe(study.render_html(found, whole=False)),
        "text": Safe(study.render_markdown(found, whole=False)),
    }
