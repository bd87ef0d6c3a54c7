"""SymmetricNoise: exactly how its published claim is false.

Type-I error: 8 cases of the escaping mass, 1e-9 each; binomial tails are exact and the
seeds are fixed.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpaudit import Pair, PureDP, Relation, UnsupportedError
from dpaudit.algorithms import SymmetricNoise

TYPE_I_ERROR = 1e-9
SIZE = 20_000


def escapes(mechanism, pair, seed=0):
    """Count releases on the data that are impossible on the neighbour."""
    releases = mechanism.draw(pair.data, SIZE, rng=np.random.default_rng(seed))
    assert mechanism.in_support(releases, pair.data).all()
    return int(np.count_nonzero(~mechanism.in_support(releases, pair.neighbour)))


def test_the_scale_is_the_papers():
    mechanism = SymmetricNoise.as_published(0.5, row_norm=3.0)
    assert mechanism.claim == PureDP(0.5)
    assert mechanism.scale == pytest.approx(9.0, rel=1e-15)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("epsilon", [0.1, 3.0])
@pytest.mark.parametrize("d", [1, 5])
def test_the_escaping_mass_does_not_depend_on_the_dimension(d, epsilon, relation):
    # Null hypothesis: a release escapes with probability 1 - e^-epsilon, exactly.
    mechanism = SymmetricNoise.as_published(epsilon, relation=relation)
    count = escapes(mechanism, mechanism.worst_case(d), seed=d)
    p_value = stats.binomtest(count, SIZE, 1 - np.exp(-epsilon)).pvalue
    assert p_value >= TYPE_I_ERROR


@st.composite
def datasets(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = rng.standard_normal((draw(st.integers(1, 4)), draw(st.integers(1, 4))))
    return rows / 2


@settings(max_examples=20)
@given(datasets(), st.floats(0.1, 5.0), st.integers(0, 2**32))
def test_the_loss_is_the_ratio_of_wishart_densities(rows, epsilon, seed):
    mechanism = SymmetricNoise.as_published(epsilon)
    d = rows.shape[1]
    law = stats.wishart(df=d + 1, scale=mechanism.scale * np.eye(d))
    releases = mechanism.draw(rows, 20, rng=np.random.default_rng(seed))
    fewer = rows[1:]
    expected = [
        law.logpdf(y - mechanism.statistic(rows))
        - law.logpdf(y - mechanism.statistic(fewer))
        for y in releases
    ]
    loss = mechanism.privacy_loss(releases, rows, fewer)
    np.testing.assert_allclose(loss, expected, rtol=1e-8, atol=1e-8)
    # On the common support the ratio is constant.
    norm = np.minimum(np.linalg.norm(rows[0]), 1.0)
    np.testing.assert_allclose(loss, epsilon * norm**2, rtol=1e-9)


def test_the_loss_off_the_supports_is_infinite():
    mechanism = SymmetricNoise.as_published(1.0)
    nobody, somebody = np.zeros((1, 2)), np.array([[0.0, 0.0], [1.0, 0.0]])
    both, one, none = np.diag([2.0, 1.0]), np.diag([0.5, 1.0]), np.diag([-1.0, 1.0])
    releases = np.array([both, one, none])
    np.testing.assert_array_equal(
        mechanism.privacy_loss(releases, nobody, somebody), [-1.0, np.inf, np.nan]
    )
    np.testing.assert_array_equal(
        mechanism.privacy_loss(releases, somebody, nobody), [1.0, -np.inf, np.nan]
    )
    np.testing.assert_array_equal(
        mechanism.in_support(releases, somebody), [True, False, False]
    )


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_exact_claim_is_the_divergence_of_the_two_point_loss(epsilon, relation):
    # P: infinite with probability 1 - e^-epsilon, else -epsilon. Q: epsilon always.
    mechanism = SymmetricNoise.as_published(epsilon, relation=relation, row_norm=2.0)
    exact = mechanism.exact_claim(mechanism.worst_case(3))
    at = np.linspace(0.0, 5.0, 51)
    forwards = np.full(51, 1 - np.exp(-epsilon))
    backwards = np.maximum(1 - np.exp(at - epsilon), 0.0)
    np.testing.assert_allclose(
        exact.delta(at), np.maximum(forwards, backwards), rtol=1e-12
    )
    assert exact.epsilon(0.5 * (1 - np.exp(-epsilon))) == np.inf
    assert exact.delta(epsilon) > mechanism.claim.delta(epsilon)


def test_a_shorter_row_lets_less_escape():
    mechanism = SymmetricNoise.as_published(1.0)
    exact = mechanism.exact_claim(Pair(np.empty((0, 2)), [[0.3, 0.4]]))
    assert float(exact.delta(0.0)) == pytest.approx(1 - np.exp(-0.25), rel=1e-12)


def test_replacing_a_row_by_another_has_no_exact_claim():
    mechanism = SymmetricNoise.as_published(1.0, relation=Relation.REPLACE_ONE)
    with pytest.raises(UnsupportedError, match="semi-definite"):
        mechanism.exact_claim(Pair([[1.0, 0.0]], [[0.0, 1.0]]))
