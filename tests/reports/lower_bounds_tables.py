"""Tables of online PCA and of tracing as the runner makes them, by formula."""

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
    SMALLER,
)

__all__ = ["lower_bounds_tables"]

_NOTHING = 0.7  # of OPT: the regret of a random subspace


def lower_bounds_tables(
    refuted=(ALGORITHM_3,), *, exponent=0.5, spread=0.01, worst=0.3
):
    """Return a table for each experiment; regret among rivals has this exponent."""
    fell = {True: "REFUTED", False: "NOT_REFUTED"}
    audits = pd.DataFrame(
        [
            audited(mechanism=name, verdict=fell[name in refuted], claim="not known")
            for name in (ALGORITHM_3, "online-pca")
        ]
    )
    tables = {
        "online-audits": audits,
        "online-regret": pd.DataFrame(_gaussian()),
    }
    grids = {
        "regret-optimum": ("rows", (1000.0, 2000.0, 4000.0)),
        "regret-length": ("rows", (1000.0, 2000.0, 4000.0)),
        "regret-dimensions": ("dimension", (16.0, 32.0, 64.0)),
        "regret-components": ("n_components", (1.0, 2.0, 4.0)),
        "regret-epsilon": ("rows", (1000.0, 2000.0, 4000.0)),
    }
    for name, (column, points) in grids.items():
        rows = []
        mechanisms = (ALGORITHM_3, ALGORITHM_4)
        for mechanism in (*mechanisms, *((LEADER,) if "optimum" in name else ())):
            for x in points:
                optimum = (x if column == "rows" else 4000.0) / 2
                middle = 10 * x**exponent
                if mechanism == LEADER:
                    middle = 0.99 * optimum
                rows += [
                    {
                        "mechanism": mechanism,
                        column: x,
                        "repetition": i,
                        "regret": middle * scale,
                        "optimum": optimum,
                        "nothing": _NOTHING * optimum,
                        "epsilon_used": 0.1,
                        "proven": middle / worst if mechanism == ALGORITHM_3 else nan,
                        "formula": nan
                        if mechanism == LEADER
                        else x ** (0.25 if column == "dimension" else 0.5),
                        "guess": optimum / 5 if mechanism == ALGORITHM_4 else nan,
                    }
                    for i, scale in enumerate((1 - spread, 1.0, 1 + spread))
                ]
        tables[name] = pd.DataFrame(rows)
    tables["regret-optimum"]["epsilon_used"] = 100.0
    tables["regret-epsilon"] = pd.concat(
        [
            tables["regret-epsilon"].assign(epsilon=epsilon, epsilon_used=epsilon)
            for epsilon in SMALLER
        ]
    )
    tables["tracing-references"] = pd.DataFrame(_tracing(BASELINE, None))
    for name, mechanisms in (
        ("tracing", ("analyze-gauss",)),
        ("tracing-catalogue", ("power-method", "minibatch-oja")),
    ):
        tables[name] = pd.DataFrame(
            [
                row
                for mechanism in mechanisms
                for epsilon in (1.0, 3000.0)
                for row in _tracing(mechanism, epsilon)
            ]
        )
    tables["hard-instances"] = pd.DataFrame(
        [
            {
                "mechanism": "hard-instances",
                "components": k,
                "rows": m,
                "repetition": 0,
                "first": 0.8,
                "second": 0.5 if m < 100 else 9.0,
                "overlap": 1.5 if k > 1 else 7.0,
            }
            for k in (1.0, 2.0)
            for m in (1.0, 4.0, 256.0)
        ]
    )
    tables["list-culling"] = pd.DataFrame(
        [
            {
                "mechanism": strategy,
                "length": length,
                "erased": int(length / 50),
                "sphere_rate": 0.1,
                "won": won,
                "games": 10,
                "exact": exact,
                "loss_bound": bound,
            }
            for strategy, won, exact, bounds in (
                ("most-agreement", 0, 0.0, (nan, nan)),
                ("random-half", 10, 1.0, (0.02, 1e-7)),
            )
            for length, bound in zip((500.0, 5000.0), bounds, strict=True)
        ]
    )
    return tables


def _gaussian():
    rows = []
    for name in (*PUBLISHED_ONLINE, *CORRECTED_ONLINE, LEADER):
        for m in (1000.0, 4000.0):
            optimum = 0.5 * m
            regret = 0.68 * optimum
            if name == ALGORITHM_3:
                regret = 50.0
            elif name == LEADER:
                regret = 5.0
            elif name in ("online-pca", "online-pca-doubling"):
                regret = 3 * sqrt(m) * (1.1 if name == "online-pca" else 1.0)
            elif name == "online-pca-factorised":
                regret = 1.65 * sqrt(m)
            rows += [
                {
                    "mechanism": name,
                    "rows": m,
                    "repetition": i,
                    "regret": regret * scale,
                    "optimum": optimum,
                    "nothing": _NOTHING * optimum,
                    "epsilon_used": 1.0,
                    "proven": 0.4 * optimum
                    if name == ALGORITHM_3
                    else optimum
                    if name == "follow-perturbed-leader"
                    else nan,
                    "formula": nan,
                }
                for i, scale in enumerate((0.99, 1.0, 1.01))
            ]
    return rows


def _tracing(name, epsilon):
    rows = []
    for k in (1.0, 2.0):
        for m in (1.0, 4.0, 256.0):
            for i in range(4):
                noisy = epsilon == 1.0
                refused = name == "minibatch-oja" and (noisy or m < 10 or k > 1)
                row = {
                    "mechanism": name,
                    "components": k,
                    "rows": m,
                    "repetition": i,
                    "captured": nan if refused else 1.0,
                    "useful": nan if refused else float(not noisy or m > 100),
                    "traced": nan if refused else float(not noisy and m <= k * k),
                    "innocent": nan if refused else 0.0,
                    "refused": "too few" if refused else "",
                }
                rows.append(row if epsilon is None else {**row, "epsilon": epsilon})
    return rows
