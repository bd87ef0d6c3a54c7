"""LaplaceCovariance, AnalyzeGauss and GOEGaussian: what their noise is, and says.

The l1 sensitivities are searched for from both sides. The noise is tested in
`test_noise.py`; here only that mechanisms ask for the right one. Type-I error: 1e-8 for
that test.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy import stats

from dpaudit import ApproxDP, GaussianDP, Pair, Relation
from dpaudit.algorithms import AnalyzeGauss, GOEGaussian, LaplaceCovariance
from dpaudit.algorithms.covariance.entrywise import triangle_sensitivity
from dpaudit.algorithms.covariance.second_moment import second_moment_sensitivity
from dpaudit.claims import PureDP
from dpaudit.gaussian import gaussian_delta

ADD_REMOVE, REPLACE_ONE = Relation


def triangle(matrix):
    return matrix[..., *np.triu_indices(matrix.shape[-1])]


def moved(x, y):
    """The l1 norm of the upper triangle of x x^T - y y^T."""
    return float(np.abs(triangle(np.outer(x, x) - np.outer(y, y))).sum())


@pytest.mark.parametrize(
    ("d", "adding", "replacing"),
    [
        *((1, 1, 1), (2, 1.5, np.sqrt(5)), (3, 2, np.sqrt(8.25))),
        *((4, 2.5, np.sqrt(13)), (6, 3.5, 5)),
    ],
)
def test_the_sensitivities_by_hand(d, adding, replacing):
    assert triangle_sensitivity(d, ADD_REMOVE) == pytest.approx(adding, rel=1e-14)
    assert triangle_sensitivity(d, REPLACE_ONE) == pytest.approx(replacing, rel=1e-14)
    assert triangle_sensitivity(d, REPLACE_ONE, 3.0) == pytest.approx(9 * replacing)


@pytest.mark.parametrize("d", range(1, 6))
def test_the_sensitivity_of_replacing_is_the_largest_over_all_signs(d):
    # For fixed signs of the entries the l1 norm is x^T W x - y^T W y, so the largest
    # is the largest spread of the spectrum of W, over all W (d = 1: against zero).
    rows, columns = np.triu_indices(d)
    # Flipping the signs of coordinates makes the first row positive off the diagonal.
    free = (rows > 0) | (columns == 0)
    choices = np.array(list(itertools.product([-0.5, 0.5], repeat=int(free.sum()))))
    signs = np.full((len(choices), len(rows)), 0.5)
    signs[:, free] = choices
    forms = np.zeros((len(signs), d, d))
    forms[:, rows, columns] += signs
    forms[:, columns, rows] += signs
    values = np.linalg.eigvalsh(forms)
    spread = np.maximum(values[:, -1], 0) - np.minimum(values[:, 0], 0)
    expected = triangle_sensitivity(d, REPLACE_ONE)
    assert spread.max() == pytest.approx(expected, rel=1e-12)


@settings(max_examples=50)
@given(st.integers(0, 2**32), st.integers(1, 9), st.sampled_from([1.0, 2.5]))
def test_no_rows_move_the_triangle_further(seed, d, row_norm):
    rng = np.random.default_rng(seed)
    # Sparse rows as well as dense ones, inside the ball and on it.
    x, y = rng.standard_normal((2, d)) * (rng.random((2, d)) < rng.random())
    x, y = (row_norm * v / max(np.linalg.norm(v), rng.random()) for v in (x, y))
    adding = triangle_sensitivity(d, ADD_REMOVE, row_norm)
    assert moved(x, np.zeros(d)) <= adding * (1 + 1e-12)
    replacing = triangle_sensitivity(d, REPLACE_ONE, row_norm)
    assert moved(x, y) <= replacing * (1 + 1e-12)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("d", [1, 2, 3, 4, 54])
def test_the_worst_case_attains_the_sensitivity(d, relation):
    mechanism = LaplaceCovariance.calibrated(0.7, relation=relation, row_norm=2.0)
    pair = mechanism.worst_case(d)
    assert pair.relation is relation
    assert np.linalg.norm(pair.neighbour[-1]) == pytest.approx(2.0)
    exact = mechanism.exact_claim(pair)
    assert isinstance(exact, PureDP)
    assert exact.parameters["epsilon"] == pytest.approx(0.7, rel=1e-12)


@pytest.mark.parametrize("relation", list(Relation))
def test_the_bound_over_all_dimensions_holds_is_attained_and_scales_noise(relation):
    ratios = [triangle_sensitivity(d, relation) / ((d + 1) / 2) for d in range(1, 400)]
    stated = second_moment_sensitivity("upper-triangle-l1", relation)
    assert max(ratios) == pytest.approx(stated.value, rel=1e-12)
    mechanism = LaplaceCovariance.calibrated(1.0, relation=relation, row_norm=3.0)
    assert mechanism.sensitivity.value == pytest.approx(9 * stated.value)
    pair = mechanism.worst_case(2)
    change = mechanism.statistic(pair.data) - mechanism.statistic(pair.neighbour)
    measured = float(mechanism.sensitivity.measure(change))
    assert measured == pytest.approx(mechanism.sensitivity.value, rel=1e-12)
    mechanism = LaplaceCovariance.calibrated(0.5, relation=relation, row_norm=2.0)
    assert mechanism.claim == PureDP(0.5)
    assert mechanism.relation is relation
    for d in (1, 4, 9):
        expected = triangle_sensitivity(d, relation, 2.0) / 0.5
        assert mechanism.scale(d) == pytest.approx(expected, rel=1e-14)


def test_noise_has_the_scale_of_its_dimension_and_print_is_false_in_part():
    # Null hypothesis: the sum of |E_ij| over the triangle, times 2/scale, is chi-square
    # with two degrees of freedom for each entry; two dimensions, two-sided, 1e-8.
    mechanism = LaplaceCovariance.calibrated(1.0, relation="replace-one")
    for d, scale in ((2, np.sqrt(5)), (6, 5.0)):
        noise = mechanism.noise(5000, d, rng=np.random.default_rng(d))
        entries = triangle(noise)
        law = stats.chi2(2 * entries.size)
        total = 2 * np.abs(entries).sum() / scale
        assert min(law.cdf(total), law.sf(total)) >= 1e-8 / 4
    mechanism = AnalyzeGauss.calibrated(1.0, 1e-5)
    rows = np.random.default_rng(0).standard_normal((5, 3))
    draws = mechanism.draw(rows, 4, rng=np.random.default_rng(1))
    noise = mechanism.noise(4, 3, rng=np.random.default_rng(1))
    np.testing.assert_allclose(draws, mechanism.statistic(rows) + noise, rtol=1e-13)
    one = mechanism.release(rows, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(
        one, mechanism.draw(rows, 1, rng=np.random.default_rng(1))[0]
    )
    # For replacing a row, at an epsilon in between.
    exact = published(1.0, 1e-5, REPLACE_ONE)
    assert float(exact.delta_at(1.0)) == pytest.approx(3.74e-5, abs=5e-8)
    assert exact.epsilon_at(1e-5) == pytest.approx(1.098, abs=5e-4)
    for epsilon, delta in ((1.0, 1e-3), (0.1, 1e-5)):
        assert published(epsilon, delta, REPLACE_ONE).delta_at(epsilon) <= delta
    # It is loose for adding one, up to a large epsilon.
    exact = published(1.0, 1e-5, ADD_REMOVE)
    assert float(exact.delta_at(1.0)) == pytest.approx(4.1e-8, rel=0.01)
    for delta, limit in ((1e-3, 7.5), (1e-5, 8.4), (1e-6, 8.8)):
        low, high = limit - 0.1, limit + 0.1
        assert published(low, delta, ADD_REMOVE).delta_at(low) < delta
        assert published(high, delta, ADD_REMOVE).delta_at(high) > delta


@given(st.integers(0, 2**32), st.integers(1, 5), st.floats(0.1, 5.0))
@settings(max_examples=20)
def test_the_loss_is_the_ratio_of_laplace_densities(seed, d, epsilon):
    rng = np.random.default_rng(seed)
    rows, other = rng.standard_normal((3, d)), rng.standard_normal((2, d))
    mechanism = LaplaceCovariance.calibrated(epsilon, row_norm=1.5)
    releases = mechanism.draw(rows, 5, rng=rng)
    densities = [
        stats.laplace(triangle(mechanism.statistic(data)), mechanism.scale(d))
        .logpdf(triangle(releases))
        .sum(axis=-1)
        for data in (rows, other)
    ]
    loss = mechanism.privacy_loss(releases, rows, other)
    np.testing.assert_allclose(loss, densities[0] - densities[1], atol=1e-9, rtol=1e-9)


@given(st.integers(0, 2**32), st.integers(1, 5), st.sampled_from(Relation))
@settings(max_examples=30)
def test_no_pair_loses_more_than_its_exact_claim_nor_that_more_than_epsilon(
    seed, d, relation
):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((3, d))
    other = rows[1:]
    if relation is REPLACE_ONE:
        other = np.vstack([rng.standard_normal((1, d)), other])
    mechanism = LaplaceCovariance.calibrated(0.7, relation=relation)
    exact = mechanism.exact_claim(Pair(rows, other, relation)).epsilon_at(0.0)
    assert exact <= 0.7 * (1 + 1e-12)
    releases = mechanism.draw(rows, 20, rng=rng)
    loss = mechanism.privacy_loss(releases, rows, other)
    assert np.abs(loss).max() <= exact + 1e-12
    # Attained: far out, beyond the larger of each two entries.
    first, second = mechanism.statistic(rows), mechanism.statistic(other)
    far = (np.maximum(first, second) + 9 * np.sign(first - second))[np.newaxis]
    far = np.where(first >= second, far, np.minimum(first, second) - 9)
    assert mechanism.privacy_loss(far, rows, other) == pytest.approx(exact, rel=1e-9)


test_bad_arguments_are_named = refused(
    (lambda: triangle_sensitivity(0, ADD_REMOVE), "dimension .* >= 1, got 0")
)


KINDS = pytest.mark.parametrize("kind", [AnalyzeGauss, GOEGaussian])
RELATIONS = pytest.mark.parametrize("relation", list(Relation))


def upper_triangle(matrices):
    rows, columns = np.triu_indices(matrices.shape[-1])
    return matrices[..., rows, columns]


def deviations(kind, d, sigma):
    """Standard deviations of the upper triangle, as the paper-and-pencil law says."""
    rows, columns = np.triu_indices(d)
    ratio = 1 if kind is AnalyzeGauss else np.sqrt(2)
    return np.where(rows == columns, ratio, 1.0) * sigma


@KINDS
@RELATIONS
@pytest.mark.parametrize("row_norm", [1.0, 4.0])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (1.0, 1e-9), (8.0, 1e-6)])
def test_the_calibration_meets_its_claim_with_equality(
    kind, epsilon, delta, row_norm, relation
):
    mechanism = kind.calibrated(epsilon, delta, relation=relation, row_norm=row_norm)
    # By hand: the difference of the moments is one row's square, or that of two; the
    # orthogonal ensemble sees its Frobenius norm over the root of two.
    distance = row_norm**2 / mechanism.sigma
    if relation is REPLACE_ONE:
        distance *= np.sqrt(2)
    mu = distance if kind is AnalyzeGauss else distance / np.sqrt(2)
    attained = float(gaussian_delta(epsilon, mu))
    assert attained == pytest.approx(delta, rel=1e-9)
    assert attained <= delta
    exact = mechanism.exact_claim(mechanism.worst_case(3))
    assert float(exact.delta_at(epsilon)) == pytest.approx(delta, rel=1e-9)


@RELATIONS
def test_gaussian_claims_are_exact_and_the_published_scale_is_the_papers(relation):
    mechanism = GOEGaussian.from_mu(0.7, relation=relation, row_norm=2.0)
    assert mechanism.claim == GaussianDP(0.7)
    exact = mechanism.exact_claim(mechanism.worst_case())
    assert exact.parameters["mu"] == pytest.approx(0.7, rel=1e-13)
    mechanism = AnalyzeGauss.as_published(0.5, 1e-4, relation=relation, row_norm=2.0)
    assert mechanism.claim == ApproxDP(0.5, 1e-4)
    assert mechanism.relation is relation
    expected = 4 * np.sqrt(2 * np.log(1.25e4)) / 0.5
    assert mechanism.sigma == pytest.approx(expected, rel=1e-13)


def published(epsilon, delta, relation):
    """What is exactly true of the published mechanism at its worst pair."""
    mechanism = AnalyzeGauss.as_published(epsilon, delta, relation=relation)
    return mechanism.exact_claim(mechanism.worst_case())


@KINDS
@RELATIONS
@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(1, 4), st.floats(0.1, 10.0))
def test_the_loss_is_the_ratio_of_normal_densities(relation, kind, seed, d, sigma):
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((3, d))
    other = data[1:]
    if relation is REPLACE_ONE:
        other = np.vstack([rng.standard_normal((1, d)), other])
    mechanism = kind(
        sigma=sigma, claim=GaussianDP(1.0), relation=relation, row_norm=1.5
    )
    means = [upper_triangle(mechanism.statistic(rows)) for rows in (data, other)]
    scale = deviations(kind, d, sigma)
    releases = mechanism.draw(data, 5, rng=rng)
    densities = [
        stats.norm(mean, scale).logpdf(upper_triangle(releases)).sum(axis=-1)
        for mean in means
    ]
    loss = mechanism.privacy_loss(releases, data, other)
    np.testing.assert_allclose(loss, densities[0] - densities[1], rtol=1e-9, atol=1e-9)
    # The exact claim is the Mahalanobis distance; no pair is worse than the worst.
    exact = mechanism.exact_claim(Pair(data, other, relation)).parameters["mu"]
    assert exact == pytest.approx(np.linalg.norm((means[0] - means[1]) / scale))
    worst = mechanism.exact_claim(mechanism.worst_case()).parameters["mu"]
    assert exact <= worst * (1 + 1e-12)


@KINDS
def test_the_noise_has_its_deviations(kind):
    # Null hypothesis: the sum of squares of an entry over its variance is chi-square
    # with 20000 degrees of freedom; 6 exact two-sided tests at 1e-8 in total.
    mechanism = kind(sigma=3.0, claim=GaussianDP(1.0))
    noise = upper_triangle(mechanism.noise(20_000, 3, rng=np.random.default_rng(2)))
    squares = ((noise / deviations(kind, 3, 3.0)) ** 2).sum(axis=0)
    law = stats.chi2(20_000)
    low, high = law.ppf(1e-8 / 12), law.isf(1e-8 / 12)
    assert ((low <= squares) & (squares <= high)).all()
