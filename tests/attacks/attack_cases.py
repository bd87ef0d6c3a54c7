"""Planted cases: for each attack a mechanism that it is made for, and what is shared.

A case draws releases of a given size on D (shift 1) or D' (shift 0).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import rankdata

from dpaudit import Pair, attacks
from dpaudit.algorithms import GOEGaussian, SymmetricNoise
from dpaudit.batches import Batch
from dpaudit.outputs import Output, read

SCALARS = Pair([0.0], [0.0, 1.0])
ROWS = Pair(
    [[0.6, 0.0, 0.2], [0.0, 0.7, 0.1], [0.0, 0.0, 1.0]],
    [[0.6, 0.0, 0.2], [0.0, 0.7, 0.1]],
)
REPLACED = Pair([[0.6, 0.3, 0.2], [0.0, 0.0, 1.0]], [[0.6, 0.3, 0.2], [0.0, 1.0, 0.0]])


def auc(first, second):
    """Return the area under the ROC curve, ties counting half."""
    ranks = rankdata(np.concatenate([first, second]))
    return (ranks[: len(first)].mean() - (len(first) + 1) / 2) / len(second)


def take(releases, part):
    if isinstance(releases, Batch):
        start, stop, _ = part.indices(releases.size)
        return releases.section(start, max(start, stop))
    if isinstance(releases, Mapping):
        return {key: value[part] for key, value in releases.items()}
    return releases[part]


def black_box(data, rng):
    raise AssertionError("attacks do not draw releases")


@dataclass(frozen=True)
class Case:
    attack: attacks.Attack
    draw: Callable[[np.random.Generator, int, int], Any]
    least: float
    pair: Pair = SCALARS
    mechanism: Any = black_box

    @property
    def target(self):
        return attacks.Target(self.mechanism, self.pair)

    def sides(self, size, seed):
        rng = np.random.default_rng(seed)
        return self.draw(rng, size, 1), self.draw(rng, size, 0)

    @cached_property
    def parameters(self):
        """What is learned from 600 releases a side; no test may change it."""
        return self.attack.fit(self.target, *self.sides(600, 0))

    def score(self, parameters, releases):
        return self.attack.score(self.target, parameters, releases)

    def null_sides(self, size, seed):
        rng = np.random.default_rng(seed)
        return self.draw(rng, size, 0), self.draw(rng, size, 0)


def from_mechanism(attack, mechanism, least):
    pair = mechanism.worst_case(3)

    def draw(rng, size, side):
        return mechanism.draw(pair.data if side else pair.neighbour, size, rng=rng)

    return Case(attack, draw, least, pair, mechanism)


def data_of(pair, side):
    return pair.data if side else pair.neighbour


def noisy_moment(scale):
    """Return a black box that adds symmetric noise to the second-moment matrix."""

    def draw(rng, size, side, pair=ROWS):
        data = data_of(pair, side)
        noise = rng.normal(scale=scale, size=(size, 3, 3))
        return data.T @ data + noise + noise.swapaxes(1, 2)

    return draw


def top_basis(k, *, transposed=False):
    """Return a private PCA whose signs and bases are random."""

    def draw(rng, size, side, pair=ROWS):
        _, vectors = np.linalg.eigh(noisy_moment(0.15)(rng, size, side, pair))
        turn = np.linalg.qr(rng.normal(size=(size, k, k)))[0]
        bases = vectors[:, :, -k:] @ turn
        return bases.swapaxes(1, 2) if transposed else bases

    return draw


def subspace(k):
    def components(data, rng):
        return np.linalg.svd(data, full_matrices=False)[2][:k].T

    return components


def top_vector(rng, size, side):
    return top_basis(1)(rng, size, side)[:, :, 0]


def noisy_sum(rng, size, side):
    return data_of(ROWS, side).sum(axis=0) + rng.normal(scale=0.7, size=(size, 3))


def codes_and_numbers(rng, size, side):
    """Return numbers mixed with NaN and -inf; the pattern of those is what tells."""
    numbers = rng.normal(size=(size, 4))
    numbers[rng.random((size, 4)) < 0.3] = -np.inf
    numbers[rng.random(size) < 0.1 + 0.5 * side, 2] = np.nan
    return numbers


def words(layouts):
    """Return outputs without numbers."""
    return Batch.gather([Output(layout, None) for layout in layouts])


def failures(rng, size, side):
    layouts = ["shape ()", "raises ValueError", "shape (3,)", "value 'naïve'"]
    shares = [0.4, 0.3, 0.2, 0.1] if side else [0.8, 0.1, 0, 0.1]
    return words(rng.choice(layouts, size, p=shares).tolist())


def lists_of_any_length(rng, size, side):
    """Return lists that show in each length a little of the shift."""
    lengths = rng.integers(1, 4, size)
    return Batch.gather([read(0.8 * side + rng.laplace(size=n)) for n in lengths])


@dataclass(frozen=True)
class Steps:
    """Two Gaussian steps; the second builds on the first."""

    @property
    def step_scales(self):
        return {"first": 1.0, "second": 2.0}

    def step_means(self, transcript, data):
        first = transcript["first"]
        return {
            "first": np.full(first.shape, data.sum()),
            "second": 0.5 * first[:, np.newaxis] + data.sum() * np.array([1.0, 2.0]),
        }

    def transcript(self, data, size, *, rng):
        first = data.sum() + rng.normal(size=size)
        means = self.step_means({"first": first}, data)
        second = means["second"] + 2.0 * rng.normal(size=(size, 2))
        return {"first": first, "second": second, "final": second.sum(axis=1)}


def transcript(rng, size, side):
    return Steps().transcript(data_of(SCALARS, side), size, rng=rng)


def crossed(rng, size, side):
    """Return vectors in which the larger of two entries is the first on D only."""
    low, high = np.sort(rng.normal(size=(2, size)), axis=0)
    first = rng.random(size) < 0.2 + 0.6 * side
    return np.column_stack(
        [np.where(first, high, low), np.where(first, low, high), rng.normal(size=size)]
    )


def laplace(shift):
    shift = np.asarray(shift)
    return lambda rng, size, side: (
        side * shift + rng.laplace(size=(size, *np.shape(shift)))
    )


CASES = [
    from_mechanism(attacks.ExactLoss(), GOEGaussian.from_mu(1.5), 0.8),
    from_mechanism(attacks.MeanShift(), GOEGaussian.from_mu(1.5), 0.8),
    from_mechanism(attacks.Support(), SymmetricNoise.as_published(1.0), 0.75),
    Case(attacks.GaussianTranscript(), transcript, 0.8, SCALARS, Steps()),
    Case(attacks.Identity(), laplace(1.0), 0.7),
    Case(attacks.CanaryQuadratic(), noisy_moment(0.3), 0.8, ROWS),
    Case(attacks.CanaryOverlap(), top_vector, 0.75, ROWS),
    Case(attacks.CanaryOverlap(), top_basis(2), 0.75, ROWS),
    Case(attacks.CanaryOverlap(), top_basis(2, transposed=True), 0.75, ROWS),
    Case(attacks.CanaryOverlap(), noisy_moment(0.1), 0.75, ROWS),
    *(
        Case(attacks.Tracing(), noisy_sum, 0.75, ROWS),
        Case(attacks.Tracing(), top_vector, 0.75, ROWS),
    ),
    Case(attacks.Reconstruction(), lambda *a: 0.6 * top_basis(2)(*a), 0.75, ROWS),
    Case(attacks.Reconstruction(), lambda *a: noisy_sum(*a) / 2, 0.6, ROWS),
    *(
        Case(attacks.Abnormal(), failures, 0.65),
        Case(attacks.ByLayout(), lists_of_any_length, 0.72),
    ),
    Case(
        attacks.Atoms(),
        lambda g, n, s: g.geometric(0.3 + 0.4 * s, n).astype(float),
        0.65,
    ),
    Case(attacks.Atoms(), codes_and_numbers, 0.7),
    Case(attacks.LaplaceLocation(), laplace(np.full(10, 0.5)), 0.8),
    Case(attacks.LinearDiscriminant(), laplace(np.full(10, 0.5)), 0.74),
    Case(attacks.LogisticClassifier(), laplace(np.full(10, 0.5)), 0.8),
    Case(
        attacks.LogisticClassifier(),
        lambda g, n, s: (1 + s) * g.normal(size=(n, 9)),
        0.9,
    ),
    Case(attacks.GradientBoosting(), crossed, 0.75),
    Case(attacks.GradientBoosting(), top_basis(2), 0.75, ROWS),
    Case(attacks.BitPatterns(), laplace(1.0), 0.62),
]


def case_name(case):
    return f"{case.attack.name}-{CASES.index(case)}"
