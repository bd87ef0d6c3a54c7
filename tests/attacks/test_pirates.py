import numpy as np
import pytest
from attack_cases import subspace
from refusals import refused
from seeded import rng

from dpaudit.algorithms.catalogue import CATALOGUE, build
from dpaudit.attacks import EigenvectorPirate, SubspacePirate
from dpaudit.attacks.pirates import planted_vector, released_basis, rounded
from dpaudit.fingerprinting import TardosCode, collude, invalid_share
from dpaudit.subspace import second_moment


def covariance(data, rng):
    return second_moment(data)


def code(n_users=4, length=64, seed=1):
    return TardosCode.generate(n_users, length, cutoff=0.05, rng=rng(seed))


def basis(d, k, seed=2):
    return np.linalg.qr(rng(seed).normal(size=(d, k))).Q


@pytest.mark.parametrize("m", [1, 3, 5, 20])
def test_principal_components_write_a_valid_word(m):
    # Lemma 23: on all unanimous positions, not on most of them.
    words = code(m, 40).codewords
    word = EigenvectorPirate(covariance).pirate(words, rng=rng())
    assert set(np.unique(word)) <= {-1.0, 1.0}
    assert invalid_share(word, words) == 0


def test_without_noise_and_with_many_ones_the_word_is_the_majority():
    words = code(5, 200).codewords
    word = EigenvectorPirate(subspace(1), pad_ratio=40).pirate(words, rng=rng())
    assert np.mean(word != collude(words, "majority", rng=rng())) < 0.01


@pytest.mark.parametrize("k", [1, 2, 3])
def test_subspaces_write_a_nearly_valid_word(k):
    words = code(6, 40).codewords
    pirate = SubspacePirate(subspace(k), k, 0.05, pad_ratio=7)
    shares = [invalid_share(pirate.pirate(words, rng=rng(i)), words) for i in range(10)]
    # The other clusters disturb the smaller entries.
    assert np.mean(shares) <= 0.02 * (k - 1)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_sign_is_chosen_by_the_padding(sign):
    def signed(data, rng):
        return sign * np.linalg.svd(data, full_matrices=False)[2][0]

    words = code().codewords
    pirates = [EigenvectorPirate(signed), SubspacePirate(signed, 1, 0.05)]
    for pirate in pirates:
        assert invalid_share(pirate.pirate(words, rng=rng()), words) == 0


def count(vector):
    d = len(vector)
    return np.count_nonzero(vector[d // 2 :] >= 1 / (20 * np.sqrt(d)))


def test_the_planted_vector_depends_on_no_basis_and_beats_all_angles():
    v = basis(80, 3)
    planted = planted_vector(v)
    assert np.linalg.norm(planted) == pytest.approx(1)
    turn = np.linalg.qr(rng(3).normal(size=(3, 3))).Q
    for other in (v @ turn, -v, v[:, ::-1]):
        np.testing.assert_allclose(planted_vector(other), planted, atol=1e-9)
    angles = np.linspace(0, 2 * np.pi, 3001)
    for seed in range(12):
        v = basis(96, 2, seed)
        # A padding direction with noise, as a release would show it.
        v[:, 0] += np.where(np.arange(96) >= 12, 0.1, 0.0)
        v = np.linalg.qr(v).Q
        best = max(count(v @ np.array([np.cos(a), np.sin(a)])) for a in angles)
        found = count(planted_vector(v))
        assert found <= best
        assert found >= best - 3


def test_vectors_without_padding_are_units_and_roundings_signs():
    v = np.zeros((8, 2))
    v[0, 0] = v[1, 1] = 1.0
    assert np.linalg.norm(planted_vector(v)) == pytest.approx(1)
    assert rounded(np.array([-0.5, 0.0, 2.0])).tolist() == [-1.0, 1.0, 1.0]
    assert rounded(np.array([np.nan, 1.0])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("form", ["basis", "transposed", "projector", "covariance"])
def test_the_basis_of_a_release(form):
    v = basis(6, 2)
    release = {
        **{"basis": v, "transposed": v.T, "projector": v @ v.T},
        "covariance": v @ np.diag([3.0, 2.0]) @ v.T + 0.1 * np.eye(6),
    }[form]
    found = released_basis(covariance, release, 6, 2)
    np.testing.assert_allclose(found @ found.T, v @ v.T, atol=1e-12)
    vector = released_basis(covariance, v[:, 0], 6, 1)
    np.testing.assert_allclose(np.abs(vector[:, 0]), np.abs(v[:, 0]), atol=1e-12)


@pytest.mark.parametrize("shape", [(6,), (6, 1), (6, 6)])
def test_no_subspace_is_no_word(shape):
    nothing = np.full(shape, np.nan)
    assert np.isnan(released_basis(covariance, nothing, 6, 1)).all()

    def bottom(data, rng):
        return np.full(data.shape[1], np.nan)

    word = EigenvectorPirate(bottom, pad_ratio=1).pirate(code().codewords, rng=rng())
    assert not word.any()
    word = SubspacePirate(bottom, 1, 0.1).pirate(code(4, 8).codewords, rng=rng())
    assert not word.any()


SUBSPACES = [
    name
    for name, each in CATALOGUE.items()
    if each.installed
    and hasattr(each.owner, "components")
    # The one takes seconds for rows so long, and the other needs more of them.
    and name not in ("k-norm-covariance", "private-oja")
]


@pytest.mark.parametrize("name", SUBSPACES)
def test_every_subspace_mechanism_serves_the_pirates(name):
    words = code(24, 6).codewords
    mechanism = build(name)
    pirate = EigenvectorPirate(mechanism, pad_ratio=1)
    word = pirate.pirate(words, rng=rng())
    assert word.shape == (6,)
    assert set(np.unique(np.abs(word))) <= {0.0, 1.0}
    if getattr(mechanism, "seedable", True):
        again = pirate.pirate(words, rng=rng())
        np.testing.assert_array_equal(word, again)


@pytest.mark.parametrize("name", ["block-oja", "power-method", "private-subspace"])
def test_mechanisms_with_a_fixed_number_of_components_serve_algorithm_6(name):
    mechanism = build(name, n_components=2)
    pirate = SubspacePirate(mechanism, 2, 0.1, pad_ratio=1)
    assert pirate.pirate(code(24, 6).codewords, rng=rng()).shape == (6,)


test_bad_input = refused(
    (lambda: SubspacePirate(covariance, 0, 0.1), "n_components must be"),
    (lambda: SubspacePirate(covariance, 1, 0.5), "cutoff must be"),
    (lambda: EigenvectorPirate(covariance, 0), "pad_ratio must be"),
    (
        lambda: EigenvectorPirate(covariance).pirate([[0]], rng=rng()),
        "codewords must be -1 or 1",
    ),
    (
        lambda: EigenvectorPirate(covariance).pirate(np.ones((0, 2)), rng=rng()),
        "at least one codeword",
    ),
    (lambda: EigenvectorPirate(covariance).pirate([[1]], rng=1), "Generator"),
    (lambda: EigenvectorPirate(3).pirate([[1]], rng=rng()), "be callable, got 3"),
    (lambda: released_basis(covariance, np.eye(3), 3, 4), "n_components must be"),
    (lambda: released_basis(covariance, np.ones(4), 3, 1), r"got shape \(4,\)"),
    (lambda: released_basis(covariance, {"x": np.ones(3)}, 3, 1), "got dict"),
    (
        lambda: released_basis(covariance, rng().normal(size=(3, 3)), 3, 1),
        "a symmetric 3 x 3 matrix",
    ),
    (
        lambda: EigenvectorPirate(build("laplace")).pirate([[1, 1]], rng=rng()),
        "must release 1 vectors|must",
    ),
    (
        lambda: EigenvectorPirate(build("power-method", n_components=2)).pirate(
            [[1, 1]], rng=rng()
        ),
        "n_components must be the 2",
    ),
)
