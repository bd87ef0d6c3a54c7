"""Text from elsewhere, made fit for a line on a terminal.

Names come from witnesses, from modules under audit, from programs in other languages.
Printed raw, a name could hold a newline and forge a line of a result, or an escape
sequence and repaint the screen.
"""

import re
import traceback
from collections.abc import Sequence

__all__ = ["ADDRESS", "aligned", "called", "printable", "said", "told_apart"]

ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")
"""Where an object lies in memory, in its `repr`."""
_LONGEST = 500
_ALL_DIGITS = 17
_MARK = "[...]"


def printable(text: object, *, longest: int = _LONGEST) -> str:
    r"""Return text on one line that shows what it is and does nothing.

    Every character that `str.isprintable` denies is written as Python would in a
    string: newlines and other control characters, those that change the direction of
    writing, halves of surrogate pairs. What is printable stays as it is.

    Parameters
    ----------
    text : object
        Anything with a `str`.
    longest : int, optional
        Of a longer text the beginning and the end are shown.

    Examples
    --------
    >>> printable("mean of \N{GREEK SMALL LETTER MU}")
    'mean of μ'
    >>> print(printable("a\nb \x1b[31mred"))
    a\nb \x1b[31mred
    >>> printable("abcdefghijklmnop", longest=11)
    'abc[...]nop'
    """
    whole = str(text)
    if len(whole) > longest:
        kept = max(longest - len(_MARK), 2) // 2
        whole = whole[:kept] + _MARK + whole[-kept:]
    if whole.isprintable():
        return whole
    return "".join(
        character
        if character.isprintable()
        else character.encode("unicode_escape", "backslashreplace").decode("ascii")
        for character in whole
    )


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of cells for a terminal, one cell below the other.

    Cells may be names that others chose: none does anything to the terminal.

    Examples
    --------
    >>> aligned([("name", "x"), ("a", "10")])
    ['name  x', 'a     10']
    """
    shown = [[printable(cell) for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return [
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
        for line in shown
    ]


def told_apart(value: float, other: float, digits: int = 4) -> tuple[str, str]:
    """Return two numbers with as many digits as it takes to see that they differ.

    Parameters
    ----------
    value, other : float
    digits : int, optional
        The fewest significant ones.

    Examples
    --------
    >>> told_apart(1.94143, 1.0), told_apart(1.0000312, 1.0), told_apart(0.5, 0.5)
    (('1.941', '1'), ('1.00003', '1'), ('0.5', '0.5'))
    """
    while True:
        shown, beside = f"{value:.{digits}g}", f"{other:.{digits}g}"
        if shown != beside or value == other or digits == _ALL_DIGITS:
            return shown, beside
        digits += 1


def called(thing: object) -> str:
    """Return the name of a function or a class, or of an instance's class."""
    return printable(getattr(thing, "__name__", type(thing).__name__))


def said(error: BaseException) -> str:
    """Return the type of an exception and what it says, on one line.

    Safe where its own ``__str__`` raises.

    Examples
    --------
    >>> said(KeyError("lost"))
    "KeyError: 'lost'"
    """
    return printable(" ".join(traceback.format_exception_only(error)[-1].split()))
