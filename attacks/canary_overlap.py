r"""How much of the canary a released subspace contains.

A row x in the data pulls the principal subspace towards itself, so
:math:`\|V^T x\|^2` is larger on D than on D'. It is the same for every orthonormal
basis V of the subspace and for every sign of an eigenvector, which a mechanism may
choose as it likes. The residual :math:`\|x - V V^T x\|^2` is
:math:`\|x\|^2 - \|V^T x\|^2` and gives the same events. Under replace-one the row x' of
D' counts with the opposite sign.

A symmetric d x d release is judged by its top eigenvector, unless it is a projector:
there the top eigenvector is arbitrary, and the quadratic form of the canary
(`dpaudit.attacks.canary_quadratic`) is the overlap already.
"""

from typing import cast

import numpy as np

from dpaudit.arrays import Array
from dpaudit.attacks.base import Attack, Parameters, Target, score_ordinary
from dpaudit.attacks.canary import (
    are_orthonormal,
    canary_rows,
    captured_length,
    moment_difference,
    shaped_as_bases,
    square_on_rows,
)
from dpaudit.attacks.exact_loss import ExactLoss
from dpaudit.attacks.projection import MeanShift
from dpaudit.mechanism import Release

__all__ = ["CanaryOverlap"]

_MAX_DIMENSION = 32  # of matrices: eigenvectors of larger ones take too long
_TOLERANCE = 1e-6


class CanaryOverlap(Attack):
    """Score = ||V^T x||^2 - ||V^T x'||^2."""

    name = "canary-overlap"
    learns = False

    def applies(self, target: Target, releases: Release) -> bool:
        """Say whether releases show a subspace of the space that rows live in."""
        pair = target.pair
        if square_on_rows(pair, releases):
            if not _have_top_eigenvectors(cast(Array, releases)):
                return False
        else:
            bases = shaped_as_bases(pair, releases)
            if bases is None or not are_orthonormal(bases):
                return False
        known = MeanShift().applies(target, releases) or ExactLoss().applies(
            target, releases
        )
        return bool(moment_difference(pair).any()) and not known

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        ours, theirs = canary_rows(target.pair)
        return {"ours": ours, "theirs": theirs}

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        def overlap(releases: Array) -> Array:
            if square_on_rows(target.pair, releases):
                bases = _top_eigenvectors(releases)
            else:
                bases = cast(Array, shaped_as_bases(target.pair, releases))
            ours, theirs = parameters["ours"], parameters["theirs"]
            return captured_length(bases, ours) - captured_length(bases, theirs)

        return score_ordinary(cast(Array, releases), overlap)


def _have_top_eigenvectors(matrices: Array) -> bool:
    """Say whether finite releases are symmetric, and few of them are projectors."""
    finite = matrices[np.isfinite(matrices).all(axis=(1, 2))]
    if not len(finite) or finite.shape[1] > _MAX_DIMENSION:
        return False
    if not np.allclose(finite, finite.swapaxes(1, 2), rtol=1e-9, atol=0.0):
        return False
    bounded = np.clip(finite, -2, 2)  # entries of projectors are at most 1
    defect = np.abs(bounded @ bounded - bounded).max(axis=(1, 2))
    return bool(np.median(defect) > _TOLERANCE)


def _top_eigenvectors(matrices: Array) -> Array:
    """Return the top eigenvector of each symmetric part, shape (size, d, 1)."""
    _, vectors = np.linalg.eigh((matrices + matrices.swapaxes(1, 2)) / 2)
    return vectors[:, :, -1:]
