"""The section on the exponents of theorems: what is measured, and how it is shown."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from math import ceil, exp, isfinite, log
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.reports import plots, svg
from dpaudit.reports.sections import Results, TopicPage
from dpaudit.reports.sections.theorems import findings, judgement, ledger, pictures
from dpaudit.reports.sections.theorems.findings import programmed, scores
from dpaudit.reports.sections.theorems.judgement import Ruling, Score
from dpaudit.reports.sections.theorems.rows import (
    CHANCES,
    GRIDS,
    SHORT,
    Chance,
    ExponentRow,
)
from dpaudit.reports.words import decimal, listed, number, signed, spread

__all__ = ["programmed"]

_AS_PRINTED = "steeper than what is provable, and not than the print,"
_HEIGHT, _ROW = 200, 16  # CSS pixels of a panel, and of a row
_MOST = 1.0  # how far from what is proven an exponent is drawn
_COLOURS = {Ruling.CONSISTENT: svg.SERIES[0], Ruling.UNDECIDED: svg.MUTED}
# Decades of errors that a panel shows at least, for each decade of its variable.
_LEAST = 0.5


@plots.picture("theorems", "Measured exponents less those that are proven")
def exponents(
    tables: Mapping[str, pd.DataFrame], narrow: bool = False
) -> tuple[Figure, str]:
    """Draw every row: how far its exponent is from what is proven, with its interval.

    ``tables``: of the experiments of all rows. ``narrow``: for a phone: one column in
    place of two.
    """
    found = scores(tables)
    columns = 1 if narrow else 2
    size, wide = ceil(len(found) / columns), plots.NARROW if narrow else plots.WIDE / 2
    figure = plots.canvas(size * _ROW + 76, narrow=narrow)
    for column in range(columns):
        own = found[column * size : (column + 1) * size]
        box = (column * wide + 112, 34 + (size - len(own)) * _ROW, wide - 186)
        axes = plots.pixels(figure, *box, len(own) * _ROW)
        marks = [-_MOST, -_MOST / 2, 0.0, _MOST / 2, _MOST]
        ticks = [(mark, signed(mark).replace(".00", "")) for mark in marks]
        plots.row_panel(axes, len(own), "Measured − proven", ticks)
        axes.set_xlim(-_MOST, _MOST)
        axes.axvline(0, color=svg.INK, linewidth=1.2, linestyle=(0, (3, 2)))
        for i, each in enumerate(own):
            _off(axes, i, each)
    return figure, " ".join(map(_sentence, found))


def _off(axes: Axes, i: int, each: Score) -> None:
    """Draw one row: the interval, the exponent, and the verdict if it is another."""
    law, colour = each.fit, _COLOURS.get(each.verdict, svg.SERIES[1])
    name = f"{_short(each.row.theorem)}, {each.row.variable}"
    style: dict[str, Any] = {"va": "center", "size": 10}
    plots.beside(axes, name, (0, i), (-8, 0), plots.ROW, ha="right", **style)
    if each.verdict != Ruling.CONSISTENT:
        word = each.verdict.split()[0]
        plots.beside(axes, word, (1, i), (8, 0), plots.ROW, color=svg.MUTED, **style)
    if not isfinite(law.exponent):
        return
    low, middle, high = np.clip(
        np.array([law.low, law.exponent, law.high]) - each.row.predicted, -_MOST, _MOST
    )
    marker = "o" if abs(middle) < _MOST else "<" if middle < 0 else ">"
    axes.plot([low, high], [i, i], color=colour, linewidth=3, alpha=0.45)
    axes.plot(middle, i, marker, color=colour, markersize=5, clip_on=False)
    svg.told(axes, [middle], [i], [_sentence(each)])


def _panels(found: Sequence[Score], across: int, narrow: bool) -> tuple[Figure, str]:
    """Draw rows of a theorem: quartiles of errors in logs, and two slopes."""
    figure = plots.canvas(ceil(len(found) / across) * _HEIGHT, narrow=narrow)
    places = plots.boxes(figure, len(found), across=across)
    for box, each in zip(places, found, strict=True):
        axes = plots.panel(figure, box, left=12.0, right=14.0, top=62.0, bottom=26.0)
        _draw(axes, each)
        _name(axes, each, (box[0] + 8, box[1] + _HEIGHT - 20))
    return figure, " ".join(map(_sentence, found))


def _picture(own: Sequence[Score], file: str) -> list[str]:
    """Return the picture of the rows of a theorem, in both widths."""
    title, drawn = f"Errors, fitted and predicted slopes of {own[0].row.theorem}", []
    for narrow, most in ((False, 3), (True, 1)):
        across = min(len(own), most)
        with plots.drawing():
            figure, words = _panels(own, across, narrow)
            options: dict[str, Any] = {"title": title, "description": words}
            drawn.append(svg.to_svg(figure, file, narrow=narrow, **options))
    return drawn


def _draw(axes: Axes, each: Score) -> None:
    """Draw errors and laws in logs that are taken here: log axes take seconds more."""
    law, colour = each.fit, _COLOURS.get(each.verdict, svg.SERIES[1])
    x = np.log(list(each.errors))  # ascending
    seen: list[float] = []
    for place, values in zip(x, each.errors.values(), strict=True):
        usable = values[np.isfinite(values) & (values > 0)]
        if len(usable):
            low, middle, high = np.quantile(np.log(usable), [0.25, 0.5, 0.75])
            axes.plot(
                [place, place], [low, high], color=colour, linewidth=5, alpha=0.35
            )
            axes.plot(place, middle, "o", color=colour, markersize=5, clip_on=False)
            seen += [low, high]
            three = spread([exp(low), exp(middle), exp(high)], number)
            at = f"{each.row.variable} = {decimal(exp(place))}"
            svg.told(axes, [place], [middle], [f"{each.row.error}, {at}: {three}"])
    width = float(x[-1] - x[0])
    if isfinite(law.exponent):
        fitted = log(law.factor) + law.exponent * x
        foretold = fitted.mean() + each.row.predicted * (x - x.mean())
        axes.plot(x, fitted, color=colour, linewidth=1.6)
        axes.plot(x, foretold, color=svg.INK, linewidth=1.2, linestyle=(0, (3, 2)))
        seen += [*fitted, *foretold]
    if seen:
        reach = 0.55 * max(max(seen) - min(seen), _LEAST * width)
        middle = (max(seen) + min(seen)) / 2
        axes.set_ylim(middle - reach, middle + reach)
    axes.set_xlim(x[0] - 0.06 * width, x[-1] + 0.06 * width)
    ends = [decimal(min(each.errors)), decimal(max(each.errors))]
    axes.set_xticks([x[0], x[-1]], ends, size=10.5)
    first, last = axes.get_xticklabels()
    first.set_horizontalalignment("left")
    last.set_horizontalalignment("right")
    axes.set_yticks([])
    svg.told_whole(axes, _sentence(each))
    plots.finish(axes, "", pad=4)


def _name(axes: Axes, each: Score, place: tuple[float, float]) -> None:
    """Write above a panel, in three lines, what it shows."""
    measured = f"{signed(each.fit.exponent)} ({each.fit.interval})"
    numbers = f"{measured} for {signed(each.row.predicted)}"
    x, y = place
    title = f"{_short(each.row.theorem)}, {each.row.variable}"
    plots.write(axes, title, (x, y), weight="bold", size=12)
    error = each.row.error.replace("sine of the angle", "sine")
    plots.write(axes, error, (x, y - 15), color=svg.MUTED, size=10.5)
    plots.write(axes, numbers, (x, y - 30), size=10.5)


def _short(theorem: str) -> str:
    for long, short in SHORT.items():
        theorem = theorem.replace(long, short)
    return theorem


def _sentence(each: Score) -> str:
    return (
        f"{each.row.theorem}, {each.row.error} in {each.row.variable}: predicted "
        f"{signed(each.row.predicted)}, measured {signed(each.fit.exponent)}, interval "
        f"{each.fit.interval}, {each.verdict}."
    )


def _judged(results: Results) -> tuple[list[judgement.Score], list[judgement.Share]]:
    return findings.scores(results), judgement.shares(CHANCES, results)


def context(results: Results) -> dict[str, Any]:
    found, seen = results.once(_judged)
    return {
        "head": findings.statements(found),
        "summary": findings.summary(found),
        "print_notes": findings.print_notes(found),
        "bounds": findings.bound_rows(results),
        "chances": findings.chance_summary(seen),
        "rows": findings.score_rows([*found, *seen]),
        "tolerance": judgement.TOLERANCE,
        "resolved": judgement.RESOLVED,
        "ledger": ledger.folds(results.once(_ledger)),
        "ledger_summary": ledger.summary(results.once(_ledger)),
    }


def theorem_words(
    found: Sequence[Score], seen: Sequence[judgement.Share]
) -> dict[str, str]:
    """Return the verdict on each theorem of the scoreboard, in its order."""
    every: list[Score | judgement.Share] = [*found, *seen]
    words = {}
    for theorem in dict.fromkeys(each.row.theorem for each in every):
        own = [each for each in found if each.row.theorem == theorem]
        met = {each.verdict for each in own if not each.row.unmet}
        words[theorem] = findings.STATED[judgement.stated(own)]
        if met == {Ruling.VACUOUS}:
            words[theorem] = ledger.VACUOUS
        if own and not met:
            words[theorem] = ledger.UNMET
        if not own:
            words[theorem] = _rarity([e for e in seen if e.row.theorem == theorem])
    return words


def _rarity(seen: Sequence[judgement.Share]) -> str:
    """Return the verdict on a probability, of those at each zeta."""
    verdicts = {each.verdict for each in seen}
    if Ruling.CONTRADICTED in verdicts:
        return ledger.CONTRADICTED
    if verdicts == {Ruling.VACUOUS}:
        return ledger.VACUOUS
    agreeing = verdicts & {Ruling.CONSISTENT, Ruling.RARER}
    if agreeing == verdicts:
        return ledger.SUPPORTED
    return ledger.PARTLY if agreeing else ledger.OPEN


def _ledger(results: Results) -> list[tuple[ledger.Statement, str, str]]:
    found, seen = results.once(_judged)
    words = theorem_words(found, seen).items()
    told = {name: (word, _dissent(name, found)) for name, word in words}
    heard = pictures.heard(results, ledger.STATEMENTS)
    return ledger.judged(results, {**told, **heard})


def _dissent(theorem: str, found: Sequence[Score]) -> str:
    """Return which rows of a theorem, its hypotheses met, are beside what it says."""
    where: dict[str, list[str]] = {}
    for each in found:
        if each.row.theorem == theorem and not each.row.unmet:
            verdict = _AS_PRINTED if each.as_printed else each.verdict
            where.setdefault(verdict, []).append(each.row.variable)
    as_said = (Ruling.CONSISTENT, Ruling.FASTER)
    return "; ".join(
        f"{verdict} in {listed(dict.fromkeys(variables))}"
        for verdict, variables in where.items()
        if verdict not in as_said
    )


def tables(results: Results) -> dict[str, pd.DataFrame]:
    return {
        "theorems": findings.scoreboard(*results.once(_judged)),
        "ledger": ledger.table(results.once(_ledger)),
    }


def pages(results: Results) -> list[TopicPage]:
    """Return a page for each theorem, in the order of the scoreboard."""
    found, seen = results.once(_judged)
    bounds = findings.bound_rows(results)
    judged: list[Score | judgement.Share] = [*found, *seen]
    theorems, topics = theorem_words(found, seen), []

    def owner(named: str) -> str:
        """Return the theorem that a bound belongs to: what its name begins with."""
        return max((each for each in theorems if named.startswith(each)), key=len)

    for theorem, verdict in theorems.items():
        every = [each for each in judged if each.row.theorem == theorem]
        own = [each for each in every if isinstance(each, Score)]
        some = [each.row for each in every]
        told = {
            "rows": findings.score_rows(every),
            "says": [each for each in ledger.STATEMENTS if theorem in each.rows],
            "grids": [
                (each.row.variable, ", ".join(map(decimal, each.errors)))
                for each in own
            ],
            "bounds": [row for row in bounds if owner(row.named) == theorem],
            "mechanisms": dict.fromkeys(row.mechanism for row in some),
            "experiments": dict.fromkeys(row.experiment for row in some),
            "why": dict.fromkeys(each.row.why for each in own if each.row.why),
            "printed": [e.row for e in own if e.row.printed != e.row.predicted],
        }
        file = re.sub(r"[^a-z0-9]+", "-", theorem.lower()).strip("-")
        topics.append(
            TopicPage(
                folder="theorems",
                name=theorem,
                template="theorems/theorem.html.j2",
                context=partial(dict, told),
                draw=partial(_picture, own, file) if own else None,
                group=some[0].source,
                line=listed(_measured(some)),
                verdict=verdict,
                refuted=any(each.verdict == Ruling.CONTRADICTED for each in every),
                mechanisms=tuple(row.mechanism for row in some),
                file=file,
            )
        )
    return topics


def _measured(rows: Sequence[ExponentRow | Chance]) -> list[str]:
    """Return what was measured of a theorem, each error once."""
    errors: dict[str, list[str]] = {}
    for row in rows:
        if isinstance(row, Chance):
            errors[f"the probability of this event: {row.event}"] = []
        else:
            errors.setdefault(row.error, []).append(row.variable)
    return [
        f"{error}, in {listed(dict.fromkeys(variables))}" if variables else error
        for error, variables in errors.items()
    ]


NOTES = {(name,): partial(findings.exponent_lines, name) for name in GRIDS}
