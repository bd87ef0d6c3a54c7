"""Write anew what pages quote: ``make tables``.

Tables, examples and helps stand between a comment that holds a command and one that
says ``end``, and are what the command prints: as code, unless it prints Markdown. The
words of the glossary stand behind a comment of that name, and what results of the
papers' sizes say (``results.py``) behind one with the name of the experiment. The map
of winners is drawn from the grid that ships, figures of papers from those results. The
tests call a page stale that quotes something else.
"""

import re
import shlex
import sys
from pathlib import Path
from runpy import run_path
from textwrap import fill
from types import SimpleNamespace

from click.testing import CliRunner

from dpaudit.cli import main
from dpaudit.reports.page import GLOSSARY, render_pictures
from dpaudit.reports.sections.choosing.section import winners_map

__all__ = ["PAGES", "refreshed"]

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_QUOTED = re.compile(
    r"<!-- (?:dpaudit (?P<command>[^\n]*)|glossary|results (?P<results>\S+)) -->\n"
    r".*?<!-- end -->",
    re.DOTALL,
)
results = SimpleNamespace(**run_path(str(ROOT / "docs" / "results.py")))


def _printed(command: str) -> str:
    """Return what a command prints, as a page shows it."""
    found = CliRunner(env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"}).invoke(
        main, shlex.split(command), prog_name="dpaudit", catch_exceptions=False
    )
    if found.exit_code:
        sys.exit(f"dpaudit {command}: {found.output}")
    if "--markdown" in command:
        return found.stdout
    return f"```text\n{found.stdout}```\n"


def _words() -> str:
    """Return the words of the glossary, each under a heading of its own."""
    return "\n".join(
        f"## {word}\n\n{fill(text, 89, break_on_hyphens=False)}\n"
        for word, text in GLOSSARY.items()
    )


def refreshed(text: str) -> str:
    """Return a page with what it quotes as it is now."""

    def new(found: re.Match[str]) -> str:
        command = found["command"]
        begin = found[0].partition("\n")[0]
        if found["results"]:
            text = results.said(found["results"])
        else:
            text = _printed(command) if command else _words()
        return f"{begin}\n{text}<!-- end -->"

    return _QUOTED.sub(new, text)


if __name__ == "__main__":
    for page in PAGES:
        old = page.read_text(encoding="utf-8")
        page.write_text(refreshed(old), encoding="utf-8")
    pictures = render_pictures({"winners": (winners_map(None),)})
    pictures |= {f"results/{name}": text for name, text in results.drawn().items()}
    for name, text in pictures.items():
        (ROOT / "docs" / f"{name}.svg").write_text(text, encoding="utf-8")
