"""Run everything and write the report, all of it or nothing."""

import json
import secrets
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path

from dpaudit.datasets import load
from dpaudit.errors import InputError
from dpaudit.reports.bench.summary import load_summary
from dpaudit.reports.comparison import load_comparison
from dpaudit.reports.escaping import csv_text
from dpaudit.reports.experiment import run_all
from dpaudit.reports.experiments import plan, profile_named
from dpaudit.reports.page import (
    Results,
    draw_figures,
    render_html,
    render_markdown,
    render_pictures,
)
from dpaudit.reports.runner import Progress
from dpaudit.reports.store import Store
from dpaudit.reports.tables import witness_file

__all__ = ["STORE", "write_report", "write_results"]

STORE = "work.db"
"""The name of the file with finished work, in the folder of a report."""

_INDEX = "index.html"


def write_report(
    output: Path,
    *,
    profile: str = "quick",
    seed: int = 0,
    store: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    executor: Executor | None = None,
) -> Path:
    """Run the experiments of a profile and write the comparison report.

    Parameters
    ----------
    output : Path
        A folder, created if need be. It receives ``index.html``, ``report.md``, one
        CSV file per experiment, one SVG file per figure and one JSON file per witness,
        which replace files of the same names at the very end; anything else in the
        folder stays. Text in a CSV file that a spreadsheet would take for a formula
        has an apostrophe in front (`dpaudit.reports.escaping`).
    profile : str
        ``"quick"``, ``"standard"`` or ``"paper"``.
    seed : int
        >= 0. The same seed gives the same results, except for run times. What
        ``dpaudit bench-audit`` and ``make third-party`` have left in the folders
        ``bench`` and ``third-party`` beside `output` is shown as well.
    store : Path, optional
        The file in which finished work is kept, and found again: a report that was
        stopped goes on. By default ``work.db`` in the folder.
    progress : callable, optional
        Called with how far the work is.
    executor : concurrent.futures.Executor, optional
        Where to work, with processes rather than threads
        (`dpaudit.audit.process_pool`): linear algebra is held to one thread per
        process. No result depends on it.

    Returns
    -------
    Path
        Of ``index.html``.

    Raises
    ------
    InputError
        If the profile is unknown, the seed is negative, the folder cannot be written
        to, or what the others have left not be read (all of which is found out before
        the work begins).
    """
    chosen = profile_named(profile)
    experiments = plan(chosen, seed)
    output = Path(output)
    bench = load_summary(output.resolve().parent / "bench")
    comparison = load_comparison(output.resolve().parent / "third-party")
    with _staging(output):
        kept = Store(store or output / STORE)
        kept.prepare()
    found = run_all(experiments, store=kept, executor=executor, progress=progress)
    for table in found.values():
        if isinstance(table, Exception):
            raise table
    by_name = {experiment.name: experiment for experiment in experiments}
    rows = load(by_name["captured-variance"].options["dataset"])
    n, d = rows.rows.shape
    results = Results(
        profile=chosen,
        seed=seed,
        experiments=experiments,
        tables=found,
        data={"source": rows.source, "n": n, "d": d},
        bench=bench,
        comparison=comparison,
    )
    with _staging(output) as folder:
        write_results(results, folder)
    return output / _INDEX


def write_results(results: Results, folder: Path) -> None:
    """Write the files of a report into an existing folder."""
    for name, table in results.tables.items():
        plain = table.drop(columns="witness", errors="ignore")
        (folder / f"{name}.csv").write_text(csv_text(plain), encoding="utf-8")
        if "witness" in table:
            for mechanism, text in zip(
                table["mechanism"], table["witness"], strict=True
            ):
                if isinstance(text, str):
                    pretty = json.dumps(json.loads(text), indent=2) + "\n"
                    path = folder / witness_file(mechanism)
                    path.write_text(pretty, encoding="utf-8")
    figures = draw_figures(results)
    for name, picture in render_pictures(figures).items():
        (folder / f"{name}.svg").write_text(picture, encoding="utf-8")
    (folder / "report.md").write_text(render_markdown(results), encoding="utf-8")
    (folder / _INDEX).write_text(render_html(results, figures), encoding="utf-8")


@contextmanager
def _staging(output: Path) -> Iterator[Path]:
    """Give a folder whose files move into `output` if the block succeeds.

    It lies inside `output`, so that moving a file is a rename even where `output` is a
    mount point; a reader sees each file before or after, never in between.
    """
    missing = [each for each in (output, *output.parents) if not each.exists()]
    staging = output / f".{secrets.token_hex(4)}.partial"
    try:
        try:
            staging.mkdir(parents=True)
            yield staging
            # The page comes last: when it is new, so is everything it stands for.
            files = sorted(staging.iterdir(), key=lambda path: path.name == _INDEX)
            for path in files:
                path.replace(output / path.name)
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(
                f"cannot write the report to {str(output)!r}: {reason}"
            ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        for folder in missing:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
