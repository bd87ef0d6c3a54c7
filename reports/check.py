"""Check a written site: it is whole, its links lead somewhere, it fetches nothing.

A site is a folder of pages that works wherever the folder is: every address in it is
relative and leads to a file of the folder. No browser is needed; what only a browser
knows, such as colours and widths, is looked at by the tests.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache, cached_property
from html.parser import HTMLParser
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote, urlsplit
from xml.etree.ElementTree import Element

from dpaudit.errors import InputError
from dpaudit.reports.sections import all_sections
from dpaudit.reports.store import STORE

__all__ = ["Site", "faults", "missing"]

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
_SCOPES = {"row", "col", "rowgroup", "colgroup"}


class _Node(Element):
    """An element of a page, with its line and the elements around it."""

    line: int
    around: tuple["_Node", ...]

    @property
    def words(self) -> str:
        return " ".join("".join(self.itertext()).split())

    @property
    def named(self) -> bool:
        return any(self.get(name) for name in _NAMED_BY)

    def has(self, tag: str) -> bool:
        return self.find(f".//{tag}") is not None

    @property
    def silent(self) -> bool:
        """Whether a screen reader passes over it, or it is not seen."""
        return any(
            each.get("aria-hidden") == "true"
            or each.get("role") in {"none", "presentation"}
            or each.get("hidden") is not None
            or re.search(r"display:\s*none", each.get("style", "")) is not None
            for each in (*self.around, self)
        )

    @property
    def spoken_for(self) -> bool:
        """Whether something around it has words for it.

        A label has: the element that it is for may well have a name.
        """
        return any(
            each.tag in {"label", "svg"}
            or (each.get("role") is not None and each.named)
            or (each.tag in {"a", "button", "summary"} and (each.words or each.named))
            for each in self.around
        )

    def addresses(self) -> Iterator[tuple[str, bool]]:
        """Yield what it refers to, and whether that is a link, not to be fetched."""
        kinds = set(self.get("rel", "").lower().split())
        followed = self.tag in {"a", "area"} or (kinds and kinds <= _RELATED)
        styles = [self.words] if self.tag == "style" else []
        for name, value in self.items():
            if name == "href" and followed:
                yield value, True
            elif name in _FETCHING and self.tag != "base":
                yield value, False
            elif name == "srcset":  # several addresses, each before a comma
                parts = (part.split() for part in value.split(","))
                yield from ((part[0], False) for part in parts if part)
            else:
                styles.append(value)
        for style in styles:
            yield from ((address, False) for address in addresses_in_css(style))

    def faults(self) -> Iterator[str]:
        """Yield what is wrong with it by itself, a sentence each."""
        if "failed" in self.get("class", "").split():
            parts = [e.get("id", "") for e in self.around if e.tag == "section"]
            yield f"section {(['', *parts])[-1]!r} failed"
        match self.tag:
            case "base" if self.get("href") is not None:
                yield "<base> changes where every link leads"
            case "img" if self.get("alt") is None and not self.silent:
                yield f"the picture {self.get('src', '')!r} has no alt"
            case "svg" if not (
                self.named or self.has("title") or self.silent or self.spoken_for
            ):
                yield f"the picture {self.get('id', '')!r} has no title"
            case "figure" if not (self.named or self.has("figcaption")):
                yield "a figure has neither a caption nor a label"
            case "th":
                # Within <thead> HTML itself says that a header is that of its column.
                scope = self.get("scope", "").lower()
                column = any(each.tag == "thead" for each in self.around)
                if scope not in _SCOPES and not (column and not scope):
                    yield "a header of a table says no scope"


class _Page(HTMLParser):
    """What a page holds: a tree of its elements, their order, and their ids."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.root = _Node("")
        self.elements: list[_Node] = []
        self._open = [self.root]
        self.feed(html)
        self.close()
        self.ids = Counter(each.get("id") for each in self.elements if each.get("id"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = _Node(tag, {name: (value or "").strip() for name, value in attrs})
        node.line, node.around = self.getpos()[0], tuple(self._open[1:])
        self._open[-1].append(node)
        self.elements.append(node)
        if tag not in _VOID:
            self._open.append(node)

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
        parent = self._open[-1]
        if len(parent):
            parent[-1].tail = (parent[-1].tail or "") + data
        else:
            parent.text = (parent.text or "") + data

    def faults(self) -> Iterator[tuple[int, str]]:
        """Yield what is wrong with the page by itself: lines, and a sentence each."""
        for name, times in self.ids.items():
            if times > 1:
                yield 1, f"id {name!r} is used {times} times"
        for what, there in {
            "<title>": any(each.words for each in self._all(".//head/title")),
            "lang on <html>": any(each.get("lang") for each in self._all(".//html")),
            '<meta name="viewport">': self._all(".//meta[@name='viewport']"),
            "<h1>": self.root.has("h1"),
        }.items():
            if not there:
                yield 1, f"the page has no {what}"
        for each in self.elements:
            yield from ((each.line, wrong) for wrong in each.faults())
            for names in (each.get(name, "") for name in _REFERRING):
                for name in names.split():
                    if name not in self.ids:
                        yield each.line, f"there is no id {name!r} to refer to"
        first, level = self.root.find(".//h1"), 0
        for each in (each for each in self.elements if each.tag in _HEADINGS):
            words, before = each.words, f"<h{level}>" if level else "no other"
            if not words:
                yield each.line, f"the heading <{each.tag}> is empty"
            if each.tag == "h1" and each is not first:
                yield each.line, f"<h1> {words!r} is not the first <h1> of the page"
            elif int(each.tag[1]) > level + 1:
                yield each.line, f"the heading <{each.tag}> {words!r} follows {before}"
            level = int(each.tag[1])

    def _all(self, path: str) -> list[_Node]:
        return [each for each in self.root.iterfind(path) if isinstance(each, _Node)]


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
    found = []
    for each in site.page(page).elements:
        for address, followed in each.addresses():
            if not followed:
                wrong = _fetched(site, page, address)
            elif urlsplit(address).scheme.lower() in _FOLLOWED:
                continue
            elif wrong := site.astray(page, address):
                wrong = f"the link to {address!r} {wrong}"
            if wrong:
                found.append((each.line, wrong))
    return found


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
