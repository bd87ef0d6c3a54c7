"""Running the studies, and writing what they found.

The folder holds, beside one file of finished units per study, ``summary.json``, from
which the report shows them, ``bench.md`` and ``bench.html``, a fragment for other
pages. They cover every study of the profile that has records of the present version of
the code, so that studies may be run one at a time.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from dpaudit.audit.identity import code_version
from dpaudit.reports.bench.cost import Cost
from dpaudit.reports.bench.coverage import Coverage
from dpaudit.reports.bench.page import render_html, render_markdown
from dpaudit.reports.bench.refutation import Refutation
from dpaudit.reports.bench.runner import carry_out
from dpaudit.reports.bench.store import Store
from dpaudit.reports.bench.study import PROFILES, Study
from dpaudit.reports.bench.suite import SuiteBounds
from dpaudit.reports.bench.summary import Findings, Summary
from dpaudit.reports.bench.tightness import Tightness
from dpaudit.validation import check_count, check_name

__all__ = ["STUDIES", "bench_audit", "write_up"]

STUDIES: tuple[Study, ...] = (
    Coverage(),
    Tightness(),
    Refutation(),
    SuiteBounds(),
    Cost(),
)
"""In the order in which they run."""


def bench_audit(
    output: Path,
    *,
    profile: str = "quick",
    workers: int | None = None,
    only: Sequence[str] = (),
    studies: Sequence[Study] = STUDIES,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[Findings]:
    """Run the studies of a profile, as far as they are not finished, and write up.

    Parameters
    ----------
    output : Path
        A folder, created if need be. Finished units found in it are not repeated.
    profile : {"ci", "quick", "full"}
    workers : int, optional
        Processes; by default one per core. No figure but times depends on it.
    only : sequence of str
        Names of the studies to run; by default all.
    studies : sequence of Study
        What there is to run.
    progress : callable, optional
        Called with the name of a study, the units done, and all its units.

    Returns
    -------
    list of Findings
        Of every study that has records.

    Raises
    ------
    InputError
        If an argument is not allowed, or the folder cannot be written to.
    """
    check_name("profile", profile, PROFILES)
    names = [study.name for study in studies]
    chosen = [check_name("study", name, names) for name in only] or names
    workers = check_count("workers", workers or os.cpu_count() or 1)
    output = Path(output)
    code = code_version()
    found = []
    for study in studies:
        store = Store(output, study.name, code)
        if study.name in chosen:
            name = study.name
            carry_out(
                study,
                profile,
                store,
                workers=workers,
                progress=progress and (lambda k, n, name=name: progress(name, k, n)),
            )
        units = study.units(profile)
        records = store.load(units)
        if records:
            tables = tuple(t for t in study.tables(profile, records) if t.rows)
            found.append(
                Findings(study.name, study.title, len(records), len(units), tables)
            )
    write_up(output, Summary(profile, code, tuple(found)))
    return found


def write_up(output: Path, summary: Summary) -> None:
    """Write ``summary.json``, ``bench.md`` and ``bench.html``."""
    summary.save(output)
    for name, render in (("bench.md", render_markdown), ("bench.html", render_html)):
        (output / name).write_text(render(summary), encoding="utf-8")
