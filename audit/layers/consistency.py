r"""Whether a mechanism's privacy loss belongs to its sampler.

With p and q the densities of the releases on D and on D' and L = log(p/q), for every
real t

.. math:: E_P[\min(1, e^{t - L})] = \int \min(p, e^t q) = e^t E_Q[\min(1, e^{L - t})].

On both sides stands the mean of a variable in [0, 1], over draws on D and over draws on
D'. A confidence interval for either (`dpaudit.audit.layers.means`) must therefore
overlap the other; if they are disjoint, loss and sampler do not belong together. At t =
0 both are the overlap of P and Q; at a t beyond all losses the identity says E_Q[e^L] =
1 (where P has no mass of its own), at a t below them E_P[e^-L] = 1. One t alone is not
enough: by symmetry a Gaussian loss times 0.9 passes at t = 0.

The error probability is split evenly over the t's and the two sides. The t's are chosen
from a pilot that is not used again. Two things need no sampling and are checked too:
a release drawn on a dataset must be possible on it, and the loss must change its sign
when the datasets are exchanged.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.layers.means import BettingInterval
from dpaudit.audit.layers.tilting import Direction, affordable
from dpaudit.audit.layers.whitebox import directions
from dpaudit.neighbours import Pair
from dpaudit.streams import stream
from dpaudit.validation import check_count, check_fraction

__all__ = ["LossConsistency", "loss_consistency"]

_PILOT, _FIRST_BATCH = 2000, 16
_LARGEST = 700.0  # so that e^t is a float
_QUANTILES = (0.002, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 0.998)
_ROUNDING = 1e-6
_PILOT_STREAM, _MAIN_STREAM = 0, 1


@dataclass(frozen=True, eq=False)
class LossConsistency:
    """Whether two-sample identities of the privacy loss hold, up to chance.

    Parameters
    ----------
    consistent : bool
        False only if a disagreement is shown; True is no proof that there is none.
    reason : str
        What disagrees; empty if nothing.
    threshold : ndarray, shape (k,)
        The t's.
    from_data, from_neighbour : ndarray, shape (k, 2)
        Confidence intervals of the same numbers, from draws on D and on D'.
    samples : int
        Releases on either side, the pilot not counted.
    confidence : float
        A correct loss is found inconsistent with probability at most 1 - confidence.
    seed : int
    """

    consistent: bool
    reason: str
    threshold: Array
    from_data: Array
    from_neighbour: Array
    samples: int
    confidence: float
    seed: int

    def __str__(self) -> str:
        head = "no disagreement" if self.consistent else f"INCONSISTENT: {self.reason}"
        return (
            f"privacy loss and sampler: {head} (confidence {self.confidence:g}, "
            f"{self.samples:,} releases a side, {len(self.threshold)} identities)"
        )


def loss_consistency(
    mechanism: Any,
    pair: Pair,
    *,
    confidence: float = 0.999,
    max_samples: int = 100_000,
    seed: int = 0,
) -> LossConsistency:
    """Check that a mechanism's privacy loss is that of the releases it draws.

    Parameters
    ----------
    mechanism : Mechanism
        With a `privacy_loss`.
    pair : Pair
    confidence : float
        In (0, 1). The false-alarm probability is at most 1 - confidence.
    max_samples : int
        Releases on either side.
    seed : int

    Raises
    ------
    InputError
        If an argument is not allowed.
    MechanismError
        If the mechanism raises.

    Examples
    --------
    >>> from dpaudit.algorithms import SymmetrisedWishart
    >>> mechanism = SymmetrisedWishart.calibrated(1.0)
    >>> loss_consistency(mechanism, mechanism.worst_case(), max_samples=2000).consistent
    True
    """
    confidence = check_fraction("confidence", confidence)
    max_samples = check_count("max_samples", max_samples)
    seed = check_count("seed", seed, minimum=0)
    ways = directions(mechanism, pair)
    sides = [_DrawnLosses(way, seed, key) for key, way in enumerate(ways)]
    # On D' the loss is that of D' against D, which is -L.
    threshold = _thresholds(np.concatenate([sides[0].pilot(), -sides[1].pilot()]))
    alpha = (1 - confidence) / (2 * len(threshold))
    from_data = sides[0].intervals(threshold, max_samples, alpha)
    from_neighbour = sides[1].intervals(-threshold, max_samples, alpha)
    from_neighbour *= np.exp(threshold)[:, np.newaxis]
    low = np.maximum(from_data[:, 0], from_neighbour[:, 0])
    high = np.minimum(from_data[:, 1], from_neighbour[:, 1])
    apart = low > high * (1 + _ROUNDING)
    reasons = [reason for side in sides for reason in sorted(side.reasons)]
    if apart.any():
        worst = int(np.argmax(np.where(apart, low - high, -np.inf)))
        reasons.append(
            f"at t = {threshold[worst]:.4g} draws on the two sides put the same number "
            f"in [{from_data[worst, 0]:.5g}, {from_data[worst, 1]:.5g}] and in "
            f"[{from_neighbour[worst, 0]:.5g}, {from_neighbour[worst, 1]:.5g}]"
        )
    return LossConsistency(
        consistent=not reasons,
        reason="; ".join(reasons),
        threshold=threshold,
        from_data=from_data,
        from_neighbour=from_neighbour,
        samples=max_samples,
        confidence=confidence,
        seed=seed,
    )


class _DrawnLosses:
    """Draws on one dataset of the pair, and what is wrong with their losses."""

    def __init__(self, way: Direction, seed: int, key: int) -> None:
        self._way, self._seed, self._key = way, seed, key
        self.reasons: set[str] = set()

    def pilot(self) -> Array:
        """Return losses of a first look, the impossible ones as NaN."""
        return np.concatenate(list(self._losses(_PILOT, _PILOT_STREAM)))

    def intervals(self, threshold: Array, size: int, alpha: float) -> Array:
        """Return confidence intervals of E[min(1, e^(t - L))], shape (k, 2)."""
        found = [BettingInterval(alpha, horizon=size) for _ in threshold]
        for losses in self._losses(size, _MAIN_STREAM):
            for t, interval in zip(threshold, found, strict=True):
                gap = np.minimum(t - losses, 0.0)
                interval.update(np.exp(np.where(np.isnan(gap), -np.inf, gap)))
        return np.array([[interval.low, interval.high] for interval in found])

    def _losses(self, size: int, use: int) -> Iterator[Array]:
        way, limit, drawn, batch = self._way, _FIRST_BATCH, 0, 0
        reverse = Direction(way.mechanism, way.other, way.data)
        while drawn < size:
            rng = stream(self._seed, use, self._key, batch)
            count = min(limit, max(_FIRST_BATCH, drawn // 2), size - drawn)
            releases = way.draw(way.data, count, rng)
            losses = way.loss(releases)
            possible = losses > -np.inf  # false for NaN
            if not possible.all():
                self.reasons.add("a release is impossible on the dataset drawn on")
            if use == _PILOT_STREAM:
                opposite = -reverse.log_ratio(releases, way.data)
                if not np.allclose(losses, opposite, _ROUNDING, _ROUNDING, True):
                    self.reasons.add("exchanging the datasets does not flip the loss")
            yield np.where(possible, losses, np.nan)
            limit, drawn, batch = affordable(releases), drawn + count, batch + 1


def _thresholds(losses: Array) -> Array:
    """Return 0 and quantiles of the finite losses, at most 700 in size."""
    finite = losses[np.isfinite(losses)]
    if not len(finite):
        return np.zeros(1)
    quantiles = np.quantile(finite, _QUANTILES)
    return np.unique(np.clip([0.0, *quantiles], -_LARGEST, _LARGEST))
