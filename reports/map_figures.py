"""The figure of the maps that mechanisms find in genotypes.

As for `dpaudit.reports.figures`: tables in, SVG for light and dark out.
"""

from collections.abc import Collection
from math import ceil

import numpy as np
import pandas as pd

from dpaudit.reports.formats import percent
from dpaudit.reports.svg import INK, MUTED, NARROW, SERIES, WIDE, canvas, to_svg

__all__ = ["maps"]

_PEOPLE = 240  # dots in a map
_HIGH = 190.0  # CSS pixels


def maps(
    table: pd.DataFrame, *, refuted: Collection[str] = (), narrow: bool = False
) -> str:
    """Draw people where each mechanism puts them, coloured by where they are from.

    Parameters
    ----------
    table : pandas.DataFrame
        Of the experiment ``genotypes``.
    refuted : collection of str
        Mechanisms that audits have refuted.
    narrow : bool
        For a phone: two maps side by side instead of four.
    """
    names = list(dict.fromkeys(table["mechanism"]))
    across = 2 if narrow else 4
    width = NARROW if narrow else WIDE
    high = _HIGH if not narrow else 176.0
    height = round(high * ceil(len(names) / across))
    first = table[table["mechanism"] == names[0]]
    reach = 1.15 * float(np.abs(first[["east", "north"]].to_numpy()).max())
    quarters = np.quantile(first["east"], [0.25, 0.5, 0.75])
    fits = {name: float(some["fit"].iloc[0]) for name, some in _each(table, names)}
    with canvas(width, height) as figure:
        for place, (name, some) in enumerate(_each(table, names)):
            row, column = divmod(place, across)
            left = width / across * column
            bottom = height - high * (row + 1)
            axes = figure.add_axes(
                (
                    (left + 6) / width,
                    (bottom + 8) / height,
                    (width / across - 12) / width,
                    (high - 50) / height,
                )
            )
            shown = some.iloc[:: max(1, len(some) // _PEOPLE)]
            where = np.searchsorted(quarters, shown["east"])
            for quarter in range(4):
                dots = shown[where == quarter]
                axes.plot(
                    dots["x"],
                    dots["y"],
                    "o",
                    color=SERIES[quarter],
                    markersize=3.2,
                    markeredgewidth=0,
                    alpha=0.75,
                )
            axes.set_xlim(-reach, reach)
            axes.set_ylim(-reach, reach)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.spines["bottom"].set_visible(False)
            mark = " ✗" if name in refuted else ""
            for text, up, colour in (
                (f"{name.removesuffix('-published')}{mark}", 18, INK),
                (_under(name, fits[name]), 34, MUTED),
            ):
                axes.annotate(
                    text,
                    (left + 8, bottom + high - up),
                    xycoords="figure pixels",
                    color=colour,
                    size=12 if colour == INK else 11,
                    weight="bold" if colour == INK else "normal",
                )
        return to_svg(
            figure,
            f"figure-genotypes-{'narrow' if narrow else 'wide'}",
            title="Maps that mechanisms find in genotypes",
            description=" ".join(
                f"{name} explains {percent(fit)} of the map."
                for name, fit in fits.items()
            ),
        )


def _each(table: pd.DataFrame, names: list[str]) -> list[tuple[str, pd.DataFrame]]:
    return [(name, table[table["mechanism"] == name]) for name in names]


def _under(name: str, fit: float) -> str:
    published = "as published, " if name.endswith("-published") else ""
    return f"{published}{percent(fit)}"
