"""Noise that no recorder sees: it refutes nothing by coming out alike for a while."""

import itertools
import math

import numpy as np
import pytest
from replay_cases import WRONG, rows

from dpaudit import ApproxDP, Pair, PureDP
from dpaudit.audit.replay import invariant, replay
from dpaudit.audit.replay.hidden import repeats_needed
from dpaudit.audit.replay.witness import verify_replay

PAIR = Pair(rows(0, 1), rows(0, 1, 1))
ALIKE = 0.7


class Compiled:
    """Draws that were made before, as those of compiled code: not to be seen."""

    def __init__(self, seed, alike=ALIKE):
        rng = np.random.default_rng(seed)
        signs = rng.choice([-1, 1], 20_000)
        self._noise = iter((signs * (rng.random(20_000) > alike)).tolist())

    def count(self, x):
        return len(x) + next(self._noise)


def released(compiled):
    return lambda x, rng: compiled.count(x)


def below_noise(compiled):
    return lambda x, rng: compiled.count(x) + rng.laplace(0, 0.5)


def as_a_word(compiled):
    return lambda x, rng: "abcdefgh"[compiled.count(x)]


def after_a_value(compiled):
    def mechanism(x, rng):
        return float(rng.laplace(0, 9.0)), compiled.count(x)

    return mechanism


def beside_a_choice(compiled):
    return lambda x, rng: (int(rng.choice(2, p=[0.5, 0.5])), compiled.count(x))


HIDING = [below_noise, as_a_word, after_a_value, beside_a_choice]


def test_no_two_executions_share_their_draws():
    """Else what is alike on D and differs on D' would be one coincidence, not two."""
    drawn = []

    def counts_rows(data, rng):
        noise = rng.laplace()
        if isinstance(noise, float):  # an ordinary execution
            drawn.append(noise)
        return np.array([len(data), noise])

    result = replay(counts_rows, pair=PAIR, claim=PureDP(1.0))
    assert (result.verdict, result.repeats) == ("REFUTED", 13)
    again = drawn[-2 * result.repeats :]
    assert len(set(again)) == len(again) == 26


@pytest.mark.parametrize(
    ("hiding", "seeds"),
    [(released, 12), *((each, 6) for each in HIDING)],
    ids=lambda each: getattr(each, "__name__", None),
)
@pytest.mark.parametrize("sees", ["release", "transcript"])
def test_noise_that_comes_out_alike_refutes_nothing(hiding, seeds, sees):
    """It comes out alike in all 13 executions a side with probability 1e-4; seeded."""
    claim = PureDP(1.0)
    for seed in range(seeds):
        result = replay(
            hiding(Compiled(seed)),
            pair=PAIR,
            claim=claim,
            sees=sees,
            seed=seed,
            max_samples=2,
        )
        assert not result.refuted, (seed, str(result))


@pytest.mark.parametrize("sees", ["release", "transcript"])
@pytest.mark.parametrize("length", [1, 3])
def test_code_that_takes_turns_refutes_nothing(length, sees):
    """It is refuted with probability 2^-11; seeded."""
    epsilon = 0.1

    def below_noise(x, rng, turn):
        return turn, len(x) + rng.laplace(0, 1 / epsilon)

    def after_a_look(x, rng, turn):
        return turn, round(len(x) + rng.laplace(0, 1 / epsilon), 3)

    def beside_a_choice(x, rng, turn):
        return turn, int(rng.choice(2, p=[0.5, 0.5]))

    def as_an_invariant(x, rng, turn):
        invariant(turn=turn)
        return len(x) + rng.laplace(0, 1 / epsilon)

    for mechanism in (below_noise, after_a_look, beside_a_choice, as_an_invariant):
        turns = itertools.cycle([0] * length + [1] * length)
        for seed in range(2):
            result = replay(
                lambda x, rng, of=mechanism, turns=turns: of(x, rng, next(turns)),
                pair=PAIR,
                claim=PureDP(epsilon),
                sees=sees,
                seed=seed,
                max_samples=2,
            )
            assert not result.refuted, str(result)


def test_a_witness_of_it_is_not_confirmed():
    def mechanism(x, rng):
        return float(len(x))

    mechanism.__module__ = "nowhere"
    witness = replay(mechanism, pair=PAIR, claim=PureDP(1.0)).witness
    for seed in range(1, 13):
        other = released(Compiled(seed))
        found = verify_replay(witness, mechanism=other, max_samples=2, seed=seed)
        assert not found.confirmed


@pytest.mark.parametrize("name", WRONG)
def test_a_bug_is_looked_at_again_as_often_as_it_takes(name):
    mechanism, pair, _, _ = WRONG[name]
    calls = []

    def counted(x, rng):
        calls.append(len(x))
        return mechanism(x, rng)

    result = replay(counted, pair=pair, claim=PureDP(1.0))
    assert (str(result.verdict), result.proof) == ("REFUTED", True)
    assert (result.executions, result.repeats) == (2, 13)
    assert len(calls) == 2 * (2 + 13)
    assert "2 executions a side, repeated 13 times" in str(result)


def test_a_number_without_noise_is_no_proof_of_a_claim_that_it_may_keep():
    # Hidden noise of a claim of epsilon 15 is seen in one of three million executions.
    result = replay(lambda x, rng: len(x), pair=PAIR, claim=PureDP(15.0), max_samples=2)
    assert (str(result.verdict), result.proof) == ("NOT_FOLLOWED", False)
    assert "may have noise that is not seen" in result.findings[-1].message


def test_no_time_for_it_is_no_proof():
    result = replay(
        lambda x, rng: len(x),
        pair=PAIR,
        claim=PureDP(1.0),
        max_seconds=1e-9,
        max_samples=2,
    )
    assert not result.refuted


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0), (1.0, 0.1), (4.0, 1e-5)])
def test_so_many_executions_are_enough_and_no_fewer(epsilon, delta):
    p, q = np.meshgrid(*[np.linspace(0, 1, 2001)] * 2)
    factor = math.exp(epsilon)
    true = (p <= factor * q + delta) & (1 - q <= factor * (1 - p) + delta)
    most = float((p * (1 - q))[true].max())
    alpha = 1e-3
    needed = repeats_needed(ApproxDP(epsilon, delta), alpha)
    assert most**needed <= alpha
    largest = ((factor + delta) / (factor + 1)) ** 2
    assert largest == pytest.approx(most, abs=1e-3)
    assert largest ** (needed - 1) > alpha
