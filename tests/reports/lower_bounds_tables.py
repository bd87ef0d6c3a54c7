"""Tables of online PCA and of tracing as the runner makes them, by formula."""

from itertools import product
from math import nan, sqrt

import pandas as pd
from audited_row import audited

from dpaudit.reports.measures import BASELINE
from dpaudit.reports.sections.online.measures import (
    ALGORITHM_3,
    ALGORITHM_4,
    CORRECTED_ONLINE,
    LEADER,
    PUBLISHED_ONLINE,
)

_NOTHING = 0.7  # of OPT: the regret of a random subspace


def lower_bounds_tables(
    refuted=(ALGORITHM_3,), *, exponent=0.5, spread=0.01, worst=0.3
):
    """Return a table for each experiment; regret among rivals has this exponent."""
    names = (ALGORITHM_3, "online-pca")
    mechanisms = (*names, ALGORITHM_4)
    audits = [audited(mechanism=name, claim="not known") for name in names]
    for row in audits:
        row["verdict"] = "REFUTED" if row["mechanism"] in refuted else "NOT_REFUTED"
    tables = {"online-audits": pd.DataFrame(audits), "online-regret": _gaussian()}
    grids = {
        "regret-optimum": ("rows", (1000.0, 2000.0, 4000.0), (*mechanisms, LEADER)),
        "regret-length": ("rows", (1000.0, 2000.0, 4000.0), mechanisms),
        "regret-dimensions": ("dimension", (16.0, 32.0, 64.0), mechanisms),
        "regret-components": ("n_components", (1.0, 2.0, 4.0), mechanisms),
        "regret-epsilon": ("rows", (1000.0, 2000.0, 4000.0), mechanisms),
    }
    for name, (column, points, rivals) in grids.items():
        cells = []
        for mechanism, x in product(rivals, points):
            optimum = (x if column == "rows" else 4000.0) / 2
            regret, rate = 10 * x**exponent, 0.25 if column == "dimension" else 0.5
            cell = {"mechanism": mechanism, column: x, "optimum": optimum}
            cell |= {
                "nothing": 9 * regret,
                "regret": regret,
                "formula": x**rate,
                "epsilon_used": 0.1,
            }
            cell["proven"] = regret / worst if mechanism == ALGORITHM_3 else nan
            cell["guess"] = optimum / 5 if mechanism == ALGORITHM_4 else nan
            if mechanism == LEADER:
                cell |= {"regret": 0.99 * optimum, "formula": nan}
            cells.append(cell)
        tables[name] = _regrets(cells, spread)
    tables["regret-optimum"]["epsilon_used"] = 100.0
    table = tables["regret-epsilon"]
    tables["regret-epsilon"] = pd.concat(
        [table.assign(epsilon=each, epsilon_used=each) for each in (1.0, 10.0)]
    )
    tables["tracing-references"] = pd.DataFrame(_tracing(BASELINE, None))
    tables["tracing"] = _traced("analyze-gauss")
    tables["tracing-catalogue"] = _traced("power-method", "minibatch-oja")
    tables["hard-instances"] = pd.DataFrame(
        {
            **{"mechanism": "hard-instances", "components": k, "rows": m},
            **{"repetition": 0, "first": 0.8, "second": 0.5 if m < 100 else 9.0},
            "overlap": 1.5 if k > 1 else 7.0,
        }
        for k in (1.0, 2.0)
        for m in (1.0, 4.0, 256.0)
    )
    columns = ["mechanism", "length", "erased", "won", "exact", "loss_bound"]
    culled = [
        ("most-agreement", 500.0, 10, 0, 0.0, nan),
        ("most-agreement", 5000.0, 100, 0, 0.0, nan),
        ("random-half", 500.0, 10, 10, 1.0, 0.02),
        ("random-half", 5000.0, 100, 10, 1.0, 1e-7),
    ]
    table = pd.DataFrame(culled, columns=columns)
    tables["list-culling"] = table.assign(sphere_rate=0.1, games=10)
    return tables


def _regrets(cells, spread):
    """Return three runs of each cell."""
    return pd.DataFrame(
        {"nothing": _NOTHING * cell["optimum"]}
        | cell
        | {"repetition": i, "regret": cell["regret"] * (1 + i * spread - spread)}
        for cell in cells
        for i in range(3)
    )


def _gaussian():
    cells = []
    for name, m in product((*PUBLISHED_ONLINE, *CORRECTED_ONLINE, LEADER), (1e3, 4e3)):
        optimum = 0.5 * m
        regrets = {ALGORITHM_3: 50.0, LEADER: 5.0, "online-pca": 3.3 * sqrt(m)}
        regrets["online-pca-doubling"] = 3 * sqrt(m)
        regrets["online-pca-factorised"] = 1.65 * sqrt(m)
        proven = {ALGORITHM_3: 0.4 * optimum, "follow-perturbed-leader": optimum}
        cell = {"mechanism": name, "rows": m, "optimum": optimum, "epsilon_used": 1.0}
        cell["regret"] = regrets.get(name, 0.68 * optimum)
        cells.append(cell | {"proven": proven.get(name, nan), "formula": nan})
    return _regrets(cells, 0.01)


def _traced(*mechanisms):
    return pd.DataFrame(
        row
        for mechanism, epsilon in product(mechanisms, (1.0, 3000.0))
        for row in _tracing(mechanism, epsilon)
    )


def _tracing(name, epsilon):
    rows = []
    for k, m, i in product((1.0, 2.0), (1.0, 4.0, 256.0), range(4)):
        noisy = epsilon == 1.0
        refused = name == "minibatch-oja" and (noisy or m < 10 or k > 1)
        row = {
            **{"mechanism": name, "components": k, "rows": m, "repetition": i},
            "captured": nan if refused else 1.0,
            "useful": nan if refused else float(not noisy or m > 100),
            "traced": nan if refused else float(not noisy and m <= k * k),
            "innocent": nan if refused else 0.0,
            "refused": "too few" if refused else "",
        }
        rows.append(row if epsilon is None else {**row, "epsilon": epsilon})
    return rows
