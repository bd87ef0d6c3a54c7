"""``dpaudit audit``."""

from typing import TYPE_CHECKING, Any

import click

from dpaudit.atomic import check_writable
from dpaudit.cli.exits import Command, Exit
from dpaudit.cli.options import (
    FILE,
    completed_names,
    grouped,
    instance_of,
    json_option,
    look_for_modules,
    print_result,
    seed_option,
)
from dpaudit.cli.running import auditing, printing_aside
from dpaudit.cli.tables import chosen_pair, pair_options
from dpaudit.errors import InputError
from dpaudit.printable import printable

if TYPE_CHECKING:
    from dpaudit.audit import Budget

__all__ = ["audit_command"]

_promise_options = grouped(
    "promise",
    click.option(
        "--epsilon", type=float, help="Epsilon of the claim [the entry's own]."
    ),
    click.option("--delta", type=float, help="Delta of the claim [catalogue: 1e-5]."),
    click.option("--relation", help="add-remove or replace-one [the mechanism's]."),
)
_evidence_options = grouped(
    "evidence",
    click.option(
        "--layer",
        type=click.Choice(["exact", "white-box", "transcript", "black-box", "replay"]),
        default="black-box",
        help="What the evidence rests on; see docs/layers.md.",
    ),
    click.option(
        "--sees",
        type=click.Choice(["release", "transcript"]),
        default="release",
        help="With --layer replay: what the claim is about, the release or every noisy "
        "value on the way too.",
    ),
    click.option(
        "--batches",
        type=click.Choice(["secret", "public"]),
        default="secret",
        help="With --layer replay: whether everybody sees which rows are drawn.",
    ),
    click.option(
        "--bits",
        is_flag=True,
        help="Audit the doubles that are returned, not the mechanism over real "
        "numbers.",
    ),
)
_budget_options = grouped(
    "budget",
    click.option(
        "--max-samples",
        "releases",
        default=200_000,
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
        default=10.0,
        help="A refuted audit goes on for so many times as many releases, for its "
        "bounds.",
    ),
    click.option(
        "--to-the-end",
        "stop",
        is_flag=True,
        flag_value=False,
        default=True,
        show_default=False,
        help="Go on to --max-samples after a refutation, for tighter bounds.",
    ),
)
"""The fields of a `dpaudit.audit.Budget`: see `_budget_of`."""

_run_options = grouped(
    "run",
    seed_option,
    click.option(
        "--workers",
        default=1,
        help="Processes that draw releases; they change nothing but the time.",
    ),
    click.option(
        "--store",
        type=FILE,
        help="Keep the audit in this file, and go on with it if it is there.",
    ),
)
_output_options = grouped(
    "output",
    click.option(
        "--witness",
        type=FILE,
        help="Where to write the witness of a refutation.",
    ),
    click.option(
        "--html",
        "page",
        type=FILE,
        help="Where to write a page on this audit, with its picture.",
    ),
    json_option,
)


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
@_promise_options
@pair_options
@click.option(
    "--domain",
    metavar="KIND:...",
    help="Search for a bad pair in ball:3, box:0,1:5, binary:5, scalar:0,1, ...; with "
    "NaN and infinite rows: box:0,1:5:nonfinite.",
)
@_evidence_options
@click.option("--confidence", default=0.999)
@_budget_options
@_run_options
@_output_options
def audit_command(
    mechanism: str,
    promise: dict[str, Any],
    pair: dict[str, Any],
    domain: str | None,
    evidence: dict[str, Any],
    confidence: float,
    budget: dict[str, Any],
    run: dict[str, Any],
    output: dict[str, Any],
) -> int:
    """Audit a mechanism of the catalogue, or your own as MODULE:OBJECT.

    Your own is an object with a release method (and a claim and worst_case, or the
    options --epsilon and --pair or --domain), or a function (data, rng) -> array.

    Ctrl-C ends the audit after the present round, with the verdict so far and exit code
    130; a second one ends it at once. With --store the same command goes on from there.
    """
    from dpaudit.attacks import BITS
    from dpaudit.audit import Run, Verdict, audit, replay
    from dpaudit.audit.replay import EXECUTIONS

    layer, bits = evidence["layer"], evidence.pop("bits")
    seed, workers, store = run["seed"], run["workers"], run["store"]
    witness, page, as_json = output.values()
    for path in (witness, page):
        if path is not None:
            check_writable(path)
    if page is not None and layer in ("exact", "white-box", "replay"):
        raise InputError(f"--html is for audits by sampling, not --layer {layer}")
    # The code under audit may make another folder the current one.
    witness_file, page = (
        None if path is None else path.absolute() for path in (witness, page)
    )
    build = _own_mechanism if ":" in mechanism else _catalogue_mechanism
    subject, claim, named = build(mechanism, **promise)
    relation = promise["relation"]
    with printing_aside():
        neighbours = chosen_pair(subject, relation=relation, **pair)
    asked = bits or workers != 1 or not _is_default("refine")
    if layer in ("exact", "white-box"):
        unused = (domain, witness, store, budget["seconds"])
        if asked or any(option is not None for option in unused):
            raise InputError(
                f"--layer {layer} takes no --domain, --bits, --witness, --workers, "
                "--store, --refine or --max-seconds"
            )
        sampling = {"confidence": confidence, "max_samples": budget["releases"]}
        with printing_aside():
            outcome, refuted = _analysed(
                layer, subject, neighbours, claim, seed=seed, **sampling
            )
        print_result(outcome, as_json)
        return Exit.REFUTED if refuted else 0
    what: dict[str, Any] = {
        **{"pair": neighbours, "domain": domain, "relation": relation},
        **{"claim": claim, "confidence": confidence, "seed": seed},
    }
    if layer == "replay":
        if asked or not budget["stop"]:
            raise InputError(
                "--layer replay takes no --bits, --workers, --refine or --to-the-end"
            )
        what |= {"sees": evidence["sees"], "batches": evidence["batches"]}
        budget |= {"refine": 0.0}
        if _is_default("releases"):
            budget |= {"releases": EXECUTIONS}
        settings = Run(store=store, **named)
        limits = _budget_of(budget)
        with printing_aside():
            result: Any = replay(subject, budget=limits, run=settings, **what)
    else:
        attacks = BITS if bits else None
        with auditing(workers) as means:
            settings = Run(attacks=attacks, store=store, **means, **named)
            limits = _budget_of(budget)
            result = audit(subject, layer=layer, budget=limits, run=settings, **what)
    if result.witness is not None and witness_file is not None:
        result.witness.save(witness_file)
    if page is not None:
        from dpaudit.reports.audit_page import write_page

        write_page(result, page)
    print_result(result, as_json, refuted=result.refuted)
    if layer != "replay":
        if witness is not None and not as_json:
            wrote = f"witness written to {printable(witness)}"
            nothing = "nothing refuted: no witness written"
            click.echo(f"  {wrote if result.witness else nothing}")
        if result.interrupted and means["should_stop"]():
            return Exit.INTERRUPTED
        if result.verdict is Verdict.NO_VERDICT:
            return Exit.INPUT_ERROR
    return Exit.REFUTED if result.refuted else 0


def _catalogue_mechanism(name: str, **promise: Any) -> tuple[Any, None, dict[str, Any]]:
    from dpaudit.algorithms import entry

    chosen = entry(name)
    given = {key: value for key, value in promise.items() if value is not None}
    if "delta" in given and not chosen.approximate:
        click.echo(f"dpaudit: {name} claims pure DP; --delta is not used", err=True)
    return chosen.build(**given), None, {"name": name}


def _own_mechanism(
    reference: str, epsilon: float | None, delta: float | None, relation: str | None
) -> tuple[Any, Any, dict[str, Any]]:
    """Return the object, the claim that the options make, and its names."""
    from dpaudit.claims import ApproxDP, Claim, PureDP
    from dpaudit.codec import load_reference
    from dpaudit.neighbours import Relation

    look_for_modules()
    with printing_aside():
        found = load_reference(reference)
        subject = instance_of(found)
        claim: Claim | None = None
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
    by_name = None if found is not subject else reference
    return subject, claim, {"name": reference, "reference": by_name}


def _analysed(
    layer: str, subject: Any, pair: Any, claim: Any, **sampling: Any
) -> tuple[Any, bool]:
    """Return what the exact or the white-box layer says, and whether it refutes."""
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
    if layer == "exact":
        verdict = exact_verdict(subject, pair, claim)
        if verdict is None:
            raise InputError("the mechanism has no exact profile: try another --layer")
        return verdict, verdict.refuted
    epsilon = claim.parameters.get("epsilon", 1.0)
    outcome = white_box(subject, pair, epsilon=epsilon, **sampling)
    return outcome, bool(outcome.refutes(claim))


def _is_default(option: str) -> bool:
    """Say whether an option of the command that runs was not given."""
    source = click.get_current_context().get_parameter_source(option)
    return source is click.core.ParameterSource.DEFAULT


def _budget_of(options: dict[str, Any]) -> "Budget":
    """Return the budget that options make; errors name the options."""
    from dpaudit.audit import Budget

    try:
        return Budget(**options)
    except InputError as error:
        field, _, fault = str(error).partition(" ")
        spelt = {"releases": "max-samples", "seconds": "max-seconds"}.get(field, field)
        raise InputError(f"--{spelt} {fault}") from None
