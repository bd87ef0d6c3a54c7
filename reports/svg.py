"""Matplotlib figures as inline SVG that follows the page into light and dark.

A figure is drawn in placeholder colours, one per role, which are then replaced by CSS
variables (the stylesheet defines them for both schemes). Text stays text, so that it
takes the page's font, can be searched and is read aloud. Nothing in the result depends
on the day or on chance: the same data gives the same bytes.
"""

import html
import io
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.text import Text

from dpaudit.reports.escaping import plain

__all__ = [
    "INK",
    "MUTED",
    "NARROW",
    "PAPER",
    "REFUTED",
    "RULE",
    "SERIES",
    "WIDE",
    "canvas",
    "standalone",
    "stroke",
    "to_svg",
]

WIDE, NARROW = 760, 360  # CSS pixels

# Colours that no figure would use by itself; `to_svg` swaps them for variables.
INK, MUTED, RULE, PAPER, REFUTED = (f"#0{i}0a0b" for i in range(1, 6))
SERIES = tuple(f"#0{i}0c0d" for i in range(1, 8))
_VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    RULE: "--rule",
    PAPER: "--paper",
    REFUTED: "--refuted",
    **{colour: f"--series-{i}" for i, colour in enumerate(SERIES, start=1)},
}

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "dpaudit",
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same layout anywhere
    "font.size": 13,
    "text.color": INK,
    "axes.edgecolor": RULE,
    "axes.labelcolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.unicode_minus": True,
    "xtick.color": RULE,
    "ytick.color": RULE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "grid.color": RULE,
    "grid.linewidth": 1.0,
    "lines.solid_capstyle": "round",
    "text.parse_math": False,  # a name with two dollars is no formula
}


def stroke(name: str, refuted: Collection[str], standing: Collection[str]) -> Any:
    """Return the style of a mechanism's line.

    Dashed if its claim was refuted; whole if it was audited, and not refuted; dots and
    dashes in turn if no claim of it was audited.
    """
    if name in refuted:
        return (0, (3, 1.5))
    return "-" if name in standing else (0, (5, 1.5, 1, 1.5))


@contextmanager
def canvas(width: int, height: int) -> Iterator[Figure]:
    """Give a transparent figure of a size in CSS pixels, in the report's style."""
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        figure.patch.set_visible(False)
        yield figure


def to_svg(figure: Figure, name: str, *, title: str, description: str) -> str:
    """Return a figure as an inline ``<svg>`` element.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Drawn inside `canvas`, in the colours of this module.
    name : str
        Identifier, unique on the page: it prefixes every id inside.
    title, description : str
        What a screen reader says instead of the picture.
    """
    for written in figure.findobj(Text):
        lines = written.get_text().split("\n")
        written.set_text("\n".join(map(plain, lines)))
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    # The size comes from the stylesheet; the view box keeps the proportions.
    root, body = text.split(">", maxsplit=1)
    view_box = re.search(r'viewBox="[^"]*"', root)
    assert view_box is not None  # matplotlib always writes one
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", body, flags=re.DOTALL)
    # In tags only: what is written in the figure stays as it is.
    body = re.sub(r"<[^>]*>", lambda tag: _on_the_page(tag[0], name), body)
    opening = (
        f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" {view_box[0]} role="img" '
        f'id="{name}" aria-labelledby="{name}-title {name}-description">'
        f'<title id="{name}-title">{html.escape(plain(title))}</title>'
        f'<desc id="{name}-description">{html.escape(plain(description))}</desc>'
    )
    return opening + re.sub(r"\n\s*", "\n", body).strip()


def standalone(svg: str, stylesheet: str) -> str:
    """Return an inline ``<svg>`` as a file of its own.

    Parameters
    ----------
    svg : str
        From `to_svg`.
    stylesheet : str
        CSS that defines the variables of the colours.
    """
    style = (
        f"{stylesheet}\ntext {{ font-family: var(--sans); }}\n"
        "svg { background: var(--paper); }"
    )
    opening, rest = svg.split(">", maxsplit=1)
    opening = opening.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return f"{opening}><style>{style}</style>{rest}\n"


def _on_the_page(tag: str, name: str) -> str:
    """Return a tag with ids of its figure, and with the page's colours and fonts."""
    tag = re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{name}-", tag)
    # The family is the page's; matplotlib wrote a list of fonts into every text.
    tag = re.sub(r"font: ((?:\w+ )*?)([\d.]+px) [^;\"]*", _font, tag)
    for colour, variable in _VARIABLES.items():
        tag = tag.replace(colour, f"var({variable})")
    return tag


def _font(match: re.Match[str]) -> str:
    weight = match[1].strip()
    return f"font-size: {match[2]}" + (f"; font-weight: {weight}" if weight else "")
