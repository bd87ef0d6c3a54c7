"""Executions that would not come to an end, by steps or by time; also if caught."""

import threading
import time
from random import SystemRandom

import numpy as np
import pytest

from dpaudit import Pair, PureDP
from dpaudit.audit import Budget
from dpaudit.audit.replay import replay
from dpaudit.audit.replay.follow import ending

PAIR = Pair([[0.2], [0.7]], [[0.2], [0.7], [1.0]])


def far(data, rng):  # 3 scales out none of its draws is large enough
    value = float(data.sum() / 100 + rng.normal())
    while 2.9 * rng.random() < value:
        pass
    return value


def far_but_caught(data, rng):
    value = float(data.sum() / 100 + rng.normal())
    for _ in range(100_000):
        try:
            if 2.9 * rng.random() >= value:
                return value
        except BaseException:
            return value
    return value


def on_the_neighbour(data, rng):
    while (value := data.sum() + rng.exponential()) > 1.8:
        pass
    return value


def spins(data, rng):
    while True:
        data.sum()


def spins_on(data, rng):
    try:
        while True:
            data.sum()
    except BaseException:
        return data.sum() + rng.laplace()


def spins_and_fails(data, rng):
    try:
        while True:
            data.sum()
    except BaseException:
        raise ValueError from None


def draws(data, rng):
    while data.sum() + rng.laplace() < 1_000:
        pass


def asks_the_system(data, rng):
    while SystemRandom().random() < 2:
        pass


def computes(data, rng):
    value = data.sum() + rng.laplace()
    while True:
        value = value * 1.0


def line_of(mechanism, words):
    import inspect

    lines, first = inspect.getsourcelines(mechanism)
    return first + next(number for number, line in enumerate(lines) if words in line)


@pytest.mark.parametrize("mechanism", [far, far_but_caught])
def test_draws_without_an_end_beside_noise_that_is_given(mechanism):
    result = replay(mechanism, pair=PAIR, claim=PureDP(9.0), budget=2)
    assert result.verdict == "NOT_FOLLOWED"
    (found,) = result.findings
    assert found.kind == "coin"
    assert "000 steps beside noise" in found.message
    assert found.where.endswith(f":{line_of(mechanism, '2.9 *')}")
    assert "as often as is public" in result.remedy


def test_draws_without_an_end_on_one_side(monkeypatch):
    monkeypatch.setattr(ending, "_MANY", 1_000)
    result = replay(on_the_neighbour, pair=PAIR, claim=PureDP(1.0))
    assert result.verdict == "NOT_FOLLOWED"
    assert result.samples == 0, "releases would not come to an end either"
    assert "on D'" in result.findings[0].message


def ends_soon(monkeypatch):
    """Let seconds be short: what spins is ended several times, and waits for each."""
    monkeypatch.setattr(ending, "_LEAST_SECONDS", 0.1)
    monkeypatch.setattr(ending, "_LATER", 0.05)


@pytest.mark.parametrize(
    "mechanism", [spins, spins_on, spins_and_fails, draws, asks_the_system, computes]
)
def test_time(mechanism, monkeypatch):
    ends_soon(monkeypatch)
    before = threading.enumerate(), np.random.normal, time.perf_counter()
    result = replay(mechanism, pair=PAIR, claim=PureDP(1.0), budget=Budget(seconds=0.1))
    assert result.verdict == "NOT_FOLLOWED"
    assert "longer than the seconds" in result.findings[0].message
    assert line_of(mechanism, "def") < int(result.findings[0].where.split(":")[-1])
    assert threading.enumerate() == before[0]
    assert np.random.normal is before[1]
    assert result.samples == 0


def test_a_call_within_a_call_leaves_the_time_of_that(monkeypatch):
    ends_soon(monkeypatch)

    def inner():
        return ending.watched(lambda: 3)

    def outer():
        assert inner() == 3
        while True:
            pass

    with ending.TimeLimit(0.1) as watch, pytest.raises(ending.Ended):
        watch.call(outer)
    assert ending.TimeLimit.current() is None
    assert ending.watched(inner) == 3
