"""Check a written page: it has every section and figure, and fetches nothing."""

import re
from html.parser import HTMLParser

from dpaudit.reports.sections import all_sections

__all__ = ["problems"]

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
        self.failed: list[str] = []
        self._in_style = False
        self._section = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_style = tag == "style"
        if tag == "section":
            self._section = dict(attrs).get("id") or ""
        if dict(attrs).get("class") == "failed":
            self.failed.append(self._section)
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
    "section 'verdicts' (Verdicts) is missing"
    """
    page = _Page()
    page.feed(html)
    page.close()
    whole = [each for each in all_sections().values() if not each.optional]
    parts = [part for section in whole for part in section.parts]
    found = [
        f"section {part.name!r} ({part.heading}) is missing"
        for part in sorted(parts, key=lambda part: part.place)
        if part.name not in page.ids
    ]
    found += [
        f"figure {name!r} is missing"
        for section in whole
        for name in section.figures
        if not page.svgs & {f"figure-{name}-{width}" for width in ("wide", "narrow")}
    ]
    found += [f"section {name!r} failed" for name in page.failed]
    found += [f"the page fetches from elsewhere: {what}" for what in page.fetched]
    return found
