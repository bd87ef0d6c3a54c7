"""Before and after an audit: ``dpaudit init``, ``verify`` and ``export``."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from dpaudit.atomic import replacing
from dpaudit.cli.exits import Command, Exit
from dpaudit.cli.options import (
    FILE,
    instance_of,
    json_option,
    look_for_modules,
    print_result,
)
from dpaudit.cli.running import printing_aside
from dpaudit.errors import InputError
from dpaudit.printable import printable

__all__ = ["export_command", "init_command", "verify_command"]


_NAME = "test_my_mechanism.py"
_EXAMPLE = Path(__file__).with_name("init.txt")


@click.command("verify", cls=Command, examples=("dpaudit verify witness.json",))
@click.argument("witness", type=FILE)
@click.option(
    "--mechanism",
    "reference",
    metavar="MODULE:OBJECT",
    help="Test this mechanism; nothing that the witness names is imported.",
)
@click.option(
    "--import-from",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where the module of the mechanism is, if not installed [current folder].",
)
@click.option("--confidence", default=0.999)
@click.option(
    "--max-samples",
    type=int,
    help="Most releases on either side [10 times what the audit needed, at most 10^6].",
)
@click.option(
    "--to-the-end",
    is_flag=True,
    help="Draw them all, so that the counts may go into a bound (dpaudit bound).",
)
@click.option("--seed", type=int, help="[fresh randomness from the system]")
@json_option
def verify_command(
    witness: Path,
    reference: str | None,
    folder: Path | None,
    to_the_end: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Re-test a WITNESS on fresh randomness.

    Without --mechanism this imports and runs the code that the witness names: verify
    only what you would run. Modules are looked for in the current folder first, or in
    that of --import-from.
    """
    from dpaudit.audit import Witness, verify
    from dpaudit.audit.replay import load_witness, verify_replay
    from dpaudit.codec import load_reference

    evidence = load_witness(witness)
    look_for_modules(folder)
    if folder is not None:
        evidence = replace(evidence, mechanism=_found_in(folder, evidence.mechanism))
    options["mechanism"] = None
    if reference is not None:
        with printing_aside():
            options["mechanism"] = instance_of(load_reference(reference))
    if to_the_end and not isinstance(evidence, Witness):
        raise InputError("--to-the-end is for witnesses of events; this one replays")
    verification: Any
    with printing_aside():
        if isinstance(evidence, Witness):
            stops = not to_the_end
            verification = verify(evidence, stop_when_confirmed=stops, **options)
            founded = verification.founded
        else:
            verification, founded = verify_replay(evidence, **options), True
    print_result(verification, as_json)
    if not founded:
        return Exit.INPUT_ERROR
    return Exit.REFUTED if verification.confirmed else 0


def _found_in(folder: Path, stored: Any) -> Any:
    """Return a mechanism of a witness with its file, if it names one, in a folder."""
    file, _, name = str((stored or {}).get("$reference", "")).rpartition(":")
    if not file.endswith(".py"):  # a module is found by its name
        return stored
    kept = folder / file if (folder / file).is_file() else folder / Path(file).name
    return {"$reference": f"{kept.absolute()}:{name}"}


@click.command(
    "export", cls=Command, examples=("dpaudit export audits.db --output audits.csv",)
)
@click.argument("store", type=FILE)
@click.option(
    "--format", "format_", type=click.Choice(["csv", "parquet"]), default="csv"
)
@click.option("--output", type=FILE, required=True, help="Where to write it.")
def export_command(store: Path, format_: str, output: Path) -> int:
    """Write the finished audits of a STORE as one table.

    It reads figures, and runs nothing that the store holds. A result that is damaged is
    left out and named on standard error. The table of the others is written, and the
    exit code is 2. In CSV, text that a spreadsheet would take for a formula has an
    apostrophe in front.
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
    return Exit.INPUT_ERROR if damage else 0


@click.command(
    "init", cls=Command, examples=("dpaudit init && pytest test_my_mechanism.py",)
)
@click.argument(
    "path", default=Path(_NAME), metavar="[PATH]", type=click.Path(path_type=Path)
)
def init_command(path: Path) -> None:
    """Write an example of a test that audits a mechanism.

    PATH is a file or a folder [test_my_mechanism.py]; no file is overwritten.
    """
    if path.is_dir():
        path /= _NAME
    if path.suffix != ".py":
        raise InputError(f"the name of the test must end in .py, got {str(path)!r}")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(_EXAMPLE.read_text(encoding="utf-8"))
    except FileExistsError:
        raise InputError(f"{str(path)!r} exists, and is not overwritten") from None
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from error
    shown = printable(path)
    click.echo(f"wrote {shown}: run pytest {shown}")
