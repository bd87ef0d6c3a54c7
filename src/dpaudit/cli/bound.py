"""What counts, scores and canaries can say: ``bound``, ``plan`` and ``canaries``."""

from pathlib import Path
from typing import Any

import click

from dpaudit.cli.exits import Command, Exit
from dpaudit.cli.options import FILE, grouped, json_option, print_result
from dpaudit.cli.tables import numbers, read_table
from dpaudit.errors import InputError
from dpaudit.validation import check_count, check_fraction, check_name

__all__ = ["bound_command", "canaries_command", "plan_command"]

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
        found = [
            bounds.one_run(**one_run, **options, gaussian=gaussian)
            for gaussian in (False, True)
        ]
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
    options["fraction"] = check_fraction("--fixed", 0.1 if fixed is None else fixed)
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
    import numpy as np

    table = read_table(path, content="scores")
    columns = list(table.columns)
    if label_column is None and "side" not in columns and score_column is None:
        if len(columns) != 2:
            raise InputError(
                f"{str(path)!r} has no column 'side' (columns: {', '.join(columns)}): "
                "name the labels with --label-column, or give two columns of scores"
            )
        on_data, on_neighbour = (_without_padding(table[name]) for name in columns)
        seen = [{*np.unique(side)[:3].tolist()} for side in (on_data, on_neighbour)]
        if {0, 1} in seen and not seen[0] | seen[1] <= {0, 1}:
            raise InputError(
                f"column {columns[seen.index({0, 1})]!r} holds 0 and 1 alone: name it "
                "with --label-column if it says the side, or the column 'side' in the "
                "file; two columns are the scores on D and on D' where both have scores"
            )
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


@click.command("plan", cls=Command, examples=("dpaudit plan --epsilon 1 --true 2",))
@click.option("--epsilon", type=float, required=True, help="Epsilon of the claim.")
@click.option(
    "--true",
    "true_epsilon",
    type=float,
    required=True,
    help="The true epsilon that is to be found out.",
)
@click.option("--delta", default=0.0)
@click.option("--power", default=0.9, help="Probability of the refutation.")
@click.option("--confidence", default=0.999)
@click.option(
    "--mechanism",
    "model",
    help="laplace, gaussian or randomised-response [all that can have this epsilon].",
)
@json_option
def plan_command(model: str | None, as_json: bool, **options: float) -> None:
    """Say how many releases an audit needs to refute a claim.

    The claim is (--epsilon, --delta), and --true is the smallest true epsilon at
    --delta, on the pair of neighbours that is audited. How many releases that takes
    depends on the mechanism: randomised response shows all that it leaks in one bit,
    and no mechanism is refuted sooner; Gaussian noise shows it only in its tails.
    """
    from dpaudit.audit.planning import MODELS, plan_audit

    applicable = [m for m in MODELS if m != "gaussian" or options["delta"] > 0]
    models = applicable if model is None else [check_name("--mechanism", model, MODELS)]
    print_result([plan_audit(model=name, **options) for name in models], as_json)


_SCORE, _INCLUDED = "score", "included"
_GUESS, _TRUTH, _ABSTAIN = "guess", "truth", "abstain"

_canaries_options = grouped(
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
@_canaries_options
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
    """Judge a claim by the canaries of one run (of training).

    FILE has a line for each canary: either its score, which is larger where the canary
    is in the data, and whether it was included (1 or 0); or a guess and the truth (1 or
    0), and perhaps abstain (1 where no guess was made). Lines are in any order.

    The verdict holds only if all of this is so, which no file shows:

    1. Each canary was included by a fair coin of its own; not a fixed half of the
    canaries, and not one coin for several.

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
            _column(table, name or usual, f"--{usual}-column")
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
    return Exit.REFUTED if result.refuted else 0


def _has_scores(path: Path, columns: list[str]) -> bool:
    """Say whether a table holds scores, or guesses, or raise if that is not clear."""
    found = [name for name in (_SCORE, _GUESS) if name in columns]
    if len(found) != 1:
        raise InputError(
            f"{str(path)!r} must have either the columns {_SCORE} and {_INCLUDED}, or "
            f"{_GUESS} and {_TRUTH} (columns: {', '.join(columns) or 'none'})"
        )
    return found == [_SCORE]


def _column(table: Any, name: str, kind: str = "column", complete: bool = True) -> Any:
    """Return a column's numbers."""
    check_name(kind, name, list(table.columns))
    column = numbers(table[name], name)
    missing = (column != column).nonzero()[0]
    if complete and len(missing):
        raise InputError(
            f"column {name!r} must not contain NaN, got it for canary {missing[0]} "
            "(counted from 0)"
        )
    return column
