"""The log-likelihood ratio of whole outputs: of their layout, and of their numbers.

Where outputs have several layouts (lists of any length, a number or a word, keys that
come and go), an event of one layout alone tells only part of it. The log-likelihood
ratio of an output is that of its layout plus that of its numbers, given the layout. The
first is looked up (`dpaudit.attacks.abnormal`), the second has one model per layout: a
table of atoms where numbers repeat (`dpaudit.attacks.atoms`), else a logistic
classifier (`dpaudit.attacks.logistic`). So the scores of all layouts compare, and one
event may take something of each.
"""

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.attacks.abnormal import Abnormal, layouts_of
from dpaudit.attacks.atoms import Atoms
from dpaudit.attacks.base import Attack, Parameters, Target
from dpaudit.attacks.logistic import LogisticClassifier
from dpaudit.batches import Batch
from dpaudit.mechanism import Release

__all__ = ["ByLayout"]

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

    def applies(self, target: Target, releases: Release) -> bool:
        """Say whether outputs have several layouts, and some of them numbers."""
        return Abnormal().applies(target, releases) and any(
            part.numbers is not None for part in cast(Batch, releases).parts.values()
        )

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        first, second = cast(Batch, on_data), cast(Batch, on_neighbour)
        table = Abnormal().fit(target, on_data, on_neighbour)
        layouts = layouts_of(table)
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
        for place, layout in enumerate(layouts_of(parameters)):
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
