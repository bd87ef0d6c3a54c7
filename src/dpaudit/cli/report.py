"""``dpaudit report``, with its parts, and ``dpaudit bench-audit``."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from dpaudit.cli.exits import Command, Group, ended, failed
from dpaudit.cli.options import (
    FILE,
    FOLDER,
    executor_options,
    instance_of,
    json_option,
    look_for_modules,
    print_json,
    seed_option,
    work_options,
)
from dpaudit.cli.running import working
from dpaudit.cli.terminal import print_table
from dpaudit.printable import printable, said
from dpaudit.profiles import PROFILES

__all__ = ["bench_audit_command", "report_command"]

_UNSOUND = _CHANGED = _BROKEN = 1

_profile = click.option(
    "--profile", default="quick", help=f"How much of everything: {', '.join(PROFILES)}."
)
_third_party = click.option("--output", type=FOLDER, default=Path("build/third-party"))


@click.group(
    "report",
    cls=Group,
    invoke_without_command=True,
    examples=(
        "dpaudit report --profile quick --output build/report",
        "dpaudit report --section theorems --profile standard",
    ),
)
@_profile
@click.option("--section", "sections", multiple=True, metavar="NAME", help="[all]")
@work_options("build/report")
@click.pass_context
def report_command(ctx: click.Context, /, **options: Any) -> int:
    """Write the comparison report and print where to open it.

    The same command goes on where it was stopped. The exit code is 2 or 3 if a section
    failed, which the page shows beside the others.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    return ended(ctx, partial(_write, **options))


def _write(by: dict[str, Any], **options: Any) -> int:
    from dpaudit.reports import write_report

    with working(**by) as means:
        written = write_report(**means, **options)
    click.echo(printable(written.index))

    def told(name: str, error: Exception) -> str:
        kind = "page" if "/" in name else "section"
        return printable(f"{kind} {name!r} failed: {said(error)}")

    return failed(written.failed, told)


def _part(*examples: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator for a command that is a part of the report."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        name = function.__name__.removesuffix("_command").replace("_", "-")
        return report_command.command(name, cls=Command, examples=examples)(function)

    return decorate


@_part("dpaudit report run captured-variance --profile quick")
@click.argument("experiments", metavar="EXPERIMENT...", nargs=-1, required=True)
@_profile
@click.option("--mechanisms", metavar="NAME,...", help="Some of them only.")
@click.option("--output", type=FOLDER, help="Where to write tables as CSV files.")
@click.option("--store", type=FILE, help="Where to keep finished work [nowhere].")
@seed_option
@executor_options(None)
def run_command(
    experiments: tuple[str, ...],
    profile: str,
    mechanisms: str | None,
    output: Path | None,
    store: Path | None,
    seed: int,
    by: dict[str, Any],
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
    with working(**by) as means:
        for name, each in chosen.items():
            start = time.monotonic()
            tables[name] = table = run(each, store=kept, **means)
            seconds = time.monotonic() - start
            click.echo(f"{each.title}: {len(table):,} rows in {seconds:.1f} s")
            if output is not None:
                with replacing(output / f"{name}.csv") as new:
                    new.write_text(csv_text(table, digits=DIGITS), encoding="utf-8")
    if mechanisms is None:
        for section in all_sections().values():
            for names, find in section.notes.items():
                if set(names) <= set(tables):
                    click.echo("\n".join(find(*(tables[name] for name in names))))


def _tell(line: str) -> None:
    click.echo(line, err=True)


@_part("dpaudit report diff build/last-week build/report --page changes.html")
@click.argument("old", type=FOLDER)
@click.argument("new", type=FOLDER)
@click.option("--page", type=FILE, help="Where to write it as a page.")
@json_option
def diff_command(old: Path, new: Path, page: Path | None, as_json: bool) -> int:
    """Say what changed between two reports, by their tables.

    It compares verdicts, claims, bounds, and errors beyond what chance explains, and
    names what came and what went. The exit code is 1 if a verdict, a claim, an error or
    an exact number changed.
    """
    from dpaudit.atomic import replacing
    from dpaudit.reports.differences import compare_reports, page_of

    found = compare_reports(old, new)
    if page is not None:
        with replacing(page) as file:
            file.write_text(page_of(found, old.name, new.name), encoding="utf-8")
    if as_json:
        print_json(found.to_dict())
    else:
        for line in found.lines():
            click.echo(printable(line))
    return _CHANGED if found.matters else 0


@_part("dpaudit report check build/report")
@click.argument("folder", type=FOLDER)
@click.option("--section", "sections", multiple=True, metavar="NAME", help="[all]")
def check_command(folder: Path, sections: tuple[str, ...]) -> int:
    """Say what is wrong with a written report: links, verdicts, ...

    Every link must lead to a file, and nothing may be fetched from elsewhere. Sections,
    figures and mechanisms must be there, pages must keep the order of a page, and the
    table of mechanisms must have the verdicts of report.json. The exit code is 1 if
    anything is wrong.
    """
    from dpaudit.errors import InputError
    from dpaudit.reports.checking import Site
    from dpaudit.reports.sections import all_sections
    from dpaudit.validation import check_name

    for name in sections:
        check_name("section", name, tuple(all_sections()))
    site = Site(folder)
    if "index.html" not in site.pages:
        raise InputError(f"FOLDER must be a written report, got {str(folder)!r}")
    found = site.check(*sections)
    for each in found or [f"{folder}: {len(site.pages)} pages, all well"]:
        click.echo(printable(each))
    return _BROKEN if found else 0


@_part("dpaudit report libraries --repetitions 5")
@_third_party
@click.option("--repetitions", default=20)
@click.option(
    "--limit", "limit_s", default=60.0, show_default=False, help="Seconds for a fit."
)
@seed_option
def libraries_command(output: Path, **options: Any) -> None:
    """Compare the PCA of other libraries with ours, for the report.

    Libraries that are not installed are left out, and named.
    """
    from dpaudit.reports.sections.libraries.measures import compare, installed

    contenders, gone = installed()
    for sentence in gone:
        _tell(sentence)
    found = compare(contenders, progress=_tell, **options)
    click.echo(printable(f"written to {found.save(output)}"))


@_part(
    "dpaudit report tour diffprivlib",
    "dpaudit report tour --subjects my_subjects --output audits",
)
@click.argument("names", metavar="[SUBJECT|LIBRARY]...", nargs=-1)
@_third_party
@click.option(
    "--subjects",
    "modules",
    multiple=True,
    metavar="MODULE",
    help="Modules that list what to audit [those of dpaudit].",
)
@click.option("--seconds", type=float, help="About how long to draw from each [12].")
@click.option("--limit", "limit_s", type=float, help="Most seconds for each [120].")
@click.option("--max-samples", type=int, help="Releases a side [200,000].")
@seed_option
@executor_options(None)
def tour_command(
    names: tuple[str, ...], output: Path, by: dict[str, Any], **options: Any
) -> None:
    """Audit what other libraries ship [all that dpaudit lists].

    Each is audited in a process of its own. What is not installed, hangs or crashes is
    named, and the tour goes on. The same command goes on where it was stopped. The exit
    code is 0 if the tour ended, whatever the verdicts are.
    """
    from dpaudit.reports.sections.libraries.tour import tour_lines, toured

    look_for_modules()
    given = {name: value for name, value in options.items() if value not in (None, ())}
    with working(**by) as means:
        records = toured(output, names, **means, **given)
    print_table(tour_lines(records))
    click.echo(printable(f"written to {output}"))


@click.command(
    "bench-audit",
    cls=Command,
    examples=("dpaudit bench-audit --only limits --profile standard",),
)
@_profile
@click.option(
    "--output",
    type=FOLDER,
    default=Path("build/bench"),
    help="Where finished work is kept, and found again.",
)
@executor_options(None)
@click.option("--only", multiple=True, metavar="STUDY", help="[all]")
@click.option("--also", multiple=True, metavar="MODULE:OBJECT", help="A further study.")
@click.option("--strict", is_flag=True, help="Fail if any target is not met.")
def bench_audit_command(
    output: Path,
    by: dict[str, Any],
    strict: bool,
    also: tuple[str, ...],
    **options: Any,
) -> int:
    """Measure the audit itself against stated targets.

    The exit code is 1 if a bound refutes true claims more often than it may. An
    interrupted run resumes.
    """
    from dpaudit.codec import load_reference
    from dpaudit.reports.bench import STUDIES, bench_audit
    from dpaudit.reports.escaping import plain

    if also:
        look_for_modules()
        further = tuple(instance_of(load_reference(each)) for each in also)
        options["studies"] = (*STUDIES, *further)
    with working(**by) as means:
        found = bench_audit(output, **means, **options)
    for each in found:
        for table in each.tables:
            click.echo(f"\n{plain(table.title)}")
            print_table([tuple(map(plain, line)) for line in table.lines])
        click.echo(f"\n{each.title}: {each.met} targets met, {each.missed} NOT MET")
    click.echo(f"\n{output / 'bench.md'}")
    unsound = any(not each.sound or (strict and each.missed) for each in found)
    return _UNSOUND if unsound else 0
