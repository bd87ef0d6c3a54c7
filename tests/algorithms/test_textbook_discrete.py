"""Randomised response, truncated geometric noise, RAPPOR: finitely many outputs.

Type-I error: 1e-9 per sampler test, fewer than 20 of them, all seeded.
"""

from fractions import Fraction
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
from refusals import refused
from textbook_oracles import SIZE, assert_frequencies, draws

from dpaudit import Pair, PureDP, UnsupportedError
from dpaudit.algorithms.textbook.counts import TruncatedGeometric
from dpaudit.algorithms.textbook.randomised_response import (
    OneTimeRappor,
    RandomisedResponse,
    Rappor,
)


def divergence(one, two, epsilon):
    """Return the larger hockey-stick divergence, both ways round."""
    return max(
        np.maximum(p - np.exp(epsilon) * q, 0).sum()
        for p, q in ((one, two), (two, one))
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("bit", [0.0, 1.0])
def test_the_truth_is_told_with_its_probability(epsilon, bit):
    mechanism = RandomisedResponse(epsilon)
    releases = draws(mechanism, [bit])
    true = np.exp(epsilon) / (1 + np.exp(epsilon))
    counts = [np.count_nonzero(releases == bit), np.count_nonzero(releases == 1 - bit)]
    assert_frequencies(counts, [true, 1 - true], SIZE)


@pytest.mark.parametrize("epsilon", [30.0, 36.0, 38.0, 700.0, 1e4])
def test_nearly_always_true_is_not_always(epsilon):
    # All uniform numbers that could lie.
    last = SimpleNamespace(random=lambda size: 1 - np.arange(1.0, size + 1) * 2**-53)
    lies = RandomisedResponse(epsilon).draw([1.0], 1000, rng=last) == 0
    share = np.count_nonzero(lies) * 2**-53
    assert 0 <= share - np.exp(-epsilon) / (1 + np.exp(-epsilon)) <= 2**-53
    assert share > 0


def test_randomised_response_is_its_claim_and_wrong_logarithms_break_small_ones():
    mechanism = RandomisedResponse(0.7)
    pair = mechanism.worst_case()
    true = mechanism.truth
    loss = mechanism.privacy_loss(np.array([0.0, 1.0]), pair.data, pair.neighbour)
    np.testing.assert_allclose(
        loss, [np.log(true / (1 - true)), np.log((1 - true) / true)], rtol=1e-12
    )
    assert np.abs(loss).max() == pytest.approx(mechanism.true_epsilon, rel=1e-12)
    exact = mechanism.exact_claim(pair)
    for at in (0.0, 0.3, 0.7):
        found = divergence(np.array([true, 1 - true]), np.array([1 - true, true]), at)
        assert float(exact.delta_at(at)) == pytest.approx(found, abs=1e-12)
    same = mechanism.exact_claim(Pair([0.1], [0.2]))
    assert same.delta_at(0.0) == 0
    assert TruncatedGeometric(0.1).true_epsilon == pytest.approx(np.log(9 / 8))
    assert TruncatedGeometric(0.1).true_epsilon > 0.1
    assert TruncatedGeometric(1.0).true_epsilon < 1.0


def geo_sample_counts(k, n, c):
    """Return the numbers F(z) and the denominator of GeoSample, whole numbers."""
    base = 2**k
    denominator = (2 * base + 1) * (base + 1) ** (n - 1)
    up_to = []
    for z in range(n):
        if z < c:
            up_to.append(base ** (c - z) * (base + 1) ** (n - c + z))
        else:
            rest = base ** (z - c + 1) * (base + 1) ** (n - 1 - z + c)
            up_to.append(denominator - rest)
    return [*up_to, denominator], denominator


@pytest.mark.parametrize(("epsilon", "k"), [(0.1, 3), (0.02, 5), (1.0, 1), (2.0, 0)])
@pytest.mark.parametrize("people", [1, 5, 8])
def test_the_distribution_is_that_of_geo_sample(epsilon, k, people):
    mechanism = TruncatedGeometric(epsilon, people=people)
    for count in range(people + 1):
        up_to, denominator = geo_sample_counts(k, people, count)
        exact = [float(Fraction(f, denominator)) for f in np.array(up_to, dtype=object)]
        np.testing.assert_allclose(
            np.cumsum(mechanism.distribution(count)), exact, rtol=1e-12
        )


@pytest.mark.parametrize("count", [0, 2, 5])
def test_counts_have_their_distribution(count):
    mechanism = TruncatedGeometric()
    releases = draws(mechanism, [1.0] * count + [0.0, 0.4])
    counts = [np.count_nonzero(releases == z) for z in range(6)]
    assert sum(counts) == SIZE
    assert_frequencies(counts, mechanism.distribution(count), SIZE)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
def test_geometric_truth(epsilon):
    mechanism = TruncatedGeometric(epsilon)
    laws = [mechanism.distribution(count) for count in range(6)]
    losses = [np.log(a / b) for a, b in pairwise(laws)]
    worst = np.abs(losses).max()
    assert worst == pytest.approx(mechanism.true_epsilon, rel=1e-12)
    # And on each pair of neighbours it is randomised response.
    exact = mechanism.exact_claim(mechanism.worst_case())
    assert exact == PureDP(mechanism.true_epsilon)
    for one, two in pairwise(laws):
        for at in (0.0, worst / 2, worst):
            assert divergence(one, two, at) == pytest.approx(
                float(exact.delta_at(at)), abs=1e-12
            )


def test_geometric_loss_and_counts():
    mechanism = TruncatedGeometric()
    loss = mechanism.privacy_loss(np.arange(6.0), [1, 0], [1, 1])
    expected = np.log(mechanism.distribution(1) / mechanism.distribution(2))
    np.testing.assert_allclose(loss, expected, rtol=1e-12)
    assert mechanism.answers([1.0] * 9) == 5
    assert mechanism.exact_claim(Pair([1.0], [1.0, 0.2])).delta_at(0.0) == 0


@pytest.mark.parametrize("epsilon", [1e-12, 1.0, 1e4])
def test_each_count_loses_all_or_the_opposite(epsilon):
    mechanism = TruncatedGeometric(epsilon, people=1000)
    loss = mechanism.privacy_loss(np.arange(1001.0), [1.0] * 500, [1.0] * 501)
    signs = np.where(np.arange(1001) <= 500, 1.0, -1.0)
    np.testing.assert_allclose(loss, signs * mechanism.true_epsilon, rtol=1e-12)


# RAPPOR

MECHANISMS = [Rappor(), OneTimeRappor(), Rappor(f=0.3, p=0.2, q=0.7)]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_bits_have_their_probabilities_and_the_worst_lose_the_true_epsilon(mechanism):
    releases = draws(mechanism, [7.0])
    # By the steps of the algorithm, in the other order of conditioning.
    after = {1: 1 - mechanism.f / 2, 0: mechanism.f / 2}
    if isinstance(mechanism, Rappor):
        after = {b: a * mechanism.q + (1 - a) * mechanism.p for b, a in after.items()}
    expected = [after[int(bit)] for bit in mechanism.answers([7.0])]
    for count, chance in zip(releases.sum(axis=0), expected, strict=True):
        assert_frequencies([count], [chance], SIZE)
    both = np.count_nonzero(releases[:, 0] * releases[:, 1])
    assert_frequencies([both], [expected[0] * expected[1]], SIZE)
    pair = mechanism.worst_case()
    here, there = mechanism.answers(pair.data), mechanism.answers(pair.neighbour)
    assert (here.sum(), there.sum(), here @ there) == (4, 4, 0)
    loss = mechanism.privacy_loss(np.array([here, there]), pair.data, pair.neighbour)
    truth = mechanism.true_epsilon
    np.testing.assert_allclose(loss, [truth, -truth], rtol=1e-12)


def test_no_two_values_lose_more_and_the_same_filter_nothing():
    mechanism = Rappor()
    filters = np.array([mechanism.answers([v]) for v in range(200)])
    assert set(filters.sum(axis=1)) <= {1, 2, 3, 4}
    one, zero = mechanism.told_as_one
    told = filters * one + (1 - filters) * zero
    losses = [
        np.maximum(np.log(told / other), np.log((1 - told) / (1 - other))).sum(axis=1)
        for other in told
    ]
    assert np.max(losses) == pytest.approx(mechanism.true_epsilon, rel=1e-12)
    assert Rappor().exact_claim(Pair([3.0], [3.2])).delta_at(0.0) == 0


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("values", [None, (3.0, 4.0), (5.0, 11.0)])
def test_rappor_profile_by_enumeration(mechanism, values):
    pair = mechanism.worst_case() if values is None else Pair(*[[v] for v in values])
    filters = [mechanism.answers(rows) for rows in (pair.data, pair.neighbour)]
    differing = np.flatnonzero(filters[0] != filters[1])
    chances = [np.where(f[differing] > 0, *mechanism.told_as_one) for f in filters]
    outcomes = np.array(list(product((0, 1), repeat=len(differing))))
    laws = [np.where(outcomes, c, 1 - c).prod(axis=1) for c in chances]
    exact = mechanism.exact_claim(pair)
    losses = np.abs(np.log(laws[0] / laws[1]))
    assert exact.epsilon_at(0.0) == pytest.approx(losses.max(), rel=1e-9)
    for at in [0.0, *np.unique(losses.round(9))]:
        expected = divergence(*laws, at)
        assert float(exact.delta_at(at)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("f", [1e-300, 1e-30, 1e-12])
def test_bits_that_hardly_ever_change_lose_much_and_not_all(f):
    mechanism = OneTimeRappor(f=f)
    assert mechanism.true_epsilon == pytest.approx(8 * np.log(2 / f), rel=1e-12)
    assert Rappor(f=f, p=f, q=0.5).true_epsilon == pytest.approx(
        4 * np.log(0.8 / f), rel=1e-9
    )
    pair = mechanism.worst_case()
    if f == 1e-300:
        with pytest.raises(UnsupportedError, match="at most 700"):
            mechanism.exact_claim(pair)
    else:
        exact = mechanism.exact_claim(pair).epsilon_at(0.0)
        assert exact == pytest.approx(mechanism.true_epsilon, rel=1e-12)


test_bad_arguments_are_named = refused(
    (lambda: RandomisedResponse().answers([0.0, 1.0]), "got 2 rows"),
    (lambda: RandomisedResponse().answers([]), "got 0 rows"),
    (lambda: RandomisedResponse().worst_case(2), "dimension must be"),
    (lambda: Rappor().answers([[1.0, 2.0]]), "scalar rows"),
    (lambda: OneTimeRappor().worst_case(3), "dimension must be"),
    (lambda: TruncatedGeometric().worst_case(2), "dimension must be"),
)
