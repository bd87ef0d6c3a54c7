"""The first finding names the line that a programmer would change."""

import linecache

import numpy as np
import pytest

from dpaudit import Pair, PureDP
from dpaudit.audit.replay import replay

PAIR = Pair([0.25, 0.75, 0.5], [0.25, 0.75, 0.5, 1.0])


def noisy(x, rng):
    return x.sum() + rng.laplace(0, 1.0)


def divided(x, rng):
    total = noisy(x, rng)
    return total / len(x)  # here


def met(x, rng):
    noise = rng.laplace(0, 0.5)
    total = x.sum()
    return total + noise  # here


def drawn_back(x, rng):
    total = noisy(x, rng)
    return (total + x.sum()) / 2  # here


def parts(x, rng):
    total = 0.0
    for each in x:
        total += each
    if total > 2:  # here
        return np.array([noisy(x, rng)])
    return np.empty(0)


def slice_left_out(x, rng):
    counts = np.array([float(len(x)), x.sum()])
    counts[1:] += rng.laplace(0, 1.0, 1)  # here
    return counts


def seeded(x, rng):
    own = np.random.default_rng(len(x))  # here
    return x.sum() + own.laplace(0, 1.0)


def until_positive(x, rng):
    while True:
        total = x.sum() - 1.0 + rng.laplace(0, 1.0)
        if total >= 0:  # here
            return total


def cut(x, rng):
    total = noisy(x, rng)
    return min(float(total), float(len(x)))  # here


def flipped_bit_by_bit(x, rng):
    bits = np.arange(3) == int(x[-1] > 0.5)
    keeps = rng.random(3) < np.e / (1 + np.e)
    return [int(bits[k]) if keeps[k] else 1 - int(bits[k]) for k in range(3)]  # here


WRONG = [divided, met, drawn_back, parts, slice_left_out, seeded, until_positive, cut]
WRONG += [flipped_bit_by_bit]


@pytest.mark.parametrize("mechanism", WRONG)
def test_the_first_finding_is_at_the_line_at_fault(mechanism):
    result = replay(mechanism, pair=PAIR, claim=PureDP(1.0), budget=2)
    assert str(result.verdict) != "NOT_REFUTED"
    where = result.findings[0].where
    file, _, line = where.rpartition(":")
    assert linecache.getline(file, int(line)).rstrip().endswith("# here"), str(result)
