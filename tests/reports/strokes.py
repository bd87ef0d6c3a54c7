"""How the lines of a figure are drawn."""

import re
from collections import Counter

__all__ = ["strokes"]

_DASHES = {"": "whole", "6,3": "false", "10,3,2,3": "open", "2,4": "dotted"}


def strokes(svg):
    """Return how many lines, of a width of 2, are drawn in which way."""
    lines = re.findall(r'style="(fill: none;[^"]*stroke-width: 2)[;"]', svg)
    dashes = (re.search(r"dasharray: ([\d,]+)", line) for line in lines)
    return Counter(_DASHES[found[1] if found else ""] for found in dashes)
