"""``dpaudit report``, and its parts: run, check, libraries, third-party, tour."""

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from dpaudit.cli.exits import INPUT_ERROR, OWN_ERROR, Command, Group, ended
from dpaudit.cli.running import crew, profile_option, steps, workers_option
from dpaudit.printable import printable, said

__all__ = ["report_command"]

_INCOMPLETE = 1
_FOLDER = click.Path(file_okay=False, path_type=Path)
_FILE = click.Path(dir_okay=False, path_type=Path)

_seed = click.option("--seed", type=int, default=0, show_default=True)
_third_party = click.option(
    "--output", type=_FOLDER, default=Path("build/third-party"), show_default=True
)


@click.group(
    "report",
    cls=Group,
    invoke_without_command=True,
    examples=(
        "dpaudit report --profile quick --output build/report",
        "dpaudit report --section theorems --profile standard",
    ),
)
@profile_option
@click.option("--section", "sections", multiple=True, metavar="NAME", help="[all]")
@click.option("--output", type=_FOLDER, default=Path("build/report"), show_default=True)
@click.option(
    "--store",
    type=_FILE,
    help="Where finished work is kept, and found again [OUTPUT/work.db].",
)
@_seed
@workers_option
@click.pass_context
def report_command(ctx: click.Context, /, **options: Any) -> int:
    """Write the comparison report and print where to open it.

    A report that was stopped goes on when the same command is given again. The exit
    code is 2 or 3 if a section failed, which the page shows beside the others.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    return ended(ctx, partial(_write, **options))


def _write(workers: int | None, **options: Any) -> int:
    from dpaudit.errors import DPAuditError
    from dpaudit.reports import write_report

    with crew(workers, later=True) as executor, steps() as show:
        written = write_report(executor=executor, progress=show, **options)
    click.echo(printable(written.index))
    for name, error in written.failed.items():
        kind = "page" if "/" in name else "section"
        line = printable(f"{kind} {name!r} failed: {said(error)}")
        click.echo(f"dpaudit: {line}", err=True)
    if not written.failed:
        return 0
    ours = any(not isinstance(each, DPAuditError) for each in written.failed.values())
    return OWN_ERROR if ours else INPUT_ERROR


@report_command.command(
    "run",
    cls=Command,
    examples=("dpaudit report run captured-variance --profile quick",),
)
@click.argument("experiments", metavar="EXPERIMENT...", nargs=-1, required=True)
@profile_option
@click.option("--mechanisms", metavar="NAME,...", help="Some of them only.")
@click.option("--output", type=_FOLDER, help="Where to write tables as CSV files.")
@click.option("--store", type=_FILE, help="Where to keep finished work [nowhere].")
@_seed
@workers_option
def run_command(
    experiments: tuple[str, ...],
    profile: str,
    mechanisms: str | None,
    output: Path | None,
    store: Path | None,
    seed: int,
    workers: int | None,
) -> None:
    """Carry out single experiments of the report.

    It says how long that took and, where the report draws conclusions from these tables
    alone, what they are.
    """
    from dpaudit.atomic import replacing
    from dpaudit.reports.escaping import csv_text
    from dpaudit.reports.experiment import run
    from dpaudit.reports.sections import all_sections, plan
    from dpaudit.reports.store import WorkStore
    from dpaudit.reports.writer import DIGITS
    from dpaudit.validation import check_name

    everything = plan(profile, seed)
    chosen = {
        name: everything[check_name("experiment", name, tuple(everything))]
        for name in experiments
    }
    if mechanisms is not None:
        some = mechanisms.split(",")
        for name, each in chosen.items():
            for one in some:
                check_name("mechanism", one, each.mechanisms)
            chosen[name] = replace(each, mechanisms=tuple(some))
    kept = None if store is None else WorkStore(store)
    if kept is not None:
        kept.prepare()
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
    tables = {}
    with crew(workers, later=True) as executor, steps() as show:
        for name, each in chosen.items():
            start = time.monotonic()
            table = run(each, store=kept, executor=executor, progress=show)
            seconds = time.monotonic() - start
            tables[name] = table
            click.echo(f"{each.title}: {len(table):,} rows in {seconds:.1f} s")
            if output is not None:
                with replacing(output / f"{name}.csv") as new:
                    new.write_text(csv_text(table, digits=DIGITS), encoding="utf-8")
    if mechanisms is None:
        for section in all_sections().values():
            for names, find in section.notes.items():
                if set(names) <= set(tables):
                    click.echo("\n".join(find(*(tables[name] for name in names))))


@report_command.command(
    "check",
    cls=Command,
    examples=(
        "dpaudit report check build/report",
        "dpaudit report check build/compare/index.html --no-sections",
    ),
)
@click.argument("site", metavar="FOLDER", type=click.Path(path_type=Path))
@click.option(
    "--sections/--no-sections",
    default=True,
    help="Whether it must have all sections and figures of the report.",
)
def check_command(site: Path, sections: bool) -> int:
    """Check that a site is whole: links, headings, pictures, and nothing fetched.

    FOLDER may be a page, too, which is then checked alone. The exit code is 1 if
    something is wrong, and each problem is named, with its page and line.
    """
    from dpaudit.reports.check import Site, faults, missing

    found = Site(site)
    problems = [*faults(found), *(missing(found) if sections else ())]
    for problem in problems:
        click.echo(printable(f"{site}: {problem}"), err=True)
    if not problems:
        whole = "all sections and figures, " if sections else ""
        size = "" if found.alone else f"{sum(found.files.values()) / 1e6:.1f} MB, "
        pages = "1 page" if len(found.pages) == 1 else f"{len(found.pages):,} pages"
        told = f"{site}: {pages}, {size}{whole}nothing fetched from elsewhere"
        click.echo(printable(told))
    return _INCOMPLETE if problems else 0


@report_command.command(
    "libraries",
    cls=Command,
    examples=("dpaudit report libraries --repetitions 5",),
)
@_third_party
@click.option("--repetitions", type=int, default=20, show_default=True)
@click.option("--limit", type=float, default=60.0, help="Seconds for a fit.")
@_seed
def libraries_command(output: Path, repetitions: int, limit: float, seed: int) -> None:
    """Compare the PCA of other libraries with ours, for the report.

    Libraries that are not installed are left out, and named.
    """
    from dpaudit.reports.sections.libraries.measures import compare, installed

    contenders, gone = installed()
    for sentence in gone:
        click.echo(sentence, err=True)
    found = compare(
        contenders,
        repetitions=repetitions,
        limit_s=limit,
        seed=seed,
        progress=lambda line: click.echo(line, err=True),
    )
    click.echo(printable(f"written to {found.save(output)}"))


@report_command.command(
    "third-party",
    cls=Command,
    examples=("dpaudit report third-party diffprivlib-pca --max-samples 2000",),
)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@_third_party
@click.option("--max-samples", type=int, help="Releases a side [by name].")
@click.option("--confidence", type=float, default=0.999, show_default=True)
@_seed
@workers_option
def third_party_command(
    names: tuple[str, ...], output: Path, workers: int | None, **options: Any
) -> None:
    """Audit the mechanisms of other libraries [all that are installed].

    An interrupted run goes on. The exit code is 0 if the audits ran, whatever they say.
    """
    from dpaudit.reports.sections.libraries.audits import audited, verdict_table

    def tell(line: str) -> None:
        click.echo(line, err=True)

    with crew(workers, later=True) as executor, steps() as show:
        findings = audited(
            output, names, executor=executor, progress=show, tell=tell, **options
        )
    if findings:
        click.echo(verdict_table(findings))
        click.echo(printable(f"written to {output}"))


@report_command.command(
    "tour",
    cls=Command,
    examples=(
        "dpaudit report tour diffprivlib",
        "dpaudit report tour --shelf my_shelf --output audits",
    ),
)
@click.argument("names", metavar="[SUBJECT|LIBRARY]...", nargs=-1)
@_third_party
@click.option(
    "--shelf",
    "shelves",
    multiple=True,
    metavar="MODULE",
    help="Modules that list what to audit [those of dpaudit].",
)
@click.option("--seconds", type=float, help="About, for the releases of one [12].")
@click.option("--limit", "limit_s", type=float, help="Seconds for a visit [120].")
@click.option("--max-samples", type=int, help="Releases a side [200,000].")
@_seed
@workers_option
def tour_command(
    names: tuple[str, ...],
    output: Path,
    shelves: tuple[str, ...],
    workers: int | None,
    **options: Any,
) -> None:
    """Audit what other libraries ship, by replay and as black boxes [all of it].

    Each in a process of its own. What is not installed, hangs or crashes is named, and
    the rest stands. An interrupted tour goes on. The exit code is 0 if it ended,
    whatever it says.
    """
    from dpaudit.cli.modules import look_for_modules
    from dpaudit.reports.sections.libraries.tour import SHELVES, tour_table, toured

    look_for_modules(None)
    given = {name: value for name, value in options.items() if value is not None}
    with crew(workers, later=True) as executor, steps() as show:
        records = toured(
            output,
            names,
            shelves=shelves or SHELVES,
            executor=executor,
            progress=show,
            **given,
        )
    click.echo(tour_table(records))
    click.echo(printable(f"written to {output}"))
