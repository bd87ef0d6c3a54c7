"""Streams of matrices: all three forms against sums written out, and bad input.

No test here is random beyond its fixed seeds, and none tests a null hypothesis.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused, refuses
from seeded import rng

from dpaudit.algorithms.streaming import moment_products
from dpaudit.algorithms.streaming.moment_products import own_products
from dpaudit.algorithms.streaming.moments import Moments, StreamedMoments, as_moments
from dpaudit.errors import InputError
from dpaudit.rows import clip_rows

COUNT, DIMENSION = 12, 3


ROWS = 2 * rng().standard_normal((COUNT, DIMENSION))
MATRICES = ROWS[:, :, None] * ROWS[:, None]
GENERAL = rng(1).standard_normal((COUNT, DIMENSION, DIMENSION))

FORMS = {
    **{"rows": as_moments(ROWS), "matrices": as_moments(MATRICES)},
    "streamed rows": StreamedMoments(
        ROWS.__getitem__, count=COUNT, dimension=DIMENSION
    ),
    "streamed matrices": StreamedMoments(
        MATRICES.__getitem__, count=COUNT, dimension=DIMENSION, matrices=True
    ),
}
PLACES = {"a slice": slice(2, 9), "all": slice(None), "one": slice(4, 5)}


def naive_products(matrices, where, bases):
    """A_i V for every trial and every i of a batch, one by one."""
    return np.array([[matrix @ basis for matrix in matrices[where]] for basis in bases])


def clipped(products, bound):
    if bound is None:
        return products
    norms = np.linalg.norm(products, axis=(-2, -1), keepdims=True)
    return products * np.minimum(1.0, bound / norms)


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("place", list(PLACES))
def test_all_forms_are_the_sums_written_out(form, place):
    moments, where = FORMS[form], PLACES[place]
    for k in (1, 2):
        bases = rng(3).standard_normal((5, DIMENSION, k))
        products = naive_products(MATRICES, where, bases)
        for bound in (None, 3.0, 1e9):
            np.testing.assert_allclose(
                moments.mean_block(where, bases, clip=bound),
                clipped(products, bound).mean(axis=1),
                atol=1e-12,
            )
    vectors = bases[:, :, 0]
    np.testing.assert_allclose(
        moments.apply(where, vectors), products[..., 0], atol=1e-12
    )
    np.testing.assert_allclose(
        moments.mean_apply(where, vectors, clip=3.0),
        clipped(products[..., :1], 3.0).mean(axis=1)[..., 0],
        atol=1e-12,
    )


@pytest.mark.parametrize("place", list(PLACES))
def test_matrices_need_not_be_symmetric(place):
    where, bases = PLACES[place], rng(4).standard_normal((5, DIMENSION, 2))
    products = naive_products(GENERAL, where, bases)
    moments = as_moments(GENERAL)
    for bound in (None, 1.5):
        np.testing.assert_allclose(
            moments.mean_block(where, bases, clip=bound),
            clipped(products, bound).mean(axis=1),
            atol=1e-12,
        )


@pytest.mark.parametrize("form", list(FORMS))
def test_parts_of_a_batch_add_up(form, monkeypatch):
    moments, bases = FORMS[form], rng(5).standard_normal((5, DIMENSION, 2))
    for where in PLACES.values():
        for bound in (None, 3.0):
            whole = moments.mean_block(where, bases, clip=bound)
            with monkeypatch.context() as patch:
                patch.setattr(moment_products, "WORK", 1)  # one matrix at a time
                parts = moments.mean_block(where, bases, clip=bound)
            np.testing.assert_allclose(parts, whole, atol=1e-12)


def test_no_more_than_a_part_is_ever_read():
    longest = 0

    def read(where):
        nonlocal longest
        longest = max(longest, where.stop - where.start)
        index = np.arange(where.start, where.stop)
        return np.stack([np.cos(index), np.sin(index)], axis=-1)

    moments = StreamedMoments(read, count=10**6, dimension=2)
    mean = moments.mean_apply(slice(0, 10**6), np.array([[1.0, 0.0]]), clip=1.0)
    np.testing.assert_allclose(mean, [[0.5, 0.0]], atol=1e-5)
    before = moment_products.WORK
    assert longest <= before // 2
    for first in range(0, 10**6, 10**5):
        longest = 0
        moments.mean_apply(slice(first, first + 100), np.array([[1.0, 0.0]]))
        assert longest == 100


@given(st.integers(0, 2**32), st.floats(0.01, 10))
@settings(max_examples=50)
def test_a_clipped_product_is_that_of_a_shorter_row(seed, bound):
    generator = rng(seed)
    row = 3 * generator.standard_normal(4)
    basis = np.linalg.qr(generator.standard_normal((4, 2))).Q
    product = as_moments(row[None]).mean_block(slice(0, 1), basis[None], clip=bound)[0]
    assert np.linalg.norm(product) <= bound * (1 + 1e-12)
    whole = np.outer(row, row) @ basis
    scale = np.sum(product * whole) / np.sum(whole * whole)
    assert 0 <= scale <= 1 + 1e-12
    shorter = np.sqrt(scale) * row
    np.testing.assert_allclose(product, np.outer(shorter, shorter) @ basis, atol=1e-9)


def test_rows_beyond_the_norm_are_clipped_as_they_are_read():
    bounded = as_moments(ROWS, row_norm=1.5)
    streamed = StreamedMoments(
        ROWS.__getitem__, count=COUNT, dimension=DIMENSION, row_norm=1.5
    )
    expected = as_moments(clip_rows(ROWS, 1.5))
    vectors = rng(6).standard_normal((5, DIMENSION))
    for where in PLACES.values():
        for moments in (bounded, streamed):
            np.testing.assert_array_equal(
                moments.apply(where, vectors), expected.apply(where, vectors)
            )
    # Their squares overflow, but not once they are clipped.
    far = as_moments([[1e200, 0.0], [0.0, 0.5]], row_norm=1.0)
    np.testing.assert_allclose(
        far.mean_apply(slice(0, 2), np.eye(2)), np.diag([0.5, 0.125])
    )


def test_products_are_of_every_trials_own_and_of_no_trial_none():
    vectors = rng(7).standard_normal((COUNT, DIMENSION))
    for part in (ROWS, MATRICES):
        for bound in (None, 2.0):
            expected = clipped((MATRICES @ vectors[..., None]), bound)[..., 0]
            found = own_products(part, vectors, bound)
            np.testing.assert_allclose(found, expected, atol=1e-12)
    empty = np.empty((0, DIMENSION))
    for moments in FORMS.values():
        for bound in (None, 1.0):
            mean = moments.mean_apply(slice(0, 3), empty, clip=bound)
            assert mean.shape == (0, DIMENSION)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_])
def test_other_numbers_are_computed_with_as_doubles(dtype):
    rows = rng(8).integers(0, 2, (30, 3)).astype(dtype)
    vectors = rng(9).standard_normal((2, 3))
    np.testing.assert_allclose(
        as_moments(rows).mean_apply(slice(0, 30), vectors),
        vectors @ (rows.astype(float).T @ rows.astype(float)) / 30,
        atol=1e-12,
    )


def test_data_are_neither_copied_nor_changed_and_vectors_must_fit():
    rows = ROWS.copy()
    moments = as_moments(rows)
    assert np.shares_memory(moments.read(slice(0, COUNT)), rows)
    moments.mean_apply(slice(0, COUNT), np.ones((2, DIMENSION)), clip=0.1)
    as_moments(rows, row_norm=0.1).mean_apply(slice(0, 3), np.ones((2, DIMENSION)))
    np.testing.assert_array_equal(rows, ROWS)
    assert as_moments(moments) is moments
    assert isinstance(moments, Moments)
    assert (moments.count, moments.dimension) == (COUNT, DIMENSION)
    moments = as_moments(ROWS)
    for bad in (np.ones(3), np.ones((5, 2)), np.ones((5, 3, 1))):
        with pytest.raises(InputError, match=r"vectors must have shape \(trials, d\)"):
            moments.mean_apply(slice(0, 2), bad)
        refuses("vectors must have shape", moments.apply, slice(0, 2), bad)
    with pytest.raises(InputError, match=r"shape \(trials, d, k\) with d = 3"):
        moments.mean_block(slice(0, 2), np.ones((5, 3)))
    with pytest.raises(InputError, match="clip must be a finite number > 0"):
        moments.mean_apply(slice(0, 2), np.ones((5, 3)), clip=0.0)


# Bad input
test_bad_data_are_named = refused(
    (np.zeros((0, 3)), r"data must have shape \(n, d\) with n >= 1"),
    (np.zeros((3, 0)), "data must have shape"),
    (np.zeros(3), "data must have shape"),
    (3.0, "data must have shape"),
    (np.zeros((2, 2, 2, 2)), "data must have shape"),
    (np.zeros((0, 2, 2)), r"data must have shape \(n, d, d\)"),
    (np.zeros((5, 2, 3)), "data must be square matrices, got shape"),
    ([[0.0], [np.nan]], "data must be finite, but item 1 has a NaN"),
    (np.full((3, 2, 2), np.inf), "data must be finite, but item 0"),
    ([[1.0, 1e200]], "those of item 0 are larger"),
    # Its square is finite, but not with room for what rounding adds.
    ([[1.0], [-(2.0**501)]], "those of item 1 are larger"),
    ([["a", "b"]], "data must be an array of numbers"),
    ([[1.0], [1.0, 2.0]], "data must be an array of numbers"),
    (np.array([[1j]]), "data must be an array of numbers"),
    by=lambda data: as_moments(data),
)


def test_what_is_not_finite_is_found_and_norms_are_for_rows():
    rows = np.zeros((6, moment_products.WORK // 2))
    rows[3, 1] = np.nan
    refuses("item 3 has a NaN", as_moments, rows)
    rows[3, 1] = 2.0**501
    refuses("item 3 are larger", as_moments, rows)
    as_moments(rows, row_norm=1.0)
    refuses("data must be rows, shape", as_moments, MATRICES, row_norm=1.0)
    with pytest.raises(InputError, match="row_norm must be that of the stream"):
        as_moments(as_moments(ROWS), row_norm=1.0)
    with pytest.raises(InputError, match="row_norm must be that of the stream"):
        as_moments(as_moments(MATRICES), row_norm=1.0)
    bounded = as_moments(ROWS, row_norm=1.0)
    assert as_moments(bounded, row_norm=1.0) is bounded
    for bad in (0.0, -1.0, np.nan):
        refuses("row_norm must be a finite number > 0", as_moments, ROWS, row_norm=bad)


@pytest.mark.parametrize(
    "where",
    [
        *(slice(3, 3), slice(20, 30), slice(8, 2, -1), slice(0, 9, 3)),
        *(np.array([4]), 4, None),
    ],
)
def test_batches_that_are_not_there_are_refused(where):
    with pytest.raises(InputError, match="where must be"):
        as_moments(ROWS).mean_apply(where, np.ones((5, DIMENSION)))


def test_what_a_stream_returns_is_checked():
    vectors = np.ones((2, 2))

    def stream(part, **options):
        options = {"count": 9, "dimension": 2} | options
        return StreamedMoments(lambda where: part, **options)

    for part, message in (
        (np.ones((2, 2)), r"must have shape \(3, 2\), got shape \(2, 2\)"),
        (np.ones((3, 2, 2)), "must have shape"),
        ([[1.0, np.nan]] * 3, "what read returns must be finite"),
        (np.full((3, 2), "a"), "what read returns must be an array of numbers"),
    ):
        refuses(message, stream(part).mean_apply, slice(0, 3), vectors)
    with pytest.raises(InputError, match=r"must have shape \(3, 2, 2\)"):
        stream(np.ones((3, 2)), matrices=True).mean_apply(slice(0, 3), vectors)
    refuses("read must be a function", StreamedMoments, ROWS, count=9, dimension=2)
    with pytest.raises(InputError, match="row_norm must be None for matrices"):
        stream(None, matrices=True, row_norm=1.0)
    refuses("count must be an integer >= 1, got 0", stream, None, count=0)
