"""Mixtures over a secret flip: suprema and profiles by quadrature, and the test."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import ApproxDP, GaussianDP, Pair, PureDP
from dpaudit.audit.replay.judge.statistics import refuted_by_losses
from dpaudit.audit.replay.laws.affine import AffineLaw
from dpaudit.audit.replay.laws.amplification import SampledComparison
from dpaudit.audit.replay.laws.coded import Family
from dpaudit.audit.replay.laws.comparison import compare
from dpaudit.audit.replay.laws.composition import Composition

GRID = np.linspace(-20, 20, 40_001)


def law(mean, family):
    one = np.zeros(1, dtype=np.intp)
    parts = one, np.ones(1), one, one, one + family, one == 0
    return AffineLaw(np.array([mean]), *parts)


def step(family, rate, u, v=None):
    """Return a step that one row moves by u, or by u on D and by v on D'."""
    rest, first = law(0.0, family), law(u, family)
    second = rest if v is None else law(v, family)
    moves = [(compare(rest, first),)]
    if v is not None:
        moves.append((compare(rest, second),))
    return SampledComparison(
        (rate,) * len(moves),
        (compare(rest, rest),),
        (compare(first, second),),
        tuple(moves),
    )


def density(mean, family, grid):
    z = grid - mean
    size = np.exp(-np.abs(z)) if family == Family.LAPLACE else np.exp(-z * z / 2)
    return size / size.sum()


def mixtures(family, rate, u, v=None, grid=GRID):
    rest = density(0.0, family, grid)
    p, q = ((1 - rate) * rest + rate * density(m, family, grid) for m in (u, v or 0.0))
    return p, q


@given(st.floats(0.01, 1), st.floats(-3, 3), st.floats(-3, 3))
@settings(max_examples=15)
def test_the_bound_of_a_sampled_laplace_step_is_one(rate, u, v):
    for other in (None, v):
        p, q = mixtures(Family.LAPLACE, rate, u, other)
        largest = np.abs(np.log(p) - np.log(q)).max()
        bound = step(Family.LAPLACE, rate, u, other).supremum
        assert bound >= largest - 1e-6
        if other is None or u * v < 0:
            assert bound == pytest.approx(largest, abs=1e-2)


@pytest.mark.parametrize("rate", [0.05, 0.5])
@pytest.mark.parametrize("moves", [(0.7,), (0.7, -0.7), (1.0, -0.4), (0.3, 0.9)])
def test_compositions_of_two_sampled_gaussian_steps_bound_the_profile(rate, moves):
    grid = np.linspace(-8, 8, 801)
    p, q = mixtures(Family.GAUSSIAN, rate, *moves, grid=grid)
    losses = np.log(p) - np.log(q)
    both = np.add.outer(losses, losses)  # of two steps

    def delta(losses, own):
        return float((own * np.maximum(-np.expm1(0.4 - losses), 0)).sum())

    exact = max(delta(both, np.outer(p, p)), delta(-both, np.outer(q, q)))
    whole = Composition.of([step(Family.GAUSSIAN, rate, *moves)] * 2)
    assert not whole.holds(ApproxDP(0.4, 0.99 * exact))
    assert not whole.refutes(ApproxDP(0.4, 1.01 * exact))
    if len(moves) == 1 or moves[0] == -moves[1]:
        assert whole.holds(ApproxDP(0.4, 1.02 * exact))
        assert whole.refutes(ApproxDP(0.4, 0.5 * exact))


class Normal:
    """A standard normal number, moved by 1: mu = 1."""

    def transcript(self, data, size, *, rng):
        return {"z": rng.standard_normal(size) + data.sum()}

    def transcript_loss(self, transcript, data, other):
        z = transcript["z"]
        return ((z - other.sum()) ** 2 - (z - data.sum()) ** 2) / 2


PAIR = Pair([[0.0]], [[1.0]])


def test_true_claims_are_seldom_refuted_and_false_ones_soon():
    # Null: GaussianDP(1), which is tight. At alpha = 0.05 each of 40 runs has a
    # false alarm with probability at most 0.05: 13 or more with one below 1e-6.
    def runs(claim):
        return [
            refuted_by_losses(Normal(), PAIR, claim, alpha=0.05, most=100, seed=seed)
            for seed in range(40)
        ]

    delta = float(GaussianDP(1.0).delta_at(1.0))
    assert sum(found for found, _ in runs(GaussianDP(1.0))) <= 12
    assert sum(found for found, _ in runs(ApproxDP(1.0, delta))) <= 12
    for claim in (ApproxDP(1.0, 1e-5), PureDP(1.0), GaussianDP(0.5)):
        results = runs(claim)
        assert sum(found for found, _ in results) >= 30
    assert np.mean([samples for _, samples in runs(ApproxDP(1.0, 1e-5))]) < 20
