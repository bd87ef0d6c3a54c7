"""Numbers between which large ones cancel: what rounding leaves of them is nothing."""

import numpy as np
import pytest
from replay_cases import rows

from dpaudit import Pair, PureDP
from dpaudit.audit.replay import replay

PAIR = Pair(rows(0.2, 0.7), rows(0.2, 0.7, 1.0))


def multiples(x, rng):
    noisy = x.sum() + rng.laplace()
    return noisy, 3 * noisy - noisy - noisy - noisy


def remainder(x, rng):
    noisy = np.array([x.sum(), 0.3, 0.1]) + rng.laplace(size=3)
    return noisy, (noisy - noisy.mean()).sum()


def seconds_and_thirds(x, rng, origin=1.3e6):
    time = origin + x.sum() + rng.laplace()
    return time - origin, 3 * time - 3 * origin


def after_the_origin(x, rng, origin=1.1e8):
    return origin + x.sum() + rng.laplace() - origin


def with_its_width(x, rng, origin=1.0e7 + 0.1):
    noisy = origin + x.sum() + rng.laplace()
    low, high = noisy - 2.1, noisy + 2.1
    return low, high, high - low


def by_a_matrix(x, rng):
    noisy = np.array([1e7 + x.sum(), 1e7 + 0.3]) + rng.laplace(size=2) * [1, 0]
    return np.array([[0.1, 0.0], [0.3, -0.3]]) @ noisy


def one_draw_at_two_places(x, rng):
    noise = rng.laplace()
    time, near = 1.3e6 + x.sum() + noise, x.sum() + noise
    return near, round(float(time), 3), time - 1.3e6


def looked_at(x, rng, origin=1.7e9):
    total = origin + 0.4 * x.sum()
    return [round(float(total + rng.laplace(scale=1.2)), 3) for _ in "abc"]


RIGHT = [
    *(multiples, remainder, seconds_and_thirds, after_the_origin, with_its_width),
    *(by_a_matrix, one_draw_at_two_places, looked_at),
]


@pytest.mark.parametrize("sees", ["release", "transcript"])
@pytest.mark.parametrize("mechanism", RIGHT, ids=lambda each: each.__name__)
def test_what_cancels_refutes_nothing(mechanism, sees):
    options = {"claim": PureDP(1.0), "sees": sees, "max_samples": 2}
    for start in (0.2, 0.21, 0.6):
        pair = Pair(rows(start, 0.7), rows(start, 0.7, 1.0))
        result = replay(mechanism, pair=pair, **options)
        assert str(result.verdict) == "NOT_REFUTED", str(result)


@pytest.mark.parametrize("mechanism", [seconds_and_thirds, with_its_width])
def test_what_is_larger_than_that_does(mechanism):
    result = replay(mechanism, pair=PAIR, claim=PureDP(0.99), max_samples=2)
    assert (str(result.verdict), result.proof) == ("REFUTED", True)
    assert result.loss == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(
    "left",
    [
        lambda x, noisy: x.sum() * 1e-9,  # which never had noise
        lambda x, noisy: (noisy + 1e-3 * len(x)) - noisy,
    ],
)
def test_a_number_without_noise_is_found_among_such(left):
    def beside(x, rng):
        noisy = 1e6 + x.sum() + rng.laplace()
        return noisy - 1e6, left(x, noisy)

    result = replay(beside, pair=PAIR, claim=PureDP(1.0))
    assert (str(result.verdict), result.findings[0].kind) == ("REFUTED", "release")
