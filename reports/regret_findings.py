"""What the regret of online PCA says, in words and in rows that are ready to print.

As in `dpaudit.reports.findings`, the sentences are chosen by the data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, isnan

import pandas as pd

from dpaudit.reports.formats import count, percent, signed
from dpaudit.reports.power_law import fit_power_law
from dpaudit.reports.regret import (
    ALGORITHM_3,
    ALGORITHM_4,
    CORRECTED_ONLINE,
    LEADER,
    PUBLISHED_ONLINE,
    Exponent,
)
from dpaudit.reports.tables import records

__all__ = [
    "OnlineRow",
    "ScoreRow",
    "online_notes",
    "online_rows",
    "score_notes",
    "score_rows",
]

_THEOREMS = {ALGORITHM_3: "Corollary 17", ALGORITHM_4: "Theorem 18"}
_ALL_LOST = 0.9  # of the regret of a random subspace: nothing was learned


@dataclass(frozen=True)
class OnlineRow:
    """One line of the table of online PCA, every field ready to print."""

    name: str
    audited: bool
    verdict: str
    refuted: bool
    regret: str
    share: str
    bound: str


@dataclass(frozen=True)
class ScoreRow:
    """One line of the scoreboard of regret, every field ready to print."""

    theorem: str
    mechanism: str
    variable: str
    predicted: str
    formula: str
    exponent: str
    interval: str
    bound: str
    verdict: str


def online_rows(regrets: pd.DataFrame, audits: pd.DataFrame) -> list[OnlineRow]:
    """Return a row for each mechanism, on the longest stream."""
    verdicts = {r["mechanism"]: r["verdict"] for r in records(audits)}
    most = regrets[regrets["rows"] == regrets["rows"].max()]
    rows = []
    for name, group in most.groupby("mechanism", sort=False):
        none = "not private" if name == LEADER else "not audited here"
        verdict = verdicts.get(str(name), none)
        middle, first = float(group["regret"].median()), group.iloc[0]
        rows.append(
            OnlineRow(
                name=str(name),
                audited=name in verdicts,
                verdict=verdict.replace("_", " "),
                refuted=verdict == "REFUTED",
                regret=count(middle),
                share=percent(middle / float(first["optimum"])),
                bound=_proven(float(first["proven"]), float(first["optimum"])),
            )
        )
    return rows


def online_notes(regrets: pd.DataFrame) -> list[str]:
    """Return what privacy costs on the longest stream, and who learns nothing."""
    most = regrets["rows"].max()
    last = regrets[regrets["rows"] == most]
    medians = {str(n): float(v) for n, v in _medians(last)}
    nothing = float(last["nothing"].iloc[0])
    names = [name for name in CORRECTED_ONLINE if name in medians]
    best = min(names, key=lambda name: medians[name])
    notes = [
        f"On {count(most)} rows {LEADER}, which is not private, is "
        f"{count(medians[LEADER])} behind the best fixed subspace, a random subspace "
        f"{count(nothing)}, and {best}, the best of those whose noise is proven, "
        f"{count(medians[best])}."
    ]
    lost = [
        name
        for name in (*PUBLISHED_ONLINE, *CORRECTED_ONLINE)
        if medians.get(name, 0.0) > _ALL_LOST * nothing
    ]
    if lost:
        notes.append(
            f"{_listed(lost)} learn{'s' if len(lost) == 1 else ''} next to nothing on "
            "such a stream."
        )
    if medians[ALGORITHM_3] < medians[best]:
        notes.append(
            f"{ALGORITHM_3} is at {count(medians[ALGORITHM_3])}, with noise that hides "
            "a row in one step, and not in all of them."
        )
    curve = regrets[regrets["mechanism"] == best]
    law = fit_power_law({float(x): g["regret"] for x, g in curve.groupby("rows")})
    if isfinite(law.exponent):
        notes.append(
            f"The regret of {best} grows like m to the power {signed(law.exponent)} "
            f"({signed(law.low)} to {signed(law.high)}) on these streams."
        )
    return notes


def score_rows(found: Sequence[Exponent]) -> list[ScoreRow]:
    """Return the scoreboard."""
    return [
        ScoreRow(
            theorem=_THEOREMS[each.mechanism],
            mechanism=each.mechanism,
            variable=each.variable,
            predicted=_fraction(each.predicted),
            formula=signed(each.formula),
            exponent=signed(each.fit.exponent),
            interval=f"{signed(each.fit.low)} to {signed(each.fit.high)}",
            bound="–" if isnan(each.worst) else percent(each.worst),
            verdict=each.verdict,
        )
        for each in found
    ]


def score_notes(found: Sequence[Exponent], optimum: pd.DataFrame) -> list[str]:
    """Return how tight the bounds are, and what the leader without noise pays."""
    last = optimum[optimum["rows"] == optimum["rows"].max()]
    shares = {
        str(name): float((group["regret"] / group["optimum"]).median())
        for name, group in last.groupby("mechanism", sort=False)
    }
    notes = [
        f"On {count(last['rows'].max())} rows of rivals {LEADER} loses "
        f"{percent(shares.pop(LEADER))} of OPT, "
        + " and ".join(f"{n} {percent(s)}" for n, s in shares.items())
        + ": there, noise is what makes the regret small."
    ]
    worst = [each.worst for each in found if isfinite(each.worst)]
    if worst:
        notes.append(
            f"No mean regret of {ALGORITHM_3} is above {percent(max(worst))} of the "
            "bound that is proven with its constants."
            if max(worst) <= 1
            else f"A mean regret of {ALGORITHM_3} is above the bound that is proven."
        )
    groups = {
        "Contradicted": [e for e in found if e.verdict == "contradicted"],
        "Faster than the bound": [e for e in found if e.verdict.startswith("faster")],
        "Above the exponent of the bound on this grid, and not contradicted": [
            e for e in found if e.above and e.verdict != "contradicted"
        ],
    }
    for words, these in groups.items():
        if these:
            names = _listed([f"{e.mechanism} in {e.variable}" for e in these])
            notes.append(f"{words}: {names}.")
    return notes


def _medians(table: pd.DataFrame) -> list[tuple[object, float]]:
    return list(table.groupby("mechanism", sort=False)["regret"].median().items())


def _proven(bound: float, optimum: float) -> str:
    if isnan(bound):
        return "–"
    return count(bound) if bound < optimum else "above OPT"


def _fraction(exponent: float) -> str:
    return {0.5: "1/2", 0.25: "1/4"}[exponent]


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if names[1:] else names[0]
