"""``dpaudit list``, which also writes the tables of mechanisms, and ``schema``."""

import json
from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import click

from dpaudit.cli.exits import Command
from dpaudit.cli.options import json_option, print_json
from dpaudit.cli.terminal import print_table
from dpaudit.validation import check_name

if TYPE_CHECKING:
    from dpaudit.algorithms import Entry

__all__ = ["list_command", "schema_command"]


@click.command(
    "list",
    cls=Command,
    examples=(
        "dpaudit list --family covariance --columns name,claim,verdict",
        "dpaudit list --refuted --search wishart",
    ),
)
@click.option("--family", "families", multiple=True, help="Only these; repeatable.")
@click.option(
    "--refuted/--not-refuted",
    default=None,
    help="Only those whose claim is refuted, or is not.",
)
@click.option(
    "--search", metavar="TEXT", help="Only those that are described with TEXT."
)
@click.option(
    "--columns",
    default="name,family,relation,claim,source,needs",
    help="Also constructor, summary, relations, truth, lost, exact, verdict.",
)
@click.option("--markdown", is_flag=True, help="Print a Markdown table.")
@json_option
def list_command(
    families: tuple[str, ...],
    refuted: bool | None,
    search: str | None,
    columns: str,
    markdown: bool,
    as_json: bool,
) -> None:
    """List the mechanisms of the catalogue."""
    from dpaudit.algorithms import CATALOGUE, names_of

    named = [name for family in families for name in names_of(family)]
    entries = [CATALOGUE[name] for name in named or CATALOGUE]
    entries = [e for e in entries if refuted in (None, e.expected_refuted)]
    if search is not None:
        entries = [entry for entry in entries if _has(entry, search.casefold())]
    if not entries:
        nothing = "no mechanism is like that: ask for less, or see all with"
        click.echo(f"dpaudit: {nothing} dpaudit list", err=True)
    if as_json:
        print_json([_record(entry) for entry in entries])
        return
    chosen = [
        _COLUMNS[check_name("--columns", column, tuple(_COLUMNS))]
        for column in columns.split(",")
    ]
    rows = [tuple(cell(entry) for _, cell in chosen) for entry in entries]
    heads = tuple(head for head, _ in chosen)
    if markdown:
        click.echo("\n".join(_markdown(heads, rows)))
    elif rows:
        print_table([heads, *rows])


@click.command(
    "schema",
    cls=Command,
    examples=("dpaudit schema audit > audit.schema.json", "dpaudit schema witness"),
)
@click.argument("name", required=False)
def schema_command(name: str | None) -> None:
    """Print the JSON schema of what a command writes, or of all.

    NAME is a command with --json (report-diff for report diff), or witness, report or
    pytest, for a file that is written. The schemas are of draft 2020-12.
    """
    text = files("dpaudit").joinpath("schemas.json").read_text(encoding="utf-8")
    schemas = json.loads(text)
    if name is not None:
        check_name("NAME", name, tuple(schemas["$defs"]))
        schemas["$ref"] = f"#/$defs/{name}"
    print_json(schemas)


def _has(entry: "Entry", text: str) -> bool:
    """Say whether what is known of an entry has a text, in upper or lower case."""
    return any(text in _COLUMNS[name][1](entry).casefold() for name in _SEARCHED)


def _record(entry: "Entry") -> dict[str, Any]:
    return {
        "name": entry.name,
        "family": entry.family,
        "relation": entry.relations[0].value,
        "relations": [relation.value for relation in entry.relations],
        "claim": str(entry.claim),
        "source": entry.source,
        "summary": entry.summary,
        "true_epsilon": None if entry.truth is None else str(entry.truth),
        "falls_within": entry.refutation and entry.refutation.releases,
        "extra": entry.extra,
        "installed": entry.installed,
    }


def _markdown(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    quoted = [head in ("name", "constructor") for head in heads]
    lines = [heads, tuple("---" for _ in heads)]
    lines += [
        tuple(f"`{c}`" if code else c for c, code in zip(row, quoted, strict=True))
        for row in rows
    ]
    return [f"| {' | '.join(line)} |" for line in lines]


def _claim(entry: "Entry") -> str:
    delta = "1e-5" if entry.approximate else "0"
    return f"({entry.epsilon:g}, {delta})"


def _needs(entry: "Entry") -> str:
    if entry.extra is None:
        return ""
    return entry.extra + ("" if entry.installed else " (not installed)")


def _truth(entry: "Entry") -> str:
    if entry.truth is None:
        return ""
    return f"{entry.truth:.3g}".replace("inf", "infinite")


def _exact(entry: "Entry") -> str:
    """Return what the worst pair loses at the claim's delta, if that is known."""
    from dpaudit.errors import UnsupportedError
    from dpaudit.mechanism import HasExactClaim, HasWorstCase

    mechanism = entry.build()
    if not isinstance(mechanism, HasExactClaim) or not isinstance(
        mechanism, HasWorstCase
    ):
        return ""
    try:
        exact = mechanism.exact_claim(mechanism.worst_case())
    except UnsupportedError:
        return ""
    at = entry.epsilon
    epsilon = exact.epsilon_at(1e-5 if entry.approximate else 0.0)
    if epsilon == float("inf"):
        return f"delta = {float(exact.delta_at(at)):.3f} at epsilon {at:g}"
    return f"({epsilon:.2g}, {'1e-5' if entry.approximate else '0'})"


def _verdict(entry: "Entry") -> str:
    if entry.refutation is None:
        return "not refuted"
    return f"**refuted** within {entry.refutation.releases:,} releases"


_SEARCHED = (
    *("name", "constructor", "family", "relations", "claim", "source", "summary"),
    "needs",
)
_COLUMNS: dict[str, tuple[str, Callable[["Entry"], str]]] = {
    "name": ("name", lambda entry: entry.name),
    "constructor": ("constructor", lambda entry: entry.made_by),
    "family": ("family", lambda entry: entry.family),
    "relation": ("relation", lambda entry: entry.relations[0].value),
    "relations": ("relations", lambda entry: ", ".join(map(str, entry.relations))),
    "claim": ("claim", _claim),
    "source": ("source", lambda entry: entry.source),
    "summary": ("what it is", lambda entry: entry.summary),
    "needs": ("needs", _needs),
    "truth": ("true epsilon", _truth),
    "lost": ("where it is lost", lambda entry: entry.lost),
    "exact": ("exact on the worst pair", _exact),
    "verdict": ("verdict", _verdict),
}
