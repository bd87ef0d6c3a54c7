"""Stylised genotypes: alleles, where the inliers lie, the user's scores, bad input.

No null hypothesis is tested; seeds are fixed, and bounds are many standard errors wide.
"""

import numpy as np
import pytest

from dpaudit.datasets.genotypes import stylised_genotypes, synthetic_map
from dpaudit.errors import InputError
from dpaudit.streams import stream
from dpaudit.subspace import principal_angles, top_components


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


def test_the_subspace_is_that_of_the_principal_components():
    scores = synthetic_map(40, rng=stream(5))
    data = stylised_genotypes(40, 0, 30, scores=scores, rng=stream(6))
    # The same stream again: the places of outliers, the order, then the loadings.
    again = stream(6)
    again.uniform(-0.5, 0.5, size=(0, 30))
    again.permutation(40)
    product = scores @ again.standard_normal((20, 30))
    expected = np.linalg.svd(product).Vh[:2].T
    assert principal_angles(expected, data.subspace).max() < 1e-10


def test_the_map_has_two_large_axes():
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
    with pytest.raises(InputError, match=message):
        stylised_genotypes(scores=file, rng=stream(0))
