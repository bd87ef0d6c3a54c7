"""Tracing: who is useful on hard instances, and whose rows are traced."""

from collections.abc import Collection, Mapping, Sequence
from math import sqrt

from matplotlib.axes import Axes

from dpaudit.fingerprinting import Proportion
from dpaudit.reports.plots import (
    NARROW,
    SERIES,
    WIDE,
    boxes,
    canvas,
    finish,
    name_ends,
    panel,
    to_svg,
)
from dpaudit.reports.sections.tracing.findings import Shares
from dpaudit.reports.words import percent, setting

__all__ = ["useful_and_traced"]

_AROUND = {"left": 48.0, "right": 58.0, "top": 44.0, "bottom": 52.0}
_GAP = 17.0
_APART = 1.04  # by how much the two points at one size are pulled apart


def useful_and_traced(
    found: Sequence[Shares],
    dimension: int,
    *,
    refuted: Collection[str] = (),
    narrow: bool = False,
) -> str:
    """Draw for a few mechanisms both shares against rows over sqrt(d).

    Parameters
    ----------
    found : sequence of Shares
        One panel each.
    dimension : int
        d.
    refuted : collection of str
        Mechanisms that audits have refuted: their headings say so.
    narrow : bool
        For a phone: one panel below the other.
    """
    width, height = (NARROW, 250 * len(found)) if narrow else (WIDE, 300)
    with canvas(width, height) as figure:
        places = boxes(len(found), width, height, narrow=narrow)
        for box, each in zip(places, found, strict=True):
            heading = each.name + (" ✗" if each.mechanism in refuted else "")
            axes = panel(figure, box, heading, **_AROUND)
            _scales(axes, found, dimension)
            ends = []
            for name, shares, colour, shift in (
                ("useful", each.useful, SERIES[0], 1 / _APART),
                ("traced", each.traced, SERIES[1], _APART),
            ):
                if shares:
                    _draw(axes, shares, dimension, colour, shift)
                    ends.append((name, colour, shares[max(shares)].share))
            name_ends(axes, ends, _GAP, away=6)
        return to_svg(
            figure,
            "tracing",
            narrow=narrow,
            title="How often releases on hard instances are useful, and traced",
            description=" ".join(
                f"{each.name}, m/√d = {setting(m / sqrt(dimension))}: useful "
                f"{percent(each.useful[m].share)}, traced "
                f"{percent(each.traced[m].share)}."
                for each in found
                for m in each.useful
            ),
        )


def _scales(axes: Axes, found: Sequence[Shares], dimension: int) -> None:
    x = sorted({m / sqrt(dimension) for each in found for m in each.useful})
    axes.set_xscale("log")
    if x:
        axes.set_xlim(x[0] / 1.25, x[-1] * 1.25)
    marks = [10.0**e for e in range(-3, 4)]
    low, high = axes.get_xlim()
    marks = [mark for mark in marks if low <= mark <= high]
    axes.set_xticks(marks, [setting(mark) for mark in marks])
    axes.set_ylim(-0.06, 1.06)
    axes.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    finish(axes, "rows m/√d")


def _draw(
    axes: Axes,
    shares: Mapping[int, Proportion],
    dimension: int,
    colour: str,
    shift: float,
) -> None:
    """Draw shares, and their intervals as bars."""
    rows = sorted(shares)
    x = [m / sqrt(dimension) * shift for m in rows]
    for place, m in zip(x, rows, strict=True):
        axes.plot(
            [place, place],
            shares[m].interval,
            color=colour,
            linewidth=4,
            alpha=0.3,
            solid_capstyle="butt",
        )
    axes.plot(x, [shares[m].share for m in rows], color=colour, linewidth=2)
    axes.plot(
        x,
        [shares[m].share for m in rows],
        "o",
        color=colour,
        markersize=5,
        clip_on=False,
    )
