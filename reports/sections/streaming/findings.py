"""The exponents of streaming PCA, in numbers, in words and in rows ready to print."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite, nan

import numpy as np
import pandas as pd

from dpaudit.arrays import Array
from dpaudit.reports.power_law import PowerLaw, fit_power_law
from dpaudit.reports.sections.streaming.measures import DP_PCA, MINIBATCH_OJA
from dpaudit.reports.tables import Printed, grouped
from dpaudit.reports.words import decimal, sentences, setting, signed

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
    def lost(self) -> int:
        """How many data sets had a release that was bottom."""
        return int(sum(np.isnan(values).sum() for values in self.errors.values()))


def rates(tables: Mapping[str, pd.DataFrame]) -> dict[str, Rate]:
    """Return the exponents by their keys, from the tables of the experiments.

    ``tables``: of ``streaming-rates``, ``streaming-dimensions`` and
    ``signal-in-noise``.
    """
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
    return Rate(
        key=key,
        mechanism=table["mechanism"].iloc[0],
        errors=grouped(table, against, column),
        fit=fit_power_law(grouped(fitted, against, column)),
        target=(target, target + above),
        formula=formula,
        parts=(float(last["error"].median()), float(last["noise_error"].median())),
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


def exponent_lines(
    by_size: pd.DataFrame, by_length: pd.DataFrame, by_spread: pd.DataFrame
) -> list[str]:
    """Return the exponents as lines of text, and what explains those that miss."""
    tables = (by_size, by_length, by_spread)
    found = rates(dict(zip(TABLES, tables, strict=True)))
    lines = [f"{'exponent of':28} {'measured':>8}  {'95 % interval':18} {'target':12}"]
    lines += [
        f"{row.name:28} {row.exponent:>8}  {row.interval:18} {row.target:12} "
        f"{'met' if row.met else 'missed':8} {row.setting}"
        for row in rate_rows(found)
    ]
    return [*lines, *size_notes(found), *signal_notes(found), *miss_notes(found)]
