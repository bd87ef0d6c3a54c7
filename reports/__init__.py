"""The comparison report: verdicts, privacy, utility and run time on one page.

`write_report` runs the experiments of a profile (`dpaudit.reports.experiments`) and
writes a self-contained HTML page, the same in Markdown, and the tables behind both.
"""

from dpaudit.reports.writer import write_report

__all__ = ["write_report"]
