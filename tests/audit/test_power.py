"""The detectable violation, against audits of a mechanism that violates just so."""

import math

import numpy as np
import pytest

from dpaudit import Pair, PureDP
from dpaudit.audit import audit
from dpaudit.audit.families import families_for
from dpaudit.audit.power import detectable_epsilon, refutation_power, shown_epsilon

CLAIM = next(iter(families_for(PureDP(1.0), 0.0, 1.0).values())).claim_only()
SIZES = [10, *[max(4, int(10 * 0.15 * 1.15**i)) for i in range(40)]]


def test_power_of_true_claims_is_at_most_alpha():
    """Null: the event lies on the border; 4000 runs at 0.05, off with prob. < 1e-9."""
    rng = np.random.default_rng(0)
    q = 1 / (1 + math.e)
    power = refutation_power(CLAIM, 1 - q, q, SIZES, 0.05, rng=rng, runs=4000)
    assert power <= 0.05 + 6 * math.sqrt(0.05 * 0.95 / 4000)


def test_power_grows_with_the_violation():
    powers = [
        refutation_power(CLAIM, p, 0.2, SIZES, 1e-3, rng=np.random.default_rng(1))
        for p in (0.55, 0.65, 0.75, 0.9)
    ]
    assert powers == sorted(powers)
    assert powers[0] < 0.1
    assert powers[-1] > 0.99


def test_detectable_epsilon_is_what_audits_detect():
    """Audits of randomised response at the detectable epsilon refute nine in ten.

    The bound is off by chance with probability below 1e-4 (25 audits at 0.9).
    """
    epsilon = detectable_epsilon(CLAIM, np.array([0.25]), SIZES, 1e-3, 0.0, seed=0)
    q = 0.25
    p = q * math.exp(epsilon)
    pair = Pair([0.0], [0.0, 1.0])

    def respond(data, rng):
        return float(rng.random() < (p if len(data) == 1 else q))

    refuted = [
        audit(
            respond,
            pair=pair,
            claim=PureDP(1.0),
            max_samples=sum(SIZES),
            seed=seed,
        ).refuted
        for seed in range(25)
    ]
    assert np.mean(refuted) >= 0.6


def test_more_releases_detect_less():
    q = np.array([0.1, 0.25])
    short = detectable_epsilon(CLAIM, q, SIZES[:15], 1e-3, 0.0, seed=0)
    long = detectable_epsilon(CLAIM, q, SIZES, 1e-3, 0.0, seed=0)
    assert 1.0 < long < short


def test_nothing_is_detectable_in_a_handful_of_releases():
    assert detectable_epsilon(CLAIM, np.array([0.3]), [2, 2], 1e-3, 0, seed=0) is None
    assert detectable_epsilon(CLAIM, np.empty(0), SIZES, 1e-3, 0, seed=0) is None


@pytest.mark.parametrize(
    ("p", "q", "delta", "epsilon"),
    [
        (0.5, 0.1, 0.0, math.log(5)),
        (0.9, 0.5, 0.0, math.log(5)),
        (0.5, 0.1, 0.1, math.log(4)),
        (1.0, 0.5, 0.0, math.inf),
        (0.2, 0.2, 0.1, 0.0),
    ],
)
def test_shown_epsilon(p, q, delta, epsilon):
    assert shown_epsilon(p, q, delta) == pytest.approx(epsilon)
