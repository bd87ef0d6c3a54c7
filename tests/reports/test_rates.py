import itertools
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from math import inf, nan

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from results_of import results_of, verdicts
from scipy import stats
from scipy.special import digamma
from streaming_tables import NOISES, ROWS, floor, table
from streaming_tables import streaming_tables as tables
from tiny_profile import tiny_plan

from dpaudit.algorithms import DPPCA, MinibatchOja
from dpaudit.datasets.streaming_models import signal_constants
from dpaudit.reports.experiment import run
from dpaudit.reports.power_law import fit_power_law
from dpaudit.reports.sections.streaming import measures as rates
from dpaudit.reports.sections.streaming import section as findings
from dpaudit.reports.sections.streaming.measures import DP_PCA, MINIBATCH_OJA
from dpaudit.reports.sections.streaming.section import (
    error_by_size,
    error_by_spread,
    miss_notes,
    rate_rows,
    signal_notes,
    size_notes,
)
from dpaudit.reports.sections.streaming.section import rates as rates_of

NAMES = ("streaming-rates", "streaming-dimensions", "signal-in-noise")


def experiment(name, seed=0, **changes):
    return tiny_plan(seed, **changes)[name]


def test_power_laws_are_found_within_their_intervals():
    law = fit_power_law({x: [3 * x**-0.5] * 2 for x in (1.0, 5.0, 40.0)})
    assert (law.exponent, law.factor) == pytest.approx((-0.5, 3))
    assert (law.low, law.high) == pytest.approx((-0.5, -0.5), abs=1e-12)
    assert law.at(7.0) == pytest.approx(3 * 7**-0.5)
    # Null hypothesis: 95 % of intervals do, spreads being unequal; of 600 such tables
    # one that is right fails with probability 1e-6.
    spreads = {1.0: 0.2, 2.0: 0.1, 4.0: 0.3, 8.0: 0.1}
    held = 0
    for each in np.random.default_rng(1).standard_normal((600, 4, 20)):
        errors = zip(spreads.items(), each, strict=True)
        law = fit_power_law({x: x**-0.7 * np.exp(s * z) for (x, s), z in errors})
        held += law.low <= -0.7 <= law.high
    assert stats.binomtest(held, 600, 0.95).pvalue > 1e-6


def test_the_slope_is_that_of_a_regression_and_its_interval_too():
    # With two points of as many values Welch's interval is the classical one, but for
    # its degrees of freedom.
    rng = np.random.default_rng(0)
    errors = {x: np.exp(rng.standard_normal(9)) for x in (1.0, np.e)}
    law = fit_power_law(errors)
    one, two = (np.log(values) for values in errors.values())
    welch = stats.ttest_ind(two, one, equal_var=False).confidence_interval(0.95)
    assert law.exponent == pytest.approx(two.mean() - one.mean())
    assert (law.low, law.high) == pytest.approx((welch.low, welch.high))
    unequal = {1.0: np.exp(one[:4]), 2.0: np.exp(two), 9.0: np.exp(one[3:])}
    x = np.concatenate([[np.log(k)] * len(v) for k, v in unequal.items()])
    y = np.log(np.concatenate(list(unequal.values())))
    line = stats.linregress(x, y)
    law = fit_power_law(unequal)
    assert law.exponent == pytest.approx(line.slope)
    assert np.log(law.factor) == pytest.approx(line.intercept)


@pytest.mark.parametrize(
    "errors", [{}, {1.0: [1.0, 2.0]}, {1.0: [1.0, 2.0], 2.0: [nan, 1.0, 0.0, inf]}]
)
def test_too_little_gives_no_exponent(errors):
    law = fit_power_law(errors)
    assert np.isnan([law.exponent, law.low, law.high, law.factor]).all()


def test_the_error_of_noise_is_that_of_the_noise():
    """As measured, against the spread of 300 releases on the same rows.

    The spread is a mean of sums of 19 squares or so, with a relative deviation of
    sqrt(2/19)/sqrt(300) = 2 %, and 60 squared errors of noise have one of 4 %: 30 % is
    more than 6 of both together. Without the 1/sqrt(2) the ratio would be 2.
    """
    n, d = 6_000, 20
    measured = replace(
        experiment("signal-in-noise"),
        mechanisms=(MINIBATCH_OJA,),
        grid={"noise": (0.05,)},
        options={"epsilon": 20.0, "delta": 1e-6, "d": d, "n": n},
        repetitions=60,
    )
    squares = run(measured)["noise_error"] ** 2
    rng = np.random.default_rng(2)
    data = rates.streaming_models.signal_in_noise(n, d, noise=0.05, rng=rng)
    mechanism = rates._mechanism(MINIBATCH_OJA, n, 20.0, 1e-6)
    releases = mechanism.draw(data.rows, 300, rng=rng)
    releases *= np.sign(releases @ data.subspace)
    variance = releases.var(axis=0, ddof=1).sum()
    assert squares.mean() == pytest.approx(variance, rel=0.3)


def test_the_formula_is_the_size_of_the_noise():
    """Its geometric mean, against that of 20 data sets.

    Logs deviate by 0.4 (d - 1 = 4), so their mean by 0.09: 0.6 is more than 6
    deviations. The private scale is off by up to 2, which is sqrt 2 in the noise.
    """
    signal = replace(
        experiment("signal-in-noise"),
        mechanisms=(DP_PCA,),
        grid={"noise": (0.01,)},
        options={"epsilon": 5.0, "delta": 1e-6, "d": 5, "n": 40_000},
        repetitions=20,
    )
    found = run(signal)
    assert not found.isna().any(axis=None)
    off = np.log(found["noise_error"] / found["formula"]).mean()
    assert abs(off) < 0.6 + np.log(2) / 2


def test_the_formula_has_the_length_of_noise_and_fails_as_often_as_the_mechanism():
    """Logs of 40,000 lengths in 4 directions: their mean deviates by 0.002."""
    oja = rates._mechanism(MINIBATCH_OJA, 80_000, 1.0, 1e-6)
    constants = signal_constants(0.01, 5)
    found = rates._noise_by_formula(oja, 80_000, 5, constants)
    noise = oja.sigma / 10_000 * np.random.default_rng(0).standard_normal((40_000, 4))
    lengths = np.linalg.norm(noise, axis=1) / constants.first
    assert np.log(found) == pytest.approx(np.log(lengths).mean(), abs=0.0125)
    # As for the formula of minibatch-oja, for the noise of a mean of gradients.
    mechanism = rates._mechanism(DP_PCA, 80_000, 1.0, 1e-6)
    constants = signal_constants(0.01, 5)
    found = rates._noise_by_formula(mechanism, 80_000, 5, constants)
    chance = mechanism.scale_finder.zeta / 16  # of eight scales and eight means
    scale = (constants.gamma * constants.first) ** 2
    deviation = mechanism.mean.deviation(scale, 5_000, 5, chance)
    length = np.sqrt(2) * np.exp(digamma(2) / 2)  # of four normal numbers, typically
    assert found == pytest.approx(float(deviation) * length / constants.first)


def test_what_is_measured_is_what_is_said_and_what_misses_is_explained():
    assert isinstance(rates._mechanism(DP_PCA, 80_000, 1.0, 1e-6), DPPCA)
    oja = rates._mechanism(MINIBATCH_OJA, 80_000, 1.0, 1e-6)
    assert isinstance(oja, MinibatchOja)
    assert oja.iterations == rates.BATCHES
    for n in (80_000, 160_000):
        mechanism = rates._mechanism(DP_PCA, n, 1.0, 1e-6)
        assert mechanism.batches(n) == (n // rates.BATCHES, rates.BATCHES)
    # The groups of the scale are as many without noise.
    quiet = rates._mechanism(DP_PCA, 80_000, 1000.0, 1e-6)
    assert quiet.scale_finder.groups() == mechanism.scale_finder.groups()
    refuses("'oja'", rates._mechanism, "oja", 80_000, 1.0, 1e-6)
    found = rates_of(tables(noise=-0.8, signal=0.5))
    assert not found["noise"].met
    assert not found["signal"].met
    notes = miss_notes(found)
    assert notes[0].startswith(
        "‘Noise for privacy, in n’ misses its target: the interval does not contain "
        "−1. It contains −0.80, which the formula"
    )
    assert "the interval reaches below 0.8" in notes[1]
    wrong = {**found, "noise": replace(found["noise"], formula=-1.0)}
    assert "and not −1.00 either" in miss_notes(wrong)[0]


def test_theory_meets_the_targets():
    found = rates_of(tables())
    assert list(found) == ["sampling", "noise", "dimension", "signal", "floor"]
    assert all(rate.met for rate in found.values())
    assert miss_notes(found) == []
    rows = rate_rows(found)
    assert [row.target for row in rows] == ["−0.5", "−1", "1", "at least 0.8", "0"]
    assert rows[0].formula == "–"
    assert rows[1].exponent.startswith(("−1.0", "−0.9"))
    assert "larger part at ε = 1 from about n = 5,000,000 on" in size_notes(found)[-1]
    assert signal_notes(found)[-1] == "dp-pca has less error for σ ≤ 0.003."
    printed = findings.exponent_lines(*[tables()[name] for name in findings.TABLES])
    for row, line in zip(rows, printed[1 : 1 + len(rows)], strict=True):
        assert line.startswith(row.name)
        assert f" {row.exponent} " in line
        assert " met " in line


def test_every_rate_has_its_own_rows_and_columns():
    """Each column is a power of its own, and the parts are those of the last point."""
    exponents = itertools.count(1)
    laws = {}

    def columns(mechanism, against, points, **same):
        names = ("error", "noise_error", "formula")
        powers = {name: -next(exponents) / 8 for name in names}
        laws[mechanism, against, same.get("epsilon")] = powers
        return pd.DataFrame(
            {"mechanism": mechanism, against: x, **same}
            | {name: x**power for name, power in powers.items()}
            for x in reversed(points)  # the last is the largest, wherever it stands
            for _ in range(2)
        )

    noises = (findings._FLAT / 2, findings._FLAT, 0.3)
    found = rates_of(
        {
            "streaming-rates": pd.concat(
                columns(DP_PCA, "n", ROWS, epsilon=each) for each in (1.0, 30.0, 1000.0)
            ),
            "streaming-dimensions": columns(DP_PCA, "d", (5.0, 40.0)),
            "signal-in-noise": pd.concat(
                columns(name, "noise", noises) for name in (DP_PCA, MINIBATCH_OJA)
            ),
        }
    )
    for key, who, column, last in (
        ("sampling", (DP_PCA, "n", 1000.0), "error", ROWS[-1]),
        ("noise", (DP_PCA, "n", 1.0), "noise_error", ROWS[-1]),
        ("dimension", (DP_PCA, "d", None), "noise_error", 40.0),
        ("signal", (DP_PCA, "noise", None), "error", 0.3),
        ("floor", (MINIBATCH_OJA, "noise", None), "error", 0.3),
    ):
        rate, powers = found[key], laws[who]
        assert rate.mechanism == who[0]
        assert rate.fit.exponent == pytest.approx(powers[column])
        measured = [last ** powers[name] for name in ("error", "noise_error")]
        assert rate.parts == pytest.approx(measured)
        if key == "sampling":
            assert np.isnan(rate.formula)
        else:
            assert rate.formula == pytest.approx(powers["formula"])
        for x, values in rate.errors.items():
            np.testing.assert_allclose(values, [x ** powers[column]] * 2)


def test_parts_are_medians_and_the_floor_is_fitted_below_its_limit():
    skewed = table(MINIBATCH_OJA, "noise", (NOISES, floor))
    last = skewed["noise"] == NOISES[-1]
    skewed.loc[last, "error"] = [1.0] * 11 + [1e6] * 9
    skewed.loc[last, "noise_error"] = [2.0] * 11 + [nan] * 9
    whole = tables()["signal-in-noise"]
    own = whole[whole["mechanism"] == DP_PCA]
    found = rates_of({**tables(), "signal-in-noise": pd.concat([own, skewed])})
    assert found["floor"].parts == (1.0, 2.0)
    assert abs(found["floor"].fit.exponent) < 0.1
    assert found["signal"].fit.exponent > 0.9


def test_bottoms_are_counted_and_not_fitted():
    whole = tables()
    holed = {name: each.copy() for name, each in whole.items()}
    holed["streaming-dimensions"].loc[:7, ["error", "noise_error"]] = nan
    found = rates_of(holed)
    assert found["dimension"].lost == 8
    assert found["dimension"].met
    assert "of the data sets had a release that was bottom" in miss_notes(found)[-1]


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize(
    ("draw", "name", "words"),
    [
        (error_by_size, "streaming-rates", ["noise, ε = 1", "sampling, ε = 1,000"]),
        (error_by_spread, "signal-in-noise", ["dp-pca", "minibatch-oja"]),
    ],
)
def test_figures_name_their_lines_and_exponents(draw, name, words, narrow):
    results = results_of({**tables(), "streaming-audits": verdicts((), [DP_PCA])})
    svg, found = draw(results, narrow), rates_of(results)
    root = ElementTree.fromstring(svg)
    assert root.get("id") == f"figure-{name}-{'narrow' if narrow else 'wide'}"
    written = [each.text for each in root.iter("text")]
    for word in words:
        assert word in written
    assert "claim audited, not refuted" in written
    assert ("no claim audited here" in written) == ("minibatch-oja" in words)
    by_size, by_spread = ("sampling", "noise", "dimension"), ("signal", "floor")
    for key in by_size if draw is error_by_size else by_spread:
        exponent = next(r.exponent for r in rate_rows({key: found[key]}))
        assert any(f"exponent {exponent} ± " in (text or "") for text in written)
    assert "exponent" in root.find("{*}desc").text


def test_figures_of_nothing_but_bottoms_can_be_drawn():
    """What the smallest profile finds: dp-pca is bottom throughout."""
    tables = {name: run(experiment(name)) for name in NAMES}
    bottomless = results_of({**tables, "streaming-audits": verdicts()})
    found = rates_of(bottomless)
    assert np.isnan(found["noise"].fit.exponent)
    assert not found["noise"].met
    ElementTree.fromstring(error_by_spread(bottomless, True))
    assert "bottom throughout" in error_by_size(bottomless, False)
    assert rate_rows(found)[1].exponent == "not known"
    assert size_notes(found)
    assert signal_notes(found)
