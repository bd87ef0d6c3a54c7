"""Usefulness and tracing against rows: panels for each number of components."""

from collections.abc import Mapping
from math import sqrt
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.fingerprinting import Proportion
from dpaudit.reports import plots
from dpaudit.reports.plots import SERIES
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.tracing import measures
from dpaudit.reports.sections.tracing.findings import Shares, clusters, shares
from dpaudit.reports.tables import refuted_mechanisms
from dpaudit.reports.words import percent, setting

__all__ = ["useful_and_traced"]

_HEIGHTS = {False: 220, True: 190}  # of a panel, by narrow
_AROUND = {"left": 48.0, "right": 58.0, "top": 42.0, "bottom": 46.0}
_GAP = 17.0
_PANELS = 3  # of each k: components without noise, and a mechanism at two epsilons
_APART = 1.04  # by how much the two points at one size are pulled apart


@plots.picture("tracing", "How often releases on hard instances are useful, and traced")
def useful_and_traced(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw both shares against rows over sqrt(d), by k from top to bottom.

    From left to right (on phones below one another): components without noise, and one
    mechanism, at each epsilon.
    """
    found = _shares(results)
    dimension = measures.dimension_of(results.options("tracing"))
    refuted = refuted_mechanisms(results["privacy-wall"])
    by_k = {
        k: [e for e in found if e.components == k][:_PANELS] for k in clusters(found)
    }
    ordered = [each for some in by_k.values() for each in some]
    height = _HEIGHTS[narrow]
    lines = len(ordered) if narrow else len(by_k)
    figure = plots.canvas(height * lines, narrow=narrow)
    for i, each in enumerate(ordered):
        across = 1 if narrow else len(ordered) // len(by_k)
        width = (plots.NARROW if narrow else plots.WIDE) / across
        box = (i % across * width, height * (lines - 1 - i // across), width, height)
        heading = f"k = {each.components}: {each.name}"
        heading += plots.mark(each.mechanism, refuted)
        axes = plots.panel(figure, box, heading, **_AROUND)
        _scales(axes, found, dimension)
        ends = []
        for name, some, colour, shift in (
            ("useful", each.useful, SERIES[0], 1 / _APART),
            ("traced", each.traced, SERIES[1], _APART),
        ):
            if some:
                _draw(axes, some, dimension, colour, shift)
                ends.append((name, colour, some[max(some)].share))
        plots.name_ends(axes, ends, _GAP, away=6)
    return figure, " ".join(
        f"k = {each.components}: {each.name}, m/√d = {setting(m / sqrt(dimension))}: "
        f"useful {percent(each.useful[m].share)}, "
        f"traced {percent(each.traced[m].share)}."
        for each in ordered
        for m in each.useful
    )


def _shares(results: Results) -> list[Shares]:
    return shares(results["tracing-references"], results["tracing"])


def _scales(axes: Axes, found: list[Shares], dimension: int) -> None:
    x = sorted({m / sqrt(dimension) for each in found for m in each.useful})
    axes.set_xscale("log")
    if x:
        axes.set_xlim(x[0] / 1.25, x[-1] * 1.25)
    plots.tick(axes, "x", plots.decades(*axes.get_xlim()), setting)
    axes.set_ylim(-0.06, 1.06)
    axes.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    plots.finish(axes, "rows m/√d")


def _draw(
    axes: Axes,
    shares: Mapping[int, Proportion],
    dimension: int,
    colour: str,
    shift: float,
) -> None:
    """Draw shares, and their intervals as bars."""
    x = [m / sqrt(dimension) * shift for m in sorted(shares)]
    found = [shares[m] for m in sorted(shares)]
    bar: dict[str, Any] = {"linewidth": 4, "alpha": 0.3, "solid_capstyle": "butt"}
    for place, each in zip(x, found, strict=True):
        axes.plot([place, place], each.interval, color=colour, **bar)
    middles = [each.share for each in found]
    axes.plot(x, middles, color=colour, linewidth=2)
    axes.plot(x, middles, "o", color=colour, markersize=5, clip_on=False)
