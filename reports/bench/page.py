"""Tables of the studies in plain text, Markdown and HTML."""

from collections.abc import Iterable, Sequence
from html import escape

from dpaudit.reports.bench.study import Row, Table
from dpaudit.reports.bench.summary import Findings, Summary
from dpaudit.reports.escaping import markdown, plain

__all__ = ["render_html", "render_markdown", "render_text", "verdict"]


def verdict(row: Row) -> str:
    """Return what is printed in the last column."""
    if row.met is None:
        return "no target"
    return "met" if row.met else "NOT MET"


def render_text(table: Table) -> str:
    """Return a table for a terminal, its columns aligned."""
    written = [_header(table), *map(_cells, table.rows)]
    lines = [tuple(map(plain, line)) for line in written]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )
    return "\n".join([plain(table.title), *(f"  {line}".rstrip() for line in text)])


def render_markdown(summary: Summary) -> str:
    """Return all tables as Markdown."""
    parts = ["# The auditor audited", markdown(_provenance(summary))]
    for each in summary.studies:
        parts.append(f"## {markdown(each.title)}")
        parts += _unfinished(each)
        for table in each.tables:
            if table.title != each.title:
                parts.append(f"### {markdown(table.title)}")
            header = _header(table)
            lines = [_markdown_line(map(markdown, header)), "|---" * len(header) + "|"]
            lines += [_markdown_line(map(markdown, _cells(row))) for row in table.rows]
            parts += [markdown(table.note), "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def render_html(summary: Summary) -> str:
    """Return all tables as an HTML fragment, without style."""
    parts = ['<section class="bench" id="auditor-audited">']
    parts.append("<h2>The auditor audited</h2>")
    parts.append(_tag("p", _provenance(summary)))
    for each in summary.studies:
        parts.append(
            f'<h3 id="bench-{_escaped(each.name)}">{_escaped(each.title)}</h3>'
        )
        parts += [_tag("p", text) for text in _unfinished(each)]
        for table in each.tables:
            parts.append(_tag("p", table.note))
            parts.append(f"<table>{_tag('caption', table.title)}")
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


def _provenance(summary: Summary) -> str:
    return f"Profile {summary.profile}, code version {summary.code}."


def _unfinished(found: Findings) -> list[str]:
    if found.done == found.units:
        return []
    return [f"Unfinished: {found.done:,} of {found.units:,} units of work are done."]


def _markdown_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _html_line(cells: Sequence[str], tag: str, attributes: str = "") -> str:
    return f"<tr{attributes}>{''.join(_tag(tag, cell) for cell in cells)}</tr>"


def _tag(tag: str, text: str) -> str:
    return f"<{tag}>{_escaped(text)}</{tag}>"


def _escaped(text: str) -> str:
    return escape(plain(text))
