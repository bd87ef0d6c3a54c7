"""What the site says of each experiment: what was asked, and the numbers it gave."""

import inspect
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.arrays import Array
from dpaudit.printable import said
from dpaudit.reports.experiment import Experiment
from dpaudit.reports.sections import Results, Section, Size, TopicPage, all_sections
from dpaudit.reports.tables import Printed
from dpaudit.reports.words import count, delta, number, plain

FOLDER = "experiments"
_COUNTED = {"repetition", "seed"}
_MOST = 400  # rows of a table on a page; the file has all


def pages(results: Results) -> list[TopicPage]:
    """Return the pages of all experiments, in the order of their sections."""
    home = _homes(results.profile)
    return [
        TopicPage(
            folder=FOLDER,
            name=name,
            template="experiment.html.j2",
            context=partial(_context, results, each, home.get(name)),
            group=home[name].title if name in home else "",
            line=each.title,
            verdict=_size(results.tables[name]),
            refuted=isinstance(results.tables[name], Exception),
            mechanisms=each.mechanisms,
        )
        for name, each in results.experiments.items()
        if name in results.tables  # of a store that lacks one, nothing is said
    ]


def _homes(profile: str) -> dict[str, Section]:
    """Return the section that declares each experiment."""
    return {
        each.name: section
        for section in all_sections().values()
        if profile in (section.sizes or (profile,))
        for each in section.experiments(section.sizes.get(profile, Size()))
    }


def _size(table: pd.DataFrame | Exception) -> str:
    if isinstance(table, Exception):
        return "failed"
    return f"{count(len(table))} row{'s' * (len(table) != 1)}"


def _context(
    results: Results, experiment: Experiment, section: Section | None
) -> dict[str, Any]:
    found = results.tables[experiment.name]
    failed = said(found) if isinstance(found, Exception) else ""
    table = pd.DataFrame() if isinstance(found, Exception) else found
    keys = [k for k in ("mechanism", *experiment.grid) if k in table]
    rows, columns = summary_rows(table, keys)
    options = {name: _told(value) for name, value in experiment.options.items()}
    return {
        "experiment": experiment,
        "section": section,
        "question": _question(inspect.getdoc(experiment.measure)),
        "grid": {name: _told(values) for name, values in experiment.grid.items()},
        "options": {name: text for name, text in options.items() if len(text) < 200},
        "notes": [] if failed else _notes(section, experiment, table),
        "size": _size(found),
        "failed": failed,
        "keys": keys,
        "columns": columns,
        "rows": rows[:_MOST],
        "left_out": max(len(rows) - _MOST, 0),
        "profile": results.profile,
    }


def _notes(
    section: Section | None, experiment: Experiment, table: pd.DataFrame
) -> list[str]:
    """Return what the section concludes from this table alone."""
    if section is None:
        return []
    return [
        sentence
        for names, find in section.notes.items()
        if names == (experiment.name,)
        for sentence in find(table)
    ]


def summary_rows(
    table: pd.DataFrame, keys: Sequence[str]
) -> tuple[list[Printed], list[str]]:
    """Return a table by its groups: medians, and quartiles where they differ.

    ``keys``: columns that name a group.

    Rows have ``keys``, in words, and ``cells``, pairs of the median in words and its
    quartiles in words; columns are what the cells are.
    """
    known = {*keys, *_COUNTED, "witness"}
    numbers = [str(name) for name in table.select_dtypes("number") if name not in known]
    words = [str(name) for name in table if name not in known.union(numbers)]
    groups = list(table.groupby(list(keys), sort=False)) if keys else []
    alone = bool(groups) and all(len(group) == 1 for _, group in groups)
    rows = [
        Printed(
            keys=[each if isinstance(each, str) else _number(each) for each in key],
            cells=[_spread(each) for each in group[numbers].to_numpy(dtype=float).T],
            words=[str(each) for each in group[words].iloc[0]] if alone else [],
            draws=len(group),
        )
        for key, group in groups
    ]
    return rows, [*numbers, *(words if alone else [])]


def _spread(values: Array) -> tuple[str, str]:
    """Return a median in words, and its quartiles where they differ."""
    known = values[~np.isnan(values)]
    if not len(known):
        return "–", ""
    low, middle, high = np.quantile(known, [0.25, 0.5, 0.75], method="nearest")
    told = _number(float(low)), _number(float(high))
    spread = "" if told[0] == told[1] else f"{told[0]} to {told[1]}"
    return _number(float(middle)), spread


def _number(value: float) -> str:
    """Return a number of any size, without an exponent in E.

    >>> _number(-3.2e-7), _number(0.25), _number(4e7)
    ('−3.2 × 10⁻⁷', '0.25', '40,000,000')
    """
    size, sign = abs(value), "−" if value < 0 else ""
    if 0 < size < 1e-3:
        return f"{sign}{delta(size)}"
    if 1e5 <= size < math.inf:
        return f"{sign}{count(size)}"
    return f"{sign}{number(size)}"


def _question(text: str | None) -> str:
    """Return what a measure returns, from the first paragraph of its docstring.

    >>> _question('''Return what
    ...     it is.
    ...
    ...     Parameters''')
    'What it is.'
    """
    first = inspect.cleandoc(text or "").partition("\n\n")[0]
    words = " ".join(first.split()).removeprefix("Return ")
    return f"{words[:1].upper()}{words[1:]}"


def _told(value: Any) -> str:
    """Return an option of an experiment in words."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return delta(value) if 0 < value < 1e-3 else plain(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(_told, value))
    return str(value)
