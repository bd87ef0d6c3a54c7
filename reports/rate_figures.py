"""The figures of the rates of streaming PCA: errors with fitted power laws.

As for `dpaudit.reports.figures`: tables in, SVG for light and dark out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.reports.formats import count, number, signed
from dpaudit.reports.labels import thinned
from dpaudit.reports.rates import Rate
from dpaudit.reports.svg import INK, NARROW, SERIES, WIDE, canvas, to_svg

__all__ = ["error_by_size", "error_by_spread"]

_ACROSS, _UP = 52.0, 24.0  # CSS pixels between ticks
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 16.0, 48.0, 52.0  # around a panel


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
        From `dpaudit.reports.rates.rates`.
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
        boxes = (
            [(0, 320, width, 320), (0, 0, width, 320)]
            if narrow
            else [(0, 0, 0.55 * width, height), (0.55 * width, 0, 0.45 * width, height)]
        )
        lines = by_rows + by_length
        _panel(
            figure,
            boxes[0],
            by_rows,
            lines,
            "Error (sin of the angle) against n",
            "rows n",
        )
        _panel(
            figure, boxes[1], by_length, lines, "Error against d", "length of rows d"
        )
        return to_svg(
            figure,
            f"figure-streaming-rates-{'narrow' if narrow else 'wide'}",
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
        box = (0, 0, width, height)
        _panel(
            figure,
            box,
            lines,
            lines,
            "Error (sin of the angle) in Example 4.1",
            "spread σ",
        )
        return to_svg(
            figure,
            f"figure-signal-in-noise-{'narrow' if narrow else 'wide'}",
            title="Error of dp-pca and minibatch-oja by the spread of the rows",
            description=" ".join(map(_sentence, lines)),
        )


def _panel(
    figure: Figure,
    box: tuple[float, float, float, float],
    lines: Sequence[_Line],
    scale: Sequence[_Line],
    heading: str,
    label: str,
) -> None:
    """Draw lines in a box in CSS pixels, on the vertical scale of others."""
    left, bottom, width, height = box
    across, up = figure.get_size_inches() * 72
    axes = figure.add_axes(
        (
            (left + _LEFT) / across,
            (bottom + _BOTTOM) / up,
            (width - _LEFT - _RIGHT) / across,
            (height - _TOP - _BOTTOM) / up,
        )
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    x = sorted({x for line in lines for x in line.rate.errors})
    axes.set_xlim(x[0] / 1.12, x[-1] * 1.12)
    seen = [v for line in scale for q in _quartiles(line.rate).values() for v in q]
    if seen:
        axes.set_ylim(min(seen) / 2.2, max(seen) * 1.5)
    _ticks(axes, x)
    axes.set_xlabel(label, labelpad=8)
    axes.tick_params(which="both", length=0, pad=7)
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    axes.annotate(
        heading,
        (left + 8, bottom + height - 22),
        xycoords="figure pixels",
        weight="bold",
    )
    for line in lines:
        _draw(axes, line)


def _ticks(axes: Axes, x: Sequence[float]) -> None:
    low, high = axes.get_ylim()
    decades = range(floor(log10(low)), ceil(log10(high)))
    marks = [m * 10.0**e for e in decades for m in (1, 2, 5)]
    marks = [mark for mark in marks if low <= mark <= high]
    kept = thinned([axes.transData.transform((x[0], m))[1] for m in marks], _UP)
    axes.set_yticks([marks[i] for i in kept], [_plain(marks[i]) for i in kept])
    axes.set_yticks([], minor=True)
    kept = thinned([axes.transData.transform((m, low))[0] for m in x], _ACROSS)
    axes.set_xticks([x[i] for i in kept], [_plain(x[i]) for i in kept])
    axes.set_xticks([], minor=True)


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
            linestyle=(0, (1, 2)),
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
