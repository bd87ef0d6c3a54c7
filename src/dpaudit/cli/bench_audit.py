"""``dpaudit bench-audit``."""

import sys
from collections.abc import Callable
from pathlib import Path

import click

from dpaudit.cli.exits import Command

__all__ = ["bench_audit_command"]

_UNSOUND = 1


@click.command("bench-audit", cls=Command)
@click.option(
    "--profile",
    default="quick",
    show_default=True,
    help="How much work: ci, quick or full.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("build/bench"),
    show_default=True,
    help="Where finished work is kept, and found again.",
)
@click.option("--workers", type=int, help="Processes [one per core].")
@click.option("--only", "only", multiple=True, metavar="STUDY", help="[all]")
@click.option("--strict", is_flag=True, help="Fail if any target is not met.")
def bench_audit_command(
    profile: str,
    output: Path,
    workers: int | None,
    only: tuple[str, ...],
    strict: bool,
) -> int:
    """Audit the auditor: null coverage, tightness, speed, against stated targets.

    The exit code is 1 if a bound accuses mechanisms that keep their promise more often
    than it may. An interrupted run resumes.
    """
    from dpaudit.reports.bench import bench_audit
    from dpaudit.reports.bench.page import render_text

    found = bench_audit(
        output, profile=profile, workers=workers, only=only, progress=_steps()
    )
    for each in found:
        for table in each.tables:
            click.echo(f"\n{render_text(table)}")
        click.echo(f"\n{each.title}: {each.met} targets met, {each.missed} NOT MET")
    click.echo(f"\n{output / 'bench.md'}")
    failed = any(not each.sound or (strict and each.missed) for each in found)
    return _UNSOUND if failed else 0


def _steps() -> Callable[[str, int, int], None]:
    """Return a callback that tells the progress on standard error."""
    last = ""

    def show(name: str, done: int, total: int) -> None:
        nonlocal last
        if sys.stderr.isatty():
            end = "\n" if done == total else ""
            click.echo(
                f"\r\033[K{name}: {done:,} of {total:,}{end}", err=True, nl=False
            )
        elif name != last:
            click.echo(f"{name}: {total:,} units of work, {done:,} done", err=True)
        last = name

    return show
