"""One law, made in different ways on D and on D': nothing is refuted.

What comes out is noise or a choice that the data have no part in, whatever the code
does to make it, so that every claim holds.
"""

from itertools import pairwise

import numpy as np
import pytest
from replay_cases import made
from scipy import special

from dpaudit import ApproxDP, GaussianDP, Pair, PureDP
from dpaudit.audit import replay
from dpaudit.audit.replay.laws.apart import suprema_of
from dpaudit.audit.replay.laws.coded import Family, Lattice, code_of
from dpaudit.audit.replay.laws.rounded import Rounded

PAIR = Pair([[0.0]], [[0.0], [1.0]])
WAYS = {
    "uniform": (
        "r.random()",
        "1 - r.random()",
        "(r.random() + 0.3) % 1",
        "abs(2 * r.random() - 1)",
        "np.exp(-r.exponential())",
        "r.uniform(-1, 1) / 2 + 0.5",
    ),
    "exponential": (
        "r.exponential()",
        "-np.log(r.random())",
        "r.gamma(1.0)",
        "abs(r.laplace())",
    ),
    "Laplace": (
        "r.laplace()",
        "r.exponential() - r.exponential()",
        "r.choice([-1, 1]) * r.exponential()",
        "r.normal() * r.normal() + r.normal() * r.normal()",
    ),
    "logistic": (
        "r.logistic()",
        "r.gumbel() - r.gumbel()",
        "special.logit(r.random())",
    ),
    "beta": ("r.beta(2, 3)", "1 - r.beta(3, 2)"),
    "Student": ("r.standard_t(3)", "-r.standard_t(3)"),
    "geometric": (
        "int(r.geometric(0.4))",
        "int(0.4 + int(r.geometric(0.4)))",
        "int(np.floor(r.exponential() / -np.log(0.6))) + 1",
        "int(np.ceil(np.log(r.random()) / np.log(0.6)))",
    ),
    "twice": ("2 * int(r.geometric(0.4))", "int(round(2 * int(r.geometric(0.4))))"),
    "Poisson": ("int(r.poisson(3.0))", "int(r.poisson(1.0)) + int(r.poisson(2.0))"),
    "binomial": (
        "int(r.binomial(60, 0.4))",
        "int(r.binomial(30, 0.4)) + int(r.binomial(30, 0.4))",
        "60 - int(r.binomial(60, 0.6))",
    ),
    "one of four": (
        "int(r.integers(4))",
        "(int(r.integers(4)) + 1) % 4",
        "int(r.random() * 4)",
        "int(r.integers(2)) * 2 + int(r.integers(2))",
        "int(r.integers(8)) // 2",
    ),
    "a quarter": (
        "int(r.random() < 0.25)",
        "int(r.integers(2)) * int(r.integers(2))",
        "int(abs(r.random() - 0.5) < 0.125)",
        "int(r.binomial(1, 0.25))",
    ),
}
RELEASES = (
    "x",
    "x + 0.3",
    "np.floor(x + 0.3)",
    "round(2 * x)",
    "round(-2 * x)",
    "int(x > 1)",
    "max(x, 1)",
    "5 if x > 1 else int(x > 0)",
)


def mechanism(one, two, release):
    source = (
        f"def f(data, r):\n    x = {one} if len(data) > 1 else {two}\n"
        f"    return {release}\n"
    )
    return made(source, np=np, special=special)


@pytest.mark.parametrize("law", WAYS)
def test_one_law_in_two_ways_refutes_nothing(law):
    """Each way beside the next, by half of the releases, or a quarter if no integer."""
    for turn, (one, two) in enumerate(pairwise((*WAYS[law], WAYS[law][0]))):
        part = 2 if "int(" in one else 4
        for release in RELEASES[turn % part :: part]:
            made = mechanism(one, two, release)
            result = replay(made, pair=PAIR, claim=PureDP(1e-6), budget=2)
            assert not result.refuted, (one, two, release, str(result))
            # What is its own mirror image is not said to be another law.
            assert (law, release) != ("Student", "x") or not result.findings


def test_rounded_noise_is_known_beside_a_lattice_of_the_same_probabilities():
    one = Rounded.rounding("floor", Family.LAPLACE, 0.3, 1.0)
    other = Lattice(one.start, one.log, one.below, one.above)
    sides = [(code_of(law), 0.0, 1.0) for law in (one, other)]
    assert suprema_of(*sides, 0.0) == suprema_of(*sides[::-1], 0.0) == (0.0, 0.0)


TURNED = (
    *("r.exponential()", "r.gumbel()", "r.random()", "r.gamma(2.5)"),
    *("int(r.geometric(0.4))", "int(r.poisson(3.0))", "int(r.binomial(5, 0.3))"),
)


@pytest.mark.parametrize("noise", TURNED)
@pytest.mark.parametrize("release", ["x", "x if r.random() < 0.5 else 9.5"])
def test_noise_of_the_other_sign_is_another_law(noise, release):
    false = mechanism(noise, f"-({noise})", release)
    for claim in (PureDP(1.0), ApproxDP(1.0, 1e-5)):
        assert replay(false, pair=PAIR, claim=claim).refuted


@pytest.mark.parametrize("noise", ["r.random()", "r.exponential()", "r.logistic()"])
@pytest.mark.parametrize("claim", [PureDP(0.5), ApproxDP(1.0, 1e-5), GaussianDP(0.3)])
def test_noise_without_a_known_composition_is_no_alibi(noise, claim):
    """It is moved by 1: delta at epsilon 1 is 1, 0.63 and 0, and at 0 at least 0.24."""
    false = mechanism(f"1 + {noise}", noise, "x")
    result = replay(false, pair=PAIR, claim=claim)
    holds = "logistic" in noise and isinstance(claim, ApproxDP)
    assert result.verdict == ("NOT_REFUTED" if holds else "REFUTED")


OTHERS = (
    *(("r.geometric(0.4)", "1"), ("0", "r.integers(3)")),
    *(("r.poisson(3.0)", "r.poisson(4.0)"), ("r.geometric(0.4)", "r.geometric(0.5)")),
)


@pytest.mark.parametrize("ways", OTHERS)
def test_noise_on_a_lattice_is_told_from_other_laws_on_it(ways):
    """Whatever the epsilon is: far out, one is any number of times as probable."""
    result = replay(mechanism(*ways, "x"), pair=PAIR, claim=PureDP(15.0))
    assert result.proof
    assert "1" in ways or result.loss == np.inf
