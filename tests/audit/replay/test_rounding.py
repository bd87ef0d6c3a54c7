"""Numbers between which large ones cancel: what rounding leaves of them is nothing."""

import numpy as np
import pytest
from replay_cases import rows

from dpaudit import Pair, PureDP
from dpaudit.audit.replay import replay

PAIR = Pair(rows(0.2, 0.7), rows(0.2, 0.7, 1.0))


def with_its_width(x, rng, origin=1.0e7 + 0.1):
    noisy = origin + x.sum() + rng.laplace()
    low, high = noisy - 2.1, noisy + 2.1
    return low, high, high - low


def multiples(x, rng):
    noisy = x.sum() + rng.laplace()
    return noisy, 3 * noisy - noisy - noisy - noisy


def remainder(x, rng):
    noisy = np.array([x.sum(), 0.3, 0.1]) + rng.laplace(size=3)
    return noisy, (noisy - noisy.mean()).sum()


def one_draw_at_two_places(x, rng):
    noise = rng.laplace()
    time, near = 1.3e6 + x.sum() + noise, x.sum() + noise
    return near, round(float(time), 3), time - 1.3e6


def seconds_and_thirds(x, rng, origin=1.3e6):
    time = origin + x.sum() + rng.laplace()
    return time - origin, 3 * time - 3 * origin


RIGHT = {
    **{"multiples": multiples, "remainder": remainder},
    "by a matrix": lambda x, rng: (
        np.array([[0.1, 0.0], [0.3, -0.3]])
        @ (np.array([1e7 + x.sum(), 1e7 + 0.3]) + rng.laplace(size=2) * [1, 0])
    ),
    "after the origin": lambda x, rng: 1.1e8 + x.sum() + rng.laplace() - 1.1e8,
    "looked at": lambda x, rng: [
        round(float(1.7e9 + 0.4 * x.sum() + rng.laplace(scale=1.2)), 3) for _ in "abc"
    ],
    **{"two places": one_draw_at_two_places, "thirds": seconds_and_thirds},
    "width": with_its_width,
}


@pytest.mark.parametrize("sees", ["release", "transcript"])
@pytest.mark.parametrize("name", RIGHT)
def test_what_cancels_refutes_nothing(name, sees):
    options = {"claim": PureDP(1.0), "sees": sees, "budget": 2}
    for start in (0.2, 0.21, 0.6):
        pair = Pair(rows(start, 0.7), rows(start, 0.7, 1.0))
        result = replay(RIGHT[name], pair=pair, **options)
        assert str(result.verdict) == "NOT_REFUTED", str(result)


@pytest.mark.parametrize("mechanism", [seconds_and_thirds, with_its_width])
def test_what_is_larger_than_that_does(mechanism):
    result = replay(mechanism, pair=PAIR, claim=PureDP(0.99), budget=2)
    assert (str(result.verdict), result.proof) == ("REFUTED", True)
    assert result.loss == pytest.approx(1.0, abs=1e-4)


def single(x):
    return x.astype(np.float32).sum()


SINGLE = {
    "sum": lambda x, rng: single(x) + rng.laplace(),
    "difference": lambda x, rng: rng.laplace() - single(x),
    "in place": lambda x, rng: np.float32(7) + (single(x) + rng.laplace()),
    "a ufunc": lambda x, rng: np.add(single(x), rng.laplace()),
    "an array": lambda x, rng: np.array([single(x)]) + rng.laplace(),
    "half": lambda x, rng: np.float16(len(x)) + rng.laplace(scale=0.5),
    "cast": lambda x, rng: (
        (np.array([single(x)]) + 9 + rng.laplace(size=1).astype(np.float32)).sum()
        * np.float32(3)
    ),
}


@pytest.mark.parametrize("name", SINGLE)
def test_single_precision_is_followed(name):
    pair = Pair(rows(0.3, 0.7), rows(0.3, 0.7, 1.0))
    options = {"pair": pair, "claim": PureDP(0.6), "budget": 2}
    result = replay(SINGLE[name], **options)
    assert (str(result.verdict), result.proof) == ("REFUTED", True), str(result)
    right = replay(SINGLE[name], **options | {"claim": PureDP(2.0)})
    assert str(right.verdict) == "NOT_REFUTED"
    assert len(right.findings) == 0


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
