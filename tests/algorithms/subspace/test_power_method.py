"""The private power method: sensitivity of a step, calibration, transcripts.

Type-I error: 1e-9 for each of the 6 cases that name a null hypothesis, at fixed seeds.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses
from scipy import stats
from seeded import gram_schmidt, rng

from dpaudit import ApproxDP, GaussianDP, InputError, PureDP, Relation
from dpaudit.algorithms import LaplacePowerMethod, PowerMethod
from dpaudit.algorithms.subspace.base import orthonormalise
from dpaudit.attacks import GaussianTranscript, Target
from dpaudit.gaussian import gaussian_delta, gaussian_mu
from dpaudit.subspace import second_moment

ADD_REMOVE, REPLACE_ONE = Relation
TYPE_I_ERROR = 1e-9
NORMAL = PowerMethod(n_components=2, iterations=3, sigma=0.7, claim=GaussianDP(1.0))
LAPLACE = LaplacePowerMethod(
    n_components=2, iterations=3, unit_scale=0.7, claim=PureDP(1.0)
)
ROWS = np.random.default_rng(0).standard_normal((20, 3))


# Sensitivity of a step
def change(first, second, relation):
    """A - A' where `first`, scaled into the unit ball, joins or replaces `second`."""
    first, second = (row / max(1.0, np.linalg.norm(row)) for row in (first, second))
    difference = np.outer(first, first)
    return difference - (relation is REPLACE_ONE) * np.outer(second, second)


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.integers(1, 6), st.sampled_from(Relation), st.data())
def test_no_step_moves_further(seed, d, relation, data):
    k = data.draw(st.integers(1, d))
    generator = rng(seed)
    basis = np.linalg.qr(generator.standard_normal((d, k))).Q
    first, second = 3 * generator.standard_normal((2, d))
    if data.draw(st.booleans()):
        first, second = (row @ basis @ basis.T for row in (first, second))
    product = change(first, second, relation) @ basis
    mechanism = PowerMethod.from_mu(1.0, n_components=k, relation=relation)
    bound = mechanism.step_sensitivity
    assert np.linalg.norm(product) <= bound * (1 + 1e-12)
    assert np.abs(product).sum() <= np.sqrt(d * k) * bound * (1 + 1e-12)


# Calibration
@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("row_norm", [2.0])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("steps", [1, 5])
def test_the_calibration_meets_its_claim_with_equality(steps, k, row_norm, relation):
    mechanism = PowerMethod.calibrated(
        0.8,
        1e-6,
        n_components=k,
        iterations=steps,
        relation=relation,
        row_norm=row_norm,
    )
    moved = np.sqrt(2) if relation is REPLACE_ONE and k > 1 else 1.0
    mu = np.sqrt(steps) * moved * row_norm**2 / mechanism.sigma
    attained = float(gaussian_delta(0.8, mu))
    assert attained == pytest.approx(1e-6, rel=1e-9)
    assert attained <= 1e-6
    assert mechanism.claim == ApproxDP(0.8, 1e-6)
    assert (mechanism.relation, mechanism.row_norm) == (relation, row_norm)
    assert (mechanism.n_components, mechanism.iterations) == (k, steps)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("k", "steps", "d"), [(1, 1, 1), (1, 4, 6), (3, 2, 5)])
def test_the_laplace_calibration_adds_up_to_epsilon(k, steps, d, relation):
    mechanism = LaplacePowerMethod.calibrated(
        0.8, n_components=k, iterations=steps, relation=relation, row_norm=2.0
    )
    moved = np.sqrt(2) if relation is REPLACE_ONE and k > 1 else 1.0
    scale = mechanism.unit_scale * np.sqrt(d)
    spent = steps * 4 * np.sqrt(d * k) * moved / scale
    assert spent == pytest.approx(0.8)
    assert mechanism.claim == PureDP(0.8)


def test_the_published_scales_are_the_papers_and_bases_continuous():
    options = {"n_components": 3, "iterations": 5, "row_norm": 2.0}
    normal = PowerMethod.as_published(0.5, 1e-4, **options)
    assert normal.sigma == pytest.approx(4 * np.sqrt(60 * np.log(1e4)) / 0.5)
    assert normal.claim == ApproxDP(0.5, 1e-4)
    laplace = LaplacePowerMethod.as_published(0.5, **options)
    assert laplace.unit_scale * np.sqrt(7) == pytest.approx(
        4 * 2 * 3 * 5 * np.sqrt(7) / 0.5
    )
    assert laplace.claim == PureDP(0.5)
    matrix, step = rng().standard_normal((2, 5, 3))
    path = orthonormalise(matrix + np.linspace(0, 0.1, 1000)[:, None, None] * step)
    assert np.abs(np.diff(path, axis=0)).max() < 1e-3


# Orthonormal bases
@settings(max_examples=25)
@given(st.integers(0, 2**32), st.integers(1, 6), st.data())
def test_bases_are_those_of_gram_and_schmidt(seed, d, data):
    k = data.draw(st.integers(1, d))
    matrices = rng(seed).standard_normal((3, 2, d, k))
    bases = orthonormalise(matrices)
    assert bases.shape == matrices.shape
    for index in np.ndindex(3, 2):
        np.testing.assert_allclose(
            bases[index], gram_schmidt(matrices[index]), atol=1e-7
        )


# Transcripts and releases
def by_hand(mechanism, moment, noise, start):
    """One run, in the order of the paper."""
    basis, products = gram_schmidt(start), []
    for each in noise:
        products.append(moment @ basis + each)
        basis = gram_schmidt(products[-1])
    return basis, np.array(products)


@pytest.mark.parametrize("mechanism", [NORMAL, LAPLACE])
@pytest.mark.parametrize("d", [2, 6])
def test_batches_are_many_runs_by_hand(mechanism, d):
    rows = rng(1).standard_normal((10, d)) / np.sqrt(d)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    moment = second_moment(rows / np.maximum(1.0, lengths))
    size = 7
    draws = mechanism.draw(rows, size, rng=rng(2))
    transcript = mechanism.transcript(rows, size, rng=rng(2))
    generator = rng(2)
    starts = generator.standard_normal((size, d, 2))
    if mechanism is NORMAL:
        noise = [0.7 * generator.standard_normal((size, d, 2)) for _ in range(3)]
    else:
        scale = 0.7 * np.sqrt(d)
        noise = [generator.laplace(0.0, scale, (size, d, 2)) for _ in range(3)]
    for trial in range(size):
        own = [each[trial] for each in noise]
        basis, products = by_hand(mechanism, moment, own, starts[trial])
        np.testing.assert_allclose(draws[trial], basis, atol=1e-10)
        np.testing.assert_allclose(transcript["steps"][trial], products, atol=1e-10)
        np.testing.assert_allclose(
            transcript["start"][trial], gram_schmidt(starts[trial]), atol=1e-12
        )


@pytest.mark.parametrize("mechanism", [NORMAL, LAPLACE])
def test_a_release_is_the_basis_of_the_last_step(mechanism):
    transcript = mechanism.transcript(ROWS, 50, rng=rng(6))
    draws = mechanism.draw(ROWS, 50, rng=rng(6))
    np.testing.assert_array_equal(draws, orthonormalise(transcript["steps"][:, -1]))
    np.testing.assert_array_equal(
        mechanism.release(ROWS, rng=rng(6)), mechanism.draw(ROWS, 1, rng=rng(6))[0]
    )


def test_means_and_scales_are_those_of_the_steps():
    transcript = NORMAL.transcript(ROWS, 4, rng=rng(9))
    other = ROWS[1:]
    means = NORMAL.step_means(transcript, other)
    assert means.keys() == NORMAL.step_scales.keys() == {"steps"}
    assert NORMAL.step_scales["steps"] == NORMAL.sigma
    assert means["steps"].shape == transcript["steps"].shape
    moment = NORMAL.moment(other)
    for trial in range(4):
        basis = transcript["start"][trial]
        for step in range(3):
            np.testing.assert_allclose(
                means["steps"][trial, step], moment @ basis, atol=1e-10
            )
            basis = gram_schmidt(transcript["steps"][trial, step])


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("k", "steps"), [(1, 1), (1, 6), (3, 2)])
def test_the_loss_of_a_transcript_is_exactly_normal_for_d_equal_to_k(
    k, steps, relation
):
    # Null hypothesis: N(mu^2/2, mu^2) on the data and N(-mu^2/2, mu^2) on the
    # neighbour, mu = sqrt(L) Delta/sigma: no composition is tighter.
    mechanism = PowerMethod.calibrated(
        4.0, 1e-3, n_components=k, iterations=steps, relation=relation, row_norm=3.0
    )
    pair = mechanism.worst_case(k)
    target = Target(mechanism, pair)
    mu = gaussian_mu(4.0, 1e-3)
    for sign, data in ((1, pair.data), (-1, pair.neighbour)):
        releases = mechanism.transcript(data, 5000, rng=rng(10))
        assert GaussianTranscript().applies(target, releases)
        loss = GaussianTranscript().score(target, {}, releases)
        law = stats.norm(sign * mu**2 / 2, mu)
        assert stats.kstest(loss, law.cdf).pvalue >= TYPE_I_ERROR / 2
        wrong = stats.norm(sign * mu**2 / 2, mu * 1.2)
        assert stats.kstest(loss, wrong.cdf).pvalue < TYPE_I_ERROR


# Pairs, scale, utility
@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("k", [1, 3])
def test_for_d_equal_to_k_a_step_moves_as_far_as_it_can(k, relation):
    mechanism = PowerMethod.calibrated(
        1.0, 1e-5, n_components=k, relation=relation, row_norm=2.0
    )
    _, pair = mechanism.canonical_pairs()
    assert pair.data.shape[1] == k
    assert pair.relation is relation
    difference = mechanism.moment(pair.data) - mechanism.moment(pair.neighbour)
    assert np.linalg.norm(difference) == pytest.approx(mechanism.step_sensitivity)


@pytest.mark.parametrize("kind", [PowerMethod, LaplacePowerMethod])
@pytest.mark.parametrize("relation", list(Relation))
def test_for_larger_d_the_gap_is_a_few_deviations_of_the_noise(relation, kind):
    promise = (1.0, 1e-5) if kind is PowerMethod else (1.0,)
    mechanism = kind.calibrated(
        *promise, n_components=2, relation=relation, row_norm=2.0
    )
    for dimension in (3, 6):
        noise = mechanism.noise(20_000, dimension, rng=rng())
        pair = mechanism.worst_case(dimension)
        assert pair.data.shape[1] == dimension
        values = np.linalg.eigvalsh(mechanism.moment(pair.data))[::-1]
        ratio = (values[1] - values[2]) / noise.std()
        expected = 4 if relation is ADD_REMOVE else 8
        assert ratio == pytest.approx(expected, rel=0.2)
    assert mechanism.worst_case().data.shape[1] == 3
    refuses("dimension must be an integer >= 2, got 1", mechanism.worst_case, 1)


# Bad and degenerate input
def test_transcripts_of_bad_data_are_refused():
    for mechanism in (NORMAL, LAPLACE):
        for use in (mechanism.draw, mechanism.transcript):
            with pytest.raises(InputError, match="at most the length of a row, 1"):
                use(np.zeros((3, 1)), 2, rng=rng())
        assert mechanism.transcript(ROWS, 0, rng=rng())["steps"].shape == (0, 3, 3, 2)
    transcript = NORMAL.transcript(ROWS, 2, rng=rng())
    for data in (np.zeros((3, 1)), np.zeros(3), [[0.0, np.nan]]):
        refuses(r"at most the length|data must", NORMAL.step_means, transcript, data)


@pytest.mark.parametrize("kind", [PowerMethod, LaplacePowerMethod])
def test_in_one_dimension_a_release_is_a_sign(kind):
    promise = (1.0, 1e-5) if kind is PowerMethod else (1.0,)
    mechanism = kind.calibrated(*promise, n_components=1, iterations=1)
    draws = mechanism.draw([[1.0]] * 3, 100, rng=rng())
    assert set(np.unique(draws)) == {-1.0, 1.0}
