"""What tracing and list culling say, in words and in rows that are ready to print.

The sentences are chosen by the data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import pandas as pd

from dpaudit.fingerprinting import Proportion
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.tables import Printed, records
from dpaudit.reports.words import count, delta, number, percent, setting

__all__ = [
    "Shares",
    "culling_notes",
    "culling_rows",
    "shares",
    "tracing_notes",
    "tracing_rows",
]

_ROUNDING = 1e-14  # of the probability to win, which is 1 up to here


@dataclass(frozen=True)
class Shares:
    """One mechanism at one epsilon: its shares, by the rows per cluster.

    Parameters
    ----------
    mechanism : str
    epsilon : float or None
        None for components without noise.
    useful, traced, innocent : mapping of int to Proportion
        Only where the mechanism took the rows.
    """

    mechanism: str
    epsilon: float | None
    useful: Mapping[int, Proportion]
    traced: Mapping[int, Proportion]
    innocent: Mapping[int, Proportion]

    @property
    def name(self) -> str:
        """What readers see."""
        if self.epsilon is None:
            return "PCA without noise"
        return f"{self.mechanism}, ε = {_epsilon(self.epsilon)}"


def shares(references: pd.DataFrame, table: pd.DataFrame) -> list[Shares]:
    """Return the shares of principal components without noise, then of the others."""
    found = []
    groups = [((BASELINE, None), references)]
    groups += list(table.groupby(["mechanism", "epsilon"], sort=False))
    for (mechanism, epsilon), group in groups:
        taken = group[group["refused"].fillna("") == ""]
        by_rows = {int(m): part for m, part in taken.groupby("rows")}
        useful, accused, innocent = (
            {m: Proportion(int(g[name].sum()), len(g)) for m, g in by_rows.items()}
            for name in ("useful", "traced", "innocent")
        )
        found.append(
            Shares(
                mechanism=str(mechanism),
                epsilon=None if epsilon is None else float(epsilon),
                useful=useful,
                traced=accused,
                innocent=innocent,
            )
        )
    return found


def tracing_rows(found: Sequence[Shares]) -> list[Printed]:
    """Return the table of tracing."""
    rows = []
    for each in found:
        innocent = list(each.innocent.values())
        trials = sum(p.trials for p in innocent)
        wrongly = "–"
        if trials:
            wrongly = f"{count(sum(p.hits for p in innocent))} of {count(trials)}"
        rows.append(
            Printed(
                name=each.mechanism if each.epsilon is not None else "PCA",
                epsilon="none" if each.epsilon is None else _epsilon(each.epsilon),
                useful=_ends(each.useful),
                traced=_ends(each.traced),
                innocent=wrongly,
            )
        )
    return rows


def tracing_notes(found: Sequence[Shares], dimension: int) -> list[str]:
    """Return who is useful, and who is traced."""
    notes = []
    for each in found:
        if not each.useful:
            notes.append(f"{each.name} does not take so few rows.")
            continue
        useful = [m for m, p in each.useful.items() if p.share >= 0.5]
        caught = [m for m, p in each.traced.items() if p.share >= 0.5]
        first = (
            f"is useful from {_rows(min(useful), dimension)} on"
            if useful
            else "is not useful at any size"
        )
        then = (
            f"traced up to {_rows(max(caught), dimension)}"
            if caught
            else "not traced anywhere"
        )
        notes.append(f"{each.name}: {first}, and {then}.")
    wrong = [p for each in found for p in each.innocent.values()]
    hits, trials = sum(p.hits for p in wrong), sum(p.trials for p in wrong)
    notes.append(f"Innocents were accused in {count(hits)} of {count(trials)} trials.")
    return notes


def culling_rows(table: pd.DataFrame) -> list[Printed]:
    """Return the table of list culling."""
    by_key = {(r["mechanism"], r["length"]): r for r in records(table)}
    rows = []
    for length in sorted({n for _, n in by_key}):
        naive, half = (by_key[s, length] for s in ("most-agreement", "random-half"))
        rows.append(
            Printed(
                length=count(length),
                most_agreement=f"{count(naive['won'])} of {count(naive['games'])}",
                random_half=f"{count(half['won'])} of {count(half['games'])}",
                loss=_complement(float(half["exact"])),
                bound=delta(float(half["loss_bound"])),
            )
        )
    return rows


def culling_notes(table: pd.DataFrame) -> list[str]:
    """Return who wins, and the verdict on Theorem 26."""
    half = table[table["mechanism"] == "random-half"].sort_values("length")
    naive = table[table["mechanism"] == "most-agreement"]
    bounds = half["loss_bound"].to_numpy(dtype=float)
    falls = bool((np.diff(bounds) < 0).all())
    verdict = "consistent with that" if falls and bounds[-1] < 0.01 else "not seen yet"
    return [
        f"Most agreement wins {count(naive['won'].sum())} of "
        f"{count(naive['games'].sum())} games, random half "
        f"{count(half['won'].sum())} of {count(half['games'].sum())}. Against any list "
        f"of exp(c n) words random half loses with a probability of at most "
        f"{delta(float(bounds[-1]))} at n = {count(half['length'].iloc[-1])}: "
        f"Theorem 26 is {verdict}."
    ]


def _epsilon(value: float) -> str:
    return count(value) if value >= 1000 else setting(value)


def _complement(probability: float) -> str:
    """Return one minus a probability, as far as it is known."""
    rest = 1 - probability
    return delta(rest) if rest > _ROUNDING else f"below {delta(_ROUNDING)}"


def _ends(found: Mapping[int, Proportion]) -> tuple[str, str]:
    """Return the shares at the fewest and at the most rows."""
    if not found:
        return "refused", "refused"
    first, last = found[min(found)], found[max(found)]
    return percent(first.share), percent(last.share)


def _rows(m: int, dimension: int) -> str:
    return f"m = {count(m)} (m/√d = {number(m / sqrt(dimension))})"
