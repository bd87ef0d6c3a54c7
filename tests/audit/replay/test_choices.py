"""Choices: laws of noisy maxima against quadrature, exact verdicts, hidden coins."""

import math
import random

import numpy as np
import pytest
from replay_cases import rows
from scipy.special import softmax
from scipy.stats import laplace

from dpaudit import ApproxDP, Pair, PureDP
from dpaudit.audit.replay import primitive, replay
from dpaudit.audit.replay.execute.executor import execute
from dpaudit.audit.replay.follow import discrete
from dpaudit.audit.replay.follow.generator import RecordingGenerator
from dpaudit.audit.replay.follow.tape import Mode
from dpaudit.audit.replay.laws.choices import ChoiceLaw, noisy_maximum
from dpaudit.audit.replay.laws.coded import Family

PAIR = Pair(rows(1, 0), rows(1, 0, 1))
LONG = np.random.default_rng(0).uniform(-9, 9, 20)
FAMILIES = (Family.GUMBEL, Family.EXPONENTIAL, Family.LAPLACE)


def counts(x):
    return np.array([np.sum(x == 0), np.sum(x == 1), 0.0])


def maximum_and_its_value(x, rng):
    noisy = counts(x) + rng.laplace(0, 2.0, 3)
    best = int(np.argmax(noisy))
    return best, noisy[best]


def by_quadrature(x, family):
    """Return log-probabilities by Gauss-Legendre quadrature, 20 nodes a piece.

    No piece, of a half at most, has a kink inside: the rule is exact up to rounding.
    """
    density, below = {
        Family.GUMBEL: (
            lambda t: np.exp(-t - np.exp(-t)),
            lambda t: np.exp(-np.exp(-t)),
        ),
        Family.EXPONENTIAL: (
            lambda t: np.where(t > 0, np.exp(-np.abs(t)), 0.0),
            lambda t: np.where(t > 0, -np.expm1(-np.abs(t)), 0.0),
        ),
        Family.LAPLACE: (lambda t: np.exp(-np.abs(t)) / 2, laplace.cdf),
    }[family]
    x = np.asarray(x)
    ends = np.unique([*x, *np.arange(min(x) - 50.0, max(x) + 50.0, 0.5)])
    nodes, weights = np.polynomial.legendre.leggauss(20)
    half = np.diff(ends)[:, np.newaxis] / 2
    t = (ends[:-1, np.newaxis] + half * (nodes + 1)).ravel()
    weights = (half * weights).ravel()
    with np.errstate(over="ignore"):
        under = np.array([below(t - each) for each in x])
        masses = [
            weights * density(t - x[i]) * np.delete(under, i, axis=0).prod(axis=0)
            for i in range(len(x))
        ]
    return np.log(np.sum(masses, axis=1))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "x",
    [[0.7], [0.0, 1.5], [0.3, 0.3, -4.0, 1.7], [-302.0, 1.0, -300.0], [0, -80], LONG],
)
def test_the_law_of_a_noisy_maximum_agrees_with_quadrature(family, x):
    ours = noisy_maximum(2 * np.array(x), 2.0, family)
    assert ours == pytest.approx(by_quadrature(x, family), abs=1e-10)


@pytest.mark.parametrize("family", FAMILIES)
def test_far_away_candidates_have_a_probability_that_is_no_zero(family):
    log = noisy_maximum(np.array([-800.0, 0.0, 1.0]), 1.0, family)
    assert -802.5 < log[0] < -800.5
    assert math.fsum(np.exp(log)) == pytest.approx(1.0, abs=1e-12)
    log = noisy_maximum(np.array([1e10, 0.0]), 1e-300, family)
    assert abs(log[0]) < 1e-14
    assert -np.inf < log[1] < -1e299


def test_unknown_families_and_too_many_candidates_have_no_law():
    assert noisy_maximum(np.zeros(3), 1.0, Family.GAUSSIAN) is None
    assert noisy_maximum(np.zeros(5000), 1.0, Family.GUMBEL) is None


def test_the_supremum_of_choices_is_that_of_the_best_outcomes():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.25, 0.25, 0.5])
    one, other = (ChoiceLaw.of(each, count=2) for each in (p, q))
    expected = 2 * max(math.log(2), math.log(2.5))
    assert one.supremum(other) == pytest.approx(expected, abs=1e-9)
    assert one.supremum(one) == 0
    near = [ChoiceLaw(np.log([[0.5 + off, 0.5 - off]])) for off in (0.0, 1e-14)]
    assert near[0].supremum(near[1]) == 0
    longer = ChoiceLaw.of(np.array([0.5, 0.3, 0.1, 0.1]), count=2)
    assert one.supremum(longer) == math.inf
    assert ChoiceLaw.of([1.0, 0.0]).supremum(ChoiceLaw.of([0.5, 0.5])) == math.inf


# One more row of class 1 multiplies its weight by e^(1/2), and the sum by
# (e^(1/2) + e + 1)/(2 e^(1/2) + 1): so the loss of class 1 is the greater one.
_TOTAL = math.log((math.exp(0.5) + math.e + 1) / (2 * math.exp(0.5) + 1))


def fails_where_it_chooses_the_last(x, rng):
    chosen = rng.choice(3, p=softmax(counts(x) / 2))
    if chosen == 2:
        raise ValueError("nothing of this class")
    return int(chosen)


EXACT = [
    fails_where_it_chooses_the_last,
    lambda x, rng: int(rng.choice(3, p=softmax(counts(x) / 2))),
    lambda x, rng: rng.choice(["red", "green", "blue"], p=softmax(counts(x) / 2)),
    lambda x, rng: random.choices("abc", weights=np.exp(counts(x) / 2))[0],
    lambda x, rng: int(np.argmax(counts(x) + rng.gumbel(scale=2.0, size=3))),
]


@pytest.mark.parametrize("mechanism", EXACT)
def test_the_loss_of_a_choice_is_exact(mechanism):
    loss = max(0.5 - _TOTAL, _TOTAL)
    kept = replay(mechanism, pair=PAIR, claim=PureDP(loss * 1.000001))
    assert kept.verdict == "NOT_REFUTED"
    assert kept.loss == pytest.approx(loss, abs=1e-9)
    broken = replay(mechanism, pair=PAIR, claim=PureDP(loss * 0.9999))
    assert (broken.verdict, broken.proof) == ("REFUTED", True)


@pytest.mark.parametrize(
    ("mechanism", "family"),
    [
        (
            lambda x, rng: (counts(x) + rng.exponential(2.0, 3)).argmax(),
            Family.EXPONENTIAL,
        ),
        (lambda x, rng: np.argmin(-counts(x) - rng.laplace(0, 2.0, 3)), Family.LAPLACE),
    ],
)
def test_a_noisy_maximum_is_one_choice(mechanism, family):
    sides = [noisy_maximum(counts(x), 2.0, family) for x in (PAIR.data, PAIR.neighbour)]
    result = replay(mechanism, pair=PAIR, claim=PureDP(1.0))
    assert result.verdict == "NOT_REFUTED"
    assert result.loss == pytest.approx(np.abs(sides[0] - sides[1]).max(), abs=1e-9)
    assert replay(mechanism, pair=PAIR, claim=PureDP(0.2)).proof


def test_classes_that_are_read_off_the_data_are_impossible_on_the_other_side():
    def choice_among_rows(x, rng):
        values, number = np.unique(x, return_counts=True)
        return float(rng.choice(values, p=number / number.sum()))

    pair = Pair(rows(1, 0), rows(1, 0, 5))
    result = replay(choice_among_rows, pair=pair, claim=ApproxDP(1.0, 0.1))
    assert (result.verdict, result.proof) == ("REFUTED", True)
    assert result.loss == math.inf
    assert "probability 0 on D and 0.333333 on D'" in str(result)


def test_a_hidden_choice_of_known_probabilities_is_no_proof():
    """A secret coin that rarely lets a bad release through amplifies privacy."""

    def seldom(x, rng):
        if rng.choice(2, p=[0.9, 0.1]):
            return float(np.sum(x) + rng.laplace(0, 0.8))
        return float(rng.laplace(0, 0.8))

    for sees in ("release", "transcript"):
        options = {"sees": sees, "budget": 2, "seed": 1}
        assert not replay(seldom, pair=PAIR, claim=PureDP(1.0), **options).proof


def one_of_those_left(x, rng):
    left = ["a", "b"]
    first = random.choice(left)
    if random.random() < (0.5 if len(x) == 2 or first == "b" else 0.9):
        return first
    left.remove(first)
    return random.choice(left)


def test_the_only_one_that_is_left_is_no_choice(monkeypatch):
    """One half each on D; on D' "a" by (.9 + .5) / 2. And our failure is no release."""
    for epsilon, verdict in ((0.6, "NOT_REFUTED"), (0.5, "REFUTED")):
        result = replay(one_of_those_left, pair=PAIR, claim=PureDP(epsilon))
        assert (result.verdict, result.proof) == (verdict, epsilon == 0.5)
        assert result.loss == pytest.approx(math.log(5 / 3))
    real = RecordingGenerator._of_table

    def failing(self, p, drawn):
        if len(p) == 1:
            raise TypeError("not on its own account")
        return real(self, p, drawn)

    monkeypatch.setattr(RecordingGenerator, "_of_table", failing)

    def of_one(x, rng):
        if (first := random.choice(["a", "b"])) == "b":
            return first
        kept = random.random() < (0.5 if len(x) == 2 else 0.9)
        return first if kept else random.choice(["b"])

    assert not replay(of_one, pair=PAIR, claim=PureDP(1.0)).proof


def test_a_choice_of_a_law_too_many_is_not_followed(monkeypatch):
    monkeypatch.setattr(discrete, "code_of", lambda law: None)
    keeping = Mode(keeps=True)
    trace = execute(lambda x, rng: len(x) + rng.choice(3), PAIR.data, 0, mode=keeping)
    assert any("too many laws" in each.why for each in trace.tape.coins)


# -- probabilities that are rounded


def logistic(number):
    return 1 / (1 + np.exp(-float(number)))


def flipped(x, rng):
    return bool(rng.random() < logistic(len(x)))


def binomial(x, rng):
    return rng.binomial(1, logistic(len(x)))


def one_of_two(x, rng):
    p = logistic(len(x))
    return rng.choice(["yes", "no"], p=[p, 1 - p])


def twice(x, rng):
    p = logistic(len(x) / 2)
    return rng.random() < p, rng.random() < p


@primitive("randomised-response", value="held", truth="p")
def responds(held, p):
    return held


def declared(x, rng):
    return responds(1, logistic(len(x)))


@pytest.mark.parametrize(
    ("mechanism", "sees"),
    [
        *((each, "release") for each in (flipped, twice, binomial, one_of_two)),
        *((each, "transcript") for each in (flipped, one_of_two, declared)),
    ],
)
def test_what_rounding_leaves_of_a_probability_refutes_nothing(mechanism, sees):
    """An exponential mechanism with two outcomes loses 1, whatever is rounded."""
    losses = []
    for n in (8, 25, 34, 35, 36, 37):
        pair = Pair(rows(*[1] * n), rows(*[1] * (n + 1)))
        result = replay(mechanism, pair=pair, claim=PureDP(1.0), sees=sees, budget=2)
        assert not result.refuted, (n, str(result))
        losses.append(result.loss)
    if sees == "release":
        assert losses[0] == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("n", [1487, 1488, 1489, 1490])
def test_what_underflow_leaves_of_a_probability_refutes_nothing(n):
    def mechanism(x, rng):
        weights = np.exp(np.array([0.0, -0.5 * len(x)]))
        return int(rng.choice(2, p=weights / weights.sum()))

    pair = Pair(rows(*[1] * n), rows(*[1] * (n + 1)))
    result = replay(mechanism, pair=pair, claim=PureDP(0.5), budget=2)
    assert not result.refuted, str(result)


def test_impossible_outcomes_are_no_rounding_and_others_read_otherwise():
    def mechanism(x, rng):
        return rng.random() < 1e-6 * (len(x) > 2)

    result = replay(mechanism, pair=PAIR, claim=PureDP(1.0))
    assert (str(result.verdict), result.loss) == ("REFUTED", math.inf)
    # Its numbers are looked at: a transcript of Laplace noise, whose loss is 1/2.
    result = replay(maximum_and_its_value, pair=PAIR, claim=PureDP(1.0))
    assert result.verdict == "NOT_REFUTED"
    assert result.loss == pytest.approx(0.5)


# -- from how many seeds code is executed that looks at noise


def seldom(x, rng):
    noisy = len(x) + rng.laplace(0, 2.0, 8)
    if noisy.max() < 1e9 and rng.poisson(0.25):
        return float(len(x))
    return noisy[0]


def never(x, rng):
    noisy = len(x) + rng.laplace(0, 2.0, 8)
    return noisy[noisy < 1e9][0]


TURNING = (seldom, never)


def test_what_coins_decide_seldom_is_seen_from_14_seeds(looked_at_from_all_seeds):
    """A coin of 0.22 falls in none of 14 executions with probability 0.03, in none of
    four with 0.37, and here in none of these."""
    found = [replay(each, pair=PAIR, claim=PureDP(9.0), budget=2) for each in TURNING]
    assert [str(each.verdict) for each in found] == ["NOT_FOLLOWED", "NOT_REFUTED"]
    assert found[1].executions == 6 + 3 * 14


# -- a choice that noise is computed with, which looks at it


@pytest.mark.parametrize(
    "noise",
    [
        lambda rng, sign: rng.geometric(0.5, size=2) * sign,
        lambda rng, sign: np.maximum(np.round(rng.laplace(size=2)), sign),
        lambda rng, sign: rng.gamma(2.0, size=2) * sign * rng.dirichlet([1.0, 1.0]),
    ],
)
def test_a_choice_turned_into_numbers_is_computed_with_as_one(noise):
    def mechanism(x, rng):
        return len(x) + noise(rng, rng.choice([-1.0, 1.0]))

    result = replay(mechanism, pair=PAIR, claim=PureDP(9.0), budget=2)
    assert not any("raises" in str(finding) for finding in result.findings)
