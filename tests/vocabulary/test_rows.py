"""Row-wise preprocessing: bounds, bit-identity, extremes and bad input."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from refusals import refused, refuses

from dpaudit.rows import clip_rows, normalise_rows

matrices = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.floats(-1e6, 1e6),
)
norms = st.floats(1e-6, 1e6)


@given(matrices, norms)
def test_clipped_rows_obey_the_bound_in_exact_arithmetic(rows, norm):
    """Rows that do already stay as they are, to the bit; so does what is clipped."""
    lengths = np.linalg.norm(rows, axis=1)
    long, clipped = lengths > norm, clip_rows(rows, norm)
    assert (np.linalg.norm(clipped, axis=1) <= norm).all()
    for row in clipped[long]:
        assert sum(Fraction(x) ** 2 for x in row.tolist()) <= Fraction(norm) ** 2
    kept, same = rows[~long], clipped[~long]
    np.testing.assert_array_equal(same.view(np.int64), kept.view(np.int64))
    # Subnormal numbers have no 13 digits.
    scaled = rows[long] * (norm / lengths[long])[:, np.newaxis]
    np.testing.assert_allclose(clipped[long], scaled, rtol=1e-13, atol=1e-300)


@given(matrices, norms, st.data())
def test_each_row_is_clipped_by_itself(rows, norm, data):
    """The privacy claim: other rows, and their number, do not matter."""
    i = data.draw(st.integers(0, len(rows) - 1))
    np.testing.assert_array_equal(
        clip_rows(rows, norm)[i], clip_rows(rows[i : i + 1], norm)[0]
    )


@given(matrices)
def test_normalised_rows_have_length_one_and_keep_their_direction(rows):
    unit = normalise_rows(rows)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    positive = lengths[:, 0] > 1e-100
    np.testing.assert_allclose(np.linalg.norm(unit[positive], axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(
        unit[positive] * lengths[positive], rows[positive], rtol=1e-13, atol=1e-300
    )


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1.0, 1e200, 1e308])
def test_lengths_that_over_or_underflow_when_squared(size):
    rows = np.array([[size, -size], [0.0, 0.0]])
    root = np.sqrt(0.5)
    np.testing.assert_allclose(
        normalise_rows(rows), [[root, -root], [0.0, 0.0]], rtol=1e-15
    )
    expected = [root, -root] if size >= 1 else [size, -size]
    np.testing.assert_allclose(clip_rows(rows, 1.0)[0], expected, rtol=1e-14)


def test_the_input_is_left_alone():
    rows = np.array([[3.0, 4.0], [0.1, 0.1]])
    kept = rows.copy()
    clipped = clip_rows(rows, 1.0)
    normalise_rows(rows)
    clipped[:] = 7.0
    np.testing.assert_array_equal(rows, kept)
    for empty in (clip_rows(np.empty((0, 3)), 1.0), normalise_rows(np.empty((0, 3)))):
        assert empty.shape == (0, 3)


test_bad_rows_are_named = refused(
    ([[1.0], [-np.inf]], "rows must be finite, but row 1"),
    ([1.0, 2.0], r"rows must have shape \(n, d\)"),
    (np.ones((2, 0)), r"rows must have shape \(n, d\)"),
    by=lambda use, rows: use(rows),
    each=(normalise_rows, lambda rows: clip_rows(rows, 1.0)),
)


def test_a_bad_norm_is_named():
    refuses("norm must be", clip_rows, [[1.0]], 0)
