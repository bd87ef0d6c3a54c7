r"""Geodesic gradient descent on GLAD, full batch and minibatch: the baselines.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022, sections 2.1 and 2.2 (GGD and SGGD); GGD is from Maunu, Zhang, Lerman, *A
well-tempered landscape for non-convex robust subspace recovery*, JMLR 2019.

1. V_0: the PCA subspace of the spherised rows, or a uniformly random one.
2. V_(k+1) = Exp_V(-eta_k grad F(V_k)), or the polar retraction of V_k - eta_k grad F;
   for SGGD the gradient is that of B rows drawn with replacement.
3. Output V_T, settled (`retraction.settle`).

**Nothing is promised**, and `claim` is None. `GeodesicDescent.claiming` and
`MinibatchGeodesicDescent.claiming` put a false claim on it for audits to refute: GGD
from a random start forgets the start, and SGGD does not hide a row that its batches
show.

With rows that lie exactly on a subspace and outliers that are not many (stability,
`dpaudit.algorithms.robust.stability`), descent with halving steps finds the subspace
exactly in the limit; where all rows lie on it, the first gradient is zero and V_0 is
the answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

import numpy as np

from dpaudit.algorithms.robust.descent import Descent
from dpaudit.algorithms.robust.geodesic import geodesic_step, to_tangent
from dpaudit.algorithms.robust.ggd_pairs import odd_pair, shown_pair
from dpaudit.algorithms.robust.glad import Array, term_sum
from dpaudit.algorithms.robust.initialisation import PublicStart, Start
from dpaudit.algorithms.robust.noisy_descent import Summing
from dpaudit.algorithms.robust.random_batches import (
    check_batch,
    drawn_with_replacement,
)
from dpaudit.algorithms.robust.retraction import settle
from dpaudit.claims import Claim, PureDP
from dpaudit.errors import InputError
from dpaudit.mechanism import Mechanism
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_count, check_name

__all__ = [
    "GeodesicDescent",
    "MinibatchGeodesicDescent",
    "PrincipalStart",
]

StepKind = Literal["geodesic", "polar"]


@dataclass(frozen=True)
class PrincipalStart(Start):
    """The PCA subspace of the spherised rows, which is not private."""

    @property
    def claim(self) -> Claim | None:
        """Raise: nothing is promised, and no budget would do."""
        raise InputError("start must be private, but PCA of the rows is not")

    def draw(
        self, rows: Array, n_components: int, size: int, *, rng: np.random.Generator
    ) -> dict[str, Array]:
        left = np.linalg.svd(rows.T, full_matrices=False).U
        if left.shape[1] < n_components:
            # Fewer rows than components: any complement will do.
            left = np.linalg.svd(rows.T, full_matrices=True).U
        basis = settle(left[:, :n_components])
        return {"start": np.repeat(basis[np.newaxis], size, axis=0)}

    def bases(
        self, values: Mapping[str, Array], dimension: int, n_components: int
    ) -> Array:
        return values["start"]


@dataclass(frozen=True, kw_only=True)
class GeodesicDescent(Descent):
    """GGD, not private; the release is a basis of V_T, shape (D, r).

    Parameters
    ----------
    step : {"geodesic", "polar"}
        How V moves.
    n_components, claim, start, iterations, step_sizes
        See `Descent`; by default no claim, and V_0 from PCA.

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
    start: Start = field(default_factory=PrincipalStart)
    step: StepKind = "geodesic"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_name("step", self.step, ("geodesic", "polar"))

    @classmethod
    def claiming(cls, epsilon: float, *, n_components: int = 1) -> Mechanism:
        """Return GGD from a random start, with the false claim of epsilon-DP."""
        made = cls(
            n_components=n_components, claim=PureDP(epsilon), start=PublicStart()
        )
        return cast(Mechanism, made)

    @property
    def relation(self) -> Relation:
        """REPLACE_ONE."""
        return Relation.REPLACE_ONE

    def noise_scale(self, count: int) -> float:
        return 0.0

    def denominator(self, count: int) -> float:
        return float(count)

    def summing(self, rows: Array, rng: np.random.Generator) -> Summing:
        return lambda bases: term_sum(rows, bases)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair whose one row turns V_T; the default D is r + 1."""
        return shown_pair(self.n_components, dimension, count=9)

    def _moved(self, bases: Array, step: Array) -> Array:
        if self.step == "geodesic":
            return geodesic_step(bases, to_tangent(bases, step))
        return super()._moved(bases, step)


@dataclass(frozen=True, kw_only=True)
class MinibatchGeodesicDescent(Descent):
    """SGGD, not private; the release is a basis of V_T, shape (D, r).

    Parameters
    ----------
    batch_size : int
        B, at most the number of rows; drawn with replacement.
    n_components, claim, start, iterations, step_sizes
        See `Descent`; by default no claim, and V_0 from PCA.
    """

    batch_size: int
    claim: Claim | None = None
    start: Start = field(default_factory=PrincipalStart)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(
            self, "batch_size", check_count("batch_size", self.batch_size)
        )

    @classmethod
    def claiming(cls, epsilon: float, *, n_components: int = 1) -> Mechanism:
        """Return SGGD on batches of 4, with the false claim of epsilon-DP."""
        made = cls(
            n_components=n_components,
            claim=PureDP(epsilon),
            start=PublicStart(),
            batch_size=4,
        )
        return cast(Mechanism, made)

    @property
    def relation(self) -> Relation:
        """REPLACE_ONE."""
        return Relation.REPLACE_ONE

    def check_rows(self, count: int) -> None:
        check_batch(self.batch_size, count)

    def noise_scale(self, count: int) -> float:
        return 0.0

    def denominator(self, count: int) -> float:
        return float(self.batch_size)

    def summing(self, rows: Array, rng: np.random.Generator) -> Summing:
        batch = drawn_with_replacement(rows, self.batch_size, rng)
        return lambda bases: term_sum(batch(len(bases)), bases)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair whose one row turns V_T; the default D is r + 1."""
        return odd_pair(self.n_components, dimension, count=49)
