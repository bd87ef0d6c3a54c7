"""Figures 1 and 2 of Imtiaz and Sarwate: captured variance by epsilon, and by n."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.reports import plots
from dpaudit.reports.plots import DOTTED, INK, MUTED, REFUTED, SERIES
from dpaudit.reports.sections import Results
from dpaudit.reports.tables import quartiles, refuted_mechanisms, standing_mechanisms
from dpaudit.reports.words import count, delta, percent, setting, short

__all__ = ["PUBLIC", "by_epsilon", "by_rows", "chosen_delta", "tables_of"]

PUBLIC = "-public"
"""After the name of a dataset: about a public centre, rows by their own lengths."""

_GAP, _LETTERS = 16.0, 12.0  # CSS pixels


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
    audits = results["privacy-wall"]
    refuted, standing = refuted_mechanisms(audits), standing_mechanisms(audits)
    shown = [
        (dataset, at, chosen_delta(table, at))
        for dataset, table in tables_of(results, variable).items()
        for at in results.options(f"sn-{variable}-{dataset}")["deltas"]
    ]
    high = 310
    figure = plots.canvas(high * len(shown), narrow=narrow)
    width = plots.NARROW if narrow else plots.WIDE
    names = dict.fromkeys(name for *_, table in shown for name in table["mechanism"])
    colours = dict(zip([n for n in names if n not in refuted], SERIES, strict=False))
    sentences = []
    for i, (dataset, at, table) in enumerate(shown):
        box = (0.0, float(high * (len(shown) - 1 - i)), float(width), float(high))
        heading = f"{dataset.replace(PUBLIC, ', public centre')}, δ = {delta(at)}"
        right = 150 if narrow else 190
        axes = plots.panel(
            figure, box, heading, left=52, right=right, top=58, bottom=50
        )
        found = quartiles(table, ("mechanism", variable), "captured_share")
        chance = quartiles(table, variable, "random_share")
        _scales(axes, sorted(chance), variable)
        axes.plot(
            sorted(chance),
            [chance[x][1] for x in sorted(chance)],
            color=MUTED,
            linestyle=DOTTED,
        )
        axes.axhline(1.0, color=INK, linewidth=1)
        ends = [("random subspace", MUTED, chance[max(chance)][1])]
        for name in names:
            places = sorted(x for other, x in found if other == name)
            curve = np.array([found[name, x] for x in places]).T
            colour = REFUTED if name in refuted else colours.get(name, INK)
            plots.band(
                axes, places, curve, colour, plots.stroke(name, refuted, standing)
            )
            text = short(name) + plots.mark(name, refuted)
            ends.append((text, colour, float(curve[1, -1])))
            said = " (claim refuted)" if name in refuted else ""
            sentences.append(
                f"{heading}, {name}{said}: {percent(curve[1, 0])} to "
                f"{percent(curve[1, -1])}."
            )
        plots.name_ends(axes, ends, _GAP, size=11 if narrow else _LETTERS)
    return figure, " ".join(sentences)


def _scales(axes: Axes, places: list[float], variable: str) -> None:
    axes.set(xscale="log", xlim=(places[0], places[-1]), ylim=(0, 1.02))
    marks = plots.decades(places[0], places[-1] * 1.001, (1, 2, 5))
    words = setting if variable == "epsilon" else count
    plots.tick(axes, "x", marks, words, 52.0)
    plots.tick(axes, "y", [0, 0.2, 0.4, 0.6, 0.8, 1], lambda share: f"{share:.0%}")
    label = "claimed ε" if variable == "epsilon" else "rows n"
    plots.finish(axes, label)
