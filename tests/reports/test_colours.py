"""Colours of the figures: told apart by the colour-blind, read by everybody.

Colour vision without one kind of cone is simulated by the matrices of Machado, Oliveira
and Fernandes (IEEE Transactions on Visualization and Computer Graphics 15, 2009,
severity 1), on linear sRGB. Distances are CIEDE2000, where 2.3 is just noticeable.
"""

import re
from itertools import combinations

import numpy as np
import pytest

from dpaudit.reports.page import TEMPLATES

SERIES = tuple(f"series-{i}" for i in range(1, 8))
TOGETHER = ("refuted", "ink", *SERIES)
"""What may stand in one figure as whole or dashed lines."""

SEEN = {
    "all cones": (np.eye(3), 11.0),
    "no green cones": (
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        11.0,
    ),
    "no red cones": (
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        11.0,
    ),
    # One person of ten thousand; markers help, as they do in grey.
    "no blue cones": (
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
        7.5,
    ),
}
"""By what is missing: how colours are seen, and the least distance between two."""

_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)


def scheme(which):
    """Return the colours of a scheme, in linear sRGB: light is 0, dark is 1."""
    text = (TEMPLATES[0] / "colours.css").read_text(encoding="utf-8")
    names = ("paper", "panel", "muted", *TOGETHER)
    found = {n: re.findall(rf"--{n}: #(\w{{6}});", text)[which] for n in names}
    shares = {n: np.array([*bytes.fromhex(c)]) / 255 for n, c in found.items()}
    return {
        n: np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
        for n, c in shares.items()
    }


def lab(linear):
    """Return CIELAB under D65."""
    t = _XYZ @ linear / _XYZ.sum(axis=1)
    x, y, z = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def ciede2000(one, other):
    """Return the distance, by the formula in Sharma, Wu and Dalal (2005).

    That all pairs of the table that they print come out was seen when it was written.
    """
    chroma = (np.hypot(*one[1:]) + np.hypot(*other[1:])) / 2
    stretch = 1.5 - np.sqrt(chroma**7 / (chroma**7 + 25.0**7)) / 2
    (l1, a1, b1), (l2, a2, b2) = one, other
    c1, c2 = np.hypot(a1 * stretch, b1), np.hypot(a2 * stretch, b2)
    h1, h2 = (np.degrees(np.arctan2(b, a * stretch)) for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180
    hue = np.radians(h1 + turn / 2)
    light, strong = (l1 + l2) / 2, (c1 + c2) / 2
    by_hue = 1 - 0.17 * np.cos(hue - np.radians(30)) + 0.24 * np.cos(2 * hue)
    by_hue += 0.32 * np.cos(3 * hue + np.radians(6))
    by_hue -= 0.20 * np.cos(4 * hue - np.radians(63))
    off = (light - 50) ** 2
    lightness = (l2 - l1) / (1 + 0.015 * off / np.sqrt(20 + off))
    strength = (c2 - c1) / (1 + 0.045 * strong)
    hues = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2))
    hues /= 1 + 0.015 * strong * by_hue
    bend = np.exp(-(((np.degrees(hue) % 360 - 275) / 25) ** 2))
    blue = 2 * np.sqrt(strong**7 / (strong**7 + 25.0**7))
    blue *= np.sin(np.radians(60 * bend))
    return np.sqrt(lightness**2 + strength**2 + hues**2 - blue * strength * hues)


@pytest.mark.parametrize("missing", SEEN)
@pytest.mark.parametrize("which", [0, 1], ids=["light", "dark"])
def test_series_stay_apart_whatever_cones_are_missing(which, missing):
    (matrix, least), colours = SEEN[missing], scheme(which)
    seen = {n: lab(np.clip(np.array(matrix) @ colours[n], 0, 1)) for n in TOGETHER}
    for one, other in combinations(TOGETHER, 2):
        assert ciede2000(seen[one], seen[other]) >= least, (one, other)


@pytest.mark.parametrize("ground", ["paper", "panel"])
@pytest.mark.parametrize("which", [0, 1], ids=["light", "dark"])
def test_text_has_the_contrast_that_wcag_asks_for(which, ground):
    """4.5 to 1; lines would do with 3."""
    colours = scheme(which)
    under = _XYZ[1] @ colours[ground]
    for name in ("muted", *TOGETHER):
        low, high = sorted([under, _XYZ[1] @ colours[name]])
        assert (high + 0.05) / (low + 0.05) >= 4.5, name
