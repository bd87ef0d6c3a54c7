"""Experiments at the sizes of their papers, which take hours: run once, kept, held.

    python docs/results.py run robust-ranks --store build/full.db --workers 2
    python docs/results.py check --share 0.01 --seed 0

``run`` carries out experiments of the report in its full profile; with a store it goes
on where it was stopped. What it finds is written to ``docs/results/``: a CSV file for
each experiment, a line for each cell and quantity with one value for each repetition,
and in ``runs.json`` with which seed and versions, and the time of the run that finished
it: of all of it, unless it went on from an earlier one. ``make tables`` draws it.

``check`` computes a random share of the cells anew. It fails unless nine of ten values
of a cell are the same, up to a thousandth: rounding may turn a decision of a sampler,
but not more. Where no error is less than rounding, nothing is held (`ROUNDING`). A
Markov chain (`CHAINS`) goes another way after a last bit, which another processor
rounds otherwise: there both are to be samples of one law, by the test of Kolmogorov and
Smirnov, which denies that by chance in one of 10,000 cells.
"""

import json
import platform
import resource
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ks_2samp

from dpaudit.algorithms import CATALOGUE
from dpaudit.cli.running import working
from dpaudit.reports.experiment import Cell, Experiment, cells, run
from dpaudit.reports.page import render_pictures
from dpaudit.reports.sections import Results, all_sections, plan
from dpaudit.reports.sections.robust.section import PHASES
from dpaudit.reports.sections.theorems.ledger import STATEMENTS
from dpaudit.reports.sections.theorems.pictures import heard
from dpaudit.reports.store import WorkStore

__all__ = ["check", "drawn", "said", "table_of"]

FOLDER = Path(__file__).with_name("results")
ROUNDING = 1e-10
CHAINS = ("exponential-pca-gibbs",)
ONCE = ("seconds", "seconds_reached")
"""Times: of this machine, beside other work. Kept is the median of a cell.

A run that never comes within the tolerance takes for ever to get there.
"""
PEOPLE = ("east", "north", "x", "y")
"""Where each is on a map: not kept."""
MEASURED = ("error", "reached", "captured_share", "random_share", "fit")
DRAWN = {
    "robust-recovery": ("robust-recovery",),
    **dict.fromkeys(("robust-phases", "robust-times", "robust-failures"), PHASES),
    "robust-budgets": ("robust-budgets",),
    "robust-batches": ("robust-batches",),
    "robust-ranks": ("robust-ranks",),
    "symmetric-noise-epsilon": ("sn-epsilon-synthetic",),
    "symmetric-noise-rows": ("sn-n-synthetic",),
}
"""Pictures of the report, and the experiments that each needs."""
_WHOLE = {"break_on_hyphens": False, "break_long_words": False}


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with a line for each cell and quantity, a column for each run."""
    table = table.drop(columns=[*PEOPLE], errors="ignore").drop_duplicates()
    keys = [
        name for name in table.columns if name not in (*ONCE, *MEASURED, "repetition")
    ]
    table = table.assign(repetition=table.groupby(keys, dropna=False).cumcount())
    parts = []
    for name in (each for each in MEASURED if each in table.columns):
        part = table.pivot(index=keys, columns="repetition", values=name)
        part.insert(0, "quantity", name)
        parts.append(part.reset_index())
    found = pd.concat(parts, ignore_index=True)
    if times := [name for name in ONCE if name in table.columns]:
        endless = table.fillna(dict.fromkeys(times, np.inf))
        medians = endless.groupby(keys, sort=False)[times].median().reset_index()
        found = found.merge(medians, on=keys)
    order = {key: at for at, key in enumerate(map(tuple, table[keys].to_numpy()))}
    place = [order[key] for key in map(tuple, found[keys].to_numpy())]
    return found.iloc[np.lexsort([found["quantity"], place])]


@cache
def table_of(name: str) -> pd.DataFrame:
    """Return what is kept of an experiment: a line for each repetition, as it was."""
    kept = pd.read_csv(FOLDER / f"{name}.csv")
    runs = [column for column in kept.columns if column.isdecimal()]
    keys = [c for c in kept.columns if c not in (*runs, "quantity")]
    long = kept.melt(
        id_vars=[*keys, "quantity"], value_vars=runs, var_name="repetition"
    )
    index = [*keys, "repetition"]
    found = long.pivot(index=index, columns="quantity", values="value")
    found = found.reset_index().astype({"repetition": int})
    first = kept.drop_duplicates(keys)[keys].assign(place=lambda t: range(len(t)))
    found = found.merge(first, on=keys).sort_values(["place", "repetition"])
    return found.drop(columns="place").reset_index(drop=True)


def runs() -> dict[str, dict[str, Any]]:
    """Return what is known of the runs, by the names of experiments."""
    path = FOLDER / "runs.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def carry_out(names: list[str], store: Path | None, workers: int) -> None:
    """Run experiments in full, and keep what they find."""
    kept = None if store is None else WorkStore(store)
    if kept is not None:
        kept.prepare()
    everything = plan("full", 0)
    for name in names:
        experiment, before = everything[name], _processor()
        with working(workers=workers) as means:
            found = run(experiment, store=kept, **means)
        wide(found).to_csv(FOLDER / f"{name}.csv", index=False, float_format="%.4g")
        told = runs() | {
            name: {
                "seed": experiment.seed,
                "cells": sum(1 for _ in cells(experiment)),
                "seconds": round(_processor() - before),
                "day": f"{datetime.now(UTC):%Y-%m-%d}",
                "python": platform.python_version(),
                **{each: version(each) for each in ("dpaudit", "numpy", "scipy")},
            }
        }
        text = json.dumps(dict(sorted(told.items())), indent=1)
        (FOLDER / "runs.json").write_text(text + "\n", encoding="utf-8")


def _processor() -> float:
    """Return the processor seconds of this process and of its children that ended."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def chosen(share: float, seed: int, most: float) -> Iterator[tuple[Experiment, Cell]]:
    """Yield a random share of the cells that are kept, of those that are dear none.

    ``most``: seconds that a cell may take.
    """
    everything = [plan("full", 0)[name] for name in runs()]
    priced = [
        (experiment, cell, seconds)
        for experiment in everything
        for cell, seconds in zip(cells(experiment), costs(experiment), strict=True)
    ]
    known = [(one, cell) for one, cell, seconds in priced if seconds <= most]
    count = min(len(known), max(1, round(share * len(priced))))
    rng = np.random.default_rng(seed)
    for place in sorted(rng.choice(len(known), count, replace=False)):
        yield known[place]


def costs(experiment: Experiment) -> list[float]:
    """Return what each cell took, in seconds of one core; their mean if not known."""
    table, about = table_of(experiment.name), runs()[experiment.name]
    if "seconds" not in table.columns:
        return [about["seconds"] / about["cells"]] * about["cells"]
    by_cell = table.groupby(["mechanism", *experiment.grid], sort=False)
    return (by_cell["seconds"].max() * experiment.repetitions).tolist()


def check(experiment: Experiment, cell: Cell) -> list[str]:
    """Return what is kept of a cell and is not what it gives now."""
    records = [
        {"mechanism": cell.mechanism, **cell.point, **each}
        for each in experiment.measure(cell)
    ]
    now, kept = (
        wide(pd.DataFrame.from_records(records)),
        pd.read_csv(FOLDER / f"{experiment.name}.csv"),
    )
    keys = [c for c in now.columns if not str(c).isdecimal() and c not in ONCE]
    values = [str(c) for c in now.columns if str(c).isdecimal()]
    now.columns = now.columns.map(str)
    for name in set(keys) - {"mechanism", "quantity"}:  # as they were written
        now[name] = [float(f"{value:.4g}") for value in now[name]]
    both = now.merge(kept, on=keys, how="left", suffixes=("", " kept"))
    wrong = []
    for line in both.to_dict("records"):
        new, old = (
            np.array([line[f"{value}{end}"] for value in values], dtype=float)
            for end in ("", " kept")
        )
        same = np.isclose(new, old, rtol=1e-3, atol=ROUNDING, equal_nan=True)
        alike = cell.mechanism in CHAINS and ks_2samp(new, old).pvalue > 1e-4
        if same.mean() < 0.9 and not alike:
            what = ", ".join(f"{key} {line[key]}" for key in keys)
            wrong.append(f"{experiment.name}: {what}: {(~same).sum()} differ")
    return wrong


def verdicts() -> dict[str, pd.DataFrame]:
    """Return what the catalogue says of claims, as tables of the report have it."""
    words = {True: "REFUTED", False: "NOT_REFUTED"}
    table = pd.DataFrame(
        {
            "mechanism": list(CATALOGUE),
            "verdict": [words[e.expected_refuted] for e in CATALOGUE.values()],
        }
    )
    return {"robust-audits": table, "privacy-wall": table}


def kept() -> Results:
    """Return all that is kept, as a report has its results."""
    known = {name: table_of(name) for name in runs()}
    return Results("full", 0, plan("full", 0), known | verdicts())


def figures() -> str:
    """Return what the ledger says of the figures that are kept whole: Markdown."""
    results = kept()
    told = heard(results, STATEMENTS)
    lines = ["| figure | what the paper says | verdict | checks |", "|---|---|---|---|"]
    for each in STATEMENTS:
        if each.rule in told:
            parts = f"{each.paper}, {each.at}", each.says, *told[each.rule]
            lines.append(f"| {' | '.join(parts)} |")
    return "\n".join([*lines, ""])


def drawn() -> dict[str, str]:
    """Return pictures of what is kept, as SVG files, by name."""
    results = kept()
    draw = {n: p for each in all_sections().values() for n, p in each.figures.items()}
    there = [name for name, needs in DRAWN.items() if results.keys() >= {*needs}]
    return render_pictures({name: (draw[name](results),) for name in there})


def said(name: str) -> str:
    """Return what the report says of an experiment, and how it was run: Markdown.

    Of "figures" it is what the ledger says of all of them.
    """
    if name == "figures":
        return figures()
    about = runs()[name]
    known = verdicts() | {name: table_of(name)}
    notes = [
        sentence
        for section in all_sections().values()
        for names, find in section.notes.items()
        if name in names and known.keys() >= {*names}
        for sentence in find(*(known[each] for each in names))
    ]
    experiment = plan("full", 0)[name]
    seconds, repetitions = sum(costs(experiment)), experiment.repetitions
    took = f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"
    how = (
        f"[{name}.csv](results/{name}.csv): {about['cells']} cells of {repetitions} "
        f"repetition{'s' * (repetitions > 1)}, seed {about['seed']}, {took} of one "
        f"core, {about['day']}, NumPy {about['numpy']}."
    )
    notes = [each.replace("ε", "epsilon").replace("δ", "delta") for each in notes]
    lines = (fill(f"- {each}", 92, subsequent_indent="  ", **_WHOLE) for each in notes)
    return "\n".join([*lines, "", fill(how, 92, **_WHOLE), ""])


def main() -> int:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("names", nargs="+", choices=sorted(plan("full", 0)))
    running.add_argument("--store", type=Path)
    running.add_argument("--workers", type=int, default=1)
    checking = commands.add_parser("check")
    checking.add_argument("--share", type=float, default=0.01)
    checking.add_argument("--seed", type=int, default=0)
    checking.add_argument("--most", type=float, default=float("inf"))
    given = parser.parse_args()
    if given.command == "run":
        carry_out(given.names, given.store, given.workers)
        return 0
    wrong = []
    for experiment, cell in chosen(given.share, given.seed, given.most):
        found = check(experiment, cell)
        print(experiment.name, cell.mechanism, dict(cell.point), found or "the same")
        wrong += found
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
