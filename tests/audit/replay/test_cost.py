"""What a replay keeps and computes: it goes by what was drawn, not by how often."""

import math

import numpy as np
import pytest

from dpaudit import ApproxDP, GaussianDP, Pair, PureDP
from dpaudit.audit import replay
from dpaudit.audit.replay.execute.executor import Trace, execute
from dpaudit.audit.replay.laws import affine, choices, coded
from dpaudit.audit.replay.laws.choices import ChoiceLaw
from dpaudit.audit.replay.laws.comparison import compare

ROWS, STEPS = 20_000, 4


def dp_sgd(data, rng):
    point = np.zeros(data.shape[1])
    for _ in range(STEPS):
        batch = data[rng.random(len(data)) < 0.01]
        clipped = batch / np.maximum(1, np.linalg.norm(batch, axis=1, keepdims=True))
        noisy = clipped.sum(axis=0) + rng.normal(0, 1.5, size=len(point))
        point = point - noisy / len(point)
    return point


def held(thing, seen=None):
    """Return the bytes of all arrays that an object holds, each once."""
    seen = set() if seen is None else seen
    while isinstance(thing, np.ndarray) and thing.base is not None:
        thing = thing.base
    if id(thing) in seen:
        return 0
    seen.add(id(thing))
    if isinstance(thing, np.ndarray | bytes):
        return len(thing) if isinstance(thing, bytes) else thing.nbytes
    if isinstance(thing, dict):
        return sum(held(each, seen) for each in thing.values())
    if isinstance(thing, list | tuple):
        return sum(held(each, seen) for each in thing)
    names = [*getattr(thing, "__dict__", ()), *getattr(type(thing), "__slots__", ())]
    return sum(held(getattr(thing, name, None), seen) for name in names)


def test_an_execution_keeps_one_bit_to_a_flip():
    trace = execute(dp_sgd, np.ones((ROWS, 3)), 0)
    kept = held(trace.tape.observations)
    assert STEPS * ROWS / 8 <= kept < 1.1 * STEPS * ROWS / 8 + 4096
    assert held(trace.tape) < kept + 8192
    again = trace.again(1, script=trace.tape.observations)
    for one, other in zip(
        trace.tape.observations, again.tape.observations, strict=True
    ):
        assert np.array_equal(one.value, other.value)
        assert one.value.size == math.prod(one.shape)


def test_secret_batches_cost_executions_and_no_tables(monkeypatch):
    rows, made = [], []
    real, again = choices.least_losses, Trace.again

    def losses(p, *others):
        rows.append(len(p))
        return real(p, *others)

    def counted(self, *args, **more):
        made.append(len(more))
        return again(self, *args, **more)

    monkeypatch.setattr(choices, "least_losses", losses)
    monkeypatch.setattr(Trace, "again", counted)
    data = np.random.default_rng(0).standard_normal((ROWS, 3))
    found = replay(dp_sgd, pair=Pair(data, data[1:]), claim=GaussianDP(1.0))
    assert (found.verdict, found.executions) == ("NOT_REFUTED", 50)
    assert len(made) <= 54
    assert sum(rows) == 0  # all flips have one probability, which is the same


@pytest.mark.parametrize("p", [0.0, 1e-13, 0.01, 0.3, 1.0])
@pytest.mark.parametrize("q", [0.0, 2e-13, 0.01 + 1e-6, 1.0])
def test_flips_that_are_alike_are_what_a_table_of_them_is(p, q):
    rng = np.random.default_rng(3)
    count = 200
    alike = [ChoiceLaw.flips(np.array([each]), count) for each in (p, q)]
    tables = [ChoiceLaw(law.log.copy(), law.kind, law.error) for law in alike]
    assert [law.alike for law in (*alike, *tables)] == [True, True, False, False]
    value = rng.random(count) < p
    for one, two in ((0, 1), (1, 0), (0, 0)):
        whole = tables[one].supremum(tables[two])
        assert alike[one].supremum(alike[two]) == pytest.approx(whole, rel=1e-12)
        assert alike[one].supremum(tables[two]) == whole
    for law, table in zip(alike, tables, strict=True):
        log = table.log_probability(value)
        assert law.log_probability(value) == pytest.approx(log, rel=1e-12)
        assert law.without(7).alike
        assert np.array_equal(law.without(7).log, table.without(7).log)
    assert compare(*alike).same == compare(*tables).same


def test_rates_that_differ_by_row_still_tell_the_row():
    """A rate that depends on the data is found, whichever row it is."""
    data = np.arange(300.0)[:, np.newaxis] / 300

    def by_row(data, rng):
        rate = np.where(data[:, 0] > 0.5, 0.02, 0.01)
        rate = rate + (0.3 if len(data) == 300 else 0.0) * (data[:, 0] == 0.1)
        return data[rng.random(len(data)) < rate].sum() + rng.normal(0, 3.0)

    found = replay(
        by_row, pair=Pair(data, data[1:]), claim=ApproxDP(1.0, 1e-5), budget=4
    )
    assert any("other probabilities" in each.message for each in found.findings)


def test_a_release_of_many_numbers_is_told_by_its_blocks(monkeypatch):
    asked = []
    real, words = Trace.place_of, coded.words_of
    monkeypatch.setattr(
        Trace, "place_of", lambda self, draw: asked.append(draw) or real(self, draw)
    )
    monkeypatch.setattr(
        coded, "words_of", lambda family: asked.append(family) or words(family)
    )

    def sums(data, rng):
        first = data.sum(axis=0) + rng.laplace(scale=2.0, size=data.shape[1])
        return np.concatenate([rng.normal(0, 1.0, 5) + 1.0, first])

    data = np.zeros((3, 50_000))
    data[0, :4] = 0.5
    found = replay(sums, pair=Pair(data, data[1:]), claim=PureDP(0.9))
    assert (found.verdict, found.loss) == ("REFUTED", pytest.approx(1.0))
    assert [step.family for step in found.steps] == ["gaussian", "laplace"]
    assert [step.l1 for step in found.steps] == [0.0, pytest.approx(2.0)]
    assert len(asked) < 20


@pytest.mark.parametrize("size", [3, 100_001])
@pytest.mark.parametrize("away", [0.0, 1e9])
def test_a_long_noisy_value_is_kept_once_and_as_it_was(size, away):
    """Short ones are kept in columns, long ones and rough ones as they are."""

    def writes(data, rng):
        noisy = (data.sum(axis=0) + rng.laplace(scale=2.0, size=size)) + away - away
        seen = noisy.__array__() if hasattr(noisy, "tape") else noisy
        was.append(seen.copy())
        seen *= 2.0
        return seen

    was = []
    first = execute(writes, np.zeros((2, size)), 0)
    (one,) = first.tape.observations
    assert np.array_equal(one.value, was[0])
    assert held(first.tape.observations) < 6 * 8 * size + 8192
    data = np.zeros((2, size))
    data[0, :2] = 0.5
    found = replay(writes, pair=Pair(data, data[1:]), claim=PureDP(0.6))
    assert (found.verdict, len(found.steps)) == ("NOT_REFUTED", 1)
    assert abs(found.loss) <= 0.5


def test_densities_are_those_of_each_family():
    u = np.random.default_rng(1).standard_normal((2, 12))
    every = np.array([*coded.STANDARD] * 2)
    found = affine.log_density(every, u)
    for place, family in enumerate(every.tolist()):
        alone = affine.log_density(np.array([family]), u[:, [place]])
        assert np.array_equal(found[:, [place]], alone)
    unknown = affine.log_density(np.array([coded.Family.UNKNOWN]), u[:, :1])
    assert np.isnan(unknown).all()


@pytest.mark.parametrize("sees", ["release", "transcript"])
def test_code_may_write_into_what_it_chose(sees):
    def changes(data, rng):
        chosen = rng.choice(3, size=20, p=[0.4, 0.3, 0.3])
        chosen += 1
        return chosen + rng.laplace(size=20) + data.sum() / 20

    pair = Pair([[1.0], [0.0]], [[0.0]])
    found = replay(changes, pair=pair, claim=PureDP(1.0), sees=sees)
    assert (found.verdict, found.findings) == ("NOT_REFUTED", ())
    assert found.loss <= 1.0


def test_choices_in_too_many_ways_are_soon_given_up(monkeypatch):
    """Ten signs turn out in 1,024 ways, which took 930 executions to see."""
    made, again = [], Trace.again

    def counted(self, *args, **more):
        made.append(len(more))
        return again(self, *args, **more)

    def signed(data, rng):
        signs = (1 if rng.random() < 0.5 else -1 for _ in data.flat)
        return [x + next(signs) * rng.exponential() for x in data.flat]

    monkeypatch.setattr(Trace, "again", counted)
    pair = Pair(np.zeros((1, 10)), np.ones((1, 10)), "replace-one")
    found = replay(signed, pair=pair, claim=PureDP(0.5))
    assert (found.verdict, found.proof) == ("REFUTED", False)
    assert len(made) < 200
