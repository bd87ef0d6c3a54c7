"""The exponents of regret, and what they say in words and in rows ready to print.

**Verdicts.** *Faster than the bound*: the interval of the exponent lies below both the
printed one and that of `formula`. *Contradicted*: a mean regret is above the bound that
is proven with its constants (`dpaudit.algorithms.online.regret.proven_regret_bound`);
or, where none is, the interval lies above both by more than `_SLACK`, a matter of
judgement. *Consistent*: neither. A bound allows any exponent on a grid that ends, and
that a random subspace earns k/d raises those in d: `Exponent.above`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, isnan, nan

import numpy as np
import pandas as pd

from dpaudit.reports.power_law import PowerLaw, fit_power_law
from dpaudit.reports.sections.online.measures import (
    ALGORITHM_3,
    ALGORITHM_4,
    CORRECTED_ONLINE,
    LEADER,
    PUBLISHED_ONLINE,
)
from dpaudit.reports.tables import Printed, records
from dpaudit.reports.words import count, listed, percent, signed, verdict

__all__ = [
    "Exponent",
    "exponents",
    "online_notes",
    "online_rows",
    "score_notes",
    "score_rows",
]

_THEOREMS = {ALGORITHM_3: "Corollary 17", ALGORITHM_4: "Theorem 18"}
_SLACK = 0.1
_ALL_LOST = 0.9  # of the regret of a random subspace: nothing was learned


@dataclass(frozen=True)
class Exponent:
    """One exponent of the regret, beside what the theorem says.

    Parameters
    ----------
    mechanism, variable : str
        Whose, and in what: ``"OPT"``, ``"d"``, ``"k"`` or ``"m"``.
    predicted : float
        As printed, without logarithms.
    formula : float
        That of the printed bound on this grid, with its logarithms.
    fit : PowerLaw
        Of the regret.
    points : mapping of float to float
        The median regret at each point.
    worst : float
        The largest ratio of a mean regret to its proven bound; NaN without one.
    """

    mechanism: str
    variable: str
    predicted: float
    formula: float
    fit: PowerLaw
    points: Mapping[float, float]
    worst: float

    @property
    def verdict(self) -> str:
        """``"contradicted"``, ``"faster than the bound"`` or ``"consistent"``.

        Or ``"within the bound"``: the exponent is above the printed ones, and the
        regret below what is proven.
        """
        limit = max(self.predicted, self.formula) + _SLACK
        if self.worst > 1 or (isnan(self.worst) and self.fit.low > limit):
            return "contradicted"
        if not isfinite(self.fit.exponent):
            return "not known"
        if self.fit.high < min(self.predicted, self.formula):
            return "faster than the bound"
        proven = self.above and not isnan(self.worst)
        return "within the bound" if proven else "consistent"

    @property
    def above(self) -> bool:
        """Whether the whole interval is above both exponents."""
        return self.fit.low > max(self.predicted, self.formula)


_VARIABLES = {
    "regret-optimum": ("OPT", "optimum", 0.5),
    "regret-dimensions": ("d", "dimension", 0.25),
    "regret-components": ("k", "n_components", 0.5),
    "regret-length": ("m", "rows", 0.5),
}


def exponents(tables: Mapping[str, pd.DataFrame]) -> list[Exponent]:
    """Return the exponents of Algorithms 3 and 4, in each variable.

    The tables are those of the keys of `_VARIABLES`.
    """
    found = []
    for name in (ALGORITHM_3, ALGORITHM_4):
        for table, (variable, column, predicted) in _VARIABLES.items():
            rows = [r for r in records(tables[table]) if r["mechanism"] == name]
            groups: dict[float, dict[str, list[float]]] = {}
            for row in rows:
                group = groups.setdefault(float(row[column]), {})
                for key in ("regret", "formula", "proven"):
                    group.setdefault(key, []).append(row[key])
            formula = {x: 2 * each["formula"][:1] for x, each in groups.items()}
            ratios = [
                float(np.mean(each["regret"])) / each["proven"][0]
                for each in groups.values()
            ]
            found.append(
                Exponent(
                    mechanism=name,
                    variable=variable,
                    predicted=predicted,
                    formula=fit_power_law(formula).exponent,
                    fit=fit_power_law({x: g["regret"] for x, g in groups.items()}),
                    points={
                        x: float(np.median(g["regret"])) for x, g in groups.items()
                    },
                    worst=max(filter(isfinite, ratios), default=nan),
                )
            )
    return found


def online_rows(regrets: pd.DataFrame, audits: pd.DataFrame) -> list[Printed]:
    """Return a row for each mechanism, on the longest stream."""
    verdicts = {r["mechanism"]: r["verdict"] for r in records(audits)}
    most = regrets[regrets["rows"] == regrets["rows"].max()]
    rows = []
    for name, group in most.groupby("mechanism", sort=False):
        none = "not private" if name == LEADER else "not audited here"
        told = verdicts.get(str(name), none)
        middle, first = float(group["regret"].median()), group.iloc[0]
        rows.append(
            Printed(
                name=str(name),
                audited=name in verdicts,
                verdict=verdict(told),
                refuted=told == "REFUTED",
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
            f"{listed(lost)} learn{'s' if len(lost) == 1 else ''} next to nothing on "
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


def score_rows(found: Sequence[Exponent]) -> list[Printed]:
    """Return the scoreboard."""
    return [
        Printed(
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
            names = listed([f"{e.mechanism} in {e.variable}" for e in these])
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
