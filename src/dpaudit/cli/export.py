"""``dpaudit export``."""

from pathlib import Path

import click

from dpaudit.atomic import replacing
from dpaudit.cli.exits import INPUT_ERROR, Command
from dpaudit.errors import InputError
from dpaudit.printable import printable

__all__ = ["export_command"]


@click.command(
    "export",
    cls=Command,
    examples=("dpaudit export audits.db --output audits.csv",),
)
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
def export_command(store: Path, format_: str, output: Path) -> int:
    """Write the finished audits of a STORE as one table, a row each.

    It reads figures, and runs nothing that the store holds. A result that is damaged is
    left out and named on standard error. The table of the others is written, and the
    exit code is 2: it is not the whole. In CSV, text that a spreadsheet would take for
    a formula has an apostrophe in front.
    """
    from dpaudit.audit import Store
    from dpaudit.reports.escaping import csv_text

    if output.exists() and store.exists() and output.samefile(store):
        raise InputError(f"cannot write {str(output)!r}: it is the store itself")
    frame, damage = Store(store).table()
    try:
        with replacing(output) as new:
            if format_ == "csv":
                text = csv_text(frame)
                new.write_text(text, encoding="utf-8", errors="backslashreplace")
            else:
                frame.to_parquet(new, index=False, engine="pyarrow")
    except InputError:
        raise
    except ImportError as error:
        raise InputError(
            "--format parquet needs pyarrow: pip install pyarrow, or use --format csv"
        ) from error
    except (ValueError, TypeError) as error:
        raise InputError(f"cannot write {str(output)!r}: {error}") from error
    audits = "1 audit" if len(frame) == 1 else f"{len(frame):,} audits"
    click.echo(f"{audits} written to {printable(output)}")
    for sentence in damage:
        click.echo(f"dpaudit: {printable(sentence)}", err=True)
    return INPUT_ERROR if damage else 0
