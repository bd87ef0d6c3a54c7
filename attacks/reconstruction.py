r"""How badly a release reconstructs the canary.

Models fit the rows they were made from better than other rows, so a small loss on x
speaks for D (membership by a loss threshold: Yeom, Giacomelli, Fredrikson and Jha,
*Privacy risk in machine learning*, CSF 2018). For a released d x k matrix V the loss of
principal component analysis, :math:`\|x - V V^T x\|^2`; for a released vector y that is
no direction, the squared distance :math:`\|x - y\|^2`.

Where another attack gives the same events, this one stands back: for orthonormal V the
loss is a constant minus the overlap, and under replace-one the difference of squared
distances is linear in y, which is tracing.
"""

from typing import cast

import numpy as np

from dpaudit.arrays import Array
from dpaudit.attacks.base import Attack, Parameters, Target, score_ordinary
from dpaudit.attacks.canary import are_orthonormal, canary_rows, shaped_as_bases
from dpaudit.attacks.projection import MeanShift
from dpaudit.mechanism import Release
from dpaudit.neighbours import Relation

__all__ = ["Reconstruction"]

_LARGEST = 1e60  # its fourth power is finite


class Reconstruction(Attack):
    """Score = loss of x' - loss of x, as far as there is an x' and an x."""

    name = "reconstruction"
    learns = False

    def applies(self, target: Target, releases: Release) -> bool:
        """Say whether releases are vectors, or bases that are not orthonormal."""
        bases = shaped_as_bases(target.pair, releases)
        if bases is None or are_orthonormal(bases):
            return False
        if bases.shape[2] == 1 and target.pair.relation is Relation.REPLACE_ONE:
            return False
        return not MeanShift().applies(target, releases)

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        ours, theirs = canary_rows(target.pair)
        return {"ours": ours, "theirs": theirs}

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        vectors = cast(Array, releases).ndim == 2

        def advantage(bases: Array) -> Array:
            bases = np.clip(bases, -_LARGEST, _LARGEST)
            ours, theirs = parameters["ours"], parameters["theirs"]
            return _loss(bases, theirs, vectors) - _loss(bases, ours, vectors)

        bases = cast(Array, shaped_as_bases(target.pair, releases))
        return score_ordinary(bases, advantage)


def _loss(bases: Array, rows: Array, vectors: bool) -> Array:
    """Return the summed loss of the rows under each release, shape (size,)."""
    copies = (
        np.swapaxes(bases, 1, 2)
        if vectors
        else (rows @ bases) @ np.swapaxes(bases, 1, 2)
    )
    return np.square(rows - copies).sum(axis=(1, 2))
