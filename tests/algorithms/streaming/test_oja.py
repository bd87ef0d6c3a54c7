"""Oja's algorithm without privacy: steps by hand, all forms alike, rate, bad input.

Type-I error: 1e-9 for the test that names a null hypothesis. The audit must refute.
"""

import numpy as np
import pytest
from scipy import linalg, stats

from dpaudit.algorithms.shared.step_sizes import ConstantSteps, HarmonicSteps
from dpaudit.algorithms.streaming import oja as module
from dpaudit.algorithms.streaming.moments import StreamedMoments, as_moments
from dpaudit.algorithms.streaming.oja import Oja, oblique_pair
from dpaudit.algorithms.streaming.planted import ClaimedOja
from dpaudit.audit import Verdict, audit
from dpaudit.claims import ApproxDP, PureDP
from dpaudit.codec import encode, rebuild
from dpaudit.datasets import spiked_gaussian
from dpaudit.errors import InputError
from dpaudit.mechanism import HasBatchedDraw, HasComponents
from dpaudit.neighbours import Pair, Relation

ROWS = np.random.default_rng(0).standard_normal((23, 3))
MATRICES = np.random.default_rng(1).standard_normal((23, 3, 3))
STEPS = HarmonicSteps(2.0, 3.0)


def rng(seed=0):
    return np.random.default_rng(seed)


def by_hand(matrices, batch, start):
    """One run, in the order of the paper."""
    w = start / np.linalg.norm(start)
    for t in range(len(matrices) // batch):
        mean = matrices[t * batch : (t + 1) * batch].mean(axis=0)
        w = w + 2.0 / (3.0 + t + 1) * mean @ w
        w /= np.linalg.norm(w)
    return w


@pytest.mark.parametrize("batch", [1, 4, 23])
def test_runs_are_those_by_hand(batch):
    mechanism = Oja(STEPS, batch)
    products = ROWS[:, :, None] * ROWS[:, None]
    for data, matrices in ((ROWS, products), (MATRICES, MATRICES)):
        for size in (1, 5):
            starts = rng(2).standard_normal((size, 3))
            expected = [by_hand(matrices, batch, start) for start in starts]
            draws = mechanism.draw(data, size, rng=rng(2))
            np.testing.assert_allclose(draws, expected, atol=1e-10)
    np.testing.assert_allclose(
        mechanism.draw(products, 5, rng=rng()),
        mechanism.draw(ROWS, 5, rng=rng()),
        atol=1e-10,
    )
    np.testing.assert_array_equal(
        mechanism.release(ROWS, rng=rng()), mechanism.draw(ROWS, 1, rng=rng())[0]
    )


def test_a_stream_is_read_in_parts(monkeypatch):
    expected = Oja(STEPS).release(ROWS, rng=rng())
    stream = StreamedMoments(ROWS.__getitem__, count=23, dimension=3)
    for each in (stream, as_moments(ROWS)):
        np.testing.assert_array_equal(Oja(STEPS).release(each, rng=rng()), expected)
    monkeypatch.setattr(module, "_READ", 12)
    np.testing.assert_array_equal(Oja(STEPS).release(stream, rng=rng()), expected)


def test_starts_are_independent_and_uniform():
    # Null hypothesis: with steps that move nothing, the release is the start, and an
    # entry of a uniformly random unit vector of R^3 is uniform on [-1, 1].
    draws = Oja(ConstantSteps(1e-15)).draw(ROWS[:1], 5000, rng=rng())
    uniform = stats.uniform(-1, 2).cdf
    p_values = [stats.kstest(column, uniform).pvalue for column in draws.T]
    assert min(p_values) >= 1e-9 / 3


def test_the_error_falls_as_the_root_of_the_number_of_rows():
    # Fixed seeds: sin^2 times n stays within a factor of 4 of d lambda_1 lambda_2/gap^2
    # (about what PCA itself has) as n grows thirtyfold.
    dimension, spike = 10, 4.0
    floor = (dimension - 1) * (1 + spike) / spike**2
    direction = np.eye(dimension)[:, :1]
    for count in (1000, 30_000):
        squares = []
        for seed in range(4):
            data = spiked_gaussian(
                count, dimension, spikes=[spike], basis=direction, rng=rng(seed)
            )
            steps = HarmonicSteps(2.0 / spike, 40.0)
            w = Oja(steps).release(data.rows, rng=rng(seed))
            squares.append(1 - w[0] ** 2)
        assert floor / 4 <= np.mean(squares) * count <= 4 * floor


def test_it_promises_nothing_and_an_audit_shows_why():
    mechanism = Oja(ConstantSteps(1.0))
    assert mechanism.claim is None
    assert mechanism.relation is Relation.REPLACE_ONE
    assert isinstance(mechanism, HasBatchedDraw)
    assert isinstance(mechanism, HasComponents)
    assert rebuild(encode(mechanism)) == mechanism
    rows = np.repeat([[1.0, 0.0]], 20, axis=0)
    other = rows.copy()
    other[-1] = (0.6, 0.8)
    result = audit(
        mechanism,
        pair=Pair(rows, other),
        claim=ApproxDP(3.0, 1e-3),
        max_samples=500,
    )
    assert result.verdict is Verdict.REFUTED


def test_there_is_one_component():
    draws = Oja(STEPS).draw(ROWS, 4, rng=rng())
    np.testing.assert_array_equal(Oja(STEPS).components(draws, 1)[..., 0], draws)
    with pytest.raises(InputError, match="n_components must be the 1 that"):
        Oja(STEPS).components(draws, 2)


def test_where_there_is_no_direction_there_is_no_number():
    # A step that gives zero, and one that overflows.
    gone = -np.eye(2)[None]
    assert np.isnan(Oja(1.0).draw(gone, 3, rng=rng())).all()
    far = np.full((2, 1), 1e150)
    assert np.isnan(Oja(1e10).draw(far, 3, rng=rng())).all()
    assert np.isnan(Oja(1e10).release(far, rng=rng())).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Oja(0.0), "step_sizes must be a finite number > 0, got 0.0"),
        (lambda: Oja([0.1, -0.1]), r"step_sizes\[1\] must be a finite number > 0"),
        (lambda: Oja(0.1, batch_size=0), "batch_size must be an integer >= 1"),
        (
            lambda: Oja(0.1, 30).draw(ROWS, 1, rng=rng()),
            "batch_size must be at most the number of rows, 23, got 30",
        ),
        (
            lambda: Oja([0.1]).draw(ROWS, 1, rng=rng()),
            "step_sizes must be at least 23",
        ),
        (
            lambda: Oja(0.1).draw(ROWS, -1, rng=rng()),
            "size must be an integer >= 0",
        ),
        (
            lambda: Oja(0.1).draw(np.zeros((3, 2, 4)), 1, rng=rng()),
            "data must be square matrices",
        ),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_the_law_is_that_of_an_angular_gaussian_vector():
    """P^-1 w_T has the direction of the start, which is uniform.

    Type-I error: 1e-9.
    """
    mechanism = ClaimedOja.planted(1.0)
    assert mechanism.claim == PureDP(1.0)
    rows = mechanism.worst_case().data[-4:]
    product = np.eye(2)
    for row in rows:
        product = (np.eye(2) + np.outer(row, row)) @ product
    back = np.linalg.solve(product, mechanism.draw(rows, 20_000, rng=rng(5)).T)
    angles = np.arctan2(back[1], back[0]) / np.pi % 1
    assert stats.kstest(angles, "uniform").pvalue > 1e-9


def test_the_loss_of_the_worst_case_grows_with_the_rows():
    """The largest log density ratio, by the matrices of both laws: 2 log K and more."""
    losses = []
    for count in (5, 10, 20):
        laws = []
        pair = oblique_pair(2, count=count, unit=1.0)
        for rows in (pair.data, pair.neighbour):
            product = np.eye(2)
            for row in rows:
                product = (np.eye(2) + np.outer(row, row)) @ product
            laws.append(product @ product.T)
        losses.append(np.log(linalg.eigh(laws[1], laws[0], eigvals_only=True)[-1]))
    np.testing.assert_allclose(np.diff(losses), 2 * np.log(2) * np.array([5, 10]), 0.01)


def test_a_worst_case_needs_two_dimensions():
    with pytest.raises(InputError, match="dimension must be an integer >= 2"):
        Oja(0.1).worst_case(1)
