"""The page: one self-contained HTML file, and the same in Markdown without figures.

The page is put together from the sections (`dpaudit.reports.sections`), and knows none
by name. A section that fails, because an experiment of it has or because its table
cannot be put into words or pictures, is shown as failed with its error, and the others
stand. Templates hold the words that are always true. Whatever a template is given is
taken for text and escaped (`dpaudit.reports.escaping`), but for what is `Safe`: the
stylesheet, the figures, and the tables of the bench, all made here.
"""

import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dpaudit import __version__
from dpaudit.printable import said
from dpaudit.reports import words
from dpaudit.reports.escaping import Safe, markdown, plain
from dpaudit.reports.plots import standalone
from dpaudit.reports.sections import Results, Section, all_sections

__all__ = ["Page", "draw_figures", "render", "render_one", "render_pictures"]

Figures: TypeAlias = Mapping[str, Sequence[str] | Exception]
"""Every figure by its name: the SVG for wide screens, then that for phones."""

_ROOT = Path(__file__).parent
_TEMPLATES = (_ROOT / "site", _ROOT / "sections")
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

    def pages(suffix: str, environment: Environment) -> str:
        shown = []
        for section, context in found:
            for part in section.parts:
                path = f"{section.name}/{part.name}.{suffix}"
                there = any((root / path).is_file() for root in _TEMPLATES)
                if context is None or (suffix.startswith("md") and not there):
                    continue
                own = {**base, "size": section.sizes.get(results.profile)}
                own["figure"] = lambda name: _figure(figures[name])
                try:
                    if isinstance(context, Exception):
                        raise context
                    template = environment.get_template(path)
                    shown.append((part, Safe(template.render({**own, **context})), ""))
                except Exception as error:
                    failed.setdefault(section.name, error)
                    shown.append((part, Safe(), said(error)))
        shown.sort(key=lambda each: each[0].place)
        template = environment.get_template(f"page.{suffix}")
        return template.render({**base, "style": style, "parts": shown})

    style = Safe(_stylesheet("colours.css") + _stylesheet("style.css"))
    escaped = _environment(autoescape=True, finalize=_if_text(plain))
    return Page(
        html=pages("html.j2", escaped),
        markdown=pages("md.j2", _environment(finalize=_if_text(markdown))),
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
    escaped = _environment(autoescape=True, finalize=_if_text(plain))
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
    return (_ROOT / "site" / name).read_text(encoding="utf-8")


def _environment(**options: Any) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **options,
    )
    environment.filters["strong"] = lambda text: Safe(f"**{markdown(text)}**")
    environment.filters["glue"] = _glue
    for each in (words.count, words.setting, words.delta):
        environment.filters[each.__name__] = each
    return environment


def _if_text(escape: Callable[[str], str]) -> Callable[[object], object]:
    """Return what is done with a value on its way into a template.

    Numbers stay what they are, and so does what was made here.
    """

    def finalize(value: object) -> object:
        if isinstance(value, str) and not hasattr(value, "__html__"):
            return escape(value)
        return value

    return finalize


def _glue(text: str) -> str:
    """Keep formulas and percentages on one line."""
    text = re.sub(
        r"([εδ]) ([=≤≥]) ", "\\1\N{NO-BREAK SPACE}\\2\N{NO-BREAK SPACE}", text
    )
    return re.sub(r" (%|× 10)", "\N{NO-BREAK SPACE}\\1", text)
