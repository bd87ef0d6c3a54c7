"""What counts and scores can say: ``dpaudit bound`` and ``dpaudit plan``."""

from pathlib import Path
from typing import Any

import click

from dpaudit.cli.exits import Command
from dpaudit.cli.options import FILE, grouped, json_option, print_result
from dpaudit.cli.tables import numbers, read_table
from dpaudit.errors import InputError
from dpaudit.validation import check_count, check_name

__all__ = ["bound_command", "plan_command"]

_METHODS = ("joint", "clopper-pearson", "gaussian")

_counts_options = grouped(
    "counts",
    click.option("--tp", type=int, help="Releases on D where the event happened."),
    click.option("--fn", type=int, help="Releases on D where it did not."),
    click.option("--fp", type=int, help="Releases on D' where the event happened."),
    click.option("--tn", type=int, help="Releases on D' where it did not."),
)
_one_run_options = grouped(
    "one_run",
    click.option("--guesses", type=int, help="One run: canaries guessed."),
    click.option("--correct", type=int, help="One run: guesses that were right."),
    click.option("--canaries", type=int, help="One run: canaries, each a fair coin."),
)
_scores_options = grouped(
    "of_scores",
    click.option("--score-column", help="[score]"),
    click.option(
        "--label-column",
        help="1 for D, 0 for D' [side]; without it, a file of two columns holds the "
        "scores on D and on D'.",
    ),
    click.option(
        "--fixed",
        type=float,
        help="Scores: share of the releases that chooses the event [0.1].",
    ),
    click.option("--seed", type=int, help="Scores: order of the releases [0]."),
)


@click.command(
    "bound",
    cls=Command,
    examples=(
        "dpaudit bound --tp 830 --fn 170 --fp 310 --tn 690",
        "dpaudit bound scores.csv --delta 1e-5",
        "dpaudit bound --guesses 100 --correct 90 --canaries 1000",
    ),
)
@click.argument("file", required=False, type=FILE, metavar="[SCORES.csv|.parquet]")
@_counts_options
@_one_run_options
@click.option("--delta", default=0.0)
@click.option("--confidence", default=0.95)
@click.option(
    "--method", help="joint, clopper-pearson or gaussian [all; joint decides]."
)
@click.option(
    "--two-sided",
    is_flag=True,
    help="Counts: the event was not known to be more frequent on D.",
)
@_scores_options
@json_option
def bound_command(
    file: Path | None,
    counts: dict[str, int],
    one_run: dict[str, int],
    method: str | None,
    two_sided: bool,
    of_scores: dict[str, Any],
    as_json: bool,
    **options: Any,
) -> None:
    """Bound the privacy loss from below, from counts or scores.

    Counts of one event, chosen before the releases were drawn:
    --tp --fn --fp --tn. Scores of releases on D and D': a file. Guesses about the
    canaries of one run: --correct --guesses --canaries.
    """
    from dpaudit.audit import bounds

    form = _form(counts, one_run, file)
    alien = {} if form == "scores" else dict(of_scores)
    alien |= {} if form == "counts" else {"two_sided": two_sided or None}
    alien |= {"method": method} if form == "one run" else {}
    for name, value in alien.items():
        if value is not None:
            raise InputError(f"--{name.replace('_', '-')} does not apply to {form}")
    if method is not None:
        check_name("method", method, _METHODS)
    methods = _METHODS if method is None else (method,)
    found: list[Any]
    if form == "one run":
        found = [bounds.one_run(**one_run, **options)]
    elif form == "counts":
        checked = _checked(counts)
        functions = (bounds.joint, bounds.clopper_pearson, bounds.gaussian)
        found = [
            function(checked, two_sided=two_sided, **options)
            for name, function in zip(_METHODS, functions, strict=True)
            if name in methods
        ]
    else:
        assert file is not None
        found = _from_scores(file, methods, **of_scores, **options)
    print_result(found, as_json)


def _form(counts: dict[str, int], one_run: dict[str, int], file: Path | None) -> str:
    """Return the one form of input that was given, and given completely."""
    ordered = {name: one_run[name] for name in ("correct", "guesses", "canaries")}
    forms: dict[str, dict[str, Any]] = {
        "counts": counts,
        "one run": ordered,
        "scores": {"file": file},
    }
    begun = [
        form
        for form, values in forms.items()
        if any(value is not None for value in values.values())
    ]
    if len(begun) != 1:
        raise InputError(
            "give one of: --tp --fn --fp --tn; --correct --guesses --canaries; "
            f"a file of scores (got {' and '.join(begun) or 'nothing'})"
        )
    (form,) = begun
    for name, value in forms[form].items():
        if value is None:
            raise InputError(f"--{name} is missing")
    return form


def _checked(cells: dict[str, int]) -> Any:
    """Return the four cells as counts."""
    from dpaudit.audit.bounds import Counts

    for name, count in cells.items():
        check_count(f"--{name}", count, minimum=0)
    on_data, on_neighbour = cells["tp"] + cells["fn"], cells["fp"] + cells["tn"]
    if on_data == 0 or on_neighbour == 0:
        side = "D (--tp + --fn)" if on_data == 0 else "D'"
        raise InputError(f"there must be at least one release on {side}")
    return Counts(cells["tp"], on_data, cells["fp"], on_neighbour)


def _from_scores(
    file: Path,
    methods: tuple[str, ...],
    *,
    score_column: str | None,
    label_column: str | None,
    fixed: float | None,
    seed: int | None,
    **options: Any,
) -> list[Any]:
    import numpy as np

    from dpaudit.audit.bounds import fixed_scores, split_scores

    sides = _read(file, score_column, label_column)
    seed = check_count("--seed", seed or 0, minimum=0)
    options["fraction"] = 0.1 if fixed is None else fixed
    bounds: list[Any] = []
    for name in methods:
        options["rng"] = np.random.default_rng(seed)
        if name == "clopper-pearson":
            bounds.append(split_scores(*sides, **options))
        else:
            bounds.append(fixed_scores(*sides, gaussian=name == "gaussian", **options))
    return bounds


def _read(
    path: Path, score_column: str | None, label_column: str | None
) -> tuple[Any, Any]:
    """Return the scores on D and on D' from a table."""
    table = read_table(path, content="scores")
    columns = list(table.columns)
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
@click.option("--delta", default=0.0)
@click.option("--power", default=0.9, help="How probable the refutation shall be.")
@click.option("--confidence", default=0.999)
@click.option(
    "--mechanism",
    "model",
    help="laplace, gaussian or randomised-response [all that can have this epsilon].",
)
@json_option
def plan_command(model: str | None, as_json: bool, **options: float) -> None:
    """Say how many releases an audit needs to refute a claim.

    A claim of (--epsilon, --delta), where --true is the smallest true epsilon at
    --delta, on the pair of neighbours that is audited. How many releases that takes
    depends on the mechanism: randomised response shows all it leaks in one bit, and no
    mechanism is refuted sooner; Gaussian noise shows it in its tails only.
    """
    from dpaudit.audit.planning import MODELS, plan_audit

    applicable = [m for m in MODELS if m != "gaussian" or options["delta"] > 0]
    models = applicable if model is None else [model]
    print_result([plan_audit(model=name, **options) for name in models], as_json)
