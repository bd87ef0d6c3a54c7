r"""Where descent starts: a private principal subspace, and what it costs.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022, sections 3.1 and 4.1: V_0 is the PCA subspace, of a private PCA where the descent
is private. There that is the Wishart mechanism of Jiang, Xie, Zhang (AAAI 2016), and
its cost is not counted; here every start names its cost, and a calibrated descent gets
what is left.

All of them look at A = sum_i x_i x_i^T of rows on the unit sphere, whose sensitivities
are those of `dpaudit.algorithms.covariance.second_moment`.

- `GaussianStart`: A + E, E from the Gaussian orthogonal ensemble; mu-GDP. What is
  published is the upper triangle with its diagonal divided by sqrt 2: independent
  entries of one deviation s, and a Frobenius norm of S becomes ||S||_F/sqrt 2, so
  s = Delta/(sqrt 2 mu) with Delta = 1 (ADD_REMOVE) or sqrt 2 (REPLACE_ONE). This is
  `dpaudit.algorithms.covariance.entrywise` in other coordinates.
- `PowerStart`: L steps of the noisy power method, V <- qr(A V + G), with A V computed
  as X^T (X V): nothing of size D x D is ever held, so it serves where D is in the
  thousands. mu-GDP with s = sqrt(L) Delta/mu
  (`dpaudit.algorithms.subspace.power_method`, where the proof is).
- `WishartStart`: A + E1 - E2, pure epsilon-DP
  (`dpaudit.algorithms.covariance.symmetric_noise`).
- `PublishedStart`: Jiang's A/N + W_D(3/(2 N epsilon) I, D + 1) (the constant is
  recalled, not checked against a copy), times N. Promised as pure epsilon-DP, which is
  false for the reason given in `dpaudit.algorithms.covariance.symmetric_noise`:
  positive semi-definite noise does not reach everywhere. A descent inherits the flaw.
- `PublicStart`: a uniformly random subspace, which costs nothing.

- `PrincipalStart`: the PCA subspace itself, which is not private.

For descent on REAPER, which is convex, P_0 is public and costs nothing: `CentralStart`,
P_0 = (r/D) I, where the first term of a row x is x x^T, so that step 1 is a private
PCA; `RandomMatrixStart`, the paper's P_0 = A^T A, A_ij ~ N(1, 0.01), far outside H.

V_0 itself is the top-r subspace of what is published, in the basis that is nearest to
the first r columns of the identity: `settle`. It depends on the subspace alone, so two
runs can be compared entry by entry.
"""

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from dpaudit import Claim, GaussianDP, InputError, PureDP, Relation
from dpaudit.algorithms.covariance.second_moment import second_moment_sensitivity
from dpaudit.algorithms.covariance.symmetric_noise import (
    SymmetricNoise,
    SymmetrisedWishart,
)
from dpaudit.algorithms.robust.geometries import settle
from dpaudit.algorithms.robust.objectives import Reaper
from dpaudit.algorithms.robust.parts import Space, Start
from dpaudit.algorithms.shared.bases import Rng, Values
from dpaudit.algorithms.subspace.base import orthonormalise
from dpaudit.arrays import Array
from dpaudit.neighbours import Neighbouring
from dpaudit.subspace import top_components
from dpaudit.validation import Count, Positive

__all__ = [
    "CentralStart",
    "GaussianStart",
    "PowerStart",
    "PrincipalStart",
    "PublicStart",
    "PublishedStart",
    "RandomMatrixStart",
    "WishartStart",
]

_DEVIATION = 0.1  # of the entries of A in the paper's P_0
_DENSE_DIMENSION = 2000  # up to which D x D matrices, and their spectra, will do


@dataclass(frozen=True)
class PublicStart(Start):
    """A uniformly random subspace, which the data have no part in."""

    def draw(self, rows: Array, n_components: int, size: int, *, rng: Rng) -> Values:
        shape = size, rows.shape[1], n_components
        return {"start": settle(orthonormalise(rng.standard_normal(shape)))}


@dataclass(frozen=True)
class PrincipalStart(Start):
    """The PCA subspace of the spherised rows, which is not private."""

    @property
    def claim(self) -> Claim | None:
        """Raise: nothing is promised, and no budget would do."""
        raise InputError("start must be private, but PCA of the rows is not")

    def draw(self, rows: Array, n_components: int, size: int, *, rng: Rng) -> Values:
        few = len(rows) < n_components  # then any complement will do
        left = np.linalg.svd(rows.T, full_matrices=few).U
        basis = settle(left[:, :n_components])
        return {"start": np.repeat(basis[np.newaxis], size, axis=0)}


@dataclass(frozen=True)
class CentralStart(Start):
    """P_0 = (r/D) I, of which nothing is published."""

    space: ClassVar[Space] = "matrices"

    def draw(self, rows: Array, n_components: int, size: int, *, rng: Rng) -> Values:
        return {}

    def points(self, values: Values, shape: tuple[int, int, int]) -> Array:
        size, dimension, n_components = shape
        centre = np.eye(dimension) * (n_components / dimension)
        return np.repeat(centre[np.newaxis], size, axis=0)


@dataclass(frozen=True)
class RandomMatrixStart(Start):
    """P_0 = A^T A, A_ij ~ N(1, 0.01), independent of the data."""

    space: ClassVar[Space] = "matrices"

    def draw(self, rows: Array, n_components: int, size: int, *, rng: Rng) -> Values:
        shape = size, rows.shape[1], rows.shape[1]
        factors = 1 + _DEVIATION * rng.standard_normal(shape)
        return {"start": factors.swapaxes(1, 2) @ factors}


@dataclass(frozen=True)
class _NormalStart(Start):
    """Normal noise on what A decides, which is mu-GDP."""

    mu: Positive
    relation: Neighbouring = Relation.ADD_REMOVE

    @property
    def claim(self) -> Claim:
        return GaussianDP(self.mu)


@dataclass(frozen=True)
class GaussianStart(_NormalStart):
    """A + GOE noise, which is mu-GDP."""

    @property
    def scales(self) -> dict[str, float]:
        sensitivity = second_moment_sensitivity("frobenius", self.relation).value
        return {"start": sensitivity / (sqrt(2) * self.mu)}

    def means(self, values: Values, rows: Array) -> Values:
        flat = Reaper().flattened(rows.T @ rows)
        return {"start": np.broadcast_to(flat, values["start"].shape)}

    def draw(self, rows: Array, n_components: int, size: int, *, rng: Rng) -> Values:
        _check_dense(rows.shape[1])
        flat = Reaper().flattened(rows.T @ rows)
        noisy = rng.standard_normal((size, len(flat)))
        noisy *= self.scales["start"]
        noisy += flat
        return {"start": noisy}

    def points(self, values: Values, shape: tuple[int, int, int]) -> Array:
        _, dimension, n_components = shape
        above = np.triu_indices(dimension)
        matrices = np.zeros((len(values["start"]), dimension, dimension))
        matrices[:, *above] = values["start"]
        # The diagonal was divided by sqrt 2, and is counted twice here.
        matrices[:, range(dimension), range(dimension)] /= sqrt(2)
        return settle(top_components(matrices + matrices.swapaxes(1, 2), n_components))


@dataclass(frozen=True)
class PowerStart(_NormalStart):
    """A few steps of the noisy power method, in memory of order D r; mu-GDP."""

    iterations: Count = 4  # L; public

    @property
    def scales(self) -> dict[str, float]:
        # That of A, and so of A V for any orthonormal V.
        sensitivity = second_moment_sensitivity("frobenius", self.relation).value
        return {"start": sqrt(self.iterations) * sensitivity / self.mu}

    def means(self, values: Values, rows: Array) -> Values:
        steps = values["start"]
        before = np.concatenate([values["start_basis"][:, None], steps[:, :-1]], axis=1)
        before[:, 1:] = orthonormalise(before[:, 1:])
        return {"start": _applied(rows, before)}

    def draw(self, rows: Array, n_components: int, size: int, *, rng: Rng) -> Values:
        shape = size, rows.shape[1], n_components
        first = basis = orthonormalise(rng.standard_normal(shape))
        steps = np.empty((size, self.iterations, *shape[1:]))
        for step in range(self.iterations):
            noise = rng.standard_normal(shape) * self.scales["start"]
            steps[:, step] = _applied(rows, basis) + noise
            basis = orthonormalise(steps[:, step])
        return {"start_basis": first, "start": steps}

    def points(self, values: Values, shape: tuple[int, int, int]) -> Array:
        return settle(orthonormalise(values["start"][:, -1]))


@dataclass(frozen=True)
class WishartStart(Start):
    """A plus a difference of two Wishart matrices, which is pure epsilon-DP."""

    epsilon: Positive
    relation: Neighbouring = Relation.ADD_REMOVE

    @property
    def mechanism(self) -> SymmetrisedWishart | SymmetricNoise:
        """What perturbs A."""
        return SymmetrisedWishart.calibrated(self.epsilon, relation=self.relation)

    @property
    def claim(self) -> Claim:
        return PureDP(self.epsilon)

    def draw(self, rows: Array, n_components: int, size: int, *, rng: Rng) -> Values:
        _check_dense(rows.shape[1])
        return {"start": self.mechanism.draw_from(rows.T @ rows, size, rng=rng)}

    def points(self, values: Values, shape: tuple[int, int, int]) -> Array:
        return settle(top_components(values["start"], shape[-1]))

    def loss(self, values: Values, rows: Array, other: Array) -> Array:
        return self.mechanism.privacy_loss(values["start"], rows, other)


@dataclass(frozen=True)
class PublishedStart(WishartStart):
    """Jiang's Wishart mechanism, whose promise of epsilon-DP is false."""

    relation: Neighbouring = Relation.REPLACE_ONE

    @property
    def mechanism(self) -> SymmetrisedWishart | SymmetricNoise:
        return SymmetricNoise(
            scale=1.5 / self.epsilon, claim=PureDP(self.epsilon), relation=self.relation
        )


def _check_dense(dimension: int) -> None:
    if dimension > _DENSE_DIMENSION:
        raise InputError(
            f"start must be a PowerStart or a PublicStart for rows of length "
            f"{dimension}: the others hold {dimension} x {dimension} matrices"
        )


def _applied(rows: Array, bases: Array) -> Array:
    """Return A V for bases of shape (..., D, r)."""
    return np.asarray(rows.T @ (rows @ bases))
