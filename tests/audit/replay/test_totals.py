"""Totals of answers that were randomised one by one, however many there are."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import ApproxDP, Pair, PureDP
from dpaudit.audit import replay
from dpaudit.audit.replay.laws.whitening import _summed

TRUE = math.e / (1 + math.e)
HALF = math.exp(0.5) / (1 + math.exp(0.5))
BITS = np.tile([0.0, 1, 0, 1, 1], 60)
MORE = np.append(BITS[:-1], 0.0)
PAIR = Pair(BITS, MORE, "replace-one")


def compared(x, rng):
    keep = rng.random(len(x)) < TRUE
    return np.where(keep, x, 1 - x).sum()


def unbiased(x, rng):
    flip = rng.binomial(1, 1 - TRUE, size=len(x))
    return ((x.astype(int) ^ flip).sum() - len(x) * (1 - TRUE)) / (2 * TRUE - 1)


def signs(x, rng):
    keep = rng.random(len(x)) < TRUE
    return ((2 * x - 1) * np.where(keep, 1, -1)).mean()


def arithmetic(x, rng):
    flip = rng.choice([0, 1], p=[TRUE, 1 - TRUE], size=len(x))
    return (x + flip - 2 * x * flip).sum()


def unary(x, rng):
    total = np.zeros(2)
    for value in x[-20:]:
        own = np.array([value == 0, value == 1])
        total += own ^ (rng.random(2) > HALF)
    return total


@pytest.mark.parametrize("mechanism", [compared, unbiased, signs, arithmetic, unary])
def test_a_total_loses_what_one_answer_does(mechanism):
    """It does so where all others turn out one way: at a probability of e^-393."""
    result = replay(mechanism, pair=PAIR, claim=PureDP(1.0))
    assert result.verdict == "NOT_REFUTED"
    assert result.loss == pytest.approx(1.0, abs=1e-6)
    result = replay(mechanism, pair=PAIR, claim=PureDP(0.99))
    assert result.proof
    assert result.refuted


@pytest.mark.parametrize(
    ("mechanism", "unit"), [(compared, 1e-300), (arithmetic, 1e200)]
)
def test_a_total_is_the_same_in_any_unit(mechanism, unit):
    """No place is rounded away, and no square is infinite or 0."""

    def scaled(x, rng):
        return unit * mechanism(x, rng)

    for claim in (PureDP(1.0), ApproxDP(0.15, 1.01 * _delta(0.15))):
        assert replay(scaled, pair=PAIR, claim=claim).verdict == "NOT_REFUTED"
    for claim in (PureDP(0.99), ApproxDP(0.15, 0.99 * _delta(0.15))):
        assert replay(scaled, pair=PAIR, claim=claim).proof


def _delta(epsilon):
    """Return delta by the binomial laws of those who say one, and of the last."""
    ones = int(BITS.sum())
    k = np.arange(len(BITS) + 1)
    laws = []
    for among in (ones, ones - 1):
        said = binom.pmf(k, among, TRUE), binom.pmf(k, len(BITS) - among, 1 - TRUE)
        laws.append(np.convolve(*said)[: len(k)])
    both = (laws, laws[::-1])
    return max(np.maximum(p - math.exp(epsilon) * q, 0).sum() for p, q in both)


def test_a_total_hides_one_answer_among_many():
    """So far less than the pure loss is lost but with a small probability."""
    delta = _delta(0.15)
    assert 1e-4 < delta < 0.1
    held = replay(compared, pair=PAIR, claim=ApproxDP(0.15, 1.01 * delta))
    assert not held.refuted
    assert replay(compared, pair=PAIR, claim=ApproxDP(0.15, 0.99 * delta)).refuted


def rarely_more(x, rng):
    return (x + rng.choice(3, p=[1e-9, 0.5, 0.5 - 1e-9], size=len(x))).sum()


def test_of_probabilities_of_few_digits_no_more_is_proven_than_is_sure():
    pair = Pair(np.zeros(9), np.append(np.zeros(8), 1.0), "replace-one")
    p = np.append(binom.pmf(np.arange(10), 9, 0.5), 0.0)  # but for 1e-8
    ways = p - math.exp(0.15) * np.roll(p, 1), np.roll(p, 1) - math.exp(0.15) * p
    true = max(each.clip(0).sum() for each in ways)
    for factor in (0.999, 1.00001):
        result = replay(rarely_more, pair=pair, claim=ApproxDP(0.15, factor * true))
        assert (result.refuted, result.proof) == (factor < 1, factor < 1)
    assert math.isinf(result.loss)


def shared(x, rng):
    said = np.where(rng.random(len(x)) < TRUE, x, 1 - x)
    return [said[:9].sum(), said.sum()]


def one_uniform_twice(x, rng):
    u, yes = rng.random(len(x)), x > 0
    return (yes ^ (u < 0.7)).sum() + (yes ^ (u < 0.3)).sum()


@pytest.mark.parametrize("mechanism", [shared, one_uniform_twice])
def test_totals_that_share_draws_are_not_taken_for_independent(mechanism):
    assert replay(mechanism, pair=PAIR, claim=PureDP(9.0)).verdict == "NOT_FOLLOWED"


@pytest.mark.parametrize("times", [(1, 1, 1), (1, -1, 2), (-3, 2, 1)])
def test_the_law_of_a_sum_is_that_of_all_ways(times):
    tables = [(0, (0.3, 0.7)), (-1, (0.2, 0.0, 0.8)), (2, (0.5, 0.4, 0.1))]
    with np.errstate(divide="ignore"):
        logs = [(start, tuple(np.log(p).tolist())) for start, p in tables]
    start, log, *_ = _summed(logs, np.array(times, dtype=float))
    found: dict[int, float] = {}
    for ways in itertools.product(*(range(len(p)) for _, p in tables)):
        value = sum(
            m * (a + k) for m, (a, _), k in zip(times, tables, ways, strict=True)
        )
        chance = math.prod(p[k] for (_, p), k in zip(tables, ways, strict=True))
        found[value] = found.get(value, 0.0) + chance
    assert start == min(found)
    wanted = [found.get(start + k, 0.0) for k in range(len(log))]
    np.testing.assert_allclose(np.exp(log), wanted, rtol=1e-12, atol=1e-300)
    assert _summed(logs, np.ones(3))[-1]
    rare = 0, (math.log(1e-9), math.log1p(-1e-9))  # a difference, with few digits
    assert not _summed([*logs, rare], np.ones(4))[-1]
    assert _summed(logs, np.array([1.0, 0.5, 1.0])) is None
    assert _summed([*logs[:2], None], np.ones(3)) is None
