"""``dpaudit recommend``: which mechanism for private PCA to take."""

import json
from dataclasses import asdict

import click

from dpaudit.cli.exits import Command
from dpaudit.cli.options import json_option

__all__ = ["recommend_command"]


def _numbers(
    ctx: click.Context, parameter: click.Parameter, text: str | None
) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not numbers with commas between"
        ) from None


@click.command(
    "recommend",
    cls=Command,
    examples=(
        "dpaudit recommend --d 20 --k 3 --epsilon 1 --delta 1e-6",
        "dpaudit recommend --n 10000 --d 20 --k 3 --epsilon 1 --delta 1e-6 --gap 0.1",
        "dpaudit recommend --n 10000 --d 20 --k 3 --epsilon 1 --delta 1e-6 "
        "--spectrum 0.4,0.2,0.14,0.04",
    ),
)
@click.option("--n", type=int, help="Rows [not known].")
@click.option("--d", type=int, required=True, help="Columns.")
@click.option("--k", type=int, required=True, help="Components; fewer than columns.")
@click.option("--epsilon", type=float, required=True, help="The budget.")
@click.option(
    "--delta", type=float, required=True, help="The budget; 0 asks for pure privacy."
)
@click.option(
    "--relation",
    type=click.Choice(["add-remove", "replace-one"]),
    default="add-remove",
    show_default=True,
    help="Which datasets are neighbours.",
)
@click.option(
    "--gap",
    type=float,
    help="Between the k-th and the next eigenvalue of the mean second moment, in "
    "squared units of the rows [not known].",
)
@click.option(
    "--spectrum",
    callback=_numbers,
    metavar="NUMBER,...",
    help="In place of a gap: its largest eigenvalues, more than components.",
)
@click.option(
    "--row-norm", type=float, default=1.0, show_default=True, help="Bound on a row."
)
@json_option
def recommend_command(
    n: int | None,
    d: int,
    k: int,
    epsilon: float,
    delta: float,
    relation: str,
    gap: float | None,
    spectrum: list[float] | None,
    row_norm: float,
    as_json: bool,
) -> None:
    """Rank the mechanisms for private PCA by their measured errors.

    The error is the sine of the largest angle between the released components and those
    without noise: its median, and the range of four releases out of five. With --n, and
    --gap or --spectrum, it is measured at once, on a second moment like that: in
    seconds, with 1000 columns in a minute. Otherwise it is looked up in a grid of
    settings, which ships with dpaudit, and the order is that of the column 'at worst':
    how many times the least error it can be. All numbers must be public: one that you
    have looked up in the data tells of them.
    """
    from dpaudit.algorithms.estimators.recommendation import recommend
    from dpaudit.neighbours import Relation

    found = recommend(
        d=d,
        k=k,
        epsilon=epsilon,
        delta=delta,
        relation=Relation(relation),
        n=n,
        gap=gap,
        spectrum=spectrum,
        row_norm=row_norm,
    )
    if as_json:
        click.echo(json.dumps(asdict(found), indent=2))
        return
    width = max((len(choice.mechanism) for choice in found.choices), default=9)
    ratios = any(choice.at_worst is not None for choice in found.choices)
    head = "at worst  " if ratios else ""
    click.echo(f"{'mechanism':<{width}}  {head}error   of four releases in five")
    for choice in found.choices:
        ratio = f"{choice.at_worst:<8.3g}  " if ratios else ""
        spread = f"{choice.low:.3g} to {choice.high:.3g}"
        click.echo(
            f"{choice.mechanism:<{width}}  {ratio}{choice.error:<6.3g}  {spread}"
        )
    for note in found.notes:
        click.echo(f"note: {note}")
    click.echo(f"measured: {found.measured}")
