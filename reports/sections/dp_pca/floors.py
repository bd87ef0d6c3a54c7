"""Figures of errors against one variable, and the floors below hard instances.

Source: Liu, Kong, Jain, Oh, *DP-PCA: statistically optimal and differentially private
PCA*, NeurIPS 2022, Theorems 5.3 and 5.4. For every n the law is the hardest of its kind
for that n, and so is the floor, with the constants of the proof in
`dpaudit.reports.sections.dp_pca.hard_laws`: a bound from below on the mean of the error
over directions of the first component, for any (epsilon, delta)-DP estimate. In each
repetition a direction is drawn, the same for all mechanisms, so that the mean of the
errors estimates that mean.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import log
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.arrays import Array
from dpaudit.reports import lines, plots, svg
from dpaudit.reports.experiment import Cell, Record, repeated
from dpaudit.reports.lines import Curve, Line, Verdicts, close, sheet
from dpaudit.reports.power_law import mean_limit
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.dp_pca import findings, measures
from dpaudit.reports.sections.dp_pca.findings import FLOORS, Panel
from dpaudit.reports.sections.dp_pca.hard_laws import GaussianLaw, HardLaw, HeavyLaw
from dpaudit.reports.svg import INK
from dpaudit.reports.tables import Quartiles
from dpaudit.reports.words import count, decimal, listed, number, sentences, setting
from dpaudit.streams import stream
from dpaudit.validation import check_name

_HIGH = 290  # CSS pixels of a panel
_LABELS = {"n": "rows n", "d": "length of rows d", "epsilon": "ε", "noise": "spread σ"}
# Those without a claim that stands, and measured everywhere, come last: the others have
# a colour each.
_APART = (measures.PRIVATE_OJA, measures.OJA, measures.AG_PUBLISHED)
_PLACES = {
    name: place
    for place, name in enumerate(
        (*(name for name in measures.MECHANISMS if name not in _APART), *_APART)
    )
}
_FLOOR = Line("floor", INK, lines.DOTTED)


@plots.picture(
    *("dp-pca-rates", "Error of one component of Gaussian rows, by mechanism"),
    which=findings.RATES,
)
@plots.picture(
    *("dp-pca-example", "Error in Example 4.1 by the spread of the rows"),
    which=findings.EXAMPLE,
)
def draw_rates(results: Results, narrow: bool, which: Any) -> tuple[Figure, str]:
    """Draw the errors on Gaussian rows against n, d and epsilon.

    Or those in Example 4.1 against sigma, with default and tuned steps.
    """
    return draw_panels(results, findings.panels(results, which), narrow)


def draw_panels(
    results: Results,
    shown: Sequence[Panel],
    narrow: bool,
    floors: Mapping[str, Mapping[float, float]] | None = None,
) -> tuple[Figure, str]:
    """Draw panels one below the other, on one scale of errors.

    ``floors``: by the heading of a panel: what no private mechanism can be below.
    """
    verdicts = Verdicts.of(results[findings.CLAIMS])
    floors = floors or {}
    there = {name for panel in shown for name in panel.quartiles}
    names = sorted(there, key=_PLACES.__getitem__)
    named = [verdicts.line(name, _PLACES[name]) for name in names]
    named += [_FLOOR] * any(any(floor.values()) for floor in floors.values())
    figure, boxes = sheet(
        _HIGH * len(shown), len(shown), across=1, listed=named, narrow=narrow
    )
    every = [own for panel in shown for own in panel.quartiles.values()]
    seen = [v for own in every for three in own.values() if three for v in three]
    seen += [v for floor in floors.values() for v in floor.values() if v > 0]
    limits = (min(seen) / 1.6, 1.3) if seen else (0.1, 1.3)
    right = 26 if narrow else 218
    around: dict[str, Any] = {"left": 64, "right": right, "top": 64, "bottom": 50}
    sentences = []
    for panel, box in zip(shown, boxes, strict=True):
        axes = plots.panel(figure, box, panel.heading, **around)
        floor = floors.get(panel.heading, {})
        sentences.append(_draw(axes, panel, verdicts, limits, floor, narrow))
    close(figure, named, narrow=narrow)
    return figure, " ".join(sentences)


def _draw(
    axes: Axes,
    panel: Panel,
    verdicts: Verdicts,
    limits: tuple[float, float],
    floor: Mapping[float, float],
    narrow: bool,
) -> str:
    places = sorted({x for own in panel.quartiles.values() for x in own})
    axes.set(xscale="log", yscale="log", ylim=limits)
    axes.set_xlim(places[0] / 1.04, places[-1] * 1.04)
    words = count if panel.variable in ("n", "d") else setting
    plots.tick(axes, "x", places, words, 56.0)
    marks = plots.decades(*limits)
    plots.tick(axes, "y", marks, decimal)
    plots.finish(axes, _LABELS[panel.variable])
    letter = findings.LETTERS[panel.variable]
    around = "mean, a standard error to either side" if panel.means else "middle half"
    ends, parts, lost = [], [], 0
    for name, own in panel.quartiles.items():
        said, line = name + verdicts.said(name), verdicts.line(name, _PLACES[name])
        known = {x: three for x, three in own.items() if three}
        bottoms = [x for x in own if x not in known]
        lost_last = places[-1] in bottoms
        if lost_last:
            line = replace(line, label=f"{line.label} ⊥")
        end = line, (places[-1], limits[1])
        if known:
            curve = Curve.of(said, line, known)
            at = [f"{letter} = {words(x)}" for x in curve.x]
            last = curve.draw(axes, at, number, around=around)
            end = end if lost_last else last
        for place in bottoms:
            told = f"{said}, {letter} = {words(place)}: bottom (⊥)"
            _bottom(axes, place, lost, line, told)
        lost += bool(bottoms)
        ends.append(end)
        parts.append(_said(known, bottoms, said))
    if any(floor.values()):
        x = sorted(floor)
        y = [floor[each] for each in x]
        axes.plot(x, y, color=INK, linestyle=lines.DOTTED)
        texts = [f"floor, {letter} = {words(n)}: {number(floor[n])}" for n in x]
        svg.told(axes, x, y, texts)
        ends.append((_FLOOR, (x[-1], y[-1])))
        parts.append(f"floor {number(y[0])} to {number(y[-1])}")
    if not narrow:
        lines.name_ends(axes, ends, 15.0)
    return f"{panel.heading}: {'; '.join(parts)}."


def _bottom(axes: Axes, x: float, row: int, line: Line, said: str) -> None:
    """Write that a release is bottom, and whose it is, in a row above axes."""
    across = float(axes.transData.transform((x, 1.0))[0])  # here CSS pixels
    up = float(axes.get_window_extent().y1) + 8.0 + 11.0 * row
    style = {"ha": "center", "va": "center", "color": line.colour, "size": 11}
    plots.write(axes, "⊥", (across, up), **style)
    lines.marker_at(axes, (across - 11, up), line)
    svg.told(axes, [x], [axes.transData.inverted().transform((0, up))[1]], [said])


def _said(known: Mapping[float, Quartiles], bottoms: Sequence[float], name: str) -> str:
    if not known:
        return f"{name} bottom throughout"
    medians = [number(middle) for _, middle, _ in known.values()]
    text = f"{medians[0]} to {medians[-1]}"
    if bottoms:
        text += f", bottom at {listed(map(setting, bottoms))}"
    return f"{name} {text}"


_KINDS: Mapping[str, type[HardLaw]] = {"gaussian": GaussianLaw, "heavy": HeavyLaw}
_ALARM = 0.001


def floor_errors(cell: Cell) -> list[Record]:
    """Return the error of a release on rows of the hardest law.

    The point and the options give ``n``, ``d``, ``epsilon``, ``delta`` and ``instance``
    (``"gaussian"`` or ``"heavy"``).

    Columns: ``repetition``, ``error`` (NaN for bottom), ``floor``, and ``blind``: the
    mean error of the best estimate that looks at no row.
    """
    setting = {**cell.options, **cell.point, "steps": measures.DEFAULT}
    asked = int(setting["n"]), setting["epsilon"], setting["delta"]
    kind = check_name("instance", setting["instance"], tuple(_KINDS))
    law = _KINDS[kind].hardest(int(setting["d"]), *asked)
    errors = measures.errors_on(partial(_source, law), cell, setting)
    return repeated(cell, error=errors, floor=law.floor(*asked), blind=law.blind)


def _source(
    law: HardLaw, n: int, d: int, seed: int, key: tuple[int, ...]
) -> measures.RowSource:
    """Return rows of the law with a direction that is drawn."""
    direction = law.direction(stream(seed, *key))

    def draw(size: int, rng: np.random.Generator) -> Array:
        return law.draw(direction, size, rng=rng)

    square = float(np.trace(law.covariance(direction)))
    return measures.RowSource(n, direction, square, draw, seed, key)


def _floor(table: pd.DataFrame) -> dict[float, float]:
    first = table.groupby("n", sort=True)["floor"].first()
    return {float(n): float(value) for n, value in first.items()}


def floor_notes(
    tables: Mapping[str, pd.DataFrame], refuted: Collection[str]
) -> list[str]:
    """Return how far above the floors errors are, and whether any is below.

    An error counts as below where the upper end of an interval for its mean is, of
    level 1 - 0.001/2 for each by the law of Student. Where a release was bottom there
    is no mean to compare, and claims that were refuted owe nothing.
    """
    notes = []
    for name, (_, _, theorem) in FLOORS.items():
        table = tables[name]
        floor, ratios, below = _floor(table), {}, []
        blind = table.groupby("n")["blind"].first()
        for (who, n), own in table.groupby(["mechanism", "n"], sort=False):
            errors = own["error"].to_numpy(dtype=np.float64)
            if who in refuted or np.isnan(errors).any() or not floor[n] > 0:
                continue
            ratios[who, n] = float(errors.mean()) / floor[n]
            below += [(who, n)] * (mean_limit(errors, _ALARM / 2, 1) < floor[n])
        ends, slope = sorted(floor), None
        if len(ends) > 1 and min(floor.values()) > 0:
            slope = log(floor[ends[-1]] / floor[ends[0]]) / log(ends[-1] / ends[0])
        nearest: dict[float, float] = {}
        for (_, n), ratio in ratios.items():
            nearest[n] = min(ratio * floor[n], nearest.get(n, 1.0))
        notes += sentences(
            *("dp_pca", "floor_notes"),
            theorem=theorem,
            ratios=sorted((ratio, *key) for key, ratio in ratios.items()),
            blind=(table["blind"] / table["floor"]).min(),
            slope=slope,
            blinded=sorted(count(n) for n, e in nearest.items() if 2 * e > blind[n]),
            below=below,
        )
    return notes


@plots.picture("dp-pca-floors", "Error on hard instances, and floors below them")
def draw_floors(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw mean errors against n on each hard instance, above the floor."""
    shown = [
        Panel(heading, "n", heading, results[name], means=True)
        for name, (_, heading, _) in FLOORS.items()
    ]
    floors = {panel.heading: _floor(panel.table) for panel in shown}
    return draw_panels(results, shown, narrow, floors)
