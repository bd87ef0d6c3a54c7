"""From the runner's tables to plain Python, and to verdicts that are ready to print."""

import math
from shlex import quote
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from dpaudit.arrays import Array
from dpaudit.reports.escaping import file_name, plain
from dpaudit.reports.experiment import REFINE, Record
from dpaudit.reports.words import beyond, count, delta, number, percent, verdict

Quartiles: TypeAlias = tuple[float, float, float]


class Printed(SimpleNamespace):
    """One line of a table of the page: every field is ready to print."""


def records(table: pd.DataFrame) -> list[Record]:
    """Return the rows of a table as dictionaries."""
    rows: list[Record] = table.to_dict("records")
    return rows


def grouped(
    table: pd.DataFrame, by: str | tuple[str, ...], column: str
) -> dict[Any, Array]:
    """Return the values of a column in every group, in the order of the table.

    The keys are tuples, or plain values where `by` is the name of a column.
    """
    groups = table.groupby(by if isinstance(by, str) else list(by), sort=False)
    return {key: values.to_numpy() for key, values in groups[column]}


def quartiles(
    table: pd.DataFrame, by: str | tuple[str, ...], column: str
) -> dict[Any, Quartiles]:
    """Return the quartiles of a column in every group, see `grouped`."""
    groups = grouped(table, by, column)
    return {key: quarters(values) for key, values in groups.items()}


def quarters(values: Array) -> Quartiles:
    """Return the quartiles of numbers."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return float(low), float(middle), float(high)


def refuted_mechanisms(audits: pd.DataFrame, verdict: str = "REFUTED") -> list[str]:
    """Return the names of the refuted mechanisms, in the order of the table.

    Or those of another verdict.
    """
    return list(audits["mechanism"][audits["verdict"] == verdict])


def fallen(audits: pd.DataFrame) -> "pd.Series[bool]":
    """Say whose claims are false as audited: refuted, or false by the exact loss."""
    return audits["verdict"].eq("REFUTED") | audits["claim"].eq("false")


def verdict_rows(wall: pd.DataFrame) -> list[Printed]:
    """Return the table of verdicts."""
    return [_verdict_row(row) for row in records(wall)]


def _verdict_row(row: Record) -> Printed:
    name, file, known = row["mechanism"], witness_file(row["mechanism"]), row["claim"]
    size = f"--confidence {row['confidence']:g} --max-samples {row['max_samples']}"
    return Printed(
        name=name,
        source=row["source"],
        relation=row["relation"],
        claim=point(row, "claimed_{}"),
        exact=(known,) if known == "not known" else point(row, "exact_{}"),
        audited=(f"ε {proved(row, 'epsilon')}", f"δ {proved(row, 'delta')}"),
        bound=row["epsilon_lower"],
        loss=row["exact_epsilon"],
        refuted=row["verdict"] == "REFUTED",
        founded=row["verdict"] != "NO_VERDICT",
        false=known == "false",
        kept=known == "kept",
        verdict=verdict(row["verdict"]),
        hint=_hint(row),
        samples=row["samples"],
        releases=releases(row),
        fell=fell(row),
        confidence=percent(row["confidence"]),
        alpha=1 - row["confidence"],
        command=(
            f"dpaudit audit {quote(plain(name))} --epsilon {row['claimed_epsilon']:g} "
            f"--refine {REFINE:g} --seed {row['seed']} {size}"
        ),
        verify=f"dpaudit verify {file} --to-the-end --seed {row['seed'] + 1} {size}",
        witness_file=file if isinstance(row["witness"], str) else None,
    )


def witness_file(mechanism: str) -> str:
    """Return the name of the file that holds a witness against a mechanism."""
    return f"witness-{file_name(mechanism)}.json"


def point(row: Record, column: str) -> tuple[str, str]:
    """Return an epsilon and a delta in words; `column` has a place for which."""
    epsilon, at = row[column.format("epsilon")], row[column.format("delta")]
    return f"ε = {number(epsilon)}", f"δ = {delta(at)}"


def proved(row: Record, kind: str) -> str:
    """Return the audit's bound on ``"epsilon"`` or ``"delta"``, with its sign."""
    text = number if kind == "epsilon" else delta
    refuted = row["verdict"] == "REFUTED"
    return beyond(row[f"{kind}_lower"], row[f"claimed_{kind}"], text, refuted=refuted)


def releases(row: Record) -> str:
    """Return how many releases a side the bounds of a row are of."""
    refuted = row["verdict"] == "REFUTED"
    return count(row["max_samples" if refuted else "samples"])


def fell(row: Record) -> str | None:
    """Say after how many releases a side the claim was refuted, if it was."""
    if row["verdict"] != "REFUTED":
        return None
    return f"refuted after {count(row['samples_to_refute'])}"


def _hint(row: Record) -> str:
    """Return what convicts a mechanism, or what the audit could not have seen."""
    if isinstance(row["witness"], str):
        event, drawn = row["event"], f"{row['max_samples']:,}"
        return (
            f"{event[:1].upper()}{event[1:]} in {int(row['hits']):,} of {drawn} fresh "
            f"releases on D, {int(row['hits_neighbour']):,} of {drawn} on D' (attack: "
            f"{row['attack']})."
        )
    if row["verdict"] == "NO_VERDICT":
        return "Its releases were seen not to be independent draws."
    blind = f"blind to events rarer than {delta(row['rarest_event'])}"
    if not math.isfinite(row["detectable_epsilon"]):
        return f"Its last event could have shown no violation; {blind}."
    return (
        f"On its best event ε ≥ {number(row['detectable_epsilon'])} would have been "
        f"refuted with 90 % power; {blind}."
    )
