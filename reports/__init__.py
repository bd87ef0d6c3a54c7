"""The comparison report: verdicts, privacy, utility and run time on one page.

`write_report` runs the experiments of a profile (`dpaudit.reports.sections`) and writes
a self-contained HTML page, the same in Markdown, and the tables behind both.

It is imported when it is first used: workers measure, and draw nothing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpaudit.reports.writer import write_report

__all__ = ["write_report"]


def __getattr__(name: str) -> Any:
    if name != "write_report":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dpaudit.reports.writer import write_report

    return write_report
