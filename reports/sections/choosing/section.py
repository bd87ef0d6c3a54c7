"""The section on choosing a mechanism: the map of winners, and whether it is right.

The map is of the grid behind recommendations that ships with dpaudit, so it is the same
in every report; what is measured anew is how good the advice is where n and the
eigenvalues are known, at settings drawn at random.
"""

import math
from collections import Counter
from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from dpaudit.algorithms import entry
from dpaudit.algorithms.estimators.measured import (
    GRID,
    MECHANISMS,
    Grid,
    errors,
    even,
    expected,
    quantiles,
    releases,
    shipped_grid,
    takes,
)
from dpaudit.algorithms.estimators.recommendation import recommend
from dpaudit.arrays import Array
from dpaudit.neighbours import Relation
from dpaudit.reports import plots, svg
from dpaudit.reports.experiment import Cell, Experiment, Record
from dpaudit.reports.sections import Results, Size
from dpaudit.reports.svg import INK, MUTED, PAPER, RULE, SERIES
from dpaudit.reports.tables import Printed
from dpaudit.reports.words import count, delta, listed, sentences, setting
from dpaudit.streams import stream

__all__ = ["winners_map"]

SHARE = 0.1
"""k times the gap, of the mean squared length of a row."""

_QUICK = {("k-norm-covariance", 0.0): 20, ("k-norm-covariance", 1.0): 10}
"""Up to which d a draw takes less than a fifth of a second, by mechanism and relation.

Beyond it they are left out of the grid, and so of what is recommended."""


def falling(d: int, k: int) -> Array:
    """Return eigenvalues that all differ, with the gap of those that are even.

    Of rows of length 1: the first k fall from four gaps above the next one to one gap,
    and the others evenly to 0.
    """
    gap = SHARE / k
    above = np.linspace(4 * gap, gap, k) if k > 1 else np.array([gap])
    below = 2 * np.arange(d - k, 0, -1) / (d - k)
    middle = (1 - above.sum()) / (below.sum() + k * below[0])
    return np.asarray(
        middle * np.r_[np.full(k, below[0]), below] + np.r_[above, 0 * below]
    )


def measured(cell: Cell) -> list[Record]:
    """Measure one mechanism at one point of the grid.

    One record: ``low``, ``median``, ``high`` of the sine of the largest angle. None
    where the mechanism takes no such point: one component alone, or a delta that it
    does not need.
    """
    point = {name: float(value) for name, value in cell.point.items()}
    name, delta = cell.mechanism, point["delta"]
    d, k, gap = int(point["d"]), int(point["k"]), SHARE / point["k"]
    wanted = entry(name).approximate == (delta > 0) and takes(name, k=k, delta=delta)
    if k >= d or d > _QUICK.get((name, point["replaced"]), d) or not wanted:
        return []
    n = point["signal"] / (point["epsilon"] * gap)
    spectrum = even(gap, d=d, k=k, n=n)
    asked = {"n": n, **_budget(point)}
    drawn = errors(name, spectrum, size=cell.size, rng=cell.rng(), **asked)
    return [dict(zip(("low", "median", "high"), quantiles(drawn), strict=True))]


def held_out(cell: Cell) -> list[Record]:
    """Measure one mechanism at a setting, and what was to be expected there.

    The setting is that of the number ``setting``, the same for all mechanisms. The
    eigenvalues of every second one are `falling`, of the others even.

    One record, or none: the coordinates, ``falls``, the ``expected`` error that is
    printed, the ``median`` of releases with other randomness, and what the grid that
    ships has instead (``looked_up``, NaN where it does not reach).
    """
    number = int(cell.point["setting"])
    point = _between(number, cell.options["grid"], cell.seed)
    d, k, gap = int(point["d"]), int(point["k"]), SHARE / point["k"]
    n = max(round(point["signal"] / (point["epsilon"] * gap)), d)
    spectrum = falling(d, k) if number % 2 else even(gap, d=d, k=k, n=n)
    asked = {"n": n, **_budget(point)}
    known = expected(cell.mechanism, spectrum, **asked)
    if known is None:
        return []
    size = min(cell.size, releases(cell.mechanism, d))
    drawn = errors(cell.mechanism, spectrum, size=size, rng=cell.rng(), **asked)
    found = {"expected": known[1], "median": float(np.median(drawn))}
    at = {axis: point[axis] for axis in GRID if axis != "replaced"}
    grid = shipped_grid().at(replaced=bool(point["replaced"]), **at)
    beyond = bool(number % 2) or d > GRID["d"][-1] or cell.mechanism not in grid
    found["looked_up"] = np.nan if beyond else float(grid[cell.mechanism][1])
    return [{**point, "falls": number % 2, **found}]


def _between(setting: int, grid: dict[str, Any], seed: int) -> dict[str, float]:
    """Return a point of which every coordinate is drawn between the ends of an axis."""
    rng = stream(seed, setting)
    point = {
        name: float(np.exp(rng.uniform(*np.log([axis[0], axis[-1]]))))
        for name, axis in grid.items()
        if name not in ("replaced", "delta")
    }
    point["d"] = float(round(point["d"]))
    point["k"] = float(min(round(point["k"]), point["d"] - 1))
    positive = [each for each in grid["delta"] if each > 0]
    approximate = float(np.exp(rng.uniform(*np.log([positive[0], positive[-1]]))))
    delta = approximate if rng.random() < 0.5 else 0.0
    return {"replaced": float(rng.random() < 0.5), "delta": delta, **point}


def _budget(point: dict[str, float]) -> dict[str, Any]:
    """Return what is asked of a mechanism at a point."""
    relation = Relation.REPLACE_ONE if point["replaced"] else Relation.ADD_REMOVE
    budget = {"epsilon": point["epsilon"], "delta": point["delta"]}
    return {"k": int(point["k"]), **budget, "relation": relation}


LOST = 0.9  # where the best sine is above this, no mechanism finds the components
_DELTAS = (0.0, GRID["delta"][-1])
_WIDE_ROW, _NARROW_ROW, _HEAD, _KEY = 230, 210, 26, 24


class Field(NamedTuple):
    """The winner at one point of the grid; no name if all components are lost."""

    delta: float
    d: float
    k: float
    signal: float
    mechanism: str
    error: float


def winners(grid: Grid) -> list[Field]:
    """Return the winners at epsilon = 1 under add-remove, pure and approximate."""
    fields = []
    for delta_, k, d, signal in product(_DELTAS, GRID["k"], GRID["d"], GRID["signal"]):
        if d > k:
            at = {"delta": delta_, "d": d, "k": k, "signal": signal}
            found = grid.at(replaced=False, epsilon=1.0, **at)
            best = min(found, key=lambda name: found[name][1])
            error = float(found[best][1])
            name = best if error <= LOST else ""
            fields.append(Field(**at, mechanism=name, error=error))
    return fields


@plots.picture("winners", "The mechanism with the least error, by d, k and signal")
def winners_map(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw a panel for each delta and k: lengths of rows upwards, signals across."""
    fields = _fields()
    names = sorted({field.mechanism for field in fields} - {""})
    colours = dict(zip(names, SERIES, strict=False))
    letters = dict(zip(names, "ABCDEFGH", strict=False))
    ks, signals = GRID["k"], GRID["signal"]
    across = 1 if narrow else len(ks)
    rows = len(_DELTAS) * len(ks) // across
    row = _NARROW_ROW if narrow else _WIDE_ROW
    keys = len(names) + 1 if narrow else math.ceil((len(names) + 1) / 2)
    foot = keys * _KEY + 8
    figure = plots.canvas(rows * row + foot, narrow=narrow)
    places = plots.boxes(figure, rows * across, across=across, foot=foot)
    whole: dict[str, Any] = {"frameon": False, "xticks": [], "yticks": []}
    small: dict[str, Any] = {"color": MUTED, "size": 11}
    each = zip(places, product(_DELTAS, ks), strict=True)
    for (left, bottom, width, _), (at_delta, k) in each:
        top = bottom + row
        budget = "pure" if at_delta == 0 else f"δ = {delta(at_delta)}"
        heading = f"{budget}, k = {setting(k)}"
        above = figure.add_axes((0, 0, 1, 1), **whole)
        plots.write(above, heading, (left + 8, top - 20), weight="bold")
        axes = plots.pixels(
            figure, left + 44, top - row + 42, width - 56, row - 42 - _HEAD - 6
        )
        lengths = [d for d in GRID["d"] if d > k]
        axes.set(xlim=(0, len(signals)), ylim=(0, len(lengths)))
        for field in (f for f in fields if (f.delta, f.k) == (at_delta, k)):
            x, y = signals.index(field.signal), lengths.index(field.d)
            colour = colours.get(field.mechanism, PAPER)
            axes.add_patch(Rectangle((x, y), 1, 1, facecolor=colour, edgecolor=RULE))
            svg.told(axes, [x], [y], [_sentence(field)], (1, 1))
            letter = letters.get(field.mechanism, "–")
            style: dict[str, Any] = {"ha": "center", "va": "center", "weight": "bold"}
            style["color"] = PAPER if field.mechanism else MUTED
            axes.text(x + 0.5, y + 0.5, letter, **style)
        axes.set_xticks(np.arange(len(signals)) + 0.5, list(map(count, signals)))
        axes.set_yticks(np.arange(len(lengths)) + 0.5, [f"{d:g}" for d in lengths])
        axes.tick_params(length=0, labelsize=11)
        plots.write(axes, "d", (left + 8, top - _HEAD - 20), **small)
        if bottom == foot or narrow:
            plots.write(axes, "signal", (left + 44, top - row + 8), **small)
    base = figure.add_axes((0, 0, 1, 1), **whole)
    for place, name in enumerate([*names, ""]):
        column, line = (0, place) if narrow else (place % 2, place // 2)
        x, y = 8 + column * 380, keys * _KEY - (line + 1) * _KEY + 8
        text = f"{letters[name]}  {name}" if name else "–  all components are lost"
        plots.write(base, text, (x, y), color=colours.get(name, INK), weight="bold")
    return figure, " ".join(map(_sentence, fields))


def _sentence(field: Field) -> str:
    who = field.mechanism or "none"
    budget = "pure" if field.delta == 0 else f"delta {delta(field.delta)}"
    return (
        f"{budget}, k {setting(field.k)}, d {setting(field.d)}, signal "
        f"{setting(field.signal)}: {who}, error {field.error:.3g}."
    )


NEARLY = 1.1  # the advice is good where its error is at most this times the least
_CLOSE = 1.5  # a printed error is right if it is not this many times off


def programmed(size: Size) -> tuple[Experiment, ...]:
    axes = {name: list(axis) for name, axis in GRID.items()}
    axes["d"] = [GRID["d"][0], float(size.held_out_columns)]
    made = partial(Experiment, source="dpaudit", mechanisms=MECHANISMS)
    held = made(
        "recommend-held-out",
        "Advice held to fresh releases",
        measure=held_out,
        grid={"setting": tuple(map(float, range(size.settings)))},
        repetitions=size.held_out_releases,
        options={"grid": axes},
        effort=3.0,
    )
    grid = made(
        "recommend-grid",
        "The grid behind recommendations",
        measure=measured,
        grid=GRID,
        repetitions=size.grid_releases,
        effort=30.0,
    )
    return (held, grid) if size.grid_releases else (held,)


def advice(held_out: pd.DataFrame) -> pd.DataFrame:
    """Return what was recommended at each setting, and how good that was.

    A row for a setting: ``recommended`` and ``best`` mechanism, the ``ratio`` of their
    errors, at least 1, and ``off``: how many times the error that is printed for the
    first is off what was measured.
    """
    rows = []
    for _, group in held_out.groupby("setting"):
        found = group.set_index("mechanism")
        printed, errors = found["expected"], found["median"]
        first = printed.idxmin()
        about = {"recommended": first, "best": errors.idxmin()}
        about["ratio"] = errors[first] / errors.min()
        about["off"] = _off(printed[first], errors[first])
        rows.append({**group[["setting", "d", "k"]].iloc[0], **about})
    return pd.DataFrame(rows)


def _off(printed: Any, measured: Any) -> Any:
    """Return how many times one is the other, at least 1."""
    return np.maximum(printed / measured, measured / printed)


def advice_notes(held_out: pd.DataFrame) -> list[str]:
    """Return how often the advice is good, and how far off errors are."""
    found, most = advice(held_out), GRID["d"][-1]
    off, many = _off(held_out["expected"], held_out["median"]), held_out["d"] > most
    known = held_out[held_out["looked_up"].notna()]
    return sentences(
        *("choosing", "advice_notes"),
        found=found,
        good=found["ratio"] <= NEARLY,
        nearly=NEARLY - 1,
        worst=found.loc[found["ratio"].idxmax()],
        errors=off,
        offs=[
            ("all", off.max()),
            ("those of recommended mechanisms", found["off"].max()),
            *[(f"those of more than {setting(most)} columns", off[many].max())]
            * any(many),
        ],
        close=_CLOSE,
        looked_up=_off(known["looked_up"], known["median"]),
    )


@cache
def _fields() -> list[Field]:
    """Return the winners on the grid that ships."""
    return winners(shipped_grid())


@cache
def _winners() -> list[Printed]:
    """Return who wins on the grid that ships, without a delta and with one.

    And where, of the settings at which anything is learned.
    """
    rows = []
    for at in _DELTAS:
        some = [f for f in _fields() if f.mechanism and f.delta == at]
        for name, won in Counter(field.mechanism for field in some).most_common():
            mine = [field for field in some if field.mechanism == name]
            rows.append(
                Printed(
                    budget=f"δ = {delta(at)}" if at else "pure",
                    name=name,
                    won=f"{won} of {len(some)}",
                    lengths=listed(map(setting, sorted({f.d for f in mine}))),
                    components=listed(map(setting, sorted({f.k for f in mine}))),
                )
            )
    return rows


def answer(results: Results) -> list[str]:
    return advice_notes(results["recommend-held-out"])


@cache
def without_bound() -> dict[str, Any]:
    """Return what a private norm is worth where the bound on rows is loose."""
    about: dict[str, Any] = {"n": 10_000, "d": 20, "k": 3, "row_norm": 30.0}
    found = recommend(**about, epsilon=1.0, delta=1e-6, spectrum=[9.0, 4.0, 3.0, 0.3])
    with_it, without = found.choices[0], found.without_bound[0]
    return {**about, "with_it": with_it, "without": without}


def context(results: Results) -> dict[str, Any]:
    return {
        "rows": _winners(),
        "notes": advice_notes(results["recommend-held-out"]),
        "origin": shipped_grid().origin,
        "lost": LOST,
        "loose": without_bound(),
    }


NOTES = {("recommend-held-out",): advice_notes}
