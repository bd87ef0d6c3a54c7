"""The models of the streaming family, and stylised genotypes: rows and constants.

Type-I error: 1e-9 for the test that names a null hypothesis, at fixed seeds; other
bounds are many standard errors wide.
"""

from dataclasses import astuple

import numpy as np
import pytest
import scipy.optimize
from refusals import refused, refuses
from scipy import stats

from dpaudit.datasets import signal_in_noise
from dpaudit.datasets.genotypes import stylised_genotypes, synthetic_map
from dpaudit.datasets.streaming_models import gaussian_constants, signal_constants
from dpaudit.streams import stream
from dpaudit.subspace import principal_angles, top_components


def test_rows_are_signal_and_noise():
    # Null hypothesis: less the signed direction, entries are N(0, 0.3^2); signs are
    # fair and independent of them.
    data = signal_in_noise(5000, 4, noise=0.3, rng=stream(0))
    assert data.subspace.shape == (4, 1)
    v = data.subspace[:, 0]
    assert np.linalg.norm(v) == pytest.approx(1)
    signs = 2 * data.labels - 1
    noise = (data.rows - signs[:, None] * v) / 0.3
    p_values = [stats.kstest(column, stats.norm.cdf).pvalue for column in noise.T]
    squares = (noise**2).sum(axis=1)
    p_values.append(stats.kstest(squares, stats.chi2(4).cdf).pvalue)
    p_values.append(stats.binomtest(int(data.labels.sum()), 5000).pvalue)
    turned = signs * (noise @ v)
    p_values.append(stats.kstest(turned, stats.norm.cdf).pvalue)
    assert min(p_values) >= 1e-9 / len(p_values)
    only = signal_in_noise(9, 3, noise=0.0, direction=[0.0, 0.6, 0.8], rng=stream(0))
    np.testing.assert_allclose(np.abs(only.rows), np.tile([0.0, 0.6, 0.8], (9, 1)))
    np.testing.assert_allclose(only.subspace[:, 0], [0.0, 0.6, 0.8])


# Constants, from the moments of all orders by quadrature over the noise
def moments(sigma, d):
    """Nodes (x) and weights of the law of Example 4.1, exact to degree eight."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    weights = weights / weights.sum()
    grids = np.meshgrid(*[nodes] * d, indexing="ij")
    masses = np.meshgrid(*[weights] * d, indexing="ij")
    points = sigma * np.stack([grid.ravel() for grid in grids], axis=1)
    mass = np.prod([each.ravel() for each in masses], axis=0)
    v = np.zeros(d)
    v[0] = 1.0
    return np.concatenate([points + v, points - v]), np.concatenate([mass, mass]) / 2


def constants(points, mass):
    """The eigenvalues, V and gamma of a law with finitely many points."""
    matrices = points[:, :, None] * points[:, None]
    mean = np.einsum("n,nab->ab", mass, matrices)
    values = np.linalg.eigvalsh(mean)[::-1]
    centred = matrices - mean
    square = np.einsum("n,nab,nbc->ac", mass, centred, centred)

    def spread(flat):
        u = flat / np.linalg.norm(flat)
        products = centred @ u
        covariance = np.einsum("n,na,nb->ab", mass, products, products)
        return -np.linalg.eigvalsh(covariance)[-1]

    starts = stream(1).standard_normal((6, points.shape[1]))
    largest = -min(scipy.optimize.minimize(spread, start).fun for start in starts)
    variance = np.linalg.eigvalsh(square)[-1] / values[0] ** 2
    return values[0], values[1], variance, np.sqrt(largest) / values[0]


@pytest.mark.parametrize("sigma", [0.05, 0.5, 1.5])
@pytest.mark.parametrize("d", [2, 3])
def test_the_constants_of_the_example(sigma, d):
    found = signal_constants(sigma, d)
    expected = constants(*moments(sigma, d))
    assert astuple(found) == pytest.approx(expected, rel=1e-5)
    assert found.gap == pytest.approx(1.0)
    assert found.kappa == pytest.approx(1 + sigma**2)


def test_the_constants_of_gaussian_rows():
    scales = (3.0, 0.5, 0.2)
    nodes, mass = (each[: len(each) // 2] for each in moments(1.0, 3))
    points = (nodes - np.eye(3)[0]) * np.sqrt(scales)
    found = gaussian_constants(scales[::-1])
    assert astuple(found) == pytest.approx(constants(points, 2 * mass), rel=1e-5)


test_bad_constants_are_named = refused(
    (gaussian_constants, ([1.0, 1.0],), "eigenvalues must have one that is"),
    (gaussian_constants, ([1.0],), "eigenvalues must be two or more"),
    (gaussian_constants, ([2.0, -1.0],), "eigenvalues must be two or more"),
    (signal_constants, (-1.0, 3), "noise must be a finite number >= 0"),
    (signal_constants, (1.0, 1), "dimension must be an integer >= 2"),
    by=lambda function, arguments: function(*arguments),
)


def test_alleles_are_three_and_about_equally_common():
    data = stylised_genotypes(300, 200, 400, rng=stream(1))
    assert data.rows.shape == (500, 400)
    for label in (0, 1):
        values, counts = np.unique(data.rows[data.labels == label], return_counts=True)
        assert np.array_equal(values, [0, 1, 2])
        shares = counts / counts.sum()
        assert 0.2 < shares.min() <= shares.max() < 0.5
    # Shuffled: 150 are expected in the first half, with a deviation of 5.5.
    assert 110 < data.labels[:250].sum() < 190
    centred = stylised_genotypes(300, 200, 400, centred=True, rng=stream(1))
    assert np.array_equal(centred.rows, data.rows - 1)


def test_inliers_are_near_their_subspace_and_outliers_are_not():
    data = stylised_genotypes(400, 300, 1500, centred=True, rng=stream(2))
    inside, outside = (data.rows[data.labels == label] for label in (1, 0))
    basis = top_components(inside.T @ inside, 2)
    assert np.degrees(principal_angles(basis, data.subspace)).max() < 15
    kept = [
        np.sum((rows @ data.subspace) ** 2) / np.sum(rows**2)
        for rows in (inside, outside)
    ]
    assert kept[0] > 0.4
    assert kept[1] < 0.02


def test_scores_are_taken_from_arrays_and_files(tmp_path):
    scores = synthetic_map(30, rng=stream(3))
    given = stylised_genotypes(n_outliers=5, dimension=50, scores=scores, rng=stream(4))
    assert given.labels.sum() == 30
    for text, name in ((" ", "spaces"), (",", "commas")):
        file = tmp_path / name
        np.savetxt(file, scores, delimiter=text)
        read = stylised_genotypes(
            n_outliers=5, dimension=50, scores=file, rng=stream(4)
        )
        assert np.array_equal(read.rows, given.rows)
        assert "user's" in read.source
    only = stylised_genotypes(30, 0, 50, scores=scores, rng=stream(4))
    assert only.labels.all()


def test_the_subspace_is_that_of_the_components_and_the_map_has_two_axes():
    scores = synthetic_map(40, rng=stream(5))
    data = stylised_genotypes(40, 0, 30, scores=scores, rng=stream(6))
    # The same stream again: the places of outliers, the order, then the loadings.
    again = stream(6)
    again.uniform(-0.5, 0.5, size=(0, 30))
    again.permutation(40)
    product = scores @ again.standard_normal((20, 30))
    expected = np.linalg.svd(product).Vh[:2].T
    assert principal_angles(expected, data.subspace).max() < 1e-10
    spread = synthetic_map(2000, rng=stream(7)).std(axis=0)
    assert spread[:2].min() > 0.35
    assert spread[2:].max() < 0.25


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2\n3 four\n", "cannot be read"),
        ("1 2\n3 4 5\n", "as many on every line"),
        ("", "n >= 2|shape"),
    ],
)
def test_bad_files_are_named(tmp_path, text, message):
    file = tmp_path / "scores"
    file.write_text(text)
    refuses(message, stylised_genotypes, scores=file, rng=stream(0))
