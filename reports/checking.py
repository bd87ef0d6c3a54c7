"""Whether a written site is whole, and a report says things in their order.

A site is a folder of pages that works wherever the folder is: every address in it is
relative and leads to a file of the folder, and nothing is fetched from elsewhere. Of a
report there are also the headings, what refers to what, whether every section and
figure is on some page, in which order pages say things (the first one who fell, what to
take, and the table of all mechanisms; a section two sentences and a picture before any
list of numbers), and whether that table and ``report.json`` have the same verdicts.
What only a browser knows, such as colours, heights, and what pictures are called, is
looked at by ``make browser``.
"""

import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote, urlsplit

from dpaudit.errors import InputError
from dpaudit.reports.sections import all_sections
from dpaudit.strict_json import read_json

__all__ = ["Site"]

LARGEST = 10_000_000
"""How many bytes a report has at most: what one reads on a phone, too."""

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
FIRST = ("fell", "take", "mechanisms")
"""The sections with which the first page begins."""
COLUMNS = (
    *("Mechanism", "Family", "Releases", "Claim", "Verdict", "Bound and event"),
    *("Exact loss", "Error", "Cost of a draw", "Source"),
)
"""Those of its table of all mechanisms."""
_LISTS = {"table", "ul", "ol", "dl"}
_SENTENCE = re.compile(r"[.?!]’?(?=\s|$)")
_REFERRING = ("aria-controls", "aria-describedby", "aria-labelledby", "for")


def in_css(text: str) -> list[str]:
    """Return what a stylesheet, or a `style` attribute, refers to."""
    return ["".join(each or "" for each in m.groups()) for m in _IN_CSS.finditer(text)]


class Page(HTMLParser):
    """The ids of a page, its addresses, and what is wrong with it by itself."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: Counter[str] = Counter()
        self.addresses: list[tuple[int, str, bool]] = []  # line, what, if it is a link
        self.faults: list[tuple[int, str]] = []
        # What is in <main>, in order: tags, with the id or the words that belong to it.
        self.parts: list[tuple[str, str]] = []
        self._there, self._references = set[str](), list[tuple[int, str]]()
        self._words: list[str] | None = None  # of a heading, a title or a style
        self._badge = False  # whether words of a verdict follow
        self._level, self._section, self._head = 0, "", False
        self.feed(html)
        self.close()
        twice = ((i, n) for i, n in self.ids.items() if n > 1)
        self.faults += [(1, f"id {i!r} is used {n} times") for i, n in twice]
        for what in ("<title>", "lang on <html>", '<meta name="viewport">', "<h1>"):
            if what not in self._there:
                self.faults.append((1, f"the page has no {what}"))
        for line, name in self._references:
            if name not in self.ids:
                self.faults.append((line, f"there is no id {name!r} to refer to"))

    def _wrong(self, what: str) -> None:
        self.faults.append((self.getpos()[0], what))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = {name: (value or "").strip() for name, value in attrs}
        line = self.getpos()[0]
        if own.get("id"):
            self.ids[own["id"]] += 1
        self._references += [
            (line, each) for name in _REFERRING for each in own.get(name, "").split()
        ]
        self._take_addresses(tag, own, line)
        if re.fullmatch("h[1-6]|title|style|p|th", tag):
            self._words = []
        if tag == "section":
            self._section = own.get("id", "")
        if tag in {"main", "aside", "section", "figure", *_LISTS}:
            self.parts.append((tag, own.get("id", "")))
        if tag == "a":
            self.parts.append((tag, own.get("href", "")))
        self._badge = tag == "span" and "badge" in own.get("class", "").split()
        if tag in {"thead", "head"}:
            self._head = True
        if "failed" in own.get("class", "").split():
            self._wrong(f"section {self._section!r} failed")
        if tag == "html" and own.get("lang"):
            self._there.add("lang on <html>")
        if tag == "meta" and own.get("name") == "viewport":
            self._there.add('<meta name="viewport">')
        if tag == "base" and "href" in own:
            self._wrong("<base> changes where every link leads")
        if tag == "img" and "alt" not in own:
            self._wrong(f"the picture {own.get('src', '')!r} has no alt")
        # Within <thead> HTML itself says that a header is that of its column.
        if tag == "th" and not re.fullmatch(
            "(row|col)(group)?", own.get("scope", "col" * self._head)
        ):
            self._wrong("a header of a table says no scope")

    def _take_addresses(self, tag: str, own: dict[str, str], line: int) -> None:
        kinds = set(own.get("rel", "").lower().split())
        followed = tag in {"a", "area"} or (kinds and kinds <= _RELATED)
        for name, value in own.items():
            if name == "href" and followed:
                self.addresses.append((line, value, True))
            elif name in _FETCHING and tag != "base":
                self.addresses.append((line, value, False))
            elif name == "srcset":  # several addresses, each before a comma
                parts = (part.split() for part in value.split(","))
                self.addresses += [(line, part[0], False) for part in parts if part]
            else:
                self.addresses += [(line, each, False) for each in in_css(value)]

    def handle_data(self, data: str) -> None:
        if self._badge:
            self.parts.append(("badge", data))
            self._badge = False
        if self._words is not None:
            self._words.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in {"thead", "head"}:
            self._head = False
        if self._words is None or not re.fullmatch("h[1-6]|title|style|p|th", tag):
            return
        words, self._words = " ".join("".join(self._words).split()), None
        if tag in {"p", "th"}:
            self.parts.append((tag, words))
            return
        line = self.getpos()[0]
        if tag == "style":
            self.addresses += [(line, each, False) for each in in_css(words)]
        elif tag == "title":
            self._there |= {"<title>"} if words and self._head else set()
        else:
            self._heading(tag, int(tag[1]), words)

    def _heading(self, tag: str, level: int, words: str) -> None:
        before = f"<h{self._level}>" if self._level else "no other"
        if not words:
            self._wrong(f"the heading <{tag}> is empty")
        if tag == "h1" and "<h1>" in self._there:
            self._wrong(f"<h1> {words!r} is not the first <h1> of the page")
        elif level > self._level + 1:
            self._wrong(f"the heading <{tag}> {words!r} follows {before}")
        self._there |= {"<h1>"} if tag == "h1" else set()
        self._level = level


class Site:
    """The files of a folder, but for those that are hidden, and its pages."""

    def __init__(self, root: Path) -> None:
        self.root = root
        paths = [path for path in sorted(root.rglob("*")) if path.is_file()]
        self.files = {path.relative_to(root).as_posix(): path for path in paths}
        self.pages = {
            name: Page(self.text(name)) for name in self.files if name.endswith(".html")
        }

    def text(self, name: str) -> str:
        """Return what is written in a file."""
        return self.files[name].read_text(encoding="utf-8")

    def astray(self, page: str, address: str) -> str:
        """Return what is wrong with an address on a page; nothing if nothing is."""
        if _ELSEWHERE.match(address):
            return "leads out of the folder"
        parts = urlsplit(address)
        path, fragment = unquote(parts.path), unquote(parts.fragment)
        target = normpath(join(dirname(page), path)) if path else page
        if target.startswith("../"):
            return "leads out of the folder"
        if target not in self.files:
            return "leads to no file"
        there = self.pages[target].ids if target in self.pages else {fragment}
        if fragment in {"", "top", *there}:
            return ""
        return f"leads to nothing: {target} has no id {fragment!r}"

    def strays(self) -> Iterator[tuple[str, int, str]]:
        """Yield links that lead nowhere, and what is fetched from elsewhere."""
        pages = self.pages.items()
        every = [(name, *each) for name, page in pages for each in page.addresses]
        for name in self.files:
            if name.endswith(".css"):
                found = in_css(self.text(name))
                every += [(name, 1, each, False) for each in found]
        for name, line, address, followed in every:
            if followed and urlsplit(address).scheme.lower() in _FOLLOWED:
                continue
            if not followed and (address.startswith("data:") or not address):
                continue
            if wrong := self.astray(name, address):
                told = f"the link to {address!r} {wrong}"
                if not followed:
                    told = f"{address!r}, which the page needs, {wrong}"
                    if _ELSEWHERE.match(address):
                        told = f"the page fetches from elsewhere: {address!r}"
                yield name, line, told

    def faults(self, *more: tuple[str, int, str]) -> list[str]:
        """Return a sentence for each address that is wrong: all that a theme allows."""
        every = sorted([*more, *self.strays()])
        return [f"{name}:{line}: {what}" for name, line, what in every]

    def check(self, *sections: str) -> list[str]:
        """Return all that is wrong with a report, or with some sections of one."""
        return self.report_faults() + self.missing(*sections) + self.laws(*sections)

    def report_faults(self) -> list[str]:
        """Return what is wrong with the pages of a report, a sentence each."""
        own = ((n, *each) for n, page in self.pages.items() for each in page.faults)
        found = self.faults(*own)
        size = sum(
            path.stat().st_size
            for name, path in self.files.items()
            if not re.search(r"(^|/)(\.|work\.db)", name)  # not part of the site
        )
        if size > LARGEST:
            found.append(
                f"the files have {size / 1e6:.1f} MB, more than {LARGEST / 1e6:g}"
            )
        return found

    def laws(self, *sections: str) -> list[str]:
        """Return a sentence for each page that does not say things in their order."""
        every = all_sections()
        whole = [name for name, each in every.items() if each.figures]
        return [
            *self._first(),
            *(
                fault
                for name in whole
                if not sections or name in sections
                for fault in self._section(name)
            ),
        ]

    def _first(self) -> Iterator[str]:
        name = "index.html"
        shown = self.pages[name].parts if name in self.pages else []
        told = [what for tag, what in shown if tag == "section"]
        if tuple(told[: len(FIRST)]) != FIRST:
            yield f"{name}: it begins with {told[:3]}, not with {list(FIRST)}"
            return
        start = shown.index(("section", "mechanisms"))
        rest = shown[start:]
        ends = [i for i, each in enumerate(rest) if each[0] in ("section", "aside")]
        table = rest[: ends[1]] if len(ends) > 1 else rest
        if any(tag == "dl" for tag, _ in shown[:start]):
            yield f"{name}: definitions stand before the table of mechanisms"
        heads = [words.rstrip("? ") for tag, words in table if tag == "th"]
        if sum(tag == "table" for tag, _ in table) != 1 or (
            tuple(heads[: len(COLUMNS)]) != COLUMNS
        ):
            yield f"{name}: there is no one table of mechanisms with all columns"
        rows = {what for tag, what in table if tag == "a"}
        for page in self.pages:
            if page.startswith("mechanisms/") and page not in rows:
                yield f"{name}: {page} is in no row of the table of mechanisms"
        if "report.json" in self.files:
            yield from self._verdicts(name, table)

    def _verdicts(self, name: str, table: list[tuple[str, str]]) -> Iterator[str]:
        """Yield rows whose verdict is not that of the audits in ``report.json``."""
        audits: dict[str, set[str]] = {}
        try:
            for each in read_json(self.root / "report.json")["verdicts"]:
                told = audits.setdefault(each["mechanism"], set())
                told.add("" + each["verdict"])
        except InputError as error:
            yield str(error)
            return
        except (KeyError, TypeError):
            yield "report.json has no verdicts of mechanisms"
            return
        row = ""
        for tag, what in table:
            if tag == "a" and what.startswith("mechanisms/"):
                row = what.removeprefix("mechanisms/").removesuffix(".html")
            told = audits.get(row, set())
            if tag == "badge" and (
                (what == "REFUTED") != ("REFUTED" in told)
                or (what == "NOT REFUTED" and "NOT_REFUTED" not in told)
            ):
                audited = ", ".join(sorted(told)) or "no audit"
                yield f"{name}: {row} is {what}, in report.json {audited}"

    def _section(self, section: str) -> Iterator[str]:
        name = f"sections/{section}.html"
        if name not in self.pages:
            return
        shown = self.pages[name].parts
        body = shown[shown.index(("main", "main")) :]
        ahead = [tag for tag, _ in body]
        picture = ahead.index("figure") if "figure" in ahead else len(ahead)
        if picture == len(ahead) or _LISTS & set(ahead[:picture]):
            yield f"{name}: no picture stands before its lists"
        said = " ".join(words for tag, words in body[:picture] if tag == "p")
        if not 1 <= (count := len(_SENTENCE.findall(said))) <= 2:
            yield f"{name}: {count} sentences stand before its picture, not two"

    def missing(self, *sections: str) -> list[str]:
        """Return a sentence for each section and figure of the report not there."""
        every = all_sections()
        named = [every[name] for name in sections]
        whole = named or [each for each in every.values() if not each.optional]
        ids = {name for page in self.pages.values() for name in page.ids}
        parts = [part for each in whole for part in each.parts]
        figures = [name for each in whole for name in each.figures]
        return [
            f"section {part.name!r} ({part.heading}) is missing"
            for part in sorted(parts, key=lambda part: part.place)
            if part.name not in ids
        ] + [
            f"figure {name!r} is missing"
            for name in figures
            if f"figure-{name}-wide" not in ids
        ]
