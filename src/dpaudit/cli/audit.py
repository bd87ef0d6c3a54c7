"""``dpaudit audit``."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from dpaudit.cli.exits import Command, Exit
from dpaudit.cli.formats import WantedOutput, asked
from dpaudit.cli.options import (
    FILE,
    completed_names,
    executor_options,
    grouped,
    json_option,
    print_result,
    seed_option,
)
from dpaudit.cli.running import auditing, printing_aside
from dpaudit.cli.tables import chosen_pair, pair_options
from dpaudit.errors import InputError, MechanismError

if TYPE_CHECKING:
    from dpaudit.audit import Budget

__all__ = ["audit_command"]

# What replay says of noise that is used again, and what follows for sampling.
_SHARED, _HELD = "that an earlier execution", "was drawn before"
_USED_AGAIN = ": noise that is used again cannot be judged"
_WITH_IT = (
    ": all releases have that value, and the verdict is of the mechanism with it, not "
    "of one that draws it anew"
)

_promise_options = grouped(
    "promise",
    click.option(
        "--epsilon", type=float, help="Epsilon of the claim [the entry's own]."
    ),
    click.option("--delta", type=float, help="Delta of the claim [catalogue: 1e-5]."),
    click.option("--relation", help="add-remove or replace-one [the mechanism's]."),
    click.option(
        "--set",
        "arguments",
        multiple=True,
        metavar="NAME=VALUE",
        help="An argument of your own function; epsilon and delta are those of the "
        "claim.",
    ),
)
_evidence_options = grouped(
    "evidence",
    click.option(
        "--layer",
        type=click.Choice(["exact", "white-box", "transcript", "black-box", "replay"]),
        help="What the evidence rests on; see docs/layers.md [your own: replay, and "
        "then black-box, unless an option is of sampling alone; else black-box].",
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
        "--store",
        type=FILE,
        help="Keep the audit in this file, and go on with it if it is there.",
    ),
)
_output_options = grouped(
    "output",
    click.option(
        "--witness", type=FILE, help="Where to write the witness of a refutation."
    ),
    click.option(
        "--html",
        "page",
        type=FILE,
        help="Where to write a page on this audit, with its picture.",
    ),
    json_option,
    click.option(
        "--format",
        "forms",
        multiple=True,
        metavar="FORM[=FILE]",
        callback=asked,
        help="For other tools: github (lines of a pull request), sarif (code "
        "scanning), junit (test reports) or json; often, with a file for each.",
    ),
)


@click.command(
    "audit",
    cls=Command,
    examples=(
        "dpaudit audit symmetric-noise --witness witness.json",
        "dpaudit audit stats.py:noisy_mean --epsilon 1 --relation add-remove --domain "
        '"age:0..100 sex:{f,m}"',
        "dpaudit audit my_module:noisy_sum --epsilon 1 --domain scalar:0,1",
        "dpaudit audit my_module:noisy_sum --epsilon 1 --data rows.csv "
        "--neighbour drop:0",
        "dpaudit audit dp-sgd --layer replay --sees transcript",
    ),
)
@click.argument(
    "mechanism",
    metavar="NAME|MODULE:OBJECT|FILE.py:OBJECT",
    shell_complete=completed_names,
)
@_promise_options
@pair_options
@click.option(
    "--domain",
    metavar="COLUMNS|KIND:...",
    help='Search for a bad pair in "age:0..100 income:0..1e5 sex:{f,m} user:label", '
    '"list of 0.0..1.0", ball:3, box:0,1:5, ...; see docs/domains.md.',
)
@_evidence_options
@click.option("--confidence", default=0.999)
@_budget_options
@_run_options
@executor_options(1)
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
    by: dict[str, Any],
    output: dict[str, Any],
) -> int:
    """Audit a mechanism of the catalogue, or your own.

    Your own is a function of a dataset, or an object with a release method (and perhaps
    a claim, a relation and a worst_case). Options say what it leaves open.

    Without --layer, your own is executed and compared first (--layer replay, seconds),
    and then sampled (--layer black-box) unless that refutes it. Each may err with half
    of the probability that --confidence allows.

    Ctrl-C ends the audit after the present round, with the verdict so far and exit code
    130; a second one ends it at once. With --store the same command goes on from there.
    """
    from dpaudit.cli.asking import domain_of, subject_of

    layer = evidence["layer"]
    wanted = WantedOutput(**output)
    if layer in ("exact", "white-box") and (wanted.page or wanted.forms):
        raise InputError(f"--html and --format are not for --layer {layer}")
    subject, claim, named = subject_of(mechanism, **promise)
    relation = promise["relation"]
    with printing_aside():
        neighbours = chosen_pair(subject, relation=relation, **pair)
        legal = domain_of(subject, neighbours, domain, claim, relation)
    what: dict[str, Any] = {
        **{"pair": neighbours, "domain": legal, "relation": relation},
        **{"claim": claim, "confidence": confidence, "seed": run["seed"]},
    }
    elsewhere = by != {"workers": 1, "scheduler": None}
    of_sampling = evidence["bits"] or elsewhere or not _is_default("refine")
    if layer in ("exact", "white-box"):
        unused = (domain, wanted.witness, run["store"], budget["seconds"])
        if of_sampling or any(option is not None for option in unused):
            raise InputError(
                f"--layer {layer} takes no --domain, --bits, --witness, --workers, "
                "--scheduler, --store, --refine or --max-seconds"
            )
        with printing_aside():
            outcome, refuted = _analysed(layer, subject, what, budget["releases"])
        print_result(outcome, wanted.as_json)
        return Exit.REFUTED if refuted else 0
    of_sampling |= not budget["stop"]
    if layer == "replay" and of_sampling:
        raise InputError(
            "--layer replay takes no --bits, --workers, --scheduler, --refine or "
            "--to-the-end"
        )
    of_sampling |= run["store"] is not None
    both = layer is None and ":" in mechanism and not of_sampling
    if both:
        what["confidence"] = 1 - (1 - confidence) / 2
    results, stopped = [], False
    if both or layer == "replay":
        try:
            results.append(_replayed(subject, what, evidence, budget, run, named))
        except MechanismError:
            if layer == "replay" or legal is None:
                raise
            # It fails on one pair of the domain: sampling tries others.
        if results and budget["seconds"] is not None:
            left = budget["seconds"] - results[0].seconds
            budget["seconds"] = max(left, budget["seconds"] / 10)
    if layer != "replay" and not (results and results[0].refuted):
        if results and legal is not None:  # what replay found worst is tried first
            what["pair"] = results[0].pair
        sampled, stopped = _sampled(subject, what, evidence, budget, run | by, named)
        results.append(_beside(sampled, results))
    wanted.tell(results, subject)
    result = results[-1]
    if stopped:
        return Exit.INTERRUPTED
    if result.verdict == "NO_VERDICT":
        return Exit.INPUT_ERROR
    return Exit.REFUTED if result.refuted else 0


def _replayed(
    subject: Any,
    what: dict[str, Any],
    evidence: dict[str, Any],
    budget: dict[str, Any],
    run: dict[str, Any],
    named: dict[str, Any],
) -> Any:
    """Return what replay says."""
    from dpaudit.audit import Run, replay
    from dpaudit.audit.replay import EXECUTIONS

    limits = _budget_of(budget | {"refine": 0.0})
    if evidence["layer"] is None and limits.seconds is not None:
        limits = replace(limits, seconds=limits.seconds / 2)  # the rest is for sampling
    if _is_default("releases") or evidence["layer"] is None:
        limits = replace(limits, releases=EXECUTIONS)
    settings = Run(store=run["store"], **named)
    views = {"sees": evidence["sees"], "batches": evidence["batches"]}
    with printing_aside():
        return replay(subject, budget=limits, run=settings, **what, **views)


def _sampled(
    subject: Any,
    what: dict[str, Any],
    evidence: dict[str, Any],
    budget: dict[str, Any],
    run: dict[str, Any],
    named: dict[str, Any],
) -> tuple[Any, bool]:
    """Return what sampling says, and whether Ctrl-C ended it."""
    from dpaudit.attacks import BITS
    from dpaudit.audit import Run, audit

    attacks = BITS if evidence["bits"] else None
    layer = evidence["layer"] or "black-box"
    with auditing(run["workers"], run["scheduler"]) as means:
        settings = Run(attacks=attacks, store=run["store"], **means, **named)
        limits = _budget_of(budget)
        result = audit(subject, layer=layer, budget=limits, run=settings, **what)
        return result, result.interrupted and means["should_stop"]()


def _beside(sampled: Any, replayed: list[Any]) -> Any:
    """Return what sampling says, with what replay saw of noise that is used again.

    Releases with noise of an earlier execution are no independent draws, whatever they
    show. A value that was drawn before, as at an import, is the same in all of them. So
    what they show is true of the mechanism with that value, and perhaps of no other.
    """
    for finding in (each for result in replayed for each in result.findings):
        said = f"{finding.where}: {finding.message}"
        if _SHARED in said:
            sampled = replace(sampled.withdrawn(), warnings=(*sampled.warnings, said))
        elif _HELD in said:
            held = said.removesuffix(_USED_AGAIN)
            sampled = replace(sampled, warnings=(*sampled.warnings, held + _WITH_IT))
    return sampled


def _analysed(
    layer: str, subject: Any, what: dict[str, Any], max_samples: int
) -> tuple[Any, bool]:
    """Return what the exact or the white-box layer says, and whether it refutes."""
    from dpaudit.audit.layers.exact import exact_verdict
    from dpaudit.audit.layers.whitebox import white_box
    from dpaudit.mechanism import HasWorstCase

    pair, claim = what["pair"], what["claim"] or subject.claim
    if pair is None:
        if not isinstance(subject, HasWorstCase):
            raise InputError("--pair is needed: the mechanism names no worst case")
        pair = subject.worst_case()
    if layer == "exact":
        verdict = exact_verdict(subject, pair, claim)
        if verdict is None:
            raise InputError("the mechanism has no exact profile: try another --layer")
        return verdict, verdict.refuted
    epsilon = claim.parameters.get("epsilon", 1.0)
    sampling = {"confidence": what["confidence"], "seed": what["seed"]}
    sampling |= {"max_samples": max_samples}
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
