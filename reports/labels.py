"""Where words go in a figure, so that they do not touch.

Places are in pixels, whatever those are.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["apart", "crossings", "thinned"]


def apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Return places at least `gap` apart, as near to those wanted as can be.

    Blocks of labels that touch are centred on the mean of what they want, and merged
    while they overlap (the least-squares solution).

    Examples
    --------
    >>> apart([10.0, 12.0, 100.0], gap=6.0)
    [8.0, 14.0, 100.0]
    """
    order = np.argsort(wanted, kind="stable")
    blocks: list[list[int]] = []
    for label in order:
        blocks.append([int(label)])
        while len(blocks) > 1 and _start(blocks[-1], wanted, gap) < (
            _start(blocks[-2], wanted, gap) + gap * len(blocks[-2])
        ):
            last = blocks.pop()
            blocks[-1] += last
    places = [0.0] * len(wanted)
    for block in blocks:
        start = _start(block, wanted, gap)
        for i, label in enumerate(block):
            places[label] = start + gap * i
    return places


def _start(block: list[int], wanted: Sequence[float], gap: float) -> float:
    mean = sum(wanted[label] for label in block) / len(block)
    return mean - gap * (len(block) - 1) / 2


def thinned(places: ArrayLike, gap: float) -> list[int]:
    """Return which of ascending places to keep, `gap` apart at least; the last stays.

    Examples
    --------
    >>> thinned([0.0, 10.0, 18.0, 40.0, 45.0], gap=20.0)
    [2, 4]
    """
    ascending = np.asarray(places, dtype=float)
    kept: list[int] = []
    for i in reversed(range(len(ascending))):
        if not kept or ascending[kept[-1]] - ascending[i] >= gap:
            kept.append(i)
    return kept[::-1]


def crossings(
    lines: Sequence[NDArray[np.float64]],
    corner: tuple[float, float],
    size: tuple[float, float],
) -> int:
    """Return at how many of 20 places across a box lines run through it, in all.

    Parameters
    ----------
    lines : sequence of ndarray, shape (2, n)
        Abscissae, ascending, and ordinates.
    corner : (float, float)
        The lower left one.
    size : (float, float)
        Width and height.

    Examples
    --------
    >>> level = np.array([[0.0, 100.0], [5.0, 5.0]])
    >>> crossings([level], (10.0, 0.0), (40.0, 8.0))
    20
    >>> crossings([level], (10.0, 6.0), (40.0, 8.0))
    0
    """
    (left, bottom), (width, height) = corner, size
    across = np.linspace(left, left + width, 20)
    above = [np.interp(across, x, y) - bottom for x, y in lines]
    return sum(int(np.count_nonzero((0 < up) & (up < height))) for up in above)
