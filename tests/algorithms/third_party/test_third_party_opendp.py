"""The adapters to OpenDP, with the library.

It draws its own randomness, so that no seed can be fixed: the false alarms are kept to
1e-10 each, of which there are three, and to a model that is far off where it is told to
be accurate.
"""

from importlib.metadata import version

import numpy as np
import pytest
from eigenvector_laws import DIMENSION, DIVIDED, EPSILON, WANTED, have_the_law, rows
from scipy.stats import kstest, laplace, norm

from dpaudit.algorithms import build, entry
from dpaudit.algorithms.third_party.base import near_degenerate_pair
from dpaudit.algorithms.third_party.opendp import OpenDPCentredPCA, OpenDPPCA
from dpaudit.audit import audit

pytestmark = pytest.mark.skipif(
    not entry("opendp-eigenvector").installed,
    reason="opendp is not installed",
)
RNG = np.random.default_rng(0)  # not used by OpenDP


# Claims: what the maps of the library say


def test_sums_claim_what_the_map_says_of_one_row():
    assert build("opendp-laplace", epsilon=0.5).measurement().map(1) == 0.5
    epsilon, delta = build("opendp-gaussian", epsilon=0.5).measurement().map(1)
    assert epsilon == pytest.approx(0.5, rel=1e-9)
    assert epsilon <= 0.5
    assert delta == 1e-5


def test_an_eigenvector_claims_what_the_map_says_of_two_rows():
    measurement = build("opendp-eigenvector", epsilon=0.7).measurement(3, 50)
    assert str(measurement.input_metric) == "SymmetricDistance()"
    assert measurement.map(2) == 0.7


@pytest.mark.parametrize("constructor", [OpenDPPCA, OpenDPCentredPCA])
def test_a_model_claims_what_the_map_says_of_two_rows(constructor):
    mechanism = constructor(0.7)
    if constructor is OpenDPPCA:
        assert mechanism.model(3, 50).epsilon == 0.35
        measurement = mechanism.model(3, 50).measurement()
    else:
        measurement = mechanism.measurement(3, 50)
    assert str(measurement.input_metric) == "SymmetricDistance()"
    assert measurement.map(2) == pytest.approx(0.7, rel=1e-9)
    assert measurement.map(2) <= 0.7 * (1 + 1e-9)


# Releases


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("opendp-laplace", laplace(1.5, 2.0)),
        ("opendp-gaussian", norm(1.5, 7.88)),
    ],
)
def test_sums_have_the_noise_that_the_library_describes(name, law):
    """Null hypothesis: that law. False alarm below a p-value of 1e-10."""
    releases = build(name, epsilon=0.5).draw([0.5, 7.0, -7.0], 1500, rng=RNG)
    assert releases.shape == (1500,)
    assert kstest(releases, law.cdf).pvalue > 1e-10


@pytest.mark.parametrize("name", ["opendp-laplace", "opendp-eigenvector"])
def test_the_seed_makes_no_difference(name):
    mechanism = build(name)
    assert not mechanism.seedable
    data = rows() if name == "opendp-eigenvector" else [1.0]
    first, again = (
        mechanism.draw(data, 5, rng=np.random.default_rng(1)) for _ in range(2)
    )
    assert not np.array_equal(first, again)


def test_an_eigenvector_is_a_unit_vector():
    mechanism = build("opendp-eigenvector")
    vectors = mechanism.draw(rows(), 20, rng=RNG)
    assert vectors.shape == (20, DIMENSION)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0)


@pytest.mark.skipif(
    entry("opendp-eigenvector").installed and version("opendp") != "0.16.0",
    reason="described is OpenDP 0.16.0",
)
def test_the_eigenvector_has_the_wrong_law():
    mechanism = build("opendp-eigenvector", epsilon=EPSILON)
    vectors = mechanism.draw(rows(), 400, rng=RNG)
    assert have_the_law(vectors, DIVIDED)
    assert not have_the_law(vectors, WANTED)


@pytest.mark.parametrize("n_components", [1, 3])
def test_a_model_has_the_shapes_that_are_promised(n_components):
    data = np.random.default_rng(1).normal(size=(50, 3))
    mechanism = OpenDPPCA(n_components=n_components, row_norm=2.0)
    released = mechanism.release(data, rng=RNG)
    assert {key: value.shape for key, value in released.items()} == {
        "mean": (3,),
        "components": (n_components, 3),
        "singular_values": (n_components,),
        "explained_variance": (n_components,),
        "noise_variance": (),
    }
    basis = mechanism.components(released, n_components)
    np.testing.assert_allclose(basis.T @ basis, np.eye(n_components), atol=1e-9)


def test_a_model_of_centred_data_has_components_and_values_alone():
    data = np.random.default_rng(1).normal(size=(50, 3))
    released = OpenDPCentredPCA(n_components=1, row_norm=2.0).release(data, rng=RNG)
    shapes = {key: value.shape for key, value in released.items()}
    assert shapes == {"components": (1, 3), "singular_values": (3,)}


@pytest.mark.parametrize("constructor", [OpenDPPCA, OpenDPCentredPCA])
def test_a_large_epsilon_finds_the_component(constructor):
    data = near_degenerate_pair(2).data[:4000]  # 3000 of one kind, 1000 of the other
    released = constructor(100.0).release(data, rng=RNG)
    assert abs(released["components"][0, 0]) > 0.99
    assert released["singular_values"][0] ** 2 == pytest.approx(3000, rel=0.02)


def test_an_audit_says_that_the_library_draws_its_own_randomness():
    result = audit(build("opendp-laplace"), max_samples=100)
    assert any("randomness of its own" in warning for warning in result.warnings)
    assert any("does not use its rng" in warning for warning in result.warnings)
