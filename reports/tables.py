"""From the runner's tables to plain Python, and to rows that are ready to print."""

import json
import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from dpaudit.reports.comparison import Comparison
from dpaudit.reports.escaping import file_name
from dpaudit.reports.formats import (
    count,
    delta,
    duration,
    number,
    percent,
    setting,
    speed,
)
from dpaudit.reports.measures import BASELINE

__all__ = [
    "ComponentRow",
    "LibraryRow",
    "Quartiles",
    "Row",
    "SuiteRow",
    "TimeRow",
    "VerdictRow",
    "captured",
    "component_rows",
    "library_rows",
    "point",
    "quartiles",
    "records",
    "settings_of",
    "suite_rows",
    "time_rows",
    "verdict_rows",
    "witness_file",
]

Row: TypeAlias = dict[str, Any]
Quartiles: TypeAlias = tuple[float, float, float]


def records(table: pd.DataFrame) -> list[Row]:
    """Return the rows of a table as dictionaries."""
    rows: list[Row] = table.to_dict("records")
    return rows


def quartiles(
    table: pd.DataFrame, by: tuple[str, ...], column: str
) -> dict[Any, Quartiles]:
    """Return the quartiles of a column in every group, in the order of the table.

    The keys are tuples, or plain values where `by` names one column.
    """
    groups: dict[Any, list[float]] = {}
    for row in records(table):
        key = tuple(row[name] for name in by)
        groups.setdefault(key[0] if len(by) == 1 else key, []).append(row[column])
    found = {}
    for key, values in groups.items():
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
        found[key] = (float(low), float(middle), float(high))
    return found


def captured(references: pd.DataFrame) -> dict[str, float]:
    """Return what each yardstick without noise captures."""
    return {row["mechanism"]: row["captured_share"] for row in records(references)}


@dataclass(frozen=True)
class VerdictRow:
    """One line of the table of verdicts, every field ready to print."""

    name: str
    source: str
    relation: str
    claim: tuple[str, ...]
    exact: tuple[str, ...]
    audited: tuple[str, ...]
    refuted: bool
    verdict: str
    hint: str
    witness_file: str | None


@dataclass(frozen=True)
class ComponentRow:
    """One line of the table of captured variance, every field ready to print."""

    name: str
    claim: tuple[str, ...]
    captured: str
    spread: str
    refuted: bool
    verdict: str


@dataclass(frozen=True)
class LibraryRow:
    """One line of the comparison of libraries; for each setting share and time."""

    name: str
    centre: str
    claim: tuple[str, ...]
    cells: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class SuiteRow:
    """One line of the table of the textbook suite, every field ready to print."""

    name: str
    summary: str
    source: str
    relation: str
    claim: str
    truth: str
    audited: str
    refuted: bool
    verdict: str
    releases: str


@dataclass(frozen=True)
class TimeRow:
    """One line of the table of run times."""

    name: str
    fit: str
    spread: str
    ratio: str
    throughput: str


def verdict_rows(wall: pd.DataFrame) -> list[VerdictRow]:
    """Return the table of verdicts."""
    return [
        VerdictRow(
            name=row["mechanism"],
            source=row["source"],
            relation=row["relation"],
            claim=point(row, "claimed_{}"),
            exact=(
                ("not known",)
                if row["claim"] == "not known"
                else point(row, "exact_{}")
            ),
            audited=point(row, "{}_lower", "≥"),
            refuted=row["verdict"] == "REFUTED",
            verdict=row["verdict"].replace("_", " "),
            hint=_hint(row),
            witness_file=(
                witness_file(row["mechanism"])
                if isinstance(row["witness"], str)
                else None
            ),
        )
        for row in records(wall)
    ]


def witness_file(mechanism: str) -> str:
    """Return the name of the file that holds a witness against a mechanism."""
    return f"witness-{file_name(mechanism)}.json"


def component_rows(components: pd.DataFrame, wall: pd.DataFrame) -> list[ComponentRow]:
    """Return what each mechanism captures, the most first, beside its verdict."""
    shares = quartiles(components, ("mechanism",), "captured_share")
    audited = {row["mechanism"]: row for row in records(wall)}
    return [
        ComponentRow(
            name=name,
            claim=point(audited[name], "claimed_{}"),
            captured=percent(middle),
            spread=f"{percent(low)} to {percent(high)}",
            refuted=audited[name]["verdict"] == "REFUTED",
            verdict=audited[name]["verdict"].replace("_", " "),
        )
        for name, (low, middle, high) in sorted(
            shares.items(), key=lambda item: -item[1][1]
        )
    ]


def settings_of(comparison: Comparison | None) -> list[tuple[int, int]]:
    """Return the dimensions and numbers of components in which libraries compared."""
    records = [] if comparison is None else comparison.records
    return list(dict.fromkeys((r["dimension"], r["n_components"]) for r in records))


def library_rows(comparison: Comparison | None) -> list[LibraryRow]:
    """Return the comparison of libraries, medians in the order of the records."""
    if comparison is None:
        return []
    fits: dict[tuple[str, str, float], dict[tuple[int, int], list[Row]]] = {}
    for row in comparison.records:
        who = fits.setdefault((row["contender"], row["centre"], row["delta"]), {})
        who.setdefault((row["dimension"], row["n_components"]), []).append(row)
    return [
        LibraryRow(
            name=name,
            centre=centre,
            claim=(f"ε = {number(comparison.epsilon)}", f"δ = {delta(at)}"),
            cells=tuple(
                _fitted(found.get(each, []), comparison.limit_s)
                for each in settings_of(comparison)
            ),
        )
        for (name, centre, at), found in fits.items()
    ]


def _fitted(fits: list[Row], limit_s: float) -> tuple[str, str]:
    """Return the medians of share and time, or what there is instead."""
    ended = [row for row in fits if row["captured_share"] is not None]
    if not ended:
        return "no fit", f"within {setting(limit_s)} s"
    share, seconds = (
        float(np.median([row[column] for row in ended]))
        for column in ("captured_share", "fit_seconds")
    )
    return percent(share), duration(seconds)


def suite_rows(suite: pd.DataFrame) -> list[SuiteRow]:
    """Return the table of the textbook suite."""
    return [
        SuiteRow(
            name=row["mechanism"],
            summary=row["summary"],
            source=row["source"],
            relation=row["relation"],
            claim=_claim(row),
            truth=number(row["true_epsilon"]),
            audited=number(row["epsilon_lower"]),
            refuted=row["verdict"] == "REFUTED",
            verdict=row["verdict"].replace("_", " "),
            releases=count(
                row["samples_to_refute"]
                if row["verdict"] == "REFUTED"
                else row["samples"]
            ),
        )
        for row in records(suite)
    ]


def time_rows(times: pd.DataFrame) -> list[TimeRow]:
    """Return the table of run times, in the order of the table."""
    fits = quartiles(times, ("mechanism",), "fit_seconds")
    ratios = quartiles(times, ("mechanism",), "ratio")
    drawn = quartiles(times, ("mechanism",), "releases_per_second")
    rows = []
    for name, (low, middle, high) in fits.items():
        throughput = drawn[name][1]
        rows.append(
            TimeRow(
                name=name,
                fit=duration(middle),
                spread=f"{duration(low)} – {duration(high)}",
                ratio="1" if name == BASELINE else f"{ratios[name][1]:.2f}",
                throughput="" if math.isnan(throughput) else speed(throughput),
            )
        )
    return rows


def point(row: Row, column: str, sign: str = "=") -> tuple[str, str]:
    """Return an epsilon and a delta in words; `column` has a place for which."""
    epsilon, at = row[column.format("epsilon")], row[column.format("delta")]
    return f"ε {sign} {number(epsilon)}", f"δ {sign} {delta(at)}"


def _claim(row: Row) -> str:
    """Return a claimed epsilon, with its delta unless that is 0."""
    epsilon = setting(row["claimed_epsilon"])
    at = row["claimed_delta"]
    return f"{epsilon}, δ = {delta(at)}" if at else epsilon


def _hint(row: Row) -> str:
    """Return what convicts a mechanism, or what the audit could not have seen."""
    if isinstance(row["witness"], str):
        seen = json.loads(row["witness"])["counts"]
        data, neighbour = seen["data"], seen["neighbour"]
        return (
            f"An event (attack: {row['attack']}) was seen in {data['hits']} of "
            f"{data['releases']} releases on the data and in {neighbour['hits']} of "
            f"{neighbour['releases']} on its neighbour."
        )
    blind = f"blind to events rarer than {delta(row['rarest_event'])}"
    if not math.isfinite(row["detectable_epsilon"]):
        return f"Its last event could have shown no violation; {blind}."
    return (
        f"On its best event ε ≥ {number(row['detectable_epsilon'])} would have been "
        f"refuted with 90 % power; {blind}."
    )
