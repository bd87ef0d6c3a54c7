"""Report-noisy-max against quadrature over the largest value, and closed forms.

Type-I error: 1e-9 per sampler test, fewer than 20 of them, all seeded.
"""

from itertools import combinations

import numpy as np
import pytest
import textbook_oracles
from refusals import refused
from scipy import stats

from dpaudit.algorithms.textbook import noisy_max
from dpaudit.algorithms.textbook.counts import neighbours_with

ROWS = np.array([[1, 0, 1], [1, 0, 0], [1, 0, 1], [1, 1, 0]], dtype=float)
ANSWERS = ROWS.sum(axis=0)
BOTH = [noisy_max.NoisyMax1, noisy_max.NoisyMax2]


def laplace_winner(answers, scale):
    """Return the probability of each place, by quadrature."""
    laws = [stats.laplace(loc=x, scale=scale) for x in answers]

    def wins(place):
        def integrand(z):
            others = [law.cdf(z) for i, law in enumerate(laws) if i != place]
            return laws[place].pdf(z) * np.prod(others, axis=0)

        return textbook_oracles.integrate(integrand, answers, (scale,))

    return np.array([wins(place) for place in range(len(answers))])


def exponential_winner(answers, scale):
    """Return the probability of each place, by inclusion and exclusion.

    P(x_i + e > all others) = sum over sets S of the others of (-1)^|S| times the
    integral of the density of the winner over z > max(all answers), as
    exp(-(z - x_j)/scale) for j in S.
    """
    top = max(answers)

    def wins(place):
        others = [x for i, x in enumerate(answers) if i != place]
        total = 0.0
        for size in range(len(others) + 1):
            for chosen in combinations(others, size):
                exponent = sum(top - x for x in (answers[place], *chosen)) / scale
                total += (-1) ** size * np.exp(-exponent) / (size + 1)
        return total

    return np.array([wins(place) for place in range(len(answers))])


WINNER = {noisy_max.NoisyMax1: laplace_winner, noisy_max.NoisyMax2: exponential_winner}


@pytest.mark.parametrize("epsilon", [0.1, 3.0])
@pytest.mark.parametrize("kind", BOTH)
def test_places_have_the_right_probabilities(kind, epsilon):
    mechanism = kind(epsilon, queries=3)
    probabilities = WINNER[kind](ANSWERS, 2 / epsilon)
    assert probabilities.sum() == pytest.approx(1.0, rel=1e-12)
    releases = textbook_oracles.draws(mechanism, ROWS)
    counts = [np.count_nonzero(releases == place) for place in range(3)]
    textbook_oracles.assert_frequencies(counts, probabilities, textbook_oracles.SIZE)


def first_wins(mechanism):
    pair = mechanism.worst_case()
    one, two = (
        WINNER[type(mechanism)](rows.sum(axis=0), mechanism.scale)[0]
        for rows in (pair.data, pair.neighbour)
    )
    return np.log(one / two)


@pytest.mark.parametrize("queries", [2, 3, 5])
def test_the_exponential_attains_its_claim(queries):
    mechanism = noisy_max.NoisyMax2(0.1, queries=queries)
    assert first_wins(mechanism) == pytest.approx(0.1, rel=1e-9)


def gaps(answers):
    """Return neighbours of these answers, moved up and down in turn."""
    moved = [max(x + (-1) ** i, 0) for i, x in enumerate(answers)]
    return neighbours_with(answers, moved)


@pytest.mark.parametrize("answers", [[3, 0, 1, 2], [0, 0, 0], [9, 1, 3, 5, 5]])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("kind", BOTH)
def test_losses_of_places(kind, epsilon, answers):
    pair = gaps(answers)
    mechanism = kind(epsilon, queries=len(answers))
    one, two = (
        WINNER[kind](rows.sum(axis=0), mechanism.scale)
        for rows in (pair.data, pair.neighbour)
    )
    places = np.arange(float(len(answers)))
    loss = mechanism.privacy_loss(places[::-1], pair.data, pair.neighbour)
    np.testing.assert_allclose(loss[::-1], np.log(one / two), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", BOTH)
def test_a_place_that_there_is_not_has_no_loss(kind):
    mechanism = kind(queries=3)
    nowhere = np.array([-1.0, 0.5, 3.0, np.nan, np.inf])
    assert np.isnan(mechanism.privacy_loss(nowhere, ROWS, ROWS[1:])).all()


@pytest.mark.parametrize(
    ("kind", "law"),
    [(noisy_max.NoisyMax3, stats.laplace), (noisy_max.NoisyMax4, stats.expon)],
)
def test_the_largest_value_has_the_right_distribution(kind, law):
    mechanism = kind(0.5, queries=3)

    def cdf(y):
        return np.prod([law(loc=x, scale=4.0).cdf(y) for x in ANSWERS], axis=0)

    textbook_oracles.assert_distribution(
        textbook_oracles.draws(mechanism, ROWS, size=20_000), cdf
    )


@pytest.mark.parametrize("queries", [2, 5])
def test_the_largest_laplace_value_loses_half_of_epsilon_per_query(queries):
    mechanism = noisy_max.NoisyMax3(0.1, queries=queries)
    pair = mechanism.worst_case()
    one, two = (stats.laplace(loc=x, scale=20.0).cdf(0.0) ** queries for x in (0, 1))
    assert np.log(one / two) == pytest.approx(mechanism.true_epsilon, rel=1e-12)
    at = np.linspace(-300, 300, 2001)
    loss = mechanism.privacy_loss(at, pair.data, pair.neighbour)
    assert np.abs(loss).max() <= mechanism.true_epsilon + 1e-12
    for other in mechanism.canonical_pairs():
        losses = mechanism.privacy_loss(at, other.data, other.neighbour)
        assert np.abs(losses).max() <= mechanism.true_epsilon + 1e-12


@pytest.mark.parametrize("epsilon", [1e-8, 700.0, 1e5])
def test_the_loss_far_above_all_answers_is_that_of_the_nearest(epsilon):
    mechanism = noisy_max.NoisyMax3(epsilon, queries=2)
    pair = neighbours_with([0, 0], [1, 1])
    releases = np.array([2.0, 3.0]) + 40 * mechanism.scale
    loss = mechanism.privacy_loss(releases, pair.data, pair.neighbour)
    np.testing.assert_allclose(loss, -1 / mechanism.scale, rtol=1e-9, atol=1e-12)


def test_the_density_is_the_derivative_of_the_distribution():
    mechanism = noisy_max.NoisyMax3(0.5, queries=3)
    at = np.array([-70.0, -3.3, 0.4, 1.5, 2.6, 9.0, 80.0])
    other = np.array([[0.3, 0.9, 0.0]])

    def log_density(centres):
        laws = [stats.laplace(loc=x, scale=4.0) for x in centres]
        total = 0.0
        for place, law in enumerate(laws):
            rest = [each.cdf(at) for i, each in enumerate(laws) if i != place]
            total = total + law.pdf(at) * np.prod(rest, axis=0)
        return np.log(total)

    np.testing.assert_allclose(
        mechanism.privacy_loss(at, ROWS, other),
        log_density(ANSWERS) - log_density(other[0]),
        rtol=1e-10,
        atol=1e-12,
    )


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 2.0])
def test_some_exponential_values_are_impossible_on_the_neighbour(epsilon):
    mechanism = noisy_max.NoisyMax4(epsilon)
    assert mechanism.true_epsilon == np.inf
    pair = mechanism.worst_case()
    scale, largest = 2 / epsilon, pair.neighbour.sum(axis=0).max()
    one, two = (
        textbook_oracles.draws(mechanism, rows) for rows in (pair.data, pair.neighbour)
    )
    assert mechanism.in_support(one, pair.data).all()
    assert mechanism.in_support(two, pair.neighbour).all()
    chance = -np.expm1(-1 / scale) * (-np.expm1(-largest / scale)) ** 4
    escaped = np.count_nonzero(~mechanism.in_support(one, pair.neighbour))
    assert np.count_nonzero(two < largest) == 0
    textbook_oracles.assert_frequencies([escaped], [chance], textbook_oracles.SIZE)
    if epsilon == 0.1:
        assert chance > 0.047


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_losses_of_the_largest_exponential_value(epsilon):
    mechanism = noisy_max.NoisyMax4(epsilon, queries=3)
    other = ROWS - np.array([[1, 0, 0], *np.zeros((3, 3))])
    at = np.array([4.0001, 4.5, 6.0, 40.0, 900.0])

    def log_density(answers):
        laws = [stats.expon(loc=x, scale=mechanism.scale) for x in answers]
        logs = [
            law.logpdf(at) + sum(each.logcdf(at) for each in laws if each is not law)
            for law in laws
        ]
        return np.logaddexp.reduce(logs)

    loss = mechanism.privacy_loss(at, ROWS, other)
    expected = log_density(ANSWERS) - log_density(other.sum(axis=0))
    np.testing.assert_allclose(loss, expected, rtol=1e-9, atol=1e-11)
    edges = mechanism.privacy_loss(np.array([1.0, 3.5, 4.0]), ROWS, other)
    assert np.isnan(edges[0])
    assert np.isneginf(edges[1])
    assert np.isfinite(edges[2])  # it stands for what rounds to it
    assert np.isposinf(mechanism.privacy_loss(np.array([3.5]), other, ROWS))[0]


def test_the_loss_is_infinite_where_the_support_ends():
    mechanism = noisy_max.NoisyMax4()
    pair = mechanism.worst_case()
    releases = textbook_oracles.draws(mechanism, pair.data)
    loss = mechanism.privacy_loss(releases, pair.data, pair.neighbour)
    inside = mechanism.in_support(releases, pair.neighbour)
    np.testing.assert_array_equal(np.isfinite(loss), inside)
    assert not inside.all()
    assert np.isposinf(loss[~inside]).all()


test_bad_arguments_are_named = refused(
    (lambda: noisy_max.NoisyMax1(queries=1), "queries must be at least 2"),
    (lambda: noisy_max.NoisyMax3(queries=0), "queries must be"),
    (lambda: noisy_max.NoisyMax2().answers(np.ones((2, 3))), "5 columns, got 3"),
    (lambda: noisy_max.NoisyMax2().answers(np.ones((0, 5))), "n >= 1"),
    (lambda: noisy_max.NoisyMax2().answers(np.ones(5)), r"shape \(n, d\)"),
    (lambda: noisy_max.NoisyMax4().worst_case(4), "dimension must be"),
)
