"""Lengths and thresholds: integrals by mpmath, and what they promise by simulation."""

import mpmath
import numpy as np
import pytest
from refusals import refused
from scipy import stats

from dpaudit.fingerprinting import (
    CodeLength,
    TardosCode,
    false_accusation_bound,
    lengths,
    missing_bound,
)


def mean_over_biases(function, cutoff):
    least = mpmath.asin(mpmath.sqrt(cutoff))
    width = mpmath.pi / 2 - 2 * least
    ends = mpmath.linspace(least, mpmath.pi / 2 - least, 9)
    return mpmath.quad(lambda r: function(mpmath.sin(r) ** 2), ends) / width


@pytest.mark.parametrize(("cutoff", "place"), [(1e-4, 20), (0.02, 100), (0.02, 130)])
def test_innocent_moments_against_mpmath(cutoff, place):
    exponents, logs = lengths._innocent(cutoff)
    e = mpmath.mpf(float(exponents[place]))

    def moment(p):
        p = min(p, 1 - p)
        return p * mpmath.exp(e * mpmath.sqrt((1 - p) / p)) + (1 - p) * mpmath.exp(
            -e * mpmath.sqrt(p / (1 - p))
        )

    expected = float(mpmath.log(mean_over_biases(moment, cutoff)))
    assert logs[place] == pytest.approx(expected, rel=1e-5, abs=1e-13)


@pytest.mark.parametrize(("coalition", "place"), [(1, 10), (2, 40), (5, 60)])
def test_guilty_moments_against_mpmath(coalition, place):
    cutoff = 0.003
    exponents, logs = lengths._guilty(cutoff, coalition)
    e = mpmath.mpf(float(exponents[place]))
    total = mpmath.mpf(0)
    for ones in range(coalition + 1):
        allowed = {0: (-1,), coalition: (1,)}.get(ones, (-1, 1))

        def term(p, y, ones=ones):
            w = (ones - coalition * p) / mpmath.sqrt(p * (1 - p))
            chance = mpmath.binomial(coalition, ones) * p**ones
            return chance * (1 - p) ** (coalition - ones) * mpmath.exp(-e * y * w)

        total += max(
            mean_over_biases(lambda p, y=y: term(p, y), cutoff) for y in allowed
        )
    assert logs[place] == pytest.approx(float(mpmath.log(total)), rel=1e-6, abs=1e-12)


def test_the_missing_bound_is_the_formula_of_the_worst_coalition():
    cutoff, length, threshold = 0.01, 900, 100.0
    worst = 0.0
    for c in (1, 2, 3, 4):
        a, logs = lengths._guilty(cutoff, c)
        worst = max(worst, np.exp(np.min(a * c * threshold + length * logs)))
    where = {"length": length, "threshold": threshold, "cutoff": cutoff}
    bound = missing_bound(**where, coalition=4)
    assert bound == pytest.approx(worst)
    assert 1e-12 < bound < 1


def test_a_pirate_who_knows_the_biases_does_not_frame_more():
    # Writes the rarer symbol. Exact tail by simulation: a binomial test at 1e-9.
    cutoff, length, threshold = 0.02, 60, 20.0
    bound = false_accusation_bound(length=length, threshold=threshold, cutoff=cutoff)
    rng = np.random.default_rng(0)
    accused = trials = 0
    for _ in range(100):
        code = TardosCode.generate(1000, length, cutoff=cutoff, rng=rng)
        accused += (code.scores(-np.sign(code.biases)) >= threshold).sum()
        trials += 1000
    assert accused <= stats.binom.isf(1e-9, trials, bound)
    assert accused > trials * bound / 30  # within what Chernoff's method gives away


@pytest.mark.parametrize("coalition", [1, 3])
def test_calibrated_lengths_meet_both_bounds(coalition):
    made = CodeLength.calibrated(coalition, false_accusation=1e-3, missing=0.05)
    where = {"length": made.length, "threshold": made.threshold, "cutoff": made.cutoff}
    assert false_accusation_bound(**where) <= 1e-3
    assert missing_bound(**where, coalition=coalition) <= 0.05
    shorter = {**where, "length": int(made.length * 0.7)}
    shorter["threshold"] *= 0.7
    assert false_accusation_bound(**shorter) > 1e-3


@pytest.mark.parametrize("coalition", [1, 4])
@pytest.mark.parametrize("eps1", [1e-2, 1e-6])
def test_published_lengths_hold_for_the_symmetric_score(coalition, eps1):
    made = CodeLength.as_published(coalition, false_accusation=eps1)
    k = np.ceil(np.log(1 / eps1))
    assert made.length == 100 * coalition**2 * k
    assert (made.threshold, 1 / made.cutoff) == pytest.approx(
        (20 * coalition * k, 300 * coalition)
    )
    where = {"length": made.length, "threshold": made.threshold, "cutoff": made.cutoff}
    assert false_accusation_bound(**where) <= eps1
    assert missing_bound(**where, coalition=coalition) <= made.missing


BUDGET = {"coalition": 2, "false_accusation": 0.1, "missing": 0.1}
WHERE = {"length": 5, "threshold": 1.0, "cutoff": 0.1}


test_bad_input = refused(
    (CodeLength.calibrated, {**BUDGET, "coalition": 0}, "coalition must be"),
    (CodeLength.calibrated, {**BUDGET, "coalition": 257}, ">= 1 and <= 256"),
    (CodeLength.calibrated, {**BUDGET, "false_accusation": 0.0}, "false_accusatio"),
    (CodeLength.calibrated, {**BUDGET, "missing": 1.0}, "missing must be in"),
    (CodeLength.as_published, {"coalition": 0, "false_accusation": 0.1}, "coalit"),
    (CodeLength, {**BUDGET, **WHERE, "length": 0}, "length must"),
    (CodeLength, {**BUDGET, **WHERE, "threshold": 0.0}, "threshold must"),
    (false_accusation_bound, {**WHERE, "threshold": -1.0}, "threshold must be"),
    (missing_bound, {**WHERE, "cutoff": 0.6, "coalition": 2}, "cutoff must be in"),
    by=lambda call, options: call(**options),
)
