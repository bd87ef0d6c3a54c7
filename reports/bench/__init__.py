"""The auditor audited: studies that measure what dpaudit claims about itself.

- `coverage`: how often each bound that the package ships accuses the innocent.
- `equal-reals`: how often an audit refutes by the last bits of doubles.
- `tightness`: how near its lower bounds come to the truth.
- `refutation`: how many releases a refutation takes, against the information limit.
- `limits`: the same for black boxes of known laws, at two confidences.
- `peers`: what other tools' methods make of the same scores and black boxes.
- `suite`: lower bounds on the standard suite, against the best published ones.
- `cost`: the engine's share of an audit's time, and its memory.
- `replay`: the time of a recorded execution, and its memory.

`bench_audit` runs them. Its folder holds, beside the file of finished units
(`dpaudit.reports.store`), with which the same call resumes where it was interrupted,
``summary.json``, from which the report shows them, ``bench.md`` and ``bench.html``, a
fragment for other pages. They cover every study of the profile that has records of the
present version of the code, so that studies may be run one at a time.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path

from dpaudit.audit.keeping.database import tell
from dpaudit.audit.keeping.identity import code_version
from dpaudit.profiles import PROFILES
from dpaudit.reports.bench.cost import Cost, Replaying
from dpaudit.reports.bench.coverage import Coverage
from dpaudit.reports.bench.equal_reals import EqualRealsStudy
from dpaudit.reports.bench.limits import Limits
from dpaudit.reports.bench.lower_bounds import SuiteBounds, Tightness
from dpaudit.reports.bench.peers import Peers
from dpaudit.reports.bench.refutation import RefutationStudy
from dpaudit.reports.bench.study import (
    Study,
    StudyFindings,
    Summary,
    TargetTable,
    Unit,
    render_html,
    render_markdown,
)
from dpaudit.reports.runner import Job, WorkProgress, carry_out
from dpaudit.reports.store import STORE, WorkStore
from dpaudit.validation import check_name

__all__ = ["STUDIES", "Study", "TargetTable", "Unit", "bench_audit"]

STUDIES: tuple[Study, ...] = (
    Coverage(),
    EqualRealsStudy(),
    Tightness(),
    RefutationStudy(),
    Limits(),
    Peers(),
    SuiteBounds(),
    Cost(),
    Replaying(),
)
"""In the order in which they run."""


def bench_audit(
    output: Path,
    *,
    profile: str = "quick",
    executor: Executor | None = None,
    only: Sequence[str] = (),
    studies: Sequence[Study] = STUDIES,
    progress: Callable[[WorkProgress], None] | None = None,
) -> list[StudyFindings]:
    """Run the studies of a profile, as far as they are not finished, and write up.

    ``output``: a folder, created if need be. Finished units found in it are not
    repeated. ``executor``: where to work; by default here. No figure but times depends
    on it. ``only``: names of the studies to run; by default all. ``studies``: what
    there is to run. ``progress``: called with how far the work is.

    Raises `InputError` if an argument is not allowed, or the folder cannot be written
    to.

    The findings are those of every study that has records.
    """
    check_name("profile", profile, PROFILES)
    names = [study.name for study in studies]
    chosen = [check_name("study", name, names) for name in only] or names
    output = Path(output)
    code = code_version()
    store = WorkStore(output / STORE)
    store.prepare()
    for old in sorted(output.glob("*.jsonl")):
        tell(f"{str(old)!r} is of an older dpaudit, and left alone: remove it")
    units = [(study, study.units(profile)) for study in studies]
    jobs = [
        Job(
            name=unit.key,
            seed=unit.seed,
            work=partial(study.measure, unit),
            label=study.name,
            alone=not study.parallel,
        )
        for study, several in units
        if study.name in chosen
        for unit in several
    ]
    carry_out(jobs, store=store, executor=executor, progress=progress)
    kept = store.load([unit.key for _, several in units for unit in several])
    found = []
    for study, several in units:
        records = {unit: kept[unit.key] for unit in several if unit.key in kept}
        if records:
            tables = tuple(t for t in study.tables(profile, records) if t.rows)
            done, total = len(records), len(several)
            found.append(StudyFindings(study.name, study.title, done, total, tables))
    summary = Summary(profile, code, tuple(found))
    summary.save(output)
    for name, render in (("bench.md", render_markdown), ("bench.html", render_html)):
        (output / name).write_text(render(summary), encoding="utf-8")
    return found
