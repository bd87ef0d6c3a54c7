"""``dpaudit bound``: privacy lower bounds for counts and scores from elsewhere."""

import json
from pathlib import Path
from typing import Any

import click

from dpaudit.cli.exits import Command
from dpaudit.cli.options import json_option
from dpaudit.cli.tables import numbers, read_table
from dpaudit.errors import InputError
from dpaudit.validation import check_count, check_name

__all__ = ["bound_command"]

_METHODS = ("joint", "clopper-pearson", "gaussian")


@click.command(
    "bound",
    cls=Command,
    examples=(
        "dpaudit bound --tp 830 --fn 170 --fp 310 --tn 690",
        "dpaudit bound scores.csv --delta 1e-5",
        "dpaudit bound --guesses 100 --correct 90 --canaries 1000",
    ),
)
@click.argument(
    "scores",
    required=False,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="[SCORES.csv|.parquet]",
)
@click.option("--tp", type=int, help="Releases on D where the event happened.")
@click.option("--fn", type=int, help="Releases on D where it did not.")
@click.option("--fp", type=int, help="Releases on D' where the event happened.")
@click.option("--tn", type=int, help="Releases on D' where it did not.")
@click.option("--guesses", type=int, help="One run: canaries guessed.")
@click.option("--correct", type=int, help="One run: guesses that were right.")
@click.option("--canaries", type=int, help="One run: canaries, each a fair coin.")
@click.option("--delta", type=float, default=0.0, show_default=True)
@click.option("--confidence", type=float, default=0.95, show_default=True)
@click.option(
    "--method",
    help="joint, clopper-pearson or gaussian [all; joint decides].",
)
@click.option(
    "--two-sided",
    is_flag=True,
    help="Counts: the event was not known to be more frequent on D.",
)
@click.option("--score-column", help="[score]")
@click.option(
    "--label-column",
    help="1 for D, 0 for D' [side]; without it, a file of two columns holds the "
    "scores on D and on D'.",
)
@click.option(
    "--fixed",
    "fraction",
    type=float,
    help="Scores: share of the releases that chooses the event [0.1].",
)
@click.option("--seed", type=int, help="Scores: order of the releases [0].")
@json_option
def bound_command(
    scores: Path | None,
    tp: int | None,
    fn: int | None,
    fp: int | None,
    tn: int | None,
    guesses: int | None,
    correct: int | None,
    canaries: int | None,
    delta: float,
    confidence: float,
    method: str | None,
    two_sided: bool,
    score_column: str | None,
    label_column: str | None,
    fraction: float | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Bound the privacy loss from below, from counts or scores.

    Counts of one event, chosen before the releases were drawn:
    --tp --fn --fp --tn. Scores of releases on D and D': a file. Guesses about the
    canaries of one run: --correct --guesses --canaries.
    """
    forms: dict[str, dict[str, Any]] = {
        "counts": {"tp": tp, "fn": fn, "fp": fp, "tn": tn},
        "one run": {"correct": correct, "guesses": guesses, "canaries": canaries},
        "scores": {"a file of scores": scores},
    }
    of_scores = {
        "--score-column": score_column,
        "--label-column": label_column,
        "--fixed": fraction,
        "--seed": seed,
    }
    form = _form(forms)
    _refuse(form != "scores", form, of_scores)
    _refuse(form != "counts", form, {"--two-sided": two_sided or None})
    _refuse(form == "one run", form, {"--method": method})
    if method is not None:
        check_name("method", method, _METHODS)
    bounds: list[Any]
    if form == "counts":
        bounds = _from_counts(forms[form], delta, confidence, method, two_sided)
    elif form == "one run":
        from dpaudit.audit.bounds import one_run

        bounds = [one_run(**forms[form], delta=delta, confidence=confidence)]
    else:
        assert scores is not None
        sides = _read(scores, score_column, label_column)
        share = 0.1 if fraction is None else fraction
        bounds = _from_scores(sides, delta, confidence, method, share, seed or 0)
    if as_json:
        rows = [bound.to_dict() for bound in bounds]
        click.echo(json.dumps(rows, indent=2, allow_nan=False))
    else:
        for bound in bounds:
            click.echo(str(bound))


def _form(forms: dict[str, dict[str, Any]]) -> str:
    """Return the one form of input that was given, and given completely."""
    begun = [form for form, values in forms.items() if any(_given(values))]
    if len(begun) != 1:
        raise InputError(
            "give one of: --tp --fn --fp --tn; --correct --guesses --canaries; "
            f"a file of scores (got {' and '.join(begun) or 'nothing'})"
        )
    (form,) = begun
    missing = [name for name, value in forms[form].items() if value is None]
    if missing:
        raise InputError(f"--{missing[0]} is missing")
    return form


def _given(values: dict[str, Any]) -> list[bool]:
    return [value is not None for value in values.values()]


def _refuse(condition: bool, form: str, options: dict[str, Any]) -> None:
    for name, value in options.items():
        if condition and value is not None:
            raise InputError(f"{name} does not apply to {form}")


def _from_counts(
    cells: dict[str, int],
    delta: float,
    confidence: float,
    method: str | None,
    two_sided: bool,
) -> list[Any]:
    from dpaudit.audit.bounds import Counts, clopper_pearson, gaussian, joint

    for name, count in cells.items():
        check_count(f"--{name}", count, minimum=0)
    if cells["tp"] + cells["fn"] == 0 or cells["fp"] + cells["tn"] == 0:
        side = "D (--tp + --fn)" if cells["tp"] + cells["fn"] == 0 else "D'"
        raise InputError(f"there must be at least one release on {side}")
    counts = Counts(
        cells["tp"], cells["tp"] + cells["fn"], cells["fp"], cells["fp"] + cells["tn"]
    )
    functions = {
        "joint": joint,
        "clopper-pearson": clopper_pearson,
        "gaussian": gaussian,
    }
    chosen = list(functions) if method is None else [method]
    return [
        functions[name](counts, delta=delta, confidence=confidence, two_sided=two_sided)
        for name in chosen
    ]


def _from_scores(
    sides: tuple[Any, Any],
    delta: float,
    confidence: float,
    method: str | None,
    fraction: float,
    seed: int,
) -> list[Any]:
    import numpy as np

    from dpaudit.audit.bounds import fixed_scores, split_scores

    check_count("--seed", seed, minimum=0)
    options: dict[str, Any] = {
        "delta": delta,
        "confidence": confidence,
        "fraction": fraction,
    }
    bounds = []
    for name in _METHODS if method is None else (method,):
        rng = np.random.default_rng(seed)
        if name == "clopper-pearson":
            bounds.append(split_scores(*sides, rng=rng, **options))
        else:
            gaussian = name == "gaussian"
            bounds.append(fixed_scores(*sides, gaussian=gaussian, rng=rng, **options))
    return bounds


def _read(
    path: Path, score_column: str | None, label_column: str | None
) -> tuple[Any, Any]:
    """Return the scores on D and on D' from a table."""
    import pandas as pd

    table = read_table(path, content="scores")
    columns = [str(column) for column in table.columns]
    table.columns = pd.Index(columns)
    if label_column is None and "side" not in columns and score_column is None:
        if len(columns) != 2:
            raise InputError(
                f"{str(path)!r} has no column 'side' (columns: {', '.join(columns)}): "
                "name the labels with --label-column, or give two columns of scores"
            )
        on_data, on_neighbour = (_without_padding(table[name]) for name in columns)
        return on_data, on_neighbour
    label, score = label_column or "side", score_column or "score"
    for name in (label, score):
        check_name("column", name, columns)
    labels, scores = (numbers(table[name], name) for name in (label, score))
    is_data = labels == 1
    unknown = ~(is_data | (labels == 0))
    if unknown.any():
        first = float(labels[unknown][0])
        raise InputError(f"column {label!r} must hold 1 (D) or 0 (D'), got {first:g}")
    return scores[is_data], scores[~is_data]


def _without_padding(column: Any) -> Any:
    """Return a column's numbers, less the blanks that make it as long as the other."""
    filled = column.notna().to_numpy()
    length = len(filled) - int(filled[::-1].argmax()) if filled.any() else 0
    return numbers(column.iloc[:length], column.name)
