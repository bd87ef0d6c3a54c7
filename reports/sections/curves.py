"""Curves with bands and verdicts, and figures that stack panels of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.arrays import Array
from dpaudit.reports import lines, plots
from dpaudit.reports.lines import Line
from dpaudit.reports.tables import Quartiles, quartiles
from dpaudit.reports.words import spread

_LISTED = 22.0  # CSS pixels of a name below a figure, on phones


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
        """Draw the band; return what `dpaudit.reports.lines.name_ends` needs.

        ``axes``: with its scales. ``places``: each place in words. ``text``: how a
        value is written. ``heights``: from values to where they stand. ``around``: what
        the band is.
        """
        texts = [
            f"{self.said}, {place}: {spread(three, text, around)}"
            for place, three in zip(places, self.quartiles.T, strict=True)
        ]
        drawn = heights(self.quartiles)
        lines.band(axes, self.x, drawn, self.line, texts)
        return self.line, (float(self.x[-1]), float(drawn[1, -1]))


def stacked(
    count: int, high: float, listed: Sequence[Line], *, narrow: bool
) -> tuple[Figure, list[plots.Box]]:
    """Return a figure of panels one below the other, and their places.

    On phones there is room below for the names of lines, see `close`.
    """
    below = _LISTED * len(listed) + 14 if narrow else 0.0
    foot = below + lines.FOOT[narrow]
    figure = plots.canvas(high * count + foot, narrow=narrow)
    return figure, plots.boxes(figure, count, across=1, foot=foot)


def close(figure: Figure, listed: Sequence[Line], *, narrow: bool) -> None:
    """List the names of lines below a `stacked` figure on phones, and write the key."""
    foot = lines.FOOT[narrow]
    if narrow and figure.axes:
        lines.list_below(figure.axes[-1], listed, foot + 12, _LISTED)
    lines.key(figure, (line.dash for line in listed), narrow=narrow)
