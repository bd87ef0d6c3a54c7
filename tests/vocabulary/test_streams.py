import copy
import pickle

import numpy as np
import pytest
from refusals import refuses

from dpaudit.streams import position, stream, streams


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
    refuses(f"^seed must be an integer >= 0, got {seed!r}", stream, seed)


def numbered(number, seed=7):
    """Return the generator of one number, and its seed sequence."""
    (rng,) = streams(seed, 1, first=number, count=1)
    return rng, rng.bit_generator.seed_seq


@pytest.mark.parametrize("first", [0, 1, 250, 256, 600])
@pytest.mark.parametrize("count", [0, 1, 6, 300])
def test_numbered_streams_are_the_same_whichever_are_asked_for(first, count):
    every = [rng.random() for rng in streams(7, 1, first=0, count=1000)]
    some = [rng.random() for rng in streams(7, 1, first=first, count=count)]
    assert some == every[first : first + count]
    assert len(set(every)) == 1000
    others = (streams(8, 1, first=0, count=10), streams(7, 2, first=0, count=10))
    assert not any(rng.random() in every for other in others for rng in other)


def seeds_of(rng):
    return rng.bit_generator.seed_seq


def named_alike(seeds):
    return np.random.SeedSequence(seeds.entropy, spawn_key=seeds.spawn_key)


WAYS = {
    "a spawned one": lambda rng: rng.spawn(1)[0].integers(2**63),
    "four words": lambda rng: np.random.RandomState(
        seeds_of(rng).generate_state(4)
    ).rand(),
    "words of 64 bits": lambda rng: seeds_of(rng).generate_state(1, np.uint64)[0],
    "the sequence": lambda rng: np.random.default_rng(seeds_of(rng)).random(),
    "its child": lambda rng: np.random.default_rng(seeds_of(rng).spawn(1)[0]).random(),
    "its name": lambda rng: named_alike(seeds_of(rng)).generate_state(1, np.uint64)[0],
    "a copy": lambda rng: copy.deepcopy(rng).random(),
    "a pickle": lambda rng: pickle.loads(pickle.dumps(rng)).random(),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_whatever_is_seeded_from_a_stream_is_its_own_and_noticed(way):
    """No two of a few thousand are alike, and each comes again."""
    found = [way(rng) for rng in streams(7, 1, first=0, count=3000)]
    assert len(set(found)) == 3000
    assert found[::500] == [way(numbered(number)[0]) for number in range(0, 3000, 500)]
    for rng in (stream(7, 1), numbered(300)[0]):
        before = position(rng)
        assert position(rng) == before
        way(rng)
        assert position(rng) != before


def test_a_seed_sequence_says_the_same_whenever_it_is_asked():
    rng, seeds = numbered(300)
    words = seeds.generate_state(4, np.uint64)
    expected = words.copy()
    words[:] = 0  # nobody else's
    rng.random()
    assert seeds.generate_state(4, "uint64").tolist() == expected.tolist()
    assert np.random.default_rng(seeds).random() == numbered(300)[0].random()
    real = np.random.SeedSequence(7, spawn_key=seeds.spawn_key)
    assert seeds.generate_state(5).tolist() == real.generate_state(5).tolist()
    children = [*seeds.spawn(1), *seeds.spawn(1)]
    assert [each.spawn_key for each in children] == [
        each.spawn_key for each in real.spawn(2)
    ]
    assert seeds.state == real.state
    copied = pickle.loads(pickle.dumps(rng))
    assert copied.bit_generator.seed_seq.n_children_spawned == 2
    assert copied.random() == rng.random()
    assert not hasattr(seeds, "anything_else")
