"""How the lines of a figure are drawn, what is written in it, and what marks say."""

import re
from collections import Counter
from xml.etree import ElementTree

import numpy as np

MEANT = {"claim refuted ✗", "no claim audited here"}
_DASHES = {"": "whole", "6,3": "false", "8,4,2,4": "open", "2,4": "dotted"}


def strokes(svg):
    """Return how many lines, of a width of 2, are drawn in which way."""
    lines = re.findall(r'style="(fill: none;[^"]*stroke-width: 2)[;"]', svg)
    dashes = (re.search(r"dasharray: ([\d,]+)", line) for line in lines)
    return Counter(_DASHES[found[1] if found else ""] for found in dashes)


def written(svg):
    """Return the texts that one sees, in order."""
    return [each.text for each in ElementTree.fromstring(svg).iter("text")]


def begins_inside(svg):
    """Say whether all texts begin, or are centred, inside of the picture."""
    root = ElementTree.fromstring(svg)
    *_, width, height = map(float, root.get("viewBox").split())
    for each in root.iter("text"):
        moved = re.search(r"translate\((\S+) (\S+)\)", each.get("transform", ""))
        x, y = map(float, moved.groups() if moved else (each.get("x"), each.get("y")))
        if not (0 <= x <= width and 0 <= y <= height):
            return False
    return True


def well_drawn(svg, audited=True):
    """Say whether a wide figure speaks, inside of it, each mark for itself.

    And says what its lines mean, if it is of audited mechanisms: of those that are
    dashed, all are red.
    """
    title, description = list(ElementTree.fromstring(svg))[:2]
    places = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)"', svg)
    x, y, r = np.array(places, dtype=float).reshape(-1, 3).T
    away = np.hypot(np.subtract.outer(x, x), np.subtract.outer(y, y))
    styles = re.findall(r'style="(fill: none;[^"]*)"', svg)
    dashed = [style for style in styles if "stroke-dasharray: 6,3" in style]
    return (
        title.text is not None
        and re.search(r"\d", description.text) is not None
        and (not audited or not MEANT.isdisjoint(written(svg)))
        and svg.count("<title>") > 1
        and begins_inside(svg)
        and (away + np.diag(np.full(len(x), np.inf)) > r).all()
        and all("stroke: var(--refuted)" in style for style in dashed)
    )


def marks(svg):
    """Return where marks are that speak, in pixels from the left and the top."""
    found = {}
    for each in ElementTree.fromstring(svg).find("g[@class='told']"):
        place = [float(each.get("c" + x) or each.get(x)) for x in "xy"]
        for line in "".join(each.itertext()).split("\n"):
            found[line] = place
    return found
