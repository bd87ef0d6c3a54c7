"""Flips: comparisons of uniform draws with ordinary numbers, and their exact laws."""

import math
import random

import numpy as np
import pytest
from replay_cases import rows

from dpaudit import ApproxDP, Pair, PureDP
from dpaudit.audit import replay
from dpaudit.audit.replay.execute.executor import execute

SIX = Pair(rows(1, 0, 1, 1, 0, 0), rows(1, 0, 1, 1, 0, 1), "replace-one")
P = math.e / (1 + math.e)


def answers(x, truly):
    return np.where(truly, x.ravel(), 1 - x.ravel())


def used_again(x, rng):
    u = rng.random(len(x))
    in_batch = u < 0.25
    total = abs(x[in_batch].sum() + rng.laplace(scale=2.0))
    return total, u[0], u[in_batch].sum(), rng.random()


def test_what_flips_were_made_of_is_there_when_it_is_used_after_they_were_given():
    here = execute(used_again, np.ones((100, 1)), 3)
    there = here.again(data=np.zeros((100, 1)), script=here.tape.observations)
    plain = here.again(script=here.tape.observations, follows=False)
    assert here.tape.observations[0].value.sum() > 0
    assert np.array_equal(there.value[1:], here.value[1:])
    assert np.allclose(plain.value, here.value)
    for one, other in zip(here.tape.observations, there.tape.observations, strict=True):
        assert np.array_equal(one.value, other.value)


def written_out(x, rng):
    truly = np.zeros(len(x), dtype=bool)
    np.less(rng.random(len(x)), P, out=truly)
    return answers(x, truly)


FORMS = {
    "less": lambda x, rng: answers(x, rng.random(len(x)) < P),
    "at least": lambda x, rng: answers(x, rng.random(len(x)) >= 1 - P),
    "other way": lambda x, rng: answers(x, np.full(len(x), P) > rng.random(len(x))),
    "of another width": lambda x, rng: answers(
        x, 1 - 2 * rng.uniform(-1, 1, len(x)) <= 4 * P - 1
    ),
    "module level": lambda x, rng: answers(x, np.random.rand(len(x)) < P),  # noqa: NPY002
    "one by one": lambda x, rng: [int(b) ^ (random.random() > P) for b in x.flat],
    "binomial": lambda x, rng: answers(x, rng.binomial(1, P, len(x)) == 1),
    "binomials": lambda x, rng: [rng.binomial(1, P if b else 1 - P) for b in x.flat],
    "of the data": lambda x, rng: rng.random(len(x)) < np.where(x[:, 0], P, 1 - P),
    "written out": written_out,
}


@pytest.mark.parametrize("name", FORMS)
def test_randomised_response_of_six_rows_is_exact_and_tight(name):
    mechanism = FORMS[name]
    trace = execute(mechanism, SIX.data, 0)
    assert trace.tape.coins == trace.tape.unfollowed == []
    law = trace.tape.observations[0].law
    assert np.exp(law.log).max(axis=1) == pytest.approx(P)
    if name == "less":
        kept = replay(mechanism, pair=SIX, claim=PureDP(1.0))
        assert (kept.verdict, kept.loss) == ("NOT_REFUTED", pytest.approx(1.0))
    small = Pair(SIX.data[-2:], SIX.neighbour[-2:])
    kept = replay(mechanism, pair=small, claim=PureDP(1.0))
    assert (kept.verdict, kept.findings) == ("NOT_REFUTED", ())
    assert kept.loss == pytest.approx(1.0)
    broken = replay(mechanism, pair=small, claim=PureDP(0.999))
    assert (broken.verdict, broken.proof) == ("REFUTED", True)


@pytest.mark.parametrize("name", FORMS)
def test_followed_flips_are_those_of_an_ordinary_execution(name):
    one, two = (
        execute(FORMS[name], SIX.data, 3, follows=follows) for follows in (1, 0)
    )
    assert one.layout == two.layout
    assert one.value.tolist() == two.value.tolist()
    assert one.value.dtype == two.value.dtype == np.float64


def bernoulli_of_the_data(x, rng):
    """A count to the exponent: the sampler of many an exact mechanism."""
    return bool(rng.random() < math.exp(-0.7 * np.sum(x)))


def test_a_probability_may_depend_on_the_data():
    pair = Pair(rows(1), rows(1, 1))
    delta = math.exp(-0.7) - math.exp(0.3) * math.exp(-1.4)
    exact = math.log((1 - math.exp(-1.4)) / (1 - math.exp(-0.7)))
    result = replay(bernoulli_of_the_data, pair=pair, claim=PureDP(0.7000001))
    assert result.verdict == "NOT_REFUTED"
    assert result.loss == pytest.approx(max(0.7, exact))
    for factor, verdict in ((1.001, "NOT_REFUTED"), (0.998, "REFUTED")):
        claim = ApproxDP(0.3, factor * delta)
        result = replay(bernoulli_of_the_data, pair=pair, claim=claim)
        assert result.verdict == verdict


def one_uniform_for_all(x, rng):
    return answers(x, rng.random() < np.full(len(x), P))


def compared_twice(x, rng):
    """Inverse transform: one uniform number, several levels."""
    u = rng.random()
    return 0 if u < P / 2 else 1 if u < P else 2


def shown_afterwards(x, rng):
    u = rng.random(len(x))
    mask = u < 0.5
    return answers(x, mask), u


@pytest.mark.parametrize("mechanism", [compared_twice, shown_afterwards])
def test_draws_that_are_used_otherwise_too_are_no_flips(mechanism):
    result = replay(mechanism, pair=SIX, claim=PureDP(1.0), budget=2)
    assert not result.proof
    assert result.executions > 1


def test_impossible_probabilities_are_those_of_the_comparison_once_for_all_rows():
    def mechanism(x, rng):
        levels = np.array([-1.0, 0.25, 2.0, np.nan])
        return np.stack([rng.random(4) < levels, rng.random(4) > levels])

    trace = execute(mechanism, SIX.data, 0)
    chances = np.exp([each.law.log[:, 1] for each in trace.tape.observations])
    assert chances[0] == pytest.approx([0, 0.25, 1, 0])
    assert chances[1] == pytest.approx([1, 0.75, 0, 0])
    # All answers are turned round, or none: no release is possible on both sides.
    result = replay(one_uniform_for_all, pair=SIX, claim=PureDP(1.0), budget=2)
    assert (result.verdict, result.proof, result.loss) == ("REFUTED", True, math.inf)


def until_one_is_kept(x, rng):
    """The exponential mechanism by rejection: what was rejected stays hidden."""
    scores = np.array([np.sum(x == 0), np.sum(x == 1)]) / 2
    while True:
        place = rng.choice(2, p=[0.5, 0.5])
        if rng.random() < math.exp(scores[place] - scores.max()):
            return int(place)


def lengths_of_the_data(x, rng):
    batch = rng.random(len(x)) < 0.5
    return np.sum(batch) * 0 + np.clip(x, 0, 1).sum() + rng.laplace(0, 1.0)


@pytest.mark.parametrize("mechanism", [until_one_is_kept, lengths_of_the_data])
@pytest.mark.parametrize("sees", ["release", "transcript"])
def test_hidden_flips_prove_nothing_to_whoever_sees_noisy_values(mechanism, sees):
    options = {"claim": PureDP(1.0), "sees": sees, "budget": 2}
    pairs = Pair(rows(1, 0), rows(1, 0, 1)), Pair(rows(0, 0, 0), rows(0, 0, 0, 0))
    for seed, pair in enumerate(pairs):
        result = replay(mechanism, pair=pair, seed=seed, **options)
        assert result.verdict != "REFUTED"
