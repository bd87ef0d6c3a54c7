"""``dpaudit init``: a first audit to start from."""

from pathlib import Path

import click

from dpaudit.cli.exits import Command
from dpaudit.errors import InputError
from dpaudit.printable import printable

__all__ = ["init_command"]

_NAME = "test_my_mechanism.py"
_EXAMPLE = Path(__file__).with_name("init.txt")


@click.command(
    "init",
    cls=Command,
    examples=("dpaudit init && pytest test_my_mechanism.py",),
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
