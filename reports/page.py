"""The page: one self-contained HTML file, and the same in Markdown without figures.

The page is put together from the sections (`dpaudit.reports.sections`), and knows none
by name. A section that fails, because an experiment of it has or because its table
cannot be put into words or pictures, is shown as failed with its error, and the others
stand. Templates hold the words that are always true. Whatever a template is given is
taken for text and escaped (`dpaudit.reports.escaping`), but for what is `Safe`: the
stylesheet, the figures, and the tables of the bench, all made here.
"""

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypeAlias

from jinja2 import Environment

from dpaudit import __version__
from dpaudit.printable import said
from dpaudit.reports.escaping import Safe, markdown, plain
from dpaudit.reports.plots import standalone
from dpaudit.reports.sections import Results, Section, all_sections
from dpaudit.reports.templates import TEMPLATES, environment

__all__ = ["Page", "draw_figures", "render", "render_one", "render_pictures"]

Figures: TypeAlias = Mapping[str, Sequence[str] | Exception]
"""Every figure by its name: the SVG for wide screens, then that for phones."""

_PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "dp-accounting")


@dataclass(frozen=True)
class Page:
    """A report as it is written.

    Parameters
    ----------
    html, markdown : str
        The first refers to no other resource.
    failed : mapping of str to Exception
        What went wrong, by the name of the section.
    """

    html: str
    markdown: str
    failed: Mapping[str, Exception]


def draw_figures(results: Results, sections: Sequence[Section]) -> Figures:
    """Return the figures of sections; in place of one that fails, why."""
    drawn: dict[str, Sequence[str] | Exception] = {}
    for section in sections:
        for name, draw in section.figures.items():
            try:
                drawn[name] = [draw(results, n) for n in (False, True)]
            except Exception as error:
                drawn[name] = error
    return drawn


def render_pictures(figures: Figures) -> dict[str, str]:
    """Return figures as SVG files of their own, for use outside the page."""
    colours = _stylesheet("colours.css")
    return {
        name: standalone(drawn[0], colours)
        for name, drawn in figures.items()
        if not isinstance(drawn, Exception)
    }


def render(
    results: Results, figures: Figures, sections: Sequence[Section] | None = None
) -> Page:
    """Return the whole page.

    Parameters
    ----------
    results : Results
    figures : mapping of str to sequence of str
        From `draw_figures`.
    sections : sequence of Section, optional
        All by default.
    """
    chosen = list(all_sections().values()) if sections is None else sections
    failed: dict[str, Exception] = {}

    def attempt(section: Section, what: Callable[[Results], Any] | None) -> Any:
        try:
            return None if what is None else what(results)
        except Exception as error:
            failed.setdefault(section.name, error)
            return error

    found = [(each, attempt(each, each.context)) for each in chosen]
    headlines = [attempt(each, each.headline) for each in chosen]

    def gathered(lists: Sequence[Any]) -> list[str]:
        return [text for some in lists if isinstance(some, list) for text in some]

    base: dict[str, Any] = {
        "profile": results.profile,
        "seed": results.seed,
        "headline": next(
            (text for text in headlines if isinstance(text, str)), "Comparison report"
        ),
        "answer": gathered([attempt(each, each.answer) for each in chosen]),
        "commands": gathered([attempt(each, each.commands) for each in chosen]),
        "options": "".join(f" --section {s.name}" for s in sections or ()),
        "experiments": [
            name
            for name, table in results.tables.items()
            if not isinstance(table, Exception)
        ],
        "versions": _versions(),
    }

    def pages(suffix: str, templates: Environment) -> str:
        shown = []
        for section, context in found:
            for part in section.parts:
                path = f"{section.name}/{part.name}.{suffix}"
                there = any((root / path).is_file() for root in TEMPLATES)
                if context is None or (suffix.startswith("md") and not there):
                    continue
                own = {**base, "size": section.sizes.get(results.profile)}
                own["figure"] = lambda name: _figure(figures[name])
                try:
                    if isinstance(context, Exception):
                        raise context
                    template = templates.get_template(path)
                    shown.append((part, Safe(template.render({**own, **context})), ""))
                except Exception as error:
                    failed.setdefault(section.name, error)
                    shown.append((part, Safe(), said(error)))
        shown.sort(key=lambda each: each[0].place)
        template = templates.get_template(f"page.{suffix}")
        return template.render({**base, "style": style, "parts": shown})

    style = Safe(_stylesheet("colours.css") + _stylesheet("style.css"))
    return Page(
        html=pages("html.j2", environment(plain, autoescape=True)),
        markdown=pages("md.j2", environment(markdown)),
        failed=failed,
    )


def render_one(template: str, context: Mapping[str, Any]) -> str:
    """Return a page of its own, from one template beside that of the report.

    Parameters
    ----------
    template : str
    context : mapping of str to object
        What it says; the stylesheet, the versions and `_figure` are there besides.
    """
    base = {
        "style": Safe(_stylesheet("colours.css") + _stylesheet("style.css")),
        "versions": _versions(),
        "figure": _figure,
    }
    escaped = environment(plain, autoescape=True)
    return escaped.get_template(template).render({**base, **context})


def _versions() -> dict[str, str]:
    return {
        "Python": platform.python_version(),
        "dpaudit": __version__,
        **{package: version(package) for package in _PACKAGES},
    }


def _figure(drawn: Sequence[str] | Exception) -> Safe:
    if isinstance(drawn, Exception):
        raise drawn
    wide, narrow = drawn
    return Safe(f'<div class="wide">{wide}</div>\n<div class="narrow">{narrow}</div>\n')


def _stylesheet(name: str) -> str:
    return (TEMPLATES[0] / name).read_text(encoding="utf-8")
