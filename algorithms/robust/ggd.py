r"""Geodesic gradient descent on GLAD without noise, full batch and minibatch.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022, sections 2.1 and 2.2 (GGD and SGGD); GGD is from Maunu, Zhang, Lerman, *A
well-tempered landscape for non-convex robust subspace recovery*, JMLR 2019.

1. V_0: the PCA subspace of the spherised rows, or a uniformly random one.
2. V_(k+1) = Exp_V(-eta_k grad F(V_k)), or the polar retraction of V_k - eta_k grad F;
   for SGGD the gradient is that of B rows drawn with replacement.
3. Output V_T, settled (`dpaudit.algorithms.robust.grassmannian.settle`).

**Nothing is promised**, and `claim` is None. `GeodesicDescent.claiming` and
`MinibatchGeodesicDescent.claiming` put a false claim on it for audits to refute: GGD
from a random start forgets the start, and SGGD does not hide a row that its batches
show.

With rows that lie exactly on a subspace and outliers that are not many (stability:
S_rho of (3.1), S^PCA_rho of section 3.2), descent with halving steps finds the subspace
exactly in the limit; where all rows lie on it, the first gradient is zero and V_0 is
the answer.

**Theorem 11**, section 4.5: if S_rho(X_-i) > 0 and S^PCA_rho(X_-i) > 0 for all i, "then
GGD with PCA initialization is differentially private", because it finds the inliers'
subspace with or without row i. No epsilon or delta is given; any will do to refute it
(`NoiselessGGD`). It is false, three times over. The output is a function of the data,
so on any pair on which it differs it tells D from D' with certainty: delta = 1. After T
steps it does differ, also where the condition holds for both datasets and for each of
them without any one row: what they share is the limit, and V_T is as far from it as T
steps leave it (`NoiselessGGD.worst_case` is such a pair). And the condition is one on
the data, while the promise is one for all neighbours: nothing in the algorithm sees to
it that it holds.
"""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.robust.descent import NoisyDescent
from dpaudit.algorithms.robust.grassmannian import Geodesic
from dpaudit.algorithms.robust.initialisation import PrincipalStart, PublicStart, Start
from dpaudit.algorithms.robust.pairs import odd_pair, shown_pair
from dpaudit.algorithms.robust.parts import Geometry
from dpaudit.algorithms.shared.bases import Rng
from dpaudit.algorithms.shared.batches import Batches, WithReplacement
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.arrays import Array
from dpaudit.claims import ApproxDP, Claim, PureDP
from dpaudit.neighbours import Pair
from dpaudit.validation import check_count

__all__ = ["GeodesicDescent", "MinibatchGeodesicDescent", "NoiselessGGD"]


@dataclass(frozen=True, kw_only=True)
class GeodesicDescent(NoisyDescent):
    """GGD, not private; the release is a basis of V_T, shape (D, r).

    Parameters
    ----------
    n_components, claim, geometry, start, iterations, step_sizes
        See `NoisyDescent`; by default no claim, geodesics, and V_0 from PCA.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[1.0, 0.0], [-2.0, 0.0], [3.0, 0.0], [0.0, 1.0]])
    >>> descent = GeodesicDescent(n_components=1, iterations=2000)
    >>> np.abs(descent.release(rows, rng=np.random.default_rng(0))).round(6)
    array([[1.],
           [0.]])
    """

    claim: Claim | None = None
    geometry: Geometry = field(default_factory=Geodesic)
    start: Start = field(default_factory=PrincipalStart)

    @hands_on(n_components=1)
    @classmethod
    def claiming(cls, epsilon: float, **fields: Any) -> Any:
        """Return GGD from a random start, with the false claim of epsilon-DP."""
        return cls(claim=PureDP(epsilon), start=PublicStart(), **fields)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair whose one row turns V_T; the default D is r + 1."""
        return shown_pair(self.n_components, dimension, count=9)


@dataclass(frozen=True, kw_only=True)
class MinibatchGeodesicDescent(NoisyDescent):
    """SGGD, not private; the release is a basis of V_T, shape (D, r).

    Parameters
    ----------
    n_components, claim, start, iterations, step_sizes
        See `NoisyDescent`; by default no claim, and V_0 from PCA.
    """

    batches: Batches
    claim: Claim | None = None
    start: Start = field(default_factory=PrincipalStart)

    @hands_on(n_components=1)
    @classmethod
    def claiming(cls, epsilon: float, **fields: Any) -> Any:
        """Return SGGD on batches of 4, with the false claim of epsilon-DP."""
        start, batches = PublicStart(), WithReplacement(batch_size=4)
        return cls(claim=PureDP(epsilon), start=start, batches=batches, **fields)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair whose one row turns V_T; the default D is r + 1."""
        return odd_pair(self.n_components, dimension, count=49)


@dataclass(frozen=True, kw_only=True)
class NoiselessGGD(GeodesicDescent):
    """GGD with PCA initialisation, and the claim of Theorem 11.

    It draws no randomness, so `dpaudit.testing.run_conformance`, which asks for some,
    does not pass it.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = NoiselessGGD.as_published(1.0, 1e-5)
    >>> pair = mechanism.worst_case()
    >>> bases = [
    ...     mechanism.release(rows, rng=np.random.default_rng(0))
    ...     for rows in (pair.data, pair.neighbour)
    ... ]
    >>> bool(np.abs(bases[0] - bases[1]).max() > 1e-3)
    True
    """

    claim: Claim = field()

    @hands_on("iterations", "step_sizes", n_components=1)
    @classmethod
    def as_published(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return GGD with a claim of (epsilon, delta), which Theorem 11 leaves open."""
        return cls(claim=ApproxDP(epsilon, delta), **fields)

    def draw(self, data: ArrayLike, size: int, *, rng: Rng) -> Array:
        """Return `size` copies of the one release there is, shape (size, D, r)."""
        one = super().draw(data, 1, rng=rng)
        return np.repeat(one, check_count("size", size, minimum=0), axis=0)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair that meets the condition of Theorem 11; default D = r + 1.

        Nine inliers at each of the first r basis vectors, and one outlier
        (`dpaudit.algorithms.robust.pairs.shown_pair`).
        """
        return shown_pair(self.n_components, dimension, count=9 * self.n_components)
