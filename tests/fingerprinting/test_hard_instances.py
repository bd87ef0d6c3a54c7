import numpy as np
import pytest
from refusals import refused
from seeded import rng

from dpaudit.datasets.synthetic import fingerprints
from dpaudit.fingerprinting import Disguise, HardInstance, is_useful, usefulness_gap


@pytest.mark.parametrize("rotated", [False, True])
def test_undo_brings_rows_back_to_padded_codewords(rotated):
    disguise = Disguise.draw(4, pad_ratio=3, rotated=rotated, rng=rng())
    words = rng(1).choice([-1, 1], (5, 4))
    rows = disguise.rows(words)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1)
    padded = np.hstack([words, np.ones((5, 12))]) / 4
    np.testing.assert_allclose(disguise.undo(rows.T).T, padded, atol=1e-12)
    if rotated:
        square = disguise.rotation @ disguise.rotation.T
        np.testing.assert_allclose(square, np.eye(16), atol=1e-12)
    else:
        assert set(np.unique(np.abs(rows))) == {0.25}


def test_rotations_are_uniform_and_places_are_too():
    # Each mean of 2,000 bounded numbers is within 7 standard deviations of 0.
    turned = {"pad_ratio": 2, "rotated": True}
    several = (Disguise.draw(1, **turned, rng=r) for r in rng(2).spawn(2000))
    turns = np.array([each.rotation for each in several])
    assert np.abs(turns.mean(axis=0)).max() < 7 * np.sqrt(1 / 3 / 2000)
    squares = turns**2 - 1 / 3
    assert np.abs(squares.mean(axis=0)).max() < 7 * squares.std() / np.sqrt(2000)
    places = np.array(
        [Disguise.draw(1, pad_ratio=3, rng=r).places[0] for r in rng(3).spawn(2000)]
    )
    assert np.abs(np.bincount(places, minlength=4) - 500).max() < 7 * np.sqrt(375)


@pytest.mark.parametrize("shape", [(4, 9), (12, 9)])
@pytest.mark.parametrize("k", [1, 3])
def test_usefulness_against_singular_values(shape, k):
    rows = rng(6).normal(size=shape)
    sizes, vectors = np.linalg.svd(rows)[1:]
    best = vectors[:k].T
    assert usefulness_gap(rows, best) == pytest.approx(0, abs=1e-12)
    assert is_useful(rows, best, 0.0)
    other = np.linalg.qr(rng(7).normal(size=(9, k))).Q
    projector = other @ other.T
    gap = np.sum(sizes[:k] ** 2) - np.linalg.norm(projector @ rows.T) ** 2
    assert usefulness_gap(rows, other) == pytest.approx(gap)
    assert is_useful(rows, other, gap * 1.001)
    assert not is_useful(rows, other, gap * 0.999)
    bottom = np.full((9, k), np.nan)
    assert usefulness_gap(rows, bottom) == pytest.approx(np.sum(sizes[:k] ** 2))


def test_clusters_are_nearly_orthogonal_and_labelled():
    options = {"n_clusters": 3, "cutoff": 0.05, "pad_ratio": 7, "rng": rng(8)}
    made = HardInstance.generate(6, 24, **options)
    rows, labels = made.rows, made.labels
    assert rows.shape == (18, 192)
    assert labels.tolist() == [0] * 6 + [1] * 6 + [2] * 6
    overlap = np.abs(rows @ rows.T)
    same = labels[:, None] == labels
    assert overlap[same].min() > 0.7
    assert overlap[~same].max() < 0.5


def test_the_dataset():
    data = fingerprints(6, 8, n_clusters=2, pad_ratio=3, rng=rng(9))
    assert data.name == "fingerprints"
    assert data.rows.shape == (12, 32)
    assert data.labels.tolist() == [0] * 6 + [1] * 6
    assert usefulness_gap(data.rows, data.subspace) == pytest.approx(0, abs=1e-9)
    many = fingerprints(20, 2, pad_ratio=1, rng=rng(10))
    assert many.rows.shape == (20, 4)
    assert usefulness_gap(many.rows, many.subspace) == pytest.approx(0, abs=1e-9)


def instance(**changes):
    options = {"n_users": 2, "length": 3, "cutoff": 0.1, "rng": rng()}
    return HardInstance.generate(**{**options, **changes})


def disguise(length):
    return Disguise.draw(length, rng=rng())


MADE = instance()


test_bad_input = refused(
    (lambda: instance(n_users=0), "n_users must be"),
    (lambda: instance(length=0), "length must be"),
    (lambda: instance(n_clusters=0), "n_clusters must be"),
    (lambda: instance(cutoff=0.7), "cutoff must be"),
    (lambda: instance(pad_ratio=0), "pad_ratio must be"),
    (lambda: HardInstance(MADE.codes, ()), "equally many"),
    (lambda: HardInstance(MADE.codes, (disguise(4),)), "length, got 3 and 4"),
    (
        lambda: HardInstance(2 * MADE.codes, (*MADE.disguises, disguise(4))),
        "for rows of one length",
    ),
    (lambda: disguise(2).undo(np.ones((3, 1))), "must have 32 rows"),
    (lambda: disguise(2).rows([[1, 1, 1]]), "length of the code"),
    (lambda: usefulness_gap(np.eye(3), np.ones((2, 1))), "basis must have 3 rows"),
    (lambda: usefulness_gap(np.eye(2), 2 * np.eye(2)), "orthonormal"),
    (lambda: is_useful(np.eye(2), np.eye(2), -1.0), "alpha must be"),
    (lambda: fingerprints(0, 3, rng=rng()), "n_rows must be"),
)
