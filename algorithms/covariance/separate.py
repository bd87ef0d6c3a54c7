r"""Noise for the eigenvectors of the second moment A, and anew for what is along them.

Source: SeparateCov of Dong, Liang, Yi, *Differentially private covariance revisited*,
NeurIPS 2022, whose error in the Frobenius norm follows the trace of A. Written anew
from the paper's abstract and what its authors' code does (hkustDB/PrivateCovariance),
as the paper was not to be had: it is not to the letter what they print. With mu_1^2 =
mu_2^2 = mu^2/2, and rows of length at most 1:

1. N = A + noise of the Gaussian orthogonal ensemble of scale Delta/mu_1 (normal, of
   that deviation on the diagonal and 1/sqrt 2 of it off it). P are the eigenvectors of
   N, as columns.
2. y = diag(P^T A P) + normal noise of deviation Delta/mu_2.
3. Output P diag(y) P^T.

Deviation: SeparateCov takes the eigenvalues of A, in order, for diag(P^T A P). Their
sensitivity is the same. For a given P no diagonal is nearer to A, since
\|A - P D P^T\|_F = \|P^T A P - D\|_F.

**Sensitivity.** Step 1: \|A - A'\|_F <= Delta, 1 under ADD_REMOVE and sqrt 2 under
REPLACE_ONE. Step 2, whatever P is: a row adds the vector of (p_j^T x)^2, which has no
negative entry and adds up to at most 1, so that its length is at most 1.
REPLACE_ONE: the difference of two such vectors is no longer than sqrt 2, as
|u - v|^2 <= |u|^2 + |v|^2 where u, v >= 0. So Delta is the same. Both are attained on
one pair: many rows at e_1, which P then has for a column, and another one there, or in
the place of one at e_2.

**Privacy.** Step 1 is mu_1-GDP (`dpaudit.algorithms.covariance.entrywise`). Given N, P
is fixed, and step 2 is a Gaussian shift by at most Delta: mu_2-GDP. Adaptive
composition (Dong, Roth, Su, JRSS B 2022, Corollary 3.3) gives mu; the output is a
function of N and y. (The paper claims rho-zCDP of rho = mu^2/2, of the same noise.)

**Utility**: docs/choosing.md#second-moments.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.covariance.second_moment import (
    ReleasesMoment,
    second_moment_sensitivity,
)
from dpaudit.algorithms.online.noise import pack, unpack
from dpaudit.algorithms.shared.bases import (
    GaussianSteps,
    Rng,
    Run,
    Values,
    answered,
    drawn_in_parts,
)
from dpaudit.algorithms.shared.constructors import GaussianCalibrated
from dpaudit.algorithms.subspace.perturbation import repeated_direction_pair
from dpaudit.arrays import Array
from dpaudit.neighbours import Pair
from dpaudit.validation import Positive, check_length

__all__ = ["SeparateCovariance"]

_NUMBERS = 2**21  # of matrices that are held at a time


@dataclass(frozen=True, kw_only=True)
class SeparateCovariance(GaussianSteps, ReleasesMoment, GaussianCalibrated):
    """Noisy second moments along noisy eigenvectors; releases have shape (d, d).

    A transcript has what both steps release: ``first``, N in coordinates that keep its
    length, and ``values``, y.

    Parameters
    ----------
    mu : float
        Of Gaussian DP, for both steps together.
    """

    mu: Positive

    def draw_from(self, moment: Array, size: int, *, rng: Rng) -> Array:
        shape, width = moment.shape, _NUMBERS // len(moment) ** 2
        return drawn_in_parts(
            size, shape, width, lambda part: self._seen(moment, part, rng)[2]
        )

    @property
    def step_scales(self) -> dict[str, float]:
        return dict.fromkeys(("first", "values"), self.scale)

    @property
    def scale(self) -> float:
        """The deviation of the noise of each step: sqrt 2 Delta/mu."""
        bound = second_moment_sensitivity("frobenius", self.relation, self.row_norm)
        return sqrt(2) * bound.value / self.mu

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair on which nearly all of mu is lost (default d = 2).

        So many rows at e_1 that N has it for an eigenvector, and then one more; under
        REPLACE_ONE in the place of a row at another basis vector.
        """
        d = check_length(dimension, 2)
        copies = int(20 * self.scale * sqrt(d) / self.row_norm**2) + 1
        return repeated_direction_pair(d, copies, self.relation, self.row_norm)

    def _run(self, data: ArrayLike, size: int, source: Rng | Values) -> Run:
        return self._seen(self.statistic(data), size, source)

    def _seen(self, moment: Array, size: int, source: Rng | Values) -> Run:
        """Return what `_run` does, of the second moment of the data."""
        known, whole, scale = pack(moment, sqrt(2)), slice(None), self.scale
        first = np.broadcast_to(known, (size, len(known)))
        noisy = answered(source, "first", whole, first, scale)
        vectors = np.linalg.eigh(unpack(noisy, sqrt(2)))[1]
        values = np.einsum("nij,nij->nj", vectors, moment @ vectors)
        seen = answered(source, "values", whole, values, scale)
        releases = (vectors * seen[:, np.newaxis]) @ vectors.swapaxes(-2, -1)
        releases = (releases + releases.swapaxes(-2, -1)) / 2  # to the bit
        means = {"first": first, "values": values}
        return {"first": noisy, "values": seen}, means, releases
