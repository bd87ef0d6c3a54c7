"""The section on online PCA: what is measured, and how it is shown.

The sentences are chosen by the data, and so are the verdicts on exponents of regret.

**Verdicts.** *Faster than the bound*: the interval of the exponent lies below both the
printed one and that of `formula`. *Contradicted*: a mean regret is above the bound that
is proven with its constants (`dpaudit.algorithms.online.regret.proven_regret_bound`);
or, where none is, the interval lies above both by more than `_SLACK`, a matter of
judgement. *Consistent*: neither. A bound allows any exponent on a grid that ends, and
that a random subspace earns k/d raises those in d: `Exponent.above`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite, isnan, nan
from typing import Any

import pandas as pd

from dpaudit.reports.experiment import Experiment
from dpaudit.reports.measures import audit_experiment
from dpaudit.reports.power_law import PowerLaw, fit_power_law
from dpaudit.reports.sections import Part, Results, Section, Size, sizes
from dpaudit.reports.sections.online import figures, measures
from dpaudit.reports.sections.online.measures import (
    ALGORITHM_3,
    ALGORITHM_4,
    CORRECTED_ONLINE,
    LEADER,
    PUBLISHED_ONLINE,
)
from dpaudit.reports.tables import Printed, grouped
from dpaudit.reports.words import count, listed, percent, signed, verdict

__all__ = [
    "ONLINE_AUDITS",
    "SECTION",
    "Exponent",
    "exponents",
    "online_notes",
    "online_rows",
    "score_notes",
    "score_rows",
]

_PAPER = "Dwork, Talwar, Thakurta, Zhang, STOC 2014"
_EXPONENTS = (ALGORITHM_3, ALGORITHM_4)
_LENGTHS = (1000, 2000, 4000, 8000, 16_000, 32_000, 64_000)
# Algorithm 4 has many epochs then, and its exponents are those of long streams.
_RIVALS = {"stream": measures.RIVALS, "tuned": True, "epsilon": 100.0}
# The false claim first: where not all are audited, it is.
ONLINE_AUDITS = (ALGORITHM_3, *CORRECTED_ONLINE, *PUBLISHED_ONLINE[:-1])

_THEOREMS = {ALGORITHM_3: "Corollary 17", ALGORITHM_4: "Theorem 18"}
_SLACK = 0.1
_ALL_LOST = 0.9  # of the regret of a random subspace: nothing was learned


def _experiments(size: Size) -> tuple[Experiment, ...]:
    lengths = tuple(map(float, size.online_rows))
    experiment = partial(
        Experiment, measure=measures.online_regret, repetitions=size.online_draws
    )
    rivals = partial(
        experiment, source=f"{_PAPER}, Theorems 14, 18", mechanisms=_EXPONENTS
    )
    return (
        audit_experiment(
            ONLINE_AUDITS[: size.online_audits],
            size.online_samples,
            name="online-audits",
            title="Audits of online PCA",
            effort=5.0,
        ),
        experiment(
            name="online-regret",
            title="Regret of online PCA",
            source=f"{_PAPER}, section 4",
            mechanisms=(*PUBLISHED_ONLINE, *CORRECTED_ONLINE, LEADER),
            grid={"rows": lengths},
            options={
                "stream": measures.GAUSSIAN,
                "dimension": 20,
                "n_components": 3,
                "epsilon": 1.0,
                "delta": 1e-6,
            },
            effort=3.0,
        ),
        rivals(
            name="regret-optimum",
            title="Regret by OPT",
            mechanisms=(*_EXPONENTS, LEADER),
            grid={"rows": lengths},
            options={
                **_RIVALS,
                "dimension": 16,
                "n_components": 1,
                "length": size.online_rows[-1],
            },
        ),
        rivals(
            name="regret-length",
            title="Regret by the length of the stream",
            grid={"rows": lengths},
            options={**_RIVALS, "dimension": 16, "n_components": 1},
        ),
        rivals(
            name="regret-dimensions",
            title="Regret by the length of rows",
            grid={"dimension": (16.0, 32.0, 64.0)},
            options={**_RIVALS, "rows": size.online_size, "n_components": 1},
            effort=2.0,
        ),
        rivals(
            name="regret-components",
            title="Regret by the number of components",
            grid={"n_components": (1.0, 2.0, 4.0)},
            options={**_RIVALS, "rows": size.online_size, "dimension": 32},
            effort=2.0,
        ),
    )


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
    worst : float
        The largest ratio of a mean regret to its proven bound; NaN without one.
    """

    mechanism: str
    variable: str
    predicted: float
    formula: float
    fit: PowerLaw
    worst: float

    @property
    def verdict(self) -> str:
        """``"contradicted"``, ``"faster than the bound"`` or ``"consistent"``.

        Where the exponent is above the printed ones: ``"within the bound"`` if the
        regret is below what is proven, and where nothing is, ``"steeper than the bound
        on this grid"``: a bound with some constant is not contradicted by an exponent.
        """
        limit = max(self.predicted, self.formula) + _SLACK
        if self.worst > 1:
            return "contradicted"
        if isnan(self.worst) and self.fit.low > limit:
            return "steeper than the bound on this grid"
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
            rows = tables[table]
            points = rows[rows["mechanism"] == name].groupby(column, sort=False)
            formula = {float(x): [f] * 2 for x, f in points["formula"].first().items()}
            regrets = {float(x): values for x, values in points["regret"]}
            ratios = points["regret"].mean() / points["proven"].first()
            found.append(
                Exponent(
                    mechanism=name,
                    variable=variable,
                    predicted=predicted,
                    formula=fit_power_law(formula).exponent,
                    fit=fit_power_law(regrets),
                    worst=max(filter(isfinite, ratios), default=nan),
                )
            )
    return found


def online_rows(regrets: pd.DataFrame, audits: pd.DataFrame) -> list[Printed]:
    """Return a row for each mechanism, on the longest stream."""
    verdicts = dict(zip(audits["mechanism"], audits["verdict"], strict=True))
    rows = []
    for name, group in _longest(regrets).groupby("mechanism", sort=False):
        none = "not private" if name == LEADER else "not audited here"
        told = verdicts.get(name, none)
        middle, first = float(group["regret"].median()), group.iloc[0]
        optimum = float(first["optimum"])
        rows.append(
            Printed(
                name=name,
                audited=name in verdicts,
                verdict=verdict(told),
                refuted=told == "REFUTED",
                regret=count(middle),
                share=percent(middle / optimum),
                bound=_proven(float(first["proven"]), optimum),
            )
        )
    return rows


def online_notes(regrets: pd.DataFrame) -> list[str]:
    """Return what privacy costs on the longest stream, and who learns nothing."""
    last = _longest(regrets)
    medians = last.groupby("mechanism", sort=False)["regret"].median()
    nothing = float(last["nothing"].iloc[0])
    names = [name for name in CORRECTED_ONLINE if name in medians]
    best = min(names, key=lambda name: medians[name])
    notes = [
        f"On {count(last['rows'].max())} rows {LEADER}, which is not private, is "
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
    law = fit_power_law(grouped(curve, "rows", "regret"))
    if isfinite(law.exponent):
        notes.append(
            f"The regret of {best} grows like m to the power {signed(law.exponent)} "
            f"({law.interval}) on these streams."
        )
    return notes


def score_rows(found: Sequence[Exponent]) -> list[Printed]:
    """Return the scoreboard."""
    return [
        Printed(
            theorem=_THEOREMS[each.mechanism],
            mechanism=each.mechanism,
            variable=each.variable,
            predicted={0.5: "1/2", 0.25: "1/4"}[each.predicted],
            formula=signed(each.formula),
            exponent=signed(each.fit.exponent),
            interval=each.fit.interval,
            bound="–" if isnan(each.worst) else percent(each.worst),
            verdict=each.verdict,
        )
        for each in found
    ]


def score_notes(found: Sequence[Exponent], optimum: pd.DataFrame) -> list[str]:
    """Return how tight the bounds are, and what the leader without noise pays."""
    last = _longest(optimum)
    lost = (last["regret"] / last["optimum"]).groupby(last["mechanism"], sort=False)
    shares = lost.median()
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


def _longest(regrets: pd.DataFrame) -> pd.DataFrame:
    return regrets[regrets["rows"] == regrets["rows"].max()]


def _proven(bound: float, optimum: float) -> str:
    if isnan(bound):
        return "–"
    return count(bound) if bound < optimum else "above OPT"


def _context(results: Results) -> dict[str, Any]:
    regrets, optimum = results["online-regret"], results["regret-optimum"]
    scores = exponents(results)
    return {
        "rows": online_rows(regrets, results["online-audits"]),
        "notes": online_notes(regrets),
        "scores": score_rows(scores),
        "score_notes": score_notes(scores, optimum),
        "most": int(regrets["rows"].max()),
        "setting": results.options("online-regret"),
        "audits": results.options("online-audits"),
        "optimum": results.options("regret-optimum"),
        "dimensions": results.options("regret-dimensions"),
        "components": results.options("regret-components"),
    }


SECTION = Section(
    name="online",
    parts=(Part("online", "Online PCA", 500),),
    context=_context,
    figures={
        "online-regret": figures.regret_by_length,
        "regret-optimum": figures.regret_by_optimum,
    },
    sizes=sizes(
        online_draws=(3, 6, 20),  # releases on each stream
        # The lengths of streams, ascending, three or more.
        online_rows=((200, 400, 800, 1600), _LENGTHS[:5], _LENGTHS[1:]),
        online_size=(400, 8000, 16_000),  # the length where d and k change, and not m
        # Audited mechanisms; the one whose claim is false is the first.
        online_audits=(1, 6, 6),
        online_samples=(2_000, 5_000, 20_000),  # releases a side of an audit
    ),
    experiments=_experiments,
    notes={("online-regret",): online_notes},
)
