"""The section on online PCA: what is measured, and how it is shown.

The exponents of regret are rows of the scoreboard
(`dpaudit.reports.sections.theorems`) and judged by its rule. A bound allows any
exponent on a grid that ends, and that a random subspace earns k/d raises those in d.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite, isnan
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.reports import lines, plots, words
from dpaudit.reports.lines import Curve, Line, Verdicts, by_mechanism
from dpaudit.reports.power_law import fit_power_law
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.online.measures import (
    ALGORITHM_3,
    ALGORITHM_4,
    CORRECTED_ONLINE,
    FACTORISED,
    LEADER,
    PUBLISHED_ONLINE,
    TREE,
)
from dpaudit.reports.sections.theorems.judgement import (
    TOLERANCE,
    VERDICTS,
    Ruling,
    Score,
    own_rows,
    score,
    stated,
)
from dpaudit.reports.sections.theorems.rows import ROWS
from dpaudit.reports.svg import INK, MUTED, SERIES
from dpaudit.reports.tables import Printed, Quartiles, grouped, quartiles

_GAP, _ACROSS = 15.0, 46.0  # CSS pixels between lines of text, and between ticks
_AROUND: dict[str, Any] = {"left": 52.0, "right": 132.0, "top": 44.0, "bottom": 52.0}
_LABELS = {"m": "rows m", "OPT": "OPT"}
_MANY = 4  # times the first guess: two epochs have ended by then, or nearly
_ALL_LOST = 0.9  # of the regret of a random subspace: nothing was learned


def scores(tables: Mapping[str, pd.DataFrame]) -> list[Score]:
    """Return the exponents of Algorithms 3 and 4 in each variable, judged."""
    own = (row for row in ROWS if row.experiment.startswith("regret-"))
    return [score(row, tables[row.experiment]) for row in own]


def head(found: Sequence[Score]) -> str:
    """Return which of the theorems on regret the exponents support or contradict."""
    theorems = []
    for theorem in dict.fromkeys(each.row.theorem for each in found):
        some = [each for each in found if each.row.theorem == theorem]
        seen = Counter(each.verdict for each in some)
        told = [f"{seen[Ruling.CONSISTENT]} of {len(some)} exponents consistent"]
        told += [f"{words.spelt(seen[v])} {v}" for v in VERDICTS[1:] if seen[v]]
        unmet = dict.fromkeys(each.row.unmet for each in some if each.row.unmet)
        aside = "; hypothesis not met: ".join([", ".join(told), *unmet])
        theorems.append((stated(some), _short(theorem), aside))
    (said,) = words.sentences("online", "head", theorems=theorems)
    return said


def online_rows(regrets: pd.DataFrame, audits: pd.DataFrame) -> list[Printed]:
    """Return a row for each mechanism, on the longest stream."""
    verdicts = dict(zip(audits["mechanism"], audits["verdict"], strict=True))
    rows = []
    for name, group in _longest(regrets).groupby("mechanism", sort=False):
        none = "not private" if name == LEADER else "not audited here"
        middle, first = float(group["regret"].median()), group.iloc[0]
        bound, optimum = float(first["proven"]), float(first["optimum"])
        proven = words.count(bound) if bound < optimum else "above OPT"
        rows.append(
            Printed(
                name=name,
                audited=name in verdicts,
                verdict=words.verdict(verdicts.get(name, none)),
                refuted=verdicts.get(name) == "REFUTED",
                regret=words.count(middle),
                share=words.percent(middle / optimum),
                bound="–" if isnan(bound) else proven,
            )
        )
    return rows


def online_notes(regrets: pd.DataFrame) -> list[str]:
    """Return what privacy costs on the longest stream, and who learns nothing."""
    last = _longest(regrets)
    medians = dict(last.groupby("mechanism", sort=False)["regret"].median().items())
    nothing = float(last["nothing"].iloc[0])
    names = [name for name in CORRECTED_ONLINE if name in medians]
    best = min(names, key=medians.__getitem__)
    curve = regrets[regrets["mechanism"] == best]
    return words.sentences(
        *("online", "online_notes"),
        rows=last["rows"].max(),
        medians=medians,
        nothing=nothing,
        best=best,
        lost=[
            name
            for name in (*PUBLISHED_ONLINE, *CORRECTED_ONLINE)
            if medians.get(name, 0.0) > _ALL_LOST * nothing
        ],
        law=fit_power_law(grouped(curve, "rows", "regret")),
        **{"leader": LEADER, "tree": TREE, "factorised": FACTORISED},
        step=ALGORITHM_3,
    )


def score_notes(found: Sequence[Score], optimum: pd.DataFrame) -> list[str]:
    """Return how tight the bounds are, and what the leader without noise pays."""
    last = _longest(optimum)
    lost = (last["regret"] / last["optimum"]).groupby(last["mechanism"], sort=False)
    shares = lost.median()
    return words.sentences(
        *("online", "score_notes"),
        rows=last["rows"].max(),
        leader=(LEADER, shares.pop(LEADER)),
        others=list(shares.items()),
        held=[each.share for each in found if isfinite(each.share)],
        above=any(each.above for each in found if isfinite(each.share)),
        step=ALGORITHM_3,
        off={
            name: [
                (e.row.mechanism, e.row.variable) for e in found if e.verdict == name
            ]
            for name in VERDICTS[1:]
        },
    )


def smaller_notes(found: Sequence[Score], tables: Mapping[str, pd.DataFrame]) -> str:
    """Return at which epsilons 1/2 is reached in OPT, and what it takes."""
    parts, reached = {}, []
    for each in found:
        if each.row.mechanism != ALGORITHM_4 or each.row.against != "optimum":
            continue
        table, fit = own_rows(each.row, tables[each.row.experiment]), each.fit
        epsilon = float(table["epsilon_used"].iloc[0])
        times = table["optimum"] / table["guess"]
        ends = times.min(), times.max()
        parts[epsilon] = (words.signed(fit.exponent), fit.interval, epsilon, *ends)
        low, high = fit.low - TOLERANCE, fit.high + TOLERANCE
        near = low <= each.row.predicted <= high and each.verdict != Ruling.UNDECIDED
        if near and times.max() >= _MANY:
            reached.append(epsilon)
    (said,) = words.sentences(
        *("online", "smaller_notes"),
        mechanism=ALGORITHM_4,
        parts=[parts[epsilon] for epsilon in sorted(parts)],
        reached=sorted(reached),
        **{"tolerance": TOLERANCE, "many": _MANY, "largest": max(parts)},
    )
    return said


def _longest(regrets: pd.DataFrame) -> pd.DataFrame:
    return regrets[regrets["rows"] == regrets["rows"].max()]


def _short(theorem: str) -> str:
    return theorem.removeprefix("Analyze Gauss, ")


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
                verdicts.line(name, place, _in_two_lines(name)),
                found[name],
            )
            for place, name in enumerate(names)
        ]
        for names in (PUBLISHED_ONLINE, CORRECTED_ONLINE)
    )
    panels = {
        "Regret, as published": [*published, _bound(table, "rows"), idle, leader],
        "Regret, corrected": [*corrected, idle, leader],
    }
    return _panels(panels, 720 if narrow else 380, "m", narrow), " ".join(
        f"{each.said}: {regret} after {rows} rows."
        for each in (*published, *corrected, leader)
        for rows, regret in [map(words.count, each.last)]
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
        (ALGORITHM_3, "Algorithm 3,\ntuned to OPT", 2),
        (ALGORITHM_4, "Algorithm 4", 1),
    ):
        rows = table[table["mechanism"] == name]
        law = fit_power_law(grouped(rows, "optimum", "regret"))
        line = verdicts.line(name, place, label)
        if isfinite(law.exponent):
            line = replace(
                line, label=f"{line.label}\nexponent {words.signed(law.exponent)}"
            )
        curve = Curve.of(name + verdicts.said(name), line, found[name])
        curves.append(curve)
        optimum, regret = map(words.count, curve.last)
        sentences.append(
            f"{curve.said}: {regret} at OPT = {optimum}, exponent "
            f"{words.signed(law.exponent)}, interval {law.interval}."
        )
    curves += [_bound(table, "optimum"), _leader(found, verdicts)]
    panels = {"Regret among rivals": curves}
    figure = _panels(panels, 380 if narrow else 400, "OPT", narrow)
    return figure, " ".join(sentences)


def _bound(table: pd.DataFrame, variable: str) -> Curve:
    third = table[table["mechanism"] == ALGORITHM_3]
    line = Line("proven bound", SERIES[2], lines.DOTTED)
    said = "the bound that is proven for Algorithm 3"
    return Curve.of(said, line, quartiles(third, variable, "proven"))


def _leader(found: dict[str, dict[float, Quartiles]], verdicts: Verdicts) -> Curve:
    """Return follow-the-leader, which makes no claim, in ink."""
    name = LEADER
    line = replace(verdicts.line(name, 7, _in_two_lines(name)), colour=INK)
    return Curve.of(name + verdicts.said(name), line, found[name])


def _in_two_lines(name: str) -> str:
    """Return a name in two lines where it is long."""
    name = words.short(name)
    for end in ("doubling", "factorised", "leader"):
        if name.endswith(f"-{end}"):
            return f"{name.removesuffix(end)}\n{end}"
    return name


def _panels(
    panels: dict[str, list[Curve]], height: float, variable: str, narrow: bool
) -> Figure:
    """Draw curves under their headings, all on the same scales."""
    every = [curve for curves in panels.values() for curve in curves]
    figure, places = lines.sheet(height, len(panels), narrow=narrow)
    for box, (heading, curves) in zip(places, panels.items(), strict=True):
        axes = plots.panel(figure, box, heading, **_AROUND)
        _scales(axes, every, _LABELS[variable])
        ends = []
        for curve in curves:
            at = [f"{variable} = {words.count(x)}" for x in curve.x]
            ends.append(curve.draw(axes, at, words.count, lambda q: np.maximum(q, 0.5)))
        lines.name_ends(axes, ends, _GAP)
    lines.key(figure, (curve.line.dash for curve in every), narrow=narrow)
    return figure


def _scales(axes: Axes, curves: Sequence[Curve], label: str) -> None:
    x = sorted({float(each) for curve in curves for each in curve.x})
    seen = np.concatenate([curve.quartiles.ravel() for curve in curves])
    low, high = max(seen.min(), 1.0) / 1.5, seen.max() * 1.5
    axes.set(xscale="log", yscale="log", xlim=(x[0], x[-1]), ylim=(low, high))
    plots.tick(axes, "y", plots.decades(low, high), words.count)
    plots.tick(axes, "x", x, words.count, _ACROSS)
    plots.finish(axes, label)


def context(results: Results) -> dict[str, Any]:
    regrets, optimum = results["online-regret"], results["regret-optimum"]
    found = scores(results)
    return {
        "head": head(found),
        "smaller": smaller_notes(found, results),
        "longest": results["regret-epsilon"]["rows"].max(),
        "tolerance": TOLERANCE,
        "rows": online_rows(regrets, results["online-audits"]),
        "notes": online_notes(regrets),
        "scores": found,
        "score_notes": score_notes(found, optimum),
        "most": int(regrets["rows"].max()),
    }


NOTES = {("online-regret",): online_notes}
