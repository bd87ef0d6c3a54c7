"""Noise that no recorder sees: it refutes nothing by coming out alike for a while."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from replay_cases import WRONG, rows

from dpaudit import ApproxDP, Pair, PureDP
from dpaudit.audit.replay import invariant, replay
from dpaudit.audit.replay.judge import repeated
from dpaudit.audit.replay.judge.repeated import repeats_needed

PAIR = Pair(rows(0, 1), rows(0, 1, 1))
ALIKE = 0.7


class Compiled:
    """Draws that were made before, as those of compiled code: not to be seen."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        signs = rng.choice([-1, 1], 20_000)
        self._noise = iter((signs * (rng.random(20_000) > ALIKE)).tolist())

    def count(self, x):
        return len(x) + next(self._noise)


# Each counts the rows with noise that is not seen, and shows that in another way.
HIDING = {
    "released": lambda x, rng, of: of.count(x),
    "below noise": lambda x, rng, of: of.count(x) + rng.laplace(0, 0.5),
    "as a word": lambda x, rng, of: "abcdefgh"[of.count(x)],
    "after a value": lambda x, rng, of: (float(rng.laplace(0, 9.0)), of.count(x)),
    "beside a choice": lambda x, rng, of: (rng.choice(2, p=[0.5, 0.5]), of.count(x)),
}


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
    again = drawn[-2 * result.repeats - 1 : -1]  # the last is the first once more
    assert len(set(again)) == len(again) == 26


@pytest.mark.parametrize("name", HIDING)
@pytest.mark.parametrize("sees", ["release", "transcript"])
def test_noise_that_comes_out_alike_refutes_nothing(name, sees):
    """It comes out alike in all 13 executions a side with probability 1e-4; seeded."""
    options = {"claim": PureDP(1.0), "sees": sees, "budget": 2}
    for seed in range(12 if name == "released" else 6):
        mechanism = partial(HIDING[name], of=Compiled(seed))
        result = replay(mechanism, pair=PAIR, seed=seed, **options)
        assert not result.refuted, (seed, str(result))


TURNS = {
    "below noise": lambda x, rng, turn: (turn, len(x) + rng.laplace(0, 10)),
    "after a look": lambda x, rng, turn: (turn, round(len(x) + rng.laplace(0, 10), 3)),
    "beside a choice": lambda x, rng, turn: (turn, int(rng.choice(2, p=[0.5, 0.5]))),
    "as an invariant": lambda x, rng, turn: (
        invariant(turn=turn) or len(x) + rng.laplace(0, 10)
    ),
}


@pytest.mark.parametrize("sees", ["release", "transcript"])
@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("name", TURNS)
def test_code_that_takes_turns_refutes_nothing(name, length, sees):
    """It is refuted with probability 2^-11; seeded."""
    turns = itertools.cycle([0] * length + [1] * length)

    def mechanism(x, rng):
        return TURNS[name](x, rng, next(turns))

    options = {"claim": PureDP(0.1), "sees": sees, "budget": 2}
    for seed in range(2):
        result = replay(mechanism, pair=PAIR, seed=seed, **options)
        assert not result.refuted, str(result)


@pytest.mark.usefixtures("proofs_repeated_enough")
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
    # One more looks whether the first draws as it did; at most two a side for the line.
    assert len(calls) - 2 * (2 + 13) - 1 in (0, 2, 4)
    again = "executed again" if result.assumes else "2 executions a side, repeated"
    assert f"({again} 13 times" in str(result)


@pytest.mark.parametrize("epsilon", [8.0, 15.0])
def test_a_number_without_noise_is_no_proof_of_a_claim_that_it_may_keep(
    epsilon, monkeypatch
):
    # Hidden noise of a claim of epsilon 15 is seen in one of three million executions,
    # and of epsilon 8 in one of 3,000, for which there is no time.
    monkeypatch.setattr(repeated, "_SECONDS", 0.0)
    result = replay(lambda x, rng: len(x), pair=PAIR, claim=PureDP(epsilon), budget=2)
    assert (str(result.verdict), result.proof) == ("NOT_FOLLOWED", False)
    assert "may have noise that is not seen" in result.findings[-1].message
    assert "a smaller epsilon" in result.remedy


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
