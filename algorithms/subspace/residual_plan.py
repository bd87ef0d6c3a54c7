"""What a noisy second moment says of where to look next, and who asks that.

The steps are those of `dpaudit.algorithms.subspace.residual_step`. A `StepPlan` is a
function of what was released and of public numbers; `clipped_sums` and `weighed` read
the rows. Trials lead: each function works on many of them at once.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincc, gammaln, ndtri

from dpaudit.algorithms.covariance.second_moment import OnClippedRows, beyond_noise
from dpaudit.algorithms.shared.bases import (
    APART,
    EDGE,
    ReleasesBasis,
    Rng,
    Run,
    Transcribed,
    Values,
    check_rank,
    drawn_in_parts,
    orient,
    slices,
    stand_out,
)
from dpaudit.algorithms.subspace.base import orthonormalise
from dpaudit.algorithms.subspace.perturbation import turned_pair
from dpaudit.arrays import Array
from dpaudit.blocks import Rows, peek
from dpaudit.errors import InputError
from dpaudit.gram import Gram, prepared
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import Count, check_length

__all__ = ["Described", "StepPlan", "StepsOnResiduals", "clipped_sums", "weighed"]

RESPONSE = 0.3
"""The share of M in a query, against B: eta."""
_BETTER = 0.9  # what steps promise at most, of the error of one draw
_LEAST = 0.3  # C, over the geometric mean of the variances inside and outside
_LONG = 0.5  # how fast C grows where noise matters less than the clip would
_SHRINKS = 8.0  # C at most so many times, after a step
_SURPRISE = 2.0  # deviations of a chi-square law
_WIDE = 2.0  # b, over the mean length
_NEAR = 1e-6  # a share of a squared length, and of the digits
_NUMBERS = 2**19  # of residuals that are held at a time
_OUTSIDE = 0.02  # of the trace at least, as noise may hide what is outside of V


_Sums = Callable[[Array, "StepPlan"], Array]


class StepPlan(NamedTuple):
    """What follows from the first query, for each of some trials.

    Parameters
    ----------
    basis : ndarray, shape (size, d, k)
        V.
    outer : ndarray, shape (size, d, d - k)
        The other eigenvectors of the first query.
    values, gaps : ndarray, shape (size, k)
        Eigenvalues less what noise lifts them by, and their distances from the mean of
        the others.
    apart : ndarray, shape (size, d - k, k)
        Their distances from each of the others, of which those that do not stand out of
        the noise are equal.
    total : ndarray, shape (size,)
        The trace, at least 1.
    clip, wide, ratio : ndarray, shape (size,)
        C and b, and C over the geometric mean of the variances inside and outside.
    variance, gained : ndarray, shape (size, k)
        Of an entry of V in a direction outside of its span; and what of its inverse is
        of steps.
    found, steps : ndarray of bool, shape (size,)
        Whether the components stand out of the noise, with a gap after the last, and
        whether step 4 follows.
    """

    basis: Array
    outer: Array
    values: Array
    gaps: Array
    apart: Array
    total: Array
    clip: Array
    wide: Array
    ratio: Array
    variance: Array
    gained: Array
    found: NDArray[np.bool_]
    steps: NDArray[np.bool_]

    @classmethod
    def made(
        cls,
        moments: Array,
        counts: Array,
        k: int,
        *,
        noise: float,
        whole_noise: float,
        step_noise: float,
    ) -> "StepPlan":
        """Return step 2 for noisy second moments and numbers of rows.

        Given are the deviations of noise off the diagonal: what these have, what one
        draw with all of mu would have, and over C what all steps together would have.
        """
        d = moments.shape[-1]
        eigenvalues, vectors = leading(moments, d)
        trace = np.maximum(np.trace(moments, axis1=1, axis2=2), 1.0)
        # An eigenvalue l far above the noise is lifted to l + noise^2 d / l.
        square = np.maximum(eigenvalues**2 - 4 * noise**2 * d, 0.0)
        sunk = np.maximum((eigenvalues + np.sqrt(square)) / 2, 1e-9)
        values, inside = sunk[:, :k], sunk[:, :k].sum(axis=1)
        outside = np.maximum(trace - inside, _OUTSIDE * trace)
        left = max(d - k, 1)
        bulk = np.maximum(trace - inside, 0.0) / left
        gaps = np.maximum(values - bulk[:, np.newaxis], 1e-9)
        # Of those outside, what stands out of the noise is known one by one.
        seen = eigenvalues[:, k:] > EDGE * noise * sqrt(d)
        known = np.where(seen, sunk[:, k:], 0.0)
        unseen = np.maximum(left - seen.sum(axis=1), 1)
        level = np.maximum(trace - inside - known.sum(axis=1), 0.0) / unseen
        beside = np.where(seen, known, level[:, np.newaxis])
        apart = values[:, np.newaxis] - beside[..., np.newaxis]
        apart = np.maximum(apart, APART * noise)
        mean = np.sqrt(inside * outside) / counts
        grown = _LONG * np.sqrt(np.sqrt(counts / (k * left)) / step_noise)
        ratio = np.maximum(_LEAST, grown)
        clip = np.minimum(mean * ratio, 0.5)
        # What either way is expected to miss, in the nearest of the directions.
        unit = sqrt(left) / gaps.min(axis=1)
        missed = np.minimum(noise * unit, 1.0)
        kept, anew = _clipped(clip / mean, inside**2 / (values**2).sum(axis=1))
        near = apart[..., -1] ** -2.0
        drawn = (near * beside).sum(axis=1) / np.maximum(near.sum(axis=1), 1e-300)
        drawn = np.sqrt(anew * values[:, -1] * drawn / counts)
        stepping = np.hypot(np.hypot(step_noise * clip / kept, drawn) * unit, missed**2)
        found = stand_out(eigenvalues, k, noise)
        return cls(
            basis=vectors[..., :k].copy(),
            outer=vectors[..., k:],
            values=values,
            gaps=gaps,
            apart=apart,
            total=trace,
            clip=clip,
            wide=_WIDE * clip * np.sqrt(inside / outside),
            variance=(noise / gaps) ** 2,
            gained=np.zeros_like(gaps),
            ratio=ratio,
            found=found,
            steps=found & (stepping < _BETTER * whole_noise * unit) & (k < d),
        )

    def of(self, trials: Any) -> "StepPlan":
        """Return the plan of some of the trials."""
        picked: dict[str, Any] = {x: y[trials] for x, y in self._asdict().items()}
        return StepPlan(**picked)

    def moved(self, noisy: Array, scale: Array) -> "StepPlan":
        """Return the plan after a step whose sums were seen over a scale, (size,)."""
        size, d, k = self.basis.shape
        sums = noisy.reshape(size, d + 1, k) * scale[:, np.newaxis, np.newaxis]
        response = sums[:, d] * (self.wide / (RESPONSE * self.clip))[:, np.newaxis]
        return self.turned(sums[:, :d], response, scale)

    def turned(self, cross: Array, response: Array, scale: Array) -> "StepPlan":
        """Return the plan after B, (size, d, k), and M, (size, k), were seen.

        The deviation of the noise in an entry of B is given, (size,).
        """
        d, k = self.basis.shape[1:]
        cross = _left(cross, self.basis)
        slopes = np.clip(response / self.values, 0.1, 1.0)
        own = (scale[:, np.newaxis] / (slopes * self.gaps)) ** 2
        weights = self.variance / (self.variance + own)
        turned = self.outer @ (self.outer.swapaxes(-2, -1) @ cross / self.apart)
        basis = orthonormalise(self.basis + turned * (weights / slopes)[:, np.newaxis])
        # A step of Newton's leaves the square of what was missed before.
        missed = np.minimum((d - k) * self.variance.sum(axis=1), 1.0)
        rest = (missed**2 / ((d - k) * k))[:, np.newaxis]
        # What the clip has left of the response tells the mean that C is held to, which
        # was too large where the first noise hid what is outside.
        left = np.clip(response.sum(axis=1) / self.values.sum(axis=1), 0.01, 0.99)
        shrunk = self.ratio / ndtri((1 + left) / 2)
        shrunk = np.clip(shrunk, 1 / _SHRINKS, 1.0)
        return self._replace(
            basis=basis,
            variance=weights * own + rest,
            gained=self.gained + 1 / own,
            clip=self.clip * shrunk,
            wide=self.wide * shrunk,
        )

    def fits(self, moments: Array, noise: float) -> NDArray[np.bool_]:
        """Say whether noisy moments, (size, d, d), turn V no further than noise may.

        The deviation of their noise off the diagonal is given. How far they turn V is
        asked twice, as a sum over all pairs of an axis inside and one outside: over the
        mean gap, and over each gap, of which the least decide.
        """
        left = self.outer.swapaxes(-2, -1) @ _left(moments @ self.basis, self.basis)
        # What the moments have given V themselves does not part them.
        own = noise**2 * self.gained / (self.gained + (self.gaps / noise) ** 2)
        fine = np.full(len(left), True)
        for apart in (self.gaps[:, np.newaxis], self.apart):
            usual = own[:, np.newaxis] / apart**2 * np.ones_like(left)
            most = usual.sum(axis=(1, 2))
            most += _SURPRISE * np.sqrt(2 * np.square(usual).sum(axis=(1, 2)))
            fine &= np.square(left / apart).sum(axis=(1, 2)) <= most
        return fine


class Described(NamedTuple):
    """A basis, (d, k), its second moments, (k,), if it was found, and the trace."""

    basis: Array
    variances: Array | None
    found: bool = True
    total: float = float("nan")


@dataclass(frozen=True, kw_only=True)
class StepsOnResiduals(Transcribed, ReleasesBasis, OnClippedRows):
    """A mechanism that looks at the second moment, and then at residuals.

    Releases have shape (d, k) and orthonormal columns. Data may be whatever
    `dpaudit.blocks.blocks` takes and can be read more than once.
    """

    n_components: Count

    def draw(self, data: Rows, size: int, *, rng: Rng) -> Array:
        d, data = peek(data)
        check_rank(self.n_components, d)
        shape = d, self.n_components
        width = _NUMBERS * 8 // d**2
        return drawn_in_parts(
            size, shape, width, lambda part: self._run(data, part, rng)[2]
        )

    def draw_repeated(self, data: Rows, times: float, size: int, *, rng: Rng) -> Array:
        """Return releases on data in which each row stands for so many, (size, d, k).

        They have the law of `draw` on all of these, and take the time of one.
        """
        return self._run(data, size, rng, times=times)[2]

    def described(self, data: Rows, *, rng: Rng) -> Described:
        """Return the release that `release` makes, and what the first query says of it.

        All of it is a function of what is private, and may be published.
        """
        seen, _, bases = self._run(data, 1, rng)
        plan = self._plan(seen, bases.shape[1], 1.0)
        values, total = (x[0] * self.row_norm**2 for x in (plan.values, plan.total))
        return Described(bases[0], values, bool(self._sure(plan, seen)), float(total))

    def found(self, transcript: Values, dimension: int) -> NDArray[np.bool_]:
        """Say whether all components stand out of the noise, by ``first`` alone.

        Whoever has the transcript knows it, so it may be published. Where they do not,
        the release is mostly noise: more rows are needed, or a smaller `row_norm`.
        """
        return self._sure(self._plan(transcript, dimension, 1.0), transcript)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair on which nearly all is lost, seen in all the queries.

        `dpaudit.algorithms.subspace.perturbation.turned_pair`, with so many rows that V
        is found and the steps follow. The default d is k + 1, the least that it can be.
        """
        k = self.n_components
        d = check_length(dimension, k + 1, minimum=k + 1)
        gap = 4 * EDGE * self._noise(d) * sqrt(d) * self.row_norm**2
        return turned_pair(k, d, gap, self.relation, self.row_norm)

    @abstractmethod
    def _run(
        self,
        data: Rows,
        size: int,
        source: Rng | Values,
        found: Gram | None = None,
        times: float = 1.0,
    ) -> Run:
        """Return what any such mechanism does.

        The second moment of the clipped rows may be given, and each row stand for so
        many.
        """

    @abstractmethod
    def _plan(self, values: Values, dimension: int, count: float) -> StepPlan:
        """Return step 2, by the first query, and n where that is public."""

    @abstractmethod
    def _queried(self, values: Values, d: int, count: float) -> tuple[Array, Array]:
        """Return matrices of the first query, and numbers of rows; n may be public."""

    @abstractmethod
    def _noise(self, dimension: int) -> float:
        """Return the deviation of the noise of step 1 on the diagonal."""

    @abstractmethod
    def _drawn(self, size: int, dimension: int, rng: Rng) -> Array:
        """Draw that noise, shape (size, d, d)."""

    def _sure(self, plan: StepPlan, values: Values) -> NDArray[np.bool_]:
        moments = self._queried(values, plan.basis.shape[1], 1.0)[0]
        return plan.found & beyond_noise(moments, self.n_components, self._drawn)

    @property
    def _replaced(self) -> bool:
        return self.relation is Relation.REPLACE_ONE

    def _summed(self, data: Rows, plan: StepPlan, sums: _Sums, width: int) -> Array:
        """Return sums of so many numbers over rows of length 1, (size, width)."""
        total = np.zeros((len(plan.basis), width))
        d = plan.basis.shape[1]
        for block, rows in prepared(data, self.row_norm):
            if rows.shape[1] != d:
                wanted = f"must have {d} columns again"
                raise InputError(f"{block.source} {wanted}, got {rows.shape[1]}")
            for part in slices(len(total), _NUMBERS // max(rows.size, 1)):
                some = sums(rows / self.row_norm, plan.of(part))
                total[part] += some.reshape(-1, width)
        return total


def clipped_sums(rows: Array, plan: StepPlan) -> Array:
    """Return B, and below it eta C/b M, of some rows, shape (size, d + 1, k)."""
    cross, squares = weighed(rows, plan)
    clip, wide = plan.clip[:, np.newaxis], plan.wide[:, np.newaxis]
    shares = RESPONSE * clip / np.maximum(np.sqrt(_squares(squares)), wide)
    return np.concatenate([cross, shares[:, np.newaxis] @ squares], axis=1)


def weighed(rows: Array, plan: StepPlan) -> tuple[Array, Array]:
    """Return B of some rows, shape (size, d, k), and w y^2 of each, (size, b, k)."""
    inner = rows @ plan.basis
    whole, inside = np.einsum("bd,bd->b", rows, rows), _squares(inner)
    outside = np.maximum(whole - inside, 0.0)
    # Of rows next to the span of V the difference has few digits left.
    trials, near = np.nonzero(outside < _NEAR * whole)
    if len(near):
        residuals = rows[near] - np.einsum(
            "nk,ndk->nd", inner[trials, near], plan.basis[trials]
        )
        outside[trials, near] = _squares(residuals)
    clip = plan.clip[:, np.newaxis]
    weights = clip / np.maximum(np.sqrt(inside * outside), clip)
    weighted = inner * weights[..., np.newaxis]
    return _left(rows.T @ weighted, plan.basis), weighted * inner


def _clipped(reach: Array, m: Array) -> tuple[Array, Array]:
    """Return what a clip at C leaves of the response, and the variance that it brings.

    `reach` is C over the geometric mean, and the product of lengths is taken as that
    mean times z, the length of m standard normal numbers over sqrt(m). With w = min(1,
    C/product) the response is E w z^2. The clip weighs the rows of a sample anew, which
    turns V by (E w^2 z^2)/(E w z^2)^2 - 1 of the variance by which the sample itself
    does.
    """
    bound = m * reach**2 / 2
    short = gammainc(m / 2 + 1, bound)
    mean = np.sqrt(2 / m) * np.exp(gammaln((m + 1) / 2) - gammaln(m / 2))
    kept = short + reach * mean * gammaincc((m + 1) / 2, bound)
    square = short + reach**2 * gammaincc(m / 2, bound)
    return np.asarray(kept), np.maximum(square / kept**2 - 1, 0.0)


def _squares(vectors: Array) -> Array:
    """Return squared lengths, (..., d) -> (...)."""
    return np.asarray(np.einsum("...d,...d->...", vectors, vectors))


def _left(matrices: Array, basis: Array) -> Array:
    """Return what is left of columns outside of the spans of bases."""
    return np.asarray(matrices - basis @ (basis.swapaxes(-2, -1) @ matrices))


def leading(symmetric: Array, k: int) -> tuple[Array, Array]:
    """Return the k largest eigenvalues in order, (size, k), and their vectors.

    The largest entry of each is positive, whatever LAPACK makes of it.
    """
    values, vectors = np.linalg.eigh(symmetric)
    return values[..., : -k - 1 : -1], orient(vectors[..., : -k - 1 : -1])
