"""How the layers share their error among intervals: equalities, without chance."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from dpaudit import Pair, Relation
from dpaudit.audit.layers import consistency, whitebox
from dpaudit.audit.layers.consistency import loss_consistency
from dpaudit.audit.layers.means import (
    BettingInterval,
    BettingLowerBound,
    empirical_bernstein,
)
from dpaudit.audit.layers.whitebox import white_box

PAIR = Pair([0.0], [1.0])


@dataclass(frozen=True)
class GaussianSum:
    relation: Relation = Relation.REPLACE_ONE

    def release(self, data, *, rng):
        return self.draw(data, 1, rng=rng)[0]

    def draw(self, data, size, *, rng):
        return np.sum(data) + rng.standard_normal(size)

    def privacy_loss(self, releases, data, other):
        return np.square(releases - np.sum(other)) / 2 - (
            np.square(releases - np.sum(data)) / 2
        )


@pytest.fixture
def spent(monkeypatch):
    """The error probabilities of all intervals that are made."""
    alphas = []

    class Recorded(BettingInterval):
        def __init__(self, alpha, *, horizon):
            super().__init__(alpha, horizon=horizon)
            alphas.append(alpha)

    for module in (whitebox, consistency):
        monkeypatch.setattr(module, "BettingInterval", Recorded)
    return alphas


def test_the_sides_of_an_interval_get_half_each():
    alpha, values = 0.04, np.random.default_rng(0).beta(2, 5, (5, 40))
    interval = BettingInterval(alpha, horizon=200)
    below, above = (BettingLowerBound(alpha / 2, horizon=200) for _ in range(2))
    for batch in values:
        interval.update(batch)
        below.update(batch)
        above.update(1 - batch)
    assert interval.low == below.value
    assert interval.high == 1 - above.value
    assert 0 < interval.low < values.mean() < interval.high < 1


def test_empirical_bernstein_pays_for_two_sides_and_their_variance():
    values = np.random.default_rng(0).random(500)
    low, high = empirical_bernstein(values, 0.04)
    log_term = math.log(2 / (0.04 / 2))
    deviation = np.sqrt(np.sum((values - values.mean()) ** 2) / 499)
    margin = deviation * math.sqrt(2 * log_term / 500) + 7 * log_term / (3 * 499)
    assert low == pytest.approx(values.mean() - margin)
    assert high == pytest.approx(values.mean() + margin)


@pytest.mark.parametrize("epsilons", [[1.0], [0.0, 0.5, 1.5]])
@pytest.mark.parametrize("proposal", [None, "auto"])
def test_white_box_intervals_share_alpha_over_directions_and_epsilons(
    spent, epsilons, proposal
):
    options = {"confidence": 0.97, "max_samples": 100, "proposal": proposal}
    white_box(GaussianSum(), PAIR, epsilon=epsilons, **options)
    assert spent == pytest.approx([0.03 / (2 * len(epsilons))] * 2 * len(epsilons))


def test_one_of_many_epsilons_is_bounded_as_it_is_alone_at_its_share():
    """From the same releases."""
    together = white_box(
        GaussianSum(), PAIR, epsilon=[0.2, 0.5, 1.0], confidence=0.97, max_samples=500
    )
    alone = white_box(
        GaussianSum(), PAIR, epsilon=0.5, confidence=0.99, max_samples=500
    )
    for bound in ("low_by_direction", "high_by_direction"):
        both = getattr(together, bound)[:, 1], getattr(alone, bound)[:, 0]
        np.testing.assert_allclose(*both, rtol=1e-9)


def test_consistency_shares_alpha_over_sides_and_thresholds(spent):
    found = loss_consistency(GaussianSum(), PAIR, confidence=0.97, max_samples=100)
    k = len(found.threshold)
    assert k > 3
    assert spent == pytest.approx([0.03 / (2 * k)] * 2 * k)
