"""Docstrings as pages show them: reStructuredText into HTML, formulas into MathML."""

import inspect
import re
from functools import cache

from docutils.core import publish_parts

from dpaudit.reports.escaping import Safe, plain

__all__ = ["first_paragraph", "prose"]

_SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "math_output": "MathML",
    "report_level": 5,  # what is no markup stays as it is written
    "halt_level": 5,
    "doctitle_xform": False,
    "initial_header_level": 3,
    "smart_quotes": False,
    "syntax_highlight": "none",
}
# Sizes of brackets and of fractions, of which MathML has its own opinion.
_SIZES = re.compile(r"\\([bB]ig{1,2}[lr]?|textstyle|displaystyle)\b")
_IDS = re.compile(r'(<[^>]*?) (?:id|name)="[^"]*"')
_BETWEEN = re.compile(  # backticks: what is markup already, or else a name
    r"(``(?:[^`]|`(?!`))+``|:\w+:`[^`]*`|`[^`<]*<[^`>]*>`_)|`~?([^`]+)`"
)


@cache
def prose(text: str) -> Safe:
    """Return a docstring as HTML whose headings are of the third order.

    Parameters
    ----------
    text : str
        reStructuredText, as docstrings of this project have it: what stands between
        single backticks is code.
    """
    lines = [plain(line) for line in inspect.cleandoc(text).split("\n")]
    source = _SIZES.sub(
        "", _BETWEEN.sub(lambda found: found[1] or f"``{found[2]}``", "\n".join(lines))
    )
    parts = publish_parts(source, writer="html5", settings_overrides=_SETTINGS)
    # Two docstrings on one page would have the same ids.
    return Safe(_IDS.sub(r"\1", parts["fragment"]))


def first_paragraph(text: str | None) -> str:
    """Return the first paragraph of a docstring on one line.

    Examples
    --------
    >>> first_paragraph('''What it
    ...     does.
    ...
    ...     Parameters''')
    'What it does.'
    """
    return " ".join(inspect.cleandoc(text or "").partition("\n\n")[0].split())
