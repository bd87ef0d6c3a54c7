r"""What changed between two reports: verdicts, claims, bounds, errors, mechanisms.

The tables of a report (its CSV files) are read, and nothing else of it. A table of
verdicts has a column ``verdict``; one of errors has ``repetition``, before it what says
which cell of a grid is meant, and after it what was measured in each repetition.

**Errors.** In each cell, and for each column, the old repetitions are held against the
new: the two-sample test of Kolmogorov and Smirnov, its exact law (Hodges, Ark. Mat.
1958, as SciPy has it), so that nothing is assumed of errors but that repetitions are
independent. Ties only make the test more careful, and what released nothing (NaN)
counts as the largest error there is. With c for all that is compared, the same numbers
too (which of them are the same may be chance, so they count), a change is told at p <=
`ALARM`/c: if all old and new repetitions have the same law, *any* change is told with
probability `ALARM` at most (the union bound). The least p of n old and m new
repetitions is 2 n! m!/(n + m)!; where that is above the level, `Differences.blind`
counts the cell. Repetitions that share rows, drawn by the seed, have another law under
another seed: reports of one seed and profile are what is meant to be compared.

**Bounds** are lower bounds of the privacy loss, each valid by itself: of two that are
apart neither is wrong. They are listed where they moved by more than `MOVED`.

**Numbers without repetitions** (exact losses, say) are listed where they differ by a
relative `ROUNDING` or more. Of a table that has no repetitions and no verdicts the
first row of each column is told, and how many more there are; times are not.
"""

from collections.abc import Collection, Iterator, Mapping
from math import comb
from pathlib import Path
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
import pandas as pd
from scipy.stats import ks_2samp

from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.printable import told_apart
from dpaudit.reports.page import render_one

__all__ = ["Change", "Differences", "compare_reports", "page_of"]

ALARM = 1e-3
MOVED, ROUNDING = 0.05, 1e-6
KINDS = {
    "verdict": "Verdicts",
    "claim": "Claims",
    "error": "Measurements beyond chance",
    "number": "Numbers without repetitions",
    "bound": "Lower bounds of the privacy loss",
    "gone": "No longer there",
    "new": "New",
}
"""What may change, in the order in which it is told."""
_COUNTED = ("verdicts", "cells", "other", "blind")
_NAMES = ("library", "name", "mechanism", "theorem", "error", "variable", "relation")
_POINT = ("epsilon", "constant", "ratio")  # of which one mechanism has several rows
_CHANCE = "ζ"  # the variable of events, whose ``predicted`` is what a row is about
_BOUNDS = ("epsilon_lower", "delta_lower")
_EXACT = ("exact_epsilon", "exact_delta", "predicted")


class Change(NamedTuple):
    """One thing that is other in the new report than in the old."""

    kind: str  # of `KINDS`
    table: str  # without .csv
    where: str  # the mechanism and the point
    what: str  # the column
    old: str
    new: str


class Differences(NamedTuple):
    """What changed, and how much was held against what."""

    changes: tuple[Change, ...]
    verdicts: int  # compared
    cells: int  # of measurements, by column, compared
    other: int  # of these, whose numbers are not the same
    blind: int  # of these, with too few repetitions to tell any change

    def of(self, kind: str) -> tuple[Change, ...]:
        """Return the changes of one kind."""
        return tuple(each for each in self.changes if each.kind == kind)

    @property
    def matters(self) -> bool:
        """Whether a verdict, a claim, an error or an exact number is another."""
        return any(map(self.of, ("verdict", "claim", "error", "number")))

    @property
    def headline(self) -> str:
        """What is to be said first."""
        told = [
            f"{len(found)} {words.lower()}"
            for kind, words in KINDS.items()
            if (found := self.of(kind))
        ]
        return f"Changed: {', '.join(told)}." if told else "Nothing changed."

    @property
    def measured(self) -> str:
        """What was compared, and what cannot be told."""
        blind = f", {self.blind:,} of them with too few to tell any change"
        return (
            f"{self.verdicts:,} verdicts and {self.cells:,} cells of measurements "
            f"compared; in {self.other:,} cells the numbers are not the same, and were "
            f"tested by their repetitions{blind if self.blind else ''} (chance tells "
            f"any change with probability {ALARM:g} at most)."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        return {
            "headline": self.headline,
            **{each: getattr(self, each) for each in _COUNTED},
            "alarm": ALARM,
            "changes": [each._asdict() for each in self.changes],
        }

    def lines(self) -> Iterator[str]:
        """Yield a text, for a terminal."""
        yield self.headline
        for kind, words in KINDS.items():
            if found := self.of(kind):
                yield from ("", words)
            for each in found:
                said = f"{each.table}: {each.where}, {each.what}".rstrip(", ")
                change = f": {each.old} -> {each.new}" if each.old or each.new else ""
                yield f"  {said}{change}"
        yield from ("", self.measured)


def compare_reports(old: Path, new: Path) -> Differences:
    """Return what changed between the reports in two folders.

    Raises
    ------
    InputError
        If one has no tables, or a table that cannot be read.
    """
    before, after = _tables(old), _tables(new)
    changes = list(_moved("tables", before, after))
    verdicts, cells = 0, 0
    tested: list[tuple[Change, float, float]] = []
    for name in sorted(before.keys() & after):
        pair = before[name], after[name]
        columns = ([f"column {each}" for each in table] for table in pair)
        changes += _moved(name, *columns)
        if all("verdict" in table for table in pair):
            rows = [_by_name(table) for table in pair]
            changes += _moved(name, *rows)
            both = [key for key in rows[0] if key in rows[1]]
            verdicts += len(both)
            for key in both:
                changes += _judged(name, key, rows[0][key], rows[1][key])
        elif all("repetition" in table for table in pair):
            changes += _moved(name, *map(_mechanisms, pair))
            changes += _lost(name, *pair)
            compared = list(_cells(name, *pair))
            cells += len(compared)
            tested += filter(None, compared)
        elif not any({"verdict", "repetition"} & set(table) for table in pair):
            changes += _rows(name, *pair)
    level = ALARM / max(cells, 1)
    for change, p, _ in tested:
        changes += [change] if p <= level else []
    order = list(KINDS)
    changes.sort(key=lambda each: order.index(each.kind))
    blind = sum(least > level for *_, least in tested)
    return Differences(tuple(changes), verdicts, cells, len(tested), blind)


def page_of(found: Differences, old: str, new: str) -> str:
    """Return a page of its own."""
    context = {"found": found, "kinds": KINDS, "old": old, "new": new}
    return render_one("differences.html.j2", context)


def _tables(folder: Path) -> dict[str, pd.DataFrame]:
    """Return the tables of a report by their names."""
    files = sorted(folder.glob("*.csv"))
    if not files:
        raise InputError(f"{str(folder)!r} is no folder of a report: it has no tables")
    found = {}
    for file in files:
        try:
            found[file.stem] = pd.read_csv(file)
        except (ValueError, OSError) as error:
            raise InputError(f"cannot read {str(file)!r}: {error}") from error
    return found


def _moved(table: str, old: Collection[str], new: Collection[str]) -> Iterator[Change]:
    """Yield what came and what went."""
    for kind, these, those in (("gone", old, new), ("new", new, old)):
        for each in sorted(set(these) - set(those)):
            yield Change(kind, table, each, "", "", "")


def _mechanisms(table: pd.DataFrame) -> set[str]:
    return set(map(str, table["mechanism"].dropna())) if "mechanism" in table else set()


def _rows(name: str, old: pd.DataFrame, new: pd.DataFrame) -> Iterator[Change]:
    """Yield what is other in the rows of a table, one after the other."""
    if len(old) != len(new):
        kind = "gone" if len(old) > len(new) else "new"
        yield Change(kind, name, f"{abs(len(old) - len(new)):,} rows", "", "", "")
        return
    places = list(_by_name(old))
    for column in (each for each in old if each in new and "seconds" not in each):
        pairs = zip(old[column], new[column], strict=True)
        other = [(x, *y) for x, y in enumerate(pairs) if not _alike(*y)]
        if other:
            first, one, two = other[0]
            besides = f" (and {len(other) - 1:,} of {len(old) - 1:,} other rows)"
            where = places[first] + besides * (len(other) > 1)
            said = _said(_number(one), _number(two))
            yield Change("number", name, where, column, *said)


def _alike(old: Any, new: Any, far: float = ROUNDING) -> bool:
    """Say whether two values are the same, or numbers that are not far apart."""
    old, new = _number(old), _number(new)
    if isinstance(old, float) and isinstance(new, float):
        return bool(np.isclose(old, new, rtol=far, atol=0, equal_nan=True))
    return bool(old == new)


def _by_name(table: pd.DataFrame) -> dict[str, Mapping[str, Any]]:
    """Return the rows of a table of verdicts by what they are about."""
    found: dict[str, Mapping[str, Any]] = {}
    names = [name for name in (*_NAMES, *_POINT) if name in table]
    for row in table.to_dict("records"):
        about = {name: row[name] for name in names if not pd.isna(row[name])}
        if row.get("variable") == _CHANCE:
            about[_CHANCE] = row["predicted"]
        first = key = _place(about)
        number_of = 1
        while key in found:
            number_of += 1
            key = f"{first} (row {number_of})"
        found[key] = row
    return found


def _place(about: Mapping[str, Any]) -> str:
    """Return what a row or a cell is about, in words."""
    return ", ".join(
        value if isinstance(value, str) else f"{name} = {_number(value):g}"
        for name, value in about.items()
    )


def _judged(
    table: str, key: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[Change]:
    """Yield what is other in a row of verdicts."""
    kinds = {"verdict": "verdict", "claim_text": "claim"}
    kinds |= dict.fromkeys(_EXACT, "number") | dict.fromkeys(_BOUNDS, "bound")
    for column, kind in kinds.items():
        if column not in old or column not in new:
            continue
        one, two = (_number(each[column]) for each in (old, new))
        if not _alike(one, two, MOVED if kind == "bound" else ROUNDING):
            yield Change(kind, table, key, column, *_said(one, two))


def _number(value: Any) -> Any:
    """Return the number that a value is, also in a text, or the value.

    Beside one word a column of numbers is of texts. Numbers may be too large for one.
    """
    try:
        return float(str(value))
    except ValueError:
        return value


def _lost(name: str, old: pd.DataFrame, new: pd.DataFrame) -> Iterator[Change]:
    """Yield what is not compared: columns of other things, and cells of a grid."""
    one, two = (set(table.select_dtypes("number")) for table in (old, new))
    for column in sorted((one ^ two) & set(old) & set(new) - {"mechanism"}):
        kind = "gone" if column in one else "new"
        yield Change(kind, name, f"column {column} of numbers", "", "", "")
    if not (keys := _keys(old, new)):
        return
    both = _mechanisms(old) & _mechanisms(new)  # the others are told themselves
    cells: list[set[Any]] = []
    for table in (old, new):
        some = table[table["mechanism"].isin(both)] if "mechanism" in keys else table
        cells.append({key for key, _ in some.groupby(keys, sort=False)})
    for kind, these, those in zip(("gone", "new"), cells, cells[::-1], strict=True):
        if lost := len(these - those):
            where = f"{lost:,} of {len(these):,} cells"
            yield Change(kind, name, where, "", "", "")


def _keys(old: pd.DataFrame, new: pd.DataFrame) -> list[str]:
    """Return the columns that say which cell of a grid is meant."""
    return [key for key in old.columns[: list(old).index("repetition")] if key in new]


def _cells(
    name: str, old: pd.DataFrame, new: pd.DataFrame
) -> Iterator[tuple[Change, float, float] | None]:
    """Yield what may have changed in each cell, its p, and the least that p can be.

    None where the numbers are the same.
    """
    keys = _keys(old, new)
    columns = [
        column
        for column in old.select_dtypes("number")
        if column in new.select_dtypes("number")
        and column not in (*keys, "repetition")
        and "seconds" not in column
    ]
    if not keys:
        return
    groups = [dict(iter(table.groupby(keys, sort=False))) for table in (old, new)]
    for key, first in groups[0].items():
        if key not in groups[1]:
            continue
        where = _place(dict(zip(keys, key, strict=True)))
        for column in columns:
            one, two = (
                each[column].to_numpy(float) for each in (first, groups[1][key])
            )
            if one.shape == two.shape and np.allclose(
                one, two, rtol=ROUNDING, atol=0, equal_nan=True
            ):
                yield None
                continue
            least = 2 / comb(len(one) + len(two), len(one))
            middles = [float(np.median(_ranked(each))) for each in (one, two)]
            what = f"median of {column}"
            change = Change("error", name, where, what, *_said(*middles))
            with catch_warnings():  # of p above 1 by rounding, or too many paths
                simplefilter("ignore", RuntimeWarning)
                p = ks_2samp(_ranked(one), _ranked(two), method="exact").pvalue
            yield change, float(p), least


def _ranked(values: Array) -> Array:
    """Return numbers with infinity for NaN, which is how much nothing is off."""
    return np.where(np.isnan(values), np.inf, values)


def _said(old: Any, new: Any) -> tuple[str, str]:
    """Return two values in words, numbers with as many digits as tell them apart."""
    numbers = [isinstance(each, float | int) for each in (old, new)]
    if all(numbers) and not (pd.isna(old) or pd.isna(new)):
        one, two = told_apart(float(old), float(new), 3)
        return one, two
    one, two = (
        "none" if pd.isna(each) else f"{each:.3g}" if is_number else str(each)
        for each, is_number in zip((old, new), numbers, strict=True)
    )
    return one, two
