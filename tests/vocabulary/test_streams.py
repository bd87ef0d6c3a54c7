"""Streams depend on their name only, and different names give different numbers."""

import itertools

import numpy as np
import pytest

from dpaudit.errors import InputError
from dpaudit.streams import fresh_seed, stream


def numbers(*name):
    return stream(*name).integers(2**63, size=4).tolist()


def test_the_same_name_gives_the_same_numbers_in_any_order():
    names = [(0,), (7, 1), (7, 1, 2), (2**200, 5)]
    forwards = {name: numbers(*name) for name in names}
    assert {name: numbers(*name) for name in reversed(names)} == forwards


def test_different_names_give_different_numbers():
    # Keys of every length, seeds that would collide if seed and key were added up,
    # multiplied or joined, and seeds beyond one machine word.
    seeds = [0, 1, 2, 12, 2**32, 2**64, 2**64 + 1]
    keys = [(), (0,), (1,), (2,), (12,), (0, 0), (1, 2), (2, 1), (1, 2, 0)]
    drawn = [numbers(seed, *key) for seed, key in itertools.product(seeds, keys)]
    firsts = {tuple(each) for each in drawn}
    assert len(firsts) == len(seeds) * len(keys)


def test_streams_are_those_of_a_seed_sequence():
    sequence = np.random.SeedSequence(7, spawn_key=(3, 1))
    expected = np.random.default_rng(sequence).standard_normal(5)
    np.testing.assert_array_equal(stream(7, 3, 1).standard_normal(5), expected)


def test_streams_are_not_correlated():
    # Null hypothesis: 200 streams of 5000 normals are independent. The largest of the
    # 19900 |correlations| exceeds 0.12 (8.5 standard deviations) with probability
    # below 19900 * 2 * Phi(-8.4) < 1e-11, were the seeds not fixed.
    draws = np.array([stream(0, i).standard_normal(5000) for i in range(200)])
    correlations = np.corrcoef(draws) - np.eye(200)
    assert np.abs(correlations).max() < 0.12


def test_drawing_leaves_the_global_generator_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    stream(1, 2).random(10)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("seed", [-1, 1.0, "1", None, True, np.nan])
def test_bad_seeds_are_named(seed):
    with pytest.raises(
        InputError, match=f"^seed must be an integer >= 0, got {seed!r}"
    ):
        stream(seed)


def test_numpy_integers_are_seeds():
    assert numbers(np.int64(3), np.int64(1)) == numbers(3, 1)


def test_fresh_seeds_are_usable_and_differ():
    seeds = [fresh_seed() for _ in range(100)]
    assert len(set(seeds)) == 100
    assert all(0 <= seed < 2**63 for seed in seeds)
    stream(seeds[0])
