"""The quadratic form of the canary, for releases that are d x d matrices.

A mechanism that perturbs the second-moment matrix sum_i x_i x_i^T, scaled or not, moves
its mean along x x^T - x' x'^T, where x is the row that only D has and x' the one that
only D' has. The inner product of the release Y with it is x^T Y x - x'^T Y x'. For a
projector Y on a subspace this is how much more of x than of x' the subspace contains.
Nothing has to be learned; with a known statistic, `dpaudit.attacks.projection` does the
same for any query.
"""

import numpy as np

from dpaudit.arrays import Array
from dpaudit.attacks.base import Attack, Parameters, Target, flatten, score_ordinary
from dpaudit.attacks.canary import moment_difference, square_on_rows
from dpaudit.attacks.projection import MeanShift
from dpaudit.mechanism import Release

__all__ = ["CanaryQuadratic"]


class CanaryQuadratic(Attack):
    """Score = x^T Y x - x'^T Y x'."""

    name = "canary-quadratic"
    learns = False

    def applies(self, target: Target, releases: Release) -> bool:
        """Say whether releases are d x d, rows in R^d, and the shift not known."""
        return (
            square_on_rows(target.pair, releases)
            and bool(moment_difference(target.pair).any())
            and not MeanShift().applies(target, releases)
        )

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        return {"difference": moment_difference(target.pair)}

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        difference = np.ravel(parameters["difference"])
        return score_ordinary(flatten(releases), lambda flat: flat @ difference)
