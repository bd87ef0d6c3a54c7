"""What all figures share: sizes, panels, axes, and where words go.

A figure is a function of results alone (`picture`), for a wide screen or, `narrow`, for
a phone. Nothing in it depends on the day or on chance: the same data gives the same
bytes. Colour never carries a meaning by itself: what is refuted is also spelt out.
Series and their names are drawn by `dpaudit.reports.lines`; every mark says what it
stands for (`told`).
"""

import gc
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from math import ceil, floor, log10
from typing import Any, Literal, TypeAlias

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.reports.svg import INK, MUTED, REFUTED, RULE, Canvas, thinned, to_svg

Box: TypeAlias = tuple[float, float, float, float]
"""Left, bottom, width and height in CSS pixels."""

Drawing: TypeAlias = Callable[..., Any]
"""From results to a figure, and its description; see `picture`."""

PICTURES: defaultdict[str, dict[str, Callable[..., str]]] = defaultdict(dict)
"""By package and name: from the results to an SVG, wide or (True) for phones."""

WIDE, NARROW = 760, 360  # CSS pixels
ROW = ("axes fraction", "data")  # where rows of a panel are: from edge to edge

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


def picture(
    name: str, title: str, **options: Any
) -> Callable[[Drawing], Callable[..., str]]:
    """Make a function that draws one that returns an SVG, see `to_svg`.

    The function draws results, for a wide screen or (True) for a phone, in the report's
    style. It returns the figure, and a description of it. A section whose folder it is
    in has it among its figures. One function may draw several, given other `options`.
    """

    def decorated(function: Drawing) -> Callable[..., str]:
        draw = inspect.unwrap(function)

        @wraps(draw)
        def drawn(results: Any, narrow: bool = False) -> str:
            with drawing():
                figure, words = draw(results, narrow, **options)
                return to_svg(
                    figure, name, narrow=narrow, title=title, description=words
                )

        PICTURES[draw.__module__.rpartition(".")[0]][name] = drawn
        return drawn

    return decorated


@contextmanager
def drawing() -> Iterator[None]:
    """Draw in the report's style.

    Figures are made of many objects that refer to each other. To look again and again
    for some that nobody refers to takes a quarter of the time, so that waits.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        with matplotlib.rc_context(STYLE):
            yield
    finally:
        if collects:
            gc.enable()


def canvas(height: float, *, narrow: bool = False) -> Figure:
    """Return a transparent figure, `WIDE` or `NARROW`, of a height in CSS pixels."""
    width = NARROW if narrow else WIDE
    figure = Canvas(figsize=(width / 72, height / 72), dpi=72)
    figure.told = []
    figure.patch.set_visible(False)
    return figure


def boxes(
    figure: Figure, count: int = 1, *, across: int = 0, foot: float = 0.0
) -> list[Box]:
    """Return places of panels in rows of so many, from the top.

    By default they are side by side, or one below the other on phones. What is left
    free below all, `foot`, may be given.

    >>> boxes(canvas(500, narrow=True), 2)
    [(0.0, 250.0, 360.0, 250.0), (0.0, 0.0, 360.0, 250.0)]
    """
    width, whole = (round(72 * inches) for inches in figure.get_size_inches())
    across = across or (1 if width == NARROW else count)
    rows = ceil(count / across)
    wide, high = width / across, (whole - foot) / rows
    return [
        (i % across * wide, foot + high * (rows - 1 - i // across), wide, high)
        for i in range(count)
    ]


def panel(
    figure: Figure,
    box: Box,
    heading: str = "",
    *,
    left: float,
    right: float,
    top: float,
    bottom: float,
    colour: str = INK,
) -> Axes:
    """Return axes in a box, with a heading above them; margins in CSS pixels."""
    x, y, width, height = box
    axes = pixels(
        figure, x + left, y + bottom, width - left - right, height - top - bottom
    )
    if heading:
        place = (x + 8, y + height - 22)
        write(axes, heading, place, weight="bold", color=colour)
    return axes


def finish(axes: Axes, label: str, *, pad: float = 6.0) -> None:
    """Give axes what all have: a label below, level lines, and no small ticks."""
    axes.set_xticks([], minor=True)
    axes.set_yticks([], minor=True)
    axes.set_xlabel(label, labelpad=pad)
    axes.tick_params(length=0, pad=pad)  # of others there are none
    axes.grid(axis="y")
    axes.set_axisbelow(True)


def decades(low: float, high: float, digits: Sequence[int] = (1,)) -> list[float]:
    """Return the powers of ten in an interval, or multiples of them by `digits`.

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
    style: dict[str, Any] = {"va": "center", "color": REFUTED if refuted else INK}
    if narrow:
        text = f"{name} · REFUTED" if refuted else name
        axes.annotate(text, (0, i - 0.33), **style)
        return
    style |= {"ha": "right"}
    beside(axes, name, (0, i), (-14, 8 if refuted else 0), ROW, **style)
    if refuted:
        style |= {"size": 11, "weight": "bold"}
        beside(axes, "REFUTED", (0, i), (-14, -9), ROW, **style)
