"""White-box intervals hold the closed forms, and sabotaged losses are caught.

Intervals and consistency checks that must hold a known truth are at confidence
1 - 1e-10, by the dozen, so a correct implementation fails with probability below 1e-8
in total. What is said about widths rests on fixed seeds. Oracles are written out here:
the Gaussian profile by quadrature, the Laplace and Wishart ones by hand.
"""

import json
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from refusals import refuses
from scipy.integrate import quad
from scipy.stats import norm

from dpaudit import GaussianDP, MechanismError, Pair, PureDP, Relation
from dpaudit.algorithms import AnalyzeGauss, SymmetricNoise, SymmetrisedWishart
from dpaudit.audit.layers import consistency, whitebox
from dpaudit.audit.layers.consistency import loss_consistency
from dpaudit.audit.layers.means import BettingInterval
from dpaudit.audit.layers.tilting import ceiling, weighted_excess
from dpaudit.audit.layers.whitebox import white_box, white_box_steps

SURE = 1 - 1e-10
PAIR = Pair([0.0], [1.0])
NOBODY = AnalyzeGauss.from_mu(0.5).worst_case()


@dataclass(frozen=True)
class GaussianSum:
    """A sum with Gaussian noise; rows are not clipped. `factor` spoils the loss."""

    scale: float = 1.0
    factor: float = 1.0
    relation: Relation = Relation.REPLACE_ONE

    @property
    def claim(self):
        return GaussianDP(1 / self.scale)

    def release(self, data, *, rng):
        return self.draw(data, 1, rng=rng)[0]

    def draw(self, data, size, *, rng):
        return np.sum(data) + self.scale * rng.standard_normal(size)

    def privacy_loss(self, releases, data, other):
        squares = [np.square(releases - np.sum(rows)) for rows in (data, other)]
        return self.factor * (squares[1] - squares[0]) / (2 * self.scale**2)


@dataclass(frozen=True)
class LaplaceSum:
    scale: float = 1.0
    relation: Relation = Relation.REPLACE_ONE

    @property
    def claim(self):
        return PureDP(1 / self.scale)

    def release(self, data, *, rng):
        return np.sum(data) + rng.laplace(scale=self.scale)

    def privacy_loss(self, releases, data, other):
        distance = [np.abs(releases - np.sum(rows)) for rows in (data, other)]
        return (distance[1] - distance[0]) / self.scale


def gaussian_profile(epsilon, mu):
    """Integrate (p - e^epsilon q)_+ for N(mu, 1) against N(0, 1)."""
    start = epsilon / mu + mu / 2

    def excess(x):
        return norm.pdf(x, mu) - np.exp(epsilon) * norm.pdf(x)

    return quad(excess, start, start + 12, epsabs=0, epsrel=1e-9, limit=200)[0]


def sure(mechanism, pair=PAIR, **options):
    return white_box(mechanism, pair, confidence=SURE, **options)


def contains(result, truth, slack=1e-9):
    truth = np.asarray(truth)
    return bool(
        np.all(result.low_by_direction <= truth * (1 + slack))
        and np.all(truth <= result.high_by_direction * (1 + slack))
    )


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
def test_the_gaussian_profile_is_inside(mu):
    epsilons = [0.0, mu / 2, mu, 1.5 * mu]
    result = sure(GaussianSum(1 / mu), epsilon=epsilons, max_samples=20_000)
    truth = np.array([gaussian_profile(e, mu) for e in epsilons])
    assert contains(result, truth)
    assert np.all(result.delta_high - result.delta_low < 0.05)
    assert np.all(abs(result.estimate - truth) < 0.02)


def test_the_laplace_profile_is_inside_and_release_by_release_will_do():
    epsilons = np.array([0.0, 0.3, 0.7, 1.5])
    result = sure(LaplaceSum(), epsilon=epsilons, max_samples=5000)
    assert contains(result, np.maximum(-np.expm1((epsilons - 1) / 2), 0.0))


@pytest.mark.parametrize("dimension", [2, 4])
def test_infinite_losses_count_as_one(dimension):
    # P escapes with probability 1 - 1/e and has loss -1 otherwise; Q has loss 1.
    mechanism = SymmetricNoise.as_published(1.0)
    pair = mechanism.worst_case(dimension)
    epsilons = np.array([0.0, 0.5, 1.0, 3.0])
    result = sure(mechanism, pair, epsilon=epsilons, max_samples=10_000)
    forward = np.full(4, 1 - np.exp(-1))
    backward = np.maximum(1 - np.exp(epsilons - 1), 0.0)
    assert contains(result, [forward, backward])
    assert result.refutes(mechanism.claim)
    assert result.epsilon_lower(0.1) >= 3.0
    assert result.epsilon_upper(0.1) == np.inf


def test_a_pure_claim_with_equality_does_not_fall_to_rounding():
    """Half of all losses are epsilon itself, give or take the last bits."""
    wishart = SymmetrisedWishart.calibrated(0.7)
    for mechanism, pair in ((LaplaceSum(0.3), PAIR), (wishart, wishart.worst_case())):
        result = sure(
            mechanism,
            pair,
            epsilon=mechanism.claim.parameters["epsilon"],
            max_samples=5000,
        )
        assert result.delta_low[0] == 0
        assert not result.refutes(mechanism.claim)


@pytest.mark.parametrize(
    ("mechanism", "pair", "proposal"),
    [
        (GaussianSum(1 / 0.3), PAIR, "auto"),
        (GaussianSum(), PAIR, "auto"),
        # No dataset lies on the other side of nobody; translated releases do.
        (
            AnalyzeGauss.from_mu(0.5),
            AnalyzeGauss.from_mu(0.5).worst_case(),
            "translate",
        ),
    ],
    ids=["dataset, 0.3", "dataset, 1", "translated"],
)
def test_small_deltas_are_bounded_within_a_tenth(mechanism, pair, proposal):
    claim = mechanism.claim
    epsilon = claim.epsilon_at(1e-8)
    result = sure(mechanism, pair, epsilon=epsilon, proposal=proposal)
    truth = gaussian_profile(epsilon, claim.parameters["mu"])
    assert contains(result, truth)
    assert np.all(result.high_by_direction < 1.1 * truth)
    assert np.all(result.low_by_direction > 0.9 * truth)
    translated = proposal == "translate"
    assert len(result.assumptions) == translated
    assert len(result.upper_assumptions) >= 1


def test_a_mechanism_that_clips_is_tilted_by_copies_of_its_row():
    mechanism = AnalyzeGauss.from_mu(0.5)
    epsilon = GaussianDP(0.5).epsilon_at(1e-7)
    result = sure(
        mechanism,
        mechanism.worst_case(),
        epsilon=epsilon,
        proposal="auto",
        max_samples=50_000,
    )
    truth = gaussian_profile(epsilon, 0.5)
    assert contains(result, truth)
    # Only D' has the row, so only the way back can be tilted.
    assert result.low_by_direction[0, 0] == 0
    assert result.low_by_direction[1, 0] > 0.9 * truth


def test_given_datasets_serve_all_epsilons_and_no_check_is_drawn_twice():
    epsilons = np.array([2.5, 3.5])
    proposal = (np.array([-2.5]), np.array([3.5]))
    result = sure(GaussianSum(), epsilon=epsilons, proposal=proposal)
    truth = np.array([gaussian_profile(e, 1.0) for e in epsilons])
    assert contains(result, truth)
    assert np.all(result.high_by_direction < 1.15 * truth)
    assert all("another dataset (1 rows)" in each for each in result.proposals)
    assert result.epsilon_lower(truth[1] / 1.2) > 3.5
    assert result.epsilon_upper(truth[1] * 1.2) <= 3.5
    assert result.refutes(GaussianDP(0.95))
    assert not result.refutes(GaussianDP(1.0))
    drawn = []

    class Recorded(GaussianSum):
        def draw(self, data, size, *, rng):
            noise = rng.standard_normal(size)
            drawn.extend(noise.tolist())
            return np.sum(data) + noise

    loss_consistency(Recorded(), PAIR, confidence=SURE, max_samples=5000)
    assert len(set(drawn)) == len(drawn) > 5000


def test_bad_proposals_cost_width_and_not_validity():
    """Drawn towards the other side, releases contradict the order that is assumed."""
    truth = gaussian_profile(1.0, 1.0)
    for shift in (-1.0, -3.0, 8.0):
        proposal = (np.array([-shift]), np.array([1.0 + shift]))
        result = sure(GaussianSum(), epsilon=1.0, proposal=proposal, max_samples=20_000)
        assert contains(result, truth)


def test_an_order_disproved_late_ends_the_upper_bound(monkeypatch):
    """A pilot that saw too little: later releases exceed its ceiling."""
    monkeypatch.setattr("dpaudit.audit.layers.tilting.ceiling", lambda *a: 1e-3)
    result = sure(
        GaussianSum(), epsilon=1.0, proposal=(np.array([-1.0]), None), max_samples=1000
    )
    assert result.high_by_direction[0, 0] == 1.0
    assert result.low_by_direction[0, 0] <= gaussian_profile(1.0, 1.0)
    assert result.upper_assumptions == ()


def test_ceilings_bound_tilted_gaussians_and_bounded_supports_do_not_move():
    """Against the largest value on a dense grid of releases."""
    rng = np.random.default_rng(0)
    epsilon, shift = 3.0, 2.5

    def both(x):
        return x - 0.5, -shift * (x - 1) + shift**2 / 2

    bound = ceiling(*both(rng.normal(1 + shift, 1, 4000)), epsilon)
    largest = weighted_excess(*both(np.linspace(-10, 30, 400_001)), epsilon).max()
    assert largest <= bound <= 1.1 * largest
    mechanism = SymmetricNoise.as_published(1.0)
    result = sure(
        mechanism,
        mechanism.worst_case(),
        epsilon=1.0,
        proposal="translate",
        max_samples=2000,
    )
    assert contains(result, [[1 - np.exp(-1)], [0.0]])


def test_the_ceiling_needs_order_and_a_small_loss():
    losses, weights = np.array([0.0, 1.0, 2.0]), np.array([0.0, -1.0, -2.0])
    assert np.isfinite(ceiling(losses, weights, 0.5))
    assert ceiling(losses, weights, -0.5) == np.inf
    assert ceiling(losses, weights[::-1], 0.5) == np.inf
    # Equal losses with different weights: what comes next is bounded by the larger.
    tied = np.array([0.0, 2.0, 2.0 + 1e-12])
    assert ceiling(tied, np.array([0.0, -5.0, -1.0]), 0.5) >= 1 - np.exp(-1.5)


def test_results_narrow_step_by_step_and_repeat():
    def run():
        return list(
            white_box_steps(GaussianSum(), PAIR, epsilon=[0.2, 1.0], max_samples=3000)
        )

    steps, again = run(), run()
    assert steps[-1].samples == 3000
    assert len(steps) > 5
    for earlier, later in pairwise(steps):
        assert np.all(earlier.delta_low <= later.delta_low)
        assert np.all(earlier.delta_high >= later.delta_high)
    np.testing.assert_array_equal(steps[-1].delta_low, again[-1].delta_low)
    other = white_box(GaussianSum(), PAIR, epsilon=[0.2, 1.0], max_samples=3000, seed=1)
    assert np.any(other.estimate != steps[-1].estimate)


def test_epsilon_is_bounded_from_both_sides_and_goes_into_json():
    result = sure(GaussianSum(), epsilon=np.linspace(0, 3, 7), max_samples=20_000)
    truth = GaussianDP(1.0).epsilon_at(0.05)
    assert truth - 0.6 < result.epsilon_lower(0.05) <= truth
    assert truth <= result.epsilon_upper(0.05) < truth + 0.6
    assert result.epsilon_lower(0.9) == 0.0
    nothing = replace(result, low_by_direction=0 * result.low_by_direction)
    assert nothing.epsilon_lower(0.0) == 0.0
    assert result.epsilon_upper(1e-9) == np.inf
    result = white_box(GaussianSum(), PAIR, epsilon=1.0, max_samples=100)
    stored = json.loads(json.dumps(result.to_dict()))
    assert stored["relation"] == "replace-one"
    assert stored["delta_high"] == [result.delta_high[0]]
    assert "delta(1)" in str(result)


@pytest.mark.parametrize(
    ("mechanism", "pair"),
    [
        *((GaussianSum(), PAIR), (LaplaceSum(), PAIR)),
        (SymmetricNoise.as_published(1.0), None),
        (SymmetricNoise.as_published(1.0, relation="replace-one"), None),
        (SymmetrisedWishart.calibrated(1.0), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_true_losses_are_consistent(mechanism, pair):
    pair = pair or mechanism.worst_case()
    check = loss_consistency(mechanism, pair, confidence=SURE, max_samples=5000)
    assert check.consistent, check
    assert "no disagreement" in str(check)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_scaled_loss_is_caught(factor):
    check = loss_consistency(GaussianSum(factor=factor), PAIR, confidence=SURE)
    assert not check.consistent
    assert "INCONSISTENT" in str(check)


def test_losses_of_other_noise_sign_or_shape_are_caught():
    @dataclass(frozen=True)
    class Impostor(GaussianSum):
        def draw(self, data, size, *, rng):
            return np.sum(data) + rng.logistic(scale=0.55, size=size)

    assert not loss_consistency(Impostor(), PAIR, confidence=SURE).consistent

    class Lopsided(GaussianSum):
        def privacy_loss(self, releases, data, other):
            return super().privacy_loss(releases, data, other) + 1e-3

    check = loss_consistency(Lopsided(), PAIR, max_samples=100)
    assert "flip" in check.reason

    class Impossible(GaussianSum):
        def privacy_loss(self, releases, data, other):
            return np.full(len(releases), -np.inf)

    with pytest.raises(MechanismError, match="impossible"):
        white_box(Impossible(), PAIR, epsilon=1.0)
    assert "impossible" in loss_consistency(Impossible(), PAIR, max_samples=9).reason

    class Short(GaussianSum):
        def privacy_loss(self, releases, data, other):
            return super().privacy_loss(releases, data, other)[1:]

    refuses("shape", white_box, Short(), PAIR, epsilon=1.0, error=MechanismError)


def test_bad_arguments_are_named():
    mechanism = GaussianSum()
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        *(({"epsilon": -1.0}, "epsilon"), ({"epsilon": []}, "epsilon")),
        ({"epsilon": [1.0, 1.0]}, "epsilon"),
        ({"epsilon": 1.0, "confidence": 1.0}, "confidence"),
        ({"epsilon": 1.0, "max_samples": 0}, "max_samples"),
        ({"epsilon": 1.0, "proposal": "magic"}, "proposal"),
        ({"epsilon": 1.0, "proposal": "translate"}, "statistic"),
    )
    for options, name in cases:
        refuses(name, white_box, mechanism, PAIR, **options)
    refuses("privacy_loss", white_box, lambda data, rng: 0.0, PAIR, epsilon=1.0)
    add_remove = replace(mechanism, relation=Relation.ADD_REMOVE)
    refuses("under add-remove", white_box, add_remove, PAIR, epsilon=1.0)


# How the error is shared among the intervals: equalities, without chance
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


@pytest.mark.parametrize("epsilons", [[1.0], [0.0, 0.5, 1.5]])
@pytest.mark.parametrize("proposal", [None, "auto"])
def test_white_box_intervals_share_alpha_over_directions_and_epsilons(
    spent, epsilons, proposal
):
    options = {"confidence": 0.97, "max_samples": 100, "proposal": proposal}
    white_box(GaussianSum(), PAIR, epsilon=epsilons, **options)
    assert spent == pytest.approx([0.03 / (2 * len(epsilons))] * 2 * len(epsilons))


def test_consistency_shares_alpha_over_sides_and_thresholds(spent):
    found = loss_consistency(GaussianSum(), PAIR, confidence=0.97, max_samples=100)
    k = len(found.threshold)
    assert k > 3
    assert spent == pytest.approx([0.03 / (2 * k)] * 2 * k)
