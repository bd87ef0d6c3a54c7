"""The rates of streaming PCA: errors with fitted power laws."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.reports.plots import (
    DOTTED,
    INK,
    NARROW,
    SERIES,
    WIDE,
    Box,
    boxes,
    canvas,
    finish,
    panel,
    thinned,
    to_svg,
)
from dpaudit.reports.sections.streaming.findings import Rate
from dpaudit.reports.words import count, number, signed

__all__ = ["error_by_size", "error_by_spread"]

_ACROSS, _UP = 52.0, 24.0  # CSS pixels between ticks
_AROUND = {"left": 56.0, "right": 16.0, "top": 48.0, "bottom": 52.0}


@dataclass(frozen=True)
class _Line:
    """A rate as it is drawn.

    Parameters
    ----------
    rate : Rate
    colour, text : str
    point : int
        The label is beside this point, ...
    above, right : bool
        ... on this side, ...
    lift : float
        ... so far from it, in CSS pixels.
    """

    rate: Rate
    colour: str
    text: str
    point: int
    above: bool
    right: bool
    lift: float = 12.0


def error_by_size(rates: Mapping[str, Rate], *, narrow: bool = False) -> str:
    """Draw the errors of sampling and of noise against n, and of noise against d.

    Parameters
    ----------
    rates : mapping of str to Rate
        From `dpaudit.reports.sections.streaming.findings.rates`.
    narrow : bool
        For a phone: one panel below the other.
    """
    by_rows = [
        _Line(rates["noise"], SERIES[0], "noise, ε = 1", 1, True, True),
        _Line(rates["sampling"], SERIES[1], "sampling, ε = 1,000", -1, False, False),
    ]
    by_length = [_Line(rates["dimension"], SERIES[0], "noise, ε = 1", -2, True, False)]
    width, height = (NARROW, 640) if narrow else (WIDE, 370)
    with canvas(width, height) as figure:
        first, second = boxes(2, width, height, narrow=narrow, first=0.55)
        lines = by_rows + by_length
        heading = "Error (sin of the angle) against n"
        _panel(figure, first, by_rows, lines, heading, "rows n")
        label = "length of rows d"
        _panel(figure, second, by_length, lines, "Error against d", label)
        return to_svg(
            figure,
            "streaming-rates",
            narrow=narrow,
            title="Error of dp-pca by the number of rows, and by their length",
            description=" ".join(map(_sentence, lines)),
        )


def error_by_spread(rates: Mapping[str, Rate], *, narrow: bool = False) -> str:
    """Draw the errors of both mechanisms in Example 4.1 against sigma.

    Parameters
    ----------
    rates, narrow
        See `error_by_size`.
    """
    lines = [
        _Line(rates["signal"], SERIES[0], "dp-pca", 1, False, True),
        _Line(rates["floor"], SERIES[2], "minibatch-oja", 0, True, True, lift=40.0),
    ]
    width, height = (NARROW, 380) if narrow else (WIDE, 420)
    with canvas(width, height) as figure:
        box = (0.0, 0.0, float(width), float(height))
        heading = "Error (sin of the angle) in Example 4.1"
        _panel(figure, box, lines, lines, heading, "spread σ")
        return to_svg(
            figure,
            "signal-in-noise",
            narrow=narrow,
            title="Error of dp-pca and minibatch-oja by the spread of the rows",
            description=" ".join(map(_sentence, lines)),
        )


def _panel(
    figure: Figure,
    box: Box,
    lines: Sequence[_Line],
    scale: Sequence[_Line],
    heading: str,
    label: str,
) -> None:
    """Draw lines in a box in CSS pixels, on the vertical scale of others."""
    axes = panel(figure, box, heading, **_AROUND)
    axes.set_xscale("log")
    axes.set_yscale("log")
    x = sorted({x for line in lines for x in line.rate.errors})
    axes.set_xlim(x[0] / 1.12, x[-1] * 1.12)
    seen = [v for line in scale for q in _quartiles(line.rate).values() for v in q]
    if seen:
        axes.set_ylim(min(seen) / 2.2, max(seen) * 1.5)
    _ticks(axes, x)
    finish(axes, label, pad=7)
    for line in lines:
        _draw(axes, line)


def _ticks(axes: Axes, x: Sequence[float]) -> None:
    low, high = axes.get_ylim()
    decades = range(floor(log10(low)), ceil(log10(high)))
    marks = [m * 10.0**e for e in decades for m in (1, 2, 5)]
    marks = [mark for mark in marks if low <= mark <= high]
    kept = thinned([axes.transData.transform((x[0], m))[1] for m in marks], _UP)
    axes.set_yticks([marks[i] for i in kept], [_plain(marks[i]) for i in kept])
    kept = thinned([axes.transData.transform((m, low))[0] for m in x], _ACROSS)
    axes.set_xticks([x[i] for i in kept], [_plain(x[i]) for i in kept])


def _draw(axes: Axes, line: _Line) -> None:
    """Draw medians, middle halves, the fitted law, and what is what."""
    found, law = _quartiles(line.rate), line.rate.fit
    for x, (low, middle, high) in found.items():
        axes.plot([x, x], [low, high], color=line.colour, linewidth=6, alpha=0.35)
        axes.plot(x, middle, "o", color=line.colour, markersize=7, clip_on=False)
    if any(x > line.rate.limit for x in found):
        middles = [middle for _, middle, _ in found.values()]
        axes.plot(
            list(found),
            middles,
            color=line.colour,
            linewidth=1.4,
            linestyle=DOTTED,
        )
    fitted = [x for x in found if x <= line.rate.limit]
    if not fitted or not isfinite(law.exponent):
        return
    ends = [min(fitted), max(fitted)]
    axes.plot(ends, [law.at(x) for x in ends], color=line.colour, linewidth=1.8)
    x = sorted(found)[line.point]
    half = (law.high - law.low) / 2
    for text, row, colour in (
        (line.text, 1 if line.above else 0, line.colour),
        (
            f"exponent {signed(law.exponent)} ± {half:.2f}",
            0 if line.above else 1,
            INK,
        ),
    ):
        up = (line.lift + 16 * row) * (1 if line.above else -1)
        axes.annotate(
            text,
            (x, found[x][1]),
            (4 if line.right else -4, up),
            textcoords="offset points",
            ha="left" if line.right else "right",
            va="bottom" if line.above else "top",
            color=colour,
            size=12.5 if colour != INK else 11.5,
        )


def _quartiles(rate: Rate) -> dict[float, tuple[float, float, float]]:
    """Return the quartiles of the errors at every point that has some."""
    found = {}
    for x, values in rate.errors.items():
        usable = values[np.isfinite(values) & (values > 0)]
        if len(usable):
            low, middle, high = np.quantile(usable, [0.25, 0.5, 0.75])
            found[x] = (float(low), float(middle), float(high))
    return found


def _plain(value: float) -> str:
    if value >= 1000:
        return count(value)
    return np.format_float_positional(value, trim="-")


def _sentence(line: _Line) -> str:
    found, law = _quartiles(line.rate), line.rate.fit
    text = f"{line.rate.mechanism}, {line.text}: "
    if not found:
        return f"{text}bottom throughout."
    first, last = min(found), max(found)
    return (
        f"{text}{number(found[first][1])} at {_plain(first)}, "
        f"{number(found[last][1])} at {_plain(last)}; exponent "
        f"{signed(law.exponent)}, interval {signed(law.low)} to {signed(law.high)}."
    )
