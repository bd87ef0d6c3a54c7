from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import Relation, UnsupportedError, algorithms
from dpaudit.algorithms.covariance.second_moment import second_moment_sensitivity
from dpaudit.algorithms.covariance.symmetric_noise import semi_definite_trace
from dpaudit.subspace import second_moment

NORMS = ["frobenius", "upper-triangle", "nuclear"]
ADD_REMOVE, REPLACE_ONE = Relation
CASES = list(product(NORMS, Relation))


@st.composite
def row_triples(draw):
    """Rows of a dataset and two more: in general position or on the axes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    d = draw(st.integers(1, 6))
    base = rng.standard_normal((draw(st.integers(0, 4)), d))
    scale = draw(st.sampled_from([0.1, 1.0, 100.0]))
    rows = scale * rng.standard_normal((2, d))
    if draw(st.booleans()):
        rows *= rng.random((2, d)) < 0.4
    return base, *rows


@pytest.mark.parametrize(("norm", "relation"), CASES)
@settings(max_examples=30)
@given(row_triples(), st.floats(0.01, 100.0))
def test_neighbours_stay_within_the_sensitivity(norm, relation, triple, row_norm):
    base, first, second = (row_norm * rows for rows in triple)
    mechanism = algorithms.AnalyzeGauss.calibrated(1.0, 1e-5, row_norm=row_norm)
    data = np.vstack([base, second])
    if relation is ADD_REMOVE:
        neighbour = np.vstack([data, first])
    else:
        neighbour = np.vstack([base, first])
    difference = mechanism.statistic(data) - mechanism.statistic(neighbour)
    sensitivity = second_moment_sensitivity(norm, relation, row_norm)
    # Rounding is relative to A, not to the difference.
    rounding = 1e-12 * (len(data) + 1) * row_norm**2
    assert sensitivity.measure(difference) <= sensitivity.value + rounding


@pytest.mark.parametrize(("norm", "relation"), CASES)
def test_basis_vectors_attain_it(norm, relation):
    mechanism = algorithms.AnalyzeGauss.calibrated(
        1.0, 1e-5, relation=relation, row_norm=3.0
    )
    for dimension in (2, 5):
        pair = mechanism.worst_case(dimension)
        moved = mechanism.statistic(pair.data) - mechanism.statistic(pair.neighbour)
        sensitivity = second_moment_sensitivity(norm, relation, 3.0)
        assert sensitivity.measure(moved) == pytest.approx(sensitivity.value, rel=1e-13)


@pytest.mark.parametrize("relation", list(Relation))
def test_in_one_dimension_a_row_joins_or_replaces_zero(relation):
    pair = algorithms.AnalyzeGauss.calibrated(1.0, 1e-5, relation=relation).worst_case(
        1
    )
    assert pair.relation is relation
    assert pair.data.sum() == 0
    assert pair.neighbour.sum() == 1


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(1, 6))
def test_norms_are_those_of_a_batch(seed, d):
    noise = np.random.default_rng(seed).standard_normal((4, d, d))
    batch = noise + noise.swapaxes(-2, -1)
    naive = {
        "frobenius": lambda s: np.sqrt((s**2).sum()),
        "upper-triangle": lambda s: np.linalg.norm(s[np.triu_indices(d)]),
        "nuclear": lambda s: np.linalg.norm(s, "nuc"),
    }
    for norm, one in naive.items():
        measured = second_moment_sensitivity(norm, ADD_REMOVE).measure(batch)
        np.testing.assert_allclose(measured, [one(s) for s in batch], rtol=1e-12)


@pytest.mark.parametrize(
    "mechanism",
    [
        algorithms.AnalyzeGauss.calibrated(1.0, 1e-5, row_norm=0.7),
        algorithms.GOEGaussian.calibrated(1.0, 1e-5, row_norm=0.7),
        algorithms.SymmetrisedWishart.calibrated(1.0, row_norm=0.7),
        algorithms.SymmetricNoise.as_published(1.0, row_norm=0.7),
    ],
)
def test_rows_beyond_the_norm_are_clipped(mechanism):
    rows = np.random.default_rng(0).standard_normal((20, 4))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    clipped = rows * np.minimum(1, 0.7 / lengths)
    assert (lengths > 0.7).any()
    assert (mechanism.statistic(rows) != second_moment(rows)).any()
    np.testing.assert_allclose(
        mechanism.statistic(rows), second_moment(clipped), rtol=1e-12, atol=1e-14
    )


def test_the_trace_of_a_semi_definite_difference():
    row = np.array([[0.6, 0.8]])
    assert semi_definite_trace(row.T @ row) == pytest.approx(1.0, rel=1e-14)
    assert semi_definite_trace(-2 * row.T @ row) == pytest.approx(2.0, rel=1e-14)
    with pytest.raises(UnsupportedError, match="reach from -1 to 1"):
        semi_definite_trace(np.diag([1.0, -1.0]))
