"""The release itself, where it is one number.

For a single number every direction is the same one, so that thresholds are all there is
to learn, and nothing has to be waited for. By the Neyman-Pearson lemma no other score
is better where the likelihood ratio is monotone, as it is for a shift of any
log-concave noise (Laplace, Gaussian, geometric).
"""

import numpy as np

from dpaudit.arrays import Array
from dpaudit.attacks.base import Attack, Parameters, Target, flatten
from dpaudit.attacks.projection import MeanShift
from dpaudit.mechanism import Release

__all__ = ["Identity"]


class Identity(Attack):
    """Score = the release; NaN counts as the lowest."""

    name = "identity"
    score_is = "the release"
    learns = False

    def applies(self, target: Target, releases: Release) -> bool:
        """Say whether releases are single numbers, and not projected already."""
        return flatten(releases).shape[1] == 1 and not MeanShift().applies(
            target, releases
        )

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        numbers = flatten(releases)[:, 0]
        return np.where(np.isnan(numbers), -np.inf, numbers)
