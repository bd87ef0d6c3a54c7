"""Random batches, the noise that they need, and the likelihood of a noisy sum.

Type-I error: 1e-9 for each test of a law; 1e-8 in all, at fixed seeds.
"""

from itertools import product

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.rdp import RdpAccountant
from scipy import stats
from seeded import rng

from dpaudit import ApproxDP, GaussianDP, InputError, PureDP, UnsupportedError
from dpaudit.algorithms.shared import batch_mixtures
from dpaudit.algorithms.shared.batches import WithReplacement, poisson_batches
from dpaudit.algorithms.shared.subsampling import noise_multiplier, subsampled_delta
from dpaudit.gaussian import gaussian_delta, gaussian_mu

TYPE_I_ERROR = 1e-9


def members(batches, count):
    """Say which rows are in which batch, shape (size, count)."""
    inside = np.zeros((len(batches), count + 1), dtype=int)
    np.add.at(inside, (np.arange(len(batches))[:, None], batches), 1)
    return inside[:, :count]


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.9])
def test_poisson_batches_are_independent_coins(rate):
    count, size = 5, 20_000
    batches = poisson_batches(count, rate, size, rng=rng(1))
    inside = members(batches, count)
    assert inside.max() == 1
    # All 2^5 batches at once, those that are rare together.
    codes = inside @ 2 ** np.arange(count)
    bits = np.array(list(product((0, 1), repeat=count)))[:, ::-1]
    expected = size * np.prod(np.where(bits, rate, 1 - rate), axis=1)
    seen = np.bincount(codes, minlength=2**count)
    rare = expected < 10
    seen, expected = (
        np.append(each[~rare], each[rare].sum()) for each in (seen, expected)
    )
    if expected[-1] < 5:
        seen, expected = (
            np.append(each[:-2], each[-2:].sum()) for each in (seen, expected)
        )
    assert stats.chisquare(seen, expected).pvalue > TYPE_I_ERROR


def test_batches_are_filled_up_with_no_row_and_every_row_may_be_in_one():
    batches = poisson_batches(7, 0.3, 50, rng=rng(2))
    lengths = (batches < 7).sum(axis=1)
    assert batches.shape == (50, lengths.max())
    for batch, length in zip(batches, lengths, strict=True):
        assert np.all(np.diff(batch[:length]) > 0)
        assert np.all(batch[length:] == 7)
    assert poisson_batches(0, 0.3, 4, rng=rng()).shape == (4, 0)
    assert np.array_equal(poisson_batches(3, 1.0, 2, rng=rng()), [[0, 1, 2]] * 2)
    assert (poisson_batches(10, 1e-9, 3, rng=rng()) < 10).sum() == 0
    generator, rate, trials = rng(5), 0.3, 4000
    drawn = [poisson_batches(3, rate, 1, rng=generator) for _ in range(trials)]
    seen = sum(members(batch, 3)[0] for batch in drawn)
    for count in seen:
        assert stats.binomtest(int(count), trials, rate).pvalue > TYPE_I_ERROR


def test_places_are_filled_uniformly():
    rows = np.arange(6.0)[:, np.newaxis]
    draw = WithReplacement(batch_size=3).drawing(rows, rng(3))
    batches = draw(5000)[..., 0].astype(int)
    assert batches.shape == (5000, 3)
    codes = batches @ 6 ** np.arange(3)
    seen = np.bincount(codes, minlength=216)
    assert stats.chisquare(seen).pvalue > TYPE_I_ERROR


@pytest.mark.parametrize("steps", [1, 30])
def test_without_subsampling_the_noise_is_gaussian(steps):
    multiplier = noise_multiplier(1.0, 1e-5, rate=1.0, steps=steps)
    exact = np.sqrt(steps) / gaussian_mu(1.0, 1e-5)
    assert exact * (1 - 1e-6) <= multiplier <= exact * 1.003


def test_a_start_takes_its_part_and_rare_rows_need_hardly_any_noise():
    mu = gaussian_mu(1.0, 1e-3)
    multiplier = noise_multiplier(
        1.0, 1e-3, rate=1.0, steps=10, start=GaussianDP(0.6 * mu)
    )
    exact = np.sqrt(10) / (0.8 * mu)
    assert exact * (1 - 1e-6) <= multiplier <= exact * 1.004
    after_pure = noise_multiplier(1.0, 1e-3, rate=1.0, steps=10, start=PureDP(0.3))
    split = np.sqrt(10) / gaussian_mu(0.7, 1e-3)
    assert np.sqrt(10) / mu < after_pure <= split * 1.003
    assert noise_multiplier(1.0, 1e-2, rate=1e-4, steps=3) < 0.11


@pytest.mark.parametrize(
    ("rate", "multiplier"),
    [(0.1, 0.7), (0.01, 1.5), (0.1, 0.02)],  # the last has losses beyond the grid
)
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_one_step_is_the_closed_form(rate, multiplier, epsilon):
    # With the row the law is a mixture, and (1 - q) P + q Q > e^eps P if and only if
    # Q > e^eps' P, e^eps' = 1 + (e^eps - 1)/q; the excess is q times that of Q.
    inner = np.log1p(np.expm1(epsilon) / rate)
    exact = rate * float(gaussian_delta(inner, 1 / multiplier))
    found = subsampled_delta(epsilon, multiplier, rate=rate, steps=1)
    assert exact <= found <= exact * 1.02 + 1e-12


@pytest.mark.parametrize("steps", [2, 5, 40])
def test_a_row_that_hardly_any_noise_hides_is_seen_if_any_step_takes_it(steps):
    found = subsampled_delta(1.0, 0.02, rate=0.1, steps=steps)
    seen = 1 - 0.9**steps
    assert seen <= found <= seen * (1 + 1e-6)


@pytest.mark.parametrize(
    ("epsilon", "multiplier", "rate", "steps", "mu"),
    [(0.1, 0.9, 0.01, 1000, 0.0), (0.7, 1.2, 0.05, 200, 0.2), (0.1, 3.0, 0.3, 1, 0.3)],
)
def test_deltas_are_those_of_dp_accounting(epsilon, multiplier, rate, steps, mu):
    # On the same grid, but for where it ends.
    options = {"value_discretization_interval": rate / multiplier / 32}
    law = privacy_loss_distribution.from_gaussian_mechanism(
        multiplier, sampling_prob=rate, **options
    ).self_compose(steps)
    given = {"rate": rate, "steps": steps}
    if mu:
        start = privacy_loss_distribution.from_gaussian_mechanism(1 / mu, **options)
        law, given["start"] = law.compose(start), GaussianDP(mu)
    found = subsampled_delta(epsilon, multiplier, **given)
    assert found == pytest.approx(law.get_delta_for_epsilon(epsilon), rel=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rate"),
    [(1e-3, 1e-9, 0.01), (0.01, 1e-6, 0.3), (0.2, 1e-7, 0.01)],
)
def test_the_noise_is_not_lost_in_the_grid(rate, epsilon, delta):
    # What it keeps by a grid eight times finer: all of the claim, and not much more.
    multiplier = noise_multiplier(epsilon, delta, rate=rate, steps=50)
    law = privacy_loss_distribution.from_gaussian_mechanism(
        multiplier,
        value_discretization_interval=rate / multiplier / 256,
        sampling_prob=rate,
    )
    true = law.self_compose(50).get_epsilon_for_delta(delta)
    assert 0.99 * epsilon < true <= epsilon


@pytest.mark.parametrize(
    ("replaced", "moved"), [(None, 1), ("opposite", 2), ("orthogonal", 2**0.5)]
)
@pytest.mark.parametrize(("rate", "multiplier"), [(1e-9, 1e3), (1e-6, 100.0)])
def test_rare_rows_lose_what_the_central_limit_says(rate, multiplier, replaced, moved):
    mu = moved * rate * np.sqrt(1000) / multiplier
    given = {"rate": rate, "steps": 1000, "replaced": replaced}
    found = subsampled_delta(mu, multiplier, **given) - 1.1e-12
    assert found == pytest.approx(float(gaussian_delta(mu, mu)), rel=5e-3)


@pytest.mark.parametrize(
    ("replaced", "moved"), [("opposite", 2), ("orthogonal", 2**0.5)]
)
@pytest.mark.parametrize("steps", [1, 30])
def test_a_replaced_row_that_is_always_read_moves_a_normal_law(steps, replaced, moved):
    mu = gaussian_mu(0.5, 1e-6)
    multiplier = np.sqrt(steps) * moved / mu
    found = subsampled_delta(0.5, multiplier, rate=1.0, steps=steps, replaced=replaced)
    assert 1e-6 <= found <= 1.003e-6
    needed = noise_multiplier(0.5, 1e-6, rate=1.0, steps=steps, replaced=replaced)
    assert multiplier * (1 - 1e-9) <= needed <= 1.002 * multiplier


def divergence(epsilon, rate, u, v):
    """That of (1 - q) N(0) + q N(u) from the same with v, by the midpoint rule."""
    grid = np.arange(-8, 8, 0.025) + 0.0125
    x, y = grid[:, np.newaxis], grid
    none = np.exp(-(x**2 + y**2) / 2)
    p, q = (
        (1 - rate) * none
        + rate * np.exp(-((x - each[0]) ** 2 + (y - each[1]) ** 2) / 2)
        for each in (u, v)
    )
    excess = np.maximum(p - np.exp(epsilon) * q, 0.0)
    return float(excess.sum()) * 0.025**2 / (2 * np.pi)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("rate", [0.1, 0.6])
def test_no_two_terms_lose_more_than_the_pair_that_dominates(rate, epsilon):
    # Terms up to the length 1.6 sigma, at all angles, against the accountant; and the
    # pairs that attain it.
    length = 1.6
    most = {
        replaced: subsampled_delta(
            epsilon, 1 / length, rate=rate, steps=1, replaced=replaced
        )
        for replaced in ("opposite", "orthogonal")
    }
    for share, other, angle in product((0.3, 1.0), (0.6, 1.0), (0.5, 1.6, 2.4, np.pi)):
        direction = np.array([np.cos(angle), np.sin(angle)])
        u, v = length * share * np.eye(2)[0], length * other * direction
        found = divergence(epsilon, rate, u, v)
        assert found <= most["opposite"] + 1e-5
        inner = share * other * np.cos(angle)
        if -inner <= np.sqrt((1 - share**2) * (1 - other**2)):
            assert found <= most["orthogonal"] + 1e-5
    u, v = length * np.eye(2)
    for replaced, replacement in (("opposite", -u), ("orthogonal", v)):
        found = divergence(epsilon, rate, u, replacement)
        assert found == pytest.approx(most[replaced], rel=2e-3)
    assert most["orthogonal"] < 0.99 * most["opposite"]


def test_noise_at_the_parameters_of_the_paper():
    # A replaced row costs up to 2 or sqrt 2 times as much as one that is added; the
    # accountant of Renyi divergences is above.
    options = {"rate": 0.01, "steps": 2000}
    for replaced, expected in (("opposite", 1.697), ("orthogonal", 1.362)):
        multiplier = noise_multiplier(0.8, 2000**-0.5, **options, replaced=replaced)
        assert multiplier == pytest.approx(expected, rel=2e-3)
    multiplier = noise_multiplier(0.8, 2000**-0.5, **options)
    assert np.isclose(multiplier, 1.0751, rtol=2e-3)
    step = PoissonSampledDpEvent(0.01, GaussianDpEvent(multiplier))
    accountant = RdpAccountant().compose(SelfComposedDpEvent(step, 2000))
    assert accountant.get_delta(0.8) > 2000**-0.5
    found = subsampled_delta(0.8, multiplier, rate=0.01, steps=2000)
    assert 0.98 * 2000**-0.5 < found <= 2000**-0.5


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"epsilon": 0.0}, InputError, "epsilon must be"),
        ({"delta": 1.0}, InputError, "delta must be"),
        ({"rate": 1.1}, InputError, "rate must be at most 1"),
        ({"steps": 0}, InputError, "steps must be an integer >= 1"),
        ({"start": PureDP(2.0)}, InputError, "start must leave some"),
        ({"start": GaussianDP(30.0)}, InputError, "start must leave some"),
        ({"start": ApproxDP(0.1, 1e-9)}, UnsupportedError, "GaussianDP or a PureDP"),
        ({"delta": 1e-12}, InputError, "delta must be more than 1.03e-12 for 3 steps"),
        (
            {"start": GaussianDP(gaussian_mu(1.0, 1e-5) * (1 - 1e-12))},
            InputError,
            "start must leave more .* is lost in a grid of 65536 privacy losses",
        ),
    ],
)
def test_bad_input_is_named(change, error, message):
    options = {"epsilon": 1.0, "delta": 1e-5, "rate": 0.1, "steps": 3} | change
    with pytest.raises(error, match=message):
        noise_multiplier(**options)


def test_the_numbers_of_rows_are_binomial_or_multinomial():
    law = batch_mixtures.poisson_numbers(np.array([4, 0, 2]), 0.3)
    assert law.numbers.shape == (15, 3)
    for numbers, log_weight in zip(law.numbers, law.log_weights, strict=True):
        expected = stats.binom.logpmf(numbers, [4, 0, 2], 0.3).sum()
        assert np.isclose(log_weight, expected)
    many = batch_mixtures.poisson_numbers(np.array([5000, 1]), 0.01)
    assert len(many.numbers) < 500
    assert np.isclose(np.exp(many.log_weights).sum(), 1, atol=1e-12)
    counts = np.array([4, 0, 2, 3])
    law = batch_mixtures.multinomial_numbers(counts, 3)
    assert np.all(law.numbers.sum(axis=1) == 3)
    assert np.all(law.numbers[:, 1] == 0)
    expected = stats.multinomial.logpmf(law.numbers, 3, counts / 9)
    assert np.allclose(law.log_weights, expected)
    assert np.isclose(np.exp(law.log_weights).sum(), 1, atol=1e-12)
    with pytest.raises(UnsupportedError, match="at most 20000 terms"):
        batch_mixtures.poisson_numbers(np.array([900, 900, 900]), 0.5)
    with pytest.raises(UnsupportedError, match="at most 20000 terms"):
        batch_mixtures.multinomial_numbers(np.array([9, 9, 9]), 400)
