"""The first page: who fell, what to take, and one table with a row a mechanism.

Claims are counted without those that are false on purpose, and without the textbook
suite, on which the audit itself is measured; the table has all.

What to take is read from the grid that ships with dpaudit
(`dpaudit.algorithms.estimators.measured`), at its points alone: nothing is interpolated
on the page. On the grid n follows from the signal, as the gap there is R^2/(10 k).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.algorithms import CATALOGUE
from dpaudit.algorithms.estimators.measured import GRID, shipped_grid
from dpaudit.reports.escaping import Safe
from dpaudit.reports.page import GLOSSARY
from dpaudit.reports.sections import Fact
from dpaudit.reports.site.mechanisms import SUITE, Standing, promised
from dpaudit.reports.tables import Printed
from dpaudit.reports.words import count, delta, number, percent, setting, spelt

START = {"replaced": 0.0, "delta": 1e-5, "epsilon": 1.0, "d": 20.0, "k": 3.0}
START |= {"signal": 1000.0}
"""The setting that is chosen before anything else is."""
_SHOWN = ((5, 1, 100), (20, 1, 1000), (20, 3, 100), (100, 3, 1000), (100, 10, 1000))
_UNKNOWN = "not measured"
Point = Mapping[str, float]


def _counted(found: Mapping[str, Standing]) -> list[Standing]:
    """Return the audited claims of papers and ours, of which a verdict came."""
    return [
        each for each in _audited(found, planted=False) if each.founded or each.false
    ]


def _audited(found: Mapping[str, Standing], *, planted: bool) -> list[Standing]:
    """Return the audited claims that are false on purpose, or all others of papers."""
    return [
        each
        for each in found.values()
        if each.audited and each.planted == planted and each.family != SUITE
    ]


def broken(found: Mapping[str, Standing]) -> list[Standing]:
    """Return the claims of papers, and ours, that are false as audited."""
    return [each for each in _counted(found) if each.false]


def headline(found: Mapping[str, Standing]) -> str:
    """Return the title of the report: how many claims of all families fell.

    Those that are false on purpose do not count, and neither does the textbook suite.
    """
    if (total := len(_counted(found))) == 0:
        return "No privacy claim was audited"
    fell = len(broken(found))
    said = spelt(fell).capitalize() if fell else "None"
    return f"{said} of {spelt(total)} audited privacy claim{'s' * (total > 1)} fell"


def context(
    found: Mapping[str, Standing], facts: Sequence[Fact], paths: Mapping[Any, str]
) -> dict[str, Any]:
    """Return what the template of the first page says.

    ``facts``: of all sections; those that name a column of the table stand there.
    ``paths``: of the pages about mechanisms, by folder and name.
    """
    fell, grid = broken(found), shipped_grid()
    planted = _audited(found, planted=True)
    alphas = [row.alpha for each in found.values() for row in each.audits]
    known = {each.name for each in fell}
    costs = {each.mechanism: each for each in facts if each.column == "cost"}
    return {
        "fell": [_sure(each, row) for each in fell if (row := each.strongest)],
        "any": min(1.0, sum(alphas)),
        "confidence": percent(1 - max(alphas, default=0.0)),
        "planted": len(planted),
        "seen": sum(each.refuted for each in planted),
        "taken": _taken(START, known),
        "pure": _taken({**START, "delta": 0.0}, known),
        "settings": [
            {
                "n": _rows(point),
                **{name: setting(point[name]) for name in ("d", "k")},
                "best": [_taken({**point, "delta": at}, known) for at in (1e-5, 0.0)],
            }
            for d, k, signal in _SHOWN
            for point in [{**START, "d": d, "k": k, "signal": signal}]
        ],
        "start": START,
        "choices": _choices(),
        "words": GLOSSARY,
        "origin": grid.origin,
        "grid": _encoded(paths, known),
        "rows": [_row(each, costs.get(each.name)) for each in found.values()],
    }


def _sure(each: Standing, row: Printed) -> Printed:
    """Return how a claim fell: the bound against the claim, and what it rests on."""
    if row.refuted:
        sure = f"statistical, {row.confidence}"
        more = f"{row.fell} releases a side"
        more += "; by formula, too" if row.false else ""
    else:
        sure, more = "by formula", "sampling did not show it"
    return Printed(
        name=each.name,
        source=row.source,
        claim=row.claim,
        bound=row.audited if row.refuted else row.exact,
        sure=sure,
        more=more,
    )


def _row(each: Standing, cost: Fact | None) -> Printed:
    """Return the row of a mechanism."""
    entry, audit = CATALOGUE.get(each.name), each.strongest
    error = _errors(START).get(each.name)
    truth = None if entry is None else entry.truth
    exact: tuple[str, ...] = () if audit is None else audit.exact
    loss = np.nan if audit is None else audit.loss
    if truth is not None and not np.isfinite(loss):
        exact, loss = (f"ε = {number(truth)}", "by proof"), truth
    source = "" if entry is None else entry.source
    if entry is None and audit is not None:
        source = audit.source
    return Printed(
        name=each.name,
        family=each.family,
        released="" if entry is None else entry.released,
        summary="" if entry is None else entry.summary,
        claim=promised(entry) if audit is None else audit.claim,
        relation="" if audit is None else audit.relation,
        verdict=each.verdict,
        false=each.false,
        planted=each.planted,
        fell=None if audit is None else audit.fell,
        bound=(_UNKNOWN,) if audit is None else audit.audited,
        bound_value=None if audit is None else _value(audit.bound),
        hint="" if audit is None else audit.hint,
        exact=exact or ("not known",),
        exact_value=_value(loss),
        error=None if error is None else _three(error),
        gridded=each.name in shipped_grid().errors,
        error_value=None if error is None else error[1],
        cost=None if cost is None else cost.value.rstrip(")").split(" ("),
        cost_value=None if cost is None else _value(cost.size),
        source=source,
    )


def _value(number: float) -> str | None:
    """Return a number as a script reads it; None for what is not known."""
    if np.isnan(number):
        return None
    return "Infinity" if np.isinf(number) else f"{number:g}"


def _rows(point: Point) -> str:
    """Return how many rows there are at a point of the grid."""
    return count(point["signal"] * 10 * point["k"] / point["epsilon"])


def _choices() -> list[tuple[str, str, list[tuple[float, str]]]]:
    """Return the axes of the grid as one chooses on them: name, label, and values."""
    lengths = [(s, _rows({**START, "signal": s})) for s in GRID["signal"]]
    plain = {"d": "columns d", "k": "components k", "epsilon": "ε"}
    relations = [(0.0, "one row more"), (1.0, "one row changed")]
    return [
        ("signal", "rows n", lengths),
        *(
            (axis, label, [(x, setting(x)) for x in GRID[axis]])
            for axis, label in plain.items()
        ),
        ("delta", "δ", [(x, delta(x)) for x in GRID["delta"]]),
        ("replaced", "neighbours", relations),
    ]


def _errors(point: Point) -> dict[str, np.ndarray]:
    """Return low, median and high of those that were measured at a point of the grid.

    A pure claim holds with any delta.
    """
    found = {}
    places = {axis: values.index(point[axis]) for axis, values in GRID.items()}
    for name, errors in shipped_grid().errors.items():
        for at in dict.fromkeys((0, places["delta"])):
            three = errors[tuple({**places, "delta": at}.values())]
            if not np.isnan(three).any():
                found[name] = three
                break
    return found


def _taken(point: Point, fell: set[str]) -> Printed | None:
    """Return who errs least at a point of the grid, unless its claim fell."""
    found = {n: each for n, each in _errors(point).items() if n not in fell}
    if not found:
        return None
    name = min(found, key=lambda each: found[each][1])
    error, between = _three(found[name])
    return Printed(name=name, error=error, between=between)


def _three(error: np.ndarray) -> tuple[str, str]:
    low, middle, high = error
    return f"{middle:g}", f"{low:g} to {high:g}"


def _encoded(paths: Mapping[Any, str], fell: set[str]) -> Safe:
    """Return the grid for the script of the page: three errors a point, in order."""
    errors = {
        name: ",".join(
            "" if np.isnan(three).any() else " ".join(f"{x:g}" for x in three)
            for three in values.reshape(-1, 3)
        )
        for name, values in shipped_grid().errors.items()
    }
    data = {
        "axes": GRID,
        "errors": errors,
        "paths": {name: paths.get(("mechanisms", name)) for name in errors},
        "fell": sorted(fell & errors.keys()),
    }
    return Safe(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))
