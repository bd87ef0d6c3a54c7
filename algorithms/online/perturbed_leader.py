r"""Every prefix with noise of its own, and the leader of all rows so far.

**StepwiseSums**, the noisy prefixes that Algorithm 3 makes. Row i is in the prefixes i,
i + 1, ..., m, so in m of them at most. If it is replaced, each moves by at most sqrt 2
R^2, and their noise is independent: the sequence is mu-GDP with mu = sqrt(2 m) R^2/s,
attained by row 1.

**FollowPerturbedLeader.** Source: Dwork, Talwar, Thakurta, Zhang, *Analyze Gauss*, STOC
2014, Algorithm 3.

1. V_1: the first k basis vectors.
2. For t = 1, ..., m: earn ||V_t^T x_t||^2, receive x_t; V_(t+1) spans the k leading
   eigenvectors of A_t + E_t, the E_t independent.

**What is claimed, and what is true.** As published, E_t is the noise of Algorithm 1, an
i.i.d. N(0, s^2) triangle with s = sqrt(2 log(1.25/delta))/epsilon, and the claim is
about *one* step: V_(t+1), by itself, is (epsilon, delta)-DP. Of a step it is true for
epsilon < 1 if a row is replaced by zero (sensitivity 1), and false in part if it is
replaced by any row (sqrt 2; see `dpaudit.algorithms.covariance.gaussian`). Of the
sequence it is false, as the paper says itself ('overall it is not'): row 1 is in all m
steps, which by GDP is mu = sqrt(2 m)/s for them together, tightly for the noisy sums
under REPLACE_ONE. `as_published` holds the sequence to the claim of a step, which
audits refute; `step_claim` and `composed_claim` say what is true of either.

`calibrated` is what section 4.2 mentions and then improves upon ('make each step
O(epsilon/sqrt m, delta') private'): GOE noise of deviation sqrt m/mu above the
diagonal, (epsilon, delta)-DP as a whole. A prefix of a tree has sqrt(t' h)/mu in its
place, with t' <= h the ones of t and h = floor(log2 m) + 1: less from m = 37 on.
"""

from dataclasses import dataclass
from math import sqrt

from dpaudit.algorithms.online.noise import PublishedStepNoise
from dpaudit.algorithms.online.noise_memory import NoiseMemory, StackMemory
from dpaudit.algorithms.online.streams import PublishedSums
from dpaudit.algorithms.online.subspace_sequence import PublishedSequence
from dpaudit.arrays import Array
from dpaudit.claims import GaussianDP

__all__ = ["FollowPerturbedLeader"]


@dataclass(frozen=True, kw_only=True)
class StepwiseSums(PublishedSums):
    """Prefixes with independent noise; releases have shape (n, d, d).

    `as_published` are the sums of Algorithm 3, with the claim of one step for them all.
    """

    published = PublishedStepNoise

    def uses(self, length: int) -> int:
        """Return m."""
        return length

    def memory(self, width: int) -> NoiseMemory:
        return StackMemory(0, width)  # every prefix has noise of its own

    def mixed(self, sums: Array) -> Array:
        return sums

    def unmixed(self, prefixes: Array) -> Array:
        return prefixes

    def step_claim(self, n_rows: int | None = None) -> GaussianDP:
        """Return what is true of any one prefix, by itself, under REPLACE_ONE."""
        return GaussianDP(sqrt(2) * self.row_norm**2 / self.deviation(n_rows))

    def composed_claim(self, n_rows: int | None = None) -> GaussianDP:
        """Return what is true of all prefixes together: sqrt m times the mu of one."""
        length = n_rows if self.length is None else self.length
        mu = self.step_claim(n_rows).parameters["mu"]
        return GaussianDP(mu * sqrt(length or 1))


@dataclass(frozen=True, kw_only=True)
class FollowPerturbedLeader(PublishedSequence):
    """Follow the leader with new noise in each step; releases have shape (n, d, k).

    `as_published` is Algorithm 3, held as a whole to what it claims of one step.

    Examples
    --------
    >>> import numpy as np
    >>> published = FollowPerturbedLeader.as_published(0.5, 1e-5, length=100)
    >>> published.step_claim()
    GaussianDP(mu=0.14595...)
    >>> published.composed_claim()
    GaussianDP(mu=1.4595...)
    >>> bases = published.release(np.eye(4), rng=np.random.default_rng(0))
    >>> bases.shape
    (4, 4, 1)
    """

    sums: StepwiseSums

    kind = StepwiseSums

    def step_claim(self, n_rows: int | None = None) -> GaussianDP:
        """Return what is true of one step by itself, under REPLACE_ONE."""
        return self.sums.step_claim(n_rows)

    def composed_claim(self, n_rows: int | None = None) -> GaussianDP:
        """Return what is true of all m steps together."""
        return self.sums.composed_claim(n_rows)
