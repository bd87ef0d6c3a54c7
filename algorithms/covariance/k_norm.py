r"""KNormCovariance: the second-moment matrix plus noise shaped like what a row can do.

1. Z of density proportional to exp(-g(Z)/s), g a norm of symmetric matrices.
2. Output A + Z.

Under ADD_REMOVE g is the nuclear norm, g(Z) = tr Z_+ + tr Z_-; under REPLACE_ONE it is
the larger part, g(Z) = max(tr Z_+, tr Z_-). With s = 1/epsilon the release is **pure
epsilon-DP** under either.

Proof. g is a norm: tr Z_+ is the largest tr(P Z) over 0 <= P <= I, so that it is
subadditive, and tr Z_- = tr (-Z)_+. So with D = A - A' the loss at any Z is
(g(Z + D) - g(Z))/s <= g(D)/s, and g(D) <= 1 for neighbours whose rows have norm at most
1: g(x x^T) = ||x||^2, and g(x x^T - y y^T) <= max(||x||^2, ||y||^2)
(`dpaudit.algorithms.covariance.second_moment`).

No smaller epsilon is true of a pair: at Z = t D, t > 0, the loss is g(D)/s, and it is
continuous in Z, so that it is as near as one likes with positive probability.

**Whose it is.** The mechanism with the nuclear norm is that of d'Orsi and Novikov (ALT
2026), who prove that its error is optimal in every Schatten norm from the second on if
rows are many, and project the release on a ball of that norm if they are few. (That is
processing after the release; it is not done here.) The other norm, which a replaced row
needs half the noise for, and the exact draws are ours.

**Why these norms.** It is the K-norm mechanism of Hardt and Talwar (STOC 2010), K being
the unit ball of g: the convex hull of all that a row can do to A. Of ADD_REMOVE, the
hull of the x x^T and -x x^T, because a matrix of nuclear norm 1 is a mixture of the
projections on its eigenvectors, with signs. Of REPLACE_ONE, the hull of the x x^T -
y y^T: if g(D) <= 1 then D_+ and D_- are mixtures of x x^T and of y y^T with ||x||,
||y|| <= 1, and D is the mixture of the differences. No norm whose ball is smaller would
do, and a larger one means more noise.

**How it is drawn.** Exactly, in every dimension: by rejection up to d = 7, by coupling
from the past beyond (`dpaudit.algorithms.covariance.nuclear_law`, with the proofs). The
loss has nothing to do with how: there is no delta. How long a draw takes says nothing
of the data either, since noise is drawn without them.

That takes longer the larger d is, and under REPLACE_ONE, where between d and 2 d draws
are rejected for each that is kept, much longer. Where it would be more than about ten
seconds a draw on one core of these days, even in batches of a hundred (one by itself
takes several times as long), a draw is refused: beyond d = LARGEST[relation]. There
`dpaudit.algorithms.covariance.symmetrised_wishart` is the next best pure mechanism.

The gauge of the noise, g(Z)/s, has a gamma law of shape d (d + 1)/2 whatever g is, and
is independent of Z/g(Z), which is distributed by the cone measure of K: {g <= r} has
r^(d (d + 1)/2) times the volume of K.

References
----------
- Hardt, Talwar, *On the geometry of differential privacy*, STOC 2010.
- d'Orsi, Novikov, *On purely private covariance estimation*, ALT 2026
  (arXiv:2510.26717).
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from dpaudit.algorithms.covariance.nuclear_law import balanced, nuclear
from dpaudit.algorithms.covariance.second_moment import (
    SecondMomentMechanism,
    second_moment_sensitivity,
)
from dpaudit.algorithms.shared.bases import Rng
from dpaudit.algorithms.shared.constructors import PureCalibrated
from dpaudit.arrays import Array
from dpaudit.checked import Positive
from dpaudit.claims import NO_LOSS, Claim, PureDP
from dpaudit.errors import InputError
from dpaudit.mechanism import MatrixNorm, Sensitivity
from dpaudit.neighbours import Pair, Relation

__all__ = ["LARGEST", "KNormCovariance"]

LARGEST = {Relation.ADD_REMOVE: 100, Relation.REPLACE_ONE: 30}
"""The largest d at which a draw takes about ten seconds or less, in batches."""

_NORMS: dict[Relation, MatrixNorm] = {
    Relation.ADD_REMOVE: "nuclear",
    Relation.REPLACE_ONE: "larger-part",
}


@dataclass(frozen=True, kw_only=True)
class KNormCovariance(SecondMomentMechanism, PureCalibrated):
    """A + Z, the density of Z proportional to exp(-g(Z)/scale).

    Parameters
    ----------
    scale : float
        The s above.
    claim, relation, row_norm
        See `SecondMomentMechanism`; the relation says which norm g is.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = KNormCovariance.calibrated(epsilon=2.0)
    >>> mechanism.scale
    0.5
    >>> mechanism.draw(np.eye(3), 100, rng=np.random.default_rng(0)).shape
    (100, 3, 3)
    """

    scale: Positive

    sensitivity_norm: ClassVar[MatrixNorm] = "nuclear"

    @classmethod
    def _at(cls, epsilon: float, claim: Claim, **fields: Any) -> Self:
        made = cls(scale=1.0, claim=claim, **fields)
        return replace(made, scale=made.sensitivity.value / epsilon)

    @property
    def sensitivity(self) -> Sensitivity:
        """How far A moves, in the norm that the noise is shaped by."""
        norm = _NORMS[self.relation]
        return second_moment_sensitivity(norm, self.relation, self.row_norm)

    def noise(self, size: int, dimension: int, *, rng: Rng) -> Array:
        """Return `size` noise matrices, shape (size, d, d).

        Raises
        ------
        InputError
            Where a draw would take more than ten seconds.
        """
        largest = LARGEST[self.relation]
        if dimension > largest:
            raise InputError(
                f"data must have at most {largest} columns under {self.relation.value} "
                f"for a draw of k-norm noise to take ten seconds or less, got "
                f"{dimension}; the next best pure mechanism is symmetrised-wishart"
            )
        add_remove = self.relation is Relation.ADD_REMOVE
        noise = (nuclear if add_remove else balanced)(size, dimension, rng=rng)
        noise *= self.scale
        return noise

    def log_density(self, noise: Array) -> Array:
        """Return the log-density of Z up to a constant, shape (size, d, d) -> (size,).

        The constant is the same for all Z.
        """
        return -self.sensitivity.measure(noise) / self.scale

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss, shape (size,)."""
        near, far = (releases - self.statistic(rows) for rows in (data, other))
        return self.log_density(near) - self.log_density(far)

    def exact_claim(self, pair: Pair) -> Claim:
        """Return the pure epsilon of a pair, the supremum of its loss."""
        difference = self._difference(pair.data, pair.neighbour)
        largest = float(self.sensitivity.measure(difference)) / self.scale
        return PureDP(largest) if largest > 0 else NO_LOSS
