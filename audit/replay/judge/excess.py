r"""A test of a claim on transcripts whose exact losses are known.

With P and Q the laws of transcripts on D and D', and L = log(p/q), the claim says that

.. math:: \delta_{P \| Q}(\epsilon) = E_P[(1 - e^{\epsilon - L})_+] \le \delta(\epsilon)

for every epsilon, and so with D and D' exchanged (infinite losses give 1). Let
X_1, X_2, ... be these variables of independent transcripts. For a stake g >= 0 the
product of (1 + g X_i)/(1 + g delta(epsilon)) is a non-negative supermartingale if the
claim is true, and so is an average over ways round, epsilons and stakes that are fixed
before. By Ville's inequality it ever reaches 1/alpha with probability at most alpha:
**a true claim is refuted with probability at most alpha**, whenever one stops.

Where delta is small, few losses above epsilon suffice: with g of the order of 1/delta,
one that is larger by log 2 multiplies the evidence by about 1/(4 delta). (Intervals by
the same bets are in `dpaudit.audit.layers.means`.)
"""

import math
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.claims import Claim
from dpaudit.neighbours import Pair
from dpaudit.streams import stream

__all__ = ["refuted_by_losses"]

_EPSILONS = (0.0, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
_STAKES = np.logspace(-1, 9, 16)
_BATCH = 4


def refuted_by_losses(
    followed: Any, pair: Pair, claim: Claim, *, alpha: float, most: int, seed: int
) -> tuple[bool, int]:
    """Say whether transcripts refute a claim, and how many were drawn on either side.

    Parameters
    ----------
    followed : HasTranscriptLoss
    pair : Pair
    claim : Claim
    alpha : float
        In (0, 1).
    most : int
        Transcripts on either side.
    seed : int

    Raises
    ------
    UnsupportedError
        If a loss is not known.
    """
    named = claim.parameters.get("epsilon")
    epsilons = np.array(sorted({*_EPSILONS, *([named] if named is not None else [])}))
    # What rounding may have added to a loss, or taken off a delta, is allowed for.
    delta = 1.0001 * np.asarray(claim.delta(epsilons))[:, np.newaxis] + 1e-12
    ways = (pair.data, pair.neighbour), (pair.neighbour, pair.data)
    wealth = np.zeros((len(ways), len(epsilons), len(_STAKES)))
    samples = 0
    while samples < most:
        size = min(_BATCH, most - samples)
        for way, (data, other) in enumerate(ways):
            rng = stream(seed, way, samples)
            seen = followed.transcript(data, size, rng=rng)
            for found in followed.transcript_loss(seen, data, other):
                excess = _excess(float(found), epsilons)[:, np.newaxis]
                wealth[way] += np.log1p(_STAKES * excess) - np.log1p(_STAKES * delta)
        samples += size
        if np.logaddexp.reduce(wealth, axis=None) >= math.log(wealth.size / alpha):
            return True, samples
    return False, samples


def _excess(loss: float, epsilons: Array) -> Array:
    """Return (1 - e^(epsilon - loss))_+."""
    with np.errstate(over="ignore"):
        return np.maximum(-np.expm1(epsilons - loss), 0.0)
