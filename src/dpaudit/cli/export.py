"""``dpaudit export``."""

from pathlib import Path

import click

from dpaudit.atomic import replacing
from dpaudit.cli.exits import Command
from dpaudit.errors import InputError

__all__ = ["export_command"]


@click.command("export", cls=Command)
@click.argument("store", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--format",
    "format_",
    type=click.Choice(["csv", "parquet"]),
    default="csv",
    show_default=True,
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="Where to write it.",
)
def export_command(store: Path, format_: str, output: Path) -> None:
    """Write the finished audits of a STORE as one table, a row each.

    It reads figures, and runs nothing that the store holds. In CSV, text that a
    spreadsheet would take for a formula has an apostrophe in front.
    """
    from dpaudit.audit import Store
    from dpaudit.reports.escaping import csv_text

    frame = Store(store).to_pandas()
    try:
        with replacing(output) as new:
            if format_ == "csv":
                new.write_text(csv_text(frame), encoding="utf-8")
            else:
                frame.to_parquet(new, index=False, engine="pyarrow")
    except ImportError as error:
        raise InputError(
            "--format parquet needs pyarrow: pip install pyarrow, or use --format csv"
        ) from error
    click.echo(f"{len(frame):,} audits written to {output}")
