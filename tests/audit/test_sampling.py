"""Sampling: whatever the mechanism does wrong becomes one clear sentence."""

import numpy as np
import pytest

from dpaudit import InputError, MechanismError, Pair
from dpaudit.audit.sampling import DATA, NEIGHBOUR, Sampler, concatenate, length

PAIR = Pair([0.0], [0.0, 1.0])


def noisy_sum(data, rng):
    return data.sum() + rng.laplace()


def everything(sampler: Sampler, side: int = DATA, size: int = 40):
    return concatenate(list(sampler.batches(side, 1, size)))


def test_batches_are_reproducible_and_distinct():
    first = everything(Sampler(noisy_sum, PAIR, 3))
    assert np.array_equal(first, everything(Sampler(noisy_sum, PAIR, 3)))
    assert not np.array_equal(first, everything(Sampler(noisy_sum, PAIR, 4)))
    sampler = Sampler(noisy_sum, PAIR, 3)
    assert not np.array_equal(first, everything(sampler, NEIGHBOUR) - 1)
    assert len(np.unique(first)) == 40


def test_scalars_arrays_and_dictionaries():
    assert everything(Sampler(noisy_sum, PAIR, 0)).shape == (40,)
    matrix = Sampler(lambda d, rng: rng.normal(size=(2, 3)), PAIR, 0)
    assert everything(matrix).shape == (40, 2, 3)
    mapping = Sampler(lambda d, rng: {"a": 1.0, "b": rng.normal(size=2)}, PAIR, 0)
    releases = everything(mapping)
    assert {key: value.shape for key, value in releases.items()} == {
        "a": (40,),
        "b": (40, 2),
    }
    assert length(releases) == 40


def test_batch_size_follows_the_size_of_a_release():
    big = Sampler(lambda d, rng: np.zeros(2**20), PAIR, 0)
    first = concatenate(list(big.batches(DATA, 0, 2)))
    big.settle_batch_size(first)
    assert [length(b) for b in big.batches(DATA, 1, 10)] == [4, 4, 2]


def changing_shape(data, rng):
    return np.zeros(rng.integers(1, 4))


def raising(data, rng):
    raise ZeroDivisionError("no rows left")


def writing(data, rng):
    data += 1
    return data.sum()


def changing_keys(data, rng):
    return {"a" if rng.random() < 0.5 else "b": 0.0}


@pytest.mark.parametrize(
    ("mechanism", "sentence"),
    [
        (changing_shape, r"changed the shape of its output: \(\d,\) after \(\d,\)"),
        (raising, "raised ZeroDivisionError: no rows left"),
        (writing, "read-only"),
        (lambda d, rng: "text", "must return numbers"),
        (lambda d, rng: None, "must return numbers"),
        (changing_keys, "changed the keys"),
    ],
)
def test_misbehaviour_is_named(mechanism, sentence):
    with pytest.raises(MechanismError, match=sentence):
        everything(Sampler(mechanism, PAIR, 0))


def test_shape_that_depends_on_the_dataset_is_named():
    sampler = Sampler(lambda d, rng: np.zeros(len(d)), PAIR, 0)
    everything(sampler, DATA)
    with pytest.raises(MechanismError, match=r"\(2,\) after \(1,\)"):
        everything(sampler, NEIGHBOUR)


def test_draw_of_the_wrong_length_is_named():
    class Short:
        def draw(self, data, size, *, rng):
            return np.zeros(size - 1)

    with pytest.raises(MechanismError, match="15 releases instead of 16"):
        everything(Sampler(Short(), PAIR, 0))


def test_errors_of_input_pass_unchanged():
    def refuse(data, rng):
        raise InputError("n must be >= 7, got 1")

    with pytest.raises(InputError, match="n must be >= 7"):
        everything(Sampler(refuse, PAIR, 0))


def test_what_cannot_be_called_is_refused():
    with pytest.raises(InputError, match="release method or be a callable"):
        Sampler(3.0, PAIR, 0)
