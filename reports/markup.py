"""What a written page holds, read from its HTML: ids, links, pictures, and its faults.

No browser and no other file is needed. What needs the files beside the page, whether a
link leads anywhere, is for `dpaudit.reports.check`. What needs colours and sizes is for
a browser.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import TypeAlias

__all__ = ["Markup", "addresses_in_css", "elsewhere", "read_markup"]

Attributes: TypeAlias = dict[str, str]

# Attributes that make a browser fetch something. A link in <a href> fetches nothing.
_FETCHING = {"src", "poster", "data", "background", "action", "href", "xlink:href"}
# A <link> fetches nothing if it only says how this page and another are related.
_RELATED = {
    *("alternate", "author", "canonical", "help", "index", "license"),
    *("next", "prev", "search", "up"),
}
_IN_CSS = re.compile(
    r"url\(\s*(?:'([^']*)'|\"([^\"]*)\"|([^)\s]*))|@import\s*(?:'([^']*)'|\"([^\"]*)\")",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(r"\s*(?:(?!data:)[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)
# Elements without an end tag.
_VOID = {
    *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta"),
    *("source", "track", "wbr"),
}
_NAMED_BY = ("aria-label", "aria-labelledby", "title")
_REFERRING = ("aria-controls", "aria-describedby", "aria-labelledby", "for")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
# What speaks for the pictures inside it, if it has words of its own.
_CONTROLS = {"a", "button", "summary"}
_WORDED = {*_HEADINGS, *_CONTROLS, "title"}
_SCOPES = {"row", "col", "rowgroup", "colgroup"}


@dataclass
class Markup:
    """A page as its checks need it; each place is the number of a line.

    Parameters
    ----------
    ids : Counter of str
        How often each id is used.
    figures : set of str
        The ids of the SVGs.
    links : list of (int, str)
        Where each link leads that a reader may follow.
    fetched : list of (int, str)
        What a browser loads to show the page.
    references : list of (int, str)
        Ids that something on the page refers to.
    faults : list of (int, str)
        What is wrong with the page by itself: a sentence each.
    """

    ids: Counter[str] = field(default_factory=Counter)
    figures: set[str] = field(default_factory=set)
    links: list[tuple[int, str]] = field(default_factory=list)
    fetched: list[tuple[int, str]] = field(default_factory=list)
    references: list[tuple[int, str]] = field(default_factory=list)
    faults: list[tuple[int, str]] = field(default_factory=list)


def read_markup(html: str) -> Markup:
    """Return what a page holds.

    Examples
    --------
    >>> page = read_markup('<h1 id="top">Found</h1><a href="more.html">more</a>')
    >>> page.links, list(page.ids)
    ([(1, 'more.html')], ['top'])
    >>> page.faults[0]
    (1, 'the page has no <title>')
    """
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.finish()


def elsewhere(address: str) -> bool:
    """Return whether an address leads out of the folder of the page.

    Examples
    --------
    >>> [elsewhere(a) for a in ("//cdn.org/x.js", "https://a.org", "file:/x", "/x")]
    [True, True, True, True]
    >>> [elsewhere(a) for a in ("../a.html#b", "data:image/png;base64,AA", "#top")]
    [False, False, False]
    """
    return address.startswith("/") or _ELSEWHERE.match(address) is not None


def addresses_in_css(text: str) -> Iterator[str]:
    """Yield what a stylesheet, or a `style` attribute, refers to.

    Examples
    --------
    >>> list(addresses_in_css("a { fill: url(#b) } @import 'c.css'; d {}"))
    ['#b', 'c.css']
    """
    for match in _IN_CSS.finditer(text):
        yield next((each for each in match.groups() if each is not None), "")


@dataclass
class _Element:
    tag: str
    attributes: Attributes
    line: int
    text: list[str] = field(default_factory=list)
    inside: set[str] = field(default_factory=set)  # the tags of its descendants
    untitled: list["_Element"] = field(default_factory=list)  # pictures

    def has_name(self) -> bool:
        return any(self.attributes.get(name, "").strip() for name in _NAMED_BY)

    def has_role(self) -> bool:
        return "role" in self.attributes

    def is_silent(self) -> bool:
        """Return whether a screen reader passes over it, or nobody sees it."""
        return (
            self.attributes.get("aria-hidden") == "true"
            or self.attributes.get("role") in {"none", "presentation"}
            or "hidden" in self.attributes
            or bool(re.search(r"display:\s*none", self.attributes.get("style", "")))
        )

    def words(self) -> str:
        return " ".join("".join(self.text).split())


class _Reader(HTMLParser):
    """Walks over a page; `finish` gives what was found."""

    def __init__(self) -> None:
        super().__init__()
        self._found = Markup()
        self._open: list[_Element] = []
        self._headings: Counter[str] = Counter()
        self._level = 0
        self._language = self._title = self._viewport = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        line = self.getpos()[0]
        attributes = {name: (value or "").strip() for name, value in attrs}
        element = _Element(tag, attributes, line)
        for each in self._open:
            each.inside.add(tag)
        self._note(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # Outside of SVG the slash means nothing, and the end comes with the parent's.
        self.handle_starttag(tag, attrs)
        if any(each.tag == "svg" for each in self._open) and tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if not any(each.tag == tag for each in self._open):
            return
        while True:
            element = self._open.pop()
            self._ended(element)
            if element.tag == tag:
                return

    def handle_data(self, data: str) -> None:
        for each in self._open:
            if each.tag in _WORDED:
                each.text.append(data)
        if self._open and self._open[-1].tag == "style":
            self._fetch(addresses_in_css(data), self.getpos()[0])

    def finish(self) -> Markup:
        """Return what was found, the faults in the order of the page."""
        while self._open:
            self._ended(self._open.pop())
        found = self._found
        for there, what in (
            (self._title, "<title>"),
            (self._language, "lang on <html>"),
            (self._viewport, '<meta name="viewport">'),
            (self._headings["h1"], "<h1>"),
        ):
            if not there:
                found.faults.append((1, f"the page has no {what}"))
        for name, times in found.ids.items():
            if times > 1:
                found.faults.append((1, f"id {name!r} is used {times} times"))
        for line, name in found.references:
            if name not in found.ids:
                found.faults.append((line, f"there is no id {name!r} to refer to"))
        found.faults.sort(key=lambda fault: fault[0])
        return found

    def _fault(self, element: _Element, sentence: str) -> None:
        self._found.faults.append((element.line, sentence))

    def _fetch(self, addresses: Iterable[str], line: int) -> None:
        self._found.fetched += [(line, address) for address in addresses]

    def _note(self, element: _Element) -> None:
        """Take down what is known when an element begins."""
        found, tag, own = self._found, element.tag, element.attributes
        if name := own.get("id"):
            found.ids[name] += 1
            if tag == "svg":
                found.figures.add(name)
        for each in _REFERRING:
            names = own.get(each, "").split()
            found.references += [(element.line, name) for name in names]
        self._note_addresses(element)
        if "failed" in own.get("class", "").split():
            around = [each for each in self._open if each.tag == "section"]
            name = around[-1].attributes.get("id", "") if around else ""
            self._fault(element, f"section {name!r} failed")
        if tag == "html":
            self._language = bool(own.get("lang"))
        elif tag == "meta" and own.get("name") == "viewport":
            self._viewport = True
        elif tag == "img" and "alt" not in own and not self._silent(element):
            self._fault(element, f"the picture {own.get('src', '')!r} has no alt")
        elif tag == "th":
            self._check_header(element)

    def _note_addresses(self, element: _Element) -> None:
        tag, own, line = element.tag, element.attributes, element.line
        kinds = set(own.get("rel", "").lower().split())
        followed = tag in {"a", "area"} or (kinds and kinds <= _RELATED)
        for name, value in own.items():
            if name == "href" and tag == "base":
                self._fault(element, "<base> changes where every link leads")
            elif name == "href" and followed:
                self._found.links.append((line, value))
            elif name in _FETCHING:
                self._fetch([value], line)
            elif name == "srcset":  # several addresses, each before a comma
                each = (part.split() for part in value.split(","))
                self._fetch([part[0] for part in each if part], line)
            elif "url(" in value:
                self._fetch(addresses_in_css(value), line)

    def _ended(self, element: _Element) -> None:
        """Take down what is known only when an element has ended."""
        tag = element.tag
        if tag == "title" and self._open and self._open[-1].tag == "head":
            self._title = bool(element.words())
        elif tag == "svg":
            titled = element.has_name() or "title" in element.inside
            if not (titled or self._silent(element) or self._spoken_for()):
                around = [each for each in self._open if each.tag in _CONTROLS]
                if around:
                    around[-1].untitled.append(element)
                else:
                    self._untitled([element])
        elif tag in _CONTROLS:
            if not (element.words() or element.has_name()):
                self._untitled(element.untitled)
        elif tag == "figure":
            if not element.has_name() and "figcaption" not in element.inside:
                self._fault(element, "a figure has neither a caption nor a label")
        elif tag in _HEADINGS:
            self._check_heading(element)

    def _check_heading(self, element: _Element) -> None:
        level, shown = _HEADINGS.index(element.tag) + 1, f"<{element.tag}>"
        if not (words := element.words()):
            self._fault(element, f"the heading {shown} is empty")
        if level == 1 and self._headings["h1"]:
            self._fault(element, f"{shown} {words!r} is not the first <h1> of the page")
        elif level > self._level + 1:
            before = f"<h{self._level}>" if self._level else "no other"
            self._fault(element, f"the heading {shown} {words!r} follows {before}")
        self._headings[element.tag] += 1
        self._level = level

    def _check_header(self, element: _Element) -> None:
        # Within <thead> HTML itself says that a header is that of its column.
        scope = element.attributes.get("scope", "").lower()
        column = any(each.tag == "thead" for each in self._open)
        if scope not in _SCOPES and not (column and not scope):
            self._fault(element, "a header of a table says no scope")

    def _silent(self, element: _Element) -> bool:
        return any(each.is_silent() for each in (*self._open, element))

    def _untitled(self, pictures: list[_Element]) -> None:
        for each in pictures:
            name = each.attributes.get("id", "")
            self._fault(each, f"the picture {name!r} has no title")

    def _spoken_for(self) -> bool:
        """Return whether something around has a role, and a name for it all.

        Or is a label: the element that it is for may well have a name.
        """
        return any(
            each.tag in {"label", "svg"} or (each.has_role() and each.has_name())
            for each in self._open
        )
