"""``dpaudit report``."""

from pathlib import Path

import click

from dpaudit.cli.exits import Command
from dpaudit.cli.running import crew, steps

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
@click.option(
    "--store",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where finished work is kept, and found again [OUTPUT/work.db].",
)
@click.option("--workers", type=int, help="Processes [one per core].")
def report_command(
    profile: str, output: Path, seed: int, store: Path | None, workers: int | None
) -> None:
    """Write the comparison report and print where to open it.

    A report that was stopped goes on when the same command is given again.
    """
    from dpaudit.reports import write_report

    with crew(workers) as executor, steps() as show:
        index = write_report(
            output,
            profile=profile,
            seed=seed,
            store=store,
            progress=show,
            executor=executor,
        )
    click.echo(str(index))
