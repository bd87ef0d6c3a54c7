"""``dpaudit compare``."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpaudit.cli.exits import INPUT_ERROR, OWN_ERROR, Command
from dpaudit.cli.modules import look_for_modules
from dpaudit.cli.options import completed_names, json_option
from dpaudit.cli.running import crew, steps, workers_option
from dpaudit.errors import InputError

if TYPE_CHECKING:
    from dpaudit.reports.comparison.page import Comparison

__all__ = ["compare_command"]


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
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.csv|.parquet|.npy",
    help="Rows to compare on, a row to a person [scikit-learn's digits].",
)
@click.option(
    "--row-norm",
    type=float,
    help="Public bound: longer rows are scaled down to it [1; digits: 64].",
)
@click.option(
    "--components", type=int, help="How many [half of the columns, at most 10]."
)
@click.option("--epsilon", "epsilons", default="0.5,1,2", show_default=True)
@click.option("--delta", type=float, default=1e-5, show_default=True)
@click.option(
    "--relation", default="add-remove", show_default=True, help="Or replace-one."
)
@click.option(
    "--repetitions",
    type=int,
    default=50,
    show_default=True,
    help="Releases behind every median.",
)
@click.option(
    "--samples",
    type=int,
    default=1000,
    show_default=True,
    help="Most releases a side of each audit.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("build/compare"),
    show_default=True,
)
@click.option(
    "--store",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where finished work is kept, and found again [OUTPUT/work.db].",
)
@click.option("--seed", type=int, default=0, show_default=True)
@workers_option
@json_option
def compare_command(
    mechanisms: tuple[str, ...],
    data: Path | None,
    components: int | None,
    epsilons: str,
    samples: int,
    store: Path | None,
    workers: int | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Compare mechanisms for private PCA, your own among them, on rows of your own.

    What they keep of the variance, the largest principal angle, the error, the run time
    and the verdict of a short audit, on a page and in a CSV file. Without a NAME of the
    catalogue, those stand beside yours that suit. Your own is what dpaudit audit takes,
    or a class or function that takes epsilon (and delta, relation, row_norm,
    n_components), and releases a second-moment matrix (d, d), a basis (d, k) or a
    vector (d,), or has components.

    Nothing of this is private: choosing a mechanism by its result on private rows is a
    release that no claim counts. Take public or synthetic rows.

    What was stopped goes on when the same command is given again. The exit code is 2 or
    3 if a mechanism failed, which the page shows beside the others.
    """
    from dpaudit.audit import Run
    from dpaudit.cli.tables import read_rows
    from dpaudit.reports.comparison.run import compared

    look_for_modules()
    asked = _numbers(epsilons)
    if data is not None:
        options |= {"data": read_rows(data), "source": str(data)}
    with crew(workers, later=True) as executor, steps() as show:
        found = compared(
            mechanisms,
            n_components=components,
            epsilons=asked,
            budget=samples,
            run=Run(executor=executor, store=store, progress=show),
            **options,
        )
    page = options["output"] / "index.html"
    if as_json:
        click.echo(json.dumps(_record(found, page), indent=2, allow_nan=False))
    else:
        _show(found, page)
    return _failures(found)


def _numbers(text: str) -> list[float]:
    """Return the numbers of a list with commas.

    Raises
    ------
    InputError
        If an entry is none.
    """
    found = []
    for part in text.split(","):
        try:
            found.append(float(part))
        except ValueError:
            raise InputError(
                f"--epsilon must be numbers > 0 with commas between, got {text!r}"
            ) from None
    return found


def _record(found: "Comparison", page: Path) -> dict[str, Any]:
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
            "rows": len(found.problem.rows),
            "scaled_down": found.problem.scaled,
            "source": found.problem.source,
        },
        "notes": list(found.notes),
        "warning": WARNING,
        "page": str(page),
    }


def _show(found: "Comparison", page: Path) -> None:
    from dpaudit.printable import printable
    from dpaudit.reports.comparison.measures import MEASURES
    from dpaudit.reports.comparison.page import WARNING
    from dpaudit.reports.words import aligned, duration, percent, setting, verdict

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
    click.echo("\n".join(aligned(lines)))
    samples = found.settings["samples"]
    click.echo(
        f"Audits of at most {samples:,} releases a side; not refuted is not a proof of "
        "privacy."
    )
    for note in (*found.notes, WARNING):
        click.echo(printable(note, longest=2000))
    click.echo(str(page))


def _failures(found: "Comparison") -> int:
    """Name on standard error what failed; return the exit code."""
    from dpaudit.errors import DPAuditError
    from dpaudit.printable import printable
    from dpaudit.reports.comparison.page import told

    for name, error in found.failed.items():
        line = printable(f"{name} failed: {told(name, error)}", longest=2000)
        click.echo(f"dpaudit: {line}", err=True)
    if not found.failed:
        return 0
    ours = any(not isinstance(each, DPAuditError) for each in found.failed.values())
    return OWN_ERROR if ours else INPUT_ERROR
