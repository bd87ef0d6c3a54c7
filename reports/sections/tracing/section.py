"""The section on tracing: what is measured, and how it is shown.

The sentences are chosen by the data: on who is useful on hard instances, whose rows are
traced, and on list culling.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.fingerprinting import Proportion
from dpaudit.reports import plots
from dpaudit.reports.experiment import Experiment
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.plots import SERIES
from dpaudit.reports.sections import Part, Results, Section, Size, sizes
from dpaudit.reports.sections.tracing import measures
from dpaudit.reports.tables import Printed, records, refuted_mechanisms
from dpaudit.reports.words import count, delta, number, percent, setting

__all__ = [
    "SECTION",
    "Shares",
    "culling_notes",
    "culling_rows",
    "shares",
    "tracing_notes",
    "tracing_rows",
    "useful_and_traced",
]

_PAPER = "Dwork, Talwar, Thakurta, Zhang, STOC 2014"
_ROWS = (1, 2, 3, 4, 6, 8, 16, 64, 256, 1024, 4096)
_TRACED = (
    "analyze-gauss",
    "goe-gaussian",
    "symmetrised-wishart",
    "laplace-covariance",
    "power-method",
    "private-subspace",
    "exponential-pca",
)
_SOME = (_TRACED[0], *_TRACED[2:5])
_PANELS = 3  # components without noise, and the first mechanism at two epsilons
_ROUNDING = 1e-14  # of the probability to win, which is 1 up to here
_AROUND = {"left": 48.0, "right": 58.0, "top": 44.0, "bottom": 52.0}
_GAP = 17.0
_APART = 1.04  # by how much the two points at one size are pulled apart


def _experiments(size: Size) -> tuple[Experiment, ...]:
    rows = tuple(map(float, size.tracing_rows))
    experiment = partial(
        Experiment,
        measure=measures.traced,
        repetitions=size.tracing_trials,
        options={**measures.HARD, "length": size.tracing_symbols},
    )
    return (
        experiment(
            name="tracing-references",
            title="Tracing principal components",
            source=f"{_PAPER}, section 5",
            mechanisms=(BASELINE,),
            grid={"rows": rows},
            effort=2.0,
        ),
        experiment(
            name="tracing",
            title="Tracing private components",
            source=f"{_PAPER}, Corollaries 25, 32",
            mechanisms=size.tracing_mechanisms,
            grid={"epsilon": (1.0, 3000.0), "rows": rows},
            effort=5.0,
        ),
        Experiment(
            name="list-culling",
            title="List culling",
            source=f"{_PAPER}, Theorem 26",
            measure=measures.culled,
            mechanisms=measures.STRATEGIES,
            grid={"length": (500.0, 1000.0, 2000.0, 5000.0, 10_000.0, 20_000.0)},
            options={"closeness": 0.04, "erased": 0.02, "rate": 0.004, "games": 10_000},
            effort=0.1,
        ),
    )


@dataclass(frozen=True)
class Shares:
    """One mechanism at one epsilon: its shares, by the rows per cluster.

    Parameters
    ----------
    mechanism : str
    epsilon : float or None
        None for components without noise.
    useful, traced, innocent : mapping of int to Proportion
        Only where the mechanism took the rows.
    """

    mechanism: str
    epsilon: float | None
    useful: Mapping[int, Proportion]
    traced: Mapping[int, Proportion]
    innocent: Mapping[int, Proportion]

    @property
    def name(self) -> str:
        """What readers see."""
        if self.epsilon is None:
            return "PCA without noise"
        return f"{self.mechanism}, ε = {_epsilon(self.epsilon)}"


def shares(references: pd.DataFrame, table: pd.DataFrame) -> list[Shares]:
    """Return the shares of principal components without noise, then of the others."""
    found = []
    groups = [((BASELINE, None), references)]
    groups += list(table.groupby(["mechanism", "epsilon"], sort=False))
    for (mechanism, epsilon), group in groups:
        by_rows = group[group["refused"].fillna("") == ""].groupby("rows")
        counted = (
            {int(m): Proportion(int(g[name].sum()), len(g)) for m, g in by_rows}
            for name in ("useful", "traced", "innocent")
        )
        found.append(Shares(mechanism, epsilon, *counted))
    return found


def tracing_rows(found: Sequence[Shares]) -> list[Printed]:
    """Return the table of tracing."""
    rows = []
    for each in found:
        innocent = list(each.innocent.values())
        trials = sum(p.trials for p in innocent)
        wrongly = "–"
        if trials:
            wrongly = f"{count(sum(p.hits for p in innocent))} of {count(trials)}"
        rows.append(
            Printed(
                name=each.mechanism if each.epsilon is not None else "PCA",
                epsilon="none" if each.epsilon is None else _epsilon(each.epsilon),
                useful=_ends(each.useful),
                traced=_ends(each.traced),
                innocent=wrongly,
            )
        )
    return rows


def tracing_notes(found: Sequence[Shares], dimension: int) -> list[str]:
    """Return who is useful, and who is traced."""
    notes = []
    for each in found:
        if not each.useful:
            notes.append(f"{each.name} does not take so few rows.")
            continue
        useful = [m for m, p in each.useful.items() if p.share >= 0.5]
        caught = [m for m, p in each.traced.items() if p.share >= 0.5]
        first, then = "is not useful at any size", "not traced anywhere"
        if useful:
            first = f"is useful from {_rows(min(useful), dimension)} on"
        if caught:
            then = f"traced up to {_rows(max(caught), dimension)}"
        notes.append(f"{each.name}: {first}, and {then}.")
    wrong = [p for each in found for p in each.innocent.values()]
    hits, trials = sum(p.hits for p in wrong), sum(p.trials for p in wrong)
    notes.append(f"Innocents were accused in {count(hits)} of {count(trials)} trials.")
    return notes


def culling_rows(table: pd.DataFrame) -> list[Printed]:
    """Return the table of list culling."""
    naive, half = (_culled(table, each) for each in measures.STRATEGIES)
    return [
        Printed(
            length=count(own["length"]),
            most_agreement=f"{count(other['won'])} of {count(other['games'])}",
            random_half=f"{count(own['won'])} of {count(own['games'])}",
            loss=_complement(own["exact"]),
            bound=delta(own["loss_bound"]),
        )
        for other, own in zip(records(naive), records(half), strict=True)
    ]


def culling_notes(table: pd.DataFrame) -> list[str]:
    """Return who wins, and the verdict on Theorem 26."""
    naive, half = (_culled(table, each) for each in measures.STRATEGIES)
    bounds = half["loss_bound"].to_numpy(dtype=float)
    falls = bool((np.diff(bounds) < 0).all())
    verdict = "consistent with that" if falls and bounds[-1] < 0.01 else "not seen yet"
    return [
        f"Most agreement wins {count(naive['won'].sum())} of "
        f"{count(naive['games'].sum())} games, random half "
        f"{count(half['won'].sum())} of {count(half['games'].sum())}. Against any list "
        f"of exp(c n) words random half loses with a probability of at most "
        f"{delta(float(bounds[-1]))} at n = {count(half['length'].iloc[-1])}: "
        f"Theorem 26 is {verdict}."
    ]


def _culled(table: pd.DataFrame, strategy: str) -> pd.DataFrame:
    return table[table["mechanism"] == strategy].sort_values("length")


def _epsilon(value: float) -> str:
    return count(value) if value >= 1000 else setting(value)


def _complement(probability: float) -> str:
    """Return one minus a probability, as far as it is known."""
    rest = 1 - probability
    return delta(rest) if rest > _ROUNDING else f"below {delta(_ROUNDING)}"


def _ends(found: Mapping[int, Proportion]) -> tuple[str, str]:
    """Return the shares at the fewest and at the most rows."""
    if not found:
        return "refused", "refused"
    first, last = found[min(found)], found[max(found)]
    return percent(first.share), percent(last.share)


def _rows(m: int, dimension: int) -> str:
    return f"m = {count(m)} (m/√d = {number(m / sqrt(dimension))})"


def _shares(results: Results) -> Sequence[Shares]:
    return shares(results["tracing-references"], results["tracing"])


@plots.picture("tracing", "How often releases on hard instances are useful, and traced")
def useful_and_traced(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw for a few mechanisms both shares against rows over sqrt(d)."""
    found = _shares(results)[:_PANELS]
    dimension = measures.dimension_of(results.options("tracing"))
    refuted = refuted_mechanisms(results["privacy-wall"])
    figure = plots.canvas(250 * len(found) if narrow else 300, narrow=narrow)
    for box, each in zip(plots.boxes(figure, len(found)), found, strict=True):
        heading = each.name + plots.mark(each.mechanism, refuted)
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
        f"{each.name}, m/√d = {setting(m / sqrt(dimension))}: useful "
        f"{percent(each.useful[m].share)}, traced {percent(each.traced[m].share)}."
        for each in found
        for m in each.useful
    )


def _scales(axes: Axes, found: Sequence[Shares], dimension: int) -> None:
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


def _context(results: Results) -> dict[str, Any]:
    options, rows = results.options("tracing"), results["tracing"]["rows"]
    found, dimension = _shares(results), measures.dimension_of(options)
    return {
        "rows": tracing_rows(found),
        "notes": tracing_notes(found, dimension),
        "setting": {**options, "dimension": dimension},
        "trials": results.experiments["tracing"].repetitions,
        "delta": 1 / options["length"] ** 2,
        "least": int(rows.min()),
        "most": int(rows.max()),
        "culling": culling_rows(results["list-culling"]),
        "culling_notes": culling_notes(results["list-culling"]),
        "game": results.options("list-culling"),
    }


SECTION = Section(
    name="tracing",
    parts=(Part("tracing", "Tracing", 600),),
    context=_context,
    figures={"tracing": useful_and_traced},
    sizes=sizes(
        tracing_trials=(8, 30, 100),  # hard instances behind every point
        tracing_symbols=(64, 96, 192),  # the length of their codewords
        # The rows per cluster, ascending.
        tracing_rows=((1, 2, 3, 4, 8, 128, 1024), _ROWS[:-1], _ROWS),
        # Whose releases are traced; the first is drawn.
        tracing_mechanisms=(_TRACED[:1], _SOME, _TRACED),
    ),
    experiments=_experiments,
    uses=("privacy",),
    notes={("list-culling",): culling_notes},
)
