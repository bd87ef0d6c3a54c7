r"""The Kullback-Leibler projection of two cell distributions on a set of half-spaces.

A score cuts the outputs into K cells, highest scores first; the events of the test are
unions of the first few cells. A claim bounds, for such an event S, linear functions
c_P P(S) + c_Q Q(S) <= delta. Given alternatives p1, q1 for the cell probabilities and
the shares w_P + w_Q = 1 of the releases drawn on D and on D', the e-value that grows
fastest under (p1, q1) is found by minimising

    w_P KL(p1 || p) + w_Q KL(q1 || q)   subject to all the half-spaces.

Its dual is a concave maximisation in multipliers a_j >= 0, one per half-space, and two
free ones, nu_P and nu_Q, for the normalisations. With

    r_i = 1 + (sum_j a_j c_Pj [i in S_j] - nu_P) / w_P,
    s_i = 1 + (sum_j a_j c_Qj [i in S_j] - nu_Q) / w_Q,

the dual objective is

    w_P sum_i p1_i log r_i + w_Q sum_i q1_i log s_i - (sum_j a_j delta_j - nu_P - nu_Q):

exactly the expected growth per release of the wealth that bets r and s
(`dpaudit.audit.betting.evidence`). Every feasible point of the dual is a valid bet, so
the solver decides how fast evidence grows and never whether it is evidence. The
minimiser is p_i = p1_i / r_i, q_i = q1_i / s_i.

The method is Newton's, projected on a >= 0 (Bertsekas, *Projected Newton methods for
optimization problems with simple constraints*, SIAM J. Control Optim. 1982), for many
problems at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array

__all__ = ["HalfSpaces", "Projection", "project"]

_ITERATIONS = 60
_HALVINGS = 30
_TOLERANCE = 1e-12
_SAFE = 0.9  # how far towards the edge of the domain a step may go
_PIVOTS, _ALL_AT_ONCE = 30, 4
_ROUNDING = 1e-14
_RIDGE = 1e-12  # two half-spaces of one event may be nearly parallel


@dataclass(frozen=True)
class HalfSpaces:
    """J half-spaces for each of M problems on cells in order.

    Parameters
    ----------
    cells : ndarray of int, shape (M, J)
        The event is the union of that many first cells.
    on_p, on_q, limit : ndarray, shape (M, J)
        on_p P(S) + on_q Q(S) <= limit. Where both coefficients are 0 there is no
        half-space.
    """

    cells: NDArray[np.intp]
    on_p: Array
    on_q: Array
    limit: Array

    def take(self, rows: NDArray[np.intp]) -> "HalfSpaces":
        """Return the half-spaces of some problems."""
        return HalfSpaces(*(each[rows] for each in vars(self).values()))

    def widen(self, spaces: int) -> "HalfSpaces":
        """Fill up to that many half-spaces with such as hold nothing."""
        more = (len(self.limit), spaces - self.limit.shape[1])
        if not more[1]:
            return self
        nothing = np.zeros(more)
        return HalfSpaces(
            np.hstack([self.cells, nothing.astype(np.intp)]),
            np.hstack([self.on_p, nothing]),
            np.hstack([self.on_q, nothing]),
            np.hstack([self.limit, nothing + 1.0]),
        )

    @staticmethod
    def stack(parts: "Sequence[HalfSpaces]") -> "HalfSpaces":
        """Put the problems of several sets, equally wide, below each other."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return HalfSpaces(*map(np.vstack, columns))

    def loads(self, n_cells: int) -> tuple[Array, Array]:
        """Return what each multiplier adds to each cell, two (M, K, J) arrays."""
        inside = np.arange(n_cells)[:, np.newaxis] < self.cells[:, np.newaxis, :]
        return (
            np.where(inside, self.on_p[:, np.newaxis, :], 0.0),
            np.where(inside, self.on_q[:, np.newaxis, :], 0.0),
        )


@dataclass(frozen=True)
class Projection:
    """Multipliers, and the growth per release that they achieve.

    Parameters
    ----------
    multipliers : ndarray, shape (M, J)
    nu_p, nu_q : ndarray, shape (M,)
    growth : ndarray, shape (M,)
        The dual objective, in nats per release; at most the divergence of the
        projection, and equal to it at the optimum.
    """

    multipliers: Array
    nu_p: Array
    nu_q: Array
    growth: Array

    def take(self, rows: NDArray[np.intp]) -> "Projection":
        """Return the solutions of some problems."""
        return Projection(*(each[rows] for each in vars(self).values()))


def project(
    p1: Array,
    q1: Array,
    half_spaces: HalfSpaces,
    share: float | Array,
    *,
    tolerance: float = _TOLERANCE,
) -> Projection:
    """Solve M projections at once.

    Parameters
    ----------
    p1, q1 : ndarray, shape (M, K)
        Positive, rows summing to 1.
    half_spaces : HalfSpaces
    share : float or ndarray, shape (M,)
        w_P, in (0, 1).
    tolerance : float
        A problem is solved when a Newton step promises less than this times the
        growth.
    """
    # Of whatever size its coefficients are, a half-space is the same.
    size = np.maximum(np.abs(half_spaces.on_p), np.abs(half_spaces.on_q))
    size = np.where(size > 0, size, 1.0)
    scaled = HalfSpaces(
        half_spaces.cells,
        *(x / size for x in (half_spaces.on_p, half_spaces.on_q, half_spaces.limit)),
    )
    dual = _DualProblem.of(p1, q1, scaled, share)
    m, j = half_spaces.limit.shape
    found, growth = np.zeros((m, j + 2)), np.zeros(m)
    # Of the problems that are still open, where they are and what that achieves.
    rows, x, value = np.arange(m, dtype=np.intp), found, growth
    returns = np.ones_like(dual.weights)
    for _ in range(_ITERATIONS):
        gradient, hessian = dual.derivatives(returns)
        step = _newton(x, gradient, hessian, bounded=j)
        promised = (gradient * step).sum(axis=1)
        open_ = promised > tolerance * (value + tolerance)
        if not open_.all():
            dual, step = dual.take(open_), step[open_]
            x, value, returns = x[open_], value[open_], returns[open_]
            rows = rows[open_]
            if not len(rows):
                break
        x, value, returns, moved = dual.climb(x, step, value, returns, bounded=j)
        found[rows], growth[rows] = x, value
        if not moved.all():
            dual = dual.take(moved)
            x, value, returns = x[moved], value[moved], returns[moved]
            rows = rows[moved]
            if not len(rows):
                break
    return Projection(found[:, :j] / size, found[:, j], found[:, j + 1], growth)


@dataclass(frozen=True)
class _DualProblem:
    """The objective sum_i w_i log(1 + slopes_i x) - cost x over 2K outcomes.

    Parameters
    ----------
    weights : ndarray, shape (M, 2K)
        The alternative, times the share of its side.
    slopes : ndarray, shape (M, 2K, J + 2)
    cost : ndarray, shape (M, J + 2)
    """

    weights: Array
    slopes: Array
    cost: Array

    @classmethod
    def of(
        cls, p1: Array, q1: Array, half_spaces: HalfSpaces, share: float | Array
    ) -> "_DualProblem":
        m, k = p1.shape
        w_p = np.broadcast_to(share, (m,))[:, np.newaxis]
        w_q = 1 - w_p
        on_p, on_q = half_spaces.loads(k)
        one, zero = np.ones((m, k, 1)), np.zeros((m, k, 1))
        return cls(
            np.concatenate([w_p * p1, w_q * q1], axis=1),
            np.concatenate(
                [
                    np.concatenate([on_p, -one, zero], axis=2) / w_p[..., np.newaxis],
                    np.concatenate([on_q, zero, -one], axis=2) / w_q[..., np.newaxis],
                ],
                axis=1,
            ),
            np.concatenate([half_spaces.limit, -np.ones((m, 2))], axis=1),
        )

    def take(self, rows: NDArray[Any]) -> "_DualProblem":
        """Return some of the problems."""
        return _DualProblem(*(each[rows] for each in vars(self).values()))

    def achieved(self, x: Array) -> tuple[Array, Array]:
        """Return the objective, and what every outcome returns, shape (M, 2K)."""
        returns = 1 + np.einsum("mij,mj->mi", self.slopes, x)
        # No cell may return nothing, not even one of probability zero.
        inside = returns.min(axis=1) > 0
        if inside.all():
            logs = np.log(returns)
        else:
            logs = np.log(np.where(inside[:, np.newaxis], returns, 1.0))
        growth = (self.weights * logs).sum(axis=1) - (self.cost * x).sum(axis=1)
        return np.where(inside, growth, -np.inf), returns

    def derivatives(self, returns: Array) -> tuple[Array, Array]:
        """Return the gradient (M, J + 2) and the negated Hessian."""
        density = self.weights / returns
        gradient = np.einsum("mi,mij->mj", density, self.slopes) - self.cost
        scaled = self.slopes * np.sqrt(density / returns)[..., np.newaxis]
        return gradient, scaled.swapaxes(1, 2) @ scaled

    def _inside(self, returns: Array, step: Array) -> Array:
        """Return lengths, at most 1, up to which steps keep all returns positive."""
        change = np.einsum("mij,mj->mi", self.slopes, step)
        ratio = np.divide(
            -returns, change, out=np.full_like(returns, np.inf), where=change < 0
        )
        return np.minimum(1.0, _SAFE * ratio.min(axis=1))

    def climb(
        self, x: Array, step: Array, value: Array, returns: Array, *, bounded: int
    ) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
        """Halve steps until the objective rises; say which of them moved."""
        length = self._inside(returns, step)
        todo, dual = np.arange(len(x)), self
        reached = x, value, returns
        for attempt in range(_HALVINGS):
            trial = x[todo] + length[todo, np.newaxis] * step[todo]
            trial[:, :bounded] = np.maximum(trial[:, :bounded], 0.0)
            tried = (trial, *dual.achieved(trial))
            up = tried[1] > value[todo]
            if not attempt:
                if up.all():
                    return *tried, up
                reached = x.copy(), value.copy(), returns.copy()
            for whole, part in zip(reached, tried, strict=True):
                whole[todo[up]] = part[up]
            todo, dual = todo[~up], dual.take(~up)
            if not len(todo):
                break
            length /= 2
        moved = np.ones(len(x), dtype=bool)
        moved[todo] = False
        return *reached, moved


def _newton(x: Array, gradient: Array, hessian: Array, *, bounded: int) -> Array:
    """Return the steps that maximise the quadratic model with multipliers >= 0.

    The hessian is overwritten.

    By principal pivoting: variables at their bound that the model pulls off it, and
    free ones that it pushes beyond, change places; one at a time (Murty) if all at
    once does not settle it. To project Newton's step instead would not do: nearly
    parallel half-spaces push each other far across, and next to nothing is left.
    """
    size = gradient.shape[1]
    matrix, diagonal = hessian, np.einsum("mii->mi", hessian)
    scale = np.sqrt(diagonal)
    scale[scale == 0] = 1.0
    matrix /= scale[:, :, np.newaxis] * scale[:, np.newaxis, :]
    diagonal[...] = 1.0 + _RIDGE
    right, lowest = gradient / scale, -x * scale
    lowest[:, bounded:] = -np.inf
    free = (x > 0) | (gradient > 0)
    free[:, bounded:] = True
    step, rows, b = np.zeros_like(x), np.arange(len(x)), right
    for attempt in range(_PIVOTS):
        if attempt:  # before, what is at its bound stays where it is
            at_bound = np.where(free, 0.0, lowest)
            b = right - (matrix @ at_bound[..., np.newaxis])[..., 0]
        solved = matrix * (free[:, :, np.newaxis] & free[:, np.newaxis, :])
        np.einsum("mii->mi", solved)[...] = 1.0 + _RIDGE
        s = np.linalg.solve(solved, np.where(free, b, 0.0)[..., np.newaxis])[..., 0]
        s = np.where(free, s, lowest)
        step[rows] = np.maximum(s, lowest)
        pull = right - (matrix @ s[..., np.newaxis])[..., 0]
        wrong = np.where(free, s < lowest, pull > _ROUNDING)
        if attempt >= _ALL_AT_ONCE:
            last = size - 1 - np.argmax(wrong[:, ::-1], axis=1)
            wrong &= np.arange(size) == last[:, np.newaxis]
        open_ = np.flatnonzero(wrong.any(axis=1))
        if not len(open_):
            break
        rows, free = rows[open_], free[open_] ^ wrong[open_]
        matrix, right, lowest = matrix[open_], right[open_], lowest[open_]
    return step / scale
