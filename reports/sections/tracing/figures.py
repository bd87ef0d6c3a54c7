"""Usefulness and tracing against rows: panels for each number of components."""

from collections.abc import Mapping
from math import sqrt
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.fingerprinting import Proportion
from dpaudit.reports import lines, plots
from dpaudit.reports.lines import Line, Verdicts
from dpaudit.reports.plots import SERIES
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.tracing import measures
from dpaudit.reports.sections.tracing.findings import Shares, clusters, shares
from dpaudit.reports.words import count, percent, setting, spread

__all__ = ["useful_and_traced"]

_HEIGHTS = {False: 220, True: 190}  # of a panel, by narrow
_AROUND = {"left": 48.0, "right": 72.0, "top": 42.0, "bottom": 46.0}
_USEFUL = Line("useful", SERIES[0], marker="o")
_TRACED = Line("traced", SERIES[1], marker="s")
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
    verdicts = Verdicts.of(results["privacy-wall"])
    by_k = {
        k: [e for e in found if e.components == k][:_PANELS] for k in clusters(found)
    }
    ordered = [each for some in by_k.values() for each in some]
    height = _HEIGHTS[narrow]
    rows = len(ordered) if narrow else len(by_k)
    foot = lines.FOOT[narrow]
    figure = plots.canvas(height * rows + foot, narrow=narrow)
    for i, each in enumerate(ordered):
        across = 1 if narrow else len(ordered) // len(by_k)
        width = (plots.NARROW if narrow else plots.WIDE) / across
        bottom = foot + height * (rows - 1 - i // across)
        heading = f"k = {each.components}: {each.name}"
        heading += lines.mark(each.mechanism, verdicts.refuted)
        axes = plots.panel(
            figure,
            (i % across * width, bottom, width, height),
            heading,
            colour=verdicts.heading(each.mechanism),
            **_AROUND,
        )
        _scales(axes, found, dimension)
        ends = []
        for line, some, shift in (
            (_USEFUL, each.useful, 1 / _APART),
            (_TRACED, each.traced, _APART),
        ):
            if some:
                said = f"k = {each.components}: {each.name}"
                said += verdicts.said(each.mechanism)
                _draw(axes, some, dimension, line, shift, said)
                last = max(some)
                x = last / sqrt(dimension) * shift
                ends.append((line, (x, some[last].share)))
        lines.name_ends(axes, ends)
    dashes = [verdicts.line(each.mechanism, 0).dash for each in ordered]
    lines.key(figure, dashes, narrow=narrow, names=True)
    return figure, " ".join(
        f"k = {each.components}: {each.name}{verdicts.said(each.mechanism)}, m/√d = "
        f"{setting(m / sqrt(dimension))}: "
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
    line: Line,
    shift: float,
    said: str,
) -> None:
    """Draw shares, and their intervals as bars."""
    x = [m / sqrt(dimension) * shift for m in sorted(shares)]
    found = [shares[m] for m in sorted(shares)]
    bar: dict[str, Any] = {"linewidth": 4, "alpha": 0.3, "solid_capstyle": "butt"}
    for place, each in zip(x, found, strict=True):
        axes.plot([place, place], each.interval, color=line.colour, **bar)
    middles = [each.share for each in found]
    axes.plot(x, middles, linewidth=2, clip_on=False, **line.style)
    texts = [
        f"{said}, m = {count(m)}: {line.label} "
        f"{spread(_three(shares[m]), percent, '99 % interval')}"
        for m in sorted(shares)
    ]
    plots.told(axes, x, middles, texts)


def _three(share: Proportion) -> tuple[float, float, float]:
    low, high = share.interval
    return low, share.share, high
