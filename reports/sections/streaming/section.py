"""The section on streaming PCA: its exponents in numbers and words, and its figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.arrays import Array
from dpaudit.reports import lines, plots, svg
from dpaudit.reports.lines import DOTTED, Line, Verdicts
from dpaudit.reports.power_law import PowerLaw, fit_power_law
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.streaming.measures import BATCHES, DP_PCA, MINIBATCH_OJA
from dpaudit.reports.svg import INK
from dpaudit.reports.tables import Printed, Quartiles, grouped, quarters
from dpaudit.reports.words import decimal, number, sentences, setting, signed, spread

TABLES = ("streaming-rates", "streaming-dimensions", "signal-in-noise")
_FLAT = 0.003  # from here down the error of minibatch-oja is looked at for a floor

_LABELS = {
    "sampling": ("Sampling of the rows, in n", "dp-pca, ε = 1,000, d = 20"),
    "noise": ("Noise for privacy, in n", "dp-pca, ε = 1, d = 20"),
    "dimension": ("Noise for privacy, in d", "dp-pca, ε = 1"),
    "signal": ("Example 4.1, in σ", "dp-pca, ε = 1, d = 20"),
    "floor": ("Example 4.1, in σ ≤ {}", "minibatch-oja, ε = 1, d = 20"),
}


@dataclass(frozen=True)
class Rate:
    """One exponent, beside what theory says."""

    key: str  # "sampling", "noise", "dimension", "signal" or "floor"
    mechanism: str  # whose
    errors: Mapping[float, Array]  # by the point; NaN is bottom
    fit: PowerLaw  # of the points up to `limit`
    # the exponents that were hoped for: both the same, or a range
    target: tuple[float, float]
    # the exponent on this grid of the noise by the mechanism's own formula, which has
    # the logarithms in it that the rate leaves out; NaN where noise is not measured
    formula: float
    parts: tuple[float, float]  # the medians of error and noise_error at the last point
    limit: float = inf

    @property
    def met(self) -> bool:
        """Whether the interval holds the target, or lies within it if it is a range."""
        low, high = self.target
        if low == high:
            return self.fit.low <= low <= self.fit.high
        return low <= self.fit.low and self.fit.high <= high

    @property
    def name(self) -> str:
        return _LABELS[self.key][0].format(setting(self.limit))

    @property
    def hoped(self) -> str:
        """The least exponent that was hoped for."""
        return f"{self.target[0]:g}".replace("-", "−")

    @property
    def quartiles(self) -> dict[float, Quartiles]:
        """Those of the errors at every point that has some."""
        usable = {x: v[np.isfinite(v) & (v > 0)] for x, v in self.errors.items()}
        return {x: quarters(values) for x, values in usable.items() if len(values)}

    @property
    def lost(self) -> int:
        """How many data sets had a release that was bottom."""
        return int(sum(np.isnan(values).sum() for values in self.errors.values()))


def rates(tables: Mapping[str, pd.DataFrame]) -> dict[str, Rate]:
    """Return the exponents by their keys, from the experiments of `TABLES`."""
    rows, lengths, signal = (tables[name] for name in TABLES)
    sampled = rows[rows["epsilon"] == rows["epsilon"].max()]
    private = rows[rows["epsilon"] == rows["epsilon"].min()]
    spread = signal[signal["mechanism"] == DP_PCA]
    level = signal[signal["mechanism"] == MINIBATCH_OJA]
    found = (
        _rate("sampling", sampled, "n", "error", -0.5),
        _rate("noise", private, "n", "noise_error", -1.0),
        _rate("dimension", lengths, "d", "noise_error", 1.0),
        _rate("signal", spread, "noise", "error", 0.8, above=inf),
        _rate("floor", level, "noise", "error", 0.0, limit=_FLAT),
    )
    return {rate.key: rate for rate in found}


def _rate(
    key: str,
    table: pd.DataFrame,
    against: str,
    column: str,
    target: float,
    *,
    above: float = 0.0,
    limit: float = inf,
) -> Rate:
    table = table.sort_values(against, kind="stable")
    fitted = table[table[against] <= limit]
    # The formula is that of the noise: it says nothing of an error of sampling.
    formula = nan
    if key != "sampling":
        formula = fit_power_law(grouped(fitted, against, "formula")).exponent
    last = table[table[against] == table[against].max()]
    # Of no number pandas 2 has no median without a warning.
    error, noise = (float(last[n].dropna().median()) for n in ("error", "noise_error"))
    return Rate(
        key=key,
        mechanism=table["mechanism"].iloc[0],
        errors=grouped(table, against, column),
        fit=fit_power_law(grouped(fitted, against, column)),
        target=(target, target + above),
        formula=formula,
        parts=(error, noise),
        limit=limit,
    )


def rate_rows(rates: Mapping[str, Rate]) -> list[Printed]:
    """Return the exponents, their intervals and their targets."""
    return [
        Printed(
            name=rate.name,
            setting=_LABELS[key][1],
            exponent=signed(rate.fit.exponent),
            interval=rate.fit.interval,
            target="at least " * (rate.target[1] == inf) + rate.hoped,
            formula=signed(rate.formula) if isfinite(rate.formula) else "–",
            met=rate.met,
        )
        for key, rate in rates.items()
    ]


def size_notes(rates: Mapping[str, Rate]) -> list[str]:
    """Return how errors change with n and d."""
    told = {key: rates[key] for key in ("sampling", "noise", "dimension")}
    crossing = _crossing(rates["sampling"], rates["noise"])
    return sentences("streaming", "size_notes", **told, crossing=crossing)


def signal_notes(rates: Mapping[str, Rate]) -> list[str]:
    """Return how errors change with the spread of the rows."""
    signal, floor = rates["signal"], rates["floor"]
    least, most = min(floor.errors), max(floor.errors)
    return sentences(
        *("streaming", "signal_notes"),
        **{"signal": signal, "floor": floor, "least": least, "most": most},
        falls=[
            (rate.mechanism, _median(rate, most), _median(rate, least))
            for rate in (signal, floor)
        ],
        below=[
            x
            for x in signal.errors
            if np.median(signal.errors[x]) < np.median(floor.errors[x])
        ],
    )


def miss_notes(rates: Mapping[str, Rate]) -> list[str]:
    """Return why intervals do not hold their targets, and what is left out."""
    every = rates.values()
    return sentences(
        *("streaming", "miss_notes"),
        missed=[e for e in every if not e.met and isfinite(e.fit.exponent)],
        lost=sum(rate.lost for rate in every),
        total=sum(len(values) for rate in every for values in rate.errors.values()),
    )


def _crossing(sampling: Rate, noise: Rate) -> float | None:
    """Return the n where the fitted lines meet.

    None if that is not ahead, or exponents are not known to a tenth.
    """
    if not max(rate.fit.high - rate.fit.low for rate in (sampling, noise)) < 0.2:
        return None
    slope = sampling.fit.exponent - noise.fit.exponent
    if not slope > 0:
        return None
    with np.errstate(over="ignore"):
        crossing = np.exp(np.log(noise.fit.factor / sampling.fit.factor) / slope)
    return float(crossing) if max(noise.errors) < crossing < inf else None


def _median(rate: Rate, x: float) -> str:
    usable = rate.errors[x][np.isfinite(rate.errors[x])]
    if not len(usable):
        return "bottom"
    return decimal(float(f"{np.median(usable):.2g}"))


def exponent_lines(*tables: pd.DataFrame) -> list[str]:
    """Return the exponents as lines of text, and what explains those that miss."""
    found = rates(dict(zip(TABLES, tables, strict=True)))
    lines = [f"{'exponent of':28} {'measured':>8}  {'95 % interval':18} {'target':12}"]
    lines += [
        f"{row.name:28} {row.exponent:>8}  {row.interval:18} {row.target:12} "
        f"{'met' if row.met else 'missed':8} {row.setting}"
        for row in rate_rows(found)
    ]
    return [*lines, *size_notes(found), *signal_notes(found), *miss_notes(found)]


# Where privacy costs nothing, and what is left is the sampling of the rows.
_WITHOUT_NOISE = 1000.0

_LENGTH = "length of rows d"
_ACROSS, _UP = 52.0, 24.0  # CSS pixels between ticks
_AROUND: dict[str, Any] = {"left": 56.0, "right": 16.0, "top": 48.0, "bottom": 52.0}


@dataclass(frozen=True)
class _Drawn:
    """A rate as it is drawn."""

    rate: Rate
    line: Line
    point: int  # the label is beside this point, ...
    # above, right: ... on this side, ...
    above: bool
    right: bool
    lift: float = 12.0  # ... so far from it, in CSS pixels


@plots.picture(
    "streaming-rates", "Error of dp-pca by the number of rows, and by their length"
)
def error_by_size(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the errors of sampling and of noise against n, and of noise against d."""
    found, verdicts = rates(results), Verdicts.of(results["streaming-audits"])
    noise = verdicts.line(DP_PCA, 0, "noise, ε = 1")
    sampling = verdicts.line(DP_PCA, 1, f"sampling, ε = {_WITHOUT_NOISE:,.0f}")
    by_rows = [
        _Drawn(found["noise"], noise, 1, True, True),
        _Drawn(found["sampling"], sampling, -1, False, False),
    ]
    by_length = [_Drawn(found["dimension"], noise, -2, True, False)]
    heading = "Error (sin of the angle) against n"
    panels = {(heading, "rows n"): by_rows, ("Error against d", _LENGTH): by_length}
    return _figure(panels, 640 if narrow else 370, narrow)


@plots.picture(
    "signal-in-noise", "Error of dp-pca and minibatch-oja by the spread of the rows"
)
def error_by_spread(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the errors of both mechanisms in Example 4.1 against sigma."""
    found, verdicts = rates(results), Verdicts.of(results["streaming-audits"])
    dp_pca = verdicts.line(DP_PCA, 0)
    oja = verdicts.line(MINIBATCH_OJA, 2)
    every = [
        _Drawn(found["signal"], dp_pca, 1, False, True),
        _Drawn(found["floor"], oja, 0, True, True, lift=40.0),
    ]
    panels = {("Error (sin of the angle) in Example 4.1", "spread σ"): every}
    return _figure(panels, 380 if narrow else 420, narrow)


def _figure(
    panels: Mapping[tuple[str, str], Sequence[_Drawn]], height: float, narrow: bool
) -> tuple[Figure, str]:
    """Draw rates under their headings, over their labels, on one vertical scale."""
    every = [each for rates in panels.values() for each in rates]
    figure, places = lines.sheet(height, len(panels), narrow=narrow)
    for box, ((heading, label), rates) in zip(places, panels.items(), strict=True):
        axes = plots.panel(figure, box, heading, **_AROUND)
        _panel(axes, rates, every, label)
    lines.key(figure, (each.line.dash for each in every), narrow=narrow)
    return figure, " ".join(map(_sentence, every))


def _panel(
    axes: Axes, drawn: Sequence[_Drawn], scale: Sequence[_Drawn], label: str
) -> None:
    """Draw rates, on the vertical scale of others."""
    x = sorted({x for each in drawn for x in each.rate.errors})
    axes.set(xscale="log", yscale="log", xlim=(x[0] / 1.12, x[-1] * 1.12))
    seen = [v for each in scale for q in each.rate.quartiles.values() for v in q]
    if seen:
        axes.set_ylim(min(seen) / 2.2, max(seen) * 1.5)
    marks = plots.decades(*axes.get_ylim(), (1, 2, 5))
    plots.tick(axes, "y", marks, decimal, _UP)
    plots.tick(axes, "x", x, decimal, _ACROSS)
    plots.finish(axes, label, pad=7)
    for each in drawn:
        _draw(axes, each, label[-1])


def _draw(axes: Axes, each: _Drawn, letter: str) -> None:
    """Draw medians, middle halves, the fitted law, and what is what."""
    found, law, line = each.rate.quartiles, each.rate.fit, each.line
    colour = line.colour
    for x, (low, middle, high) in found.items():
        axes.plot([x, x], [low, high], color=colour, linewidth=6, alpha=0.35)
        axes.plot(x, middle, clip_on=False, **{**line.style, "markersize": 7})
    texts = [
        f"{_name(each)}, {letter} = {decimal(x)}: {spread(three, number)}"
        for x, three in found.items()
    ]
    svg.told(axes, list(found), [three[1] for three in found.values()], texts)
    if any(x > each.rate.limit for x in found):
        middles = [middle for _, middle, _ in found.values()]
        axes.plot(list(found), middles, color=colour, linewidth=1.4, linestyle=DOTTED)
    fitted = [x for x in found if x <= each.rate.limit]
    if not fitted or not isfinite(law.exponent):
        return
    ends = [min(fitted), max(fitted)]
    y = [law.at(x) for x in ends]
    axes.plot(ends, y, color=colour, linewidth=1.8, linestyle=line.dash)
    x = sorted(found)[each.point]
    exponent = f"exponent {signed(law.exponent)} ± {(law.high - law.low) / 2:.2f}"
    for text, row, inked, size in (
        (line.label, int(each.above), colour, 12.5),
        (exponent, int(not each.above), INK, 11.5),
    ):
        up = (each.lift + 16 * row) * (1 if each.above else -1)
        away, side = (4 if each.right else -4, up), "left" if each.right else "right"
        style = {"ha": side, "va": "bottom" if each.above else "top"}
        place = (x, found[x][1])
        plots.beside(axes, text, place, away, color=inked, size=size, **style)


def _name(each: _Drawn) -> str:
    """Return whose rate it is, and of what."""
    name, label = each.rate.mechanism, each.line.label
    return label if label.startswith(name) else f"{name}, {label}"


def _sentence(each: _Drawn) -> str:
    found, law = each.rate.quartiles, each.rate.fit
    text = f"{_name(each)}: "
    if not found:
        return f"{text}bottom throughout."
    first, last = min(found), max(found)
    return (
        f"{text}{number(found[first][1])} at {decimal(first)}, "
        f"{number(found[last][1])} at {decimal(last)}; exponent "
        f"{signed(law.exponent)}, interval {law.interval}."
    )


def context(results: Results) -> dict[str, Any]:
    found = rates(results)
    return {
        "batches": BATCHES,
        "rows": rate_rows(found),
        "size_notes": size_notes(found),
        "miss_notes": miss_notes(found),
        "signal_notes": signal_notes(found),
    }


NOTES = {TABLES: exponent_lines}
