"""Abnormal outputs: exceptions, time-outs, other shapes and keys, words for numbers.

They are outputs like any other, and a mechanism that raises on D more often than on D'
tells them apart. What an output looks like without its numbers is its layout
(`dpaudit.outputs`); a layout's score is its estimated log-likelihood ratio
(`dpaudit.attacks.tables`).
"""

from collections import Counter
from typing import cast

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.attacks.base import Attack, Parameters, Target
from dpaudit.attacks.tables import shrunk_log_ratio
from dpaudit.batches import Batch
from dpaudit.mechanism import Release

__all__ = ["Abnormal"]

_MAX_LAYOUTS = 256


class Abnormal(Attack):
    """Score = cautious log-likelihood ratio of the layout; 0 if it was never seen.

    The parameters hold layouts as code points, one row each, padded with zeros.
    """

    name = "abnormal"
    learns = True
    exclusive = True
    reads = "outputs"

    def applies(self, target: Target, releases: Release) -> bool:
        """Say whether outputs have several layouts."""
        return isinstance(releases, Batch) and len(releases.parts) > 1

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        first, second = cast(Batch, on_data), cast(Batch, on_neighbour)
        counts = [Counter(side.counts) for side in (first, second)]
        frequent = (counts[0] + counts[1]).most_common(_MAX_LAYOUTS)
        layouts = [layout for layout, _ in frequent]
        hits = [np.array([count[layout] for layout in layouts]) for count in counts]
        return {
            "layouts": _to_code_points(layouts),
            "scores": shrunk_log_ratio(hits[0], first.size, hits[1], second.size),
        }

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        outputs = cast(Batch, releases)
        table = dict(
            zip(layouts_of(parameters), parameters["scores"].tolist(), strict=True)
        )
        scores = np.zeros(outputs.size)
        for layout, part in outputs.parts.items():
            scores[part.places] = table.get(layout, 0.0)
        return scores


def layouts_of(parameters: Parameters) -> list[str]:
    """Return the layouts that a fit knows, in the order of their scores."""
    rows = np.ascontiguousarray(parameters["layouts"], dtype=np.uint32)
    return rows.view(f"U{rows.shape[1]}").ravel().tolist()


def _to_code_points(layouts: list[str]) -> NDArray[np.uint32]:
    width = max(map(len, layouts), default=0) or 1
    return np.array(layouts, dtype=f"U{width}").view(np.uint32).reshape(-1, width)
