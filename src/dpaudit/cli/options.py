"""What the commands share: the JSON option, names that shells complete, colours."""

import os

import click
from click.shell_completion import CompletionItem

__all__ = ["completed_names", "highlighted", "json_option"]

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON on standard output."
)


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
