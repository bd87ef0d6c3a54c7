"""The first finding names the line that a programmer would change."""

import linecache

import numpy as np
import pytest

from dpaudit import GaussianDP, Pair, PureDP
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


def as_it_is(*_):
    return lambda function: function


@as_it_is("a decorator")
def said_of_few(x, rng):
    return (x[-1] > 0.6) ^ (rng.random() < 0.1)  # here


def told_by_chance(x, rng):
    said = []
    for each in x[-2:]:
        if rng.random() < 0.75:  # here
            said.append(bool(each > 0.6))
        else:
            said.append(rng.random() < 0.5)
    return said


def drawn_once(x, rng):
    noise, point, path = rng.laplace(0, 9.0), 0.0, []
    for turn in range(3):
        point = abs(point + turn * x.sum() + noise)  # here
        path.append(point)
    return path


def one_seed(x, rng):
    seed = rng.integers(2**32)

    def own(value):
        return value + np.random.default_rng(seed).laplace(0, 4.0)  # here

    return np.array([own(x.sum()), own(len(x))])


def stops(x, rng):
    point, turns = 0.0, 0
    while np.mean((x - point) ** 2) > 0.2 and turns < 6:  # here
        point = point + 0.2 * (np.mean(x - point) + rng.normal(0, 2.0))
        turns += 1
    return point, turns


def by_its_batch(x, rng):
    point = np.zeros(2)
    for _ in range(4):
        batch = x[rng.random(len(x)) < 0.5]
        total = np.clip(point - batch, -1, 1).sum(axis=0) + rng.normal(0, 4.0, 2)
        point = point - 0.1 * total / max(1, len(batch))  # here
    return point


def noise_lost(x, rng):
    sums = [x[:2].sum(), x[2:].sum()]
    for each in sums:
        each = each + rng.laplace(0, 1.0)
    return sums  # here


WRONG = [
    *(divided, met, drawn_back, parts, slice_left_out, seeded, until_positive, cut),
    *(said_of_few, told_by_chance, drawn_once, one_seed, noise_lost),
    *(stops, by_its_batch, flipped_bit_by_bit),
]
ROWS = Pair([[0.5, 0.5], [-0.6, 0.8]], [[0.5, 0.5], [-0.6, 0.8], [0.6, 0.8]])
OTHERWISE = {
    stops: {"pair": Pair([0.25, 0.75, 0.5], [0.25, 0.75, 1.0])},
    by_its_batch: {"pair": ROWS, "sees": "transcript"},
}


@pytest.mark.parametrize("mechanism", WRONG)
def test_the_first_finding_is_at_the_line_at_fault(mechanism):
    settings = {"pair": PAIR, "claim": PureDP(1.0), "budget": 2}
    if mechanism in OTHERWISE:
        settings |= {"claim": GaussianDP(1.0), **OTHERWISE[mechanism]}
    result = replay(mechanism, **settings)
    assert str(result.verdict) != "NOT_REFUTED"
    where = result.findings[0].where
    file, _, line = where.rpartition(":")
    assert linecache.getline(file, int(line)).rstrip().endswith("# here"), str(result)


def test_words_are_true_of_what_they_say():
    def beside_its_noise(x, rng):
        return len(x), f"{len(x) + rng.laplace():.2f}"

    def seeds_without_draws(x, rng):
        np.random.default_rng(1)
        return len(x), rng.laplace()

    def draws_of_a_seed(x, rng):
        return len(x) + np.random.default_rng(1).laplace()

    def ratio_to_none(x, rng):
        more = len(x) - 2 + rng.laplace()
        return more / (x.sum() + rng.laplace(scale=9.0))

    def descends(x, rng):
        at = 0.0
        for _ in range(4):
            at = float(at - 0.1 * (np.clip(at - x, -1, 1).sum() + rng.normal(0, 2)))
        return at

    def said(mechanism, claim):
        pair = Pair([0.2, 0.7], [0.2, 0.7, 1.0])
        return str(replay(mechanism, pair=pair, claim=claim, budget=2))

    beside = said(beside_its_noise, PureDP(1.0))
    assert "and here it is without" in beside
    assert "not released" not in beside
    assert "a seed" not in said(seeds_without_draws, PureDP(1.0))
    assert "of a seed that is not drawn" in said(draws_of_a_seed, PureDP(1.0))
    assert "distance: the inputs lie 1 apart" in said(ratio_to_none, PureDP(0.5))
    assert "the unit of an epsilon; claimed is GaussianDP(mu=0.5)" in said(
        descends, GaussianDP(0.5)
    )
