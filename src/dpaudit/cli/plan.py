"""``dpaudit plan``: how many releases a refutation takes."""

import json

import click

from dpaudit.cli.exits import Command
from dpaudit.cli.options import json_option

__all__ = ["plan_command"]


@click.command(
    "plan",
    cls=Command,
    examples=("dpaudit plan --epsilon 1 --true 2",),
)
@click.option("--epsilon", type=float, required=True, help="Epsilon of the claim.")
@click.option(
    "--true",
    "true_epsilon",
    type=float,
    required=True,
    help="The true epsilon that is to be found out.",
)
@click.option("--delta", type=float, default=0.0, show_default=True)
@click.option(
    "--power",
    type=float,
    default=0.9,
    show_default=True,
    help="How probable the refutation shall be.",
)
@click.option("--confidence", type=float, default=0.999, show_default=True)
@click.option(
    "--mechanism",
    "model",
    help="laplace, gaussian or randomised-response [all that can have this epsilon].",
)
@json_option
def plan_command(
    epsilon: float,
    true_epsilon: float,
    delta: float,
    power: float,
    confidence: float,
    model: str | None,
    as_json: bool,
) -> None:
    """Say how many releases an audit needs to refute a claim.

    A claim of (--epsilon, --delta), where --true is the smallest true epsilon at
    --delta, on the pair of neighbours that is audited. How many releases that takes
    depends on the mechanism: randomised response shows all it leaks in one bit, and no
    mechanism is refuted sooner; Gaussian noise shows it in its tails only.
    """
    from dpaudit.audit.planning import MODELS, plan_audit

    applicable = MODELS if delta > 0 else tuple(m for m in MODELS if m != "gaussian")
    plans = [
        plan_audit(
            epsilon,
            true_epsilon,
            delta=delta,
            model=name,
            power=power,
            confidence=confidence,
        )
        for name in (applicable if model is None else (model,))
    ]
    if as_json:
        rows = [plan.to_dict() for plan in plans]
        click.echo(json.dumps(rows, indent=2, allow_nan=False))
    else:
        for plan in plans:
            click.echo(str(plan))
