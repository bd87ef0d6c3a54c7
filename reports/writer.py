"""Run everything and write the report."""

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite, isnan
from pathlib import Path
from typing import Any

from dpaudit import __version__
from dpaudit.printable import said
from dpaudit.reports.escaping import csv_text
from dpaudit.reports.experiment import run_all
from dpaudit.reports.page import Drawn, Figures, render_pictures
from dpaudit.reports.runner import WorkProgress
from dpaudit.reports.sections import Results, Section, chosen_sections, plan
from dpaudit.reports.site import render
from dpaudit.reports.store import INDEX, STORE, WorkStore, put, staging
from dpaudit.reports.tables import records, witness_file

__all__ = ["write_report"]

DIGITS = 6
"""Of numbers in CSV files: as many as are compared, and half of the bytes."""

VERDICT = {
    name: name
    for name in (
        *("mechanism", "source", "relation", "claim_text", "verdict", "confidence"),
        *("epsilon_lower", "claimed_epsilon", "exact_epsilon"),
        *("delta_lower", "claimed_delta", "exact_delta"),
        *("samples", "samples_to_refute", "attack", "event", "seed"),
    )
} | {"claim_text": "claim"}
"""Columns of a table of audits, by what they are called in ``report.json``."""


@dataclass(frozen=True)
class Written:
    """A report that was written."""

    index: Path  # of the first page
    failed: Mapping[str, Exception]  # what went wrong, by the name of the section


def write_report(
    output: Path,
    *,
    profile: str = "quick",
    seed: int = 0,
    sections: Sequence[str] = (),
    store: Path | None = None,
    progress: Callable[[WorkProgress], None] | None = None,
    executor: Executor | None = None,
) -> Written:
    """Run the experiments of a profile and write the comparison report.

    ``output``: a folder, created if need be. It receives the site (``index.html`` and
    the folders of its other pages), ``report.md``, the verdicts as ``report.json``,
    one CSV file per experiment, one SVG file per figure and one JSON file per witness,
    which replace at the very end what an earlier report left there; anything else in
    the folder stays. Text in a CSV file that a spreadsheet would take for a formula has
    an apostrophe in front
    (`dpaudit.reports.escaping`), and numbers have `DIGITS` digits. ``profile``: one of
    `PROFILES`. ``seed``: >= 0. The same seed gives the same results, except for run
    times. What ``dpaudit bench-audit`` and ``make third-party`` have left in the
    folders ``bench`` and ``third-party`` beside `output` is shown as well.
    ``sections``: names of those to write, and no others; by default all. ``store``: the
    file in which finished work is kept, and found again: a report that was stopped goes
    on; by default ``work.db`` in the folder. ``progress``: called with how far the work
    is. ``executor``: where to work and draw, with processes rather than threads
    (`dpaudit.audit.process_pool`): linear algebra is held to one thread per process. No
    result depends on it.

    A section that fails is shown as failed, and the others stand.

    Raises `~dpaudit.errors.InputError` if the profile or a section is unknown, the seed
    is negative, the folder cannot be written to, or what the others have left not be
    read (all of which is found out before the work begins).
    """
    chosen = chosen_sections(sections)
    experiments = plan(profile, seed, chosen)
    output = Path(output)
    beside = {each.name: each.beside(output.resolve().parent) for each in chosen}
    with staging(output):
        kept = WorkStore(store or output / STORE)
        kept.prepare()
    tables = run_all(
        list(experiments.values()), store=kept, executor=executor, progress=progress
    )
    results = Results(profile, seed, experiments, tables, beside)
    with staging(output) as folder:
        failed = write_results(results, folder, chosen if sections else None, executor)
    return Written(output / INDEX, failed)


def write_results(
    results: Results,
    folder: Path,
    sections: Sequence[Section] | None = None,
    executor: Executor | None = None,
) -> Mapping[str, Exception]:
    """Write the files of a report into an existing folder; return what failed."""
    # First, so that others draw while this process writes.
    figures = draw_figures(results, sections or chosen_sections(), executor)
    for name, table in results.tables.items():
        if isinstance(table, Exception):
            continue
        plain = table.drop(columns="witness", errors="ignore")
        put(folder, f"{name}.csv", csv_text(plain, digits=DIGITS))
        for row in records(table):
            if isinstance(text := row.get("witness"), str):
                pretty = json.dumps(json.loads(text), indent=2) + "\n"
                put(folder, witness_file(row["mechanism"]), pretty)
    failed: dict[str, Exception] = {}
    for section in sections or chosen_sections():
        try:
            for name, table in section.tables(results).items():
                put(folder, f"{name}.csv", csv_text(table, digits=DIGITS))
        except Exception as error:
            failed[section.name] = error
        for name, text in section.files(results).items():
            put(folder, name, text)
    text = json.dumps(told(results, sections or chosen_sections()), indent=1)
    put(folder, "report.json", text + "\n")
    site = render(results, figures, sections, executor=executor)
    for name, picture in render_pictures(figures).items():
        put(folder, f"{name}.svg", picture)
    for name, text in site.pages.items():
        put(folder, name, text)
    return {**failed, **site.failed}


def told(results: Results, sections: Sequence[Section]) -> dict[str, Any]:
    """Return what ``report.json`` holds: every verdict, for other programs."""
    verdicts, failed = [], {}
    for section in sections:
        for name in section.audits:
            table = results.tables.get(name)
            if table is None or isinstance(table, Exception):
                failed[name] = "not run" if table is None else said(table)
                continue
            for row in records(table):
                found = {key: _plain(row.get(x)) for x, key in VERDICT.items()}
                there = isinstance(row.get("witness"), str)
                witness = witness_file(row["mechanism"]) if there else None
                verdicts.append({"table": name, **found, "witness": witness})
    return {
        **{"format": "dpaudit-report", "version": 1, "dpaudit": __version__},
        **{"profile": results.profile, "seed": results.seed},
        **{"verdicts": verdicts, "failed": failed},
    }


def _plain(value: Any) -> Any:
    """Return a cell for JSON: None where there is nothing, infinity as a word."""
    if isinstance(value, str) or value is None:
        return value
    number = float(f"{value:.{DIGITS}g}")
    if isnan(number):
        return None
    return number if isfinite(number) else str(number)


def draw_figures(
    results: Results, sections: Sequence[Section], executor: Executor | None = None
) -> Figures:
    """Return the figures of sections; in place of one that fails, why.

    ``executor``: where to draw those of the report; by default here.
    """
    if executor is not None:
        results = replace(results)  # without what was found in them: less travels
    return Drawn(
        {
            name: partial(_drawn, results, each, name)
            for each in sections
            for name in each.figures
        },
        executor,
    )


def _drawn(results: Results, section: Section, name: str) -> list[str]:
    return [section.figures[name](results, narrow) for narrow in (False, True)]
