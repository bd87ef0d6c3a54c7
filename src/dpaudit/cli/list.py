"""``dpaudit list``."""

import json
from typing import Any

import click

from dpaudit.cli.exits import Command
from dpaudit.cli.options import json_option

__all__ = ["list_command"]


@click.command("list", cls=Command)
@json_option
def list_command(as_json: bool) -> None:
    """List the mechanisms of the catalogue."""
    from dpaudit.algorithms import CATALOGUE

    rows: list[dict[str, Any]] = []
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
                "extra": entry.extra,
                "installed": entry.installed,
            }
        )
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        row["needs"] = _needs(row["extra"], row["installed"])
    columns = ("name", "family", "relation", "claim", "source", "needs")
    widths = {c: max(len(c), *(len(row[c]) for row in rows)) for c in columns}
    for row in ({c: c for c in columns}, *rows):
        click.echo("  ".join(row[c].ljust(widths[c]) for c in columns).rstrip())


def _needs(extra: str | None, installed: bool) -> str:
    if extra is None:
        return ""
    return f"dpaudit[{extra}]" + ("" if installed else " (not installed)")
