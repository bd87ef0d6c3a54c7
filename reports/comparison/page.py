"""What a comparison found, and its page: figures, tables, verdicts as in the report.

One self-contained HTML file, with the table behind it as CSV, the figures, and a
witness for each refutation.
"""

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.errors import DPAuditError
from dpaudit.printable import said
from dpaudit.reports.comparison.problem import MEASURES, PCAProblem
from dpaudit.reports.escaping import csv_text, file_name
from dpaudit.reports.experiment import Record
from dpaudit.reports.page import render_one, render_pictures
from dpaudit.reports.store import put, staging
from dpaudit.reports.tables import Printed, records
from dpaudit.reports.words import (
    delta,
    duration,
    listed,
    nines,
    percent,
    sentences,
    setting,
    spelt,
    times,
    verdict,
)

__all__ = ["WARNING", "MechanismComparison", "told"]

WARNING = (
    "These measures are computed from the rows without noise. Choosing a mechanism (or "
    "a norm, or a number of components) by its result on private rows is itself a "
    "release about them, which no claim here counts. Compare on public rows, or on "
    "synthetic ones of the same shape (dpaudit.datasets), and run the chosen mechanism "
    "once on the private ones."
)

_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9999)
_TIMES = (1.0, 1.01, 1.03, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0)


@dataclass(frozen=True)
class ShownMeasure:
    """How a measure is shown."""

    # title, heading: of its part of the page, and of the figure
    title: str
    heading: str
    meaning: str  # a sentence or two for the page
    height: Callable[[Any], Any]  # where a value stands
    ticks: tuple[float, ...]
    text: Callable[[float], str]  # from a value to what is printed
    unit: str  # what that ends with
    scale: float = 1.0  # from a value to what is in front of the unit

    def span(self, low: float, high: float) -> str:
        """Return two values as they are printed, the unit once."""
        return f"{self.text(low).removesuffix(self.unit)} – {self.text(high)}"


SHOWN = {
    "captured_variance": ShownMeasure(
        "Captured variance",
        "Captured share of what PCA without noise captures",
        "How much of the variance that PCA without noise captures is left. The scale "
        "is logarithmic in what is lost.",
        nines,
        _SHARES,
        percent,
        " %",
        100.0,
    ),
    "largest_angle_degrees": ShownMeasure(
        "Largest angle",
        "Largest principal angle to PCA without noise",
        "The largest angle between the private subspace and that of PCA without noise: "
        "0° if they are the same, 90° if one direction is missed altogether. It is the "
        "sternest of the measures, for one missed direction may hold little variance.",
        np.asarray,
        (0.0, 10.0, 20.0, 30.0, 45.0, 60.0, 75.0, 90.0),
        lambda degrees: f"{degrees:.1f}°",
        "°",
    ),
    "error_ratio": ShownMeasure(
        "Reconstruction error",
        "Reconstruction error, as a multiple of that of PCA without noise",
        "The sum of the squared distances of rows from the subspace, as a multiple of "
        "that for PCA without noise, which is the least that there can be.",
        lambda ratio: np.log10(np.asarray(ratio, dtype=float)),
        (*_TIMES, *(100.0 * 10**i for i in range(10))),
        times,
        " ×",
    ),
}


@dataclass(frozen=True, eq=False)
class MechanismComparison:
    """What was found."""

    table: pd.DataFrame  # see `compare`
    # why a mechanism could not be compared, by its name
    failed: Mapping[str, Exception]
    problem: PCAProblem
    # repetitions, samples, confidence, seed, epsilons, mechanisms and own (by name) as
    # asked for; public, whether the rows are
    settings: Mapping[str, Any]
    # every audit: mechanism, epsilon, and what `audited` returns
    audits: tuple[Record, ...] = ()
    notes: tuple[str, ...] = ()  # what else to know, a sentence each

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(each["mechanism"] for each in self.audits))

    @property
    def refuted(self) -> list[str]:
        """Whose claim was refuted at any epsilon."""
        fell = (e["mechanism"] for e in self.audits if e["verdict"] == "REFUTED")
        return list(dict.fromkeys(fell))

    @property
    def epsilons(self) -> list[float]:
        """Where anybody was compared, ascending."""
        return sorted({each["epsilon"] for each in self.audits})


def told(name: str, error: Exception) -> str:
    """Return why a mechanism failed, to be read after its name."""
    text = str(error) if isinstance(error, DPAuditError) else said(error)
    return text.removeprefix(f"{name} ")


def write_page(
    found: MechanismComparison, figures: Mapping[str, Sequence[str]], output: Path
) -> None:
    """Write ``index.html``, ``compare.csv``, figures and witnesses into a folder."""
    with staging(output) as folder:
        put(folder, "compare.csv", csv_text(found.table))
        for name, picture in render_pictures(figures).items():
            put(folder, f"{name}.svg", picture)
        for each in found.audits:
            if (witness := each.get("witness")) is not None:
                put(folder, _witness(each), json.dumps(witness, indent=2) + "\n")
        put(folder, "index.html", render(found, figures))


def render(found: MechanismComparison, figures: Mapping[str, Sequence[str]]) -> str:
    """Return the page as HTML."""
    many, problem, chosen = len(found.names), found.problem, found.problem.setting
    sections = [
        {
            "name": (name := measure.replace("_", "-")),
            "heading": SHOWN[measure].title,
            "meaning": SHOWN[measure].meaning,
            "figure": figures.get(f"compare-{name}"),
            "rows": _measure_rows(found, measure),
        }
        for measure in MEASURES
    ]
    n, d = problem.shape
    told_of = f"{spelt(many).capitalize()} mechanism{'s' * (many > 1)}"
    context = {
        "headline": f"{told_of} for private PCA",
        "answer": answer(found),
        "warning": WARNING,
        "public": found.settings["public"],
        "notes": found.notes,
        "failed": {name: told(name, error) for name, error in found.failed.items()},
        "epsilons": found.epsilons,
        "sections": sections,
        "verdicts": _verdict_rows(found),
        "audits": sum("samples" in each for each in found.audits),
        "chosen": chosen,
        "relation": str(chosen.relation),
        "size": found.settings,
        **{"n": n, "d": d, "source": problem.source, "command": _command(found)},
        "witnesses": [_witness(e) for e in found.audits if e.get("witness")],
    }
    return render_one("comparison.html.j2", context)


def answer(found: MechanismComparison) -> list[str]:
    """Return what is to be said first, of mechanisms whose claims were not refuted.

    Pure and approximate claims are told apart, for they promise different things.
    """
    asked = [e for e in found.settings["epsilons"] if e in found.epsilons]
    if not asked:
        return []
    at = asked[len(asked) // 2]
    kept = {
        row["mechanism"]: row["median"]
        for row in records(found.table)
        if row["measure"] == "captured_variance" and row["epsilon"] == at
    }
    here = [each for each in found.audits if each["epsilon"] == at]
    standing = [e for e in here if e["verdict"] == "NOT_REFUTED"]
    standing = [each for each in standing if each["exact"] != "false"]
    best = []
    for approximate in (False, True):
        own = [e["mechanism"] for e in standing if (e["delta"] > 0) == approximate]
        if own:
            name = max(own, key=kept.__getitem__)
            best.append((name, kept[name], approximate))
    told = {"epsilon": at, "best": best, "fallen": found.refuted}
    return sentences("comparison", "answer", **told)


def _measure_rows(found: MechanismComparison, measure: str) -> list[Printed]:
    """Return a table of medians with quartiles, by mechanism and epsilon."""
    shown = SHOWN[measure]
    known = found.table[found.table["measure"] == measure].dropna(subset="median")
    cells = {
        (row["mechanism"], row["epsilon"]): (
            shown.text(row["median"]),
            shown.span(row["low"], row["high"]),
        )
        for row in records(known)
    }
    return [
        Printed(
            name=name,
            refuted=name in found.refuted,
            cells=[cells.get((name, e), ("–", "")) for e in found.epsilons],
        )
        for name in dict.fromkeys(known["mechanism"])
    ]


def _verdict_rows(found: MechanismComparison) -> list[Printed]:
    seconds = found.table.groupby("mechanism")["seconds"].median()
    rows = []
    for name in found.names:
        audits = [each for each in found.audits if each["mechanism"] == name]
        deltas = sorted({each["delta"] for each in audits if "delta" in each})
        verdicts = []
        for kind in dict.fromkeys(each["verdict"] for each in audits):
            group = [each for each in audits if each["verdict"] == kind]
            where = f"at ε = {listed(setting(each['epsilon']) for each in group)}"
            shown = {"badge": verdict(kind.split(":")[0]), "hint": _hint(kind, group)}
            verdicts.append(Printed(refuted=kind == "REFUTED", where=where, **shown))
        rows.append(
            Printed(
                name=name,
                claim=f"δ = {listed(map(delta, deltas))}" if deltas else "–",
                seconds=duration(float(seconds[name])),
                verdicts=verdicts,
            )
        )
    return rows


def _hint(kind: str, group: Sequence[Record]) -> str:
    """Return what an audit rests on, or why there is none."""
    if "samples" not in group[0]:
        return kind.partition(": ")[2]
    if kind == "NO_VERDICT":
        return "its releases were seen not to be independent draws"
    most = max(each["samples"] for each in group)
    pair = "its own worst pair" if group[0]["own_pair"] else "a pair made of the data"
    return (
        f"{'within' if kind == 'REFUTED' else 'up to'} {most:,} releases a side, {pair}"
    )


def _witness(each: Record) -> str:
    return f"witness-{file_name(each['mechanism'])}-{_exactly(each['epsilon'])}.json"


def _exactly(value: float) -> str:
    """Return a number with all of its digits."""
    return repr(value).removesuffix(".0")


def _command(found: MechanismComparison) -> str:
    """Return what repeats the comparison, if a command can."""
    chosen, size = found.problem.setting, found.settings
    if size["own"]:
        return ""
    data = [] if size["public"] else ["--data", found.problem.source]
    words = [
        *("dpaudit", "compare", *size["mechanisms"], *data),
        *("--row-norm", _exactly(chosen.row_norm)),
        *("--components", str(chosen.n_components)),
        *("--epsilon", ",".join(map(_exactly, size["epsilons"]))),
        *("--delta", _exactly(chosen.delta), "--relation", str(chosen.relation)),
        *("--repetitions", str(size["repetitions"])),
        *("--samples", str(size["samples"]), "--seed", str(size["seed"])),
    ]
    return shlex.join(words)
