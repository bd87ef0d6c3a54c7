"""``dpaudit bench-audit``."""

from pathlib import Path

import click

from dpaudit.cli.exits import Command
from dpaudit.cli.running import crew, profile_option, steps, workers_option

__all__ = ["bench_audit_command"]

_UNSOUND = 1


@click.command(
    "bench-audit",
    cls=Command,
    examples=("dpaudit bench-audit --only limits --profile standard",),
)
@profile_option
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("build/bench"),
    show_default=True,
    help="Where finished work is kept, and found again.",
)
@workers_option
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
    from dpaudit.reports.bench.summary import render_text

    with crew(workers, later=True) as executor, steps() as show:
        found = bench_audit(
            output, profile=profile, executor=executor, only=only, progress=show
        )
    for each in found:
        for table in each.tables:
            click.echo(f"\n{render_text(table)}")
        click.echo(f"\n{each.title}: {each.met} targets met, {each.missed} NOT MET")
    click.echo(f"\n{output / 'bench.md'}")
    failed = any(not each.sound or (strict and each.missed) for each in found)
    return _UNSOUND if failed else 0
