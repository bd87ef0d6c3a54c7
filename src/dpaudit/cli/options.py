"""What the commands share: the JSON option."""

import click

__all__ = ["json_option"]

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON on standard output."
)
