"""Check a written site: it is whole, its links lead somewhere, it fetches nothing.

A site is a folder of pages that works wherever the folder is: every address in it is
relative and leads to a file of the folder. No browser is needed; what only a browser
knows, such as colours and widths, is looked at by the tests.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from html.parser import HTMLParser
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote, urlsplit

from dpaudit.errors import InputError
from dpaudit.reports.sections import all_sections
from dpaudit.reports.store import STORE

__all__ = ["Site", "faults", "missing", "strays", "strays_in_styles"]

LARGEST = 10_000_000
"""How many bytes a site has at most: what one reads on a phone, too."""

_FOLLOWED = {"http", "https", "mailto"}
# Attributes that make a browser fetch something. A link in <a href> fetches nothing.
_FETCHING = {"src", "poster", "data", "background", "action", "href", "xlink:href"}
# A <link> fetches nothing if it only says how this page and another are related.
_RELATED = set(
    "alternate author canonical help index license next prev search up".split()
)
_IN_CSS = re.compile(
    r"url\(\s*(?:'([^']*)'|\"([^\"]*)\"|([^)\s]*))|@import\s*(?:'([^']*)'|\"([^\"]*)\")",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(r"\s*(?:/|(?!data:)[a-z][a-z0-9+.-]*:)", re.IGNORECASE)
# Elements without an end tag.
_VOID = set("area base br col embed hr img input link meta source track wbr".split())
_NAMED_BY = ("aria-label", "aria-labelledby", "title")
_REFERRING = ("aria-controls", "aria-describedby", "aria-labelledby", "for")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
# What speaks for the pictures inside it, if it has words of its own.
_CONTROLS = {"a", "button", "summary"}
_WORDED = {*_HEADINGS, *_CONTROLS, "title", "style"}
_SCOPES = {"row", "col", "rowgroup", "colgroup"}


@dataclass
class _Element:
    tag: str
    own: dict[str, str]  # its attributes
    line: int
    around: tuple["_Element", ...]
    texts: list[str] = field(default_factory=list)
    inside: set[str] = field(default_factory=set)  # the tags of its descendants

    @property
    def words(self) -> str:
        return " ".join("".join(self.texts).split())

    @property
    def named(self) -> bool:
        return any(self.own.get(name) for name in _NAMED_BY)

    @property
    def silent(self) -> bool:
        """Whether a screen reader passes over it, or nobody sees it."""
        return any(
            each.own.get("aria-hidden") == "true"
            or each.own.get("role") in {"none", "presentation"}
            or "hidden" in each.own
            or re.search(r"display:\s*none", each.own.get("style", "")) is not None
            for each in (*self.around, self)
        )

    @property
    def spoken_for(self) -> bool:
        """Whether something around it has words for it.

        A label has: the element that it is for may well have a name.
        """
        return any(
            each.tag in {"label", "svg"}
            or ("role" in each.own and each.named)
            or (each.tag in _CONTROLS and bool(each.words or each.named))
            for each in self.around
        )


class _Page(HTMLParser):
    """What a page holds: its elements in order, ids, and addresses by their lines."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[_Element] = []
        self._open: list[_Element] = []
        self.feed(html)
        self.close()
        names = [each.own["id"] for each in self.elements if each.own.get("id")]
        self.ids = Counter(names)
        self.links: list[tuple[int, str]] = []
        self.fetched: list[tuple[int, str]] = []
        for each in self.elements:
            self._note_addresses(each)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = {name: (value or "").strip() for name, value in attrs}
        self.elements.append(_Element(tag, own, self.getpos()[0], tuple(self._open)))
        for each in self._open:
            each.inside.add(tag)
        if tag not in _VOID:
            self._open.append(self.elements[-1])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # Outside of SVG the slash means nothing, and the end comes with the parent's.
        self.handle_starttag(tag, attrs)
        if tag not in _VOID and any(each.tag == "svg" for each in self._open):
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        places = [i for i, each in enumerate(self._open) if each.tag == tag]
        if places:
            del self._open[places[-1] :]

    def handle_data(self, data: str) -> None:
        for each in self._open:
            if each.tag in _WORDED:
                each.texts.append(data)

    def _note_addresses(self, element: _Element) -> None:
        kinds = set(element.own.get("rel", "").lower().split())
        followed = element.tag in {"a", "area"} or (kinds and kinds <= _RELATED)
        found = (
            addresses_in_css(" ".join(element.texts)) if element.tag == "style" else []
        )
        for name, value in element.own.items():
            if name == "href" and followed:
                self.links.append((element.line, value))
            elif name in _FETCHING and element.tag != "base":
                found.append(value)
            elif name == "srcset":  # several addresses, each before a comma
                parts = (part.split() for part in value.split(","))
                found += [part[0] for part in parts if part]
            elif "url(" in value:
                found += addresses_in_css(value)
        self.fetched += [(element.line, address) for address in found]

    def faults(self) -> Iterator[tuple[int, str]]:
        """Yield what is wrong with the page by itself: lines, and a sentence each."""
        for name, times in self.ids.items():
            if times > 1:
                yield 1, f"id {name!r} is used {times} times"
        lacking = dict.fromkeys(
            ("<title>", "lang on <html>", '<meta name="viewport">', "<h1>")
        )
        level = 0
        for each in self.elements:
            tag, own = each.tag, each.own
            for names in (own.get(name, "") for name in _REFERRING):
                for name in names.split():
                    if name not in self.ids:
                        yield each.line, f"there is no id {name!r} to refer to"
            if "failed" in own.get("class", "").split():
                parts = [e.own.get("id", "") for e in each.around if e.tag == "section"]
                yield each.line, f"section {(['', *parts])[-1]!r} failed"
            there = ""
            if tag == "title" and each.words and each.around[-1].tag == "head":
                there = "<title>"
            elif tag == "html" and own.get("lang"):
                there = "lang on <html>"
            elif tag == "meta" and own.get("name") == "viewport":
                there = '<meta name="viewport">'
            elif tag == "base" and "href" in own:
                yield each.line, "<base> changes where every link leads"
            elif tag == "img" and "alt" not in own and not each.silent:
                yield each.line, f"the picture {own.get('src', '')!r} has no alt"
            elif tag == "svg" and not (
                each.named or "title" in each.inside or each.silent or each.spoken_for
            ):
                yield each.line, f"the picture {own.get('id', '')!r} has no title"
            elif tag == "figure" and not (each.named or "figcaption" in each.inside):
                yield each.line, "a figure has neither a caption nor a label"
            elif tag == "th":
                # Within <thead> HTML itself says that a header is that of its column.
                scope = own.get("scope", "").lower()
                column = any(e.tag == "thead" for e in each.around)
                if scope not in _SCOPES and not (column and not scope):
                    yield each.line, "a header of a table says no scope"
            elif tag in _HEADINGS:
                words, before = each.words, f"<h{level}>" if level else "no other"
                if not words:
                    yield each.line, f"the heading <{tag}> is empty"
                if tag == "h1" and "<h1>" not in lacking:
                    said = f"<h1> {words!r} is not the first <h1> of the page"
                    yield each.line, said
                elif int(tag[1]) > level + 1:
                    yield each.line, f"the heading <{tag}> {words!r} follows {before}"
                there, level = f"<{tag}>", int(tag[1])
            lacking.pop(there, None)
        yield from ((1, f"the page has no {what}") for what in lacking)


def elsewhere(address: str) -> bool:
    """Return whether an address leads out of the folder of the page.

    Examples
    --------
    >>> [elsewhere(a) for a in ("//cdn.org/x.js", "https://a.org", "file:/x", "/x")]
    [True, True, True, True]
    >>> [elsewhere(a) for a in ("../a.html#b", "data:image/png;base64,AA", "#top")]
    [False, False, False]
    """
    return _ELSEWHERE.match(address) is not None


def addresses_in_css(text: str) -> list[str]:
    """Return what a stylesheet, or a `style` attribute, refers to.

    Examples
    --------
    >>> addresses_in_css("a { fill: url(#b) } @import 'c.css'; d {}")
    ['#b', 'c.css']
    """
    return ["".join(each or "" for each in m.groups()) for m in _IN_CSS.finditer(text)]


class Site:
    """A folder of pages, or one page.

    Parameters
    ----------
    path : Path
        A folder; or a page, and then that page alone is checked.

    Raises
    ------
    InputError
        If it cannot be read, or there is no page.

    Examples
    --------
    >>> Site(Path("nowhere"))
    Traceback (most recent call last):
        ...
    dpaudit.errors.InputError: cannot read 'nowhere': No such file or directory
    """

    def __init__(self, path: Path) -> None:
        self.alone = not path.is_dir()
        self.root = path.parent if self.alone else path
        self.page = cache(lambda name: _Page(self.text(name)))
        self.pages = [path.name]
        if not self.alone:
            self.pages = [name for name in self.files if name.endswith(".html")]
        if not self.pages:
            raise InputError(f"there is no page in {str(path)!r}")
        for name in self.pages:
            self.page(name)

    @cached_property
    def files(self) -> dict[str, int]:
        """The size in bytes of each file, by its path within the folder.

        Files of the store, in which a report keeps its work, are not part of the site,
        nor is what is hidden.
        """
        found = {}
        for path in sorted(self.root.rglob("*")):
            parts = path.relative_to(self.root).parts
            hidden = any(part.startswith((".", STORE)) for part in parts)
            if not hidden and path.is_file():
                found["/".join(parts)] = path.stat().st_size
        return found

    def text(self, name: str) -> str:
        """Return what is written in a file."""
        path = self.root / name
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot read {str(path)!r}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise InputError(f"cannot read {str(path)!r}: it is no text") from error

    def astray(self, page: str, address: str) -> str | None:
        """Return what is wrong with an address on a page; None if nothing is.

        Parameters
        ----------
        page : str
            The path of the page, or stylesheet, within the folder.
        address : str
        """
        if elsewhere(address):
            return "leads out of the folder"
        parts = urlsplit(address)
        path, fragment = unquote(parts.path), unquote(parts.fragment)
        target = normpath(join(dirname(page), path)) if path else page
        if target.startswith("../") and not self.alone:
            return "leads out of the folder"
        if not (self.root / target).is_file():
            return "leads to no file"
        if fragment in {"", "top"} or not target.endswith(".html"):
            return None
        if fragment not in self.page(target).ids:
            return f"leads to nothing: {target} has no id {fragment!r}"
        return None


def faults(site: Site) -> list[str]:
    """Return one sentence for everything that is wrong with the pages of a site.

    Each begins with the page and the line. That holds for any site, not for the report
    alone.
    """
    found = []
    for page in site.pages:
        here = [*site.page(page).faults(), *strays(site, page)]
        found += [f"{page}:{line}: {what}" for line, what in sorted(here)]
    if site.alone:
        return found
    found += strays_in_styles(site)
    if (size := sum(site.files.values())) > LARGEST:
        found.append(
            f"the files have {size / 1e6:.1f} MB together, more than {LARGEST / 1e6:g}"
        )
    return found


def strays(site: Site, page: str) -> list[tuple[int, str]]:
    """Return the lines of a page with links that lead nowhere, or what it fetches."""
    found = [
        (line, f"the link to {address!r} {wrong}")
        for line, address in site.page(page).links
        if urlsplit(address).scheme.lower() not in _FOLLOWED
        and (wrong := site.astray(page, address))
    ]
    return found + [
        (line, wrong)
        for line, address in site.page(page).fetched
        if (wrong := _fetched(site, page, address))
    ]


def strays_in_styles(site: Site) -> list[str]:
    """Return one sentence for each thing that a stylesheet fetches, or lacks."""
    return [
        f"{name}: {wrong}"
        for name in site.files
        if name.endswith(".css")
        for address in addresses_in_css(site.text(name))
        if (wrong := _fetched(site, name, address))
    ]


def _fetched(site: Site, page: str, address: str) -> str | None:
    if address.startswith("data:") or not address:
        return None
    if elsewhere(address):
        return f"the page fetches from elsewhere: {address!r}"
    wrong = site.astray(page, address)
    return wrong and f"{address!r}, which the page needs, {wrong}"


def missing(site: Site) -> list[str]:
    """Return one sentence for each section and figure of the report that is nowhere."""
    whole = [each for each in all_sections().values() if not each.optional]
    ids = {name for page in site.pages for name in site.page(page).ids}
    parts = [part for section in whole for part in section.parts]
    return [
        f"section {part.name!r} ({part.heading}) is missing"
        for part in sorted(parts, key=lambda part: part.place)
        if part.name not in ids
    ] + [
        f"figure {name!r} is missing"
        for section in whole
        for name in section.figures
        if not ids & {f"figure-{name}-{width}" for width in ("wide", "narrow")}
    ]
