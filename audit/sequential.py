"""The anytime-valid test: one betting game per null, played in rounds.

Before a round each null picks, from the past alone, the event and the half-plane that
promise the fastest growth of evidence against it. After the round its wealth is
multiplied by the e-value of that bet. Given the past each e-value has mean at most 1
under the null, so the wealth is a non-negative supermartingale, and by Ville's
inequality it ever reaches 1/alpha with probability at most alpha: whatever was tried,
however often one looked, whenever one stopped.
"""

import numpy as np
from numpy.typing import NDArray

from dpaudit.audit.events import Events
from dpaudit.audit.evidence import HalfPlaneBet, growth, project
from dpaudit.audit.families import NullFamily

__all__ = ["SequentialTest"]

Array = NDArray[np.float64]

_SHRINKAGE = 1.0


class SequentialTest:
    """Wealth against every null of a family.

    Parameters
    ----------
    family : NullFamily
    alpha : float
        Error probability, of each lower bound and of the verdict.
    """

    def __init__(self, family: NullFamily, alpha: float) -> None:
        self.family = family
        self.log_wealth = np.zeros(len(family))
        self.rejected = np.zeros(len(family), dtype=bool)
        self._log_threshold = -np.log(alpha)
        self._playing = np.empty(0, dtype=np.intp)
        self._event = np.empty(0, dtype=np.intp)
        self._flipped = np.empty(0, dtype=bool)
        self._bet: HalfPlaneBet | None = None

    @property
    def lower_bound(self) -> float:
        """The largest parameter up to which every null is rejected, or 0."""
        count = self._leading
        return float(self.family.parameter[count - 1]) if count else 0.0

    @property
    def refutes_claim(self) -> bool:
        """Whether every null up to the claim itself is rejected."""
        claimed = self.family.claimed
        return claimed is not None and self._leading > claimed

    @property
    def _leading(self) -> int:
        return (
            len(self.rejected) if self.rejected.all() else int(self.rejected.argmin())
        )

    @property
    def frontier(self) -> int:
        """The smallest null that is not rejected, at most the last."""
        return min(self._leading, len(self.family) - 1)

    def place_bets(self, events: Events, size: int) -> NDArray[np.intp]:
        """Choose an event and a half-plane for every open null, for one round.

        Parameters
        ----------
        events : Events
            Candidates, estimated from earlier rounds only.
        size : int
            How many releases the round will draw on either side.

        Returns
        -------
        ndarray of int
            The events that somebody bets on.
        """
        self._playing, self._event, half_plane, self._flipped = best_bets(
            self.family, np.flatnonzero(~self.rejected), events, size
        )
        p, q = events.p[self._event], events.q[self._event]
        ratio = np.exp(self.family.log_ratio[self._playing, half_plane])
        delta = self.family.delta[self._playing, half_plane]
        p1, q1, sure = shrink(
            np.where(self._flipped, q, p),
            np.where(self._flipped, p, q),
            ratio,
            delta,
            events.scored[self._event],
        )
        self._playing, self._event = self._playing[sure], self._event[sure]
        self._flipped = self._flipped[sure]
        self._bet = HalfPlaneBet.place(
            p1[sure], q1[sure], ratio[sure], delta[sure], size, size
        )
        return np.unique(self._event)

    def update(
        self, hits_p: NDArray[np.intp], hits_q: NDArray[np.intp], size: int
    ) -> None:
        """Settle the bets.

        Parameters
        ----------
        hits_p, hits_q : ndarray of int, shape (T,)
            How many of the round's `size` releases on D and on D' hit each event.
        size : int
        """
        if self._bet is None:
            raise RuntimeError("place_bets must precede update")
        p, q = hits_p[self._event], hits_q[self._event]
        self.log_wealth[self._playing] += self._bet.log_e(
            np.where(self._flipped, q, p), np.where(self._flipped, p, q), size, size
        )
        self.rejected |= self.log_wealth >= self._log_threshold
        self._bet = None


def shrink(
    p1: Array, q1: Array, ratio: Array, delta: Array, scored: NDArray[np.intp]
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Pull estimated alternatives towards the null by what chance may have added.

    An event chosen because it looked best looks better than it is. With z^2/2 the
    evidence that the past itself holds, the distance from the null is multiplied by
    the James-Stein factor 1 - c/z^2; where that is not positive there is no bet. Any
    choice is valid; this one keeps the wealth from bleeding near the truth.

    Parameters
    ----------
    p1, q1 : ndarray
        Alternatives beyond the half-planes p - ratio q <= delta.
    ratio, delta : ndarray
    scored : ndarray
        From how many releases on either side each was estimated.

    Returns
    -------
    p1, q1 : ndarray
    sure : ndarray of bool
        Whether to bet at all.
    """
    p0, q0 = project(p1, q1, ratio, delta, scored, scored, halvings=16)
    evidence = growth(p1, q1, p0, q0, scored, scored)
    with np.errstate(divide="ignore"):
        factor = 1 - _SHRINKAGE / (2 * evidence)
    p1, q1 = p0 + factor * (p1 - p0), q0 + factor * (q1 - q0)
    return p1, q1, (factor > 0) & (p1 - ratio * q1 > delta)


def best_bets(
    family: NullFamily, nulls: NDArray[np.intp], events: Events, size: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
    """Return, for each null that some event seems to violate, the best bet.

    Returns
    -------
    null, event, half_plane : ndarray of int
        One entry per null that can be bet against.
    flipped : ndarray of bool
        Whether the event is likelier on D' than on D.
    """
    flipped = events.q > events.p
    p1, q1 = np.maximum(events.p, events.q), np.minimum(events.p, events.q)
    ratio = np.exp(family.log_ratio[nulls])[:, np.newaxis, :]
    delta = family.delta[nulls][:, np.newaxis, :]
    violated = p1[:, np.newaxis] - ratio * q1[:, np.newaxis] > delta
    null, event, half_plane = np.nonzero(violated)
    p0, q0 = project(
        p1[event],
        q1[event],
        ratio[null, 0, half_plane],
        delta[null, 0, half_plane],
        size,
        size,
        halvings=8,
    )
    speed = growth(p1[event], q1[event], p0, q0, size, size)
    # The fastest entry of each null: sort by null, then by speed, and take the last.
    order = np.lexsort((speed, null))
    last = order[np.flatnonzero(np.diff(null[order], append=-1))]
    return nulls[null[last]], event[last], half_plane[last], flipped[event[last]]
