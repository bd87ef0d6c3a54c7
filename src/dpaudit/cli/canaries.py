"""``dpaudit canaries``: what the canaries of one run say of a claim."""

from pathlib import Path
from typing import Any

import click

from dpaudit.cli.exits import REFUTED, Command
from dpaudit.cli.options import FILE, grouped, json_option, print_result
from dpaudit.cli.tables import numbers, read_table
from dpaudit.errors import InputError
from dpaudit.validation import check_name

__all__ = ["canaries_command"]

_SCORE, _INCLUDED = "score", "included"
_GUESS, _TRUTH, _ABSTAIN = "guess", "truth", "abstain"

_scores_options = grouped(
    "of_scores",
    click.option(
        "--threshold",
        "thresholds",
        type=float,
        multiple=True,
        help="Scores above it are guesses of 1; fixed beforehand; several share the "
        "error [the middle between two groups of scores].",
    ),
    click.option("--score-column", help=f"[{_SCORE}]"),
    click.option("--included-column", help=f"[{_INCLUDED}]"),
)


@click.command(
    "canaries",
    cls=Command,
    examples=(
        "dpaudit canaries scores.csv --epsilon 2 --delta 1e-5",
        "dpaudit canaries scores.csv --epsilon 2 --delta 1e-5 --guesses 250",
    ),
)
@click.argument("file", type=FILE, metavar="FILE.csv|.parquet")
@click.option("--epsilon", type=float, required=True, help="Epsilon of the claim.")
@click.option("--delta", default=0.0, help="Delta of the claim.")
@click.option(
    "--relation",
    default="add-remove",
    help="add-remove: a coin says whether its canary is in. replace-one: which of two.",
)
@click.option(
    "--guesses",
    type=int,
    multiple=True,
    help="Coins to guess, a number fixed beforehand; several share the error "
    "[all, half of them, a quarter, ...: up to 8 numbers]. Of a file of guesses: how "
    "many were to be made.",
)
@_scores_options
@click.option("--confidence", default=0.95)
@click.option("--seed", type=int, help="Scores: how ties are broken [0].")
@json_option
def canaries_command(
    file: Path,
    epsilon: float,
    delta: float,
    guesses: tuple[int, ...],
    of_scores: dict[str, Any],
    seed: int | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Judge a claim by the canaries of one run, such as one training.

    FILE has a line for each canary: either its score, which is larger where the canary
    is in the data, and whether it was included (1 or 0); or a guess and the truth (1 or
    0), and perhaps abstain (1 where no guess was made). Lines are in any order.

    It proves something only if all of this is so, which no file shows:

    1. Each canary was included by a fair coin of its own. Half of the canaries, or one
    coin for several, is something else.

    2. Scores, guesses and thresholds come from what was released, and were made without
    knowing any coin.

    3. How many coins are guessed was fixed before looking at them. If you try several
    numbers, or thresholds, name all in one command: they share the error. The best of
    several commands proves nothing.

    4. The file holds every canary that had a coin, of one run.

    Guesses of one run may depend on each other, as all come through one mechanism: the
    bound allows for that, and an interval for independent guesses does not.

    Exit code 1: refuted.
    """
    from dpaudit.audit.one_run.guesses import audit_guesses, audit_scores
    from dpaudit.claims import ApproxDP, PureDP

    options["claim"] = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
    options["name"] = str(file)
    table = read_table(file, content="canaries")
    thresholds, *columns = of_scores.values()
    if any(name is not None for name in columns) or _has_scores(file, [*table.columns]):
        score, included = (
            _column(table, name or usual)
            for name, usual in zip(columns, (_SCORE, _INCLUDED), strict=True)
        )
        result = audit_scores(
            score,
            included,
            guesses=guesses,
            thresholds=thresholds,
            seed=seed or 0,
            **options,
        )
    else:
        for name, value in {"threshold": thresholds or None, "seed": seed}.items():
            if value is not None:
                raise InputError(f"--{name} does not apply to guesses")
        if len(guesses) > 1:
            raise InputError("--guesses must be one number of a file of guesses")
        abstain = _column(table, _ABSTAIN) if _ABSTAIN in table.columns else None
        result = audit_guesses(
            _column(table, _GUESS, complete=abstain is None),
            _column(table, _TRUTH),
            abstain,
            guesses=guesses[0] if guesses else None,
            **options,
        )
    print_result(result, as_json)
    return REFUTED if result.refuted else 0


def _has_scores(path: Path, columns: list[str]) -> bool:
    """Say whether a table holds scores, or guesses, or raise if that is not clear."""
    found = [name for name in (_SCORE, _GUESS) if name in columns]
    if len(found) != 1:
        raise InputError(
            f"{str(path)!r} must have either the columns {_SCORE} and {_INCLUDED}, or "
            f"{_GUESS} and {_TRUTH} (columns: {', '.join(columns) or 'none'})"
        )
    return found == [_SCORE]


def _column(table: Any, name: str, *, complete: bool = True) -> Any:
    """Return a column's numbers."""
    check_name("column", name, list(table.columns))
    column = numbers(table[name], name)
    missing = (column != column).nonzero()[0]
    if complete and len(missing):
        raise InputError(
            f"column {name!r} must not contain NaN, got it for canary {missing[0]} "
            "(counted from 0)"
        )
    return column
