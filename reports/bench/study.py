"""What a study is: units of work that stand alone, and tables made of their records.

A unit is the smallest piece of work that is kept: one audit, or a few hundred simulated
data sets. Its seed is derived from what it is (study, case, index) and from nothing
else, so a record does not depend on the profile, the number of workers, or what was
interrupted in between; a larger profile goes on from the records of a smaller one.

What all studies of a profile found is kept in a file, and printed as text or pages.
"""

import json
import zlib
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from dpaudit.reports.escaping import markdown, plain
from dpaudit.reports.experiment import Record, declarations
from dpaudit.reports.page import environment
from dpaudit.reports.store import load_json, save_json
from dpaudit.streams import stream

__all__ = ["Figure", "Records", "Study", "TargetRow"]

NOTES = declarations(Path(__file__).with_name("goals.toml"))["notes"]
"""How to read the tables of studies."""

FILE = "summary.json"
"""The name of the file that holds what was found, in the folder of the studies."""


@dataclass(frozen=True)
class Unit:
    """One piece of work."""

    study: str
    case: str
    index: int  # which repetition of the case
    # settings that are not implied by the case, in a fixed order
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
        return dict(self.options)[name]


Records: TypeAlias = Mapping[Unit, Record]


def seed_of(*parts: str | int) -> int:
    """Return a seed that is a function of words and numbers, in [0, 2^63)."""
    key = (zlib.crc32(p.encode()) if isinstance(p, str) else p for p in parts)
    return int(stream(0, *key).integers(2**63))


@dataclass(frozen=True)
class Figure:
    """One figure of a row: what is kept of it, and how it is printed."""

    key: str = ""  # its name among the data; empty if it is only printed
    value: Any = None  # JSON-ready
    heading: str = ""  # of its column; empty if it is only kept
    text: str = ""


@dataclass(frozen=True)
class TargetRow:
    """One line of a table."""

    # by the heading of the column, ready to print; the same headings in all rows
    cells: dict[str, str]
    # whether the target is met; None if there is no target, or no measurement yet
    met: bool | None
    data: Record  # the figures behind the cells, JSON-ready

    @classmethod
    def of(cls, met: bool | None, *figures: Figure) -> "TargetRow":
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
class TargetTable:
    """Measured figures beside their targets."""

    title: str
    # the verdict, "met" or "NOT MET", is one more column, added when printing
    rows: tuple[TargetRow, ...]
    note: str  # how to read it
    binding: bool = False  # whether a target that is not met makes the whole run fail

    @property
    def columns(self) -> tuple[str, ...]:
        """The headings, but for that of the verdict."""
        return tuple(self.rows[0].cells) if self.rows else ()

    @property
    def met(self) -> list[bool | None]:
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
    note: ClassVar[str] = ""
    """How to read its table."""
    binding: ClassVar[bool] = False
    """Whether a target of its table that is not met makes the whole run fail."""

    @abstractmethod
    def units(self, profile: str) -> list[Unit]:
        """Return the work of a profile."""

    @abstractmethod
    def measure(self, unit: Unit) -> Record:
        """Carry out a unit, and return JSON-ready figures (no NaN, no infinity)."""

    def rows(self, profile: str, records: Records) -> list[TargetRow]:
        """Return the lines of its table, if it has one alone."""
        return []

    def tables(self, profile: str, records: Records) -> list[TargetTable]:
        """Return the tables of a profile, made of the records that exist so far."""
        rows = tuple(self.rows(profile, records))
        return [TargetTable(self.title, rows, self.note, self.binding)]

    @staticmethod
    def by_case(records: Records, figure: str) -> dict[str, list[Any]]:
        """Return a figure of all records, by the case of their unit."""
        found = defaultdict(list)
        for unit, record in records.items():
            found[unit.case].append(record[figure])
        return dict(found)


@dataclass(frozen=True)
class StudyFindings:
    """What one study found."""

    name: str
    title: str
    # done, units: units of work finished, and of the whole profile
    done: int
    units: int
    tables: tuple[TargetTable, ...]

    @property
    def met(self) -> int:
        return sum(table.met.count(True) for table in self.tables)

    @property
    def missed(self) -> int:
        return sum(table.met.count(False) for table in self.tables)

    @property
    def sound(self) -> bool:
        """Whether every binding target is met."""
        return not any(table.binding and False in table.met for table in self.tables)


@dataclass(frozen=True)
class Summary:
    """What all studies of a profile found."""

    profile: str
    code: str  # the version of the code that was on trial
    studies: tuple[StudyFindings, ...]

    def save(self, folder: Path) -> None:
        """Write the file into a folder."""
        studies = {each.name: asdict(each) for each in self.studies}
        save_json(folder / FILE, asdict(self) | {"studies": studies})


def load_summary(folder: Path) -> Summary | None:
    """Return what the studies in a folder found, None if there are none.

    Raises `InputError` if the file there is something else.
    """

    def table(found: Record) -> TargetTable:
        rows = tuple(TargetRow(**row) for row in found.pop("rows"))
        return TargetTable(rows=rows, **found)

    def study(found: Record) -> StudyFindings:
        tables = tuple(map(table, found.pop("tables")))
        return StudyFindings(tables=tables, **found)

    def parse(found: Record) -> Summary:
        studies = tuple(map(study, found["studies"].values()))
        return Summary(str(found["profile"]), str(found["code"]), studies)

    return load_json(folder / FILE, parse, "dpaudit bench-audit")


def render_markdown(summary: Summary, *, whole: bool = True) -> str:
    """Return all tables as Markdown; under a title, or to be put under one."""
    template = environment(markdown).get_template("bench.md.j2")
    return template.render(summary=summary, whole=whole)


def render_html(summary: Summary, *, whole: bool = True) -> str:
    """Return all tables as an HTML fragment, without style; see `render_markdown`."""
    escaping = environment(lambda text: escape(plain(text)))
    template = escaping.get_template("bench.html.j2")
    return template.render(summary=summary, whole=whole)
