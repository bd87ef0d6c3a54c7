r"""Hard laws for private PCA, and how large the error on them must be.

Source: Liu, Kong, Jain, Oh, *DP-PCA: statistically optimal and differentially private
PCA*, NeurIPS 2022, Theorems 5.3 and 5.4. The appendix with their proofs is not what is
followed here: the laws below are made for the rates that the theorems state, with the
constants that the proofs below give (the theorems name none).

A direction v of the first component is drawn, then n rows, and an estimate v' is made
of them that is (epsilon, delta)-DP for replaced rows. Bounded from below is e, the mean
of the sine s of the angle between v' and v, over v as well: so the worst v has no less.

`GaussianLaw`, for Theorem 5.3
------------------------------
v is uniform on the sphere of R^d, and rows are N(0, lambda_2 I + (lambda_1 - lambda_2)
v v^T). Then

.. math:: e \ge \frac{d - 1 - n\,\gamma}
          {n \sinh(\epsilon) \frac{2}{\pi} \sqrt I + d},
          \qquad I = \frac{(\lambda_1 - \lambda_2)^2}{\lambda_1 \lambda_2},

with gamma = 0 for delta = 0, and small otherwise. Proof (a score attack, as those of
Cai, Wang and Zhang, *Score attack: a lower bound technique for optimal differentially
private learning*, 2023, with a prior that has no edge). Write c for the cosine, P for
the projection across v, and let the score s_i be the derivative of log density of row i
by v, in the directions across it: s_i = sqrt(I) z y, where the row is sqrt(lambda_1) z
along v and sqrt(lambda_2) y across it, z and y normal. Let A_i = c s_i . v'.

*Together the A_i are large.* Let G(v) be the mean of v' v'^T over the rows. The mean of
their sum is sum_w w . (D_w G) v, over an orthonormal basis w across v. The field P G v
is tangent to the sphere, so its divergence, sum_w w . (D_w G) v + tr G - d v . G v,
has the mean 0. As tr G = 1, the mean of sum_i A_i is d E[c^2] - 1 = d - 1 - d E[s^2],
which is at least d - 1 - d e, since s <= 1.

*Each is small.* Let A'_i be the same with v' from rows of which the i-th was replaced
by another of the law. There s_i is independent of v', so E[A'_i] = 0 and E|A'_i| =
(2/pi) sqrt(I) E[s |c|] <= (2/pi) sqrt(I) e. Privacy bounds P(A_i > x) by e^epsilon
P(A'_i > x) + delta, and P(A'_i < -x) by e^epsilon P(A_i < -x) + delta. Integrated over
x from 0 to T, E[A_i] <= (e^epsilon - e^-epsilon) E|A'_i|/2 + gamma, with

    gamma = (1 + e^-epsilon) (delta T + E[(|s_i|/2 - T)_+]),

because |A_i| and |A'_i| are at most |s_i|/2. As (X - T)_+ <= X^q (q - 1)^(q - 1)/(q^q
T^(q - 1)), the best T leaves delta T q/(q - 1) in the bracket, for any q > 1. QED

*Nobody* finds v from few rows, private or not. The sum of the A_i is S . c v', where S,
the sum of the s_i, has the length sqrt(I) chi_n chi_(d-1), two independent chi laws. So

    d - 1 - d e <= 2 T e + E[(|S|/2 - T)_+]

for any T, which bounds e as well: by about sqrt((d - 1)/(n I)). The floor is the larger
bound.

`HeavyLaw`, for Theorem 5.4
---------------------------
u is uniform on the sphere of R^m, m = d - 1. With probability 1 - p the row is sqrt(d)
Sigma_0^(1/2) a, a uniform on the sphere and Sigma_0 = lambda_2 I + (lambda_1 -
lambda_2) e_1 e_1^T; with probability p it is sqrt(h/2) (e_1 + (0, u)). In the plane of
the two vectors the second-moment matrix is (1 - p) Sigma_0 + (p h/2) (1 1; 1 1), so v
is at the angle t = arctan(p h/((1 - p) (lambda_1 - lambda_2)))/2 from e_1, and
elsewhere all eigenvalues are (1 - p) lambda_2. With h = lambda_1 sqrt(g/p), ||E[A^2]||
<= (d + g) lambda_1^2 (A.3) and E[(z^T A u)^2] <= (3 + g) lambda_1^2 for unit u and z
(gamma), but ||A|| may be h (A.2: M about sqrt(g/p)).

Compare with rows that are all light, of which K ~ Bin(n, p) are replaced by heavy ones,
whatever the rows are. By group privacy, for each K,

    P(s < x sin t) <= e^(K epsilon) V(x) + delta (e^(K epsilon) - 1)/(e^epsilon - 1),

where V(x) is the largest probability, over lines, that v is so near to a line that does
not know u. A line at an angle in the direction b has cosine at most sqrt(cos^2 t +
sin^2 t (b . u)^2) with v, so it is near only if b . u > sqrt(1 - x^2), and V(x) =
P(b . u > sqrt(1 - x^2)), half of a beta probability. With F(x) the mean of the right
side, no larger than 1, over K,

.. math:: e \ge \sin t \int_0^1 (1 - F(x)) dx,

which a sum from the right end of each cell does not exceed. For p about m/(2 n epsilon)
that is about kappa sqrt(m/(n epsilon)).

(An earlier form of both took packings, and group privacy between them, as Barber and
Duchi, *Privacy and statistical risk*, 2014, do: constants 50 and ten times smaller.)
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import atan, cos, exp, expm1, log, pi, sin, sinh, sqrt
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import betainc, betaln, gammaln
from scipy.stats import binom

from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.validation import (
    Checked,
    Fraction,
    Positive,
    check_count,
    check_fraction,
    check_positive,
)

_POWERS = np.arange(2, 200)  # q
_NEAR = np.linspace(0.0, 1.0, 201)[1:]  # x
_OVER, _TINY = 690.0, 1e-300  # e to the first is the inverse of the second
_SHARES = np.geomspace(1e-9, 0.5, 200)  # p
_RADII = np.linspace(0.8, 3.0, 221)  # 2 T over the root of the mean of |S|^2


@dataclass(frozen=True, kw_only=True)
class HardLaw(Checked, ABC):
    """A law of a row by a direction that private estimates cannot find.

    ``dimension``: d >= 3. ``first``, ``second``: lambda_1 > lambda_2 > 0.
    """

    dimension: int
    first: Positive = 2.0
    second: Positive = 1.0

    choices: ClassVar[Sequence[Mapping[str, Any]]] = ({},)
    """The values of other parameters among which the hardest law is chosen."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(
            self, "dimension", check_count("dimension", self.dimension, minimum=3)
        )
        if self.first <= self.second:
            raise InputError(
                f"first must be > second, {self.second!r}, got {self.first!r}"
            )

    @classmethod
    def hardest(
        cls,
        dimension: int,
        count: int,
        epsilon: float,
        delta: float = 0.0,
        **others: float,
    ) -> Self:
        """Return the one of `choices` with the largest floor: see `floor`."""
        made = (cls(dimension=dimension, **others, **each) for each in cls.choices)
        return max(made, key=lambda law: law.floor(count, epsilon, delta))

    def floor(self, count: int, epsilon: float, delta: float = 0.0) -> float:
        """Return a lower bound for the mean sine, over directions and rows.

        ``count``: n. ``epsilon``, ``delta``: of the estimate, under REPLACE_ONE.

        It is >= 0, and at most 1.
        """
        count = check_count("count", count)
        epsilon = check_positive("epsilon", epsilon)
        delta = check_fraction("delta", delta, allow_zero=True)
        return max(0.0, self._floor(count, epsilon, delta))

    @abstractmethod
    def _floor(self, count: int, epsilon: float, delta: float) -> float: ...

    @property
    @abstractmethod
    def blind(self) -> float:
        """The least mean sine of an estimate that looks at no row."""

    @abstractmethod
    def direction(self, rng: np.random.Generator) -> Array:
        """Return the first component v of a law, shape (d,)."""

    @abstractmethod
    def covariance(self, direction: Array) -> Array:
        """Return E[x x^T] for a component v, shape (d,) -> (d, d)."""

    @abstractmethod
    def draw(self, direction: Array, count: int, *, rng: np.random.Generator) -> Array:
        """Return rows of the law of a component v, shape (count, d)."""


def _uniform(dimension: int, rng: np.random.Generator) -> Array:
    vector = rng.standard_normal(dimension)
    return np.asarray(vector / np.linalg.norm(vector))


@dataclass(frozen=True, kw_only=True)
class GaussianLaw(HardLaw):
    """N(0, lambda_2 I + (lambda_1 - lambda_2) v v^T), for Theorem 5.3."""

    @property
    def information(self) -> float:
        """I: Fisher's information in any direction across v."""
        return (self.first - self.second) ** 2 / (self.first * self.second)

    def _floor(self, count: int, epsilon: float, delta: float) -> float:
        return max(
            self.private_floor(count, epsilon, delta), self.sampling_floor(count)
        )

    def private_floor(self, count: int, epsilon: float, delta: float) -> float:
        """Return what privacy alone excludes; negative if nothing."""
        leak = 0.0
        if delta > 0:
            q = _POWERS
            threshold = np.exp((np.log(q - 1) + self._excess(1) - log(delta)) / q)
            leak = float(np.min(delta * threshold * q / (q - 1)))
            leak *= count * (1 + exp(-epsilon))
        seen = count * sinh(min(epsilon, _OVER)) * 2 / pi * sqrt(self.information)
        return (self.dimension - 1 - leak) / (seen + self.dimension)

    def sampling_floor(self, count: int) -> float:
        """Return what so few rows exclude, whatever is made of them."""
        typical = sqrt(count * (self.dimension - 1) * self.information)
        half = typical / 2 * _RADII
        powers = _POWERS[:, np.newaxis]
        above = self._excess(count)[:, np.newaxis] - (powers - 1) * np.log(half)
        lost = np.exp(above.min(axis=0))
        return float(np.max((self.dimension - 1 - lost) / (2 * half + self.dimension)))

    def _excess(self, count: int) -> Array:
        """Return log E[(|S|/2)^q] (q - 1)^(q - 1)/q^q for so many rows, each q.

        Over T^(q - 1) it bounds E[(|S|/2 - T)_+].
        """
        q, m = _POWERS, self.dimension - 1
        moment = q * log(sqrt(self.information) / 2) + q * log(2.0)
        for degrees in (count, m):
            moment = moment + gammaln((degrees + q) / 2) - gammaln(degrees / 2)
        return np.asarray(moment + (q - 1) * np.log(q - 1) - q * np.log(q))

    @property
    def blind(self) -> float:
        half = self.dimension / 2
        return exp(betaln(half, 0.5) - betaln(half - 0.5, 0.5))

    def direction(self, rng: np.random.Generator) -> Array:
        return _uniform(self.dimension, rng)

    def covariance(self, direction: Array) -> Array:
        spike = (self.first - self.second) * np.outer(direction, direction)
        return np.asarray(self.second * np.eye(self.dimension) + spike)

    def draw(self, direction: Array, count: int, *, rng: np.random.Generator) -> Array:
        rows = sqrt(self.second) * rng.standard_normal((count, self.dimension))
        spike = sqrt(self.first - self.second) * rng.standard_normal(count)
        return np.asarray(rows + spike[:, np.newaxis] * direction)


@dataclass(frozen=True, kw_only=True)
class HeavyLaw(HardLaw):
    """A bounded law with rare heavy rows towards one direction, for Theorem 5.4."""

    share: Fraction  # p in (0, 1), of the heavy rows
    # g > 0: what heavy rows add to fourth moments, in units of lambda_1^2
    weight: Positive = 1.0

    choices: ClassVar[Sequence[Mapping[str, Any]]] = [
        {"share": float(share)} for share in _SHARES
    ]

    @property
    def heavy(self) -> float:
        """h: the squared length of a heavy row."""
        return self.first * sqrt(self.weight / self.share)

    @property
    def angle(self) -> float:
        """t, of v with e_1; at most pi/4."""
        gap = (1 - self.share) * (self.first - self.second)
        return atan(self.share * self.heavy / gap) / 2

    @property
    def blind(self) -> float:
        return sin(self.angle)

    def _floor(self, count: int, epsilon: float, delta: float) -> float:
        m = self.dimension - 1
        near = np.maximum(betainc((m - 1) / 2, 0.5, _NEAR**2) / 2, _TINY)
        # Beyond the last K all may be told; so it may where K hardly ever is.
        last = int(_OVER / epsilon)
        mean = count * self.share
        width = 9 * sqrt(mean) + 20
        heavy = np.arange(max(0, int(mean - width)), min(last, int(mean + width)) + 1)
        heavy = heavy[heavy <= count][:, np.newaxis]
        mass = binom.pmf(heavy, count, self.share)
        grown = np.exp(heavy * epsilon)
        lost = delta * (grown - 1) / expm1(min(epsilon, _OVER))
        missed = (mass * np.maximum(1 - grown * near - lost, 0.0)).sum(axis=0)
        return sin(self.angle) * float(missed.mean())

    def direction(self, rng: np.random.Generator) -> Array:
        across = _uniform(self.dimension - 1, rng)
        return np.concatenate([[cos(self.angle)], sin(self.angle) * across])

    def covariance(self, direction: Array) -> Array:
        row = self._heavy_row(direction)
        scales = np.full(self.dimension, self.second)
        scales[0] = self.first
        common = (1 - self.share) * np.diag(scales)
        return np.asarray(common + self.share * np.outer(row, row))

    def draw(self, direction: Array, count: int, *, rng: np.random.Generator) -> Array:
        rows = rng.standard_normal((count, self.dimension))
        rows *= sqrt(self.dimension) / np.linalg.norm(rows, axis=1, keepdims=True)
        rows *= sqrt(self.second)
        rows[:, 0] *= sqrt(self.first / self.second)
        rows[rng.random(count) < self.share] = self._heavy_row(direction)
        return rows

    def _heavy_row(self, direction: Array) -> Array:
        across = direction[1:] / sin(self.angle)
        return sqrt(self.heavy / 2) * np.concatenate([[1.0], across])
