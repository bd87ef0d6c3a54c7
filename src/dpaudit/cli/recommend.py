"""``dpaudit recommend``: which mechanism for private PCA to take."""

import json
from dataclasses import asdict

import click

from dpaudit.cli.exits import Command
from dpaudit.cli.options import json_option

__all__ = ["recommend_command"]


@click.command(
    "recommend",
    cls=Command,
    examples=(
        "dpaudit recommend --d 20 --k 3 --epsilon 1 --delta 1e-6",
        "dpaudit recommend --n 10000 --d 20 --k 3 --epsilon 1 --delta 1e-6 --gap 0.1",
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
    row_norm: float,
    as_json: bool,
) -> None:
    """Rank the mechanisms for private PCA by their measured errors.

    The error is the sine of the largest angle between the released components and those
    without noise: its median, and the range of four releases out of five. It was
    measured on a grid of settings, which ships with dpaudit; between its points errors
    are interpolated, and beyond its ends the command says so. --n and --gap must be
    public: a number that you have looked up in the data tells of them.
    """
    from dpaudit.algorithms.estimators.recommendation import recommend, shipped_grid
    from dpaudit.neighbours import Relation

    found = recommend(
        d=d,
        k=k,
        epsilon=epsilon,
        delta=delta,
        relation=Relation(relation),
        n=n,
        gap=gap,
        row_norm=row_norm,
    )
    origin = shipped_grid().origin
    if as_json:
        click.echo(json.dumps({**asdict(found), "measured": origin}, indent=2))
        return
    width = max(len(choice.mechanism) for choice in found.choices)
    click.echo(f"{'mechanism':<{width}}  error   of four releases in five")
    for choice in found.choices:
        spread = f"{choice.low:.3g} to {choice.high:.3g}"
        click.echo(f"{choice.mechanism:<{width}}  {choice.error:<6.3g}  {spread}")
    for note in found.notes:
        click.echo(f"note: {note}")
    click.echo(f"measured: {origin}")
