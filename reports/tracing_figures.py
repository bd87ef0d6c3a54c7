"""The figure of tracing: who is useful on hard instances, and whose rows are traced.

As for `dpaudit.reports.figures`: tables in, SVG for light and dark out.
"""

from collections.abc import Collection, Mapping, Sequence
from math import sqrt

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.fingerprinting import Proportion
from dpaudit.reports.formats import percent, setting
from dpaudit.reports.labels import apart
from dpaudit.reports.svg import NARROW, SERIES, WIDE, canvas, to_svg
from dpaudit.reports.tracing_findings import Shares

__all__ = ["useful_and_traced"]

_LEFT, _RIGHT, _TOP, _BOTTOM = 48.0, 58.0, 44.0, 52.0  # CSS pixels around a panel
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
        for place, each in enumerate(found):
            box = (
                (0.0, 250.0 * (len(found) - 1 - place), float(width), 250.0)
                if narrow
                else (width / len(found) * place, 0.0, width / len(found), height)
            )
            axes = _axes(figure, box, each, each.mechanism in refuted)
            _scales(axes, found, dimension)
            ends = []
            for name, shares, colour, shift in (
                ("useful", each.useful, SERIES[0], 1 / _APART),
                ("traced", each.traced, SERIES[1], _APART),
            ):
                if shares:
                    _draw(axes, shares, dimension, colour, shift)
                    ends.append((name, colour, shares[max(shares)].share))
            _name(axes, ends)
        return to_svg(
            figure,
            f"figure-tracing-{'narrow' if narrow else 'wide'}",
            title="How often releases on hard instances are useful, and traced",
            description=" ".join(
                f"{each.name}, m/√d = {setting(m / sqrt(dimension))}: useful "
                f"{percent(each.useful[m].share)}, traced "
                f"{percent(each.traced[m].share)}."
                for each in found
                for m in each.useful
            ),
        )


def _axes(
    figure: Figure,
    box: tuple[float, float, float, float],
    each: Shares,
    refuted: bool,
) -> Axes:
    left, bottom, width, height = box
    across, up = figure.get_size_inches() * 72
    axes = figure.add_axes(
        (
            (left + _LEFT) / across,
            (bottom + _BOTTOM) / up,
            (width - _LEFT - _RIGHT) / across,
            (height - _TOP - _BOTTOM) / up,
        )
    )
    axes.annotate(
        each.name + (" ✗" if refuted else ""),
        (left + 8, bottom + height - 22),
        xycoords="figure pixels",
        weight="bold",
    )
    return axes


def _scales(axes: Axes, found: Sequence[Shares], dimension: int) -> None:
    x = sorted({m / sqrt(dimension) for each in found for m in each.useful})
    axes.set_xscale("log")
    if x:
        axes.set_xlim(x[0] / 1.25, x[-1] * 1.25)
    marks = [10.0**e for e in range(-3, 4)]
    low, high = axes.get_xlim()
    marks = [mark for mark in marks if low <= mark <= high]
    axes.set_xticks(marks, [setting(mark) for mark in marks])
    axes.set_xticks([], minor=True)
    axes.set_ylim(-0.06, 1.06)
    axes.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    axes.set_xlabel("rows m/√d", labelpad=6)
    axes.tick_params(which="both", length=0, pad=6)
    axes.grid(axis="y")
    axes.set_axisbelow(True)


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


def _name(axes: Axes, ends: Sequence[tuple[str, str, float]]) -> None:
    """Write what is what where the lines end."""
    wanted = [
        float(axes.transData.transform((axes.get_xlim()[1], share))[1])
        for *_, share in ends
    ]
    for (name, colour, _), y in zip(ends, apart(wanted, _GAP), strict=True):
        axes.annotate(
            name,
            (axes.get_window_extent().x1 + 6, y),
            xycoords="figure pixels",
            va="center",
            color=colour,
            size=12.5,
        )
