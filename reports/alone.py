"""Carry out one experiment of the report: ``python -m dpaudit.reports.alone NAME``.

It says how long that took and, where the report draws conclusions from this table
alone, what they are. The options are ``--profile`` and ``--workers``, as for ``dpaudit
report``, ``--seed``, ``--mechanisms`` for some of them only, their names with commas
between, and ``--output`` for the table as a CSV file.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pandas as pd

from dpaudit.errors import InputError
from dpaudit.reports.escaping import csv_text
from dpaudit.reports.experiment import run
from dpaudit.reports.experiments import Experiment, plan, profile_named
from dpaudit.reports.recovery_findings import map_notes, phase_notes, recovery_notes
from dpaudit.reports.regret_findings import online_notes
from dpaudit.reports.tracing_findings import culling_notes
from dpaudit.validation import check_count, check_name

__all__ = ["carried_out", "main"]

_NOTES: dict[str, Callable[[pd.DataFrame], list[str]]] = {
    "robust-recovery": recovery_notes,
    "robust-phases": phase_notes,
    "genotypes": map_notes,
    "online-regret": online_notes,
    "list-culling": culling_notes,
}


def carried_out(experiment: Experiment, workers: int) -> pd.DataFrame:
    """Return the table of an experiment, made by so many processes."""
    if workers == 1:
        return run(experiment)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as executor:
        return run(experiment, executor=executor)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was found, and return 0; 2 if an option is wrong."""
    parser = argparse.ArgumentParser(prog="python -m dpaudit.reports.alone")
    parser.add_argument("name")
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mechanisms")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args(arguments)
    try:
        everything = plan(profile_named(given.profile), given.seed)
        by_name = {experiment.name: experiment for experiment in everything}
        chosen = by_name[check_name("experiment", given.name, tuple(by_name))]
        workers = check_count("workers", given.workers)
        if given.mechanisms is not None:
            chosen = replace(chosen, mechanisms=_some(chosen, given.mechanisms))
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    start = time.perf_counter()
    table = carried_out(chosen, workers)
    seconds = time.perf_counter() - start
    print(f"{chosen.title}: {len(table):,} rows in {seconds:.1f} s, {workers} workers")
    if given.mechanisms is None:
        for note in _NOTES.get(chosen.name, lambda table: [])(table):
            print(note)
    if given.output is not None:
        given.output.write_text(csv_text(table), encoding="utf-8")
    return 0


def _some(experiment: Experiment, names: str) -> tuple[str, ...]:
    """Return those mechanisms of an experiment that are named."""
    return tuple(
        check_name("mechanism", name, experiment.mechanisms)
        for name in names.split(",")
    )


if __name__ == "__main__":
    sys.exit(main())
