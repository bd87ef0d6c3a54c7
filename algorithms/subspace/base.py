"""What the mechanisms share that release a basis of a principal subspace.

The release V has shape (d, k) and orthonormal columns: the same space as the paper's,
the k-dimensional subspaces of R^d, up to the choice of a basis. Rows are clipped to a
public norm, each on its own, so that clipping maps neighbours to neighbours.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Self

from numpy.typing import ArrayLike

from dpaudit.algorithms.shared.bases import Batched, ReleasesBasis, Rng, check_rank
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.arrays import Array
from dpaudit.checked import Checked, Count, Neighbouring, Positive
from dpaudit.claims import Claim, PureDP
from dpaudit.gram import gram
from dpaudit.neighbours import Relation
from dpaudit.validation import check_count

__all__ = ["PureSubspaceMechanism", "SubspaceMechanism"]


@dataclass(frozen=True, kw_only=True)
class SubspaceMechanism(ReleasesBasis, Batched[ArrayLike], Checked):
    """A private basis of k principal components, for rows clipped to a public norm.

    Parameters
    ----------
    n_components : int
        k, at least 1 and at most the length of a row.
    claim : Claim
        What is promised under `relation`.
    relation : Relation
    row_norm : float
        Public bound on the l2 norm of a row; longer rows are clipped onto it.
    """

    n_components: Count
    claim: Claim
    relation: Neighbouring = Relation.ADD_REMOVE
    row_norm: Positive = 1.0

    @abstractmethod
    def draw_from(self, moment: Array, size: int, *, rng: Rng) -> Array:
        """Return `size` releases for the second-moment matrix A, (size, d, k)."""

    def moment(self, data: ArrayLike) -> Array:
        """Return A for the clipped rows of `data`, shape (d, d).

        Raises
        ------
        InputError
            If `data` is not a finite matrix, or its rows are shorter than k.
        """
        moment = gram(data, row_norm=self.row_norm).moment
        check_rank(self.n_components, len(moment))
        return moment

    def draw(self, data: ArrayLike, size: int, *, rng: Rng) -> Array:
        """Return `size` independent releases, shape (size, d, k)."""
        moment = self.moment(data)
        size = check_count("size", size, minimum=0)
        return self.draw_from(moment, size, rng=rng)


@dataclass(frozen=True, kw_only=True)
class PureSubspaceMechanism(SubspaceMechanism, ABC):
    """A basis by the exponential mechanism: pure epsilon-DP.

    Parameters
    ----------
    epsilon : float
        The pure epsilon that is promised, > 0.
    """

    n_components: int = 1
    epsilon: Positive = 1.0
    claim: Claim = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "claim", PureDP(self.epsilon))

    @hands_on("relation", "row_norm", "n_components")
    @classmethod
    def calibrated(cls, epsilon: float, **fields: Any) -> Self:
        """Return the mechanism with the largest coefficients that are epsilon-DP."""
        return cls(epsilon=epsilon, **fields)

    @property
    def coefficient(self) -> float:
        """The largest c for which density exp(c tr V^T A V) is epsilon-DP."""
        share = 1.0 if self.relation is Relation.ADD_REMOVE else 0.5
        return share * self.epsilon / self.row_norm**2

    @property
    def _unit_coefficient(self) -> float:
        """The coefficient for rows of length 1."""
        return self.coefficient * self.row_norm**2
