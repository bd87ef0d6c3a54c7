import numpy as np
import pytest
from attack_cases import REPLACED, ROWS, SCALARS, black_box

from dpaudit import Pair
from dpaudit.attacks import (
    CanaryOverlap,
    CanaryQuadratic,
    Reconstruction,
    Target,
    Tracing,
)
from dpaudit.attacks.base import canary_rows, common_mean
from dpaudit.subspace import second_moment

X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def are_orthonormal(bases):
    return CanaryOverlap().applies(Target(black_box, ROWS), bases)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_canary_of_add_remove(place):
    shorter = np.delete(X, place, axis=0)
    ours, theirs = canary_rows(Pair(X, shorter))
    assert ours.tolist() == [X[place].tolist()]
    assert theirs.shape == (0, 2)
    ours, theirs = canary_rows(Pair(shorter, X))
    assert theirs.tolist() == [X[place].tolist()]
    assert ours.shape == (0, 2)
    np.testing.assert_allclose(common_mean(Pair(X, shorter)), shorter.mean(axis=0))
    np.testing.assert_allclose(common_mean(Pair(shorter, X)), shorter.mean(axis=0))


def test_canary_of_replace_one_and_alone():
    other = X.copy()
    other[1] = 9.0
    ours, theirs = canary_rows(Pair(X, other))
    assert (ours.tolist(), theirs.tolist()) == ([[3.0, 4.0]], [[9.0, 9.0]])
    np.testing.assert_allclose(common_mean(Pair(X, other)), X[[0, 2]].mean(axis=0))
    pair = Pair(np.zeros((0, 2)), np.ones((1, 2)))
    assert canary_rows(pair)[1].tolist() == [[1.0, 1.0]]
    assert common_mean(pair).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("pair", [ROWS, REPLACED, Pair(ROWS.neighbour, ROWS.data)])
def test_moment_difference_is_that_of_the_second_moments(pair):
    expected = second_moment(pair.data) - second_moment(pair.neighbour)
    fitted = CanaryQuadratic().fit(Target(black_box, pair), None, None)
    np.testing.assert_allclose(fitted["difference"], expected, atol=1e-15)


def scores(attack, pair, releases):
    target = Target(black_box, pair)
    return attack.score(target, attack.fit(target, releases, releases), releases)


def test_quadratic_forms_orthonormality_and_scalar_rows():
    rng = np.random.default_rng(0)
    releases = rng.normal(size=(5, 3, 3))
    x, y = REPLACED.data[1], REPLACED.neighbour[1]
    expected = [x @ r @ x - y @ r @ y for r in releases]
    np.testing.assert_allclose(scores(CanaryQuadratic(), REPLACED, releases), expected)
    basis = np.tile(np.eye(3)[:, :2], (10, 1, 1))
    assert are_orthonormal(basis)
    basis[0], basis[1], basis[2] = np.nan, 0.0, 1e200
    assert are_orthonormal(basis)
    assert not are_orthonormal(1.01 * basis)
    assert not are_orthonormal(np.full((10, 3, 1), 1e200))
    assert not are_orthonormal(np.full((10, 3, 1), np.nan))
    target = Target(black_box, SCALARS)
    for attack in (CanaryQuadratic(), CanaryOverlap(), Tracing(), Reconstruction()):
        assert not attack.applies(target, np.ones((5, 1, 1)))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("pair", [ROWS, REPLACED])
@pytest.mark.parametrize("attack", [CanaryOverlap(), Tracing()], ids=lambda a: a.name)
def test_overlaps_do_not_depend_on_the_basis(attack, pair, transposed):
    rng = np.random.default_rng(0)
    bases = np.linalg.qr(rng.normal(size=(9, 3, 2)))[0]
    turned = bases @ np.linalg.qr(rng.normal(size=(9, 2, 2)))[0]
    if transposed:
        bases, turned = bases.swapaxes(1, 2), turned.swapaxes(1, 2)
    before, after = (scores(attack, pair, b) for b in (bases, turned))
    np.testing.assert_allclose(after, before, atol=1e-12)
    assert np.ptp(before) > 0.1


def test_overlap_is_the_length_minus_the_residual_and_that_of_top_eigenvectors():
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 3, 2)))[0]
    x = ROWS.data[2]
    residual = [np.sum((x - v @ v.T @ x) ** 2) for v in basis]
    np.testing.assert_allclose(
        scores(CanaryOverlap(), ROWS, basis), x @ x - np.array(residual)
    )
    rng = np.random.default_rng(0)
    vectors = np.linalg.qr(rng.normal(size=(6, 3, 3)))[0]
    matrices = vectors @ np.diag([5.0, 1.0, -7.0]) @ vectors.swapaxes(1, 2)
    np.testing.assert_allclose(
        scores(CanaryOverlap(), ROWS, matrices),
        scores(CanaryOverlap(), ROWS, vectors[:, :, 0]),
        atol=1e-12,
    )


def test_tracing_compares_with_the_others():
    releases = np.random.default_rng(0).normal(size=(5, 3))
    x, reference = ROWS.data[2], ROWS.neighbour.mean(axis=0)
    np.testing.assert_allclose(
        scores(Tracing(), ROWS, releases), releases @ (x - reference)
    )
    x, y = REPLACED.data[1], REPLACED.neighbour[1]
    np.testing.assert_allclose(
        scores(Tracing(), REPLACED, releases), releases @ (x - y)
    )
    backwards = Pair(ROWS.neighbour, ROWS.data)
    np.testing.assert_allclose(
        scores(Tracing(), backwards, releases), -scores(Tracing(), ROWS, releases)
    )


def test_reconstruction_loss():
    rng = np.random.default_rng(0)
    x, y = REPLACED.data[1], REPLACED.neighbour[1]

    def loss(v, row):
        return np.sum((row - v @ v.T @ row) ** 2)

    bases = rng.normal(size=(5, 3, 2))
    expected = [loss(v, y) - loss(v, x) for v in bases]
    for releases in (bases, bases.swapaxes(1, 2)):
        np.testing.assert_allclose(
            scores(Reconstruction(), REPLACED, releases), expected
        )
    vectors, x = rng.normal(size=(5, 3)), ROWS.data[2]
    np.testing.assert_allclose(
        scores(Reconstruction(), ROWS, vectors),
        [-np.sum((x - v) ** 2) for v in vectors],
    )


@pytest.mark.parametrize("shape", [(4, 0), (4, 0, 2), (4, 2, 0), (4, 0, 0)])
def test_releases_without_entries_are_no_subspaces(shape):
    assert not CanaryOverlap().applies(Target(black_box, ROWS), np.zeros(shape))


@pytest.mark.parametrize(
    "attack",
    [CanaryQuadratic(), CanaryOverlap(), Tracing(), Reconstruction()],
    ids=lambda a: a.name,
)
def test_releases_that_are_not_finite_come_last(attack):
    shape = (4, 3, 3) if attack.name == "canary-quadratic" else (4, 3)
    releases = np.random.default_rng(0).normal(size=shape)
    releases[1], releases[2, 0] = np.nan, np.inf
    result = scores(attack, ROWS, releases)
    assert np.isneginf(result[1:3]).all()
    assert np.isfinite(result[[0, 3]]).all()
