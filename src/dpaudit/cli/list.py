"""``dpaudit list``."""

import json

import click

from dpaudit.cli.options import json_option

__all__ = ["list_command"]


@click.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List the mechanisms of the catalogue."""
    from dpaudit.algorithms import CATALOGUE

    rows = []
    for entry in CATALOGUE.values():
        mechanism = entry.build()
        rows.append(
            {
                "name": entry.name,
                "family": entry.family,
                "relation": mechanism.relation.value,
                "claim": str(mechanism.claim),
                "source": entry.source,
                "summary": entry.summary,
            }
        )
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    columns = ("name", "family", "relation", "claim", "source")
    widths = {c: max(len(c), *(len(row[c]) for row in rows)) for c in columns}
    for row in ({c: c for c in columns}, *rows):
        click.echo("  ".join(row[c].ljust(widths[c]) for c in columns).rstrip())
