"""Docstrings as they are written: mathematics in plain text is no markup.

``|x - y|`` is a distance and no substitution, ``z_+`` a positive part and no link: both
are escaped. An indented block is a display of formulas, whose lines stay as they are.
"""

import re
from itertools import groupby

__all__ = ["plain"]

# Bars, and underscores at the end of a word; what stands between backticks is code.
_PLAIN = re.compile(r"(``.+?``|`[^`]+`)|(\||(?<=\w)_(?![\w`]))", re.DOTALL)
_ITEM = re.compile(r" *(?:(?:[-*]|\w{1,3}\.|\(?\w{1,3}\)) +)?")


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
    .. code-block:: text
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
                done += [" " * above + ".. code-block:: text", ""]
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
