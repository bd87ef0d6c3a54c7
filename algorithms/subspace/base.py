"""What the mechanisms share that release a basis of a principal subspace.

The release V has shape (d, k) and orthonormal columns: the same space as the paper's,
the k-dimensional subspaces of R^d, up to the choice of a basis. Rows are clipped to a
public norm, each on its own, so that clipping maps neighbours to neighbours.

**Frames** are matrices with orthonormal columns, in stacks of shape (size, d, k). The
uniform law on frames is the only one that no rotation of R^d changes (Haar's). The
frame Q of a normal matrix G = QR has it, if R has a positive diagonal: Q is then
unique, hence moves with G under rotations, which do not change the law of G (Mezzadri,
*How to generate random matrices from the classical compact groups*, Notices of the AMS
54, 2007). In the same way a frame Q together with normal columns gives a uniform frame
of the orthogonal complement, because only the components of the normal columns in that
complement are left.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.covariance.second_moment import OnClippedRows
from dpaudit.algorithms.shared.bases import ReleasesBasis, Rng, check_rank
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.arrays import Array
from dpaudit.claims import Claim, PureDP
from dpaudit.gram import gram
from dpaudit.neighbours import Relation
from dpaudit.validation import Count, Positive, check_count

__all__ = ["PureSubspaceMechanism", "SubspaceMechanism"]


def uniform_frames(size: int, d: int, k: int, *, rng: Rng) -> Array:
    """Return independent uniform frames, shape (size, d, k); 0 <= k <= d."""
    return orthonormalise(rng.standard_normal((size, d, k)))


def uniform_complements(frames: Array, *, rng: Rng) -> Array:
    """Return for each frame a uniform one of its orthogonal complement.

    Shape (size, d, k) -> (size, d, d - k); k may be 0, or d.
    """
    size, d, k = frames.shape
    columns = rng.standard_normal((size, d, d - k))
    return orthonormalise(np.concatenate([frames, columns], axis=-1))[..., k:]


def deflated_frames(frames: Array, directions: Array) -> Array:
    """Return frames of what is left of the spans when one direction is taken away.

    Frames of shape (size, d, q) become (size, d, q - 1); directions are unit vectors in
    their coordinates, (size, q). Returned are columns two to q of F H, where H is the
    Householder reflection that exchanges the first basis vector and minus or plus the
    direction, whichever is further from it: no digits are lost.
    """
    normals = directions.copy()
    normals[:, 0] += np.where(normals[:, 0] < 0, -1.0, 1.0)
    along = (frames @ normals[..., np.newaxis]) / (1 + np.abs(directions[:, :1, None]))
    return np.asarray(frames[..., 1:] - along * normals[:, np.newaxis, 1:])


def orthonormalise(matrices: Array) -> Array:
    """Return the Q of QR decompositions whose R has a positive diagonal.

    Matrices have the shape (..., d, k) and the rank k <= d.
    """
    q, r = np.linalg.qr(matrices)
    diagonal = np.diagonal(r, axis1=-2, axis2=-1)[..., np.newaxis, :]
    return np.asarray(q * np.where(diagonal < 0, -1.0, 1.0))


@dataclass(frozen=True, kw_only=True)
class SubspaceMechanism(ReleasesBasis, OnClippedRows):
    """A private basis of k principal components, for rows clipped to a public norm."""

    n_components: Count

    @abstractmethod
    def draw_from(self, moment: Array, size: int, *, rng: Rng) -> Array:
        """Return `size` releases for the second-moment matrix A, (size, d, k)."""

    def moment(self, data: ArrayLike) -> Array:
        """Return A for the clipped rows, which are at least k long, shape (d, d)."""
        moment = gram(data, row_norm=self.row_norm).moment
        check_rank(self.n_components, len(moment))
        return moment

    def draw(self, data: ArrayLike, size: int, *, rng: Rng) -> Array:
        moment = self.moment(data)
        size = check_count("size", size, minimum=0)
        return self.draw_from(moment, size, rng=rng)


@dataclass(frozen=True, kw_only=True)
class PureSubspaceMechanism(SubspaceMechanism, ABC):
    """A basis by the exponential mechanism, which is pure `epsilon`-DP."""

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
