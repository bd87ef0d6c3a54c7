"""DP-PCA for several components, each from rows of its own.

Nothing here is random from run to run: seeds are fixed.
"""

import numpy as np
import pytest
from seeded import rng

from dpaudit import ApproxDP, InputError, Relation
from dpaudit.algorithms import DPPCA
from dpaudit.algorithms.streaming.k_dp_pca import KDPPCA
from dpaudit.subspace import projector_distance

GRADED = [1.0, 0.5, 0.1, 0.1]


def graded(n, seed=0):
    return rng(seed).standard_normal((n, len(GRADED))) * GRADED


def test_one_component_is_dp_pca_tuned_and_more_are_found():
    rows = graded(2000)
    one = DPPCA.tuned(20.0, 1e-2).draw(rows, 8, rng=rng(1))
    several = KDPPCA.calibrated(20.0, 1e-2, n_components=1)
    np.testing.assert_array_equal(several.draw(rows, 8, rng=rng(1))[:, :, 0], one)
    mechanism = KDPPCA.calibrated(4.0, 1e-6, n_components=2)
    bases = mechanism.draw(graded(100_000), 6, rng=rng(1))
    assert np.median(projector_distance(bases, np.eye(4)[:, :2])) < 0.05
    gram = bases.swapaxes(1, 2) @ bases
    np.testing.assert_allclose(gram, np.tile(np.eye(2), (6, 1, 1)), atol=1e-9)


def test_each_component_reads_its_part_alone():
    """A part that changes leaves what comes before as it was, and what comes of it;
    rows that are left over change nothing at all."""
    mechanism = KDPPCA.calibrated(40.0, 1e-2, n_components=3)
    rows = graded(3 * 900 + 2)
    runs = mechanism.transcript(rows, 4, rng=rng(1))
    assert np.isfinite(runs["means"]).all()
    for part in range(4):
        other = rows.copy()
        changed = other[900 * part : 900 * (part + 1)]
        changed[:] = graded(len(changed), seed=9)
        moved = mechanism.transcript(other, 4, rng=rng(1))
        for name in ("starts", "scales", "means"):
            same = [
                np.array_equal(runs[name][:, j], moved[name][:, j]) for j in range(3)
            ]
            first = part + (name == "starts")  # which are orthogonal to what is found
            assert same == [j < first or part == 3 for j in range(3)], (part, name)


def test_every_part_has_all_of_the_budget():
    mechanism = KDPPCA.calibrated(1.0, 1e-6, n_components=4)
    one = DPPCA.tuned(1.0, 1e-6)
    assert mechanism.claim == ApproxDP(1.0, 1e-6)
    assert mechanism.relation is Relation.REPLACE_ONE
    assert (mechanism.mean, mechanism.scale_finder) == (one.mean, one.scale_finder)
    assert (mechanism.budget.epsilon, mechanism.budget.delta) == (1.0, 1e-6)
    assert mechanism.batches(400_000) == one.batches(100_000)
    with pytest.raises(InputError, match="at least 4 rows, got 3"):
        mechanism.batches(15)


@pytest.mark.parametrize("dimension", [None, 5])
def test_pairs_differ_in_a_row_of_the_first_part(dimension):
    mechanism = KDPPCA.calibrated(1.0, 1e-5, n_components=3)
    pair = mechanism.worst_case(dimension)
    n, d = pair.data.shape
    assert d == (dimension or 4)
    (place,) = np.flatnonzero((pair.data != pair.neighbour).any(axis=1))
    expected = DPPCA.tuned(1.0, 1e-5).worst_case(d)
    assert n == 3 * len(expected.data)
    np.testing.assert_array_equal(pair.data[: n // 3], expected.data)
    np.testing.assert_array_equal(pair.neighbour[: n // 3], expected.neighbour)
    np.testing.assert_array_equal(pair.data[n // 3 : 2 * n // 3], expected.data)
    assert place < n // 3
    assert len(mechanism.canonical_pairs()) == len(
        DPPCA.tuned(1.0, 1e-5).canonical_pairs()
    )
    with pytest.raises(InputError, match="dimension must be an integer >= 3"):
        mechanism.worst_case(2)
