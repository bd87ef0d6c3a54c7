import random

import numpy as np
import pytest
from audit_cases import CLAIM, PAIR, attacks, audited, laplace_sum
from refusals import refused, refuses
from scipy.stats import binom, chisquare

from dpaudit import InputError, MechanismError
from dpaudit.audit import Budget, Run, Store, audit
from dpaudit.audit.sampling.sampler import DATA, NEIGHBOUR, Sampler
from dpaudit.batches import Batch

pytestmark = pytest.mark.usefixtures("in_few_rounds")


def everything(sampler: Sampler, side: int = DATA, size: int = 40):
    return Batch.join(sampler.batches(side, size))


def numbers(batch):
    """Return the numbers of a batch of one layout."""
    (part,) = batch.parts.values()
    return part.numbers


def test_batches_are_reproducible_and_distinct():
    first = numbers(everything(Sampler(laplace_sum, PAIR, 3)))
    assert np.array_equal(first, numbers(everything(Sampler(laplace_sum, PAIR, 3))))
    assert len(np.unique(first)) == 40
    later = Sampler(laplace_sum, PAIR, 3)
    everything(later)
    others = [
        numbers(everything(Sampler(laplace_sum, PAIR, 4))),
        numbers(everything(Sampler(laplace_sum, PAIR, 3, key=1))),
        numbers(everything(later)),
        numbers(everything(Sampler(laplace_sum, PAIR, 3), NEIGHBOUR)) - 1,
    ]
    for other in others:
        assert not np.isin(np.round(other, 9), np.round(first, 9)).any()


def test_batches_go_by_the_size_of_releases_and_have_streams_of_their_own():
    big = Sampler(lambda d, rng: np.zeros(2**20), PAIR, 0)
    assert [b.size for b in big.batches(DATA, 2)] == [2]
    assert [b.size for b in big.batches(DATA, 5)] == [2, 2, 1]
    batch = everything(Sampler(FailingOnce(), PAIR, 0), size=1000)
    found = batch.numbers("shape ()")
    assert 800 < len(found) < 1000
    assert len(np.unique(found)) == len(found)
    refuses("release method or be a callable", Sampler, 3.0, PAIR, 0)


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

    fresh = numbers(everything(Sampler(laplace_sum, PAIR, 3)))
    assert np.array_equal(numbers(everything(Sampler(reused, PAIR, 3)))[:, 0], fresh)
    sampler = Sampler(Batched(), PAIR, 0)
    first = everything(sampler)
    before = numbers(first).copy()
    everything(sampler)
    assert np.array_equal(numbers(first), before)


def mostly(odd):
    """Return a mechanism of which one output in three is odd."""

    def mechanism(data, rng):
        return odd() if rng.random() < 1 / 3 else 1.0

    return mechanism


def fail():
    raise ZeroDivisionError("no rows left")


@pytest.mark.parametrize(
    ("odd", "layout"),
    [
        *((fail, "raises ZeroDivisionError"), (lambda: None, "value None")),
        *((lambda: "no", "value 'no'"), (lambda: np.zeros(3), "shape (3,)")),
        (lambda: {"a": {"b": 1.0}}, "shapes {a: {b: ()}}"),
    ],
)
def test_outputs_of_every_layout_are_kept_apart(odd, layout):
    batch = everything(Sampler(mostly(odd), PAIR, 0), size=60)
    assert batch.counts.keys() == {"shape ()", layout}
    assert batch.numbers("shape ()").tolist() == [1.0] * batch.count("shape ()")
    assert batch.count("shape ()") + batch.count(layout) == 60


def test_each_release_may_write_into_its_data_and_draws_that_fail_are_named():
    def writing(data, rng):
        data += 1
        return data.sum()

    assert np.all(numbers(everything(Sampler(writing, PAIR, 0))) == 1.0)
    assert PAIR.data.tolist() == [0.0]

    class OnlyDrawFails:
        def release(self, data, *, rng):
            return 1.0

        def draw(self, data, size, *, rng):
            raise KeyError("lost")

    with pytest.raises(MechanismError, match=r"draw raised KeyError.*same distrib"):
        everything(Sampler(OnlyDrawFails(), PAIR, 0))


def test_shapes_may_depend_on_the_dataset_and_draws_be_lists():
    class Wide:
        def draw(self, data, size, *, rng):
            return np.zeros((size, len(data)))

    for mechanism in (lambda d, rng: np.zeros(len(d)), Wide()):
        sampler = Sampler(mechanism, PAIR, 0)
        assert everything(sampler, DATA).counts == {"shape (1,)": 40}
        assert everything(sampler, NEIGHBOUR).counts == {"shape (2,)": 40}

    class Ragged:
        def draw(self, data, size, *, rng):
            return [[1.0] * (1 + place % 2) for place in range(size)]

    batch = everything(Sampler(Ragged(), PAIR, 0))
    assert batch.counts == {"shape (1,)": 20, "shape (2,)": 20}


class Wrong:
    def __init__(self, drawn):
        self.drawn = drawn

    def draw(self, data, size, *, rng):
        return self.drawn(size)


test_a_draw_that_breaks_the_protocol_is_named = refused(
    (lambda size: np.zeros(size - 1), "15 releases instead of 16"),
    (
        lambda size: {"a": np.zeros(size), "b": np.zeros(size - 1)},
        "15 releases instead of 16",
    ),
    (lambda size: "no" * size, r"must return numbers, or .* got str"),
    by=lambda drawn: everything(Sampler(Wrong(drawn), PAIR, 0)),
    error=MechanismError,
)


@pytest.mark.parametrize("method", ["release", "draw"])
def test_errors_of_dpaudit_pass_unchanged(method):
    def refuse(*arguments, rng):
        raise InputError("n must be >= 7, got 1")

    mechanism = type("Refusing", (), {method: staticmethod(refuse)})()
    refuses("n must be >= 7", everything, Sampler(mechanism, PAIR, 0))


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
    count, batches = 4, 1500
    sampler = Sampler(Failing(), PAIR, 0)
    failures = [
        batch.count("raises ValueError")
        for _ in range(batches)
        for batch in sampler.batches(DATA, count)
    ]
    observed = np.bincount(failures, minlength=count + 1)
    expected = batches * binom.pmf(np.arange(count + 1), count, Failing.rate)
    assert chisquare(observed, expected).pvalue > 1e-9


def noted(**options):
    """Return the releases of an audit on either side, in the order of their numbers."""
    seen = {1: [], 2: []}

    def mechanism(data, rng):
        seen[len(data)].append(laplace_sum(data, rng))
        return seen[len(data)][-1]

    result = audit(mechanism, pair=PAIR, claim=CLAIM, **options)
    on_data, on_neighbour = result.drawn
    return seen[1][:on_data], seen[2][:on_neighbour]


def test_a_release_hangs_on_its_number_and_not_on_the_rounds():
    """Audits of other lengths have other rounds, and share their first releases."""
    long, short = (noted(budget=Budget(most, stop=most > 100)) for most in (700, 90))
    for side in (DATA, NEIGHBOUR):
        common = min(len(long[side]), len(short[side]))
        assert common > 80
        assert long[side][:common] == short[side][:common]
    sampler = Sampler(laplace_sum, PAIR, 0)
    assert numbers(everything(sampler, size=7)).tolist() == long[DATA][:7]
    assert numbers(everything(sampler, size=600)).tolist() == long[DATA][7:607]


def test_numbers_go_on_where_an_audit_was_ended(tmp_path):
    rounds = iter(range(100))
    drawn = []

    def mechanism(data, rng):
        drawn.append(rng.random())
        return data.sum() + rng.laplace()

    store = Store(tmp_path / "audits.db")
    run = Run(store=store, should_stop=lambda: next(rounds) == 2)
    first = audited(mechanism, budget=60, run=run)
    assert first.interrupted
    before = set(drawn)
    drawn.clear()
    audited(mechanism, budget=60, run=Run(store=store))
    # The pilot and the last looks alone are the same again.
    assert len(set(drawn) - before) == 2 * (60 - first.samples)


def reseeded(data, rng):
    source = random.Random(int(seeds_of(rng).generate_state(4)[0]))
    return source.expovariate(1.0) - source.expovariate(1.0)


def spawned(data, rng):
    return np.random.default_rng(seeds_of(rng).spawn(1)[0]).laplace()


def old_style(data, rng):
    return np.random.RandomState(seeds_of(rng).generate_state(4)).laplace()


def named(data, rng):
    seeds = seeds_of(rng)
    again = np.random.SeedSequence(seeds.entropy, spawn_key=seeds.spawn_key)
    return np.random.default_rng(again).laplace()


def seeds_of(rng):
    return rng.bit_generator.seed_seq


SEEDED = [reseeded, spawned, old_style, named]


@pytest.mark.parametrize("mechanism", SEEDED)
def test_no_release_is_repeated_where_another_library_is_seeded(mechanism):
    sampler = Sampler(mechanism, PAIR, 0)
    every = [numbers(everything(sampler, side, 1000)) for side in (DATA, NEIGHBOUR)]
    assert len(np.unique(every)) == 2000


@pytest.mark.parametrize("mechanism", [spawned, old_style])
def test_a_draw_may_seed_another_library(mechanism):
    class Batched:
        def draw(self, data, size, *, rng):
            return mechanism(data, rng) + np.arange(size)

    sampler = Sampler(Batched(), PAIR, 0)
    every = [everything(sampler, side, 20) for _ in range(50) for side in range(2)]
    assert len(np.unique([numbers(batch) for batch in every])) == 2000


def audits(noise, count, **options):
    """Audit a mechanism of epsilon 1, whose noise another library draws."""

    def mechanism(data, rng):
        return data.sum() + noise(data, rng)

    run = Run(attacks=attacks("identity", "atoms"))
    return [audited(mechanism, **options, run=run, seed=seed) for seed in range(count)]


@pytest.mark.parametrize("noise", SEEDED)
def test_true_claims_stand_where_another_library_is_seeded(noise):
    (result,) = audits(noise, 1, budget=300)
    assert not result.refuted
    assert result.warnings == ()


@pytest.mark.hard
@pytest.mark.parametrize("noise", SEEDED)
def test_true_claims_fall_no_more_often_than_promised(noise):
    results = audits(noise, 200, confidence=0.95, budget=600)
    assert sum(result.refuted for result in results) <= 10


class FailingOnce:
    """A batched draw that fails; its single releases seed another library."""

    def release(self, data, *, rng):
        if rng.random() < 0.05:
            raise ValueError
        return spawned(data, rng)

    def draw(self, data, size, *, rng):
        raise ValueError
