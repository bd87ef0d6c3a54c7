r"""The exponential mechanism for few components, drawn exactly.

**The draws** are from the matrix Bingham distribution.

Source of the method: Kent, Ganeiber, Mardia, *A new unified approach for the simulation
of a wide class of directional distributions*, JCGS 27, 2018, section 3: rejection from
angular central Gaussian (ACG) laws. The envelope for k > 1 is ours; we know of no
earlier publication.

Wanted: k-frames V in R^d with density proportional to exp(tr V^T S V), in the basis of
eigenvectors of S, whose eigenvalues are -g_1 >= ... >= -g_d.

1. Choose beta_j > 0 and c_j > 0, j = 1, ..., k (any will do, the choice is below), and
   omega_i = min c_j (beta_j + 2 (g_i - g_j)) over j <= i.
2. Z of shape (d, k), entries i.i.d. N(0, 1); Y = Omega^(-1/2) Z, Omega = diag(omega).
   V is an orthonormal basis of the span of Y.
3. Accept with log-probability (d/2) log|V^T Omega V| - sum g_i P_ii - B, P = V V^T,

   .. math:: B = \sum_{j=1}^k \Big( \frac{d}{2} \big( \log(c_j d) - 1 \big)
                 + \frac{\beta_j}{2} - g_j \Big) ,

   else repeat from 2. Turn an accepted V by a uniform rotation of its columns.

Proof. The span of Y has the matrix ACG density |Omega|^(k/2) |V^T Omega V|^(-d/2)
(Chikuse 1990), so that the logarithm in step 3 is, up to a constant, that of the wanted
density over the proposed one. It is never positive: it depends on the span of V alone,
so let V be that basis of it whose j-th column v_j is orthogonal to e_1, ..., e_(j-1).
With p_ij = v_ij^2 and t_j = sum_i p_ij (g_i - g_j) >= 0, the sums being over i >= j,

.. math:: \sum_i p_{ij} \omega_i \le c_j (\beta_j + 2 t_j), \qquad
          \sum_i g_i P_{ii} = \sum_j (t_j + g_j) .

By Hadamard's inequality |V^T Omega V| is at most the product of the v_j^T Omega v_j =
sum_i p_ij omega_i, and log y <= log d + y/d - 1 gives

.. math:: \frac{d}{2} \log |V^T \Omega V| \le \sum_j \Big( \frac{d}{2} \big( \log(c_j d)
          - 1 \big) + \frac{\beta_j}{2} + t_j \Big) = B + \sum_i g_i P_{ii} .

Choice. The acceptance probability is |Omega|^(k/2) e^-B times a constant, and
B - (k/2) sum log omega_i is a convex function of beta and log c. It is minimised with
the minimum over j made smooth; how exactly, only the number of proposals depends on.
For k = 1 that is the envelope of Kent, Ganeiber and Mardia, sum 1/omega_i = 1 at c = 1.
With k columns, omega_i = b + 2 (g_i - g_1) is not good: acceptance falls exponentially
in the gaps between the first k eigenvalues, which say nothing about how sharply the
span is determined (d = 4, S = diag(10100, 1e4, 0, 0): 1e-40).

Acceptance (docs/choosing.md#exact-draws-of-several-components has numbers): k = 2 is
mostly at hand, k = 3 up to d = 20 or so, and k = 10 never.

**The mechanism.** Source: Chaudhuri, Sarwate, Sinha, JMLR 14, 2013, algorithm PPCA. Its
density and the proof of its privacy are in `dpaudit.algorithms.subspace.exponential`.
Rejection is practical for k = 2 and k = 3 (or d - 2, d - 3), and for more in few
dimensions.

Privacy. Pure epsilon: the law of the release is exact, however many proposals it takes.
That number depends on the data, though, and so does the time that a release takes:
whoever can measure it is not covered by the proof. For the same reason nothing here
gives up when acceptance is low; the decision not to start must not depend on the data.

**ExponentialMechanism** is the case k = 1, where an exact draw is one from the vector
Bingham distribution with S = c A (`dpaudit.algorithms.subspace.bingham`). REPLACE_ONE
is the relation of the paper.

For d >= 2 no larger c will do: epsilon is the supremum of the loss, which no pair
attains. R = 1: let D have m rows e_1, and let D' have one row e_2 more. At u = e_2 the
loss is epsilon - log E_P[exp(epsilon u_2^2)], and u_2 -> 0 in probability as m grows.
Likewise with REPLACE_ONE: if e_1 takes the place of the row e_2 beside m rows e_1, the
loss at e_2 tends to -epsilon. But such releases become rare at the same time: the
hockey-stick divergence of that pair vanishes as m grows.

What is exact on a pair. The loss is c u^T (A - A') u less the difference of the log Z,
both of which are known, and u^T (A - A') u ranges over an interval whose ends are the
extreme eigenvalues of A - A'. The density is positive and continuous, so that every
neighbourhood of the directions where the loss is largest has positive probability: the
pure epsilon of the pair is exact.
"""

from abc import ABC
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import Claim, InputError, Pair, PureDP, Relation, UnsupportedError
from dpaudit.algorithms.shared.bases import Rng, first_accepted, slices
from dpaudit.algorithms.subspace.base import PureSubspaceMechanism
from dpaudit.algorithms.subspace.bingham import VectorBingham, log_bingham_normaliser
from dpaudit.algorithms.subspace.exponential import MatrixBinghamMechanism
from dpaudit.algorithms.subspace.perturbation import tied_directions_pair
from dpaudit.arrays import Array
from dpaudit.claims import NO_LOSS
from dpaudit.validation import check_count, check_length

__all__ = ["ExactExponential", "ExponentialMechanism"]

_BUDGET = 2**18  # numbers in a temporary array
_FEWEST_TRIES = 16
_SHARPNESS = 1000.0  # of the smooth minimum


class MatrixACG:
    """Rejection from a matrix ACG law, for the spans of matrix Bingham draws.

    The eigenvalues of S have any order; its eigenvectors are the basis vectors.
    """

    def __init__(self, values: ArrayLike, k: int) -> None:
        self._gaps = -np.asarray(values, dtype=np.float64)
        self.k = check_count("k", k, maximum=len(self._gaps))
        order = np.argsort(self._gaps)
        self._omega = np.empty(len(self._gaps))
        self._omega[order], self._log_bound = _envelope(self._gaps[order], self.k)

    def propose(self, size: int, *, rng: Rng) -> Array:
        """Return frames whose spans have the matrix ACG law, shape (size, d, k)."""
        # Step 2.
        normals = rng.standard_normal((size, len(self._omega), self.k))
        return np.linalg.qr(normals / np.sqrt(self._omega)[:, np.newaxis]).Q

    def log_acceptance(self, frames: Array) -> Array:
        """Return with which probability frames are accepted, shape (size,); logarithms.

        At most 0, up to rounding units of the eigenvalues.
        """
        # Step 3.
        inner = frames.swapaxes(-2, -1) @ (self._omega[:, np.newaxis] * frames)
        log_ratio = len(self._omega) / 2 * np.linalg.slogdet(inner).logabsdet
        return log_ratio - (frames**2).sum(axis=-1) @ self._gaps - self._log_bound

    def draw(self, size: int, *, rng: Rng) -> Array:
        """Return frames, shape (size, d, k), whose spans have the law."""

        def accepted(tries: int) -> Array:
            frames = self.propose(tries, rng=rng)
            # Minus the logarithm of a uniform variable is exponential.
            good = -rng.standard_exponential(tries) <= self.log_acceptance(frames)
            return np.asarray(frames[good])

        shape = len(self._gaps), self.k
        most = max(_FEWEST_TRIES, _BUDGET // (shape[0] * shape[1]))
        return first_accepted(
            size, accepted, shape=shape, fewest=_FEWEST_TRIES, most=most
        )


def _envelope(gaps: Array, k: int) -> tuple[Array, float]:
    """Return omega and B for ascending g, see step 1."""
    d = len(gaps)
    differences = gaps[:, np.newaxis] - gaps[:k]
    differences[np.triu_indices(d, 1, k)] = np.inf

    from scipy.optimize import minimize  # slow to import

    def objective(parameters: Array) -> tuple[float, Array]:
        """Return B - (k/2) sum log omega, up to a constant, and its gradient."""
        log_c, beta = _unpack(parameters)
        terms = log_c + np.log(beta + 2 * differences)
        least = terms.min(axis=1, keepdims=True)
        shares = np.exp(_SHARPNESS * (least - terms))
        total = shares.sum(axis=1, keepdims=True)
        shares /= total
        log_omega = least - np.log(total) / _SHARPNESS
        value = (d * log_c + beta).sum() / 2 - k / 2 * log_omega.sum()
        by_log_c = d / 2 - k / 2 * shares.sum(axis=0)
        weighted = shares * beta / (beta + 2 * differences)
        by_log_beta = beta / 2 - k / 2 * weighted.sum(axis=0)
        return value, np.concatenate([by_log_c[1:], by_log_beta])

    # Good for a wide gap after the k-th eigenvalue.
    width = k + 2 * (gaps[min(k, d - 1) :].mean() - gaps[:k])
    start = np.concatenate([np.log(width[0] / width[1:]), np.full(k, np.log(k))])
    best = minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-4})
    log_c, beta = _unpack(best.x)
    omega = (np.exp(log_c) * (beta + 2 * differences)).min(axis=1)
    log_bound = (d / 2 * (log_c + np.log(d) - 1) + beta / 2 - gaps[:k]).sum()
    return omega, float(log_bound)


def _unpack(parameters: Array) -> tuple[Array, Array]:
    """Return log c, of which the first is 0 without loss, and beta."""
    count = len(parameters) // 2
    return np.concatenate([[0.0], parameters[:count]]), np.exp(parameters[count:])


@dataclass(frozen=True, kw_only=True)
class ExactlyDrawn(PureSubspaceMechanism, ABC):
    """What is known of a basis V that is drawn exactly: density exp(c tr V^T A V)."""

    @property
    def true_epsilon(self) -> float:
        """epsilon: the supremum over all pairs of rows with d > k."""
        return self.epsilon

    def exact_claim(self, pair: Pair) -> Claim:
        """Return the pure epsilon of the pair: the largest loss, either way round.

        tr V^T (A - A') V ranges from the sum of the k least eigenvalues of A - A' to
        that of the k largest, and the density is positive and continuous. Unless k is
        1, d - 1 or d, Z(A) has no closed form, and the epsilon is not known.
        """
        difference, shift = self._difference(pair.data, pair.neighbour)
        values, k = np.linalg.eigvalsh(difference), self.n_components
        if k == len(values) or values[0] == values[-1]:
            return NO_LOSS
        return PureDP(float(max(values[-k:].sum() - shift, shift - values[:k].sum())))

    def _difference(self, data: ArrayLike, other: ArrayLike) -> tuple[Array, float]:
        """Return c (A - A'), and log Z(A) - log Z(A')."""
        moments = np.stack([self.moment(rows) for rows in (data, other)])
        moments *= self.coefficient
        values = np.asarray(np.linalg.eigvalsh(moments), dtype=np.float64)
        log_z, other_log_z = self._log_normaliser(values)
        return moments[0] - moments[1], float(log_z - other_log_z)

    def _log_normaliser(self, values: Array) -> Array:
        k, d = self.n_components, values.shape[-1]
        if k == 1:
            return log_bingham_normaliser(values)
        if k == d:
            return np.asarray(values.sum(axis=-1))
        if k == d - 1:
            # tr V^T S V = tr S - w^T S w with w orthogonal to V.
            return values.sum(axis=-1) + log_bingham_normaliser(-values)
        raise UnsupportedError(
            f"the exact loss is known for n_components = 1, {d - 1} or {d} where rows "
            f"have length {d}, got {k}"
        )


@dataclass(frozen=True, kw_only=True)
class ExactExponential(ExactlyDrawn, MatrixBinghamMechanism):
    """A basis V with density proportional to exp(coefficient tr V^T A V), exactly.

    Draws take long where acceptance is low: see the head of this module for k > 2.

    Examples
    --------
    >>> mechanism = ExactExponential(n_components=2, epsilon=1.0)
    >>> rows = np.repeat(np.eye(4), [300, 200, 50, 10], axis=0)
    >>> releases = mechanism.draw(rows, 500, rng=np.random.default_rng(0))
    >>> (releases**2).sum(axis=-1).mean(axis=0).round(2)
    array([1.  , 0.99, 0.01, 0.  ])
    """

    def draw_frames(self, values: Array, k: int, size: int, *, rng: Rng) -> Array:
        return MatrixACG(values, k).draw(size, rng=rng)

    def acceptance(self, data: ArrayLike, *, size: int = 10_000, rng: Rng) -> float:
        """Return an estimate of the acceptance probability, from `size` proposals.

        For planning: it depends on the data, is not private, and releases do not use
        it. 1 where no frames are proposed (k = 1, d - 1 or d).
        """
        exponent, k = self.reduce(self.moment(data))
        size = check_count("size", size)
        if k < 2:
            return 1.0
        sampler = MatrixACG(np.linalg.eigvalsh(exponent), k)
        total = 0.0
        for some in slices(size, _BUDGET // (len(exponent) * k)):
            frames = sampler.propose(some.stop - some.start, rng=rng)
            total += float(np.exp(sampler.log_acceptance(frames)).sum())
        return total / size

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss, where it is known, shape (size, d, k) -> (size,)."""
        difference, shift = self._difference(data, other)
        captured = (releases * (difference @ releases)).sum(axis=(-2, -1))
        return np.asarray(captured - shift)


_MOST_COPIES = 10_000


@dataclass(frozen=True, kw_only=True)
class ExponentialMechanism(ExactlyDrawn):
    """A unit vector u with density proportional to exp(coefficient u^T A u)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_components != 1:
            raise InputError(
                "n_components of exponential-pca must be 1, got "
                f"{self.n_components}; for more see exponential-pca-gibbs and "
                "exponential-pca-deflation"
            )

    def draw_from(self, moment: Array, size: int, *, rng: Rng) -> Array:
        law = VectorBingham(self.coefficient * moment)
        return law.draw(size, rng=rng)[..., np.newaxis]

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        difference, shift = self._difference(data, other)
        vectors = releases[..., 0]
        return np.asarray(((vectors @ difference) * vectors).sum(axis=-1) - shift)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair whose pure epsilon is about 0.9 of the claim, or more.

        ADD_REMOVE: a row e_d joins m rows e_1. REPLACE_ONE: e_1 takes the place of the
        row e_d beside m rows e_1. With more rows epsilon is approached more closely,
        and the releases that show it become rarer. m is about 2.5 d over the
        coefficient, and at most 10,000, which is less for epsilons below 0.001 or so.
        The default d is 2; for d = 1 releases are a random sign, which says nothing.
        """
        dimension = check_length(dimension, 2)
        row = np.eye(dimension)[[-1]] * self.row_norm
        copies = int(np.ceil(2.5 * dimension / self._unit_coefficient))
        copies = 1 + min(copies, _MOST_COPIES - 1)
        data = np.zeros((copies, dimension))
        data[:, 0] = self.row_norm
        if self.relation is Relation.ADD_REMOVE:
            return Pair(data, np.vstack([data, row]), self.relation)
        if dimension == 1:
            row = -row
        return Pair(np.vstack([data, row]), np.vstack([data, data[:1]]), self.relation)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst pair, and one whose loss is smaller but seen more often.

        On the latter (d = 8) rows e_1 and e_2 are equally many, so that every direction
        in their plane is equally likely; a row e_1 more, or another e_1 in the place of
        an e_2, is enough to prefer e_1. It tells a rejection step with the wrong sign
        from the right one.
        """
        copies = int(min(np.ceil(20 / self._unit_coefficient), _MOST_COPIES))
        tied = tied_directions_pair(
            1, 8, copies, self.relation, self.row_norm, most_rows=2 * _MOST_COPIES
        )
        return self.worst_case(), tied
