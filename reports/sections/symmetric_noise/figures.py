"""Figures 1 and 2 of Imtiaz and Sarwate: captured variance by epsilon, and by n."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.reports import lines, plots
from dpaudit.reports.lines import Line, Verdicts
from dpaudit.reports.plots import INK, MUTED
from dpaudit.reports.sections import Results
from dpaudit.reports.tables import quartiles
from dpaudit.reports.words import count, delta, percent, setting, short, spread

__all__ = ["PUBLIC", "chosen_delta", "tables_of"]

PUBLIC = "-public"
"""After the name of a dataset: about a public centre, rows by their own lengths."""

_HIGH, _LISTED = 310, 22.0  # CSS pixels: of a panel, and of a name below on phones
_CHANCE = Line("random subspace", MUTED, lines.DOTTED)


@plots.picture(
    "symmetric-noise-epsilon", "Captured variance, as a share of that of PCA, by ε"
)
def by_epsilon(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw Figure 1: the captured share against epsilon, a panel for each delta."""
    return _panels(results, "epsilon", narrow)


@plots.picture(
    "symmetric-noise-rows", "Captured variance, as a share of that of PCA, by n"
)
def by_rows(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw Figure 2: the captured share against the rows, a panel for each delta."""
    return _panels(results, "n", narrow)


def tables_of(results: Results, variable: str) -> dict[str, pd.DataFrame]:
    """Return what there is by a variable, by dataset."""
    start = f"sn-{variable}-"
    return {
        name.removeprefix(start): results[name]
        for name in results.tables
        if name.startswith(start)
    }


def chosen_delta(table: pd.DataFrame, at: float) -> pd.DataFrame:
    """Return the approximate claims at one delta, with all pure ones."""
    return table[table["delta"].isin((0.0, at))]


def _panels(results: Results, variable: str, narrow: bool) -> tuple[Figure, str]:
    verdicts = Verdicts.of(results["privacy-wall"])
    shown = [
        (dataset, at, chosen_delta(table, at))
        for dataset, table in tables_of(results, variable).items()
        for at in results.options(f"sn-{variable}-{dataset}")["deltas"]
    ]
    names = dict.fromkeys(name for *_, table in shown for name in table["mechanism"])
    drawn = [verdicts.line(n, place, short(n)) for place, n in enumerate(names)]
    foot = lines.FOOT[narrow]
    listed = [*drawn, _CHANCE]
    below = _LISTED * len(listed) + 14 if narrow else 0.0
    height = _HIGH * len(shown) + below + foot
    figure = plots.canvas(height, narrow=narrow)
    width = plots.NARROW if narrow else plots.WIDE
    sentences = []
    for i, (dataset, at, table) in enumerate(shown):
        box = (0.0, height - _HIGH * (i + 1), float(width), float(_HIGH))
        heading = f"{dataset.replace(PUBLIC, ', public centre')}, δ = {delta(at)}"
        right = 20 if narrow else 214
        axes = plots.panel(
            figure, box, heading, left=52, right=right, top=58, bottom=50
        )
        found = quartiles(table, ("mechanism", variable), "captured_share")
        chance = quartiles(table, variable, "random_share")
        _scales(axes, sorted(chance), variable)
        axes.axhline(1.0, color=INK, linewidth=1)
        ends = []
        for name, line in zip((*names, _CHANCE.label), listed, strict=True):
            own = {x: q for (other, x), q in found.items() if other == name}
            own = chance if line is _CHANCE else own
            places = sorted(own)
            curve = np.array([own[x] for x in places]).T
            said = name if line is _CHANCE else name + verdicts.said(name)
            texts = [
                f"{said}, {_at(variable, x)}: {spread(own[x], percent)}" for x in places
            ]
            lines.band(axes, places, curve, line, texts)
            ends.append((line, (places[-1], float(curve[1, -1]))))
            sentences.append(
                f"{heading}, {said}: {percent(curve[1, 0])} to {percent(curve[1, -1])}."
            )
        if not narrow:
            lines.name_ends(axes, ends)
    if narrow and shown:
        lines.list_below(axes, listed, foot + 12, _LISTED)
    lines.key(figure, (line.dash for line in drawn), narrow=narrow)
    return figure, " ".join(sentences)


def _at(variable: str, x: float) -> str:
    return f"ε = {setting(x)}" if variable == "epsilon" else f"n = {count(x)}"


def _scales(axes: Axes, places: list[float], variable: str) -> None:
    axes.set(xscale="log", xlim=(places[0], places[-1]), ylim=(0, 1.02))
    marks = plots.decades(places[0], places[-1] * 1.001, (1, 2, 5))
    words = setting if variable == "epsilon" else count
    plots.tick(axes, "x", marks, words, 52.0)
    plots.tick(axes, "y", [0, 0.2, 0.4, 0.6, 0.8, 1], lambda share: f"{share:.0%}")
    label = "claimed ε" if variable == "epsilon" else "rows n"
    plots.finish(axes, label)
