"""How a series is drawn: its line, what that says of a claim, its band and its name.

All figures draw a verdict in one way, `Verdicts.line`, so that a series whose claim was
refuted is the same red in line, band, marker and name; and one whose claim was not
audited in this report does not look like one that was audited and stood. A series has a
marker of its own beside its colour: who cannot tell two colours apart, or prints in
grey, tells the markers.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from dpaudit.arrays import Array
from dpaudit.reports import plots, svg
from dpaudit.reports.tables import Quartiles, quartiles, refuted_mechanisms
from dpaudit.reports.words import spread

WHOLE, DOTTED = "-", (0, (1, 2))
FALLEN: Any = (0, (3, 1.5))
OPEN: Any = (0, (4, 2, 1, 2))

FOOT = {False: 30.0, True: 62.0}
"""CSS pixels that `key` takes below a figure, by narrow."""

ENTRY = 18.0
"""CSS pixels that a row of it takes."""

_PALETTE = (*svg.SERIES, svg.INK)
_MARKERS = ("o", "s", "^", "D", "v", "P", "<")  # no factor in common with the palette
_BETWEEN = 44.0  # CSS pixels between the markers of a line
_MOVED = 4.0  # CSS pixels: a name that is farther from its line is led to it
_LISTED = 22.0  # CSS pixels of a name below a figure, on phones
_SAMPLE = 32.0  # CSS pixels: of a line in the key


@dataclass(frozen=True)
class Line:
    """How a series is drawn, and what is written where it ends."""

    label: str  # of one line of text or several
    # colour, marker: no marker if it is empty
    colour: str
    dash: Any = WHOLE  # a style of matplotlib's
    marker: str = ""

    @property
    def style(self) -> dict[str, Any]:
        """What its markers look like: hollow if no claim of it was audited."""
        return {
            "marker": self.marker,
            "color": self.colour,
            "markersize": 5.5,
            "markerfacecolor": svg.PAPER if self.dash == OPEN else self.colour,
            "markeredgecolor": self.colour,
            "markeredgewidth": 1.2,
        }


@dataclass(frozen=True)
class Verdicts:
    """Whose claims were audited in this report, and what was found."""

    # refuted, standing: names of mechanisms: of those whose claim fell, and of those
    # whose claim was audited and did not. A claim of any other was not audited here.
    refuted: Collection[str] = ()
    standing: Collection[str] = ()

    @classmethod
    def of(cls, *audits: pd.DataFrame) -> "Verdicts":
        """Return what tables of audits say."""
        return cls(
            [name for table in audits for name in refuted_mechanisms(table)],
            [n for table in audits for n in refuted_mechanisms(table, "NOT_REFUTED")],
        )

    def line(self, name: str, place: int, label: str | None = None) -> Line:
        """Return how a mechanism is drawn.

        Dashed and red if its claim was refuted; whole if it was audited, and not
        refuted; dots and dashes in turn, with hollow markers, if no claim of it was
        audited.

        ``place``: among the series of the figure: gives it a marker, and a colour
        unless it is refuted. No two places below 56 have both in common. ``label``: in
        place of the name.
        """
        fell, stands = name in self.refuted, name in self.standing
        return Line(
            (name if label is None else label) + mark(name, self.refuted),
            svg.REFUTED if fell else _PALETTE[place % len(_PALETTE)],
            FALLEN if fell else WHOLE if stands else OPEN,
            _MARKERS[place % len(_MARKERS)],
        )

    def heading(self, name: str) -> str:
        """Return the colour of a name above a panel, or beside a row."""
        if name in self.refuted:
            return svg.REFUTED
        return svg.INK if name in self.standing else svg.MUTED

    def said(self, name: str) -> str:
        """Return what is said after a name where there are words only."""
        if name in self.refuted:
            return " (claim refuted)"
        return "" if name in self.standing else " (no claim audited here)"


def mark(name: str, refuted: Collection[str]) -> str:
    """Return what is written behind the name of a mechanism whose claim fell."""
    return " ✗" if name in refuted else ""


def band(
    axes: Axes, x: ArrayLike, quartiles: ArrayLike, line: Line, texts: Sequence[str]
) -> None:
    """Draw medians as a line, and the middle halves around them as a band.

    ``axes``: with its scales. ``texts``: what each point says to a pointer, see
    `svg.told`.
    """
    low, middle, high = np.asarray(quartiles)
    axes.fill_between(x, low, high, color=line.colour, alpha=0.2, linewidth=0)
    axes.plot(x, middle, color=line.colour, linestyle=line.dash, linewidth=2)
    markers(axes, x, middle, line)
    svg.told(axes, x, middle, texts)


def markers(axes: Axes, x: ArrayLike, y: ArrayLike, line: Line) -> None:
    """Draw the markers of a line, away from each other, at points of it.

    None where the line has left the panel: markers are whole at its edges, not beyond.
    """
    places = np.stack([np.asarray(x, float), np.asarray(y, float)], axis=-1)
    shown = places[svg.thinned(axes.transData.transform(places)[:, 0], _BETWEEN)]
    low, high = sorted(axes.get_ylim())
    if line.marker:
        style = {"linestyle": "", "clip_on": False, "zorder": 3, **line.style}
        axes.plot(*shown[(shown[:, 1] >= low) & (shown[:, 1] <= high)].T, **style)


def name_ends(
    axes: Axes,
    ends: Sequence[tuple[Line, tuple[float, float]]],
    gap: float = 16.0,
    *,
    size: float = 12.0,
) -> None:
    """Write names to the right of axes, each led to its line where it is away from it.

    ``axes``: with its scales. ``ends``: each series, and where its line ends, in data
    units. ``gap``, ``size``: CSS pixels: of a line of text, and of letters.
    """
    box = axes.get_window_extent()
    # What ends outside of the axes leaves them at an edge.
    places = np.clip(
        axes.transData.transform([end for _, end in ends]),
        (box.x0, box.y0),
        (box.x1, box.y1),
    )
    heights = [gap * len(line.label.split("\n")) for line, _ in ends]
    around = (box.y0, box.y1 + gap)
    found = apart(places[:, 1], heights, around)
    for (line, _), (x, y), place in zip(ends, places, found, strict=True):
        far = abs(place - y) > _MOVED or box.x1 - x > _MOVED
        away = 24.0 if far or line.marker else 8.0
        if far or line.marker:
            led = (box.x1 + (14 if line.marker else 20), place)
            _stroke(axes, (x + 5, y), led, line, 0.8)
        if line.marker:
            marker_at(axes, (box.x1 + 16, place), line)
        style = {"va": "center", "color": line.colour, "size": size}
        plots.write(axes, line.label, (box.x1 + away, place), linespacing=1.15, **style)


def list_below(axes: Axes, lines: Sequence[Line], bottom: float, step: float) -> None:
    """List names below a figure for phones, the first on top, with their lines.

    ``axes``: any of the figure. ``bottom``, ``step``: CSS pixels: where the last
    stands, and from one to the next.
    """
    for i, line in enumerate(reversed(lines)):
        y = bottom + step * i
        _stroke(axes, (12, y), (40, y), line, 2.2, line.dash)
        if line.marker:
            marker_at(axes, (26, y), line)
        plots.write(axes, line.label, (50, y), va="center", color=line.colour, size=13)


def key(
    figure: Figure,
    dashes: Iterable[Any],
    *,
    narrow: bool,
    names: bool = False,
    more: Sequence[Line] = (),
) -> None:
    """Write below a figure what its lines say of claims, those that it has.

    ``figure``: with room at its bottom, `FOOT`. ``dashes``: of the lines that are
    drawn. ``narrow``: for a phone: one below the other. ``names``: whether the colours
    of names (`Verdicts.heading`) say it, in place of lines. ``more``: markers with what
    they mean, in a row of `ENTRY` pixels each above the others.
    """
    used = list(dashes)
    shown = [each for each in _KEY if each[0].dash in used]
    if not shown:
        return
    axes = figure.axes[0]
    entries = [[each] for each in shown] if narrow else [shown]
    x, y = 8.0, ENTRY * (len(more) + len(entries) - 1) + 10
    for line in more:
        marker_at(axes, (x + _SAMPLE / 2, y), line)
        _entry(axes, line, (x, y))
        y -= ENTRY
    for row in entries:
        x = 8.0
        for line, colour in row:
            if names:
                style: dict[str, Any] = {"weight": "bold", "size": 11.5, "va": "center"}
                plots.write(axes, "name", (x, y), color=colour, **style)
            else:
                _stroke(axes, (x, y), (x + _SAMPLE, y), line, 2.2, line.dash)
                marker_at(axes, (x + _SAMPLE / 2, y), line)
            x = _entry(axes, line, (x, y))
        y -= ENTRY


def _entry(axes: Axes, line: Line, place: tuple[float, float]) -> float:
    """Write what is beside a sample in the key; return where the next begins."""
    x, y = place[0] + _SAMPLE + 10, place[1]
    plots.write(axes, line.label, (x, y), va="center", color=svg.MUTED, size=11.5)
    return x + 24 + 6.6 * len(line.label)


_KEY = (
    (Line("claim audited, not refuted", svg.MUTED, WHOLE, "o"), svg.INK),
    (Line("claim refuted ✗", svg.REFUTED, FALLEN, "o"), svg.REFUTED),
    (Line("no claim audited here", svg.MUTED, OPEN, "o"), svg.MUTED),
)


def _stroke(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    line: Line,
    width: float,
    dash: Any = WHOLE,
) -> None:
    """Draw a straight line between two places in CSS pixels of the figure."""
    style = {"arrowstyle": "-", "color": line.colour, "linewidth": width}
    style |= {"linestyle": dash, "shrinkA": 0, "shrinkB": 0}
    plots.write(
        axes, "", start, xytext=end, textcoords="figure pixels", arrowprops=style
    )


def marker_at(axes: Axes, place: tuple[float, float], line: Line) -> None:
    """Draw the marker of a series at a place in CSS pixels of the figure."""
    around: dict[str, Any] = {"transform": None, "clip_on": False, **line.style}
    axes.add_line(Line2D([place[0]], [place[1]], **around))


def apart(
    wanted: ArrayLike,
    heights: float | Sequence[float],
    within: tuple[float, float] | None = None,
) -> list[float]:
    """Return places that do not touch, as near to those wanted as can be.

    That is the least-squares solution: blocks of labels that touch are centred on the
    mean of what they want.

    ``heights``: of what stands there. ``within``: the edges of the room for them, above
    the lower of which they stand even if there is too little.

    >>> apart([10.0, 12.0, 100.0], 6.0)
    [8.0, 14.0, 100.0]
    >>> apart([10.0, 12.0, 100.0], 6.0, (10.0, 60.0))
    [13.0, 19.0, 57.0]
    """
    order = np.argsort(wanted, kind="stable")
    high = np.broadcast_to(heights, order.shape)[order]
    steps = np.cumsum(high) - high / 2
    # What is left of a place without the heights below it must not fall; a solution
    # within bounds is the one without them, cut off there.
    found = isotonic_regression(np.asarray(wanted)[order] - steps).x
    if within is not None:
        found = np.maximum(np.minimum(found, within[1] - np.sum(high)), within[0])
    return [float(place) for place in (found + steps)[np.argsort(order)]]


def by_mechanism(
    table: pd.DataFrame, variable: str, column: str
) -> dict[str, dict[float, Quartiles]]:
    """Return the quartiles of a column by mechanism, and by a variable."""
    return {
        str(name): quartiles(own, variable, column)
        for name, own in table.groupby("mechanism", sort=False)
    }


@dataclass(frozen=True, eq=False)
class Curve:
    """A line of a figure: quartiles at places, how they are drawn, and whose."""

    said: str  # its name where there are words only, with the verdict on its claim
    line: Line
    x: Array  # ascending
    quartiles: Array

    @classmethod
    def of(cls, said: str, line: Line, values: Mapping[float, Quartiles]) -> "Curve":
        x = sorted(values)
        return cls(said, line, np.array(x), np.array([values[each] for each in x]).T)

    @property
    def last(self) -> tuple[float, float]:
        """Where it ends, and its median there."""
        return float(self.x[-1]), float(self.quartiles[1, -1])

    def draw(
        self,
        axes: Axes,
        places: Sequence[str],
        text: Callable[[float], str],
        heights: Callable[[Array], Any] = np.asarray,
        around: str = "middle half",
    ) -> tuple[Line, tuple[float, float]]:
        """Draw the band; return what `name_ends` needs.

        ``axes``: with its scales. ``places``: each place in words. ``text``: how a
        value is written. ``heights``: from values to where they stand. ``around``: what
        the band is.
        """
        texts = [
            f"{self.said}, {place}: {spread(three, text, around)}"
            for place, three in zip(places, self.quartiles.T, strict=True)
        ]
        drawn = heights(self.quartiles)
        band(axes, self.x, drawn, self.line, texts)
        return self.line, (float(self.x[-1]), float(drawn[1, -1]))


def sheet(
    height: float,
    count: int = 1,
    *,
    narrow: bool,
    across: int = 0,
    listed: Sequence[Line] = (),
    more: float = 0.0,
) -> tuple[Figure, list[plots.Box]]:
    """Return a figure of so many panels with a `key` below, and their places.

    On phones there is room for the names of lines that are `listed`, see `close`, and
    for `more` CSS pixels on any screen.
    """
    foot = FOOT[narrow] + more
    foot += _LISTED * len(listed) + 14 if narrow and listed else 0.0
    figure = plots.canvas(height + foot, narrow=narrow)
    return figure, plots.boxes(figure, count, across=across, foot=foot)


def close(figure: Figure, listed: Sequence[Line], *, narrow: bool) -> None:
    """List the names of lines below a `sheet` on phones, and write the key."""
    foot = FOOT[narrow]
    if narrow and figure.axes:
        list_below(figure.axes[-1], listed, foot + 12, _LISTED)
    key(figure, (line.dash for line in listed), narrow=narrow)
