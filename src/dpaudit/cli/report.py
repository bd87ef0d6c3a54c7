"""``dpaudit report``."""

import sys
from collections.abc import Callable
from pathlib import Path

import click

from dpaudit.cli.exits import Command

__all__ = ["report_command"]


@click.command("report", cls=Command)
@click.option("--profile", default="quick", show_default=True)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("build/report"),
    show_default=True,
)
@click.option("--seed", type=int, default=0, show_default=True)
def report_command(profile: str, output: Path, seed: int) -> None:
    """Write the comparison report and print where to open it."""
    from dpaudit.reports import write_report

    index = write_report(output, profile=profile, seed=seed, progress=_steps())
    click.echo(str(index))


def _steps() -> Callable[[str, float], None]:
    """Return a callback that tells each step of the report on standard error."""
    last = ""

    def show(label: str, fraction: float) -> None:
        nonlocal last
        if sys.stderr.isatty():
            click.echo(f"\r\033[K{fraction:4.0%}  {label}", err=True, nl=False)
            if fraction >= 1:
                click.echo("", err=True)
        elif label != last:
            click.echo(f"{fraction:4.0%}  {label}", err=True)
        last = label

    return show
