"""What every page needs, of the site of the report or one by itself: figures and style.

A page by itself (`render_one`) is one HTML file that refers to no other; those of the
report are `dpaudit.reports.site`.
"""

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, TypeAlias

from dpaudit import __version__
from dpaudit.reports.escaping import Safe, plain
from dpaudit.reports.plots import standalone
from dpaudit.reports.sections import Results, Section
from dpaudit.reports.svg import with_classes
from dpaudit.reports.templates import TEMPLATES, environment

__all__ = [
    "STYLES",
    "Figures",
    "draw_figures",
    "in_both_widths",
    "render_one",
    "render_pictures",
    "stylesheet",
    "versions",
]

Figures: TypeAlias = Mapping[str, Sequence[str] | Exception]
"""Every figure by its name: the SVG for wide screens, then that for phones."""

STYLES = ("colours.css", "style.css", "figures.css")
"""The stylesheets of every page."""

_PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "dp-accounting")


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
    colours = stylesheet("colours.css")
    return {
        name: standalone(drawn[0], colours)
        for name, drawn in figures.items()
        if not isinstance(drawn, Exception)
    }


def render_one(template: str, context: Mapping[str, Any]) -> str:
    """Return a page of its own, from one template beside that of the report.

    Parameters
    ----------
    template : str
    context : mapping of str to object
        What it says; the stylesheet, the versions and the figures are there besides.
    """
    base = {
        "style": stylesheet(*STYLES),
        "versions": versions(),
        "figure": in_both_widths,
    }
    escaped = environment(plain, autoescape=True)
    return escaped.get_template(template).render({**base, **context})


def versions() -> dict[str, str]:
    """Return the versions of what pages are made with."""
    return {
        "Python": platform.python_version(),
        "dpaudit": __version__,
        **{package: version(package) for package in _PACKAGES},
    }


def in_both_widths(drawn: Sequence[str] | Exception) -> Safe:
    """Return a figure for wide screens and for phones, or raise what drawing raised."""
    if isinstance(drawn, Exception):
        raise drawn
    wide, narrow = map(with_classes, drawn)
    return Safe(f'<div class="wide">{wide}</div>\n<div class="narrow">{narrow}</div>\n')


def stylesheet(*names: str) -> Safe:
    """Return stylesheets of the site, one after the other."""
    return Safe("".join((TEMPLATES[0] / n).read_text(encoding="utf-8") for n in names))
