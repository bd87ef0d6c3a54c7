"""What all pages of the site share: where a page is, its frame, links, and who made it.

A page is a template filled in. It lies in the folder of the site or in a folder there,
and refers to others by relative paths alone: the site works from a disk, on any server,
and fetches nothing from elsewhere.
"""

import inspect
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from html import escape, unescape
from pathlib import Path
from typing import Any

from docutils.core import publish_parts
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser
from docutils.readers.standalone import Reader
from docutils.writers.html5_polyglot import Writer
from jinja2 import Environment, pass_context
from jinja2.runtime import Context

from dpaudit.printable import said
from dpaudit.reports.escaping import Safe, file_name, markdown, plain
from dpaudit.reports.page import Figures, environment, in_both_widths, versions
from dpaudit.reports.sections import TopicPage

_SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "math_output": "MathML",
    "report_level": 5,  # what is no markup stays as it is written
    "halt_level": 5,
    "doctitle_xform": False,
    "initial_header_level": 3,
    "smart_quotes": False,
    "syntax_highlight": "none",
}
# Sizes of brackets and of fractions, of which MathML has its own opinion.
_SIZES = re.compile(r"\\([bB]ig{1,2}[lr]?|textstyle|displaystyle)\b")
_IDS = re.compile(r'(<[^>]*?) (?:id|name)="[^"]*"')
_BETWEEN = re.compile(  # backticks: what is markup already, or else a name
    r"(``(?:[^`]|`(?!`))+``|:\w+:`[^`]*`|`[^`<]*<[^`>]*>`_)|`~?([^`]+)`"
)


@cache
def _settings() -> Any:
    """Return what docutils works by; to find it takes longer than most docstrings."""
    settings = get_default_settings(Parser, Reader, Writer)
    vars(settings).update(_SETTINGS)
    return settings


@cache
def prose(text: str) -> Safe:
    """Return a docstring as HTML whose headings are of the third order.

    ``text``: reStructuredText, as docstrings of this project have it: what stands
    between single backticks is code.
    """
    lines = [plain(line) for line in inspect.cleandoc(text).split("\n")]
    source = _SIZES.sub(
        "", _BETWEEN.sub(lambda found: found[1] or f"``{found[2]}``", "\n".join(lines))
    )
    parts = publish_parts(source, writer="html5", settings=copy(_settings()))
    # Two docstrings on one page would have the same ids.
    return Safe(_IDS.sub(r"\1", parts["fragment"]))


_HEADING = re.compile(
    r'<section id="([^"]+)"[^>]*>\s*<h2[^>]*>(.*?)</h2>', flags=re.DOTALL
)


def made_now() -> dict[str, Any]:
    """Return when, by what and on what a site is made: here, now.

    ``date``, ``commit`` (of the checkout that dpaudit was imported from; empty if it is
    installed), ``machine``, and the ``versions`` of packages.
    """
    system = f"{platform.system()} {platform.machine()}".strip()
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": _commit(),
        "machine": f"{system}, {os.cpu_count()} cores",
        "versions": versions(),
    }


def _commit() -> str:
    """Return the commit of the checkout of dpaudit, if it is one."""
    folder = Path(__file__).resolve().parents[2]
    if not (folder / ".git").exists():
        return ""
    command = "git describe --always --dirty --abbrev=12".split()
    options: dict[str, Any] = {"capture_output": True, "text": True, "check": True}
    try:
        done = subprocess.run(command, cwd=folder, **options)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return plain(done.stdout.strip())


@dataclass
class Frame:
    """Makes pages, and remembers them."""

    shared: Mapping[str, Any]  # what every template is given
    # all pages about one thing, so that others can refer to them
    topics: Sequence[TopicPage] = ()
    # the text of each page by its path, in the order in which they were made
    pages: dict[str, str] = field(default_factory=dict)
    # what went wrong, by what was to be shown
    failed: dict[str, Exception] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._paths = {
            (topic.folder, topic.name): f"{topic.folder}/{_file(topic)}.html"
            for topic in self.topics
        }
        self.shared = {**self.shared, "paths": self._paths}

    def filled(self, template: str, **context: Any) -> Safe:
        """Return a template filled in; what it is for, its name tells."""
        chosen = _templates(in_markdown=".md." in template)
        return Safe(chosen.get_template(template).render({**self.shared, **context}))

    def add(self, path: str, template: str, title: str, **context: Any) -> None:
        """Make a page, and a list of the headings on it."""
        own = {"root": "../" * path.count("/"), "here": path, "title": title}
        body = self.filled(template, **own, **context)
        found = [
            (name, unescape(re.sub(r"<[^>]*>", "", heading)))
            for name, heading in _HEADING.findall(body)
        ]
        headings = found if len(found) > 1 else []
        self.pages[path] = self.filled(
            "frame.html.j2", **own, headings=headings, body=body
        )

    def add_topic(self, topic: TopicPage, drawn: Figures) -> None:
        """Make the page about one thing; if that fails, say so on it."""
        path = self._paths[topic.folder, topic.name]
        try:
            picture = in_both_widths(drawn[topic.name]) if topic.draw else ""
            own = {"topic": topic, "picture": picture, **topic.context()}
            self.add(path, topic.template, topic.name, **own)
        except Exception as error:
            self.failed.setdefault(f"{topic.folder}/{topic.name}", error)
            self.add(path, "broken.html.j2", topic.name, topic=topic, error=said(error))


def _file(topic: TopicPage) -> str:
    name = topic.file or file_name(topic.name)
    return "+index" if name == "index" else name  # that is the list of all


@cache
def _templates(*, in_markdown: bool) -> Environment:
    """Return where templates of the site are filled in."""
    made = environment(markdown) if in_markdown else environment(plain, autoescape=True)
    made.filters["linked"] = _linked
    made.filters["prose"] = prose
    made.filters["said"] = said
    made.filters["anchor"] = lambda words: words.lower().replace(" ", "-")
    return made


@pass_context
def _linked(context: Context, name: str, folder: str = "mechanisms") -> Safe:
    """Return a name, as a link if there is a page about it."""
    words, path = escape(plain(name)), context["paths"].get((folder, name))
    return Safe(
        words if path is None else f'<a href="{context["root"]}{path}">{words}</a>'
    )
