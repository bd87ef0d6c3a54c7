"""SymmetricNoise, exactly how its claim is false, and SymmetrisedWishart, its repair.

Of the repair: its density, and that neighbours' densities stay within epsilon.

Type-I error: 1e-9 for each law of draws (d = 1, 2) and for each of 8 cases of the
escaping mass; the tests are exact, and the seeds are fixed.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpaudit import ApproxDP, Pair, PureDP, Relation, UnsupportedError
from dpaudit.algorithms import SymmetricNoise, SymmetrisedWishart
from dpaudit.audit.layers.exact import ExactOutcome, exact_verdict

TYPE_I_ERROR = 1e-9


def with_scale(scale):
    return SymmetrisedWishart(scale=scale, claim=PureDP(1.0))


def log_density(z, scale):
    return float(with_scale(scale).log_density(np.array([z]))[0])


@pytest.mark.parametrize("row_norm", [1.0, 3.0])
def test_the_scale_is_the_one_of_the_proof(row_norm):
    for relation, factor in ((Relation.ADD_REMOVE, 0.5), (Relation.REPLACE_ONE, 1.0)):
        mechanism = SymmetrisedWishart.calibrated(
            0.7, relation=relation, row_norm=row_norm
        )
        assert mechanism.claim == PureDP(0.7)
        expected = factor * row_norm**2 / 0.7
        assert mechanism.scale == pytest.approx(expected, rel=1e-15)


# One dimension: the Laplace mechanism
@pytest.mark.parametrize("scale", [0.5, 2.0])
@pytest.mark.parametrize("z", [-3.0, -1e-9, 0.0, 0.1, 7.0])
def test_in_one_dimension_the_density_is_laplaces(z, scale):
    law = stats.laplace(scale=2 * scale)
    expected = law.logpdf(z) - law.logpdf(0)
    found = log_density([[z]], scale) - log_density([[0.0]], scale)
    assert found == pytest.approx(expected, abs=1e-14)


def test_draws_are_laplace_in_one_dimension_and_differences_of_wisharts_in_two():
    # Null hypothesis: Laplace with scale 2 s (Kolmogorov-Smirnov).
    noise = with_scale(1.5).noise(20_000, 1, rng=np.random.default_rng(0)).ravel()
    assert stats.kstest(noise, stats.laplace(scale=3.0).cdf).pvalue >= TYPE_I_ERROR
    assert stats.kstest(noise, stats.laplace(scale=2.5).cdf).pvalue < TYPE_I_ERROR
    # Null hypothesis: three measures of the noise have the law that they have for the
    # difference of two draws of scipy's W_2(s I, 3); with exact tests, Bonferroni.
    size, rng = 5000, np.random.default_rng(3)
    noise = with_scale(0.5).noise(size, 2, rng=rng)
    law = stats.wishart(df=3, scale=0.5 * np.eye(2))
    first, second = law.rvs((2, size), random_state=rng).reshape(2, size, 2, 2)
    for measure in (
        lambda z: z[:, 0, 1],
        lambda z: np.linalg.eigvalsh(z)[:, 0],
        lambda z: np.trace(z, axis1=1, axis2=2),
    ):
        found, expected = measure(noise), measure(first - second)
        assert stats.ks_2samp(found, expected).pvalue >= TYPE_I_ERROR / 3
        assert stats.ks_2samp(1.5 * found, expected).pvalue < TYPE_I_ERROR


# Two dimensions
def integral_by_entries(z, scale):
    """I(Z) over W = [[a, b], [b, c]]: the length of the range of b, then quadrature."""
    z11, z12, z22 = z[0][0], z[0][1], z[1][1]
    nodes, weights = np.polynomial.legendre.leggauss(600)
    reach = np.sqrt(30 * scale)
    # a = start + x^2 makes the square roots smooth at the border of the domain.
    x, weights = (nodes + 1) * reach / 2, weights * reach / 2
    a = (x**2 + max(0.0, -z11))[:, np.newaxis]
    c = x**2 + max(0.0, -z22)
    reach, shifted = np.sqrt(a * c), np.sqrt((a + z11) * (c + z22))
    length = np.minimum(reach, shifted - z12) - np.maximum(-reach, -shifted - z12)
    values = np.maximum(length, 0.0) * np.exp(-(a + c) / scale)
    return float((2 * x * weights) @ values @ (2 * x * weights))


INDEFINITE = [
    *([[1.0, 0.0], [0.0, -1.0]], [[0.2, 0.7], [0.7, 0.1]], [[3.0, 1.0], [1.0, -0.2]]),
    [[-3.0, 1.5], [1.5, 0.1]],
]
DEFINITE = [
    [[1.0, 0.3], [0.3, 0.5]],
    [[-1.0, 0.3], [0.3, -0.5]],
    [[-2.0, 0.0], [0.0, 0.0]],
]


@pytest.mark.parametrize("z", INDEFINITE + DEFINITE)
def test_in_two_dimensions_it_is_the_integral_of_the_proof(z):
    scale = 1.3
    expected = (
        -np.trace(z) / (2 * scale)
        + np.log(integral_by_entries(z, scale))
        - np.log(integral_by_entries(np.zeros((2, 2)), scale))
    )
    found = log_density(z, scale) - log_density(np.zeros((2, 2)), scale)
    # The independent quadrature meets kinks inside its domain.
    assert found == pytest.approx(expected, abs=3e-5)


@pytest.mark.parametrize("value", [0.01, 1.0, 20.0])
def test_the_density_is_continuous_at_the_border_of_the_cones(value):
    for sign in (1.0, -1.0):
        on = log_density(np.diag([0.0, sign * value]), 0.5)
        for step in (1e-7, 1e-12):
            inside = log_density(np.diag([sign * step, sign * value]), 0.5)
            outside = log_density(np.diag([-sign * step, sign * value]), 0.5)
            assert inside == pytest.approx(on, abs=1e-6)
            assert outside == pytest.approx(on, abs=1e-6)


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_the_density_depends_on_eigenvalues_and_is_even(seed):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((2, 2))
    z += z.T
    q = np.linalg.qr(rng.standard_normal((2, 2))).Q
    expected = log_density(z, 0.5)
    assert log_density(q @ z @ q.T, 0.5) == pytest.approx(expected, abs=1e-10)
    assert log_density(-z, 0.5) == pytest.approx(expected, abs=1e-10)


# The guarantee: |log f(Z + x x^T) - log f(Z)| <= |x|^2 / (2 s)
@settings(max_examples=50)
@given(
    st.integers(0, 2**32),
    st.integers(1, 2),
    st.floats(0.05, 20.0),
    st.floats(0.01, 30.0),
)
def test_a_row_changes_the_log_density_by_at_most_its_share(seed, d, scale, spread):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((d, d))
    z = spread * (z + z.T)
    x = rng.standard_normal(d)
    moved = log_density(z + np.outer(x, x), scale) - log_density(z, scale)
    assert abs(moved) <= (x @ x) / (2 * scale) * (1 + 1e-9) + 1e-9


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 2), st.sampled_from(Relation))
def test_releases_lose_at_most_epsilon(seed, d, relation):
    rng = np.random.default_rng(seed)
    mechanism = SymmetrisedWishart.calibrated(0.7, relation=relation)
    rows = rng.standard_normal((3, d))
    other = rows[1:]
    if relation is Relation.REPLACE_ONE:
        other = np.vstack([other, rng.standard_normal((1, d))])
    releases = mechanism.draw(rows, 50, rng=rng)
    loss = mechanism.privacy_loss(releases, rows, other)
    assert np.abs(loss).max() <= 0.7 + 1e-9


# What is exactly true
@pytest.mark.parametrize("d", [1, 2, 4])
def test_the_exact_claim_is_attained_by_adding_a_row(d):
    mechanism = SymmetrisedWishart.calibrated(0.7, row_norm=2.0)
    exact = mechanism.exact_claim(mechanism.worst_case(d))
    assert isinstance(exact, PureDP)
    assert exact.parameters["epsilon"] == pytest.approx(0.7, rel=1e-14)


@pytest.mark.parametrize(("gained", "lost"), [(1.0, 1.0), (0.9, 0.2), (0.3, 0.7)])
def test_a_replaced_row_loses_as_much_as_is_said_and_no_more(gained, lost):
    # Far out along diag(a, -a) the loss comes as near to the exact claim as one likes.
    mechanism = SymmetrisedWishart.calibrated(0.8, relation=Relation.REPLACE_ONE)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    rows, other = (
        np.sqrt(square) * turn[:, [column]].T
        for column, square in ((0, gained), (1, lost))
    )
    exact = mechanism.exact_claim(Pair(rows, other, Relation.REPLACE_ONE))
    assert exact == mechanism.exact_claim(Pair(other, rows, Relation.REPLACE_ONE))
    epsilon = exact.parameters["epsilon"]
    assert epsilon == pytest.approx(0.8 * (gained + lost) / 2, rel=1e-12)
    far = np.geomspace(0.1, 1e4, 50)[:, np.newaxis, np.newaxis]
    noise = far * (turn @ np.diag([1.0, -1.0]) @ turn.T)
    for data, without, some in ((rows, other, noise), (other, rows, -noise)):
        found = mechanism.privacy_loss(data.T @ data + some, data, without)
        assert 0.9998 * epsilon < found[-1] == found.max() < epsilon
    inside = mechanism.draw(rows, 2000, rng=np.random.default_rng(0))
    assert np.abs(mechanism.privacy_loss(inside, rows, other)).max() < epsilon


def test_pure_dp_is_the_tightest_claim_for_a_replaced_row_and_losses_infinite():
    # The exact layer refutes every smaller epsilon, and no other.
    mechanism = SymmetrisedWishart.calibrated(1.0, relation=Relation.REPLACE_ONE)
    for dimension in (2, 5):
        pair = mechanism.worst_case(dimension)
        assert exact_verdict(mechanism, pair).outcome is ExactOutcome.HOLDS
        verdict = exact_verdict(mechanism, pair, PureDP(0.999))
        assert verdict.outcome is ExactOutcome.REFUTED
        # How much more is lost is not known: nothing is said of an approximate claim.
        verdict = exact_verdict(mechanism, pair, ApproxDP(0.5, 1e-6))
        assert verdict.outcome is ExactOutcome.UNDECIDED
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


@pytest.mark.parametrize("d", [3])
def test_the_density_is_refused_beyond_two_dimensions(d):
    mechanism = SymmetrisedWishart.calibrated(1.0)
    pair = mechanism.worst_case(d)
    releases = mechanism.draw(pair.data, 2, rng=np.random.default_rng(0))
    with pytest.raises(UnsupportedError, match=f"d <= 2 only, got d = {d}"):
        mechanism.log_density(releases)
    with pytest.raises(UnsupportedError, match=f"d <= 2 only, got d = {d}"):
        mechanism.privacy_loss(releases, pair.data, pair.neighbour)


SIZE = 20_000


def escapes(mechanism, pair, seed=0):
    """Count releases on the data that are impossible on the neighbour."""
    releases = mechanism.draw(pair.data, SIZE, rng=np.random.default_rng(seed))
    assert mechanism.in_support(releases, pair.data).all()
    return int(np.count_nonzero(~mechanism.in_support(releases, pair.neighbour)))


def test_the_scale_is_the_papers_and_shorter_rows_let_less_escape():
    mechanism = SymmetricNoise.as_published(0.5, row_norm=3.0)
    assert mechanism.claim == PureDP(0.5)
    assert mechanism.scale == pytest.approx(9.0, rel=1e-15)
    mechanism = SymmetricNoise.as_published(1.0)
    exact = mechanism.exact_claim(Pair(np.empty((0, 2)), [[0.3, 0.4]]))
    assert float(exact.delta_at(0.0)) == pytest.approx(1 - np.exp(-0.25), rel=1e-12)
    mechanism = SymmetricNoise.as_published(1.0, relation=Relation.REPLACE_ONE)
    with pytest.raises(UnsupportedError, match="semi-definite"):
        mechanism.exact_claim(Pair([[1.0, 0.0]], [[0.0, 1.0]]))


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
        exact.delta_at(at), np.maximum(forwards, backwards), rtol=1e-12
    )
    assert exact.epsilon_at(0.5 * (1 - np.exp(-epsilon))) == np.inf
    assert exact.delta_at(epsilon) > mechanism.claim.delta_at(epsilon)
