"""The section on choosing a mechanism: the map of winners, and whether it is right.

The map is of the grid that ships with dpaudit, so it is the same in every report; what
is measured anew is how good the advice is where n and the eigenvalues are known, at
settings drawn at random.
"""

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.algorithms.estimators.grid import GRID, shipped_grid
from dpaudit.reports.experiment import Experiment
from dpaudit.reports.sections import Part, Results, Section, Size, sizes
from dpaudit.reports.sections.choosing import figures, measures
from dpaudit.reports.tables import Printed
from dpaudit.reports.words import count, delta, listed, percent, setting

__all__ = ["SECTION"]

NEARLY = 1.1
"""The advice is good where its error is at most this times the least."""

_CLOSE = 1.5  # a printed error is right if it is not this many times off


def experiments(size: Size) -> tuple[Experiment, ...]:
    found = [
        Experiment(
            name="recommend-held-out",
            title="Advice held to fresh releases",
            source="dpaudit",
            measure=measures.held_out,
            mechanisms=measures.MECHANISMS,
            grid={"setting": tuple(map(float, range(size.settings)))},
            repetitions=size.held_out_releases,
            options={
                "grid": {name: list(axis) for name, axis in GRID.items()}
                | {"d": [GRID["d"][0], float(size.held_out_columns)]}
            },
            effort=3.0,
        )
    ]
    if size.grid_releases:
        found.append(
            Experiment(
                name="recommend-grid",
                title="The grid behind recommendations",
                source="dpaudit",
                measure=measures.measured,
                mechanisms=measures.MECHANISMS,
                grid=GRID,
                repetitions=size.grid_releases,
                effort=30.0,
            )
        )
    return tuple(found)


def advice(held_out: pd.DataFrame) -> pd.DataFrame:
    """Return what was recommended at each setting, and how good that was.

    Parameters
    ----------
    held_out : pandas.DataFrame
        Of the experiment.

    Returns
    -------
    pandas.DataFrame
        A row for a setting: ``recommended`` and ``best`` mechanism, the ``ratio`` of
        their errors, at least 1, and ``off``: how many times the error that is printed
        for the first is off what was measured.
    """
    rows = []
    for setting_, group in held_out.groupby("setting"):
        point = group.iloc[0]
        printed, errors = (
            group.set_index("mechanism")[each] for each in ("expected", "median")
        )
        first = printed.idxmin()
        rows.append(
            {
                "setting": setting_,
                "d": point["d"],
                "k": point["k"],
                "recommended": first,
                "best": errors.idxmin(),
                "ratio": errors[first] / errors.min(),
                "off": _off(printed[first], errors[first]),
            }
        )
    return pd.DataFrame(rows)


def _off(printed: Any, measured: Any) -> Any:
    """Return how many times one is the other, at least 1."""
    return np.maximum(printed / measured, measured / printed)


def advice_notes(held_out: pd.DataFrame) -> list[str]:
    """Return how often the advice is good, and how far off errors are."""
    found = advice(held_out)
    good = found["ratio"] <= NEARLY
    columns = f"of {setting(found['d'].min())} to {setting(found['d'].max())} columns"
    sentences = [
        f"At {count(good.sum())} of {count(len(found))} settings {columns} "
        f"({percent(good.mean())}) the recommended mechanism has an error within "
        f"{percent(NEARLY - 1)} of the least measured there."
    ]
    missed = found[~good]
    if len(missed):
        worst = missed.loc[missed["ratio"].idxmax()]
        sentences.append(
            f"At worst it is {worst['ratio']:.2g} times the least: "
            f"{worst['recommended']} in place of {worst['best']} at d = "
            f"{setting(worst['d'])}, k = {setting(worst['k'])}."
        )
    off = _off(held_out["expected"], held_out["median"])
    most = {"all": off.max(), "those of recommended mechanisms": found["off"].max()}
    beyond = off[held_out["d"] > GRID["d"][-1]]
    if len(beyond):
        most[f"those of more than {setting(GRID['d'][-1])} columns"] = beyond.max()
    told = listed(f"{who} at worst {times:.3g} times" for who, times in most.items())
    sentences.append(
        f"Of {count(len(off))} errors {percent((off <= _CLOSE).mean())} are within a "
        f"factor of {_CLOSE:g} of a fresh measurement: {told}."
    )
    known = held_out[held_out["looked_up"].notna()]
    if len(known):
        close = _off(known["looked_up"], known["median"]) <= _CLOSE
        sentences.append(
            f"Of {count(len(close))} that the grid has an answer for, "
            f"{percent(close.mean())} are so in the grid."
        )
    return sentences


@cache
def _winners() -> list[figures.Field]:
    return figures.winners(shipped_grid())


def answer(results: Results) -> list[str]:
    return advice_notes(results["recommend-held-out"])


def best(results: Results) -> list[str]:
    """Return which mechanisms win where, on the grid that ships, in two sentences."""
    sentences = []
    fields = [field for field in _winners() if field.mechanism]
    for pure in (True, False):
        some = [field for field in fields if (field.delta == 0) == pure]
        won = Counter(field.mechanism for field in some).most_common()
        told = []
        for name, times in won:
            lengths = sorted({f.d for f in some if f.mechanism == name})
            where = f"d = {setting(lengths[0])}"
            if len(lengths) > 1:
                where += f" to {setting(lengths[-1])}"
            told.append(f"{name} ({times}, {where})")
        budget = "no δ" if pure else f"δ = {delta(GRID['delta'][-1])}"
        sentences.append(
            f"With {budget}, of {len(some)} settings of n, d, k and ε where anything "
            f"is learned, the least error is that of {listed(told)}."
        )
    return sentences


def context(results: Results) -> dict[str, Any]:
    fields = _winners()
    rows = []
    for pure in (True, False):
        some = [f for f in fields if (f.delta == 0) == pure and f.mechanism]
        won = Counter(field.mechanism for field in some)
        for name, times in won.most_common():
            mine = [field for field in some if field.mechanism == name]
            rows.append(
                Printed(
                    budget="pure" if pure else f"δ = {delta(GRID['delta'][-1])}",
                    name=name,
                    won=f"{times} of {len(some)}",
                    lengths=listed(
                        setting(d) for d in sorted({field.d for field in mine})
                    ),
                    components=listed(
                        setting(k) for k in sorted({field.k for field in mine})
                    ),
                )
            )
    return {
        "rows": rows,
        "notes": advice_notes(results["recommend-held-out"]),
        "origin": shipped_grid().origin,
        "lost": figures.LOST,
    }


SECTION = Section(
    name="choosing",
    title="Which mechanism when",
    parts=(Part("choosing", "Which mechanism when", 290),),
    sizes=sizes(
        settings=(10, 50, 200),  # drawn at random
        held_out_columns=(100, 1000, 1000),  # at most
        held_out_releases=(101, 201, 201),
        grid_releases=(0, 101, 201),  # none: the grid that ships is used
    ),
    notes={("recommend-held-out",): advice_notes},
)
