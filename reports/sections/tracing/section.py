"""The section on tracing: what is measured, and how it is shown.

The sentences are in `dpaudit.reports.sections.tracing.findings`.
"""

from collections.abc import Mapping
from math import sqrt
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.fingerprinting import Proportion
from dpaudit.reports import lines, plots, svg
from dpaudit.reports.lines import Line, Verdicts
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.tracing import findings, measures
from dpaudit.reports.sections.tracing.findings import Shares, clusters, shares
from dpaudit.reports.svg import SERIES
from dpaudit.reports.tables import records, refuted_mechanisms
from dpaudit.reports.words import count, percent, setting, spread

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
    found = shares(results["tracing-references"], results["tracing"])
    dimension = measures.dimension_of(results.options("tracing"))
    verdicts = Verdicts.of(results["privacy-wall"])
    by_k = {
        k: [e for e in found if e.components == k][:_PANELS] for k in clusters(found)
    }
    ordered = [each for some in by_k.values() for each in some]
    rows, panels = len(ordered) if narrow else len(by_k), len(ordered)
    figure, places = lines.sheet(
        _HEIGHTS[narrow] * rows, panels, narrow=narrow, across=panels // rows
    )
    said = {}
    for box, each in zip(places, ordered, strict=True):
        heading = f"k = {each.components}: {each.name}"
        said[each] = heading + verdicts.said(each.mechanism)
        heading += lines.mark(each.mechanism, verdicts.refuted)
        axes = plots.panel(
            figure, box, heading, colour=verdicts.heading(each.mechanism), **_AROUND
        )
        _scales(axes, found, dimension)
        ends = [
            _draw(axes, some, dimension, line, shift, said[each])
            for line, some, shift in (
                (_USEFUL, each.useful, 1 / _APART),
                (_TRACED, each.traced, _APART),
            )
            if some
        ]
        lines.name_ends(axes, ends)
    dashes = [verdicts.line(each.mechanism, 0).dash for each in ordered]
    lines.key(figure, dashes, narrow=narrow, names=True)
    return figure, " ".join(
        f"{said[each]}, m/√d = {setting(m / sqrt(dimension))}: "
        f"useful {percent(each.useful[m].share)}, "
        f"traced {percent(each.traced[m].share)}."
        for each in ordered
        for m in each.useful
    )


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
) -> tuple[Line, tuple[float, float]]:
    """Draw shares, and their intervals as bars; return the line, and where it ends."""
    places, found = zip(*sorted(shares.items()), strict=True)
    x = [m / sqrt(dimension) * shift for m in places]
    bar: dict[str, Any] = {"linewidth": 4, "alpha": 0.3, "solid_capstyle": "butt"}
    texts = []
    for place, m, each in zip(x, places, found, strict=True):
        low, high = each.interval
        axes.plot([place, place], (low, high), color=line.colour, **bar)
        around = spread((low, each.share, high), percent, "99 % interval")
        texts.append(f"{said}, m = {count(m)}: {line.label} {around}")
    middles = [each.share for each in found]
    axes.plot(x, middles, linewidth=2, clip_on=False, **line.style)
    svg.told(axes, x, middles, texts)
    return line, (x[-1], middles[-1])


def context(results: Results) -> dict[str, Any]:
    options = results.options("tracing")
    length = int(options["length"])
    found = results.once(findings.all_shares)
    refuted = refuted_mechanisms(results["privacy-wall"])
    many = results["tracing-catalogue"]["rows"]
    ends = int(many.min()), int(many.max())
    culled = findings.culled(results["list-culling"])
    return {
        "head": findings.head(found, refuted, length),
        "instances": findings.instance_notes(results["hard-instances"], length),
        "heads": findings.table_heads(found),
        "rows": findings.tracing_rows(found, refuted, ends),
        "notes": findings.tracing_notes(found, refuted),
        "refusals": findings.refusals(found),
        "setting": {**options, "dimension": measures.dimension_of(options)},
        "trials": results.experiments["tracing"].repetitions,
        "catalogue_trials": results.experiments["tracing-catalogue"].repetitions,
        "delta": 1 / length**2,
        "ends": ends,
        "culling": list(zip(*map(records, culled), strict=True)),
        "culling_notes": findings.culling_notes(results["list-culling"]),
    }


NOTES = {("list-culling",): findings.culling_notes}
