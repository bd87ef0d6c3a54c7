"""What the studies found: the file that holds it, and its tables as text or pages."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from dpaudit.reports.bench.study import Row, Table
from dpaudit.reports.escaping import markdown, plain
from dpaudit.reports.page import environment
from dpaudit.reports.store import load_json, save_json
from dpaudit.reports.words import aligned

__all__ = [
    "Findings",
    "Summary",
    "load_summary",
    "render_html",
    "render_markdown",
    "render_text",
]

FILE = "summary.json"
"""The name of the file, in the folder of the studies."""


@dataclass(frozen=True)
class Findings:
    """What one study found.

    Parameters
    ----------
    name, title : str
    done, units : int
        Units of work finished, and of the whole profile.
    tables : tuple of Table
    """

    name: str
    title: str
    done: int
    units: int
    tables: tuple[Table, ...]

    @property
    def met(self) -> int:
        """How many targets are met."""
        return sum(table.met.count(True) for table in self.tables)

    @property
    def missed(self) -> int:
        """How many targets are not met."""
        return sum(table.met.count(False) for table in self.tables)

    @property
    def sound(self) -> bool:
        """Whether every binding target is met."""
        return not any(table.binding and False in table.met for table in self.tables)


@dataclass(frozen=True)
class Summary:
    """What all studies of a profile found.

    Parameters
    ----------
    profile : str
    code : str
        The version of the code that was on trial.
    studies : tuple of Findings
    """

    profile: str
    code: str
    studies: tuple[Findings, ...]

    def save(self, folder: Path) -> None:
        """Write the file into a folder."""
        summary: dict[str, Any] = {
            "profile": self.profile,
            "code": self.code,
            "studies": {each.name: _as_json(each) for each in self.studies},
        }
        save_json(folder / FILE, summary)


def load_summary(folder: Path) -> Summary | None:
    """Return what the studies in a folder found, None if there are none.

    Raises
    ------
    InputError
        If the file there is something else.
    """
    return load_json(folder / FILE, _summary, "dpaudit bench-audit")


def _summary(found: Mapping[str, Any]) -> Summary:
    return Summary(
        profile=str(found["profile"]),
        code=str(found["code"]),
        studies=tuple(
            _from_json(name, each) for name, each in found["studies"].items()
        ),
    )


def _as_json(found: Findings) -> dict[str, Any]:
    return {
        "title": found.title,
        "done": found.done,
        "units": found.units,
        "met": found.met,
        "not_met": found.missed,
        "sound": found.sound,
        "tables": [
            {
                "title": table.title,
                "note": table.note,
                "binding": table.binding,
                "columns": table.columns,
                "cells": [list(row.cells.values()) for row in table.rows],
                "rows": [{**row.data, "met": row.met} for row in table.rows],
            }
            for table in found.tables
        ],
    }


def _from_json(name: str, found: Mapping[str, Any]) -> Findings:
    return Findings(
        name=name,
        title=str(found["title"]),
        done=int(found["done"]),
        units=int(found["units"]),
        tables=tuple(
            Table(
                title=str(table["title"]),
                rows=tuple(
                    Row(
                        dict(zip(table["columns"], map(str, cells), strict=True)),
                        data.pop("met"),
                        data,
                    )
                    for cells, data in zip(table["cells"], table["rows"], strict=True)
                ),
                note=str(table["note"]),
                binding=bool(table["binding"]),
            )
            for table in found["tables"]
        ),
    )


def render_text(table: Table) -> str:
    """Return a table for a terminal, its columns aligned."""
    lines = aligned([tuple(map(plain, line)) for line in table.lines])
    return "\n".join([plain(table.title), *(f"  {line}".rstrip() for line in lines)])


def render_markdown(summary: Summary, *, whole: bool = True) -> str:
    """Return all tables as Markdown; under a title, or to be put under one."""
    template = environment(markdown).get_template("bench.md.j2")
    return template.render(summary=summary, whole=whole)


def render_html(summary: Summary, *, whole: bool = True) -> str:
    """Return all tables as an HTML fragment, without style; see `render_markdown`."""
    escaping = environment(lambda text: escape(plain(text)))
    template = escaping.get_template("bench.html.j2")
    return template.render(summary=summary, whole=whole)
