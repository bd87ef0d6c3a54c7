r"""What a mechanism says of itself: its privacy loss, steps, statistic and support.

`ExactLoss` is the exact privacy loss. By the Neyman-Pearson lemma its level sets are
the best events there are, provided that the mechanism samples what it says it samples.
The portfolio therefore does not rely on it alone.

`GaussianTranscript` is the exact likelihood ratio of a transcript of Gaussian steps.
Iterative mechanisms publish, as far as their privacy proofs are concerned, every noisy
value on the way. If value t, given the values before it, is Gaussian with mean
:math:`m_t(D)` and standard deviation :math:`\sigma_t` in every entry, the
log-likelihood ratio of a transcript y is

.. math:: \sum_t (\|y_t - m_t(D')\|^2 - \|y_t - m_t(D)\|^2) / (2 \sigma_t^2)

by the chain rule, where each mean is computed from the values in y before it. By the
Neyman-Pearson lemma no attack on the transcript is better.

`MeanShift` projects releases on the direction in which their mean moves. For noise with
a density that falls off alike in all directions this is the best single number to look
at.

`Support` looks for releases that are possible on one dataset and impossible on its
neighbour. One such release refutes any pure claim in principle; an audit turns their
frequency into evidence. A black box that returns d x d symmetric matrices on data with
d columns is tried with a guess that fits a common design, positive semi-definite noise
on the second-moment matrix: a wrong guess finds nothing, and claims nothing.

What is stated about proper rows need not hold for NaN and infinite ones: on pairs with
such rows none of these applies.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.attacks.base import (
    Attack,
    Parameters,
    Target,
    consult,
    flatten,
    score_ordinary,
)
from dpaudit.errors import UnsupportedError
from dpaudit.mechanism import (
    HasGaussianSteps,
    HasPrivacyLoss,
    HasStatistic,
    HasSupport,
    Release,
)
from dpaudit.outputs import map_arrays
from dpaudit.subspace import second_moment

__all__ = ["ExactLoss", "GaussianTranscript", "MeanShift", "Support"]


def consult_rows(
    capability: Callable[..., Any], releases: Release, *arguments: Any
) -> Array:
    """Call a capability that returns a number per release, NaN where it cannot.

    Releases with NaN or infinities are outputs like any other, but a mechanism may not
    expect them back: they are passed apart from the rest, and one by one where it fails
    on some.

    Raises
    ------
    MechanismError
        If it fails on ordinary releases, see `consult`.
    """
    flat = flatten(releases)
    with np.errstate(all="ignore"):
        total = flat.sum()  # finite only if every entry is
    if np.isfinite(total):
        return np.asarray(consult(capability, releases, *arguments))
    finite = np.asarray(np.isfinite(flat).all(axis=1))
    if finite.all():  # only their sum was not
        return np.asarray(consult(capability, releases, *arguments))

    def ask(places: NDArray[np.intp]) -> Any:
        return capability(map_arrays(releases, lambda a: a[places]), *arguments)

    scores = np.full(len(finite), np.nan)
    ordinary, odd = np.flatnonzero(finite), np.flatnonzero(~finite)
    if len(ordinary):
        scores[ordinary] = consult(ask, ordinary)
    try:
        scores[odd] = consult(ask, odd)
    except Exception:
        for place in odd:
            with suppress(Exception):
                scores[place] = consult(ask, np.array([place]))[0]
    return scores


class ExactLoss(Attack):
    """Score = log(density on D / density on D')."""

    name = "exact-loss"
    score_is = "the exact privacy loss"
    learns = False
    sufficient = True
    states, axes = HasPrivacyLoss, None

    def suits(self, target: Target, releases: Release) -> bool:
        """Say whether the mechanism has a privacy loss in this case."""
        if not target.pair.finite:
            return False
        try:
            self.score(target, {}, releases)
        except UnsupportedError:
            return False
        return True

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        mechanism = cast(HasPrivacyLoss, target.mechanism)
        pair = target.pair
        return consult_rows(mechanism.privacy_loss, releases, pair.data, pair.neighbour)


class GaussianTranscript(Attack):
    """Score = log(density of the transcript on D / density on D')."""

    name = "gaussian-transcript"
    learns = False
    states, axes = HasGaussianSteps, None

    def suits(self, target: Target, releases: Release) -> bool:
        """Say whether releases are transcripts of the mechanism's Gaussian steps."""
        if not target.pair.finite or not isinstance(releases, Mapping):
            return False
        mechanism = cast(HasGaussianSteps, target.mechanism)
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


class MeanShift(Attack):
    """Score = inner product with statistic(D) - statistic(D')."""

    name = "mean-shift"
    score_is = "the release along the difference of the statistics"
    learns = False
    states, axes = HasStatistic, None

    def suits(self, target: Target, releases: Release) -> bool:
        """Say whether the mechanism's statistic has the shape of its releases."""
        if not target.pair.finite or not isinstance(releases, np.ndarray):
            return False
        mechanism = cast(HasStatistic, target.mechanism)
        statistic = consult(mechanism.statistic, target.pair.data)
        return releases.shape[1:] == np.shape(statistic)

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        statistic, pair = cast(HasStatistic, target.mechanism).statistic, target.pair
        return {
            "direction": np.asarray(consult(statistic, pair.data))
            - consult(statistic, pair.neighbour)
        }

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        direction = np.ravel(parameters["direction"])
        return score_ordinary(flatten(releases), lambda flat: flat @ direction)


class Support(Attack):
    """Score = [possible on D] - [possible on D'], one of -1, 0, 1."""

    name = "support"
    learns = False
    exclusive = True
    states, axes = HasSupport, 2

    def suits(self, target: Target, releases: Release) -> bool:
        """Say whether a support is known, or worth guessing."""
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
