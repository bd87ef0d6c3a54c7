"""Which mechanism for private PCA to take: ``dpaudit compare`` and ``recommend``."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpaudit.cli.exits import Command, failed
from dpaudit.cli.options import (
    completed_names,
    json_option,
    look_for_modules,
    print_json,
    work_options,
)
from dpaudit.cli.running import working
from dpaudit.cli.terminal import print_table
from dpaudit.errors import InputError
from dpaudit.printable import printable

if TYPE_CHECKING:
    from dpaudit.reports.comparison.page import MechanismComparison

__all__ = ["compare_command", "recommend_command"]


@click.command(
    "compare",
    cls=Command,
    examples=(
        "dpaudit compare goe-gaussian symmetrised-wishart",
        "dpaudit compare my_module:MyPCA goe-gaussian --data rows.csv --row-norm 2",
    ),
)
@click.argument(
    "mechanisms",
    metavar="[NAME|MODULE:OBJECT]...",
    nargs=-1,
    shell_complete=completed_names,
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="FILE.csv|.parquet|.npy",
    help="Rows to compare on, a row to a person [scikit-learn's digits].",
)
@click.option(
    "--streamed",
    is_flag=True,
    help="Read a .parquet, .npy or .zarr file of any size once, in blocks: for "
    "mechanisms that need the second moment alone.",
)
@click.option(
    "--row-norm",
    type=float,
    help="Public bound: longer rows are scaled down to it [1; digits: 64].",
)
@click.option(
    "--components",
    "--k",
    "n_components",
    type=int,
    help="How many [half of the columns, at most 10].",
)
@click.option("--epsilon", "epsilons", default="0.5,1,2")
@click.option("--delta", default=1e-5)
@click.option("--relation", default="add-remove", help="Or replace-one.")
@click.option("--repetitions", default=50, help="Releases behind every median.")
@click.option("--samples", default=1000, help="Most releases a side of each audit.")
@work_options("build/compare")
@json_option
def compare_command(
    mechanisms: tuple[str, ...],
    data: Path | None,
    streamed: bool,
    epsilons: str,
    samples: int,
    store: Path | None,
    by: dict[str, Any],
    as_json: bool,
    **options: Any,
) -> int:
    """Compare mechanisms for private PCA, with yours, on your rows.

    A page and a CSV file show how much variance they keep, the largest principal angle,
    the error, the run time and the verdict of a short audit. Without a NAME of the
    catalogue, yours is compared with all that suit. Yours is what dpaudit audit takes,
    or a class or function that takes epsilon (and delta, relation, row_norm,
    n_components). It releases a second-moment matrix (d, d), a basis (d, k) or a vector
    (d,), or has components.

    The comparison is not private: choosing a mechanism by its result on private rows is
    a release that no claim counts. Take public or synthetic rows.

    The same command goes on where it was stopped. The exit code is 2 or 3 if a
    mechanism failed, which the page shows beside the others.
    """
    from dpaudit.audit import Run
    from dpaudit.cli.tables import read_rows
    from dpaudit.reports.comparison.page import told
    from dpaudit.reports.comparison.run import compared

    look_for_modules()
    asked = _numbers(epsilons)
    blocks = {".parquet", ".pq", ".npy", ".zarr"}
    for name in mechanisms:
        if Path(name).suffix.lower() in {".csv", *blocks}:
            raise InputError(f"{name!r} is a file of rows: give it as --data {name}")
    if streamed and (data is None or data.suffix.lower() not in blocks):
        raise InputError("--streamed needs --data FILE.parquet, FILE.npy or FILE.zarr")
    if data is not None:
        rows = data if streamed else read_rows(data)
        options |= {"data": rows, "source": str(data)}
    with working(**by) as means:
        run = Run(store=store, **means)
        found = compared(mechanisms, epsilons=asked, budget=samples, run=run, **options)
    page = options["output"] / "index.html"
    if as_json:
        print_json(_record(found, page))
    else:
        _show(found, page)

    def failure(name: str, error: Exception) -> str:
        return printable(f"{name} failed: {told(name, error)}", longest=2000)

    return failed(found.failed, failure)


def _numbers(text: str) -> list[float]:
    """Return the numbers of a list with commas."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"--epsilon must be numbers > 0 with commas between, got {text!r}"
        ) from None


def _record(found: "MechanismComparison", page: Path) -> dict[str, Any]:
    from dpaudit.reports.comparison.page import WARNING, told

    rows = [
        {
            str(key): None if isinstance(value, float) and math.isnan(value) else value
            for key, value in row.items()
        }
        for row in found.table.to_dict("records")
    ]
    return {
        "rows": rows,
        "failed": {name: told(name, error) for name, error in found.failed.items()},
        "settings": {
            **vars(found.problem.setting),
            **found.settings,
            "rows": found.problem.shape[0],
            "scaled_down": found.problem.scaled,
            "source": found.problem.source,
        },
        "notes": list(found.notes),
        "warning": WARNING,
        "page": str(page),
    }


def _show(found: "MechanismComparison", page: Path) -> None:
    from dpaudit.reports.comparison.page import WARNING
    from dpaudit.reports.comparison.problem import MEASURES
    from dpaudit.reports.words import duration, percent, setting, verdict

    heads = ("mechanism", "epsilon", "captured", "angle", "error", "time", "verdict")
    lines: list[tuple[str, ...]] = [heads]
    rows = [row for row in found.table.to_dict("records") if row["seconds"] > 0]
    for three in zip(*[iter(rows)] * len(MEASURES), strict=True):
        captured, angle, error = (row["median"] for row in three)
        first = three[0]
        ratio = "-" if math.isnan(error) else f"{error:.2f} x"
        lines.append(
            (
                printable(first["mechanism"], longest=40),
                setting(first["epsilon"]),
                percent(captured),
                f"{angle:.1f} deg",
                ratio,
                duration(first["seconds"]),
                printable(verdict(first["verdict"])),
            )
        )
    print_table(lines)
    samples = found.settings["samples"]
    click.echo(
        f"Audits of at most {samples:,} releases a side; not refuted is not a proof of "
        "privacy."
    )
    for note in (*found.notes, WARNING):
        click.echo(printable(note, longest=2000))
    click.echo(str(page))


def _spectrum(
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


def _bound(ctx: click.Context, parameter: click.Parameter, text: str) -> float | None:
    try:
        return None if text == "none" else float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a number, nor none") from None


@click.command(
    "recommend",
    cls=Command,
    examples=(
        "dpaudit recommend --d 20 --k 3 --epsilon 1 --delta 1e-6",
        "dpaudit recommend --n 10000 --d 20 --k 3 --epsilon 1 --delta 1e-6 --gap 0.1",
        "dpaudit recommend --n 10000 --d 20 --k 3 --epsilon 1 --delta 1e-6 "
        "--spectrum 0.4,0.2,0.14,0.04",
        "dpaudit recommend --n 10000 --d 20 --k 3 --epsilon 1 --delta 1e-6 "
        "--spectrum 9,4,3,0.3 --row-norm none",
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
    callback=_spectrum,
    metavar="NUMBER,...",
    help="In place of a gap: its largest eigenvalues, more than components.",
)
@click.option(
    "--row-norm",
    callback=_bound,
    default="1",
    show_default=True,
    metavar="NUMBER|none",
    help="Bound on a row; none if none is known, which takes a spectrum.",
)
@json_option
def recommend_command(relation: str, as_json: bool, **options: Any) -> None:
    """Rank the mechanisms for private PCA by their measured errors.

    The error is the sine of the largest angle between the released components and those
    without noise: its median, and the range of four releases out of five. With --n, and
    --gap or --spectrum, it is measured at once, on a second moment like that: in
    seconds, with 1000 columns in a minute. Otherwise it is looked up in a grid of
    settings, which ships with dpaudit, and the order is that of the column 'at worst':
    how many times the least error it can be. All numbers must be public: one that was
    looked up in the data tells of the data.

    With --spectrum a second table is for rows without a known bound. NAME@private is
    PrivatePCA(mechanism=NAME, row_norm="private"), which chooses the norm privately;
    NAME@directions brings every row to length 1.
    """
    from dpaudit.algorithms.estimators.recommendation import recommend
    from dpaudit.neighbours import Relation

    found = recommend(relation=Relation(relation), **options)
    if as_json:
        click.echo(json.dumps(asdict(found), indent=2))
        return
    shown = (*found.choices, *found.without_bound)
    width = max((len(choice.mechanism) for choice in shown), default=9)
    ratios = any(choice.at_worst is not None for choice in shown)
    head = f"{'at worst  ' if ratios else ''}error   of four releases in five"
    if found.choices or not found.without_bound:
        click.echo(f"{'mechanism':<{width}}  {head}")
    for place, choice in enumerate(shown):
        if place == len(found.choices):
            click.echo(f"{'without a bound':<{width}}  {head}")
        ratio = f"{choice.at_worst:<8.3g}  " if ratios else ""
        spread = f"{choice.low:.3g} to {choice.high:.3g}"
        click.echo(
            f"{choice.mechanism:<{width}}  {ratio}{choice.error:<6.3g}  {spread}"
        )
    for note in found.notes:
        click.echo(f"note: {note}")
    click.echo(f"measured: {found.measured}")
