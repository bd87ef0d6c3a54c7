r"""Privacy claims as curves.

A claim bounds, for every event S and every pair of neighbours with output laws P and
Q, the true-positive rate P(S) in terms of the false-positive rate Q(S), both ways
round. Each claim answers three equivalent questions:

- ``delta_at(epsilon)``: the largest hockey-stick divergence
  sup_S P(S) - e^epsilon Q(S);
- ``epsilon_at(delta)``: the smallest epsilon at which that divergence is <= delta;
- ``tpr(fpr)``: the largest true-positive rate that any attack may have.

They describe one convex set of points (P(S), Q(S)), symmetric under exchanging P and Q
and under complementing S. Writing R for :math:`e^\epsilon`, the set is the
intersection over all R > 0 of the half-planes p - R q <= delta(log R), where symmetry
extends the profile to negative epsilon:

.. math:: \delta(-\epsilon) = 1 - e^{-\epsilon} (1 - \delta(\epsilon)).

Proof: complement the event and exchange P and Q in the half-plane of epsilon.

References
----------
Dong, Roth, Su, *Gaussian differential privacy*, JRSS B 2022, sections 2.1-2.4.
Balle, Barthe, Gaboardi, *Privacy profiles and amplification by subsampling*, 2020.
"""

from dpaudit.claims.polygons import ApproxDP, Claim, PureDP, polygon_delta
from dpaudit.claims.profile import NO_LOSS, Profile
from dpaudit.claims.smooth import GaussianDP, ZeroConcentratedDP

CLAIMS: tuple[type[Claim], ...] = (
    PureDP,
    ApproxDP,
    GaussianDP,
    ZeroConcentratedDP,
    Profile,
)
"""The claims that a text may name: their parameters are numbers, which they check."""

__all__ = [
    "CLAIMS",
    "NO_LOSS",
    "ApproxDP",
    "Claim",
    "GaussianDP",
    "Profile",
    "PureDP",
    "ZeroConcentratedDP",
    "polygon_delta",
]
