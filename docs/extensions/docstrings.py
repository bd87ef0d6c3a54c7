"""Docstrings as they are written: mathematics in plain text is no markup.

``|x - y|`` is a distance and no substitution, ``z_+`` a positive part and no link: both
are escaped. An indented block is a display of formulas, whose lines stay as they are.
"""

import inspect
import re
from itertools import groupby
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, NumpyDocstring

__all__ = ["plain", "setup"]

# Bars, and underscores at the end of a word; what stands between backticks is code.
_PLAIN = re.compile(r"(``.+?``|`[^`]+`)|(\||(?<=\w)_(?![\w`]))", re.DOTALL)
_ITEM = re.compile(r" *(?:(?:[-*]|\w{1,3}\.|\(?\w{1,3}\)) +)?")


# Parameters and attributes as lists of words, of which none is a link.
_SECTIONS = Config(
    napoleon_use_param=False,
    napoleon_use_rtype=False,
    napoleon_custom_sections=[("Attributes", "params_style")],
)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _margin(line: str) -> int:
    """Return where the text of a line begins, behind the mark of a list."""
    found = _ITEM.match(line)
    assert found is not None
    return found.end()


def plain(lines: list[str]) -> list[str]:
    r"""Return the lines of a docstring with plain mathematics marked as such.

    Examples
    --------
    >>> text = ["|x| is `|x|`, and z_+ a part:", "", "    |x| >= 0", "", "And"]
    >>> print(*plain(text), sep="\n")
    \|x\| is `|x|`, and z\_+ a part:
    <BLANKLINE>
    ::
    <BLANKLINE>
        |x| >= 0
    <BLANKLINE>
    And
    <BLANKLINE>
    """
    done: list[str] = []
    above = 0  # the margin of the text before
    literal = None  # the least indentation of what is literal
    for filled, group in groupby(lines, key=lambda line: bool(line.strip())):
        if not filled:
            continue
        block = list(group)
        start = _indent(block[0])
        if literal is None or start < literal:
            literal = None
            if start > above:
                done += [" " * above + "::", ""]
                literal = start
            elif block[0].lstrip().startswith(".. "):
                literal = start + 1
                done += [*block, ""]
                continue
        if literal is None and not block[0].lstrip().startswith(">>>"):
            above = _margin(block[-1])
            if block[-1].endswith("::"):
                literal = above + 1
            text = "\n".join(block)
            block = _PLAIN.sub(lambda m: m[1] or "\\" + m[2], text).split("\n")
        done += [*block, ""]
    return done


def _process(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    # Of attributes napoleon would take what stands before a colon for their type.
    kind = "function" if what in {"attribute", "data", "property"} else what
    read = NumpyDocstring(plain(lines), _SECTIONS, app, kind, name, obj, options)
    lines[:] = read.lines()


def _skip(
    app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out functions of other libraries that are the default of a field."""
    home = getattr(obj, "__module__", None) if inspect.isroutine(obj) else None
    return True if home and not home.startswith("dpaudit") else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Read docstrings as numpydoc ones, in plain text."""
    app.connect("autodoc-process-docstring", _process)
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
