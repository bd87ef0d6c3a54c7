"""What terminals show and pipes and logs do not: framed tables, a line of progress.

Both are Rich's, which is loaded on terminals only. Elsewhere tables are columns of
plain text, and no line overwrites another. A dumb terminal counts as no terminal. With
NO_COLOR set, and not empty, there are no colours (https://no-color.org), nor bold type.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

import click

from dpaudit.printable import aligned, printable

__all__ = ["is_terminal", "one_line", "print_table"]


def is_terminal(stream: TextIO | None) -> bool:
    """Say whether a stream is there, and a terminal that is not dumb."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def print_table(lines: Sequence[Sequence[str]]) -> None:
    """Print lines of cells on standard output, below the first, which is the heading.

    On a terminal, a cell that is too long for it goes on below, but for the first of a
    line, a name to copy. Cells may be names that others chose: none does anything to
    the terminal.
    """
    if not is_terminal(sys.stdout):
        click.echo("\n".join(aligned(lines)))
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    heads, *rows = lines
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for place, head in enumerate(heads):
        name = Text(printable(head))
        table.add_column(name, overflow="fold", no_wrap=place == 0)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    _console(sys.stdout).print(table)


@contextmanager
def one_line() -> Iterator[Callable[[object], None] | None]:
    """Yield what puts a text into a line of standard error, in place of the one before.

    None if that is no terminal. In the end the line is empty.
    """
    if not is_terminal(sys.stderr):
        yield None
        return
    from rich.control import Control
    from rich.segment import ControlType
    from rich.text import Text

    # Not what Rich calls live: it hides the cursor, which a process that is killed does
    # not bring back, and has threads, where processes are forked.
    console = _console(sys.stderr)
    erase = Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2))

    def show(text: object) -> None:
        line = Text(printable(text), no_wrap=True, overflow="ellipsis")
        line.truncate(console.width - 1)
        console.control(erase)
        console.print(line, end="")

    try:
        yield show
    finally:
        console.control(erase)


def _console(stream: TextIO) -> Any:
    from rich.console import Console

    system: Any = None if os.environ.get("NO_COLOR") else "auto"
    return Console(file=stream, highlight=False, color_system=system)
