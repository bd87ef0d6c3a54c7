"""What all figures share: colours, sizes, panels, where words go, and SVG.

A figure is a function of results alone (`picture`), for a wide screen or, `narrow`, for
a phone. It is drawn in placeholder colours, one per role, which are then replaced by
CSS variables (the stylesheet defines them for light and dark). Text stays text, so that
it takes the page's font, can be searched and is read aloud. Nothing in the result
depends on the day or on chance: the same data gives the same bytes. Colour never
carries a meaning by itself: what is refuted is also spelt out.
"""

import html
import io
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import wraps
from math import ceil, floor, log10
from typing import Any, Literal, TypeAlias

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression

from dpaudit.reports.escaping import plain
from dpaudit.reports.sections import Results

__all__ = [
    "DOTTED",
    "INK",
    "MUTED",
    "NARROW",
    "PAPER",
    "REFUTED",
    "ROW",
    "RULE",
    "SERIES",
    "STYLE",
    "WIDE",
    "Box",
    "Drawing",
    "apart",
    "band",
    "beside",
    "boxes",
    "canvas",
    "crossings",
    "decades",
    "finish",
    "mark",
    "name_ends",
    "names_width",
    "panel",
    "picture",
    "pixels",
    "row_name",
    "row_panel",
    "standalone",
    "stroke",
    "thinned",
    "tick",
    "to_svg",
    "write",
]

Box: TypeAlias = tuple[float, float, float, float]
"""Left, bottom, width and height in CSS pixels."""

Drawing: TypeAlias = Callable[[Results, bool], tuple[Figure, str]]
"""From results to a figure, and its description; see `picture`."""

WIDE, NARROW = 760, 360  # CSS pixels
DOTTED: Any = (0, (1, 2))
ROW = ("axes fraction", "data")  # where rows of a panel are: from edge to edge

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

STYLE: dict[Any, Any] = {
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


def mark(name: str, refuted: Collection[str]) -> str:
    """Return what is written behind the name of a mechanism whose claim fell."""
    return " ✗" if name in refuted else ""


def picture(name: str, title: str) -> Callable[[Drawing], Callable[..., str]]:
    """Make a function that draws one that returns an SVG, see `to_svg`.

    The function draws results, for a wide screen or (True) for a phone, in the report's
    style. It returns the figure, and a description of it.
    """

    def decorated(draw: Drawing) -> Callable[..., str]:
        @wraps(draw)
        def drawn(results: Results, narrow: bool = False) -> str:
            with matplotlib.rc_context(STYLE):
                figure, words = draw(results, narrow)
                return to_svg(
                    figure, name, narrow=narrow, title=title, description=words
                )

        return drawn

    return decorated


def canvas(height: int, *, narrow: bool = False) -> Figure:
    """Return a transparent figure, `WIDE` or `NARROW`, of a height in CSS pixels."""
    width = NARROW if narrow else WIDE
    figure = Figure(figsize=(width / 72, height / 72), dpi=72)
    figure.patch.set_visible(False)
    return figure


def boxes(figure: Figure, count: int = 1, *, first: float | None = None) -> list[Box]:
    """Return places of panels: side by side, or one below the other on phones.

    The share of the width that the first has, and not the others, may be given.

    Examples
    --------
    >>> boxes(canvas(500, narrow=True), 2)
    [(0.0, 250.0, 360, 250.0), (0.0, 0.0, 360, 250.0)]
    """
    width, height = (round(72 * inches) for inches in figure.get_size_inches())
    if width == NARROW:
        each = height / count
        return [(0.0, each * (count - 1 - i), width, each) for i in range(count)]
    if first is not None:
        rest = 1 - first
        return [
            (0.0, 0.0, first * width, height),
            (first * width, 0.0, rest * width, height),
        ]
    return [(width / count * i, 0.0, width / count, height) for i in range(count)]


def panel(
    figure: Figure,
    box: Box,
    heading: str = "",
    *,
    left: float,
    right: float,
    top: float,
    bottom: float,
) -> Axes:
    """Return axes in a box, with a heading above them; margins in CSS pixels."""
    x, y, width, height = box
    axes = pixels(
        figure, x + left, y + bottom, width - left - right, height - top - bottom
    )
    if heading:
        write(axes, heading, (x + 8, y + height - 22), weight="bold")
    return axes


def finish(axes: Axes, label: str, *, pad: float = 6.0) -> None:
    """Give axes what all have: a label below, level lines, and no small ticks."""
    axes.set_xticks([], minor=True)
    axes.set_yticks([], minor=True)
    axes.set_xlabel(label, labelpad=pad)
    axes.tick_params(which="both", length=0, pad=pad)
    axes.grid(axis="y")
    axes.set_axisbelow(True)


def decades(low: float, high: float, digits: Sequence[int] = (1,)) -> list[float]:
    """Return the powers of ten in an interval, or multiples of them by `digits`.

    Examples
    --------
    >>> decades(0.3, 20.0), decades(4.0, 20.0, (1, 2, 5))
    ([1.0, 10.0], [5.0, 10.0, 20.0])
    """
    powers = [10.0**e for e in range(floor(log10(low)), ceil(log10(high)) + 1)]
    marks = [digit * power for power in powers for digit in digits]
    return [mark for mark in marks if low <= mark <= high]


def tick(
    axes: Axes,
    which: Literal["x", "y"],
    marks: Sequence[float],
    text: Callable[[float], str],
    gap: float = 0.0,
) -> None:
    """Mark ascending places on an axis, but those nearer than `gap` CSS pixels."""
    across = which == "x"
    corner = axes.get_ylim()[0] if across else axes.get_xlim()[0]
    points = [(mark, corner) if across else (corner, mark) for mark in marks]
    places = axes.transData.transform(points)[:, 0 if across else 1]
    kept = [marks[i] for i in thinned(places, gap)]
    axis = axes.xaxis if across else axes.yaxis
    axis.set_ticks(kept, labels=[text(mark) for mark in kept])


def band(
    axes: Axes, x: ArrayLike, quartiles: ArrayLike, colour: str, style: Any = "-"
) -> None:
    """Draw medians as a line, and the middle halves around them as a band."""
    low, middle, high = np.asarray(quartiles)
    axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(x, middle, color=colour, linestyle=style, linewidth=2)


def write(axes: Axes, text: str, place: tuple[float, float], **style: Any) -> None:
    """Write at a place in CSS pixels of the whole figure."""
    axes.annotate(text, place, xycoords="figure pixels", **style)


def beside(
    axes: Axes,
    text: str,
    place: tuple[float, float],
    away: tuple[float, float],
    coordinates: str | tuple[str, str] = "data",
    **style: Any,
) -> None:
    """Write so many CSS pixels away from a place."""
    axes.annotate(
        text, place, away, xycoords=coordinates, textcoords="offset points", **style
    )


def name_ends(
    axes: Axes,
    ends: Sequence[tuple[str, str, float]],
    gap: float,
    *,
    size: float = 12.5,
    away: float = 8.0,
) -> None:
    """Write texts beside the right edge, `gap` apart at least.

    Parameters
    ----------
    axes : Axes
    ends : sequence of (str, str, float)
        Each text, its colour, and the height at which its line ends.
    gap, size, away : float
        CSS pixels: between texts, of letters, and from the edge.
    """
    edge = axes.get_window_extent().x1 + away
    wanted = [
        float(axes.transData.transform((axes.get_xlim()[1], end))[1])
        for *_, end in ends
    ]
    for (text, colour, _), y in zip(ends, apart(wanted, gap), strict=True):
        write(axes, text, (edge, y), va="center", color=colour, size=size)


def names_width(names: Iterable[str]) -> float:
    """Return the room for names at the left of a panel, in CSS pixels."""
    # The font of the layout is wider than most.
    return 20 + 7.3 * max(map(len, names))


def pixels(
    figure: Figure, left: float, bottom: float, width: float, height: float
) -> Axes:
    """Add axes at a place given in CSS pixels."""
    across, up = figure.get_size_inches() * 72
    return figure.add_axes((left / across, bottom / up, width / across, height / up))


def row_panel(
    axes: Axes, rows: int, heading: str, ticks: list[tuple[float, str]]
) -> None:
    """Prepare axes for horizontal rows, the first one on top."""
    axes.set_xlim(0, 1)
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_yticks([])
    axes.set_xticks([x for x, _ in ticks], [text for _, text in ticks])
    axes.tick_params(length=0, pad=7)
    axes.grid(axis="x")
    axes.set_axisbelow(True)
    axes.spines["bottom"].set_visible(False)
    beside(axes, heading, (0, 1), (0, 14), "axes fraction", weight="bold")


def row_name(axes: Axes, i: int, name: str, refuted: bool, narrow: bool) -> None:
    """Write the name of a row: beside it, or above it on phones."""
    if narrow:
        text = f"{name} · REFUTED" if refuted else name
        colour = REFUTED if refuted else INK
        axes.annotate(text, (0, i - 0.33), va="center", color=colour)
        return
    style: dict[str, Any] = {"ha": "right", "va": "center"}
    beside(axes, name, (0, i), (-14, 8 if refuted else 0), ROW, **style)
    if refuted:
        style |= {"color": REFUTED, "size": 11, "weight": "bold"}
        beside(axes, "REFUTED", (0, i), (-14, -9), ROW, **style)


def to_svg(
    figure: Figure, name: str, *, narrow: bool, title: str, description: str
) -> str:
    """Return a figure as an inline ``<svg>`` element.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Drawn inside `canvas`, in the colours of this module.
    name : str
        Unique on the page. With ``figure-`` in front and what it is for behind it is
        the identifier, which prefixes every id inside.
    narrow : bool
        For phones.
    title, description : str
        What a screen reader says instead of the picture.
    """
    name = f"figure-{name}-{'narrow' if narrow else 'wide'}"
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


def apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Return places at least `gap` apart, as near to those wanted as can be.

    That is the least-squares solution: blocks of labels that touch are centred on the
    mean of what they want.

    Examples
    --------
    >>> apart([10.0, 12.0, 100.0], gap=6.0)
    [8.0, 14.0, 100.0]
    """
    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(len(order))
    # What is left of a place without the gaps below it must not fall.
    found = isotonic_regression(np.asarray(wanted)[order] - steps).x + steps
    return [float(place) for place in found[np.argsort(order)]]


def thinned(places: ArrayLike, gap: float) -> list[int]:
    """Return which of ascending places to keep, `gap` apart at least; the last stays.

    Examples
    --------
    >>> thinned([0.0, 10.0, 18.0, 40.0, 45.0], gap=20.0)
    [2, 4]
    """
    ascending = np.asarray(places, dtype=float)
    kept: list[int] = []
    for i in reversed(range(len(ascending))):
        if not kept or ascending[kept[-1]] - ascending[i] >= gap:
            kept.append(i)
    return kept[::-1]


def crossings(
    lines: Sequence[NDArray[np.float64]],
    corner: tuple[float, float],
    size: tuple[float, float],
) -> int:
    """Return at how many of 20 places across a box lines run through it, in all.

    Parameters
    ----------
    lines : sequence of ndarray, shape (2, n)
        Abscissae, ascending, and ordinates.
    corner : (float, float)
        The lower left one.
    size : (float, float)
        Width and height.

    Examples
    --------
    >>> level = np.array([[0.0, 100.0], [5.0, 5.0]])
    >>> crossings([level], (10.0, 0.0), (40.0, 8.0))
    20
    >>> crossings([level], (10.0, 6.0), (40.0, 8.0))
    0
    """
    (left, bottom), (width, height) = corner, size
    across = np.linspace(left, left + width, 20)
    above = [np.interp(across, x, y) - bottom for x, y in lines]
    return sum(int(np.count_nonzero((0 < up) & (up < height))) for up in above)
