"""Flips: comparisons of uniform draws with ordinary numbers, and their exact laws."""

import math
import random

import numpy as np
import pytest
from replay_cases import rows

from dpaudit import ApproxDP, Pair, PureDP
from dpaudit.audit import replay
from dpaudit.audit.replay.executor import execute

SIX = Pair(rows(1, 0, 1, 1, 0, 0), rows(1, 0, 1, 1, 0, 1), "replace-one")
P = math.e / (1 + math.e)


def answers(x, truly):
    return np.where(truly, x.ravel(), 1 - x.ravel())


def less(x, rng):
    return answers(x, rng.random(len(x)) < P)


def at_least(x, rng):
    return answers(x, rng.random(len(x)) >= 1 - P)


def the_other_way(x, rng):
    return answers(x, np.full(len(x), P) > rng.random(len(x)))


def of_another_width(x, rng):
    return answers(x, 1 - 2 * rng.uniform(-1, 1, len(x)) <= 4 * P - 1)


def at_module_level(x, rng):
    return answers(x, np.random.rand(len(x)) < P)  # noqa: NPY002


def one_by_one(x, rng):
    return [int(bit) ^ (random.random() > P) for bit in x.ravel()]


def binomial(x, rng):
    return answers(x, rng.binomial(1, P, len(x)) == 1)


def binomials(x, rng):
    return [rng.binomial(1, P if bit else 1 - P) for bit in x.ravel()]


def of_the_data(x, rng):
    return rng.random(len(x)) < np.where(x.ravel() > 0, P, 1 - P)


def written_out(x, rng):
    truly = np.zeros(len(x), dtype=bool)
    np.less(rng.random(len(x)), P, out=truly)
    return answers(x, truly)


FORMS = [
    *(less, at_least, the_other_way, of_another_width, at_module_level, one_by_one),
    *(binomial, binomials, of_the_data, written_out),
]


@pytest.mark.parametrize("mechanism", FORMS, ids=lambda m: m.__name__)
def test_randomised_response_of_six_rows_is_exact_and_tight(mechanism):
    trace = execute(mechanism, SIX.data, 0)
    assert trace.tape.coins == trace.tape.lost == []
    law = trace.tape.observations[0].law
    assert np.exp(law.log).max(axis=1) == pytest.approx(P)
    if mechanism is less:
        kept = replay(mechanism, pair=SIX, claim=PureDP(1.0))
        assert (kept.verdict, kept.loss) == ("NOT_REFUTED", pytest.approx(1.0))
    small = Pair(SIX.data[-2:], SIX.neighbour[-2:])
    kept = replay(mechanism, pair=small, claim=PureDP(1.0))
    assert (kept.verdict, kept.findings) == ("NOT_REFUTED", ())
    assert kept.loss == pytest.approx(1.0)
    broken = replay(mechanism, pair=small, claim=PureDP(0.999))
    assert (broken.verdict, broken.proof) == ("REFUTED", True)


def test_followed_flips_are_those_of_an_ordinary_execution():
    for mechanism in FORMS:
        followed, plain = (
            execute(mechanism, SIX.data, 3, follows=follows) for follows in (1, 0)
        )
        assert followed.layout == plain.layout
        assert followed.value.tolist() == plain.value.tolist()
        for value in (followed, plain):
            assert value.value.dtype == np.float64


def test_flips_are_ordinary_truth_values():
    seen = []

    def mechanism(x, rng):
        seen.extend((rng.random(3) < 0.5, rng.random() < 0.5))
        return 0

    execute(mechanism, SIX.data, 0)
    assert [type(each) for each in seen] == [np.ndarray, np.bool_]
    assert seen[0].dtype == bool


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


@pytest.mark.parametrize(
    "mechanism", [one_uniform_for_all, compared_twice, shown_afterwards]
)
def test_draws_that_are_used_otherwise_too_are_no_flips(mechanism):
    result = replay(mechanism, pair=SIX, claim=PureDP(1.0), max_samples=2)
    assert not result.proof
    assert result.executions > 1


def test_impossible_probabilities_are_those_of_the_comparison():
    def mechanism(x, rng):
        levels = np.array([-1.0, 0.25, 2.0, np.nan])
        return np.stack([rng.random(4) < levels, rng.random(4) > levels])

    trace = execute(mechanism, SIX.data, 0)
    chances = np.exp([each.law.log[:, 1] for each in trace.tape.observations])
    assert chances[0] == pytest.approx([0, 0.25, 1, 0])
    assert chances[1] == pytest.approx([1, 0.75, 0, 0])


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


def thrown_away(x, rng):
    private = rng.random(20) < 0.2 + 0.6 * (np.sum(x) > 1)
    return np.sum(private) * 0 + np.clip(x, 0, 1).sum() + rng.laplace(0, 1.0)


@pytest.mark.parametrize(
    "mechanism", [until_one_is_kept, lengths_of_the_data, thrown_away]
)
@pytest.mark.parametrize("sees", ["release", "transcript"])
def test_hidden_flips_prove_nothing_to_whoever_sees_noisy_values(mechanism, sees):
    pairs = Pair(rows(1, 0), rows(1, 0, 1)), Pair(rows(0, 0, 0), rows(0, 0, 0, 0))
    for pair in pairs:
        for seed in range(2):
            result = replay(
                mechanism,
                pair=pair,
                claim=PureDP(1.0),
                sees=sees,
                max_samples=2,
                seed=seed,
            )
            assert result.verdict != "REFUTED"
