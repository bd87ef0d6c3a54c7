import numpy as np
import pytest

from dpaudit import InputError, Relation
from dpaudit.algorithms.catalogue import entry, names_of
from dpaudit.algorithms.textbook.counts import count_patterns, neighbours_with
from dpaudit.algorithms.textbook.noisy_max import NoisyMax1
from dpaudit.algorithms.textbook.svt import SVT1

NAMES = names_of("textbook")
SUITE = {name: entry(name).constructor for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_batches_of_any_size_and_worst_cases_of_any_dimension(name):
    mechanism = SUITE[name]()
    data = mechanism.worst_case().data
    shape = mechanism.release(data, rng=np.random.default_rng(0)).shape
    for size in (0, 2**15 + 3):  # a block and a rest
        releases = mechanism.draw(data, size, rng=np.random.default_rng(0))
        assert releases.shape == (size, *shape)
        assert releases.dtype == np.float64
    mechanism = SUITE[name]()
    pair = mechanism.worst_case()
    dimension = pair.data.shape[1] if pair.data.ndim > 1 else 1
    again = mechanism.worst_case(dimension)
    np.testing.assert_array_equal(again.data, pair.data)
    np.testing.assert_array_equal(again.neighbour, pair.neighbour)


def test_counts_and_patterns_are_neighbours_as_asked_for():
    pair = neighbours_with([3, 0, 2], [2, 1, 2])
    assert pair.relation is Relation.REPLACE_ONE
    assert pair.data.sum(axis=0).tolist() == [3, 0, 2]
    assert pair.neighbour.sum(axis=0).tolist() == [2, 1, 2]
    assert set(np.unique([pair.data, pair.neighbour])) == {0.0, 1.0}
    assert SVT1().answers([[0.25, 3.0], [0.5, -1.0]]).tolist() == [0.75, 1.0]
    patterns = count_patterns(5)
    moved = {tuple(p.neighbour.sum(axis=0) - p.data.sum(axis=0)) for p in patterns}
    assert len(moved) == len(patterns) == 7
    assert {(1, 1, 1, 1, 1), (-1, 0, 0, 0, 0), (1, -1, -1, -1, -1)} <= moved


@pytest.mark.parametrize(
    "answers", [([0], [2]), ([-1], [0]), ([1, 2], [1]), ([1, 2, 3], [1, 2])]
)
def test_answers_that_no_neighbours_have(answers):
    with pytest.raises(InputError, match="answers of neighbours"):
        neighbours_with(*answers)


def test_canonical_pairs_start_with_the_worst():
    for mechanism in (NoisyMax1(), SVT1()):
        worst, *rest = mechanism.canonical_pairs()
        np.testing.assert_array_equal(worst.data, mechanism.worst_case().data)
        assert len(rest) >= 7
        for pair in rest:
            assert pair.relation is mechanism.relation
            assert pair.data.shape[1] == worst.data.shape[1]
