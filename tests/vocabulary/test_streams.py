"""Streams depend on their name only, and different names give different numbers."""

import numpy as np
import pytest

from dpaudit.errors import InputError
from dpaudit.streams import fresh_seed, stream


@pytest.mark.parametrize("name", [(0,), (7, 3, 1), (7, 1, 3), (2**200, np.int64(5))])
def test_streams_are_those_of_a_seed_sequence(name):
    """NumPy's promise then is that different names give independent numbers."""
    seed, *key = map(int, name)
    sequence = np.random.SeedSequence(seed, spawn_key=key)
    expected = np.random.default_rng(sequence).random(4)
    for _ in range(2):
        np.testing.assert_array_equal(stream(*name).random(4), expected)


@pytest.mark.parametrize("seed", [-1, 1.0, "1", None, True, np.nan])
def test_bad_seeds_are_named(seed):
    with pytest.raises(
        InputError, match=f"^seed must be an integer >= 0, got {seed!r}"
    ):
        stream(seed)


def test_fresh_seeds_are_usable_and_differ():
    seeds = [fresh_seed() for _ in range(100)]
    assert len(set(seeds)) == 100
    assert all(0 <= seed < 2**63 for seed in seeds)
    stream(seeds[0])
