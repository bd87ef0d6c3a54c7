r"""Regret against the best fixed subspace in hindsight, and what bounds it.

Row t is met with V_t, which was made of the rows before it, and earns ||V_t^T x_t||^2.
OPT is what the best fixed subspace would have earned, the sum of the k largest
eigenvalues of A_m (Ky Fan), and the regret is OPT minus what was earned. It may be
negative.

**Be the leader.** Let V_(t+1) be *exact* leaders of A_t. Then OPT <= sum_t
||V_(t+1)^T x_t||^2, by induction: V_(m+1) earns OPT on all rows, and on the first m - 1
rows it earns no more than V_m does, hence no more than the leaders did. So the regret
of follow-the-leader is at most the sum of ||V_(t+1)^T x_t||^2 - ||V_t^T x_t||^2
(Kalai, Vempala 2005).

**Theorem 14 with constants.** For Algorithm 3, deviation s per entry of the triangle,
and a stream that does not look at the subspaces,

    E[regret] <= (1 - e^-eps) OPT + e^-eps (4 k s sqrt d + delta (m - 1) + 1)

for any (eps, delta) that is true of one step under adding a row, R = 1. Proof. (i) For
t >= 2, V_t and V_(t+1) are made of A_(t-1) + E and A_t + E', one added row apart, so
for a reward in [0, 1] E||V_(t+1)^T x_t||^2 <= e^eps E||V_t^T x_t||^2 + delta. (The
print has e^(2 eps) and delta/eps there, by a detour.) V_1 is arbitrary: the first row
costs 1 at most. (ii) Only the law of each E_t matters for an
expectation, so let them be one E. Then V_(t+1) are exact leaders of a stream whose
first 'row' is E, and be-the-leader gives sum_t ||V_(t+1)^T x_t||^2 >= OPT - max over
P, P' of tr((P - P') E) >= OPT - (the k largest - the k least eigenvalues of E). (iii)
That is at most 2 k E[lambda_max(E)] <= 4 k s sqrt d on average: E is symmetric about 0;
more noise on the diagonal, up to GOE, makes lambda_max larger on average (Jensen), and
for GOE it is at most 2 s sqrt d (Sudakov-Fernique). For k < d; for k = d there is no
regret.

The paper's own bounds hide their constants in an O: those functions have 1 in its
place. How Theorem 14 differs in print: docs/online.md.
"""

from math import exp, log, sqrt

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.online.subspace_sequence import leading_bases
from dpaudit.algorithms.shared.bases import check_rank
from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.gram import gram
from dpaudit.validation import (
    check_count,
    check_fraction,
    check_matrix,
    check_nonnegative,
    check_positive,
)

__all__ = [
    "best_fixed_reward",
    "corollary_17_bound",
    "follow_the_leader",
    "proven_regret_bound",
    "regret",
    "theorem_18_bound",
]


def rewards(data: ArrayLike, bases: Array) -> Array:
    """Return ||V_t^T x_t||^2 for every row as the mechanism saw it, shape (..., n).

    Mechanisms release V_2, ..., V_(n+1), shape (..., n, d, k); the last earns nothing.
    V_1 is the first k basis vectors, as for all mechanisms here.
    """
    rows = check_matrix("data", data, min_rows=1)
    bases = np.asarray(bases, dtype=np.float64)
    if bases.ndim < 3 or bases.shape[-3:-1] != rows.shape:
        raise InputError(
            f"bases must have shape (..., {rows.shape[0]}, {rows.shape[1]}, k), "
            f"got {bases.shape}"
        )
    first = np.eye(*bases.shape[-2:])
    met = np.einsum("td,...tdk->...tk", rows[1:], bases[..., :-1, :, :])
    earned = np.empty(bases.shape[:-2])
    earned[..., 0] = np.sum((rows[0] @ first) ** 2)
    earned[..., 1:] = np.sum(met**2, axis=-1)
    return earned


def best_fixed_reward(data: ArrayLike, n_components: int) -> float:
    """Return OPT, the sum of the k largest eigenvalues of the second-moment matrix."""
    rows = check_matrix("data", data, min_rows=1)
    _, k = _sizes(rows.shape[1], n_components)
    return float(np.linalg.eigvalsh(gram(rows).moment)[-k:].sum())


def regret(data: ArrayLike, bases: Array) -> Array:
    """Return OPT minus what the bases earned, see `rewards`, shape (...).

    Examples
    --------
    >>> rows = np.array([[0.0, 1.0], [0.0, 1.0]])
    >>> float(regret(rows, follow_the_leader(rows, 1)))
    1.0
    """
    earned = rewards(data, bases).sum(axis=-1)
    return np.asarray(best_fixed_reward(data, bases.shape[-1]) - earned)


def follow_the_leader(data: ArrayLike, n_components: int) -> Array:
    """Return the exact leaders after every row, (n, d, k): no noise, no privacy."""
    rows = check_matrix("data", data, min_rows=1)
    _, k = _sizes(rows.shape[1], n_components)
    return leading_bases(np.cumsum(rows[:, :, None] * rows[:, None, :], axis=0), k)


def proven_regret_bound(
    *,
    optimum: float,
    length: int,
    dimension: int,
    n_components: int,
    sigma: float,
    epsilon: float,
    delta: float,
) -> float:
    """Return the bound of Theorem 14 with its constants (proof: head of this module).

    OPT is of rows of norm at most 1, sigma the deviation of the entries of E_t above
    the diagonal; epsilon and delta are true of one step if a row is added.
    """
    d, k = _sizes(dimension, n_components)
    keep = exp(-check_positive("epsilon", epsilon))
    noise = 4 * k * check_nonnegative("sigma", sigma) * sqrt(d)
    delta = check_fraction("delta", delta, allow_zero=True)
    slack = delta * (check_count("length", length) - 1) + 1
    if k == d:
        return 0.0
    return (1 - keep) * check_nonnegative("optimum", optimum) + keep * (noise + slack)


def corollary_17_bound(
    *, optimum: float, length: int, dimension: int, n_components: int
) -> float:
    """Return sqrt(k OPT) d^(1/4) sqrt(log m): Corollary 17 with 1 for its O."""
    steps = check_count("length", length, minimum=2)
    optimum = check_nonnegative("optimum", optimum)
    d, k = _sizes(dimension, n_components)
    return sqrt(k * sqrt(d) * optimum * log(steps))


def theorem_18_bound(
    *, optimum: float, length: int, dimension: int, n_components: int, delta: float
) -> float:
    """Return sqrt(k OPT sqrt d log^5(m/delta)): Theorem 18 with 1 for its O."""
    steps = check_count("length", length)
    logarithm = log(steps / check_fraction("delta", delta))
    optimum = check_nonnegative("optimum", optimum)
    d, k = _sizes(dimension, n_components)
    return sqrt(k * sqrt(d) * optimum * logarithm**5)


def _sizes(dimension: int, n_components: int) -> tuple[int, int]:
    """Return d and k, checked."""
    d = check_count("dimension", dimension)
    k = check_count("n_components", n_components)
    check_rank(k, d)
    return d, k
