"""Tables of the studies in plain text, Markdown and HTML."""

from collections.abc import Sequence
from html import escape
from typing import Protocol

from dpaudit.reports.bench.study import Row, Table

__all__ = ["render_html", "render_markdown", "render_text", "verdict"]


class _Findings(Protocol):
    """What is rendered: see `dpaudit.reports.bench.audited.Findings`."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def done(self) -> int: ...
    @property
    def units(self) -> int: ...
    @property
    def tables(self) -> tuple[Table, ...]: ...


def verdict(row: Row) -> str:
    """Return what is printed in the last column."""
    if row.met is None:
        return "no target"
    return "met" if row.met else "NOT MET"


def render_text(table: Table) -> str:
    """Return a table for a terminal, its columns aligned."""
    lines = [_header(table), *(_cells(row) for row in table.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )
    return "\n".join([table.title, *(f"  {line}".rstrip() for line in text)])


def render_markdown(profile: str, code: str, found: Sequence[_Findings]) -> str:
    """Return all tables as Markdown."""
    parts = ["# The auditor audited", _provenance(profile, code)]
    for each in found:
        parts.append(f"## {each.title}")
        parts += _unfinished(each)
        for table in each.tables:
            if table.title != each.title:
                parts.append(f"### {table.title}")
            header = _header(table)
            lines = [header, ("---",) * len(header), *map(_cells, table.rows)]
            parts += [table.note, "\n".join(map(_markdown_line, lines))]
    return "\n\n".join(parts) + "\n"


def render_html(profile: str, code: str, found: Sequence[_Findings]) -> str:
    """Return all tables as an HTML fragment, without style."""
    parts = ['<section class="bench" id="auditor-audited">']
    parts.append("<h2>The auditor audited</h2>")
    parts.append(_paragraph(_provenance(profile, code)))
    for each in found:
        parts.append(f'<h3 id="bench-{escape(each.name)}">{escape(each.title)}</h3>')
        parts += [_paragraph(text) for text in _unfinished(each)]
        for table in each.tables:
            parts.append(_paragraph(table.note))
            parts.append(f"<table><caption>{escape(table.title)}</caption>")
            parts.append(f"<thead>{_html_line(_header(table), 'th')}</thead><tbody>")
            for row in table.rows:
                missed = ' class="not-met"' if row.met is False else ""
                parts.append(_html_line(_cells(row), "td", missed))
            parts.append("</tbody></table>")
    parts.append("</section>")
    return "\n".join(parts) + "\n"


def _header(table: Table) -> tuple[str, ...]:
    return (*table.columns, "verdict")


def _cells(row: Row) -> tuple[str, ...]:
    return (*row.cells, verdict(row))


def _provenance(profile: str, code: str) -> str:
    return f"Profile {profile}, code version {code}."


def _unfinished(found: _Findings) -> list[str]:
    if found.done == found.units:
        return []
    return [f"Unfinished: {found.done:,} of {found.units:,} units of work are done."]


def _markdown_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _html_line(cells: Sequence[str], tag: str, attributes: str = "") -> str:
    inside = "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells)
    return f"<tr{attributes}>{inside}</tr>"


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"
