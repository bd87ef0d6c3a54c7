"""Candidate events: which sets of outputs are worth betting on.

An event is "attack a scores at least t". Its probabilities on D and D' are estimated
from scores of the past, by Krichevsky-Trofimov (k + 1/2)/(n + 1), which keeps
alternatives off 0 and 1. Only events on the convex hull of all estimated points (q, p)
are kept: evidence is a convex function of the point, so no other event is ever best.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Events", "candidates"]

Array = NDArray[np.float64]

_RANK_RATIO = 1.3
_DTYPES: tuple[type, ...] = (np.intp, float, float, float, np.intp)


@dataclass(frozen=True)
class Events:
    """Candidate events, one entry each.

    Parameters
    ----------
    attack : ndarray of int, shape (T,)
        Which attack scores.
    threshold : ndarray, shape (T,)
        The event is score >= threshold.
    p, q : ndarray, shape (T,)
        Estimated probabilities on D and on D', strictly between 0 and 1.
    scored : ndarray of int, shape (T,)
        From how many releases on either side.
    """

    attack: NDArray[np.intp]
    threshold: Array
    p: Array
    q: Array
    scored: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.attack)

    @classmethod
    def single(cls, threshold: float, p: float, q: float, scored: int) -> "Events":
        """Return one event of attack 0."""
        return cls(
            np.zeros(1, dtype=np.intp),
            np.array([threshold]),
            np.array([p]),
            np.array([q]),
            np.array([scored]),
        )


def candidates(scores: Sequence[tuple[int, Array, Array]]) -> Events:
    """Return the events worth considering.

    Parameters
    ----------
    scores : sequence of (attack, on_data, on_neighbour)
        Past scores that the attack did not learn from, shapes (n,) and (m,).
    """
    parts = []
    for index, on_data, on_neighbour in scores:
        thresholds = _thresholds(np.concatenate([on_data, on_neighbour]))
        parts.append(
            (
                np.full(len(thresholds), index, dtype=np.intp),
                thresholds,
                _smoothed(on_data, thresholds),
                _smoothed(on_neighbour, thresholds),
                np.full(len(thresholds), len(on_data), dtype=np.intp),
            )
        )
    if not parts:
        return Events(*(np.empty(0, dtype=t) for t in _DTYPES))
    attack, threshold, p, q, scored = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    kept = np.union1d(_upper_hull(q, p), _upper_hull(p, q))
    return Events(attack[kept], threshold[kept], p[kept], q[kept], scored[kept])


def _thresholds(scores: Array) -> Array:
    """Return distinct thresholds, dense in both tails and at the middle of the ROC.

    Ranks grow geometrically from either end, so that rare events are resolved in
    proportion to how often they were seen.
    """
    values = np.unique(scores)[1:]  # the smallest would be the sure event
    if len(values) < 2:
        return values
    steps = int(np.log(len(values)) / np.log(_RANK_RATIO)) + 1
    ranks = np.unique((_RANK_RATIO ** np.arange(steps + 1)).astype(np.intp)) - 1
    ranks = ranks[ranks < len(values)]
    return values[np.union1d(ranks, len(values) - 1 - ranks)]


def _smoothed(scores: Array, thresholds: Array) -> Array:
    hits = len(scores) - np.searchsorted(np.sort(scores), thresholds, side="left")
    return (hits + 0.5) / (len(scores) + 1)


def _upper_hull(x: Array, y: Array) -> NDArray[np.intp]:
    """Return the vertices of the upper convex hull of (0, 0), the points and (1, 1)."""
    order = np.lexsort((-y, x))
    hull: list[int] = []

    def coordinates(index: int) -> tuple[float, float]:
        return (0.0, 0.0) if index < 0 else (float(x[index]), float(y[index]))

    hull.append(-1)
    for index in order:
        (xi, yi) = coordinates(index)
        while len(hull) >= 2:
            (xa, ya), (xb, yb) = coordinates(hull[-2]), coordinates(hull[-1])
            if (yb - ya) * (xi - xa) > (yi - ya) * (xb - xa):
                break
            hull.pop()
        hull.append(int(index))
    return np.array([i for i in hull if i >= 0 and y[i] > x[i]], dtype=np.intp)
