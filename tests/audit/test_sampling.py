"""Sampling: whatever a mechanism does is an output, in order and with the right law."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, chisquare

from dpaudit import InputError, MechanismError, Pair
from dpaudit.audit.outputs import Batch
from dpaudit.audit.sampling import DATA, NEIGHBOUR, Sampler

PAIR = Pair([0.0], [0.0, 1.0])


def noisy_sum(data, rng):
    return data.sum() + rng.laplace()


def everything(sampler: Sampler, side: int = DATA, size: int = 40, round_: int = 1):
    return Batch.join(list(sampler.batches(side, round_, size)))


def test_batches_are_reproducible_and_distinct():
    first = everything(Sampler(noisy_sum, PAIR, 3)).values
    assert np.array_equal(first, everything(Sampler(noisy_sum, PAIR, 3)).values)
    assert len(np.unique(first)) == 40
    others = [
        everything(Sampler(noisy_sum, PAIR, 4)).values,
        everything(Sampler(noisy_sum, PAIR, 3, key=1)).values,
        everything(Sampler(noisy_sum, PAIR, 3), round_=2).values,
        everything(Sampler(noisy_sum, PAIR, 3), NEIGHBOUR).values - 1,
    ]
    for other in others:
        assert not np.isin(np.round(other, 9), np.round(first, 9)).any()


def test_scalars_arrays_and_mappings():
    assert everything(Sampler(noisy_sum, PAIR, 0)).values.shape == (40,)
    matrix = everything(Sampler(lambda d, rng: rng.normal(size=(2, 3)), PAIR, 0))
    assert matrix.values.shape == (40, 2, 3)
    assert matrix.labels is None
    mapping = everything(
        Sampler(lambda d, rng: {"b": rng.normal(size=2), "a": 1}, PAIR, 0)
    )
    assert {key: value.shape for key, value in mapping.values.items()} == {
        "a": (40,),
        "b": (40, 2),
    }
    assert mapping.size == 40
    assert mapping.ordinary.all()


def test_integers_booleans_lists_and_infinities_are_numbers():
    for output in (3, True, [1, 2], np.float32(0.5), [np.nan, np.inf]):
        batch = everything(Sampler(lambda d, rng, o=output: o, PAIR, 0))
        assert batch.labels is None
        assert batch.values.dtype == np.float64
        np.testing.assert_array_equal(batch.values[0], output)


def test_a_mapping_may_order_its_keys_as_it_likes():
    def shuffled(data, rng):
        items = [("a", rng.random()), ("b", 5.0)]
        return dict(items if rng.random() < 0.5 else items[::-1])

    batch = everything(Sampler(shuffled, PAIR, 0))
    assert batch.labels is None
    assert (batch.values["b"] == 5).all()
    assert (batch.values["a"] < 1).all()


def test_batch_size_follows_the_size_of_a_release():
    big = Sampler(lambda d, rng: np.zeros(2**20), PAIR, 0)
    assert [b.size for b in big.batches(DATA, 0, 2)] == [2]
    assert [b.size for b in big.batches(DATA, 1, 5)] == [2, 2, 1]


def test_a_buffer_that_the_mechanism_uses_again_is_no_output_twice():
    buffer = np.zeros(1)

    def reused(data, rng):
        buffer[0] = data.sum() + rng.laplace()
        return buffer

    class Batched:
        kept = np.zeros(100)

        def draw(self, data, size, *, rng):
            self.kept[:size] = rng.laplace(size=size)
            return self.kept[:size]

    fresh = everything(Sampler(noisy_sum, PAIR, 3)).values
    assert np.array_equal(everything(Sampler(reused, PAIR, 3)).values[:, 0], fresh)
    sampler = Sampler(Batched(), PAIR, 0)
    first = everything(sampler)
    before = first.values.copy()
    everything(sampler, round_=2)
    assert np.array_equal(first.values, before)


def mostly(odd):
    """Return a mechanism of which one output in three is odd."""

    def mechanism(data, rng):
        return odd() if rng.random() < 1 / 3 else 1.0

    return mechanism


def fail():
    raise ZeroDivisionError("no rows left")


@pytest.mark.parametrize(
    ("odd", "label"),
    [
        (fail, "raises ZeroDivisionError"),
        (lambda: None, "returns NoneType"),
        (lambda: "no", "value 'no'"),
        (lambda: "", "value ''"),
        (lambda: b"no", "value b'no'"),
        (lambda: [[1.0], [1.0, 2.0]], "returns list"),
        (lambda: [1.0, "two"], "returns list"),
        (lambda: 1j, "returns complex"),
        (lambda: object(), "returns object"),
        (lambda: np.zeros(3), "shape (3,)"),
        (lambda: {}, "returns dict"),
        (lambda: {"a": 1.0, 1: 2.0}, "returns dict"),
        (lambda: {1: 2.0}, "returns dict"),
        (lambda: {"a": {"b": 1.0}}, "returns dict"),
        (lambda: {"a": None}, "returns dict"),
        (lambda: {"a": 1.0, "b": [1.0, 2.0]}, "shapes {a: (), b: (2,)}"),
    ],
)
def test_what_is_no_ordinary_release_is_a_label(odd, label):
    batch = everything(Sampler(mostly(odd), PAIR, 0), size=60)
    assert batch.size == 60
    assert set(batch.labels.tolist()) == {"", label}
    assert 0 < batch.ordinary.sum() < 60
    assert batch.values.tolist() == [1.0] * int(batch.ordinary.sum())


def test_labels_are_of_bounded_length():
    batch = everything(Sampler(lambda d, rng: "x" * 10_000, PAIR, 0), size=3)
    assert batch.values is None
    assert all(len(label) <= 80 for label in batch.labels.tolist())


def test_writing_to_the_data_is_an_exception_of_the_mechanism():
    def writing(data, rng):
        data += 1
        return data.sum()

    batch = everything(Sampler(writing, PAIR, 0))
    assert set(batch.labels.tolist()) == {"raises ValueError"}
    assert PAIR.data.tolist() == [0.0]


def test_the_layout_is_what_most_of_the_first_outputs_are_like():
    def mixed(data, rng):
        return np.zeros(1 if rng.random() < 0.2 else 2)

    sampler = Sampler(mixed, PAIR, 0)
    batch = everything(sampler, size=200)
    assert sampler.layout == "shape (2,)"
    assert set(batch.labels.tolist()) == {"", "shape (1,)"}


def test_the_layout_can_be_given():
    def mixed(data, rng):
        return np.zeros(1 if rng.random() < 0.2 else 2)

    usual = everything(Sampler(mixed, PAIR, 0))
    other = everything(Sampler(mixed, PAIR, 0, layout="shape (1,)"))
    assert set(other.labels.tolist()) == {"", "shape (2,)"}
    assert np.array_equal(other.ordinary, ~usual.ordinary)


def test_a_shape_that_depends_on_the_dataset_is_a_label():
    sampler = Sampler(lambda d, rng: np.zeros(len(d)), PAIR, 0)
    assert everything(sampler, DATA).labels is None
    neighbour = everything(sampler, NEIGHBOUR)
    assert neighbour.values is None
    assert set(neighbour.labels.tolist()) == {"shape (2,)"}


def test_a_batched_shape_that_depends_on_the_dataset_is_a_label():
    class Wide:
        def draw(self, data, size, *, rng):
            return np.zeros((size, len(data)))

    sampler = Sampler(Wide(), PAIR, 0)
    assert everything(sampler, DATA).labels is None
    assert set(everything(sampler, NEIGHBOUR).labels.tolist()) == {"shape (2,)"}


def test_draw_of_the_wrong_length_is_named():
    class Short:
        def draw(self, data, size, *, rng):
            return np.zeros(size - 1)

    with pytest.raises(MechanismError, match="15 releases instead of 16"):
        everything(Sampler(Short(), PAIR, 0))


def test_draw_of_words_is_named():
    class Words:
        def draw(self, data, size, *, rng):
            return ["no"] * size

    with pytest.raises(MechanismError, match="must return numbers, got list"):
        everything(Sampler(Words(), PAIR, 0))


@pytest.mark.parametrize("method", ["release", "draw"])
def test_errors_of_dpaudit_pass_unchanged(method):
    def refuse(*arguments, rng):
        raise InputError("n must be >= 7, got 1")

    mechanism = type("Refusing", (), {method: staticmethod(refuse)})()
    with pytest.raises(InputError, match="n must be >= 7"):
        everything(Sampler(mechanism, PAIR, 0))


def test_what_cannot_be_called_is_refused():
    with pytest.raises(InputError, match="release method or be a callable"):
        Sampler(3.0, PAIR, 0)


class Failing:
    """Fails with probability `rate` a release; a batch fails with any of its own."""

    rate = 0.3

    def release(self, data, *, rng):
        if rng.random() < self.rate:
            raise ValueError("as it happens")
        return 1.0

    def draw(self, data, size, *, rng):
        if (rng.random(size) < self.rate).any():
            raise ValueError("as it happens")
        return np.ones(size)


def test_failures_of_a_batched_draw_keep_their_law():
    """The number of failures among 4 outputs is binomial, at the level of 1e-9.

    To draw singly, without condition, whenever a batch failed would make all-ordinary
    batches more frequent by half, and failures rarer by a quarter.
    """
    count, batches = 4, 3000
    sampler = Sampler(Failing(), PAIR, 0)
    failures = [
        int((batch.all_labels != "").sum())
        for round_ in range(batches)
        for batch in sampler.batches(DATA, round_, count)
    ]
    observed = np.bincount(failures, minlength=count + 1)
    expected = batches * binom.pmf(np.arange(count + 1), count, Failing.rate)
    assert chisquare(observed, expected).pvalue > 1e-9


def test_a_draw_that_fails_where_single_releases_do_not_is_named():
    class OnlyDrawFails:
        def release(self, data, *, rng):
            return 1.0

        def draw(self, data, size, *, rng):
            raise KeyError("lost")

    with pytest.raises(MechanismError, match=r"draw raised KeyError.*same distrib"):
        everything(Sampler(OnlyDrawFails(), PAIR, 0))


def test_use_of_the_generator_is_seen():
    assert Sampler(noisy_sum, PAIR, 0).uses_rng()
    assert not Sampler(lambda d, rng: d.sum(), PAIR, 0).uses_rng()

    def on_the_neighbour_only(data, rng):
        return rng.random() if len(data) == 2 else 0.0

    assert Sampler(on_the_neighbour_only, PAIR, 0).uses_rng()


# Outputs as (label, number); ordinary ones have no label.
OUTPUTS = st.lists(
    st.tuples(st.sampled_from(["", "", "raises A", "value 'long word'"]), st.floats())
    | st.tuples(st.just(""), st.floats()),
    max_size=12,
)


def batch_of(outputs, *, mapping=False):
    ordinary = np.array([value for label, value in outputs if not label], dtype=float)
    labels = np.array([label for label, _ in outputs], dtype=str)
    values = {"a": ordinary, "b": ordinary[:, None]} if mapping else ordinary
    return Batch(
        len(outputs),
        values if len(ordinary) else None,
        labels if any(label for label, _ in outputs) else None,
    )


def outputs_of(batch):
    """Return the outputs in order, numbers as text so that NaN equals itself."""
    values = batch.values
    if isinstance(values, dict):
        assert np.array_equal(values["a"], values["b"][:, 0], equal_nan=True)
        values = values["a"]
    assert (values is None) == (not batch.ordinary.any())
    numbers = iter([] if values is None else values.tolist())
    found = [label or repr(next(numbers)) for label in batch.all_labels.tolist()]
    assert next(numbers, None) is None
    assert batch.size == len(found)
    return found


def words(outputs):
    return [label or repr(float(value)) for label, value in outputs]


@given(OUTPUTS, st.booleans(), st.integers(0, 14), st.integers(0, 14))
def test_a_section_keeps_order_and_labels(outputs, mapping, start, stop):
    batch = batch_of(outputs, mapping=mapping)
    for part in (slice(start, stop), slice(stop), slice(start, None)):
        assert outputs_of(batch.section(part)) == words(outputs[part])


@given(OUTPUTS, st.booleans())
def test_halves_are_all_of_it(outputs, mapping):
    first, second = batch_of(outputs, mapping=mapping).halves()
    assert abs(first.size - second.size) <= 1
    assert outputs_of(first) + outputs_of(second) == words(outputs)


@given(st.lists(OUTPUTS, max_size=4), st.booleans())
def test_joining_keeps_order_and_labels(parts, mapping):
    joined = Batch.join([batch_of(part, mapping=mapping) for part in parts])
    assert outputs_of(joined) == words([output for part in parts for output in part])
