"""Write the tables that pages quote from a command anew: ``make tables``.

A table stands between a comment that holds the command and one that says ``end``. The
tests call a page stale whose tables are not what its commands print.
"""

import re
import shlex
import sys
from pathlib import Path

from click.testing import CliRunner

from dpaudit.cli import main

__all__ = ["PAGES", "refreshed"]

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_TABLE = re.compile(r"<!-- dpaudit ([^\n]*) -->\n.*?<!-- end -->", re.DOTALL)


def refreshed(text: str) -> str:
    """Return a page with its tables as the commands print them."""

    def printed(found: re.Match[str]) -> str:
        result = CliRunner().invoke(main, shlex.split(found[1]), catch_exceptions=False)
        if result.exit_code:
            sys.exit(f"dpaudit {found[1]}: {result.output}")
        return f"<!-- dpaudit {found[1]} -->\n{result.stdout}<!-- end -->"

    return _TABLE.sub(printed, text)


if __name__ == "__main__":
    for page in PAGES:
        old = page.read_text(encoding="utf-8")
        page.write_text(refreshed(old), encoding="utf-8")
