r"""SymmetricNoise (SN): the second-moment matrix plus one Wishart matrix.

Source: Imtiaz, Sarwate, *Symmetric matrix perturbation for differentially-private
principal component analysis*, ICASSP 2016, Algorithm 1; the same idea in Jiang, Xie,
Zhang, *Wishart mechanism for differentially private principal components analysis*,
AAAI 2016.

1. Z has d + 1 columns i.i.d. N(0, I/(2 epsilon)); E = Z Z^T ~ W_d(I/(2 epsilon), d+1).
2. Output A + E.

Claim (Theorem 1 there): pure epsilon-DP, because the density of E is proportional to
exp(-epsilon tr E), so that densities differ by exp(epsilon tr(A' - A)).

**The claim is false**: that density lives on the positive definite cone alone, and the
cones at A and A' differ. Write D' for D with a row x more, and c = epsilon ||x||^2.
Then A + E is impossible on D' unless E >= x x^T in the Loewner order. Shifting the
integral over {E >= x x^T} by x x^T gives

.. math:: P(E \succeq x x^T) = e^{-\epsilon \, \mathrm{tr}(x x^T)} = e^{-c}

in every dimension, so a release on D is impossible on D' with probability 1 - e^-c:
0.632 at epsilon = 1 and ||x|| = 1. On the common support the ratio is e^-c exactly.
Hence P = e^-c Q + (1 - e^-c) (something that Q cannot produce), the hockey-stick
divergence of P from Q is 1 - e^-c at **every** epsilon' >= 0, and the reverse one is
(1 - e^(epsilon'-c))_+ <= 1 - e^-c: the exact privacy under ADD_REMOVE is
delta = 1 - e^-epsilon for every epsilon' >= 0, no better and no worse. The same holds
with any A' - A >= 0 in place of x x^T, with c = epsilon tr(A' - A).

Under REPLACE_ONE (y for x), the escape probability is at most that for x = 0, and the
ratio on the common support at most e^epsilon, so delta(epsilon) is again exactly
1 - e^-epsilon, attained when a zero row is replaced by a unit row.

The flaw was noted by Sheffet 2019 (footnote 4) and Amin et al. 2019 (section 1.2).
`dpaudit.algorithms.covariance.symmetrised_wishart` repairs it at the same scale.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.algorithms.covariance.noise import wishart
from dpaudit.algorithms.covariance.second_moment import SecondMomentMechanism
from dpaudit.algorithms.shared.bases import Rng
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.arrays import Array
from dpaudit.checked import Positive
from dpaudit.claims import Claim, Profile, PureDP
from dpaudit.errors import UnsupportedError
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_positive

__all__ = ["SymmetricNoise"]


@dataclass(frozen=True, kw_only=True)
class SymmetricNoise(SecondMomentMechanism):
    """A + E with E ~ W_d(scale I, d + 1): published as pure DP, which is false.

    Parameters
    ----------
    scale : float
        Variance of each entry of Z.

    Examples
    --------
    >>> mechanism = SymmetricNoise.as_published(epsilon=1.0)
    >>> exact = mechanism.exact_claim(mechanism.worst_case(dimension=3))
    >>> round(float(exact.delta(1.0)), 4)
    0.6321
    """

    scale: Positive

    sensitivity_norm = "nuclear"

    @hands_on("relation", "row_norm")
    @classmethod
    def as_published(cls, epsilon: float, **fields: Any) -> Self:
        """Return Algorithm 1 to the letter, with the paper's claim."""
        epsilon = check_positive("epsilon", epsilon)
        made = cls(scale=1.0, claim=PureDP(epsilon), **fields)
        return replace(made, scale=made.row_norm**2 / (2 * epsilon))

    def noise(self, size: int, dimension: int, *, rng: Rng) -> Array:
        degrees = dimension + 1
        return wishart(size, dimension, degrees=degrees, scale=self.scale, rng=rng)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair at which 1 - e^-epsilon is attained (default d = 2).

        ADD_REMOVE: as everywhere. REPLACE_ONE: a unit row for a zero row.
        """
        if self.relation is Relation.ADD_REMOVE:
            return super().worst_case(dimension)
        pair = replace(self, relation=Relation.ADD_REMOVE).worst_case(dimension)
        return Pair(pair.data, pair.neighbour[1:], self.relation)

    def in_support(self, releases: Array, data: ArrayLike) -> NDArray[np.bool_]:
        """Say whether release - A is positive semi-definite, shape (size,)."""
        return np.linalg.eigvalsh(releases - self.statistic(data))[:, 0] >= 0

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss: constant on the common support, infinite off it."""
        trace = np.trace(self._difference(other, data)) / (2 * self.scale)
        possible = self.in_support(releases, data)
        possible_on_other = self.in_support(releases, other)
        loss = np.full(len(releases), -trace)
        loss[possible & ~possible_on_other] = np.inf
        loss[~possible & possible_on_other] = -np.inf
        loss[~possible & ~possible_on_other] = np.nan
        return loss

    def exact_claim(self, pair: Pair) -> Claim:
        """Return the exact profile of a pair whose A' - A is semi-definite.

        Raises
        ------
        UnsupportedError
            If A' - A has eigenvalues of both signs (a row replaced by another): the
            escape probability then has no closed form here.
        """
        difference = semi_definite_trace(self._difference(pair.data, pair.neighbour))
        escape = -np.expm1(-difference / (2 * self.scale))
        return Profile(epsilons=(0.0,), deltas=(float(escape),))


def semi_definite_trace(difference: Array) -> float:
    """Return |tr S| of a semi-definite S, the sum of its absolute eigenvalues."""
    values = np.linalg.eigvalsh(difference)
    rounding = 1e-12 * np.abs(values).max()
    if values[0] < -rounding and values[-1] > rounding:
        raise UnsupportedError(
            "exact privacy needs A' - A to be semi-definite, but its eigenvalues "
            f"reach from {values[0]:g} to {values[-1]:g}"
        )
    return float(abs(values.sum()))
