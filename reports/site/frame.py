"""What all pages of the site share: where a page is, its frame, links, and who made it.

A page is a template filled in. It lies in the folder of the site or in a folder there,
and refers to others by relative paths alone: the site works from a disk, on any server,
and fetches nothing from elsewhere.
"""

import os
import platform
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape, unescape
from pathlib import Path
from typing import Any

from jinja2 import Environment, pass_context
from jinja2.runtime import Context

from dpaudit.printable import said
from dpaudit.reports.escaping import Safe, file_name, markdown, plain
from dpaudit.reports.page import versions
from dpaudit.reports.sections import Leaf
from dpaudit.reports.site.prose import prose
from dpaudit.reports.templates import environment

__all__ = ["Frame", "Made", "made_now"]

_HEADING = re.compile(
    r'<section id="([^"]+)"[^>]*>\s*<h2[^>]*>(.*?)</h2>', flags=re.DOTALL
)


@dataclass(frozen=True)
class Made:
    """When, by what and on what a site was made.

    Parameters
    ----------
    date : str
    commit : str
        Of the checkout that dpaudit was imported from; empty if it is installed.
    machine : str
    versions : mapping of str to str
    """

    date: str
    commit: str
    machine: str
    versions: Mapping[str, str]


def made_now() -> Made:
    """Return the day, the commit, the machine and the versions of this process."""
    system = f"{platform.system()} {platform.machine()}".strip()
    return Made(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        commit=_commit(),
        machine=f"{system}, {os.cpu_count()} cores",
        versions=versions(),
    )


def _commit() -> str:
    """Return the commit of the checkout of dpaudit, if it is one."""
    folder = Path(__file__).resolve().parents[2]
    if not (folder / ".git").exists():
        return ""
    command = [
        "git",
        "-C",
        str(folder),
        "describe",
        "--always",
        "--dirty",
        "--abbrev=12",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return plain(done.stdout.strip())


@dataclass
class Frame:
    """Makes pages, and remembers them.

    Parameters
    ----------
    shared : mapping of str to object
        What every template is given.
    leaves : sequence of Leaf
        All pages about one thing, so that others can refer to them.

    Attributes
    ----------
    pages : dict of str to str
        The text of each page by its path, in the order in which they were made.
    failed : dict of str to Exception
        What went wrong, by what was to be shown.
    """

    shared: Mapping[str, Any]
    leaves: Sequence[Leaf] = ()
    pages: dict[str, str] = field(default_factory=dict)
    failed: dict[str, Exception] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._paths = {
            (leaf.folder, leaf.name): (
                f"{leaf.folder}/{leaf.file or file_name(leaf.name)}.html"
            )
            for leaf in self.leaves
        }
        self.html = self._environment(plain, autoescape=True)
        self.markdown = self._environment(markdown)

    def _environment(self, text: Callable[[str], str], **options: Any) -> Environment:
        made = environment(text, **options)

        @pass_context
        def linked(context: Context, name: str, folder: str = "mechanisms") -> Safe:
            """Return a name, as a link if there is a page about it."""
            words, path = escape(plain(name)), self._paths.get((folder, name))
            if path is None:
                return Safe(words)
            return Safe(f'<a href="{context["root"]}{path}">{words}</a>')

        made.filters["linked"] = linked
        made.filters["prose"] = prose
        made.filters["said"] = said
        made.filters["anchor"] = lambda words: words.lower().replace(" ", "-")
        return made

    def add(self, path: str, template: str, title: str, **context: Any) -> None:
        """Make a page, and a list of the headings on it."""
        root = "../" * path.count("/")
        text = self.html.get_template(template).render(
            {**self.shared, "root": root, "here": path, "title": title, **context}
        )
        found = [
            (name, unescape(re.sub(r"<[^>]*>", "", heading)))
            for name, heading in _HEADING.findall(text)
        ]
        shell = self.html.get_template("frame.html.j2")
        self.pages[path] = shell.render(
            {
                **self.shared,
                "root": root,
                "here": path,
                "title": title,
                "headings": found if len(found) > 1 else [],
                "body": Safe(text),
            }
        )

    def add_leaf(self, leaf: Leaf) -> None:
        """Make the page about one thing; if that fails, say so on it."""
        path = self._paths[leaf.folder, leaf.name]
        try:
            self.add(path, leaf.template, leaf.name, leaf=leaf, **leaf.context())
        except Exception as error:
            self.failed.setdefault(f"{leaf.folder}/{leaf.name}", error)
            self.add(path, "broken.html.j2", leaf.name, leaf=leaf, error=said(error))
