"""Laws by name, and the largest by a key."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit import Pair, PureDP
from dpaudit.audit.replay import replay
from dpaudit.audit.replay.laws import by_name
from dpaudit.audit.replay.laws.by_name import Density, law_by_name
from dpaudit.audit.replay.laws.pushforward import family_of

NUMBERS = {"dpareto_lognorm": (2.0, 1.0, 1.5), "trapezoid": (0.2, 0.8)}
PARAMETERS = {
    **{name: args for name, args in stats._distr_params.distcont},
    **{name: args for name, args in stats._distr_params.distdiscrete},
}


@pytest.mark.parametrize("name", sorted(by_name._DENSITIES))
def test_densities_by_name_integrate_to_their_probabilities(name):
    """To those that SciPy has for intervals, in the tails too: another formula."""
    parameters = tuple(map(float, PARAMETERS[name]))
    noise = law_by_name(name, parameters)
    if noise.law is None:  # a family, or a kind with another name in SciPy
        assert family_of(noise)[:2] == (0.0, 1.0)
        return
    law = getattr(stats, name)(*parameters)
    assert isinstance(noise.law, Density)
    for low, high in ((1e-6, 1e-5), (0.2, 0.3), (0.3, 0.8), (1 - 1e-5, 1 - 1e-6)):
        a, b = law.ppf([low, high])
        found, _ = integrate.quad(
            lambda u: math.exp(noise.law.log_density(u)), a, b, epsabs=0, epsrel=1e-6
        )
        assert math.isclose(found, high - low, rel_tol=1e-4)
    assert not np.isneginf(
        noise.law.log_density(law.ppf(np.linspace(0.01, 0.99, 9)))
    ).any()


@pytest.mark.parametrize("name", sorted(by_name._TABLES))
def test_tables_by_name_have_the_probabilities_of_scipy(name):
    parameters = tuple(map(float, PARAMETERS[name]))
    lattice, law = (
        law_by_name(name, parameters).lattice,
        getattr(stats, name)(*parameters),
    )
    start, p = lattice.table()
    assert math.isclose(p.sum(), 1, rel_tol=1e-9)
    cdf = law.cdf(start + np.arange(len(p)))
    assert np.allclose(np.cumsum(p), cdf, rtol=0, atol=1e-9)


def test_an_underflow_is_no_loss():
    """1/(pi cosh x) is no number any more far out: its logarithm moves by 1 a step."""
    law = law_by_name("hypsecant", ()).law
    assert np.isnan(law.log_density(np.array([-720.0, 720.0]))).all()
    assert 0.99 < law.supremum(1.0) <= 1.0
    assert law_by_name("levy_stable", (1.5, 0.0)) is None
    assert law_by_name("zipf", (2.0,)) is None  # tails of powers


@pytest.mark.parametrize("method", sorted(by_name.METHODS))
def test_methods_of_numpy_have_the_law_that_is_said(method):
    """A hundred thousand draws, each test at the level 1e-6."""
    given = {
        **{"weibull": (1.5,), "pareto": (2.5,), "power": (2.5,), "rayleigh": (2.0,)},
        **{"lognormal": (0.5, 0.7), "triangular": (-1.0, 0.5, 3.0), "wald": (2.0, 3.0)},
        **{"f": (5, 7), "negative_binomial": (4, 0.3), "logseries": (0.6,)},
        **{"hypergeometric": (9, 6, 5), "standard_cauchy": (), "standard_t": (3.5,)},
    }[method]
    name, standard = by_name.METHODS[method]
    plain, parameters, scale, shift = standard(*given)
    rng = np.random.default_rng(11)
    drawn = np.sort(getattr(rng, method)(*given, size=100_000))
    law = getattr(stats, name)(*parameters)
    off = (
        law.cdf((drawn - shift) / scale) - np.searchsorted(drawn, drawn, "right") / 1e5
    )
    assert np.abs(off).max() < math.sqrt(math.log(2e6) / 2e5)
    ours = getattr(np.random.default_rng(3), method)(*plain) * scale + shift
    theirs = getattr(np.random.default_rng(3), method)(*given)
    assert math.isclose(ours, theirs, rel_tol=1e-12)


def test_the_largest_by_a_key_is_one_choice():
    """A race of exponential draws, and pairs; the noisy number itself is not seen."""

    def race(x, rng):
        return min((0, 1, 1), key=lambda k: rng.exponential() / math.exp(k * len(x)))

    def pairs(x, rng):
        return max((k * len(x) + rng.gumbel(), "ab"[k]) for k in (0, 1))[1]

    pair = Pair([0.0], [0.0, 1.0])
    for mechanism, others in ((race, 2), (pairs, 1)):
        p, q = (1 / (1 + others * math.exp(n)) for n in (1, 2))
        result = replay(mechanism, pair=pair, claim=PureDP(1.0))
        assert result.verdict == "NOT_REFUTED"
        assert math.isclose(result.loss, math.log(p / q), rel_tol=1e-9)
        refuted = replay(mechanism, pair=pair, claim=PureDP(0.5))
        assert (refuted.verdict, refuted.proof) == ("REFUTED", True)
