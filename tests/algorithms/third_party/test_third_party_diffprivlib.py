"""The adapters to diffprivlib, with the library.

Type-I error: conformance fails a correct mechanism with probability 2e-9, five times;
every other test says its own. The seeds are fixed.
"""

from importlib.metadata import version

import numpy as np
import pytest
from eigenvector_laws import DIMENSION, DIVIDED, EPSILON, WANTED, have_the_law, rows
from scipy.stats import kstest, laplace, norm

from dpaudit.algorithms import build, entry, names_of
from dpaudit.algorithms.third_party.base import near_degenerate_pair
from dpaudit.algorithms.third_party.diffprivlib import DiffprivlibPCA
from dpaudit.gaussian import gaussian_mu
from dpaudit.testing import run_conformance

NAMES = [name for name in names_of("third-party") if name.startswith("diffprivlib-")]

pytestmark = pytest.mark.skipif(
    not entry("diffprivlib-bingham").installed,
    reason="diffprivlib is not installed",
)


def generator(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("name", NAMES)
def test_every_adapter_conforms(name):
    mechanism = build(name)
    assert mechanism.seedable
    pair = mechanism.worst_case()
    if pair.data.ndim == 2:
        pair = near_degenerate_pair(2)  # where draws are quick
    run_conformance(mechanism, pair=pair, size=100)


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("diffprivlib-laplace", laplace(1.5, 2.0)),
        ("diffprivlib-gaussian", norm(1.5, 2 * np.sqrt(2 * np.log(1.25e5)))),
        ("diffprivlib-gaussian-analytic", norm(1.5, 1 / gaussian_mu(0.5, 1e-5))),
    ],
)
def test_sums_have_the_noise_that_the_library_describes(name, law):
    """Null hypothesis: that law. False alarm below a p-value of 1e-9."""
    releases = build(name, epsilon=0.5).draw([0.5, 7.0, -7.0], 2000, rng=generator())
    assert kstest(releases, law.cdf).pvalue > 1e-9
    assert kstest(releases * 1.3, law.cdf).pvalue < 1e-3


def test_an_eigenvector_is_a_unit_vector_of_either_sign():
    vectors = build("diffprivlib-bingham").draw(rows(), 60, rng=generator())
    assert vectors.shape == (60, DIMENSION)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0)
    assert 0 < (vectors[:, 0] > 0).mean() < 1


@pytest.mark.skipif(
    entry("diffprivlib-bingham").installed and version("diffprivlib") != "0.6.6",
    reason="described is diffprivlib 0.6.6",
)
def test_the_eigenvector_has_the_wrong_law():
    mechanism = build("diffprivlib-bingham", epsilon=EPSILON)
    vectors = mechanism.draw(rows(), 400, rng=generator())
    assert have_the_law(vectors, DIVIDED)
    assert not have_the_law(vectors, WANTED)


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_a_model_has_the_shapes_that_are_promised(n_components):
    data = generator().normal(size=(50, 3))
    mechanism = DiffprivlibPCA(n_components=n_components, row_norm=2.0)
    released = mechanism.release(data, rng=generator())
    assert {key: value.shape for key, value in released.items()} == {
        "components": (n_components, 3),
        "singular_values": (n_components,),
        "explained_variance": (n_components,),
        "noise_variance": (),
    }
    basis = mechanism.components(released, n_components)
    np.testing.assert_allclose(basis.T @ basis, np.eye(n_components), atol=1e-12)


def test_a_large_epsilon_finds_the_component():
    data = near_degenerate_pair(2).data[:4000]  # 3000 of one kind, 1000 of the other
    released = DiffprivlibPCA(50.0).release(data, rng=generator())
    assert abs(released["components"][0, 0]) > 0.99
    assert released["singular_values"][0] ** 2 == pytest.approx(3000, rel=0.01)
