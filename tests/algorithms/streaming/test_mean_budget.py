"""The accountant of Algorithm 5 against numerical composition; the paper's 12 and 8.

The oracle is the privacy loss distribution of dp_accounting, discretised so that it
errs upwards; nothing here is random.
"""

import numpy as np
import pytest
from budget_oracles import composed_delta, laplace_mu
from dp_accounting.pld import privacy_loss_distribution as pld
from refusals import refuses

from dpaudit.algorithms.streaming.mean_budget import (
    CalibratedSplit,
    MeanNoise,
    PublishedSplit,
    SplitWithConstant8,
    laplace_scale,
)
from dpaudit.algorithms.streaming.thresholded_counts import CountNoise
from dpaudit.gaussian import classical_mu, gaussian_delta

DELTAS = [1e-12, 1e-6, 1e-3, 0.1, 0.9]


@pytest.mark.parametrize("scale", [0.05, 0.5, 3.0, 100.0])
def test_laplace_noise_is_as_private_as_its_mu(scale):
    epsilons = np.linspace(0, 1 / scale, 400)
    exact = -np.expm1((epsilons - 1 / scale) / 2)
    bound = gaussian_delta(epsilons, laplace_mu(scale))
    assert (exact <= bound + 1e-15).all()
    # At 0 the two agree: no smaller mu would do.
    assert bound[0] == pytest.approx(exact[0], rel=1e-9)
    assert laplace_scale(laplace_mu(scale)) == pytest.approx(scale)


@pytest.mark.parametrize(("dimension", "uses"), [(1, 1), (3, 1), (10, 1), (2, 3)])
def test_the_accountant_is_safe_and_not_far_off(dimension, uses):
    noise = MeanNoise(CountNoise.of(15.0, 1e-9), 0.3)
    step = 1e-3
    counts = pld.from_laplace_mechanism(15.0, value_discretization_interval=step)
    means = pld.from_gaussian_mechanism(1 / 0.3, value_discretization_interval=step)
    whole = counts.self_compose(2 * dimension * uses).compose(
        means.self_compose(uses) if uses > 1 else means
    )
    for epsilon in (0.3, 1.0, 2.0):
        ours = composed_delta(epsilon, noise=noise, dimension=dimension, uses=uses)
        escaped = dimension * uses * 1e-9
        theirs = whole.get_delta_for_epsilon(epsilon) + escaped
        # Theirs is too large by what a rounding of losses by 1e-3 makes.
        assert theirs <= ours * 1.05
        # Ours takes 1.25 of the Laplace mu of many counts.
        wider = MeanNoise(CountNoise.of(15.0 / 1.35, 1e-9), 0.3 * 1.35)
        assert ours <= composed_delta(
            epsilon, noise=wider, dimension=dimension, uses=uses
        )
        if epsilon <= 1:
            assert ours <= 3 * theirs


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(("dimension", "uses"), [(1, 1), (20, 1), (1000, 4)])
def test_the_calibrated_split_spends_its_budget_and_no_more(
    epsilon, delta, dimension, uses
):
    noise = CalibratedSplit(epsilon, delta, uses=uses).noise(dimension)
    spent = composed_delta(epsilon, noise=noise, dimension=dimension, uses=uses)
    assert spent <= delta * (1 + 1e-9)
    assert spent >= delta * (1 - 1e-6)


def test_the_shares_are_what_is_asked_for():
    split = CalibratedSplit(1.0, 1e-6, histogram_share=0.3, escape_share=0.2, uses=2)
    noise = split.noise(5)
    histograms = 2 * 10 * laplace_mu(noise.counts.scale) ** 2
    assert histograms / (histograms + 2 * noise.mu**2) == pytest.approx(0.3)
    assert 10 * noise.counts.escape == pytest.approx(0.2 * 1e-6)


def test_more_uses_cost_their_root():
    one, four = (CalibratedSplit(1.0, 1e-6, uses=k).noise(4) for k in (1, 4))
    assert one.mu / four.mu == pytest.approx(2.0, rel=1e-3)


def test_the_published_split_is_the_papers():
    epsilon, delta, d = 0.7, 1e-5, 6
    noise = PublishedSplit(epsilon, delta).noise(d)
    each = epsilon / (4 * np.sqrt(2 * d * np.log(4 / delta)))
    assert noise.counts.scale == pytest.approx(2 / each)
    assert noise.counts.threshold == pytest.approx(
        1 + 2 / each * np.log(2 / (delta / (4 * d)))
    )
    assert noise.mu == pytest.approx(epsilon / 2 / np.sqrt(2 * np.log(2.5 / delta)))
    # Deviation = range sqrt(d)/m/mu = 12 K sqrt(Lambda) log^a sqrt(2 d log(2.5/delta))
    # /(epsilon m), in units of K sqrt(Lambda) log^a/m.
    assert 6 * np.sqrt(d) / noise.mu == pytest.approx(
        12 * np.sqrt(2 * d * np.log(2.5 / delta)) / epsilon
    )
    eight = PublishedSplit(epsilon, delta, constant=8.0).noise(d)
    assert eight.mu == pytest.approx(1.5 * classical_mu(epsilon / 2, delta / 2))


@pytest.mark.parametrize("constant", [12.0, 8.0])
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("dimension", [1, 20, 1000])
def test_the_published_promise_holds_in_the_papers_range(constant, delta, dimension):
    for epsilon in (0.01, 0.3, 0.899):
        noise = PublishedSplit(epsilon, delta, constant).noise(dimension)
        spent = composed_delta(epsilon, noise=noise, dimension=dimension)
        assert spent <= 0.15 * delta


@pytest.mark.parametrize(("constant", "limit"), [(8.0, 33.6), (12.0, 115.3)])
def test_the_mean_alone_breaks_the_published_promise_at_large_epsilon(constant, limit):
    for epsilon, kept in ((limit - 0.1, True), (limit + 0.1, False)):
        mu = PublishedSplit(epsilon, 1e-5, constant).noise(1).mu
        assert (gaussian_delta(epsilon, mu) <= 1e-5) == kept


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
@pytest.mark.parametrize("delta", DELTAS[:4])
def test_without_slack_the_8_breaks_the_promise_everywhere(epsilon, delta):
    right = CalibratedSplit(epsilon, delta).noise(1)
    wrong = SplitWithConstant8(epsilon, delta).noise(1)
    assert wrong.counts == right.counts
    assert wrong.mu == pytest.approx(1.5 * right.mu)
    assert gaussian_delta(epsilon, wrong.mu) > 1.05 * delta


def test_noise_is_of_one_dimension_or_more():
    for make in (CalibratedSplit, PublishedSplit):
        refuses("dimension must be", make(1.0, 1e-5).noise, 0)
