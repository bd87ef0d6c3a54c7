"""Noise of two scales, or of two kinds, on the sides: suprema against closed forms."""

import math
import time

import numpy as np
import pytest
from replay_cases import rows
from scipy.linalg import eigh

from dpaudit import Pair, PureDP
from dpaudit.audit.replay import replay
from dpaudit.audit.replay.laws.apart import suprema_of
from dpaudit.audit.replay.laws.by_name import Density, GammaDifference
from dpaudit.audit.replay.laws.coded import Family, Lattice, code_of
from dpaudit.audit.replay.laws.cuts import Cut, WidenedLattice

PAIR = Pair(rows(1, 0), rows(1, 0, 1))
LAPLACE, GAUSSIAN, LOGISTIC = Family.LAPLACE, Family.GAUSSIAN, Family.LOGISTIC
CAUCHY, STUDENT, OTHER = (code_of(Density("t", (df,))) for df in (1.0, 3.0, 4.0))
SQUARES = code_of(Density("gamma", (2.0,)))
STAIRS = [
    code_of(WidenedLattice(Lattice(0, (math.log(1 - p),), above=-math.log(p)), width))
    for p, width in ((0.5, 0.5), (0.5, 0.25), (0.6, 0.5))
]


def cauchys(m, s, m2, s2):
    """The density ratio is one of two quadratic forms in (x, 1)."""
    forms = [
        np.array([[1.0, -a], [-a, a * a + b * b]]) / b for a, b in ((m, s), (m2, s2))
    ]
    values = eigh(forms[1], forms[0], eigvals_only=True)
    return math.log(values[-1]), -math.log(values[0])


def truncated(s, s2, end):
    """Laplace noise on [0, end]: the log-ratio is linear, and most is at an end."""
    mass = [math.log(b * -math.expm1(-end / b)) for b in (s, s2)]
    at = [x * (1 / s2 - 1 / s) + mass[1] - mass[0] for x in (0.0, end)]
    return max(0, *at), max(0, *(-each for each in at))


def cut(scale, end=10.0):
    return code_of(Cut(int(LAPLACE), ((0.0, end / scale),)))


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ((CAUCHY, 0.0, 10.0), (CAUCHY, 0.0, 11.0), cauchys(0, 10, 0, 11)),
        ((CAUCHY, 1.0, 3.0), (CAUCHY, -2.0, -5.0), cauchys(1, 3, -2, 5)),
        ((STUDENT, 0.0, 2.0), (STUDENT, 0.0, 3.0), (math.log(1.5), 3 * math.log(1.5))),
        ((STUDENT, 0.0, 1.0), (OTHER, 0.0, 1.0), (math.inf, None)),
        ((LAPLACE, 0.0, 1.0), (LOGISTIC, 0.0, 1.0), (math.log(2), math.log(2))),
        ((LAPLACE, 0.0, 1.0), (CAUCHY, 0.0, 1.0), (None, math.inf)),
        ((SQUARES, 0.0, 1.0), (SQUARES, 0.0, 2.0), (math.log(4), math.inf)),
        ((SQUARES, 0.0, 1.0), (SQUARES, 1.0, 2.0), (math.inf, math.inf)),
        ((cut(10.0), 0.0, 10.0), (cut(11.0), 0.0, 11.0), truncated(10, 11, 10)),
        ((cut(10.0), 0.0, 10.0), (cut(10.0, 9.0), 0.0, 11.0), (math.inf, None)),
        ((STAIRS[0], 0.0, 1.0), (STAIRS[1], 0.0, 1.0), None),
        ((STAIRS[0], 0.0, 1.0), (STAIRS[2], 0.0, 1.1), (math.inf, math.inf)),
        ((CAUCHY, 0.0, 1.0), (Family.UNIFORM, 0.0, 1.0), None),
    ],
)
def test_suprema_are_those_of_closed_forms(one, two, expected):
    found = suprema_of(one, two, math.nan)
    if expected is None:
        assert np.isnan(found).all()
        return
    for each, other in zip(found, expected, strict=True):
        assert other is None or each == pytest.approx(other, rel=1e-5)
        assert other is None or each <= other * (1 + 1e-12)


def test_what_falls_more_slowly_is_any_number_of_times_as_probable_far_out():
    one, two = map(Lattice.geometric, (0.4, 0.5))
    assert one.suprema(0.0, two) == pytest.approx((math.inf, math.log(1.25)))


def test_a_difference_of_gammas_of_one_shape_is_laplace():
    made = (code_of(GammaDifference(1.0, 1.0)), 0.0, 1.0)
    found = suprema_of(made, (int(LAPLACE), 0.0, 1.0), math.nan)
    assert found == pytest.approx((0, 0), abs=1e-6)


@pytest.mark.parametrize(
    ("draw", "most"),
    [
        (lambda rng: rng.standard_cauchy(), math.log(1.1)),
        (lambda rng: rng.standard_t(3, 2), 6 * math.log(1.1)),
        (lambda rng: math.tan(math.pi * (rng.random() - 0.5)), math.log(1.1)),
    ],
)
def test_smooth_sensitivity_keeps_its_claim_and_no_less(draw, most):
    def noisy(x, rng):
        return np.asarray((8 + len(x)) * draw(rng))

    for epsilon, verdict in ((1.01 * most, "NOT_REFUTED"), (0.95 * most, "REFUTED")):
        result = replay(noisy, pair=PAIR, claim=PureDP(epsilon))
        assert (result.verdict, result.proof) == (verdict, verdict == "REFUTED")
        assert result.loss == pytest.approx(most, rel=1e-5)


def test_tails_that_fall_at_two_rates_leave_no_bound():
    for draw in (lambda r: r.laplace(), lambda r: r.normal(), lambda r: r.gumbel()):
        result = replay(
            lambda x, rng, draw=draw: (8 + len(x)) * draw(rng),
            pair=PAIR,
            claim=PureDP(9.0),
        )
        assert (result.proof, result.loss) == (True, math.inf)


@pytest.mark.parametrize("unit", [1.0, 1e9])
def test_a_clock_is_no_number_of_the_data(monkeypatch, unit):
    """It moves by less than any rounding of its size between two executions."""
    now = iter(1.8e9 + 1e-2 * np.arange(10**6))
    monkeypatch.setattr(time, "time", lambda: next(now))

    def stamped(x, rng):
        return {"at": unit * time.time(), "count": len(x) + rng.laplace()}

    assert replay(stamped, pair=PAIR, claim=PureDP(1.3)).verdict != "REFUTED"

    def leaking(x, rng):
        return {"at": 1.8e9 + 1e-2 * len(x), "count": len(x) + rng.laplace()}

    assert replay(leaking, pair=PAIR, claim=PureDP(1.3)).proof
