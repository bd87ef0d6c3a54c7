"""Templates of pages, and what they may use.

Whatever a template is given is taken for text and escaped (`dpaudit.reports.escaping`),
but for what is `Safe`.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dpaudit.reports import words
from dpaudit.reports.escaping import Safe, markdown

__all__ = ["TEMPLATES", "environment"]

_ROOT = Path(__file__).parent
TEMPLATES = (_ROOT / "site", _ROOT / "sections")
"""The folders."""


def environment(escape: Callable[[str], str], **options: Any) -> Environment:
    """Return where templates are filled in, given how text is escaped."""

    def finalize(value: object) -> object:
        # Numbers stay what they are, and so does what was made here.
        if isinstance(value, str) and not hasattr(value, "__html__"):
            return escape(value)
        return value

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=finalize,
        **options,
    )
    made.filters["strong"] = lambda text: Safe(f"**{markdown(text)}**")
    made.filters["glue"] = _glue
    for each in (words.count, words.setting, words.delta):
        made.filters[each.__name__] = each
    return made


def _glue(text: str) -> str:
    """Keep formulas and percentages on one line."""
    text = re.sub(
        r"([εδ]) ([=≤≥]) ", "\\1\N{NO-BREAK SPACE}\\2\N{NO-BREAK SPACE}", text
    )
    return re.sub(r" (%|× 10)", "\N{NO-BREAK SPACE}\\1", text)
