"""Regret of online PCA against the length of the stream and against OPT."""

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.reports import lines, plots
from dpaudit.reports.lines import Line, Verdicts
from dpaudit.reports.power_law import fit_power_law
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.curves import Curve, by_mechanism
from dpaudit.reports.sections.online import measures
from dpaudit.reports.svg import INK, MUTED, SERIES
from dpaudit.reports.tables import Quartiles, grouped, quartiles
from dpaudit.reports.words import count, short, signed

_GAP, _ACROSS = 15.0, 46.0  # CSS pixels between lines of text, and between ticks
_AROUND: dict[str, Any] = {"left": 52.0, "right": 132.0, "top": 44.0, "bottom": 52.0}
_LABELS = {"m": "rows m", "OPT": "OPT"}


@plots.picture("online-regret", "Regret of online PCA by the length of the stream")
def regret_by_length(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the regret of the published mechanisms, and of the corrected, against m."""
    table, verdicts = results["online-regret"], Verdicts.of(results["online-audits"])
    found = by_mechanism(table, "rows", "regret")
    nothing = Line("random\nsubspace", MUTED, lines.DOTTED)
    idle = Curve.of("a random subspace", nothing, quartiles(table, "rows", "nothing"))
    leader = _leader(found, verdicts)
    published, corrected = (
        [
            Curve.of(
                name + verdicts.said(name),
                verdicts.line(name, place, _short(name)),
                found[name],
            )
            for place, name in enumerate(names)
        ]
        for names in (measures.PUBLISHED_ONLINE, measures.CORRECTED_ONLINE)
    )
    panels = {
        "Regret, as published": [*published, _bound(table, "rows"), idle, leader],
        "Regret, corrected": [*corrected, idle, leader],
    }
    figure = plots.canvas((720 if narrow else 380) + lines.FOOT[narrow], narrow=narrow)
    _panels(figure, panels, "m", narrow)
    return figure, " ".join(
        f"{each.said}: {count(each.last[1])} after {count(each.last[0])} rows."
        for each in (*published, *corrected, leader)
    )


@plots.picture(
    "regret-optimum", "Regret of Algorithms 3 and 4 on a hard stream, by OPT"
)
def regret_by_optimum(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the regret on rivals against OPT, and the proven bound."""
    table, verdicts = results["regret-optimum"], Verdicts.of(results["online-audits"])
    found = by_mechanism(table, "optimum", "regret")
    curves, sentences = [], []
    for name, label, place in (
        (measures.ALGORITHM_3, "Algorithm 3,\ntuned to OPT", 2),
        (measures.ALGORITHM_4, "Algorithm 4", 1),
    ):
        rows = table[table["mechanism"] == name]
        law = fit_power_law(grouped(rows, "optimum", "regret"))
        line = verdicts.line(name, place, label)
        if isfinite(law.exponent):
            line = replace(line, label=f"{line.label}\nexponent {signed(law.exponent)}")
        curve = Curve.of(name + verdicts.said(name), line, found[name])
        curves.append(curve)
        optimum, regret = map(count, curve.last)
        sentences.append(
            f"{curve.said}: {regret} at OPT = {optimum}, exponent "
            f"{signed(law.exponent)}, interval {law.interval}."
        )
    curves += [_bound(table, "optimum"), _leader(found, verdicts)]
    figure = plots.canvas((380 if narrow else 400) + lines.FOOT[narrow], narrow=narrow)
    _panels(figure, {"Regret among rivals": curves}, "OPT", narrow)
    return figure, " ".join(sentences)


def _bound(table: pd.DataFrame, variable: str) -> Curve:
    third = table[table["mechanism"] == measures.ALGORITHM_3]
    line = Line("proven bound", SERIES[2], lines.DOTTED)
    said = "the bound that is proven for Algorithm 3"
    return Curve.of(said, line, quartiles(third, variable, "proven"))


def _leader(found: dict[str, dict[float, Quartiles]], verdicts: Verdicts) -> Curve:
    """Return follow-the-leader, which makes no claim, in ink."""
    name = measures.LEADER
    line = replace(verdicts.line(name, 7, _short(name)), colour=INK)
    return Curve.of(name + verdicts.said(name), line, found[name])


def _short(name: str) -> str:
    """Return a name in two lines where it is long."""
    name = short(name)
    for end in ("doubling", "factorised", "leader"):
        if name.endswith(f"-{end}"):
            return f"{name.removesuffix(end)}\n{end}"
    return name


def _panels(
    figure: Figure, panels: dict[str, list[Curve]], variable: str, narrow: bool
) -> None:
    """Draw curves under their headings, all on the same scales."""
    every = [curve for curves in panels.values() for curve in curves]
    places = plots.boxes(figure, len(panels), foot=lines.FOOT[narrow])
    for box, (heading, curves) in zip(places, panels.items(), strict=True):
        axes = plots.panel(figure, box, heading, **_AROUND)
        _scales(axes, every, _LABELS[variable])
        ends = []
        for curve in curves:
            at = [f"{variable} = {count(x)}" for x in curve.x]
            ends.append(curve.draw(axes, at, count, lambda q: np.maximum(q, 0.5)))
        lines.name_ends(axes, ends, _GAP)
    lines.key(figure, (curve.line.dash for curve in every), narrow=narrow)


def _scales(axes: Axes, curves: Sequence[Curve], label: str) -> None:
    x = sorted({float(each) for curve in curves for each in curve.x})
    seen = np.concatenate([curve.quartiles.ravel() for curve in curves])
    low, high = max(seen.min(), 1.0) / 1.5, seen.max() * 1.5
    axes.set(xscale="log", yscale="log", xlim=(x[0], x[-1]), ylim=(low, high))
    plots.tick(axes, "y", plots.decades(low, high), count)
    plots.tick(axes, "x", x, count, _ACROSS)
    plots.finish(axes, label)
