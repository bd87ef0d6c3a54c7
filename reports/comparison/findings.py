"""What a comparison found: its table, its audits, and what is to be known of them."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.errors import DPAuditError, InputError
from dpaudit.printable import said
from dpaudit.reports.comparison.measures import MEASURES, Problem
from dpaudit.reports.comparison.plan import Point
from dpaudit.reports.experiment import Record
from dpaudit.reports.runner import Failure
from dpaudit.reports.tables import quarters
from dpaudit.reports.words import listed, setting

__all__ = ["WARNING", "Comparison", "comparison_of", "told"]

WARNING = (
    "These measures are computed from the rows without noise. Choosing a mechanism (or "
    "a norm, or a number of components) by its result on private rows is itself a "
    "release about them, which no claim here counts. Compare on public rows, or on "
    "synthetic ones of the same shape (dpaudit.datasets), and run the chosen mechanism "
    "once on the private ones."
)


def told(name: str, error: Exception) -> str:
    """Return why a mechanism failed, to be read after its name."""
    text = str(error) if isinstance(error, DPAuditError) else said(error)
    return text.removeprefix(f"{name} ")


@dataclass(frozen=True, eq=False)
class Comparison:
    """What was found.

    Parameters
    ----------
    table : pandas.DataFrame
        See `compare`.
    failed : mapping of str to Exception
        Why a mechanism could not be compared, by its name.
    problem : Problem
    settings : mapping of str to object
        ``repetitions``, ``samples``, ``confidence``, ``seed``, ``epsilons``,
        ``mechanisms`` and ``own`` (by name) as asked for; ``public``, whether the rows
        are.
    audits : tuple of dict
        Every audit: ``mechanism``, ``epsilon``, and what `audited` returns.
    notes : tuple of str
        What else to know, a sentence each.
    """

    table: pd.DataFrame
    failed: Mapping[str, Exception]
    problem: Problem
    settings: Mapping[str, Any]
    audits: tuple[Record, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Who was compared."""
        return list(dict.fromkeys(each["mechanism"] for each in self.audits))

    @property
    def refuted(self) -> list[str]:
        """Whose claim was refuted at any epsilon."""
        fell = (e["mechanism"] for e in self.audits if e["verdict"] == "REFUTED")
        return list(dict.fromkeys(fell))


def comparison_of(
    work: Sequence[Point],
    found: Mapping[str, Any],
    failed: dict[str, Exception],
    problem: Problem,
    settings: Mapping[str, Any],
    notes: list[str],
) -> Comparison:
    """Return what the records of jobs say; `failed` and `notes` grow with it."""
    rows: list[Record] = []
    audits: list[Record] = []
    empty, lost, false = (defaultdict[Any, list[float]](list) for _ in range(3))
    for point in work:
        name, epsilon = point.contender.name, point.epsilon
        record = {kind: found[job.name] for kind, job in point.jobs.items()}
        errors = [each.error for each in record.values() if isinstance(each, Failure)]
        if errors:
            failed.setdefault(name, errors[0])
            lost[name].append(epsilon)
            rows += _failed_rows(name, epsilon, errors[0])
            continue
        audit, measured = record["audited"], record["measured"]
        audits.append({"mechanism": name, "epsilon": epsilon, **audit})
        if measured["empty"]:
            empty[name, measured["empty"]].append(epsilon)
        if audit.get("exact") == "false":
            false[name].append(epsilon)
        for measure in MEASURES:
            low, median, high = quarters(measured[measure])
            row = {"mechanism": name, "epsilon": epsilon, "measure": measure}
            row |= {"median": median, "low": low, "high": high}
            row["seconds"] = float(np.median(record["timed"]["seconds"]))
            rows.append({**row, "verdict": audit["verdict"]})
    warned = dict.fromkeys(
        f"{each['mechanism']}: {text.rstrip('.')}"
        for each in audits
        for text in each.get("warnings", ())
    )
    shown = {row["mechanism"] for row in rows}
    for name, error in failed.items():
        if name not in shown:
            rows += _failed_rows(name, math.nan, error)
    if not audits:
        raise InputError(
            "no mechanism could be compared: "
            + "; ".join(str(error) for error in failed.values())
        )
    table = pd.DataFrame.from_records(rows)
    notes += [
        f"{name} said in {count:,} of {settings['repetitions']:,} releases at "
        f"{_at(epsilons)} that there are no components: they capture nothing."
        for (name, count), epsilons in empty.items()
    ]
    stands = {each["mechanism"] for each in audits}
    notes += [
        f"{name} failed at {_at(epsilons)} only; its other points stand."
        for name, epsilons in lost.items()
        if name in stands
    ]
    notes += [
        f"The claim of {name} is false at {_at(epsilons)}, whatever the audit saw: the "
        "exact loss on its worst pair is larger."
        for name, epsilons in false.items()
    ]
    notes += [f"{each}." for each in warned]
    return Comparison(table, failed, problem, settings, tuple(audits), tuple(notes))


def _at(epsilons: Sequence[float]) -> str:
    return f"ε = {listed(map(setting, epsilons))}"


def _failed_rows(name: str, epsilon: float, error: Exception) -> list[Record]:
    nothing = dict.fromkeys(("median", "low", "high", "seconds"), math.nan)
    key = {"mechanism": name, "epsilon": epsilon}
    verdict = {"verdict": f"failed: {told(name, error)}"}
    return [{**key, "measure": each, **nothing, **verdict} for each in MEASURES]
