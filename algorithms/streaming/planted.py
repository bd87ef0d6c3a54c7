r"""Planted bugs: forms of Oja, DP-PCA and its parts that break their promise.

An audit must refute them; nobody should use them.

- `ClaimedOja`: Oja's algorithm without noise, held to pure DP.
- `UnthresholdedHistogram`: a private histogram that shows every non-empty bin.
  Whether a lonely row is there is then visible in every release: private at no epsilon,
  and at no delta < 1.
- `mean_with_constant_8`: Algorithm 5 calibrated without slack, but with the constant 8
  of the paper's equation 14 in place of 12: noise for a window of +-2 K sqrt(Lambda)
  log^a(...), where it is +-3. On the pair of `MeanEstimation.worst_case` it is the mean
  that differs, by 3/2 of the mu that it was given. The histograms, which do not differ,
  have a twentieth of the budget here, so that the mean has nearly all of it: 0.729 in
  place of 0.486 at (2, 1e-5), where delta is then 1.7e-3. (With the published split of
  the budget, which has slack, the 8 breaks the promise at large epsilon only; see
  `dpaudit.algorithms.streaming.mean_budget`.)
- `OverlappingDPPCA`: the mean is taken over the whole batch, while both parts are paid
  for as if they read different rows. A row of the first half is then paid for once and
  used twice, (2 epsilon, 2 delta) by adding up.

How the last one shows it. Neither part breaks the promise by itself, so the event to
look at is that both happen: an unlikely scale wins, and the noise of the mean favours
one side. The row moves a group of the scale from a bin to another. Where its bin is
behind by b = 2/epsilon or so, that changes the chances of the bin by nearly e^epsilon:
from 0.163 to 0.0095 at (3.5, 1e-5), a loss of 2.8. Given the scale, the row moves the
mean by its full mu, 0.73 there, and a tail of the mean adds the rest: on an event of
probability 0.02 the loss is above 4.
"""

from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any, Self

import numpy as np

from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.algorithms.streaming.dp_pca import DPPCA
from dpaudit.algorithms.streaming.mean_budget import CalibratedSplit, MeanNoise
from dpaudit.algorithms.streaming.mean_estimation import (
    DEFAULT_TAIL,
    MeanEstimation,
    Tail,
)
from dpaudit.algorithms.streaming.minibatch_pca import RowBatch
from dpaudit.algorithms.streaming.moments import ProductGradients
from dpaudit.algorithms.streaming.oja import Oja
from dpaudit.algorithms.streaming.private_histogram import CountNoise, PrivateHistogram
from dpaudit.arrays import Array
from dpaudit.claims import ApproxDP, Claim, PureDP
from dpaudit.neighbours import Pair
from dpaudit.validation import check_fraction, check_length, check_positive

__all__ = [
    "ClaimedOja",
    "OverlappingDPPCA",
    "UnthresholdedHistogram",
    "mean_with_constant_8",
]

_SPREAD = 0.05  # noise of the mean over its length, with the larger scale
_PULLING = 4  # rows that say which scale has won
_LOUD = 2.0**40  # by how much the data exceed w_0


class ClaimedOja(Oja):
    """Oja's algorithm with a claim, which is false."""

    claim: Claim

    @classmethod
    def planted(cls, epsilon: float) -> "ClaimedOja":
        """Return steps of 1 along every row, and the promise of pure epsilon-DP."""
        return cls(1.0, claim=PureDP(epsilon))


@dataclass(frozen=True, kw_only=True)
class UnthresholdedHistogram(PrivateHistogram):
    """A private histogram that shows every bin that is not empty.

    Examples
    --------
    >>> planted = UnthresholdedHistogram.planted(1.0, 1e-5, bins=3)
    >>> planted.release([0.5, 2.5], rng=np.random.default_rng(0)) == 0
    array([False,  True, False])
    """

    @hands_on(but=("noise", "claim"))
    @classmethod
    def planted(
        cls, epsilon: float, delta: float, **fields: Any
    ) -> "UnthresholdedHistogram":
        """Return the mechanism with the noise that is right, and no threshold."""
        noise = CountNoise(2 / check_positive("epsilon", epsilon), -np.inf)
        claim = ApproxDP(epsilon, check_fraction("delta", delta))
        return cls(noise=noise, claim=claim, **fields)

    @property
    def true_epsilon(self) -> float:
        """Infinite, at every delta < 1."""
        return inf

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a lonely row that moves to an empty bin; rows have length 1."""
        super().worst_case(dimension)
        return self.canonical_pairs()[0]

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst case, and a row that moves between full bins."""
        return self._lonely_pair(), self._full_pair()


@dataclass(frozen=True)
class SplitWithConstant8(CalibratedSplit):
    """The calibrated split, if the windows were two thirds as wide as they are."""

    def noise(self, dimension: int) -> MeanNoise:
        right = super().noise(dimension)
        return replace(right, mu=right.mu * 12 / 8)


def mean_with_constant_8(
    epsilon: float, delta: float, *, tail: Tail = DEFAULT_TAIL, eigenvalue: float = 1.0
) -> MeanEstimation:
    """Return Algorithm 5 with two thirds of the noise that its promise needs.

    Parameters
    ----------
    epsilon, delta, tail, eigenvalue
        As for `MeanEstimation.calibrated`.

    Examples
    --------
    >>> round(mean_with_constant_8(2.0, 1e-5).split.noise(1).mu, 3)
    0.729
    """
    split = SplitWithConstant8(epsilon, delta, histogram_share=0.05)
    return MeanEstimation(split=split, tail=tail, eigenvalue=eigenvalue)


@dataclass(frozen=True, kw_only=True)
class OverlappingDPPCA(DPPCA):
    """DP-PCA whose mean is taken over the whole batch, at the price of a half."""

    @classmethod
    def planted(
        cls, epsilon: float, delta: float, *, batch_size: int | None = None
    ) -> Self:
        """Return `DPPCA.calibrated` with its halves overlapping, and one batch.

        The scale has the bins of the paper, and windows are ten times narrower than by
        default: a row that is beyond them need not be in a bin of a larger scale.

        Parameters
        ----------
        epsilon, delta : float
            The promise, which is false.
        batch_size : int, optional
            Default: n, all rows in one batch.
        """
        return cls.calibrated(
            epsilon,
            delta,
            tail=Tail(scale=0.01),
            bins_per_octave=4,
            batch_constant=1e4,
            batch_size=batch_size,
        )

    def halves(
        self, batch: RowBatch, vectors: Array, deflated: Array | None
    ) -> tuple[ProductGradients, ProductGradients]:
        first, _ = super().halves(batch, vectors, deflated)
        return first, ProductGradients(
            batch.moments, batch.first, batch.size, vectors, deflated
        )

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a row that moves a bin of the scale, and the mean as well.

        Items are matrices A_i; A_i w is w_1 times their first column, all else is 0.
        With v = (1, ..., 1) and u = (1, -1, 1, ...), the columns are s v, but for the
        first pair of each group in the first half: s v - u and s v + u where the scale
        is the larger one, s v - u/8 and s v where it is the smaller. Fewer groups have
        the larger scale, by b or so. Its windows end short of s v - u and s v + u.

        In the neighbour the s v - u of the first group is s v + 7/8 u: the group has
        the smaller scale now, and a row that was below all windows is above them.

        s is such that g_t has noise of a twentieth of its length if the larger scale
        has won, and much less if not. A few rows s v - u of the second half, which the
        wide windows let pull further, move g_t in the direction of -u then. So the
        event to look at is that w is far in that direction. The default d is 2; at
        least 2.
        """
        d = check_length(dimension, 2, minimum=2)
        v, u = np.ones(d), (-1.0) ** np.arange(d)
        k = self.scale_finder.groups(self.scale_finder.zeta / 2)
        noise = self.mean.split.noise(d)
        # The bin of s v must be shown, which all but a few of each group are in.
        full = int(noise.counts.threshold + 8 * noise.counts.scale)
        half = max(2 * k, full // 2 + k + _PULLING)
        pairs = half // 2 // k
        scale = 2 * d / pairs  # of a difference of 2 u among them
        mean_noise = self.mean.deviation(scale, 2 * half, d, self.scale_finder.zeta / 2)
        s = float(mean_noise) / (_SPREAD * sqrt(d))
        columns = np.tile(s * v, (2 * half, 1))
        firsts = 2 * pairs * np.arange(k)
        larger = round((k - self.scale_finder.noise.scale) / 2)
        columns[firsts[:larger]] -= u
        columns[firsts[:larger] + 1] += u
        columns[firsts[larger:]] -= u / 8
        columns[-_PULLING:] -= u
        items = np.zeros((2 * half, d, d))
        items[:, :, 0] = _LOUD * columns
        other = items.copy()
        other[0, :, 0] = _LOUD * (s * v + 7 / 8 * u)
        return Pair(items, other, self.relation)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst case."""
        return (self.worst_case(),)
