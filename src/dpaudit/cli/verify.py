"""``dpaudit verify``."""

import json
from pathlib import Path
from typing import Any

import click

from dpaudit.cli.exits import INPUT_ERROR, REFUTED, Command
from dpaudit.cli.modules import look_for_modules
from dpaudit.cli.options import json_option
from dpaudit.cli.running import apart
from dpaudit.errors import InputError

__all__ = ["verify_command"]


@click.command(
    "verify",
    cls=Command,
    examples=("dpaudit verify witness.json",),
)
@click.argument("witness", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--mechanism",
    "reference",
    metavar="MODULE:OBJECT",
    help="Test this mechanism; nothing that the witness names is imported.",
)
@click.option(
    "--import-from",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where the module of the mechanism is, if not installed [current folder].",
)
@click.option("--confidence", type=float, default=0.999, show_default=True)
@click.option(
    "--max-samples",
    type=int,
    help="Most releases on either side [10 times what the audit needed, at most 10^6].",
)
@click.option(
    "--to-the-end",
    is_flag=True,
    help="Draw them all, so that the counts may go into a bound (dpaudit bound).",
)
@click.option("--seed", type=int, help="[fresh randomness from the system]")
@json_option
def verify_command(
    witness: Path,
    reference: str | None,
    folder: Path | None,
    confidence: float,
    max_samples: int | None,
    to_the_end: bool,
    seed: int | None,
    as_json: bool,
) -> int:
    """Re-test a WITNESS on fresh randomness.

    Without --mechanism this imports and runs the code that the witness names: verify
    only what you would run. Modules are looked for in the current folder first, or in
    that of --import-from.
    """
    from dpaudit.audit import Witness, verify
    from dpaudit.audit.replay import load_witness, verify_replay
    from dpaudit.codec import load_reference

    evidence = load_witness(witness)
    look_for_modules(folder)
    mechanism = None
    if reference is not None:
        with apart():
            mechanism = load_reference(reference)
            if isinstance(mechanism, type):
                mechanism = mechanism()
    if to_the_end and not isinstance(evidence, Witness):
        raise InputError("--to-the-end is for witnesses of events; this one replays")
    options: dict[str, Any] = {
        "mechanism": mechanism,
        "confidence": confidence,
        "max_samples": max_samples,
        "seed": seed,
    }
    verification: Any
    with apart():
        if isinstance(evidence, Witness):
            stops = not to_the_end
            verification = verify(evidence, stop_when_confirmed=stops, **options)
            founded = verification.founded
        else:
            verification, founded = verify_replay(evidence, **options), True
    if as_json:
        click.echo(json.dumps(verification.to_dict(), indent=2, allow_nan=False))
    else:
        click.echo(str(verification))
    if not founded:
        return INPUT_ERROR
    return REFUTED if verification.confirmed else 0
