"""The command line: list, audit, verify, report.

Exit codes: 0 not refuted (for `verify`: not confirmed), 1 refuted (for `verify`:
confirmed), 2 usage or input error. Everything heavy is imported inside the commands,
so that ``dpaudit --help`` is quick.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dpaudit.errors import DPAuditError, InputError

__all__ = ["main"]

_REFUTED = 1
_INPUT_ERROR = 2

_json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON on standard output."
)


class _Group(click.Group):
    """Shows every intended error as one sentence, with exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except DPAuditError as error:
            click.echo(f"dpaudit: {error}", err=True)
            ctx.exit(_INPUT_ERROR)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            from dpaudit.validation import check_name

            check_name("command", args[0], self.list_commands(ctx))
            raise


@click.group(cls=_Group)
@click.version_option(package_name="dpaudit")
def main() -> None:
    """Audit differentially private mechanisms: refuted, or not refuted, with proof."""


@main.command("list")
@_json_option
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


@main.command("audit")
@click.argument("mechanism", metavar="NAME|MODULE:OBJECT")
@click.option("--epsilon", type=float, help="Epsilon of the claim [catalogue: 1].")
@click.option("--delta", type=float, help="Delta of the claim [catalogue: 1e-5].")
@click.option("--relation", help="add-remove or replace-one [catalogue: add-remove].")
@click.option(
    "--pair",
    "pair_reference",
    metavar="MODULE:OBJECT",
    help="A Pair of neighbouring datasets [the mechanism's own worst case].",
)
@click.option("--dimension", type=int, help="Columns of the worst-case pair [2].")
@click.option("--confidence", type=float, default=0.999, show_default=True)
@click.option(
    "--max-samples",
    type=int,
    default=200_000,
    show_default=True,
    help="Most releases to draw on either side.",
)
@click.option(
    "--to-the-end",
    is_flag=True,
    help="Go on to --max-samples after a refutation, for tighter bounds.",
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--witness",
    "witness_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the witness of a refutation.",
)
@_json_option
@click.pass_context
def audit_command(
    ctx: click.Context,
    mechanism: str,
    epsilon: float | None,
    delta: float | None,
    relation: str | None,
    pair_reference: str | None,
    dimension: int | None,
    confidence: float,
    max_samples: int,
    to_the_end: bool,
    seed: int,
    witness_path: Path | None,
    as_json: bool,
) -> None:
    """Audit a mechanism of the catalogue, or your own as MODULE:OBJECT.

    Your own is an object with a release method (and a claim and worst_case, or the
    options --epsilon and --pair), or a function (data, rng) -> array.
    """
    from dpaudit.audit import audit

    if witness_path is not None:
        _check_writable(witness_path)
    options: dict[str, Any]
    if ":" in mechanism:
        subject, options = _own_mechanism(mechanism, epsilon, delta, relation)
    else:
        subject = _catalogue_mechanism(mechanism, epsilon, delta, relation)
        options = {"name": mechanism}
    result = audit(
        subject,
        pair=_pair(subject, pair_reference, dimension, relation),
        confidence=confidence,
        max_samples=max_samples,
        seed=seed,
        stop_when_refuted=not to_the_end,
        progress=_progress(max_samples),
        **options,
    )
    if sys.stderr.isatty():
        click.echo("\r\033[K", err=True, nl=False)  # the progress line has served
    if result.witness is not None and witness_path is not None:
        result.witness.save(witness_path)
    if as_json:
        click.echo(json.dumps(result.to_dict(), indent=2, allow_nan=False))
    else:
        click.echo(str(result))
        if witness_path is not None:
            wrote = f"witness written to {witness_path}"
            nothing = "nothing refuted: no witness written"
            click.echo(f"  {wrote if result.witness else nothing}")
    ctx.exit(_REFUTED if result.refuted else 0)


@main.command("verify")
@click.argument("witness", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--mechanism",
    "reference",
    metavar="MODULE:OBJECT",
    help="The mechanism, where the witness does not name an importable one.",
)
@click.option("--confidence", type=float, help="[the witness's own]")
@click.option("--max-samples", type=int, help="[10 times what the audit needed]")
@click.option("--seed", type=int, help="[fresh randomness from the system]")
@_json_option
@click.pass_context
def verify_command(
    ctx: click.Context,
    witness: Path,
    reference: str | None,
    confidence: float | None,
    max_samples: int | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Re-test a WITNESS on fresh randomness (runs the code that it names)."""
    from dpaudit.audit import Witness, verify
    from dpaudit.codec import load_reference

    verification = verify(
        Witness.load(witness),
        mechanism=None if reference is None else load_reference(reference),
        confidence=confidence,
        max_samples=max_samples,
        seed=seed,
    )
    if as_json:
        click.echo(json.dumps(verification.to_dict(), indent=2, allow_nan=False))
    else:
        click.echo(str(verification))
    ctx.exit(_REFUTED if verification.confirmed else 0)


@main.command("report")
@click.option("--profile", default="quick", show_default=True)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("build/report"),
    show_default=True,
)
@click.option("--seed", type=int, default=0, show_default=True)
def report_command(profile: str, output: Path, seed: int) -> None:
    """Write the comparison report and print where to open it."""
    from dpaudit.reports import write_report

    index = write_report(output, profile=profile, seed=seed, progress=_steps())
    click.echo(str(index))


def _catalogue_mechanism(
    name: str, epsilon: float | None, delta: float | None, relation: str | None
) -> Any:
    from dpaudit.algorithms import entry

    chosen = entry(name)
    if delta is not None and not chosen.approximate:
        click.echo(f"dpaudit: {name} claims pure DP; --delta is not used", err=True)
    given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "relation": relation}
    return chosen.build(**{k: v for k, v in given.items() if v is not None})


def _own_mechanism(
    reference: str, epsilon: float | None, delta: float | None, relation: str | None
) -> tuple[Any, dict[str, Any]]:
    from dpaudit.claims import ApproxDP, PureDP
    from dpaudit.codec import load_reference
    from dpaudit.neighbours import Relation

    # As for ``python -m``, modules beside the user are importable.
    sys.path.insert(0, "")
    subject = load_reference(reference)
    options: dict[str, Any] = {"name": reference, "reference": reference}
    if isinstance(subject, type):
        subject = subject()
        options["reference"] = None
    if epsilon is not None:
        options["claim"] = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
    elif delta is not None:
        raise InputError("--delta needs --epsilon")
    if relation is not None:
        stated = getattr(subject, "relation", None)
        if stated not in (None, Relation.parse(relation)):
            raise InputError(
                f"{reference} states its claim under {stated}, not {relation}"
            )
    return subject, options


def _pair(
    subject: Any, reference: str | None, dimension: int | None, relation: str | None
) -> Any:
    """Return the pair asked for, or None for the mechanism's own."""
    from dpaudit.codec import load_reference
    from dpaudit.mechanism import HasWorstCase
    from dpaudit.neighbours import Pair, Relation

    if reference is not None:
        if dimension is not None:
            raise InputError("--pair and --dimension exclude each other")
        pair = load_reference(reference)
        if not isinstance(pair, Pair):
            raise InputError(
                f"{reference} must be a dpaudit.Pair, got {type(pair).__name__}"
            )
        if relation is not None and Relation.parse(relation) != pair.relation:
            raise InputError(f"{reference} is {pair.relation}, not {relation}")
        return pair
    if not isinstance(subject, HasWorstCase):
        raise InputError("the mechanism names no worst case: give --pair MODULE:OBJECT")
    return subject.worst_case() if dimension is None else subject.worst_case(dimension)


def _check_writable(path: Path) -> None:
    """Refuse before hours of work what could not be written after them."""
    if not path.parent.is_dir():
        raise InputError(f"cannot write {str(path)!r}: no such folder")
    probe = path.with_name(path.name + ".part")
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from error


def _progress(limit: int) -> Callable[[int, float], None] | None:
    """Return a callback that keeps one line on a terminal, None off it."""
    if not sys.stderr.isatty():
        return None
    started = time.monotonic()

    def show(samples: int, lower: float) -> None:
        if time.monotonic() - started < 1:
            return
        line = f"{samples:,} of {limit:,} releases a side, lower bound {lower:.4g}"
        click.echo(f"\r\033[K{line}", err=True, nl=False)

    return show


def _steps() -> Callable[[str, float], None]:
    """Return a callback that tells each step of the report on standard error."""
    last = ""

    def show(label: str, fraction: float) -> None:
        nonlocal last
        if sys.stderr.isatty():
            click.echo(f"\r\033[K{fraction:4.0%}  {label}", err=True, nl=False)
            if fraction >= 1:
                click.echo("", err=True)
        elif label != last:
            click.echo(f"{fraction:4.0%}  {label}", err=True)
        last = label

    return show
