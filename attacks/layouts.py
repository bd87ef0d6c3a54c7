"""Outputs of several layouts: what they look like, and the numbers in them.

Exceptions, time-outs, other shapes and keys, words for numbers are outputs like any
other, and a mechanism that raises on D more often than on D' tells them apart. What an
output looks like without its numbers is its layout (`dpaudit.outputs`); the score of
`Abnormal` is a layout's estimated log-likelihood ratio (`dpaudit.attacks.learned`).

Where outputs have several layouts (lists of any length, a number or a word, keys that
come and go), an event of one layout alone tells only part of it. `ByLayout` adds to the
log-likelihood ratio of the layout that of its numbers, given the layout. The second has
one model per layout: a table of atoms where numbers repeat, else a logistic classifier
(`dpaudit.attacks.learned`). So the scores of all layouts compare, and one event may
take something of each.
"""

from collections import Counter
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.attacks.base import Attack, Parameters, Target
from dpaudit.attacks.learned import Atoms, LogisticClassifier, shrunk_log_ratio
from dpaudit.batches import Batch
from dpaudit.mechanism import Release

__all__ = ["Abnormal", "ByLayout"]

_MAX_LAYOUTS = 256


class Abnormal(Attack):
    """Score = cautious log-likelihood ratio of the layout; 0 if it was never seen.

    The parameters hold layouts as code points, one row each, padded with zeros.
    """

    name = "abnormal"
    learns = True
    exclusive = True
    reads = "outputs"
    axes = 1

    def suits(self, target: Target, releases: Release) -> bool:
        """Say whether they are outputs."""
        return isinstance(releases, Batch)

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
            zip(_layouts_of(parameters), parameters["scores"].tolist(), strict=True)
        )
        scores = np.zeros(outputs.size)
        for layout, part in outputs.parts.items():
            scores[part.places] = table.get(layout, 0.0)
        return scores


def _layouts_of(parameters: Parameters) -> list[str]:
    """Return the layouts that a fit knows, in the order of their scores."""
    rows = np.ascontiguousarray(parameters["layouts"], dtype=np.uint32)
    return rows.view(f"U{rows.shape[1]}").ravel().tolist()


def _to_code_points(layouts: list[str]) -> NDArray[np.uint32]:
    width = max(map(len, layouts), default=0) or 1
    return np.array(layouts, dtype=f"U{width}").view(np.uint32).reshape(-1, width)


_MAX_MODELS = 32
_FEWEST = 8  # outputs of a layout, on either side, before their numbers have a model
_MODELS = (Atoms(), LogisticClassifier())


class ByLayout(Attack):
    """Score = log-likelihood ratio of the layout + that of the numbers in it.

    The parameters are those of `Abnormal`; ``models``, which model each layout has, -1
    for none; and those of the model of layout i, with ``i:`` before their names.
    """

    name = "by-layout"
    learns = True
    reads = "outputs"
    axes = 1

    def suits(self, target: Target, releases: Release) -> bool:
        """Say whether some of the outputs have numbers."""
        return isinstance(releases, Batch) and any(
            part.numbers is not None for part in releases.parts.values()
        )

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        first, second = cast(Batch, on_data), cast(Batch, on_neighbour)
        table = Abnormal().fit(target, on_data, on_neighbour)
        layouts = _layouts_of(table)
        models = np.full(len(layouts), -1)
        contents: dict[str, NDArray[Any]] = {}
        both = Batch.join([first, second])
        for place, layout in enumerate(layouts[:_MAX_MODELS]):
            ours, theirs = first.numbers(layout), second.numbers(layout)
            if min(first.count(layout), second.count(layout)) < _FEWEST:
                continue
            numbers = both.numbers(layout)
            if ours is None or theirs is None or numbers is None:
                continue
            for index, model in enumerate(_MODELS):
                if model.applies(target, numbers):
                    models[place] = index
                    fitted = model.fit(target, ours, theirs)
                    contents |= {f"{place}:{k}": v for k, v in fitted.items()}
                    break
        return {**table, "models": models, **contents}

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        outputs = cast(Batch, releases)
        scores = Abnormal().score(target, parameters, releases)
        for place, layout in enumerate(_layouts_of(parameters)):
            index, numbers = int(parameters["models"][place]), outputs.numbers(layout)
            if index < 0 or numbers is None:
                continue
            prefix = f"{place}:"
            own = {
                key.removeprefix(prefix): value
                for key, value in parameters.items()
                if key.startswith(prefix)
            }
            places = outputs.parts[layout].places
            scores[places] += _MODELS[index].score(target, own, numbers)
        return scores
