r"""Text of others, made harmless for where it goes.

Names of mechanisms are chosen by those who run audits, and end up in pages, figures,
tables and the names of files. Each place has characters of its own that must not be
taken at their word, so they are escaped where text enters the place, and nowhere else:

- HTML pages: by the templates themselves (autoescape), after `plain`.
- SVG figures: by matplotlib, after `plain` (`dpaudit.reports.plots`).
- Markdown: `markdown`. Tables end a cell at a pipe, and inside prose ``<``, ``&``,
  ``*``, ``_``, ``~``, ``$``, brackets and backticks begin something.
- CSV: `csv_text`. A spreadsheet takes a cell of text for a formula if it begins with
  ``=``, ``+``, ``-`` or ``@``; such a cell gets an apostrophe in front, as
  spreadsheets mark text themselves. Numbers stay as they are, negative ones too.
- Names of files: `file_name`. No name leads out of its folder.
"""

import re

import pandas as pd

__all__ = ["csv_text"]

_BREAKS = re.compile("[\t-\r\x1c-\x1f\x85\u2028\u2029]+")
# Control characters, lone surrogates, what XML excludes, and what turns the direction
# of the text that follows.
_HIDDEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_MARKDOWN = re.compile(r"[\\`*_\[\]<>|&~$]")
_FORMULA = re.compile(r"[=+\-@]")


class Safe(str):
    """Text that was made here for the place it goes to: no template escapes it."""

    def __html__(self) -> str:
        return self


def plain(text: str) -> str:
    r"""Return a text on one line, without characters that do something.

    Breaks become spaces, control characters and the like the replacement character.

    >>> plain("two\nlines, \x1b[31mred")
    'two lines, �[31mred'
    """
    return _HIDDEN.sub("\N{REPLACEMENT CHARACTER}", _BREAKS.sub(" ", text))


def markdown(text: str) -> Safe:
    r"""Return a text as Markdown that says just that, on one line."""
    return Safe(_MARKDOWN.sub(r"\\\g<0>", plain(text)))


def csv_text(table: pd.DataFrame, *, digits: int | None = None) -> str:
    """Return a table as CSV that a spreadsheet takes for data.

    ``digits``: significant digits of numbers; by default all.
    """
    texts = table.select_dtypes(exclude="number")
    table = table.assign(**{column: texts[column].map(_cell) for column in texts})
    form = None if digits is None else f"%.{digits}g"
    return table.to_csv(index=False, lineterminator="\n", float_format=form)


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = plain(value)
    return f"'{text}" if _FORMULA.match(text) else text


def file_name(name: str) -> str:
    """Return a name of ASCII letters, digits, and ``.-_``; no two become one.

    Any other character is replaced by its code between plus signs.
    """
    return re.sub(r"[^A-Za-z0-9._-]", lambda found: f"+{ord(found[0]):x}+", name)
