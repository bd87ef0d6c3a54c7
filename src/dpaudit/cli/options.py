"""What the commands share: groups of options, names that shells complete, colours."""

import os
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from dpaudit.errors import InputError

if TYPE_CHECKING:
    from dpaudit.audit import Budget

__all__ = [
    "budget_of",
    "budget_options",
    "completed_names",
    "grouped",
    "highlighted",
    "is_default",
    "json_option",
]

_Function = Callable[..., Any]

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON on standard output."
)


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
        keys = [each.name for each in vars(gathered)["__click_params__"][before:]]
        return gathered

    return decorate


def is_default(option: str) -> bool:
    """Say whether an option of the command that runs was not given."""
    source = click.get_current_context().get_parameter_source(option)
    return source is click.core.ParameterSource.DEFAULT


budget_options = grouped(
    "budget",
    click.option(
        "--max-samples",
        "releases",
        type=int,
        default=200_000,
        show_default=True,
        help="Most releases to draw on either side.",
    ),
    click.option(
        "--max-seconds",
        "seconds",
        type=float,
        help="About how long to go on at most; the verdict so far is printed.",
    ),
    click.option(
        "--refine",
        type=float,
        default=10.0,
        show_default=True,
        help="A refuted audit goes on for so many times as many releases, for its "
        "bounds.",
    ),
    click.option(
        "--to-the-end",
        "stop",
        is_flag=True,
        flag_value=False,
        default=True,
        help="Go on to --max-samples after a refutation, for tighter bounds.",
    ),
)
"""The fields of a `dpaudit.audit.Budget`: see `budget_of`."""


def budget_of(options: dict[str, Any]) -> "Budget":
    """Return the budget that options make; errors name the options."""
    from dpaudit.audit import Budget

    try:
        return Budget(**options)
    except InputError as error:
        field, _, fault = str(error).partition(" ")
        raise InputError(f"--{_SPELT.get(field, field)} {fault}") from None


_SPELT = {"releases": "max-samples", "seconds": "max-seconds"}


def completed_names(
    ctx: click.Context, parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Return the mechanisms of the catalogue whose names begin like that."""
    from dpaudit.algorithms import CATALOGUE

    return [CompletionItem(name) for name in CATALOGUE if name.startswith(begun)]


def highlighted(text: str, *, refuted: bool) -> str:
    """Return a result with a red verdict, if it is REFUTED.

    On a terminal, that is: elsewhere click leaves colours out; and NO_COLOR, if it is
    set and not empty, leaves them out everywhere (https://no-color.org).
    """
    if not refuted or os.environ.get("NO_COLOR"):
        return text
    return text.replace("REFUTED", click.style("REFUTED", fg="red", bold=True), 1)
