"""Row-wise preprocessing: bounds, bit-identity, extremes and bad input."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpaudit.errors import InputError
from dpaudit.rows import clip_rows, normalise_rows

matrices = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.floats(-1e6, 1e6),
)
norms = st.floats(1e-6, 1e6)


def clip_one_row_at_a_time(rows, norm):
    clipped = np.array(rows, dtype=np.float64)
    for row in clipped:
        length = np.sqrt(sum(x * x for x in row))
        if length > norm:
            row *= norm / length
    return clipped


@given(matrices, norms)
def test_clipping_agrees_with_a_loop_over_the_definition(rows, norm):
    expected = clip_one_row_at_a_time(rows, norm)
    # Subnormal numbers have no 13 digits.
    np.testing.assert_allclose(clip_rows(rows, norm), expected, rtol=1e-13, atol=1e-300)


@given(matrices, norms)
def test_clipped_rows_obey_the_bound_in_exact_arithmetic(rows, norm):
    long = np.linalg.norm(rows, axis=1) > norm
    clipped = clip_rows(rows, norm)
    assert (np.linalg.norm(clipped, axis=1) <= norm).all()
    for row in clipped[long]:
        assert sum(Fraction(x) ** 2 for x in row.tolist()) <= Fraction(norm) ** 2


@given(matrices, norms)
def test_rows_within_the_bound_are_bit_identical(rows, norm):
    short = np.linalg.norm(rows, axis=1) <= norm
    np.testing.assert_array_equal(
        clip_rows(rows, norm)[short].view(np.int64), rows[short].view(np.int64)
    )


@given(matrices, norms)
def test_clipping_twice_equals_clipping_once(rows, norm):
    once = clip_rows(rows, norm)
    np.testing.assert_array_equal(clip_rows(once, norm), once)


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


def test_no_rows_are_fine():
    assert clip_rows(np.empty((0, 3)), 1.0).shape == (0, 3)
    assert normalise_rows(np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize(
    "function", [normalise_rows, lambda rows: clip_rows(rows, 1.0)]
)
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.0, np.nan]], "rows must be finite, but row 0"),
        ([[1.0], [-np.inf]], "rows must be finite, but row 1"),
        ([1.0, 2.0], r"rows must have shape \(n, d\)"),
        (np.ones((2, 2, 2)), r"rows must have shape \(n, d\)"),
        (np.ones((2, 0)), r"rows must have shape \(n, d\)"),
        ([["a", "b"]], "rows must be a numeric array"),
    ],
)
def test_bad_rows_are_named(function, rows, message):
    with pytest.raises(InputError, match=message):
        function(rows)


@pytest.mark.parametrize("norm", [0, -1.0, np.nan, np.inf, "1", None, True])
def test_bad_norms_are_named(norm):
    with pytest.raises(InputError, match="norm must be"):
        clip_rows([[1.0]], norm)
