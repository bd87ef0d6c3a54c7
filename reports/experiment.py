"""What an experiment is: a declaration, cut into cells that a runner carries out.

The work is cut in a way that does not depend on who does it, every cell has a random
stream of its own, named by what the cell is, and the records are put together in the
order of the cells: the table is the same for one worker or eight, and a point of the
grid keeps its numbers when other points come or go.

Experiments and sizes are declared in ``experiments.toml`` of a section. ``[sizes]``
says how much a section runs, a list of one value for each of `PROFILES`. An
``[[experiment]]`` has the fields of `Experiment`:

- ``measure``: a module below `dpaudit.reports`, and a function of it;
- ``mechanisms``: names, and families of the catalogue (``"@covariance"``), but those in
  ``without``;
- ``grid``: axes, each a list, or so many ``points`` from a number to another, evenly in
  logs; what an axis varies is no option.

``"$streams"`` is the size of that name, ``"$stream_rows[-2]"`` a part of it. With
``like`` it has all that the table of that name below ``[like]`` has and it does not say
otherwise; options are put together. ``audits`` is one such table, of all sections.
"""

import itertools
import json
import math
import re
import tomllib
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dpaudit.algorithms import entry, names_of
from dpaudit.claims import Claim
from dpaudit.errors import UnsupportedError
from dpaudit.mechanism import HasExactClaim, Mechanism
from dpaudit.neighbours import Pair
from dpaudit.reports.runner import Failure, Job, carry_out
from dpaudit.streams import stream

__all__ = ["Record", "run"]

DELTA = 1e-5
CONFIDENCE = 0.999
REFINE = 10.0
"""How many times as many releases follow on a refutation, for the event's sake."""

_ROUNDING = 1 + 1e-9
# Repetitions drawn at once: at d = 64, 256 matrices and their temporaries take 40 MiB.
_BATCH = 256

_AUDITS = {
    "measure": "measures:audited_privacy",
    "options": {"delta": DELTA, "confidence": CONFIDENCE},
}
_SIZE = re.compile(r"\$(\w+)(?:\[(-?\d+)\])?")

Record: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One mechanism at one point of a grid: the smallest unit of work."""

    mechanism: str  # name in the catalogue, or of a reference
    # the coordinates on the grid, for example {"epsilon": 1.0}.
    point: Mapping[str, float]
    options: Mapping[str, Any]  # what is the same in every cell of the experiment
    # first, size: the repetitions first, ..., first + size - 1.
    first: int
    size: int
    seed: int  # the user's
    key: tuple[int, ...]  # names the cell's random stream

    def rng(self, *more: int) -> np.random.Generator:
        """Return a generator of the cell's own, always at its beginning.

        ``*more`` names another one, so that what it gives changes nothing else.
        """
        return stream(self.seed, *self.key, *more)

    def build(self, **options: Any) -> Mechanism:
        """Return the cell's mechanism at the cell's privacy parameters.

        Where epsilon is no coordinate of the grid, that is the catalogue's.
        """
        chosen = entry(self.mechanism)
        if chosen.has_components and "n_components" in self.options:
            options["n_components"] = self.options["n_components"]
        return chosen.build(
            epsilon=self.point.get("epsilon"), delta=self.options["delta"], **options
        )


Measure: TypeAlias = Callable[[Cell], list[Record]]
"""Draws all of a cell's repetitions, and returns a dictionary per row of the table.

The columns that say which cell it was are added by the runner. A measure is a plain
function of a module, so that it travels to other processes, and depends on nothing but
the cell.
"""


@dataclass(frozen=True)
class Experiment:
    """One measure, taken of several mechanisms over a grid."""

    name: str  # also the name of its CSV file
    title: str  # a few words, for headings and progress
    source: str  # where the experiment comes from
    measure: Measure  # from a `Cell` to records
    mechanisms: tuple[str, ...]
    # every combination is visited; empty for a single point
    grid: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    repetitions: int = 1  # independent repetitions at every point
    seed: int = 0
    # what the measure needs besides, JSON-ready
    options: Mapping[str, Any] = field(default_factory=dict)
    # roughly, its share of the time of a report; for the time left only
    effort: float = 1.0
    parallel: bool = True  # false for what neighbours on the same machine would disturb


def exact(
    mechanism: Mechanism, pair: Pair, epsilon: float, delta: float
) -> dict[str, Any]:
    """Return the exact epsilon at `delta`, the exact delta at `epsilon`, and which."""
    unknown = {"exact_epsilon": math.nan, "exact_delta": math.nan, "claim": "not known"}
    if not isinstance(mechanism, HasExactClaim):
        return unknown
    try:
        known: Claim = mechanism.exact_claim(pair)
    except UnsupportedError:
        return unknown
    # Calibrations solve for equality: a rounding error beyond it is no violation.
    kept = known.delta_at(epsilon * _ROUNDING) <= delta * _ROUNDING
    return {
        "exact_epsilon": known.epsilon_at(delta),
        "exact_delta": float(known.delta_at(epsilon)),
        "claim": "kept" if kept else "false",
    }


def cells(experiment: Experiment) -> Iterator[Cell]:
    """Yield the units of work of an experiment, in the order of its table."""
    for mechanism in experiment.mechanisms:
        for values in itertools.product(*experiment.grid.values()):
            for first in range(0, experiment.repetitions, _BATCH):
                yield Cell(
                    mechanism=mechanism,
                    point=dict(zip(experiment.grid, values, strict=True)),
                    options=experiment.options,
                    first=first,
                    size=min(_BATCH, experiment.repetitions - first),
                    seed=experiment.seed,
                    key=_key(experiment.name, mechanism, *values, first),
                )


def repeated(cell: Cell, **columns: ArrayLike) -> list[Record]:
    """Return a record for each repetition: its number, and its value of each column.

    A column is an array of length ``cell.size``, or one value for all repetitions.
    """
    values = [np.broadcast_to(each, cell.size).tolist() for each in columns.values()]
    return [
        {"repetition": cell.first + i, **dict(zip(columns, row, strict=True))}
        for i, row in enumerate(zip(*values, strict=True))
    ]


def run(experiment: Experiment, **how: Any) -> pd.DataFrame:
    """Carry out one experiment.

    ``**how``: of `dpaudit.reports.runner.carry_out`: ``store``, ``executor``,
    ``progress``.

    The table is tidy: the mechanism, the point of the grid, what the measure returns.
    """
    found = carry_out(_jobs(experiment), **how)
    return _table(experiment, list(found.values()))


def run_all(
    experiments: Sequence[Experiment], **how: Any
) -> dict[str, pd.DataFrame | Exception]:
    """Carry out experiments, as `run`; in place of a table, the error of one."""
    jobs = {each.name: _jobs(each) for each in experiments}
    everything = [job for several in jobs.values() for job in several]
    found = carry_out(everything, go_on=True, **how)
    tables: dict[str, pd.DataFrame | Exception] = {}
    for each in experiments:
        records = [found[job.name] for job in jobs[each.name]]
        failed = [record.error for record in records if isinstance(record, Failure)]
        tables[each.name] = failed[0] if failed else _table(each, records)
    return tables


def _jobs(experiment: Experiment) -> list[Job]:
    work = list(cells(experiment))
    measure = experiment.measure
    what = [experiment.name, f"{measure.__module__}.{measure.__qualname__}"]
    return [
        Job(
            name=json.dumps([*what, vars(cell)]),
            seed=experiment.seed,
            work=partial(measure, cell),
            label=experiment.title,
            effort=experiment.effort / len(work),
            alone=not experiment.parallel,
        )
        for cell in work
    ]


def _table(experiment: Experiment, found: Sequence[list[Record]]) -> pd.DataFrame:
    records = [
        {"mechanism": cell.mechanism, **cell.point, **record}
        for cell, several in zip(cells(experiment), found, strict=True)
        for record in several
    ]
    return pd.DataFrame.from_records(records)


def _key(*parts: str | float) -> tuple[int, ...]:
    """Return what names a stream: checksums of words, the bits of numbers."""
    return tuple(
        zlib.crc32(part.encode())
        if isinstance(part, str)
        else int(np.float64(part).view(np.uint64))
        for part in parts
    )


@cache
def declarations(path: Path) -> dict[str, Any]:
    """Return what a file declares, with what each of its tables is like."""
    if not path.is_file():
        return {}
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    likes = {"audits": _AUDITS, **found.pop("like", {})}

    def whole(declared: Mapping[str, Any]) -> dict[str, Any]:
        same = whole(likes[declared["like"]]) if "like" in declared else {}
        found = {**same, **declared}
        found.pop("like", None)
        if "options" in found:
            own = declared.get("options", {})
            found["options"] = {**same.get("options", {}), **own}
        return found

    return {
        name: [whole(each) for each in value] if isinstance(value, list) else value
        for name, value in found.items()
    }


def measure_named(name: str) -> Any:
    """Return a function of a module below `dpaudit.reports`."""
    return resolve_name(f"dpaudit.reports.{name}")


def experiment_of(declared: Mapping[str, Any], size: object) -> Experiment:
    """Return a declared experiment at a size."""
    told = _filled(declared, size)
    without = told.pop("without", ())
    names = [
        name
        for each in told["mechanisms"]
        for name in (names_of(each[1:]) if each.startswith("@") else (each,))
    ]
    grid = {name: _axis(values) for name, values in told.get("grid", {}).items()}
    options = {k: v for k, v in told.get("options", {}).items() if k not in grid}
    told |= {"measure": measure_named(told["measure"]), "grid": grid}
    told |= {"mechanisms": tuple(n for n in names if n not in without)}
    return Experiment(**{"source": "dpaudit", **told, "options": options})


def _filled(value: Any, size: object) -> Any:
    """Return a declaration with the sizes that it names."""
    if isinstance(value, Mapping):
        return {key: _filled(each, size) for key, each in value.items()}
    if isinstance(value, str) and (named := _SIZE.fullmatch(value)):
        found = getattr(size, named[1])
        return found if named[2] is None else found[int(named[2])]
    return value


def _axis(values: Any) -> tuple[float, ...]:
    if isinstance(values, Mapping):
        values = np.geomspace(values["from"], values["to"], values["points"])
    return tuple(map(float, values))
