import itertools
import sys

import numpy as np
import pytest
from refusals import refused
from scipy.optimize import linprog
from scipy.sparse import lil_matrix
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from dpaudit.audit.bounds import one_run, one_run_p_value
from dpaudit.audit.bounds.guess_tails import PER_UNIT, approx_curve, tail
from dpaudit.audit.bounds.one_run import _Guesses, _sum_of_modes
from dpaudit.gaussian import gaussian_delta

module = sys.modules["dpaudit.audit.bounds.one_run"]  # the name is the function's, too
STEP = 1 / PER_UNIT


def place(parameter):
    return int(np.ceil(parameter / STEP))


@pytest.fixture
def leaks_alone(monkeypatch):
    """Leave out what else bounds P(W >= v) where delta > 0."""
    monkeypatch.setattr(module, "largest", lambda *arguments: arguments[-1])
    monkeypatch.setattr(module, "tail", lambda *arguments: 1.0)


def largest_probability(canaries, guesses, correct, *promises):
    """Return sup P(W >= correct) over all (epsilon, delta)-DP mechanisms, by an LP.

    The variables are P(T = t | S = s), and per pair of neighbours and promise (epsilon,
    delta) the excess (P(t | s) - e^eps P(t | s'))_+, whose sum is at most delta.
    """
    inputs = list(itertools.product((0, 1), repeat=canaries))
    outputs = [
        t
        for t in itertools.product((0, 1, None), repeat=canaries)
        if sum(x is not None for x in t) == guesses
    ]
    rows, columns = len(inputs), len(outputs)
    pairs = [
        (i, j, promise)
        for i, j in itertools.product(range(rows), repeat=2)
        if sum(a != b for a, b in zip(inputs[i], inputs[j], strict=True)) == 1
        for promise in promises
    ]
    size = rows * columns
    objective = np.zeros(size + len(pairs) * columns)
    for i, j in itertools.product(range(rows), range(columns)):
        hits = sum(a == b for a, b in zip(inputs[i], outputs[j], strict=True))
        objective[i * columns + j] = -(hits >= correct) / rows
    above = lil_matrix((len(pairs) * (columns + 1), len(objective)))
    limits = np.zeros(above.shape[0])
    row = 0
    for number, (i, j, (epsilon, delta)) in enumerate(pairs):
        excess = size + number * columns
        for t in range(columns):
            above[row, i * columns + t] = 1
            above[row, j * columns + t] = -np.exp(epsilon)
            above[row, excess + t] = -1
            row += 1
        above[row, excess : excess + columns] = 1
        limits[row] = delta
        row += 1
    total = lil_matrix((rows, len(objective)))
    for i in range(rows):
        total[i, i * columns : (i + 1) * columns] = 1
    solved = linprog(
        objective, above.tocsr(), limits, total.tocsr(), np.ones(rows), method="highs"
    )
    return -solved.fun


@pytest.mark.parametrize(("canaries", "guesses"), [(1, 1), (2, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize("epsilon", [0.0, 1.5])
@pytest.mark.parametrize("delta", [0.0, 0.02, 0.2])
def test_no_mechanism_exceeds_the_bound(canaries, guesses, epsilon, delta):
    for correct in range(1, guesses + 1):
        best = largest_probability(canaries, guesses, correct, (epsilon, delta))
        bound = one_run_p_value(
            correct=correct,
            guesses=guesses,
            canaries=canaries,
            epsilon=epsilon,
            delta=delta,
        )
        assert best <= bound + 1e-7
        if delta == 0:
            assert bound == pytest.approx(best, abs=1e-7)
        alone = tail(correct, guesses, canaries, approx_curve(delta), place(epsilon))
        assert bound <= alone + 1e-12
        assert best <= alone + 1e-7


@pytest.mark.parametrize(
    ("canaries", "guesses", "mu"),
    [(1, 1, 0.3), (1, 1, 1.0), (2, 1, 0.3), (2, 2, 0.3), (2, 2, 1.0), (3, 2, 1.0)],
)
def test_no_gaussian_mechanism_exceeds_the_bound_on_mu(canaries, guesses, mu):
    """Held to the curve at eleven places it is held to a little less than the curve."""
    epsilons = np.linspace(-2.5, 2.5, 11) * mu
    promises = list(zip(epsilons, gaussian_delta(epsilons, mu), strict=True))
    for correct in range(1, guesses + 1):
        best = largest_probability(canaries, guesses, correct, *promises)
        p = one_run_p_value(correct=correct, guesses=guesses, canaries=canaries, mu=mu)
        assert best <= p + 0.01
        # One guess, which is right as often as the curve allows.
        if guesses == canaries == 1:
            assert p == pytest.approx(ndtr(mu / 2), abs=1e-4)


@pytest.mark.parametrize("canaries", [1, 20, 300, 5000])
@pytest.mark.parametrize("mu", [0.25, 1.0, 3.0])
def test_noise_for_each_canary_is_bounded_with_the_confidence(canaries, mu):
    """All are guessed: W ~ Bin(m, Phi(mu/2)), so the error is a sum, and no chance."""
    law = binom(canaries, ndtr(mu / 2))
    likely = np.arange(int(law.ppf(1e-9)), int(law.isf(1e-9)) + 1)
    for alpha in (0.05, 0.3):
        first, last = likely[0], likely[-1] + 1
        while last - first > 1:  # the bound grows with the right guesses
            middle = (first + last) // 2
            options = {"guesses": canaries, "canaries": canaries, "gaussian": True}
            bound = one_run(correct=int(middle), confidence=1 - alpha, **options)
            first, last = (first, middle) if bound.value > mu else (middle, last)
        assert law.sf(last - 1) <= alpha


def in_full(correct, guesses, canaries, inverse, tau):
    """Return n_T where no number is skipped."""
    a, b, mass = tau * correct / canaries, tau * (guesses - correct) / canaries, tau
    for k in reversed(range(correct)):
        further = inverse(min(a, 1.0))
        a += k / (guesses - k) * (further - b)
        mass += canaries / (guesses - k) * (further - b)
        b = further
    return mass


@pytest.mark.parametrize(
    ("case", "mu"),
    [((691, 1000, 1000), 0.3394), ((174, 200, 1000), 0.6078), ((84, 100, 100), 0.6413)],
)
def test_the_bound_on_mu_skips_next_to_nothing(case, mu):
    correct, guesses, canaries = case
    options = {"correct": correct, "guesses": guesses, "canaries": canaries}
    found = one_run(**options, gaussian=True)
    assert found.parameter == "mu"
    assert found.value == pytest.approx(mu, abs=1e-4)
    above = found.value + 1e-3
    for parameter, over in ((found.value, True), (above, False)):
        mass = in_full(*case, lambda x, m=parameter: ndtr(ndtri(x) - m), 0.05)
        assert (mass > 1) == over
    assert one_run_p_value(**options, mu=found.value) <= 0.05
    assert one_run_p_value(**options, mu=found.value + 2 * STEP) > 0.05
    # Of more guesses most numbers are skipped, and the bound is hardly smaller.
    many = {name: 30 * value for name, value in options.items()}
    above = one_run(**many, gaussian=True).value + 0.002
    assert above > found.value
    in_all = in_full(*many.values(), lambda x: ndtr(ndtri(x) - above), 0.05)
    assert in_all <= 1


def test_a_delta_that_many_canaries_make_large_costs_little():
    """By the sum over guesses alone nothing would be left."""
    few = {"correct": 950, "guesses": 1000, "canaries": 1000}
    assert one_run(**few, delta=0.01).value > 2.6
    assert one_run(**few).value == pytest.approx(2.70, abs=0.01)


def test_randomised_response_attains_it():
    # Exact enumeration: W ~ Bin(r, e^eps / (1 + e^eps)).
    r, epsilon = 200, 1.0
    truth = 1 / (1 + np.exp(-epsilon))
    values = np.array(
        [one_run(correct=v, guesses=r, canaries=500).value for v in range(r + 1)]
    )
    error = binom.pmf(np.arange(r + 1), r, truth)[values > epsilon].sum()
    assert 0.02 < error <= 0.05


@pytest.mark.parametrize("number", [1, 2, 1000, 1001, 5000])
@pytest.mark.parametrize("success", [0.5, 0.73, 0.999])
def test_sum_of_modes(number, success):
    j = np.arange(number)
    exact = binom.pmf(np.minimum(np.floor((j + 1) * success), j), j, success).sum()
    (found,) = _sum_of_modes(number, np.array([1 - success]))
    assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-12 + 0.02 * (number > 1000))


CASES = [
    # right, guesses, canaries, delta: where p-values first fall and then rise,
    (36, 40, 40, 0.05),
    (60, 60, 10**4, 1e-4),
    (95, 100, 2000, 1e-3),
    # fall a little, and do not fall at all.
    (180, 200, 200, 1e-4),
    (70, 100, 150, 0.0),
    (0, 3, 5, 0.1),
]


def for_one_epsilon(correct, guesses, canaries, delta, epsilon):
    """Return the bound on P(W >= correct) that the theorem gives at one epsilon."""
    q = 1 / (1 + np.exp(-epsilon))
    j = np.arange(guesses)
    modes = binom.pmf(np.minimum(np.floor((j + 1) * q), j), j, q).sum()
    leaks = delta * (1 - q) * (modes + canaries - guesses)
    return binom.sf(correct - 1, guesses, q) + leaks


@pytest.mark.parametrize(
    ("correct", "guesses", "canaries", "delta", "confidence", "about"),
    [
        (36, 40, 40, 0.05, 0.8, 1.42),
        (1000, 1000, 10**6, 1e-5, 0.94, 5.56),
        (1000, 1000, 10**6, 1e-5, 0.9, 5.95),
    ],
)
@pytest.mark.usefixtures("leaks_alone")
def test_what_small_epsilons_excuse_larger_ones_may_not(
    correct, guesses, canaries, delta, confidence, about
):
    """Of epsilon 0 the theorem alone says less than of a larger one."""
    case = (correct, guesses, canaries, delta)
    assert for_one_epsilon(*case, 0.0) > 1 - confidence
    names = ("correct", "guesses", "canaries", "delta")
    options = dict(zip(names, case, strict=True))
    found = one_run(**options, confidence=confidence).value
    assert found == pytest.approx(about, abs=0.01)
    assert for_one_epsilon(*case, found) <= 1 - confidence
    further = np.concatenate([[found + 1e-4], np.linspace(found + 0.1, 20, 50)])
    assert all(for_one_epsilon(*case, e) > 1 - confidence for e in further)
    assert one_run_p_value(**options, epsilon=0.0) <= 1 - confidence


@pytest.mark.usefixtures("leaks_alone")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_search_misses_nothing(case):
    """On every 256th place of the grid, in one go."""
    guessed = _Guesses(*case)
    names = ("correct", "guesses", "canaries", "delta")
    options = dict(zip(names, case, strict=True))
    places = np.arange(0, int(20 / STEP), 256)
    fair, leaks = guessed.fair(places), guessed.leaks(places)
    # What the search leaves out, it leaves out for this.
    assert (np.diff(fair) >= 0).all()
    assert (np.diff(leaks) <= 1e-14 * leaks[:-1]).all()
    for first in (0, 1000, 5000):
        found = one_run_p_value(**options, epsilon=places[first] * STEP)
        least = min(1.0, (fair + leaks)[first:].min())
        assert 0.999 * least <= found <= least
    for alpha in (0.3, 0.06, 1e-3):
        small = np.flatnonzero(fair + leaks <= alpha)
        scanned = places[small[-1]] * STEP if len(small) else 0.0
        found = one_run(**options, confidence=1 - alpha).value
        assert scanned <= found < scanned + 256 * STEP


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bound_and_p_value_never_contradict_each_other(case):
    """A claim is rejected just if the bound reaches it, on the grid and off it."""
    names = ("correct", "guesses", "canaries", "delta")
    options = dict(zip(names, case, strict=True))
    rng = np.random.default_rng(0)
    for confidence in (0.6, 0.8, 0.94, 0.95, 0.999):
        bound = one_run(**options, confidence=confidence).value
        near = [bound - STEP / 3, bound, bound + STEP / 3, bound + STEP]
        claims = [e for e in [*near, *rng.exponential(2, 5), 49.0] if e > 0]
        p_values = [one_run_p_value(**options, epsilon=e) for e in claims]
        assert [p <= 1 - confidence for p in p_values] == [e <= bound for e in claims]


def test_delta_and_abstentions_only_weaken_up_to_the_extremes():
    values = [
        one_run(correct=90, guesses=100, canaries=m, delta=d).value
        for m, d in ((100, 0.0), (100, 1e-4), (200, 1e-4), (200, 1e-2))
    ]
    assert values == sorted(values, reverse=True)
    assert one_run(correct=90, guesses=100, canaries=200).value == values[0]
    assert one_run(correct=0, guesses=10, canaries=10).value == 0
    assert one_run(correct=5, guesses=10, canaries=10).value == 0
    perfect = one_run(correct=10**6, guesses=10**6, canaries=10**6)
    assert perfect.value == pytest.approx(-np.log(np.expm1(-np.log(0.05) / 1e6)))
    assert one_run(correct=10, guesses=10, canaries=10, delta=0.5).value == 0
    many = {"correct": 10**15, "guesses": 10**15, "canaries": 10**15}
    assert one_run_p_value(**many, epsilon=25.0) < 1e-9
    assert one_run_p_value(**many, epsilon=50.1) == 1.0
    assert one_run_p_value(**many, epsilon=1e308) == 1.0
    assert one_run(**many).value < 50


test_arguments_are_checked = refused(
    ({"correct": 11}, "correct <= guesses <= canaries"),
    ({"guesses": 21}, "correct <= guesses <= canaries"),
    ({"correct": -1}, "correct must be an integer"),
    ({"guesses": 0}, "guesses must be an integer >= 1"),
    ({"canaries": 2.5}, "canaries must be an integer"),
    by=lambda change: one_run(
        **({"correct": 9, "guesses": 10, "canaries": 20} | change)
    ),
)
