r"""The exact likelihood ratio of a transcript of Gaussian steps.

Iterative mechanisms publish, as far as their privacy proofs are concerned, every noisy
value on the way. If value t, given the values before it, is Gaussian with mean
:math:`m_t(D)` and standard deviation :math:`\sigma_t` in every entry, the
log-likelihood ratio of a transcript y is

.. math:: \sum_t (\|y_t - m_t(D')\|^2 - \|y_t - m_t(D)\|^2) / (2 \sigma_t^2)

by the chain rule, where each mean is computed from the values in y before it. By the
Neyman-Pearson lemma no attack on the transcript is better.
"""

from collections.abc import Mapping
from typing import cast

import numpy as np

from dpaudit.arrays import Array
from dpaudit.attacks.base import Attack, Parameters, Target, consult, flatten
from dpaudit.errors import UnsupportedError
from dpaudit.mechanism import HasGaussianSteps, Release

__all__ = ["GaussianTranscript"]


class GaussianTranscript(Attack):
    """Score = log(density of the transcript on D / density on D')."""

    name = "gaussian-transcript"
    learns = False

    def applies(self, target: Target, releases: Release) -> bool:
        """Say whether releases are transcripts of the mechanism's Gaussian steps."""
        mechanism = target.mechanism
        if not isinstance(mechanism, HasGaussianSteps) or not target.pair.finite:
            return False
        if not isinstance(releases, Mapping):
            return False
        scales = consult(lambda: mechanism.step_scales)
        if not scales or not scales.keys() <= releases.keys():
            return False
        try:
            means = consult(mechanism.step_means, releases, target.pair.data)
        except UnsupportedError:
            return False
        return all(
            scales[key] > 0 and np.shape(means[key]) == releases[key].shape
            for key in scales
        )

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        mechanism = cast(HasGaussianSteps, target.mechanism)
        values = cast(Mapping[str, Array], releases)
        ours, theirs = (
            consult(mechanism.step_means, values, data)
            for data in (target.pair.data, target.pair.neighbour)
        )
        total = np.zeros(len(next(iter(values.values()))))
        for key, scale in consult(lambda: mechanism.step_scales).items():
            # |y - b|^2 - |y - a|^2 without the cancellation of large squares.
            shift = ours[key] - theirs[key]
            product = shift * (values[key] - (ours[key] + theirs[key]) / 2)
            total += flatten(product).sum(axis=1) / scale**2
        return total
