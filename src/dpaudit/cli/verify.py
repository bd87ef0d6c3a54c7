"""``dpaudit verify``."""

import json
from pathlib import Path

import click

from dpaudit.cli.exits import REFUTED, Command
from dpaudit.cli.options import json_option

__all__ = ["verify_command"]


@click.command("verify", cls=Command)
@click.argument("witness", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--mechanism",
    "reference",
    metavar="MODULE:OBJECT",
    help="The mechanism, where the witness does not name an importable one.",
)
@click.option("--confidence", type=float, default=0.999, show_default=True)
@click.option("--max-samples", type=int, help="[10 times what the audit needed]")
@click.option("--seed", type=int, help="[fresh randomness from the system]")
@json_option
def verify_command(
    witness: Path,
    reference: str | None,
    confidence: float,
    max_samples: int | None,
    seed: int | None,
    as_json: bool,
) -> int:
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
    return REFUTED if verification.confirmed else 0
