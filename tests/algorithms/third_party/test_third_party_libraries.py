"""The adapters to diffprivlib and OpenDP, where these are installed.

Type-I error: conformance fails a correct mechanism with probability 2e-9, a test of a
law with 1e-10. The seeds of diffprivlib are fixed; OpenDP draws its own randomness.
"""

from importlib.metadata import version

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import kstest, laplace, norm

from dpaudit.algorithms import build, entry, names_of
from dpaudit.algorithms.third_party.base import near_degenerate_pair
from dpaudit.audit import audit
from dpaudit.gaussian import gaussian_mu
from dpaudit.testing import run_conformance

NAMES = [name for name in names_of("third-party") if name.startswith("diffprivlib-")]
EIGENVECTORS = {"diffprivlib-bingham": "0.6.6", "opendp-eigenvector": "0.16.0"}
# Unit rows with the second-moment matrix diag(20, 8): (epsilon/4) times the gap is 3.
STEEPNESS, ROWS = 3.0, np.repeat(np.eye(2), (20, 8), axis=0)


def built(name, **options):
    if not entry(name).installed:
        pytest.skip("make third-party")
    return build(name, **options)


def draws(mechanism, data, size):
    return mechanism.draw(data, size, rng=np.random.default_rng(0))


@pytest.mark.parametrize("name", NAMES)
def test_every_adapter_conforms(name):
    mechanism = built(name)
    assert mechanism.seedable
    pair = mechanism.worst_case()
    if pair.data.ndim == 2:
        pair = near_degenerate_pair(2)  # where draws are quick
    run_conformance(mechanism, pair=pair, size=100)


# Claims: what the maps of OpenDP say
def test_sums_claim_what_the_map_says_of_one_row():
    assert built("opendp-laplace", epsilon=0.5).measurement().map(1) == 0.5
    epsilon, delta = built("opendp-gaussian", epsilon=0.5).measurement().map(1)
    assert epsilon == pytest.approx(0.5, rel=1e-9)
    assert epsilon <= 0.5
    assert delta == 1e-5


@pytest.mark.parametrize(
    "name", ["opendp-eigenvector", "opendp-pca", "opendp-pca-centred"]
)
def test_eigenvectors_claim_what_the_map_says_of_two_rows(name):
    mechanism = built(name, epsilon=0.7)
    if name == "opendp-pca":
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
        ("diffprivlib-laplace", laplace(1.5, 2.0)),
        ("diffprivlib-gaussian", norm(1.5, 2 * np.sqrt(2 * np.log(1.25e5)))),
        ("diffprivlib-gaussian-analytic", norm(1.5, 1 / gaussian_mu(0.5, 1e-5))),
        *(("opendp-laplace", laplace(1.5, 2.0)), ("opendp-gaussian", norm(1.5, 7.88))),
    ],
)
def test_sums_have_the_noise_that_the_library_describes(name, law):
    releases = draws(built(name, epsilon=0.5), [0.5, 7.0, -7.0], 1500)
    assert releases.shape == (1500,)
    assert kstest(releases, law.cdf).pvalue > 1e-10


@pytest.mark.parametrize("name", ["opendp-laplace", "opendp-eigenvector"])
def test_the_seed_makes_no_difference_to_opendp(name):
    mechanism = built(name)
    assert not mechanism.seedable
    data = ROWS if name == "opendp-eigenvector" else [1.0]
    assert not np.array_equal(draws(mechanism, data, 5), draws(mechanism, data, 5))


def test_an_audit_says_that_the_library_draws_its_own_randomness():
    result = audit(built("opendp-laplace"), budget=100)
    assert any("randomness of its own" in warning for warning in result.warnings)
    assert any("does not use its rng" in warning for warning in result.warnings)


def mean_power(exponent, power):
    """Return E[u_2^exponent] under the density e^-t (1 + 2 t/b)^power.

    For u = (cos a, sin a), t = 3 sin(a)^2 is the exponent of the law wanted, and b the
    constant of the envelope: 1/b + 1/(b + 2 * 3) = 1.
    """
    b = brentq(lambda b: 1 / b + 1 / (b + 2 * STEEPNESS) - 1, 1, 2)

    def density(angle):
        t = STEEPNESS * np.sin(angle) ** 2
        return np.exp(-t) * (1 + 2 * t / b) ** power

    moment, _ = quad(lambda a: np.sin(a) ** exponent * density(a), 0, np.pi)
    return moment / quad(density, 0, np.pi)[0]


@pytest.mark.parametrize("name", EIGENVECTORS)
def test_the_eigenvector_has_the_wrong_law(name):
    """Both divide by the envelope's (1 + 2 t/b)^(d/2) where they must multiply.

    By Bernstein's inequality: the mean of n independent variables in [0, 1] of variance
    v is off by x or more with probability at most 2 exp(-n x^2/(2 v + 2 x/3)).
    """
    mechanism = built(name, epsilon=1.0)
    vectors = draws(mechanism, ROWS, 400)
    assert vectors.shape == (400, 2)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0)
    if name == "diffprivlib-bingham":
        assert 0 < (vectors[:, 0] > 0).mean() < 1
    if version(mechanism.library) != EIGENVECTORS[name]:
        pytest.skip(f"described is {mechanism.library} {EIGENVECTORS[name]}")
    rate = np.log(2 / 1e-10) / len(vectors)
    for power, is_it in ((-2, True), (0, False)):
        expected = mean_power(2, power)
        variance = mean_power(4, power) - expected**2
        allowed = rate / 3 + np.sqrt((rate / 3) ** 2 + 2 * rate * variance)
        assert (abs(np.mean(vectors[:, 1] ** 2) - expected) < allowed) == is_it


@pytest.mark.parametrize("name", ["diffprivlib-pca", "opendp-pca"])
@pytest.mark.parametrize("n_components", [1, 3])
def test_a_model_has_the_shapes_that_are_promised(name, n_components):
    data = np.random.default_rng(1).normal(size=(50, 3))
    mechanism = built(name, n_components=n_components, row_norm=2.0)
    released = mechanism.release(data, rng=np.random.default_rng(0))
    assert {key: value.shape for key, value in released.items()} == {
        **({"mean": (3,)} if name == "opendp-pca" else {}),
        **{"components": (n_components, 3), "singular_values": (n_components,)},
        **{"explained_variance": (n_components,), "noise_variance": ()},
    }
    basis = mechanism.components(released, n_components)
    np.testing.assert_allclose(basis.T @ basis, np.eye(n_components), atol=1e-9)


def test_a_model_of_centred_data_has_components_and_values_alone():
    released = built("opendp-pca-centred", n_components=1).release(
        np.random.default_rng(1).normal(size=(50, 3)), rng=np.random.default_rng(0)
    )
    shapes = {key: value.shape for key, value in released.items()}
    assert shapes == {"components": (1, 3), "singular_values": (3,)}


@pytest.mark.parametrize(
    "name", ["diffprivlib-pca", "opendp-pca", "opendp-pca-centred"]
)
def test_a_large_epsilon_finds_the_component(name):
    data = near_degenerate_pair(2).data[:4000]  # 3000 of one kind, 1000 of the other
    mechanism = built(name, epsilon=100.0)
    released = mechanism.release(data, rng=np.random.default_rng(0))
    assert abs(released["components"][0, 0]) > 0.99
    assert released["singular_values"][0] ** 2 == pytest.approx(3000, rel=0.02)
