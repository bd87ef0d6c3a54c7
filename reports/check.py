"""Check a written report: ``python -m dpaudit.reports.check build/report/index.html``.

The exit code is 0 if the page has every section and every figure and fetches nothing
from elsewhere, 1 if it does not (each problem is named), 2 if it cannot be read.
"""

import re
import sys
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

from dpaudit.reports.page import FIGURES, SECTIONS

__all__ = ["main", "problems"]

# Attributes that make a browser fetch something. A link in <a href> fetches nothing.
_FETCHING = {"src", "srcset", "poster", "data", "background", "action", "xlink:href"}
# A srcset lists several addresses, each after a comma.
_ELSEWHERE = re.compile(r"(?:^|,)\s*(?:https?:)?//", re.IGNORECASE)
_STYLE_FETCH = re.compile(r"(?:url\(|@import)\s*['\"]?\s*(?:https?:)?//", re.IGNORECASE)


class _Page(HTMLParser):
    """Collects the ids, the SVGs inside each section, and what would be fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.svgs: set[str] = set()
        self.fetched: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_style = tag == "style"
        for name, value in attrs:
            text = (value or "").strip()
            if name == "id":
                self.ids.add(text)
                if tag == "svg":
                    self.svgs.add(text)
            fetches = name in _FETCHING or (name == "href" and tag != "a")
            if (fetches and _ELSEWHERE.search(text)) or (
                name == "style" and _STYLE_FETCH.search(text)
            ):
                self.fetched.append(f"<{tag} {name}={text!r}>")

    def handle_endtag(self, tag: str) -> None:
        if tag == "style":
            self._in_style = False

    def handle_data(self, data: str) -> None:
        if self._in_style and (match := _STYLE_FETCH.search(data)):
            self.fetched.append(f"<style> with {match[0]!r}")


def problems(html: str) -> list[str]:
    """Return one sentence for everything that is wrong with a page.

    Examples
    --------
    >>> problems("<html></html>")[0]
    "section 'answer' (What this report says) is missing"
    """
    page = _Page()
    page.feed(html)
    page.close()
    found = [
        f"section {name!r} ({heading}) is missing"
        for name, heading in SECTIONS.items()
        if name not in page.ids
    ]
    found += [
        f"figure {name!r} is missing"
        for name in FIGURES
        if not any(svg.startswith(f"figure-{name}") for svg in page.svgs)
    ]
    found += [f"the page fetches from elsewhere: {what}" for what in page.fetched]
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the page named on the command line, and return the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if len(given) != 1:
        print("usage: python -m dpaudit.reports.check INDEX.HTML", file=sys.stderr)
        return 2
    try:
        html = Path(given[0]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        print(f"cannot read {given[0]!r}: {error}", file=sys.stderr)
        return 2
    found = problems(html)
    for problem in found:
        print(f"{given[0]}: {problem}", file=sys.stderr)
    if not found:
        print(f"{given[0]}: all {len(SECTIONS)} sections, nothing fetched")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
