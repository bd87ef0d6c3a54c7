"""``dpaudit audit``."""

import json
from pathlib import Path
from typing import Any

import click

from dpaudit.atomic import check_writable
from dpaudit.cli.exits import INPUT_ERROR, INTERRUPTED, REFUTED, Command
from dpaudit.cli.modules import look_for_modules
from dpaudit.cli.options import (
    budget_of,
    budget_options,
    completed_names,
    highlighted,
    is_default,
    json_option,
)
from dpaudit.cli.pairs import chosen_pair, pair_options
from dpaudit.cli.running import Interrupt, apart, crew, told_in_a_line, watch
from dpaudit.errors import InputError
from dpaudit.printable import printable

__all__ = ["audit_command"]


@click.command(
    "audit",
    cls=Command,
    examples=(
        "dpaudit audit symmetric-noise --witness witness.json",
        "dpaudit audit my_module:noisy_sum --epsilon 1 --domain scalar:0,1",
        "dpaudit audit my_module:noisy_sum --epsilon 1 --data rows.csv "
        "--neighbour drop:0",
        "dpaudit audit dp-sgd --layer replay --sees transcript",
    ),
)
@click.argument(
    "mechanism", metavar="NAME|MODULE:OBJECT", shell_complete=completed_names
)
@click.option("--epsilon", type=float, help="Epsilon of the claim [the entry's own].")
@click.option("--delta", type=float, help="Delta of the claim [catalogue: 1e-5].")
@click.option("--relation", help="add-remove or replace-one [the mechanism's].")
@pair_options
@click.option(
    "--domain",
    metavar="KIND:...",
    help="Search for a bad pair in ball:3, box:0,1:5, binary:5, scalar:0,1, ...; with "
    "NaN and infinite rows: box:0,1:5:nonfinite.",
)
@click.option(
    "--layer",
    type=click.Choice(["exact", "white-box", "transcript", "black-box", "replay"]),
    default="black-box",
    show_default=True,
    help="What the evidence rests on; see docs/layers.md.",
)
@click.option(
    "--sees",
    type=click.Choice(["release", "transcript"]),
    default="release",
    show_default=True,
    help="With --layer replay: what the claim is about, the release or every noisy "
    "value on the way too.",
)
@click.option(
    "--batches",
    type=click.Choice(["secret", "public"]),
    default="secret",
    show_default=True,
    help="With --layer replay: whether everybody sees which rows are drawn.",
)
@click.option(
    "--bits",
    is_flag=True,
    help="Audit the doubles that are returned, not the mechanism over real numbers.",
)
@click.option("--confidence", type=float, default=0.999, show_default=True)
@budget_options
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--workers",
    type=int,
    default=1,
    show_default=True,
    help="Processes that draw releases; they change nothing but the time.",
)
@click.option(
    "--store",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep the audit in this file, and go on with it if it is there.",
)
@click.option(
    "--witness",
    "witness_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the witness of a refutation.",
)
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write a page on this audit, with its picture.",
)
@json_option
def audit_command(
    mechanism: str,
    epsilon: float | None,
    delta: float | None,
    relation: str | None,
    pair: dict[str, Any],
    domain: str | None,
    layer: str,
    sees: str,
    batches: str,
    bits: bool,
    confidence: float,
    budget: dict[str, Any],
    seed: int,
    workers: int,
    store: Path | None,
    witness_path: Path | None,
    page: Path | None,
    as_json: bool,
) -> int:
    """Audit a mechanism of the catalogue, or your own as MODULE:OBJECT.

    Your own is an object with a release method (and a claim and worst_case, or the
    options --epsilon and --pair or --domain), or a function (data, rng) -> array.

    Ctrl-C ends the audit after the present round, with the verdict so far and exit code
    130; a second one ends it at once. With --store the same command goes on from there.
    """
    from dpaudit.attacks import BITS
    from dpaudit.audit import Run, Verdict, audit
    from dpaudit.audit.replay import EXECUTIONS

    if witness_path is not None:
        check_writable(witness_path)
    if page is not None:
        check_writable(page)
        if layer in ("exact", "white-box", "replay"):
            raise InputError(f"--html is for audits by sampling, not --layer {layer}")
    # The code under audit may make another folder the current one.
    witness_file, page = (
        None if path is None else path.absolute() for path in (witness_path, page)
    )
    named: dict[str, Any]
    claim = None
    if ":" in mechanism:
        with apart():
            subject, claim, named = _own_mechanism(mechanism, epsilon, delta, relation)
    else:
        subject = _catalogue_mechanism(mechanism, epsilon, delta, relation)
        named = {"name": mechanism}
    with apart():
        neighbours = chosen_pair(subject, relation=relation, **pair)
    asked = bits or workers != 1 or not is_default("refine")
    if layer in ("exact", "white-box"):
        unused = (domain, witness_path, store, budget["seconds"])
        if asked or any(option is not None for option in unused):
            raise InputError(
                f"--layer {layer} takes no --domain, --bits, --witness, --workers, "
                "--store, --refine or --max-seconds"
            )
        releases = budget["releases"]
        refuted = _analyse(
            layer, subject, neighbours, claim, confidence, releases, seed, as_json
        )
        return REFUTED if refuted else 0
    what: dict[str, Any] = {
        **{"pair": neighbours, "domain": domain, "relation": relation},
        **{"claim": claim, "confidence": confidence, "seed": seed},
    }
    if layer == "replay":
        if asked or not budget["stop"]:
            raise InputError(
                "--layer replay takes no --bits, --workers, --refine or --to-the-end"
            )
        what |= {"sees": sees, "batches": batches, "run": Run(store=store, **named)}
        budget |= {"refine": 0.0}
        if is_default("releases"):
            budget |= {"releases": EXECUTIONS}
        return _replay(subject, witness_file, as_json, budget=budget_of(budget), **what)
    with (
        apart(),
        Interrupt() as interrupt,
        told_in_a_line(),
        crew(workers) as executor,
        watch() as progress,
    ):
        run = Run(
            attacks=BITS if bits else None,
            executor=executor,
            store=store,
            progress=progress,
            should_stop=interrupt.asked,
            **named,
        )
        result = audit(subject, layer=layer, budget=budget_of(budget), run=run, **what)
    if result.witness is not None and witness_file is not None:
        result.witness.save(witness_file)
    if page is not None:
        from dpaudit.reports.audit_page import write_page

        write_page(result, page)
    if as_json:
        click.echo(json.dumps(result.to_dict(), indent=2, allow_nan=False))
    else:
        click.echo(highlighted(str(result), refuted=result.refuted))
        if witness_path is not None:
            wrote = f"witness written to {printable(witness_path)}"
            nothing = "nothing refuted: no witness written"
            click.echo(f"  {wrote if result.witness else nothing}")
    if result.interrupted and interrupt.asked():
        return INTERRUPTED
    if result.verdict is Verdict.NO_VERDICT:
        return INPUT_ERROR
    return REFUTED if result.refuted else 0


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
) -> tuple[Any, Any, dict[str, Any]]:
    """Return the object, the claim that the options make, and its names."""
    from dpaudit.claims import ApproxDP, PureDP
    from dpaudit.codec import load_reference
    from dpaudit.neighbours import Relation

    look_for_modules()
    subject = load_reference(reference)
    claim: ApproxDP | PureDP | None = None
    named: dict[str, Any] = {"name": reference, "reference": reference}
    if isinstance(subject, type):
        subject = subject()
        named["reference"] = None
    if epsilon is not None:
        claim = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
    elif delta is not None:
        raise InputError("--delta needs --epsilon")
    if relation is not None:
        stated = getattr(subject, "relation", None)
        if stated not in (None, Relation.parse(relation)):
            raise InputError(
                f"{reference} states its claim under {stated}, not {relation}"
            )
    return subject, claim, named


def _replay(
    subject: Any,
    witness_path: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Print what a replay finds; return the exit code."""
    from dpaudit.audit import replay

    with apart():
        result = replay(subject, **options)
    if result.witness is not None and witness_path is not None:
        result.witness.save(witness_path)
    if as_json:
        click.echo(json.dumps(result.to_dict(), indent=2, allow_nan=False))
    else:
        click.echo(highlighted(str(result), refuted=result.refuted))
    return REFUTED if result.refuted else 0


def _analyse(
    layer: str,
    subject: Any,
    pair: Any,
    claim: Any,
    confidence: float,
    max_samples: int,
    seed: int,
    as_json: bool,
) -> bool:
    """Print what the exact or the white-box layer says; return whether it refutes."""
    from dpaudit.audit.layers.exact import exact_verdict
    from dpaudit.audit.layers.whitebox import white_box
    from dpaudit.mechanism import HasWorstCase

    if pair is None:
        if not isinstance(subject, HasWorstCase):
            raise InputError("--pair is needed: the mechanism names no worst case")
        pair = subject.worst_case()
    claim = claim or getattr(subject, "claim", None)
    if claim is None:
        raise InputError("--epsilon is needed: the mechanism makes no claim")
    outcome: Any
    if layer == "exact":
        with apart():
            outcome = exact_verdict(subject, pair, claim)
        if outcome is None:
            raise InputError("the mechanism has no exact profile: try another --layer")
        refuted = outcome.refuted
    else:
        epsilon = claim.parameters.get("epsilon", 1.0)
        with apart():
            outcome = white_box(
                subject,
                pair,
                epsilon=epsilon,
                confidence=confidence,
                max_samples=max_samples,
                seed=seed,
            )
        refuted = outcome.refutes(claim)
    if as_json:
        click.echo(json.dumps(outcome.to_dict(), indent=2, allow_nan=False))
    else:
        click.echo(str(outcome))
    return bool(refuted)
