"""Check a written site: it is whole, its links lead somewhere, it fetches nothing.

A site is a folder of pages that works wherever the folder is: every address in it is
relative and leads to a file of the folder. No browser is needed; what only a browser
knows, such as colours and widths, is looked at by the tests.
"""

from functools import cached_property
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote, urlsplit

from dpaudit.errors import InputError
from dpaudit.reports.markup import Markup, addresses_in_css, elsewhere, read_markup
from dpaudit.reports.sections import all_sections
from dpaudit.reports.store import STORE

__all__ = ["LARGEST", "Site", "faults", "missing", "strays", "strays_in_styles"]

LARGEST = 10_000_000
"""How many bytes a site has at most: what one reads on a phone, too."""

_FOLLOWED = {"http", "https", "mailto"}


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
        self._read: dict[str, Markup] = {}
        self.pages = [path.name]
        if not self.alone:
            self.pages = [name for name in self.files if name.endswith(".html")]
        if not self.pages:
            raise InputError(f"there is no page in {str(path)!r}")
        for name in self.pages:
            self.markup(name)

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

    def markup(self, name: str) -> Markup:
        """Return what a page holds."""
        if name not in self._read:
            self._read[name] = read_markup(self.text(name))
        return self._read[name]

    def astray(self, page: str, address: str) -> str | None:
        """Return what is wrong with a relative address on a page; None if nothing is.

        Parameters
        ----------
        page : str
            The path of the page, or stylesheet, within the folder.
        address : str
        """
        parts = urlsplit(address)
        path, fragment = unquote(parts.path), unquote(parts.fragment)
        target = normpath(join(dirname(page), path)) if path else page
        if target.startswith("../") and not self.alone:
            return "leads out of the folder"
        if not (self.root / target).is_file():
            return "leads to no file"
        if fragment in {"", "top"} or not target.endswith(".html"):
            return None
        if fragment not in self.markup(target).ids:
            return f"leads to nothing: {target} has no id {fragment!r}"
        return None


def faults(site: Site) -> list[str]:
    """Return one sentence for everything that is wrong with the pages of a site.

    Each begins with the page and the line. That holds for any site, not for the report
    alone.
    """
    found = []
    for page in site.pages:
        here = [*site.markup(page).faults, *strays(site, page)]
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
    markup = site.markup(page)
    found = []
    for line, address in markup.links:
        if urlsplit(address).scheme.lower() in _FOLLOWED:
            continue
        wrong = (
            "leads out of the folder"
            if elsewhere(address)
            else site.astray(page, address)
        )
        if wrong:
            found.append((line, f"the link to {address!r} {wrong}"))
    found += [
        (line, wrong)
        for line, address in markup.fetched
        if (wrong := _fetched(site, page, address))
    ]
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
    read = [site.markup(page) for page in site.pages]
    ids = {name for markup in read for name in markup.ids}
    figures = {name for markup in read for name in markup.figures}
    parts = [part for section in whole for part in section.parts]
    return [
        f"section {part.name!r} ({part.heading}) is missing"
        for part in sorted(parts, key=lambda part: part.place)
        if part.name not in ids
    ] + [
        f"figure {name!r} is missing"
        for section in whole
        for name in section.figures
        if not figures & {f"figure-{name}-{width}" for width in ("wide", "narrow")}
    ]
