"""The section on privacy: what is audited, and how it is shown.

The sentences are chosen by the data.
"""

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.reports import plots, svg
from dpaudit.reports.experiment import Record
from dpaudit.reports.plots import WIDE
from dpaudit.reports.sections import Part, Results, Section
from dpaudit.reports.svg import INK, MUTED, PAPER, REFUTED, SERIES
from dpaudit.reports.tables import fallen, point, proved, records, verdict_rows
from dpaudit.reports.words import count, delta, listed, number, setting, spelt, verdict


def privacy_answer(wall: pd.DataFrame, exact: pd.DataFrame) -> list[str]:
    """Return what the verdicts say, the most important first: one item per finding."""
    refuted = wall["verdict"] == "REFUTED"
    return [
        *map(_refutation, records(wall[refuted])),
        *_survivors(wall[~refuted]),
        *(
            f"The claim of {name} holds at the audited ε but is {where}."
            for name, where in false_elsewhere(wall, exact).items()
        ),
    ]


def verdict_note(wall: pd.DataFrame) -> str:
    """Return whose claims are contradicted, by audits or by the exact loss.

    In one sentence; of the audited epsilon, for at another one a claim may be false.
    """
    fell, at = wall[fallen(wall)], setting(wall["claimed_epsilon"].iloc[0])
    all_of, rest = spelt(len(wall)), spelt(len(wall) - len(fell))
    nothing = "nothing found there contradicts the claims, which proves none of them"
    if fell.empty:
        return f"None of {all_of} claims fell at ε = {at}: {nothing}."
    whose = listed(f"{row['mechanism']} ({row['source']})" for row in records(fell))
    unseen = fell["mechanism"][fell["verdict"] != "REFUTED"]
    alone = f", for {listed(unseen)} by the exact loss alone" if len(unseen) else ""
    beside = f"; of the other {rest} {nothing}" if len(fell) < len(wall) else ""
    return (
        f"{spelt(len(fell)).capitalize()} of {all_of} claims fell at ε = {at}: what is "
        f"claimed for {whose} is contradicted{alone}{beside}."
    )


def wall_notes(wall: pd.DataFrame) -> list[str]:
    """Return what a large delta means, for every mechanism that has one.

    A delta at some epsilon is P(S) - e^epsilon Q(S) of an event S. It is at most the
    probability that the loss is above epsilon, on one of the two datasets.
    """
    notes = []
    for row in records(wall[fallen(wall)]):
        exact = row["claim"] == "false"
        known = row["exact_delta"] if exact else row["delta_lower"]
        if known >= 0.1:
            epsilon = setting(row["claimed_epsilon"])
            notes.append(
                f"While {row['mechanism']} promises δ = {delta(row['claimed_delta'])} "
                f"at ε = {epsilon}, the privacy loss is above {epsilon} in at least "
                f"{math.floor(100 * known)} of 100 releases on one of the two datasets"
                + ("." if exact else f", at {100 * row['confidence']:g} % confidence.")
            )
    return notes


def _refutation(row: Record) -> str:
    text = (
        f"The claim of {row['mechanism']}, {' and '.join(point(row, 'claimed_{}'))}, "
        f"falls after {count(row['samples_to_refute'])} releases a side, at "
        f"{100 * row['confidence']:g} % confidence."
    )
    if row["claim"] == "false":
        text += (
            f" In truth ε is {number(row['exact_epsilon'])} at the claimed δ, and δ is "
            f"{delta(row['exact_delta'])} at the claimed ε, instead of "
            f"{delta(row['claimed_delta'])}."
        )
    return text


def _survivors(standing: pd.DataFrame) -> list[str]:
    if standing.empty:
        return []
    names, claim = standing["mechanism"], standing["claim"]
    kept, false = names[claim == "kept"], names[claim == "false"]
    texts = [
        f"The audit did not refute {listed(names)} with up to "
        f"{count(standing['samples'].max())} releases a side. That is no proof of "
        "privacy."
    ]
    if len(kept):
        every = "each of them" if len(kept) > 1 else "it"
        texts.append(
            f"For {every if len(kept) == len(names) else listed(kept)} the exact loss "
            "on the worst pair is known as well, and it is within the claim."
        )
    if len(false):
        texts.append(
            f"Yet the exact loss shows the claim of {listed(false)} to be false: "
            "sampling was too weak to see it."
        )
    return [" ".join(texts)]


def false_elsewhere(wall: pd.DataFrame, exact: pd.DataFrame) -> dict[str, str]:
    """Return whose claims fall at another epsilon than the audited one, and where."""
    broken = wall["mechanism"][fallen(wall)]
    false = exact[exact["claim"].eq("false") & ~exact["mechanism"].isin(broken)]
    found = {}
    for name, rows in false.groupby("mechanism", sort=False):
        least = rows.loc[rows["epsilon"].idxmin()]
        place = "at ε =" if len(rows) == 1 else "from ε ="
        found[name] = (
            f"false {place} {setting(least['claimed_epsilon'])}: the exact ε there is "
            f"{number(least['exact_epsilon'])}"
        )
    return found


@plots.picture(
    "privacy-wall", "Claimed, exact and audited privacy loss of every mechanism"
)
def privacy_wall(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw claimed, exact and audited privacy: epsilon beside (or above) delta.

    Epsilon runs over all of [0, inf] on the scale epsilon / (epsilon + claim), so
    that the claim stands in the middle and an infinite loss at the end. The claimed
    epsilon is the same in all rows.
    """
    rows = records(results["privacy-wall"])
    claim = rows[0]["claimed_epsilon"]
    high = (66 if narrow else 48) * len(rows)
    key = 48 if narrow else 36
    height = 2 * high + 180 + key if narrow else high + 84 + key
    figure = plots.canvas(height, narrow=narrow)
    _key(figure, height, narrow)

    def place(epsilon: float) -> float:
        return 1.0 if math.isinf(epsilon) else epsilon / (epsilon + claim)

    if narrow:
        left, right = (
            plots.pixels(figure, 10, bottom, plots.NARROW - 24, high)
            for bottom in (height - key - 50 - high, 34)
        )
    else:
        names = plots.names_width(row["mechanism"] for row in rows)
        room = WIDE - names - 58
        left = plots.pixels(figure, names, 34, 0.575 * room, high)
        right = plots.pixels(figure, names + 0.575 * room + 40, 34, 0.425 * room, high)
    marks = [0.0, claim / 4, claim / 2, claim, 2 * claim, 4 * claim, math.inf]
    ticks = [(place(m), "∞" if math.isinf(m) else f"{m:g}") for m in marks]
    plots.row_panel(left, len(rows), "Loss ε at the claimed δ", ticks)
    ticks = [(m, f"{m:g}") for m in (0, 0.25, 0.5, 0.75, 1)]
    plots.row_panel(right, len(rows), "δ at the claimed ε", ticks)
    for i, row in enumerate(rows):
        _bar(left, i, row, "epsilon", place, number, narrow)
        _bar(right, i, row, "delta", float, delta, narrow)
        refuted = row["verdict"] == "REFUTED"
        for axes in (left, right) if narrow else (left,):
            plots.row_name(axes, i, row["mechanism"], refuted, narrow)
    return figure, " ".join(map(_wall_sentence, rows))


KEY = ("proved by the audit", "beyond the claim", "claimed", "exact")
"""What the marks of the privacy wall mean."""

_MARKS: tuple[dict[str, Any], ...] = (
    {"color": SERIES[0], "linewidth": 0},
    {"color": REFUTED, "linewidth": 0},
    {"color": INK, "clip_on": False, "linewidth": 2.5, "solid_capstyle": "butt"},
    {
        **{"color": INK, "clip_on": False, "zorder": 5, "marker": "D", "markersize": 8},
        **{"markerfacecolor": PAPER, "markeredgecolor": INK, "markeredgewidth": 1.6},
    },
)
"""How they look: in the rows, and in the key above them."""

_LETTERS = {"epsilon": "ε", "delta": "δ"}


def _bar(
    axes: Axes,
    i: int,
    row: Record,
    kind: str,
    place: Callable[[float], float],
    text: Callable[[float], str],
    narrow: bool,
) -> None:
    """Draw one mechanism: the bar that the audit proved, the claim, the truth."""
    claimed, lower = row[f"claimed_{kind}"], row[f"{kind}_lower"]
    of_proof, of_excess, of_claim, of_truth = _MARKS
    exact = row[f"exact_{kind}"]
    y, half = i + (0.0 if narrow else -0.12), 0.13
    within = place(min(lower, claimed))
    axes.barh(y, within, height=2 * half, **of_proof)
    if lower > claimed:
        beyond = place(lower) - within
        axes.barh(y, beyond, left=within, height=2 * half, **of_excess)
    axes.plot([place(claimed)] * 2, (y - half - 0.08, y + half + 0.08), **of_claim)
    said = f"audit {proved(row, kind)}"
    if not math.isnan(exact):
        said += f" · exact {text(exact)}"
        axes.plot(place(exact), y, **of_truth)
    axes.annotate(said, (0, y + half + 0.1), va="top", color=MUTED, size=11)
    for value, words in (
        (lower, f"audit {proved(row, kind)}"),
        (claimed, f"claimed {text(claimed)}"),
        (exact, f"exact {text(exact)}"),
    ):
        if not math.isnan(value):
            told = f"{row['mechanism']}, {_LETTERS[kind]} {words}"
            svg.told(axes, [place(value)], [y], [told])


def _key(figure: Figure, height: int, narrow: bool) -> None:
    """Say above the rows what their marks mean, in two columns on phones."""
    across = plots.NARROW if narrow else plots.WIDE
    axes = plots.pixels(figure, 0, 0, across, height)
    axes.set(xlim=(0, across), ylim=(0, height))
    axes.set_axis_off()
    lefts = (10, 190) if narrow else (10, 190, 350, 460)
    for i, text in enumerate(KEY):
        x, y = lefts[i % len(lefts)], height - 14 - 22 * (i // len(lefts))
        if i < 2:
            axes.barh(y, 26, left=x, height=11, **_MARKS[i])
        else:
            places = ([x + 13] * 2, (y - 9, y + 9)) if i == 2 else ([x + 13], [y])
            axes.plot(*places, **_MARKS[i])
        axes.annotate(text, (x + 34, y), va="center", color=MUTED, size=12)


def _wall_sentence(row: Record) -> str:
    found = verdict(row["verdict"]).lower()
    return (
        f"{row['mechanism']}: claimed epsilon {number(row['claimed_epsilon'])}, "
        f"audited {proved(row, 'epsilon')}, "
        f"exact {number(row['exact_epsilon'])}; "
        f"delta claimed {delta(row['claimed_delta'])}, "
        f"audited {proved(row, 'delta')}, "
        f"exact {delta(row['exact_delta'])}; {found}."
    )


def context(results: Results) -> dict[str, Any]:
    wall = results["privacy-wall"]
    audited, rows = records(wall), verdict_rows(wall)
    return {
        "confidence": audited[0]["confidence"],
        "delta": results.options("privacy-wall")["delta"],
        # A refuted audit ended early, and was blind to no less than it needed.
        "rarest_event": max(
            (r["rarest_event"] for r in audited if r["verdict"] != "REFUTED"),
            default=math.nan,
        ),
        "verdicts": rows,
        "verdict_note": verdict_note(wall),
        "wall_notes": wall_notes(wall),
    }


def answer(results: Results) -> list[str]:
    return privacy_answer(results["privacy-wall"], results["exact-privacy"])


def remarks(results: Results) -> dict[str, list[str]]:
    found = false_elsewhere(results["privacy-wall"], results["exact-privacy"])
    return {
        name: [f"The claim holds at the audited ε but is {where}."]
        for name, where in found.items()
    }


SECTION = Section(
    name="privacy",
    title="Privacy: claimed, exact, audited",
    parts=(
        Part("verdicts", "Verdicts", 100),
        Part("privacy-wall", "The privacy wall", 110, first=True),
        Part("how-to-read", "How to read this", 900),
    ),
    audits=("privacy-wall",),
)
