r"""Tracing: a release that leans towards the canary more than towards other rows.

The score of Dwork, Smith, Steinke, Ullman and Vadhan (*Robust traceability from trace
amounts*, FOCS 2015, section 3), and in spirit that of Tardos for fingerprinting codes:
the inner product <y, x - z> of a released vector of means or sums with the canary,
minus that with a reference z, which takes away what y owes to the population. As both
datasets are known, z is the mean of the rows that they share. Under replace-one the
difference of two such scores is <y, x - x'>.

Of orthonormal bases, which have no sign, the squared length of the projection of
x - z is taken; where z = 0 this is the overlap of the canary, another attack.
"""

from typing import cast

import numpy as np

from dpaudit.arrays import Array
from dpaudit.attacks.base import Attack, Parameters, Target, score_ordinary
from dpaudit.attacks.canary import (
    are_orthonormal,
    canary_rows,
    captured_length,
    common_mean,
    shaped_as_bases,
)
from dpaudit.attacks.projection import MeanShift
from dpaudit.mechanism import Release

__all__ = ["Tracing"]


class Tracing(Attack):
    """Score = <y, x - z>, or ||V^T (x - z)||^2; minus the same for x'."""

    name = "tracing"
    learns = False

    def applies(self, target: Target, releases: Release) -> bool:
        """Say whether releases are d-vectors, or subspaces with a reference."""
        bases = shaped_as_bases(target.pair, releases)
        if bases is None or MeanShift().applies(target, releases):
            return False
        if are_orthonormal(bases):
            return bool(common_mean(target.pair).any())
        ours, theirs = _centred(target)
        return bases.shape[2] == 1 and bool((ours.sum(0) - theirs.sum(0)).any())

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        ours, theirs = _centred(target)
        both = [
            cast(Array, shaped_as_bases(target.pair, side))
            for side in (on_data, on_neighbour)
        ]
        signless = are_orthonormal(np.concatenate(both))
        return {"ours": ours, "theirs": theirs, "signless": np.array([signless])}

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        ours, theirs = parameters["ours"], parameters["theirs"]

        def trace(bases: Array) -> Array:
            if parameters["signless"][0]:
                return captured_length(bases, ours) - captured_length(bases, theirs)
            return bases[:, :, 0] @ (ours.sum(axis=0) - theirs.sum(axis=0))

        bases = cast(Array, shaped_as_bases(target.pair, releases))
        return score_ordinary(bases, trace)


def _centred(target: Target) -> tuple[Array, Array]:
    reference = common_mean(target.pair)
    ours, theirs = canary_rows(target.pair)
    return ours - reference, theirs - reference
