r"""The Laplace mechanism, and what all mechanisms with Laplace noise share.

Source: Dwork, McSherry, Nissim, Smith, *Calibrating noise to sensitivity in private
data analysis*, TCC 2006.

1. x = the sum of the rows, each clipped to [0, sensitivity].
2. Output x + Lap(sensitivity/epsilon).

True epsilon. Independent Lap(b) noise on answers a or a' has the loss
(|y - a'|_1 - |y - a|_1)/b, which is at most |a - a'|_1/b by the triangle inequality,
with equality exactly where every y_j lies beyond a_j, seen from a'_j: an event of
probability at least 2^-k under a. So the pure epsilon of a pair is |a - a'|_1/b, and
the true epsilon is the l1 sensitivity over b. Under ADD_REMOVE a row moves the sum by
at most the sensitivity, and the claim is exact. `Laplace.under_noised` multiplies the
noise by a factor < 1 and keeps the claim: its true epsilon is epsilon/factor.

Privacy profile of one shift, r = |a - a'|/b: the loss exceeds e < r on the far side of
a point, and with P(Y <= a + t) of the Laplace law,

.. math:: \delta(e) = 1 - e^{(e - r)/2}, \quad 0 \le e \le r.
"""

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.textbook.base import (
    Array,
    PureTextbookMechanism,
    laplace_noise,
)
from dpaudit.algorithms.textbook.sums import BoundedSum
from dpaudit.checked import Positive
from dpaudit.claims import NO_LOSS, Claim, Profile
from dpaudit.errors import UnsupportedError
from dpaudit.neighbours import Pair
from dpaudit.validation import check_positive

__all__ = ["Laplace", "LaplaceNoise"]

_KNOTS = 2001
_MAX_SHIFT = 700.0  # what a Profile can hold


class LaplaceNoise(PureTextbookMechanism, ABC):
    """Independent Laplace noise on every answer."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """The scale b of the noise."""

    def _sample(self, answers: Array, size: int, *, rng: np.random.Generator) -> Array:
        releases = laplace_noise((size, *answers.shape), self.scale, rng=rng)
        releases += answers
        return releases

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss, shape (size,)."""
        near, far = (
            np.abs(releases - self.answers(rows)).reshape(len(releases), -1).sum(axis=1)
            for rows in (data, other)
        )
        return np.asarray((far - near) / self.scale)

    def exact_claim(self, pair: Pair) -> Claim:
        """Return the privacy profile of a pair on which one answer differs.

        Tabulated at 2001 points and their convex hull: exact there, and between them
        too large by less than (r/2000)^2, r being the true epsilon of the pair.

        Raises
        ------
        UnsupportedError
            If several answers differ, or if they differ by more than 700 scales.
        """
        shifts = np.abs(self.answers(pair.data) - self.answers(pair.neighbour))
        differing = np.count_nonzero(shifts)
        if differing == 0:
            return NO_LOSS
        shift = float(shifts.sum() / self.scale)
        if differing > 1 or shift > _MAX_SHIFT:
            raise UnsupportedError(
                "the exact profile is known for one answer that differs by at most "
                f"{_MAX_SHIFT:g} scales, got {differing} answers and {shift:g} scales"
            )
        knots = np.linspace(0.0, shift, _KNOTS)
        return Profile(knots, -np.expm1((knots - shift) / 2))


@dataclass(frozen=True)
class Laplace(BoundedSum, LaplaceNoise):
    """The sum of scalar rows, with Laplace noise.

    Releases are scalars, shape (). Rows are scalars, shape (n,) or (n, 1).

    Parameters
    ----------
    epsilon : float
        The claim, > 0.
    sensitivity : float
        Rows are clipped to [0, sensitivity].
    noise_factor : float
        What the scale that the claim needs is multiplied by; 1 is correct.

    Examples
    --------
    >>> Laplace(0.5).scale, Laplace.under_noised(0.5, factor=0.25).true_epsilon
    (2.0, 2.0)
    """

    epsilon: float = 1.0
    _: KW_ONLY
    noise_factor: Positive = 1.0

    @classmethod
    def under_noised(
        cls, epsilon: float = 1.0, *, factor: float = 0.5, sensitivity: float = 1.0
    ) -> "Laplace":
        """Return a mechanism at `factor` times the noise that its claim needs."""
        return cls(
            epsilon,
            sensitivity=sensitivity,
            noise_factor=check_positive("factor", factor),
        )

    @property
    def scale(self) -> float:
        """The scale of the noise."""
        return self.noise_factor * self.sensitivity / self.epsilon

    @property
    def true_epsilon(self) -> float:
        """epsilon/noise_factor: the sensitivity over the scale."""
        return self.epsilon / self.noise_factor
