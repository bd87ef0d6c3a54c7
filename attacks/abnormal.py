"""Abnormal outputs: exceptions, time-outs, other shapes, words for numbers.

They are outputs like any other, and a mechanism that raises on D more often than on D'
tells them apart. What came instead of an ordinary release is a label; a label's score
is its estimated log-likelihood ratio (`dpaudit.attacks.tables`), and so is that of
having no label.
"""

from collections import Counter
from typing import cast

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.base import Array, Attack, Parameters, Target
from dpaudit.attacks.tables import shrunk_log_ratio
from dpaudit.mechanism import Release

__all__ = ["Abnormal"]

_MAX_LABELS = 256


class Abnormal(Attack):
    """Score = cautious log-likelihood ratio of the label; 0 if it was never seen.

    It reads labels, a 1-d array of str with one entry per release, in place of
    releases. The parameters hold them as code points, one row each, padded with zeros.
    """

    name = "abnormal"
    learns = True
    reads = "labels"

    def applies(self, target: Target, releases: Release) -> bool:
        """Say whether any release was abnormal."""
        return (
            isinstance(releases, np.ndarray)
            and releases.dtype.kind == "U"
            and bool(np.any(releases != ""))
        )

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        counts = [Counter(_labels(side)) for side in (on_data, on_neighbour)]
        labels = [label for label, _ in (counts[0] + counts[1]).most_common()]
        labels = labels[:_MAX_LABELS]
        hits = [np.array([count[label] for label in labels]) for count in counts]
        return {
            "labels": _to_code_points(labels),
            "scores": shrunk_log_ratio(
                hits[0], len(on_data), hits[1], len(on_neighbour)
            ),
        }

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        labels = _from_code_points(parameters["labels"])
        table = dict(zip(labels, parameters["scores"].tolist(), strict=True))
        return np.array([table.get(x, 0.0) for x in _labels(releases)], dtype=float)


def _labels(releases: Release) -> list[str]:
    return cast(list[str], cast(Array, releases).tolist())


def _to_code_points(labels: list[str]) -> NDArray[np.uint32]:
    width = max(map(len, labels), default=0) or 1
    return np.array(labels, dtype=f"U{width}").view(np.uint32).reshape(-1, width)


def _from_code_points(codes: NDArray[np.uint32]) -> list[str]:
    rows = np.ascontiguousarray(codes, dtype=np.uint32)
    return rows.view(f"U{rows.shape[1]}").ravel().tolist()
