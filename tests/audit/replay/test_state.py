"""Retries, and noise that is kept: no verdict beside what speaks against it.

The 2,000 replays: ``pytest tests/audit/replay/test_state.py -m hard`` (some minutes).
"""

import json
import math
import random
from functools import cache

import numpy as np
import pytest
from replay_cases import rows

from dpaudit import Pair, PureDP
from dpaudit.audit.replay import replay

PAIR = Pair(rows(0.2, 0.7), rows(0.2, 0.7, 1.0))
SYSTEM = np.random.default_rng()
IMPORTED = SYSTEM.laplace(size=9)
POOL = [random.gauss(0, 1) for _ in range(9)]
BATCH = SYSTEM.random(9) < 0.5


class Made:
    def __init__(self):
        self.noise = SYSTEM.laplace()

    def __call__(self, x, rng):
        return x.sum() + self.noise


@cache
def drawn_once(of):
    return float(np.random.default_rng().laplace())


def around():
    noise = SYSTEM.laplace()
    return lambda x, rng: x.sum() + noise


def caching(key, noisy, warm=False):
    """Return a mechanism that keeps noise by a key, which may be there already."""
    cache = {}

    def mechanism(x, rng):
        of = key(x)
        if of not in cache:
            cache[of] = noisy(rng.laplace())
        return x.sum() + cache[of]

    if warm:
        mechanism(PAIR.data, SYSTEM)
        mechanism(PAIR.neighbour, SYSTEM)
    return mechanism


def every_third():
    kept = []

    def mechanism(x, rng):
        kept.append(float(rng.laplace()) if len(kept) % 3 == 0 else kept[-1])
        return x.sum() + kept[-1]

    return mechanism


def shared_batch():
    kept = []

    def mechanism(x, rng):
        kept.append(rng.random(9) < 0.5 if not kept else kept[0])
        return x[kept[0][: len(x)]].sum() + rng.laplace(scale=0.2)

    return mechanism


def always(x):
    return 0


KEPT = {
    "imported": lambda: lambda x, rng: x.sum() + IMPORTED[0],
    "below noise": lambda: lambda x, rng: x.sum() + POOL[0] + rng.laplace(0, 0.1),
    "batch": lambda: lambda x, rng: x.sum() * BATCH.sum() + rng.laplace(scale=1e-3),
    "default": lambda: lambda x, rng, noise=SYSTEM.laplace(): x.sum() + noise,  # noqa: B008
    "around": around,
    "made": Made,
    "once": lambda: lambda x, rng: x.sum() + drawn_once(len(x)),
    "noise": lambda: caching(always, lambda noise: noise),
    "noise of data": lambda: caching(np.sum, lambda noise: noise),
    "number": lambda: caching(always, float),
    "number of data": lambda: caching(np.sum, float),
    "warm": lambda: caching(always, float, warm=True),
    "warm, of data": lambda: caching(np.sum, float, warm=True),
    "every third": every_third,
    "shared batch": shared_batch,
}


def until(x, rng, done, most=1000):
    """Return how often it was tried, and the noisy sum that is taken."""
    for turn in range(most):
        noisy = x.sum() + rng.laplace()
        if done(noisy, x):
            return turn, noisy
    return most, noisy


RETRIES = {
    "near": lambda x, rng: until(x, rng, lambda v, x: abs(v - x.sum()) < 3)[1],
    "positive": lambda x, rng: until(x, rng, lambda v, x: v > 0)[1],
    "tries": lambda x, rng: until(x, rng, lambda v, x: v > 1.5)[0],
    "a few": lambda x, rng: until(x, rng, lambda v, x: v < 2, most=4)[1],
    "small": lambda x, rng: until(x, rng, lambda v, x: abs(v - x.sum()) < 3)[0],
}
CASES = {**KEPT, **{name: lambda of=of: of for name, of in RETRIES.items()}}


def check(name, sees, seed, epsilon=1.0):
    claim = PureDP(epsilon)
    result = replay(
        CASES[name](), pair=PAIR, claim=claim, sees=sees, seed=seed, max_samples=20
    )
    told = json.dumps(result.to_dict())
    if result.verdict == "NOT_REFUTED":
        assert not result.loss > epsilon + 1e-8, (name, seed, str(result))
    if name in KEPT:
        assert result.verdict != "REFUTED", (name, seed, str(result))
    if result.refuted:
        assert "drawn before" not in told, str(result)
        assert "earlier execution" not in told, str(result)
    return result


@pytest.mark.parametrize("sees", ["release", "transcript"])
@pytest.mark.parametrize("name", CASES)
def test_no_verdict_stands_beside_what_speaks_against_it(name, sees):
    for seed in (6, 16) if name in RETRIES else (0,):
        result = check(name, sees, seed)
    if name in KEPT:
        assert result.verdict == "NOT_FOLLOWED", str(result)


@pytest.mark.hard
@pytest.mark.parametrize("sees", ["release", "transcript"])
@pytest.mark.parametrize("name", CASES)
def test_it_does_of_2000_replays(name, sees):
    for seed in range(25):
        for epsilon in (0.5, 1.0):
            check(name, sees, seed, epsilon)


def test_what_was_explored_is_said():
    result = replay(RETRIES["near"], pair=PAIR, claim=PureDP(1.0))
    seen = result.to_dict()["explored"]
    assert (seen["executions"], seen["branches"]) == (3, 1)
    assert seen["unseen"] == pytest.approx(1 - (1 - 0.999) ** (1 / 3))
    assert "no execution took has, with confidence 0.999, probability at most 0.9" in (
        str(result)
    )
    # Were a branch of that probability missed, so it would be as often as 1 in 1000.
    assert (1 - seen["unseen"]) ** 3 == pytest.approx(1e-3)
    assert replay(KEPT["below noise"](), pair=PAIR, claim=PureDP(99.0)).explored is None


def test_a_proof_says_what_it_rests_on_and_how_often_it_was_looked_at():
    def half(x, rng):
        return x.sum() + rng.laplace(scale=0.5)

    result = replay(half, pair=PAIR, claim=PureDP(1.0))
    assert (str(result.verdict), result.proof) == ("REFUTED", True)
    words = f"there is no randomness that is not seen (executed again {result.repeats} "
    assert f"REFUTED by proof, if {words}times) (2 executions" in str(result)
    assert result.repeats == 13
    for told in (result.to_dict(), result.witness.to_dict()):
        assert told["assumes"].startswith(words)
        assert (told["proof"], told["repeats"]) == (True, 13)
    options = {"pair": PAIR, "claim": PureDP(1.0), "max_samples": 2}
    late = replay(half, max_seconds=1e-9, **options)
    assert (late.proof, late.verdict) == (False, "NOT_FOLLOWED")
    assert "the time was over" in late.findings[-1].message
    bare = replay(lambda x, rng: len(x), **options)
    assert (bare.proof, bare.assumes) == (True, "")
    assert math.isinf(bare.loss) or math.isnan(bare.loss)
