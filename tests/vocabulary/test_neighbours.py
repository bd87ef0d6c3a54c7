import copy
import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused, refuses

from dpaudit import Pair, Relation

ROWS = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])


@st.composite
def datasets(draw, n=None, d=None):
    """Few values, so that equal rows are common."""
    n, d = draw(st.integers(1, 4)) if n is None else n, d or draw(st.integers(1, 2))
    bits = draw(st.lists(st.booleans(), min_size=n * d, max_size=n * d))
    return np.array(bits, dtype=float).reshape(n, d)


@given(datasets(), st.data())
def test_pairs_are_exactly_the_neighbours_by_definition(one, data):
    two = data.draw(datasets(len(one) + data.draw(st.integers(-1, 1)), one.shape[1]))
    short, long = sorted((one, two), key=len)
    if len(one) == len(two):
        relation, other = Relation.REPLACE_ONE, Relation.ADD_REMOVE
        neighbours = (one != two).any(axis=1).sum() == 1
    else:
        relation, other = Relation.ADD_REMOVE, Relation.REPLACE_ONE
        fewer = [np.delete(long, i, axis=0) for i in range(len(long))]
        neighbours = any(np.array_equal(each, short) for each in fewer)
    refuses(f"not neighbours under {other}", Pair, one, two, other)
    if neighbours:
        for pair in (Pair(one, two), Pair(one, two, relation.value)):
            assert pair.relation is relation
            np.testing.assert_array_equal(pair.neighbour, two)
    else:
        refuses("not neighbours", Pair, one, two)


test_what_are_no_neighbours_is_said = refused(
    (ROWS, ROWS, None, "under replace-one: 0 rows differ, exactly one must"),
    (ROWS, ROWS, "add-remove", "under add-remove: they have 3 and 3 rows"),
    (ROWS, ROWS + 1, None, "3 rows differ, exactly one must"),
    (ROWS, ROWS[[1, 0, 2]], None, "2 rows differ, exactly one must"),
    (ROWS, ROWS[:1], None, "not neighbours: they have 3 and 1 rows"),
    (ROWS, ROWS[[1, 0]], None, "they differ in more than the row added"),
    (ROWS, ROWS[:2] + 1, None, "they differ in more than the row added"),
    (ROWS, ROWS[:1], "replace-one", "under replace-one: they have 3 and 1 rows"),
    (ROWS, ROWS[:2], "substitute", "relation must be one of .*got 'substitute'"),
    (ROWS, ROWS[:2, :1], None, r"rows of the same shape, got \(2,\) and \(1,\)"),
    (np.empty((0, 3)), ROWS[:1], None, r"same shape, got \(3,\) and \(2,\)"),
    by=lambda data, neighbour, relation: Pair(data, neighbour, relation),
)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([[0.0, np.nan]], "must be finite, but row 0 has a NaN or infinity"),
        ([[0.0, 1.0], [np.inf, 1.0]], "must be finite, but row 1 has"),
        ([None, 1.0], "must be a numeric array of rows, got list that"),
        ([["1", "2"]], "must be a numeric array of rows, got entries of type <U1"),
        ([[1.0, np.ma.masked]], "must be a numeric .* got a masked"),
        (3.0, "must be an array of rows, got the number 3.0"),
    ],
)
def test_bad_datasets_are_named(bad, message):
    refuses(f"^data ({message})", Pair, bad, ROWS)
    refuses(f"^neighbour ({message})", Pair, ROWS, bad)


@pytest.mark.parametrize("nobody", [np.empty((0, 2)), []])
def test_nobody_and_somebody_are_neighbours(nobody):
    for pair in (Pair(nobody, ROWS[:1]), Pair(ROWS[:1], nobody)):
        assert pair.relation is Relation.ADD_REMOVE
        assert {pair.data.shape, pair.neighbour.shape} == {(0, 2), (1, 2)}
    refuses("they have 0 and 1 rows", Pair, nobody, ROWS[:1], "replace-one")


STRANGE = np.array([[np.nan, 1.0], [np.inf, -np.inf], [0.0, 0.0]])


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_taken_if_asked_for(strange):
    data, neighbour = [[0.0, 1.0]], [[0.0, 1.0], [strange, 1.0]]
    pair = Pair(data, neighbour, allow_nonfinite=True)
    np.testing.assert_array_equal(pair.neighbour, neighbour)
    assert not pair.finite
    assert Pair(data, [], allow_nonfinite=True).finite
    refuses(r"row 1 has a NaN .* allow_nonfinite", Pair, data, neighbour)


def test_nan_equals_nan_and_rows_may_be_numbers_or_matrices():
    fewer = Pair(STRANGE, STRANGE[[0, 2]], allow_nonfinite=True)
    assert fewer.relation is Relation.ADD_REMOVE
    other = STRANGE.copy()
    other[0, 1] = np.nan
    replaced = Pair(STRANGE, other, allow_nonfinite=True)
    assert replaced.relation is Relation.REPLACE_ONE
    refuses("0 rows differ", Pair, STRANGE, STRANGE, allow_nonfinite=True)
    refuses("2 rows differ", Pair, STRANGE, STRANGE[[1, 0, 2]], allow_nonfinite=True)
    assert Pair([0.0, 1.0], [0.0]).relation is Relation.ADD_REMOVE
    images = np.zeros((3, 4, 5))
    changed = images.copy()
    changed[1, 2, 3] = 1.0
    assert Pair(images, changed).relation is Relation.REPLACE_ONE


def test_pairs_are_read_only_copies_and_rows_that_differ_have_places():
    first, second = ROWS.copy(), ROWS[:2].copy()
    pair = Pair(first, second)
    first[0, 0] = second[0, 0] = 9.0
    assert pair.data[0, 0] == pair.neighbour[0, 0] == 0.0
    for rows in (pair.data, pair.neighbour):
        assert rows.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            rows[0, 0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        pair.relation = Relation.REPLACE_ONE
    for place in range(4):
        pair = Pair([[0], [1], [2]], np.insert([[0], [1], [2]], place, 9, axis=0))
        assert pair.changed == (None, place)
        assert pair.swapped.changed == (place, None)
        assert pair.swapped.data.tolist() == pair.neighbour.tolist()
    assert Pair([[0], [1]], [[0], [5]]).changed == (1, 1)
    assert Pair([[3], [3]], [[3], [3], [3]]).changed == (None, 2)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, "pickled"])
def test_copies_are_read_only_too(copied):
    pair = Pair(STRANGE, STRANGE[1:], allow_nonfinite=True)
    other = pickle.loads(pickle.dumps(pair)) if copied == "pickled" else copied(pair)
    assert other.relation is pair.relation
    for side in ("data", "neighbour"):
        np.testing.assert_array_equal(getattr(other, side), getattr(pair, side))
        assert not getattr(other, side).flags.writeable


@pytest.mark.parametrize("bad", ["ADD_REMOVE", "", None, 1])
def test_unknown_relations_are_named(bad):
    refuses(r"one of \['add-remove', 'replace-one'\]", Relation.parse, bad)
    for relation in Relation:
        assert Relation.parse(relation.value) is Relation.parse(relation) is relation
