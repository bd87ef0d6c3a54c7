r"""Robust PCA without privacy: geodesic descent on GLAD, and reweighted least squares.

**Nothing is promised** by any of it, and `claim` is None. The named constructors
`claiming` put a false claim on it for audits to refute: GGD from a random start forgets
the start, and SGGD does not hide a row that its batches show.

**GGD and SGGD.** Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex
outlier-robust PCA*, MSML 2022, sections 2.1 and 2.2 (GGD and SGGD); GGD is from Maunu,
Zhang, Lerman, *A well-tempered landscape for non-convex robust subspace recovery*, JMLR
2019.

1. V_0: the PCA subspace of the spherised rows, or a uniformly random one.
2. V_(k+1) = Exp_V(-eta_k grad F(V_k)), or the polar retraction of V_k - eta_k grad F;
   for SGGD the gradient is that of B rows drawn with replacement.
3. Output V_T, settled (`dpaudit.algorithms.robust.geometries.settle`).

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

**Iteratively reweighted least squares.** An objective sum_i r_i, r_i the distance of
row i from what is sought, is minimised by turns: weights w_i = 1/max(r_i, floor) from
the last solution, and then the solution of the least squares problem sum_i w_i r_i^2.
Each turn lowers the objective in which r is replaced by r^2/(2 floor) + floor/2 below
the floor (a majorisation).

**FMS**, the fast median subspace, for GLAD. Source: Lerman, Maunu, *Fast, robust and
non-convex subspace recovery*, Information and Inference 7, 2018, Algorithm 1, with
p = 1 and spherised rows.

1. V_0: the PCA subspace, or a random one.
2. w_i = 1/max(||(I - V V^T) x_i||, floor); V: the top-r eigenvectors of
   sum_i w_i x_i x_i^T, which minimise sum_i w_i ||(I - V V^T) x_i||^2.
3. Repeat until V moves no more.

GLAD is not convex, so where it ends may depend on where it starts. The least squares
problem is solved by a singular value decomposition of the rows times sqrt(w_i), so rows
may be longer than they are many.

**IRLS-REAPER.** Source: Lerman, McCoy, Tropp, Zhang, *Robust computation of linear
models by convex relaxation*, FoCM 2015, Algorithms 4.1 and 4.2.

1. w_i = 1/max(||(I - P) x_i||, floor).
2. P: the minimiser over H of sum_i w_i ||(I - P) x_i||^2 = tr((I - P) C (I - P)),
   C = sum_i w_i x_i x_i^T. With C = U diag(l) U^T, l descending, it is
   U diag(p) U^T with

   .. math:: p_i = \max(1 - \theta/l_i, 0), \quad {\textstyle\sum_i} p_i = r

   (water-filling: the KKT conditions are l_i (1 - p_i) = theta where p_i > 0, and
   l_i <= theta where p_i = 0). If the k largest are not 0, theta = (k - r)/sum of
   their 1/l_i; the k for which that lies between l_(k + 1) and l_k is the one. If only
   r of the l_i are not 0, theta = 0 and P is their projector.
3. Repeat until the objective falls no more; output the top-r eigenvectors of P.

REAPER is convex, so the start hardly matters: it is the projector of the start's
subspace.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import ApproxDP, Claim, Pair, PureDP, Relation
from dpaudit.algorithms.robust.descent import NoisyDescent
from dpaudit.algorithms.robust.geometries import Geodesic, settle
from dpaudit.algorithms.robust.initialisation import PrincipalStart, PublicStart
from dpaudit.algorithms.robust.objectives import spherise
from dpaudit.algorithms.robust.pairs import odd_pair, shown_pair
from dpaudit.algorithms.robust.parts import Geometry, Start, check_start
from dpaudit.algorithms.shared.bases import Batched, ReleasesBasis, Rng
from dpaudit.algorithms.shared.batches import Batches, WithReplacement
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.arrays import Array
from dpaudit.subspace import top_components
from dpaudit.validation import Checked, Count, Positive, check_count

__all__ = [
    "FastMedianSubspace",
    "GeodesicDescent",
    "IterativeReaper",
    "MinibatchGeodesicDescent",
    "NoiselessGGD",
]

_STILL_ANGLE = 1e-13  # sine of the largest angle between turns
_STILL_OBJECTIVE = 1e-14  # its relative fall in a turn
_ZERO = 1e-15  # relative to the largest eigenvalue


class _Claiming:
    """What is not private, and may be held to a false claim."""

    claimed_with: ClassVar[Mapping[str, Any]] = {}
    """Fields that it has then."""

    @hands_on(n_components=1)
    @classmethod
    def claiming(cls, epsilon: float, **fields: Any) -> Any:
        """Return it from a random start, with the false claim of epsilon-DP."""
        fields = {"start": PublicStart(), **cls.claimed_with, **fields}
        return cast(Any, cls)(claim=PureDP(epsilon), **fields)


@dataclass(frozen=True, kw_only=True)
class GeodesicDescent(_Claiming, NoisyDescent):
    """GGD, not private; the release is a basis of V_T, shape (D, r).

    By default it has no claim, geodesics, and V_0 from PCA.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [-2.0, 0.0], [3.0, 0.0], [0.0, 1.0]])
    >>> descent = GeodesicDescent(n_components=1, iterations=2000)
    >>> np.abs(descent.release(rows, rng=np.random.default_rng(0))).round(6)
    array([[1.],
           [0.]])
    """

    claim: Claim | None = None
    geometry: Geometry = field(default_factory=Geodesic)
    start: Start = field(default_factory=PrincipalStart)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair whose one row turns V_T; the default D is r + 1."""
        return shown_pair(self.n_components, dimension, count=9)


@dataclass(frozen=True, kw_only=True)
class MinibatchGeodesicDescent(_Claiming, NoisyDescent):
    """SGGD, not private; the release is a basis of V_T, shape (D, r).

    By default it has no claim, and V_0 from PCA.
    """

    batches: Batches
    claim: Claim | None = None
    start: Start = field(default_factory=PrincipalStart)

    claimed_with: ClassVar[Mapping[str, Any]] = {
        "batches": WithReplacement(batch_size=4)
    }

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair whose one row turns V_T; the default D is r + 1."""
        return odd_pair(self.n_components, dimension, count=49)


@dataclass(frozen=True, kw_only=True)
class NoiselessGGD(GeodesicDescent):
    """GGD with PCA initialisation, and the claim of Theorem 11.

    It draws no randomness, so `dpaudit.testing.run_conformance`, which asks for some,
    does not pass it.
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


@dataclass(frozen=True, kw_only=True)
class Reweighted(_Claiming, ReleasesBasis, Batched[ArrayLike], Checked):
    """Reweighted least squares; the release is a basis of shape (D, r).

    Parameters
    ----------
    n_components : int
        r; less than the length of a row.
    claim : Claim, optional
        What is promised under REPLACE_ONE; None, for nothing is.
    start : Start
        The subspace from which the first weights are. Default: that of PCA.
    iterations : int
        How many turns there are at most.
    floor : float
        The least distance that counts as one, > 0.
    """

    n_components: Count
    claim: Claim | None = None
    start: Start = field(default_factory=PrincipalStart)
    iterations: Count = 200
    floor: Positive = 1e-10

    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    claimed_with: ClassVar[Mapping[str, Any]] = {"iterations": 2}

    def __post_init__(self) -> None:
        super().__post_init__()
        check_start(self.start, self.relation)

    def rows(self, data: ArrayLike) -> Array:
        """Return spherised rows, or raise if there is no answer for them."""
        return spherise(data, min_rows=1, n_components=self.n_components)

    def draw(self, data: ArrayLike, size: int, *, rng: Rng) -> Array:
        """Return `size` releases, which differ by their starts; no row is zero."""
        rows = self.rows(data)
        size = check_count("size", size, minimum=0)
        r = self.n_components
        values = self.start.draw(rows, r, size, rng=rng)
        starts = self.start.points(values, (size, rows.shape[1], r))
        releases = np.empty((size, rows.shape[1], r))
        for place in range(size):
            # Trials from a public start are all the same without one.
            if place and np.array_equal(starts[place], starts[place - 1]):
                releases[place] = releases[place - 1]
            else:
                releases[place] = settle(self._solved(rows, starts[place]))
        return releases

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair whose one row turns the subspace; the default D is r + 1."""
        return shown_pair(self.n_components, dimension, count=2 * self.n_components)

    def weights(self, residuals: Array) -> Array:
        """Return w for residuals of shape (N, D)."""
        lengths = np.linalg.norm(residuals, axis=1)
        return np.asarray(1 / np.maximum(lengths, self.floor))

    @abstractmethod
    def _solved(self, rows: Array, start: Array) -> Array:
        """Return a basis of the answer, shape (D, r), from a first one."""


@dataclass(frozen=True, kw_only=True)
class FastMedianSubspace(Reweighted):
    """FMS, not private; the release is a basis of shape (D, r)."""

    def _solved(self, rows: Array, start: Array) -> Array:
        basis = start
        for _ in range(self.iterations):
            weights = self.weights(rows - (rows @ basis) @ basis.T)
            before, basis = basis, _principal(rows, weights, basis)
            moved = basis - before @ (before.T @ basis)
            if np.linalg.norm(moved, 2) < _STILL_ANGLE:
                break
        return basis


@dataclass(frozen=True, kw_only=True)
class IterativeReaper(Reweighted):
    """IRLS-REAPER, not private; the release is a basis of shape (D, r)."""

    def minimiser(self, rows: Array, start: Array) -> Array:
        """Return the minimiser P of REAPER, shape (D, D), from a first basis."""
        matrix = start @ start.T
        least = np.inf
        for _ in range(self.iterations):
            weights = self.weights(rows - rows @ matrix)
            moment = (rows.T * (weights / weights.max())) @ rows
            values, vectors = np.linalg.eigh((moment + moment.T) / 2)
            shares = least_squares_eigenvalues(values, self.n_components)
            matrix = (vectors * shares) @ vectors.T
            value = float(np.linalg.norm(rows - rows @ matrix, axis=1).sum())
            if value >= least * (1 - _STILL_OBJECTIVE):
                break
            least = value
        return np.asarray((matrix + matrix.T) / 2)

    def _solved(self, rows: Array, start: Array) -> Array:
        return top_components(self.minimiser(rows, start), self.n_components)


def least_squares_eigenvalues(values: Array, n_components: int) -> Array:
    """Return p that minimises sum l_i (1 - p_i)^2 over 0 <= p <= 1, sum p = r.

    The l are >= 0, up to rounding, in any order. If less than r of them are positive,
    the first places, by size, are 1.
    """
    order = np.argsort(-values, kind="stable")
    ordered = values[order]
    positive = int(np.sum(ordered > _ZERO * max(ordered[0], 0.0)))
    shares = np.zeros(len(values))
    if positive <= n_components:
        shares[order[:n_components]] = 1.0
        return shares
    ordered = ordered[:positive]
    numbers = np.arange(n_components + 1, positive + 1)
    inverse = np.cumsum(1 / ordered)[n_components:]
    levels = (numbers - n_components) / inverse
    # The last k whose level is below its own l.
    fits = np.flatnonzero(levels < ordered[n_components:])
    count = n_components if len(fits) == 0 else int(numbers[fits[-1]])
    level = 0.0 if len(fits) == 0 else levels[fits[-1]]
    shares[order[:count]] = 1 - level / ordered[:count]
    return shares


def _principal(rows: Array, weights: Array, basis: Array) -> Array:
    """Return the top-r right singular vectors of rows times sqrt(w)."""
    scaled = rows * np.sqrt(weights / weights.max())[:, np.newaxis]
    r = basis.shape[1]
    # The singular values are of very different sizes near the end: no Gram matrix.
    top = np.linalg.svd(scaled, full_matrices=False).Vh[:r].T
    if top.shape[1] < r:
        # Fewer rows than components: the old basis fills up.
        top = np.linalg.qr(np.hstack([top, basis])).Q[:, :r]
    return np.asarray(top)
