r"""When Algorithm 4 doubles its guess of OPT, and how much noise it has meanwhile.

In epoch j = 0, 1, ... the guess is 2^j times the first one, and the noise of a node has
2^(j/2) times its first deviation: epsilon_0, which is in proportion to 1/sqrt(guess),
falls by sqrt 2. An epoch ends after the row at which X > guess - margin, X the sum of
the k largest eigenvalues of the private prefix of the epoch.

`PublishedRule`: guess_0 = k sqrt d log^2(m/delta)/epsilon^2, margin = 10 k sqrt d
log^2(m/delta)/epsilon in all epochs, both times R^2; the noise is that of section
2.3.2. The difference of the two is guess_0 (1 - 10 epsilon), so for **epsilon >= 0.1
the first epochs end after one row each**, whatever the data, until 2^j > 10 epsilon
(Theorem 18 is stated for epsilon < 0.1; Algorithm 4 is not). And the margin stays where
it is while the noise grows.

`CalibratedRule`: GOE noise with sd s_j above the diagonal. X differs from the same sum
Z for the exact prefix by at most k ||E|| (Ky Fan), and

    P(||E_t|| > s_j sqrt(h) (2 sqrt d + 2 sqrt(log(2 m/beta))) for some t <= m) <= beta:

a prefix has at most h nodes; the largest eigenvalue of a GOE matrix with sd s is at
most 2 s sqrt d on average (Sudakov-Fernique), and is a sqrt(2) s-Lipschitz function of
independent standard normals; likewise the least. k times that bound is the margin of
epoch j, in proportion to 2^(j/2), with beta = 0.05. guess_0 is the margin of epoch 0
times max(4, 1/mu). With probability 1 - beta, then,

- an epoch that ends has Z > guess_j - 2 margin_j >= guess_j/2 > 0: none ends for its
  noise alone, there are at most log2(1 + 2 m R^2/guess_0) that end, and
- Z <= guess_j as long as it goes on.

1/mu balances the two parts of the regret, noise against stability, as 1/epsilon^2 does
in print; 4 is what the first statement needs.

**Epochs** (`Epochs`). Trials end their epochs at
rows of their own. Each keeps the row at which its epoch began, the number of the epoch,
and a stack of the noise of prefixes, one per level, as in
`dpaudit.algorithms.online.streams`.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import log, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.algorithms.online.noise import (
    CalibratedNoise,
    PublishedNodeNoise,
    tree_height,
)
from dpaudit.algorithms.shared.bases import Rng
from dpaudit.arrays import Array
from dpaudit.validation import Checked, Fraction, Positive

__all__ = ["CalibratedRule", "PublishedRule"]


@dataclass(frozen=True)
class EpochPlan:
    """The numbers of Algorithm 4 for streams of one shape."""

    deviation: float  # of a coordinate of a node in epoch 0
    guess: float  # of epoch 0
    margin: float  # of epoch 0
    margin_grows: bool = True  # in proportion to the noise, or constant
    padded_to: int = 0  # nodes that the noise of a prefix is filled up to for V_(t+1)
    forgets: bool = False  # whether an epoch begins with V_1 again


@dataclass(frozen=True)
class PublishedRule(Checked):
    """The numbers of Algorithm 4."""

    epsilon: Positive
    delta: Fraction

    @cached_property
    def noise(self) -> PublishedNodeNoise:
        """That of section 2.3.2, at epsilon_0 = epsilon."""
        return PublishedNodeNoise(self.epsilon, self.delta)

    def plan(
        self, *, dimension: int, n_components: int, length: int, row_norm: float
    ) -> EpochPlan:
        """Return the numbers for streams of one shape."""
        size = n_components * sqrt(dimension) * log(length / self.delta) ** 2
        size *= row_norm**2
        return EpochPlan(
            deviation=self.noise.deviation(
                uses=tree_height(length), length=length, row_norm=row_norm
            ),
            guess=size / self.epsilon**2,
            margin=10 * size / self.epsilon,
            margin_grows=False,
            padded_to=(length - 1).bit_length(),  # log2 m, rounded up
            forgets=True,
        )


@dataclass(frozen=True)
class CalibratedRule(Checked):
    """The least proven noise by which the sequence is mu-GDP, and a proven margin."""

    mu: Positive

    failure: ClassVar[float] = 0.05
    """beta: how likely an epoch may end for its noise alone."""

    @cached_property
    def noise(self) -> CalibratedNoise:
        return CalibratedNoise(self.mu)

    def plan(
        self, *, dimension: int, n_components: int, length: int, row_norm: float
    ) -> EpochPlan:
        """Return the numbers for streams of one shape."""
        height = tree_height(length)
        deviation = self.noise.deviation(uses=height, length=length, row_norm=row_norm)
        norm = 2 * (sqrt(dimension) + sqrt(log(2 * length / self.failure)))
        margin = n_components * deviation / self.noise.ratio * sqrt(height) * norm
        guess = margin * max(4.0, 1 / self.mu)
        return EpochPlan(deviation=deviation, guess=guess, margin=margin)


@dataclass(frozen=True)
class EagerRule(CalibratedRule):
    """Least proven noise, and epochs of a few rows that begin with V_1.

    For audits that need few rows: the guess is 6 R^2 and the margin 0. Privacy does not
    depend on either, so it is as private as any other rule.
    """

    first_guess: ClassVar[float] = 6.0
    """In units of R^2."""

    def plan(self, *, row_norm: float, **shape: int) -> EpochPlan:
        plan = super().plan(row_norm=row_norm, **shape)
        guess = self.first_guess * row_norm**2
        return replace(plan, guess=guess, margin=0.0, forgets=True)


Integers = NDArray[np.int64]


class Epochs:
    """Where each trial is, and the noise of its prefix.

    The number of its epoch is j, from 0, and the step that of rows in it so far. The
    width is that of a matrix in coordinates.
    """

    def __init__(self, plan: EpochPlan, trials: int, levels: int, width: int) -> None:
        self._plan = plan
        self._trials = np.arange(trials)
        self.number: Integers = np.zeros(trials, dtype=np.int64)
        self.step: Integers = np.zeros(trials, dtype=np.int64)
        # Row 0 is the empty prefix, which has no noise; row v + 1 is for level v.
        self.stack = np.zeros((trials, levels + 1, width))

    @property
    def deviation(self) -> Array:
        """Of a coordinate of a node, shape (trials,)."""
        return np.asarray(self._plan.deviation * 2.0 ** (self.number / 2))

    def advance(self) -> Integers:
        """Count a row; return how many rows the node has that ends with it."""
        self.step += 1
        return self.step & -self.step

    def noise_of_prefix(self, unit: Array) -> Array:
        """Return the noise of the prefixes, given that of the nodes that end here.

        The latter is in units of `deviation`, shape (trials, q).
        """
        before = _level(self.step & (self.step - 1))
        noise = self.stack[self._trials, before]
        noise += self.deviation[:, np.newaxis] * unit
        self.stack[self._trials, _level(self.step)] = noise
        return noise

    def padded(self, private: Array, rng: Rng) -> Array:
        """Return prefixes, shape (trials, q), with their noise filled up."""
        ones = np.bitwise_count(self.step)
        missing = np.maximum(self._plan.padded_to - ones.astype(np.int64), 0)
        deviation = self.deviation * np.sqrt(missing)
        return private + deviation[:, np.newaxis] * rng.standard_normal(private.shape)

    def end(self, total: Array) -> NDArray[np.bool_]:
        """End the epochs in which X says so, shape (trials,), and say which did."""
        growth = 2.0 ** (self.number / 2) if self._plan.margin_grows else 1.0
        margin = self._plan.margin * growth
        ended = total > self._plan.guess * 2.0**self.number - margin
        self.number += ended
        self.step[ended] = 0
        return np.asarray(ended)


def _level(step: Integers) -> Integers:
    """Return 1 + log2 of the lowest set bit, or 0 where there is none."""
    low = (step & -step).astype(np.float64)
    return np.frexp(low)[1].astype(np.int64)
