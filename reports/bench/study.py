"""What a study is: units of work that stand alone, and tables made of their records.

A unit is the smallest piece of work that is kept: one audit, or a few hundred simulated
data sets. Its seed is derived from what it is (study, case, index) and from nothing
else, so a record does not depend on the profile, the number of workers, or what was
interrupted in between; a larger profile goes on from the records of a smaller one.
"""

import json
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, TypeAlias

from dpaudit.streams import stream

__all__ = ["Figure", "Record", "Records", "Row", "Study", "Table", "Unit", "seed_of"]

Record: TypeAlias = dict[str, Any]

_SEEDS = 2**63


@dataclass(frozen=True)
class Unit:
    """One piece of work.

    Parameters
    ----------
    study, case : str
    index : int
        Which repetition of the case.
    options : tuple of (str, number or str)
        Settings that are not implied by the case, in a fixed order.
    """

    study: str
    case: str
    index: int
    options: tuple[tuple[str, float | int | str], ...] = ()

    @property
    def seed(self) -> int:
        """The unit's own seed, in [0, 2^63)."""
        return seed_of(self.study, self.case, self.index)

    @property
    def key(self) -> str:
        """What identifies the unit among the records of one version of the code."""
        return json.dumps([self.study, self.case, self.index, dict(self.options)])

    def option(self, name: str) -> Any:
        """Return one of the settings."""
        return dict(self.options)[name]


Records: TypeAlias = Mapping[Unit, Record]


def seed_of(*parts: str | int) -> int:
    """Return a seed that is a function of words and numbers, in [0, 2^63).

    Examples
    --------
    >>> seed_of("coverage", "laplace", 0) == seed_of("coverage", "laplace", 1)
    False
    """
    key = (zlib.crc32(p.encode()) if isinstance(p, str) else p for p in parts)
    return int(stream(0, *key).integers(_SEEDS))


@dataclass(frozen=True)
class Figure:
    """One figure of a row: what is kept of it, and how it is printed.

    Parameters
    ----------
    key : str
        Its name among the data; empty if it is only printed.
    value : object
        JSON-ready.
    heading : str
        Of its column; empty if it is only kept.
    text : str
    """

    key: str = ""
    value: Any = None
    heading: str = ""
    text: str = ""


@dataclass(frozen=True)
class Row:
    """One line of a table.

    Parameters
    ----------
    cells : dict of str to str
        By the heading of the column, ready to print; the same headings in all rows.
    met : bool or None
        Whether the target is met; None if there is no target, or no measurement yet.
    data : dict
        The figures behind the cells, JSON-ready.
    """

    cells: dict[str, str]
    met: bool | None
    data: Record

    @classmethod
    def of(cls, met: bool | None, *figures: Figure) -> "Row":
        """Return the row of some figures, in the order of their columns."""
        cells = {each.heading: each.text for each in figures if each.heading}
        return cls(cells, met, {each.key: each.value for each in figures if each.key})

    @property
    def verdict(self) -> str:
        """What is printed in the last column."""
        if self.met is None:
            return "no target"
        return "met" if self.met else "NOT MET"


@dataclass(frozen=True)
class Table:
    """Measured figures beside their targets.

    Parameters
    ----------
    title : str
    rows : tuple of Row
        The verdict, "met" or "NOT MET", is one more column, added when printing.
    note : str
        How to read it.
    binding : bool
        Whether a target that is not met makes the whole run fail.
    """

    title: str
    rows: tuple[Row, ...]
    note: str
    binding: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The headings, but for that of the verdict."""
        return tuple(self.rows[0].cells) if self.rows else ()

    @property
    def met(self) -> list[bool | None]:
        """Which targets are met, in the order of the rows."""
        return [row.met for row in self.rows]

    @property
    def lines(self) -> list[tuple[str, ...]]:
        """The headings, then the cells of the rows: all that is printed."""
        rows = [(*row.cells.values(), row.verdict) for row in self.rows]
        return [(*self.columns, "verdict"), *rows]


class Study(ABC):
    """A question about the auditor, answered by repeated measurements."""

    name: ClassVar[str]
    title: ClassVar[str]
    parallel: ClassVar[bool] = True
    """False where the figures are times, which other work would spoil."""

    @abstractmethod
    def units(self, profile: str) -> list[Unit]:
        """Return the work of a profile."""

    @abstractmethod
    def measure(self, unit: Unit) -> Record:
        """Carry out a unit, and return JSON-ready figures (no NaN, no infinity)."""

    @abstractmethod
    def tables(self, profile: str, records: Records) -> list[Table]:
        """Return the tables of a profile, made of the records that exist so far."""

    @staticmethod
    def by_case(records: Records, figure: str) -> dict[str, list[Any]]:
        """Return a figure of all records, by the case of their unit."""
        found: dict[str, list[Any]] = {}
        for unit, record in records.items():
            found.setdefault(unit.case, []).append(record[figure])
        return found

    @staticmethod
    def samples(records: Records) -> dict[str, list[float]]:
        """Return the releases to refute, by case; infinity where none did."""
        found: dict[str, list[float]] = {}
        for unit, record in records.items():
            samples = record["samples"] if record["refuted"] else inf
            found.setdefault(unit.case, []).append(samples)
        return found
