"""What the commands share: options, the names they complete, and how they print."""

import inspect
import json
import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from dpaudit.cli.terminal import is_terminal
from dpaudit.errors import InputError
from dpaudit.printable import printable

__all__ = [
    "FILE",
    "FOLDER",
    "completed_names",
    "executor_options",
    "grouped",
    "instance_of",
    "json_option",
    "look_for_modules",
    "print_json",
    "print_result",
    "seed_option",
    "work_options",
]

_Function = Callable[..., Any]

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON on standard output."
)
seed_option = click.option("--seed", default=0)


def work_options(output: str) -> Callable[[_Function], _Function]:
    """Return a decorator for a command that keeps its work in a folder."""
    store = "Where finished work is kept, and found again [OUTPUT/work.db]."

    def decorate(command: _Function) -> _Function:
        for option in (
            executor_options(None),
            seed_option,
            click.option("--store", type=FILE, help=store),
            click.option("--output", type=FOLDER, default=Path(output)),
        ):
            command = option(command)
        return command

    return decorate


def grouped(
    name: str, *options: Callable[[_Function], _Function]
) -> Callable[[_Function], _Function]:
    """Return a decorator that gives options to a command as one argument: a dict.

    Parameters
    ----------
    name : str
        Of the argument.
    *options : callable
        What `click.option` returns, in the order of the help.
    """

    def decorate(command: _Function) -> _Function:
        @wraps(command)
        def gathered(**given: Any) -> Any:
            part = {key: given.pop(key) for key in keys}
            return command(**{name: part}, **given)

        before = len(getattr(gathered, "__click_params__", ()))
        for option in reversed(options):
            option(gathered)
        added = vars(gathered)["__click_params__"][before:]
        keys = [each.name for each in reversed(added)]
        return gathered

    return decorate


def executor_options(workers: int | None) -> Callable[[_Function], _Function]:
    """Return a decorator for a command whose work others may do: `by`, a dict.

    Parameters
    ----------
    workers : int or None
        How many processes there are by default, None for one per core.
    """
    told = "Processes that draw releases; they change nothing but the time."
    address = "A Dask cluster that works instead, as tcp://HOST:8786; see clusters.md."
    return grouped(
        "by",
        click.option(
            "--workers",
            type=int,
            default=workers,
            help="Processes [one per core]." if workers is None else told,
        ),
        click.option("--scheduler", metavar="ADDRESS", help=address),
    )


def completed_names(
    ctx: click.Context, parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Return the mechanisms of the catalogue whose names begin like that."""
    from dpaudit.algorithms import CATALOGUE

    return [CompletionItem(name) for name in CATALOGUE if name.startswith(begun)]


def look_for_modules(folder: Path | None = None) -> None:
    """Make the modules in a folder importable: as for ``python -m``, the current one.

    The script that is installed as ``dpaudit`` would not find them otherwise. Installed
    packages of the same name come later.
    """
    place = "" if folder is None else str(folder.absolute())
    if place not in sys.path[:1]:
        sys.path.insert(0, place)


def instance_of(subject: Any) -> Any:
    """Return an instance of a class, made without arguments; others as they are.

    Raises
    ------
    InputError
        If the class makes none.
    """
    if not isinstance(subject, type):
        return subject
    try:
        inspect.signature(subject).bind()
    except TypeError as error:
        name = printable(subject.__qualname__)
        raise InputError(
            f"{name} is a class of which {name}() makes no object ({error}): "
            f"name an object, made beside it as NAME = {name}(...)"
        ) from error
    except ValueError:  # of no signature that is known
        pass
    return subject()


def print_json(record: Any) -> None:
    """Print what is ready for JSON."""
    click.echo(json.dumps(record, indent=2, allow_nan=False))


def print_result(result: Any, as_json: bool, *, refuted: bool = False) -> None:
    """Print a result, or a list of them, as text or as JSON.

    In a text on a terminal, the verdict of what is refuted is red, but for NO_COLOR.
    """
    results = result if isinstance(result, list) else [result]
    if as_json:
        records = [each.to_dict() for each in results]
        print_json(records if isinstance(result, list) else records[0])
        return
    for text in map(str, results):
        if refuted and is_terminal(sys.stdout) and not os.environ.get("NO_COLOR"):
            red = click.style("REFUTED", fg="red", bold=True)
            text = text.replace("REFUTED", red, 1)
        click.echo(text)
