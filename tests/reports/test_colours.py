"""Colours of the figures: told apart by the colour-blind, read by everybody.

Colour vision without one kind of cone is simulated by the matrices of Machado, Oliveira
and Fernandes (IEEE Transactions on Visualization and Computer Graphics 15, 2009,
severity 1), on linear sRGB. Distances are those of CIELAB: 2.3 is just noticeable.
"""

import re
from itertools import combinations

import numpy as np
import pytest

from dpaudit.reports.templates import TEMPLATES

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


@pytest.mark.parametrize("missing", SEEN)
@pytest.mark.parametrize("which", [0, 1], ids=["light", "dark"])
def test_series_stay_apart_whatever_cones_are_missing(which, missing):
    (matrix, least), colours = SEEN[missing], scheme(which)
    seen = {n: lab(np.clip(np.array(matrix) @ colours[n], 0, 1)) for n in TOGETHER}
    for one, other in combinations(TOGETHER, 2):
        assert np.linalg.norm(seen[one] - seen[other]) >= least, (one, other)


@pytest.mark.parametrize("ground", ["paper", "panel"])
@pytest.mark.parametrize("which", [0, 1], ids=["light", "dark"])
def test_text_has_the_contrast_that_wcag_asks_for(which, ground):
    """4.5 to 1; lines would do with 3."""
    colours = scheme(which)
    under = _XYZ[1] @ colours[ground]
    for name in ("muted", *TOGETHER):
        low, high = sorted([under, _XYZ[1] @ colours[name]])
        assert (high + 0.05) / (low + 0.05) >= 4.5, name
