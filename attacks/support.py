"""Releases that are possible on one dataset and impossible on its neighbour.

One such release refutes any pure claim in principle; an audit turns their frequency
into evidence. The support comes from the mechanism where it states one. A black box
that returns d x d symmetric matrices on data with d columns is tried with a guess that
fits a common design, positive semi-definite noise on the second-moment matrix: a wrong
guess finds nothing, and claims nothing.
"""

from typing import cast

import numpy as np

from dpaudit.arrays import Array
from dpaudit.attacks.base import (
    Attack,
    Parameters,
    Target,
    consult_rows,
    score_ordinary,
)
from dpaudit.mechanism import HasStatistic, HasSupport, Release
from dpaudit.subspace import second_moment

__all__ = ["Support"]


class Support(Attack):
    """Score = [possible on D] - [possible on D'], one of -1, 0, 1."""

    name = "support"
    learns = False
    exclusive = True

    def applies(self, target: Target, releases: Release) -> bool:
        """Say whether a support is known, or worth guessing.

        What is stated about proper rows need not hold for NaN and infinite ones.
        """
        if not target.pair.finite:
            return False
        if isinstance(target.mechanism, HasSupport):
            return True
        if isinstance(target.mechanism, HasStatistic):
            return False
        data = target.pair.data
        return (
            isinstance(releases, np.ndarray)
            and data.ndim == 2
            and releases.shape[1:] == (data.shape[1], data.shape[1])
        )

    def event(self, threshold: float, *, reached: bool = True) -> str:
        """Return in words that a release shows which dataset it is of, or does not."""
        if threshold > 0:
            return "the release is " + ("" if reached else "not ") + "one of D alone"
        return "the release is " + ("not " if reached else "") + "one of D' alone"

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        mechanism, pair = target.mechanism, target.pair
        if isinstance(mechanism, HasSupport):
            on_data, on_neighbour = (
                consult_rows(mechanism.in_support, releases, data)
                for data in (pair.data, pair.neighbour)
            )
            return on_data.astype(np.float64) - on_neighbour

        def guess(matrices: Array) -> Array:
            return _above(matrices, pair.data) - _above(matrices, pair.neighbour)

        return score_ordinary(cast(Array, releases), guess)


def _above(matrices: Array, data: Array) -> Array:
    """Say, 1 or 0, where a matrix exceeds the second moment by a semi-definite one."""
    values = np.linalg.eigvalsh(matrices - second_moment(data))
    return (values[:, 0] >= -1e-9 * np.abs(values).max(axis=1)).astype(np.float64)
