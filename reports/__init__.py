"""The comparison report: verdicts, privacy, utility, run time, theorems, as a site.

`write_report` runs the experiments of a profile (`dpaudit.reports.sections`) and writes
the site (`dpaudit.reports.site`), the same in Markdown, and the tables behind both.
`compare` holds mechanisms, your own among them, against PCA without noise on rows of
your own.

Both are imported when they are first used: workers measure, and draw nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpaudit.reports.comparison.run import compare
    from dpaudit.reports.writer import write_report

__all__ = ["compare", "write_report"]

_HOMES = {"compare": "comparison.run", "write_report": "writer"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
