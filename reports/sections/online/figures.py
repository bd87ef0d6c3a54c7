"""Regret of online PCA against the length of the stream and against OPT."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.reports import lines, plots
from dpaudit.reports.lines import Line, Verdicts
from dpaudit.reports.plots import INK, MUTED, SERIES
from dpaudit.reports.power_law import fit_power_law
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.online import measures
from dpaudit.reports.tables import Quartiles, grouped, quartiles
from dpaudit.reports.words import count, short, signed, spread

_GAP, _ACROSS = 15.0, 46.0  # CSS pixels between lines of text, and between ticks
_AROUND: dict[str, Any] = {"left": 52.0, "right": 132.0, "top": 44.0, "bottom": 52.0}
_LABELS = {"m": "rows m", "OPT": "OPT"}
_BOUND = "the bound that is proven for Algorithm 3"


@dataclass(frozen=True)
class _Curve:
    """A series, its quartiles, and what it is called where there is room."""

    name: str
    line: Line
    values: dict[float, Quartiles]


@plots.picture("online-regret", "Regret of online PCA by the length of the stream")
def regret_by_length(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the regret of the published mechanisms, and of the corrected, against m."""
    table, verdicts = results["online-regret"], Verdicts.of(results["online-audits"])
    found = quartiles(table, ("mechanism", "rows"), "regret")
    nothing = quartiles(table, "rows", "nothing")
    third = table[table["mechanism"] == measures.ALGORITHM_3]
    bounds = quartiles(third, "rows", "proven")
    around = [
        _Curve(
            "a random subspace", Line("random\nsubspace", MUTED, lines.DOTTED), nothing
        ),
        _leader(found, verdicts),
    ]
    panels = {
        "Regret, as published": [
            *_curves(found, measures.PUBLISHED_ONLINE, verdicts),
            _Curve(_BOUND, Line("proven bound", SERIES[2], lines.DOTTED), bounds),
            *around,
        ],
        "Regret, corrected": [
            *_curves(found, measures.CORRECTED_ONLINE, verdicts),
            *around,
        ],
    }
    figure = plots.canvas((720 if narrow else 380) + lines.FOOT[narrow], narrow=narrow)
    _panels(figure, panels, "m", narrow)
    names = (*measures.PUBLISHED_ONLINE, *measures.CORRECTED_ONLINE, measures.LEADER)
    return figure, " ".join(
        f"{name}{verdicts.said(name)}: {count(values[max(values)][1])} after "
        f"{count(max(values))} rows."
        for name in names
        for values in (_of(found, name),)
    )


@plots.picture(
    "regret-optimum", "Regret of Algorithms 3 and 4 on a hard stream, by OPT"
)
def regret_by_optimum(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the regret on rivals against OPT, and the proven bound."""
    table, verdicts = results["regret-optimum"], Verdicts.of(results["online-audits"])
    found = quartiles(table, ("mechanism", "optimum"), "regret")
    curves, sentences = [], []
    for name, label, place in (
        (measures.ALGORITHM_3, "Algorithm 3,\ntuned to OPT", 2),
        (measures.ALGORITHM_4, "Algorithm 4", 1),
    ):
        values = _of(found, name)
        rows = table[table["mechanism"] == name]
        law = fit_power_law(grouped(rows, "optimum", "regret"))
        line = verdicts.line(name, place, label)
        if isfinite(law.exponent):
            line = replace(line, label=f"{line.label}\nexponent {signed(law.exponent)}")
        name += verdicts.said(name)
        curves.append(_Curve(name, line, values))
        sentences.append(
            f"{name}: {count(values[max(values)][1])} at OPT = "
            f"{count(max(values))}, exponent {signed(law.exponent)}, interval "
            f"{law.interval}."
        )
    third = table[table["mechanism"] == measures.ALGORITHM_3]
    bounds = quartiles(third, "optimum", "proven")
    curves += [
        _Curve(_BOUND, Line("proven bound", SERIES[2], lines.DOTTED), bounds),
        _leader(found, verdicts),
    ]
    figure = plots.canvas((380 if narrow else 400) + lines.FOOT[narrow], narrow=narrow)
    _panels(figure, {"Regret among rivals": curves}, "OPT", narrow)
    return figure, " ".join(sentences)


def _of(found: dict[tuple[str, float], Quartiles], name: str) -> dict[float, Quartiles]:
    return {x: q for (other, x), q in found.items() if other == name}


def _curves(
    found: dict[tuple[str, float], Quartiles], names: Sequence[str], verdicts: Verdicts
) -> list[_Curve]:
    return [
        _Curve(
            name + verdicts.said(name),
            verdicts.line(name, place, _short(name)),
            _of(found, name),
        )
        for place, name in enumerate(names)
    ]


def _leader(found: dict[tuple[str, float], Quartiles], verdicts: Verdicts) -> _Curve:
    """Return follow-the-leader, which makes no claim, in ink."""
    name = measures.LEADER
    line = replace(verdicts.line(name, 7, _short(name)), colour=INK)
    return _Curve(name + verdicts.said(name), line, _of(found, name))


def _short(name: str) -> str:
    """Return a name in two lines where it is long."""
    name = short(name)
    for end in ("doubling", "factorised", "leader"):
        if name.endswith(f"-{end}"):
            return f"{name.removesuffix(end)}\n{end}"
    return name


def _panels(
    figure: Figure, panels: dict[str, list[_Curve]], variable: str, narrow: bool
) -> None:
    """Draw curves under their headings, all on the same scales."""
    every = [curve for curves in panels.values() for curve in curves]
    places = plots.boxes(figure, len(panels), foot=lines.FOOT[narrow])
    for box, (heading, curves) in zip(places, panels.items(), strict=True):
        axes = plots.panel(figure, box, heading, **_AROUND)
        _scales(axes, every, _LABELS[variable])
        ends = []
        for curve in curves:
            x = sorted(curve.values)
            told = ((f"{variable} = {count(i)}", curve.values[i]) for i in x)
            texts = [f"{curve.name}, {at}: {spread(q, count)}" for at, q in told]
            drawn = np.maximum(np.array([curve.values[i] for i in x]).T, 0.5)
            lines.band(axes, x, drawn, curve.line, texts)
            ends.append((curve.line, (x[-1], float(drawn[1, -1]))))
        lines.name_ends(axes, ends, _GAP)
    lines.key(figure, (curve.line.dash for curve in every), narrow=narrow)


def _scales(axes: Axes, curves: Sequence[_Curve], label: str) -> None:
    x = sorted({each for curve in curves for each in curve.values})
    seen = [v for curve in curves for q in curve.values.values() for v in q]
    low, high = max(min(seen), 1.0) / 1.5, max(seen) * 1.5
    axes.set(xscale="log", yscale="log", xlim=(x[0], x[-1]), ylim=(low, high))
    plots.tick(axes, "y", plots.decades(low, high), count)
    plots.tick(axes, "x", x, count, _ACROSS)
    plots.finish(axes, label)
