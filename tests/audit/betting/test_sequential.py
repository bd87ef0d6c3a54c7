"""The sequential test: fair on the boundary of the null, and quick beyond it.

Mechanisms are simulated at the level of scores: a function (rng, side, n) that draws
n scores on D (side 0) or on D', with the exact probability of {score >= t}.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import ndtr

from dpaudit import ApproxDP, Claim, GaussianDP, PureDP
from dpaudit.audit.betting import families
from dpaudit.audit.betting.events import Events, find_anchor
from dpaudit.audit.betting.evidence import SequentialTest
from dpaudit.audit.betting.scores import ScoreRecord, count_hits
from dpaudit.audit.betting.strategy import place_bets, plan_bets
from dpaudit.gaussian import gaussian_mu

ALPHA = 0.1
# How audits divide the wealth: to refute, and to bound.
MODES = (
    {"shares": (0.75, 0.15, 0.1), "renewed": 2 / 3, "shared": 0.9},
    {"shares": (0.05, 0.15, 0.8)},
)


@dataclass(frozen=True)
class Scores:
    """A mechanism as an attack sees it."""

    draw: Callable[[np.random.Generator, int, int], np.ndarray]
    tail: Callable[[np.ndarray, int], np.ndarray]


def atoms(values, on_data, on_neighbour):
    """Scores with finitely many values, and their probabilities."""
    values, laws = np.array(values), (np.array(on_data), np.array(on_neighbour))
    return Scores(
        lambda rng, side, n: rng.choice(values, n, p=laws[side]),
        lambda t, side: (values >= t[:, np.newaxis]) @ laws[side],
    )


def randomised_response(epsilon):
    """The pure-DP mechanism that sits on the corner of its region."""
    p = 1 / (1 + np.exp(-epsilon))
    return atoms([0.0, 1.0], [1 - p, p], [p, 1 - p])


def leaky(epsilon, delta):
    """Randomised response that names its dataset with probability delta."""
    p = (1 - delta) / (1 + np.exp(-epsilon))
    q = 1 - delta - p
    return atoms([-3.0, 0.0, 1.0, 3.0], [0.0, q, p, delta], [delta, p, q, 0.0])


def laplace(epsilon):
    """The release itself: its ratio is e^epsilon in either tail."""

    def tail(t, side):
        x = epsilon * (t - (side == 0))
        return np.where(x >= 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)

    return Scores(
        lambda rng, side, n: rng.laplace(side == 0, 1 / epsilon, n).astype(float), tail
    )


def gaussian(mu):
    return Scores(
        lambda rng, side, n: rng.normal(mu * (side == 0), 1.0, n),
        lambda t, side: ndtr(mu * (side == 0) - t),
    )


def swapped(scores):
    """Exchange D and D': the violation lies the other way round."""
    return Scores(
        lambda rng, side, n: scores.draw(rng, 1 - side, n),
        lambda t, side: scores.tail(t, 1 - side),
    )


TRUE_CLAIMS = {
    "randomised response": (randomised_response(1.0), PureDP(1.0)),
    "laplace": (laplace(1.0), PureDP(1.0)),
    "laplace, small epsilon": (swapped(laplace(0.1)), PureDP(0.1)),
    "leaky response": (leaky(1.0, 0.1), ApproxDP(1.0, 0.1)),
    "gaussian": (gaussian(1.0), GaussianDP(1.0)),
    "analytic gaussian": (gaussian(gaussian_mu(1.0, 0.05)), ApproxDP(1.0, 0.05)),
}
FALSE_CLAIMS = {
    "randomised response": (randomised_response(1.6), PureDP(1.0)),
    "laplace": (laplace(2.0), PureDP(1.0)),
    "leaky response": (swapped(leaky(1.0, 0.2)), ApproxDP(1.0, 0.1)),
    "gaussian": (gaussian(1.5), GaussianDP(1.0)),
}


def coarse(claim: Claim) -> families.NullFamily:
    """Return the family of a claim in steps of 4 %: quicker to play."""
    centre = claim.parameters.get("epsilon", claim.parameters.get("mu"))
    grid = centre * np.exp(0.04 * np.arange(-40, 21))
    if isinstance(claim, GaussianDP):
        return families.GaussianNulls(grid, 40)
    delta = claim.parameters.get("delta", 0.0)
    return families.Polygons(grid, 40, grid, np.full_like(grid, delta))


def rounds(scores, test, rng, samples, *, growth=0.6, share=0.5):
    """Play the rounds of an audit; yield before each settlement."""
    record, used = ScoreRecord(), 20
    for side in (0, 1):
        record.add(side, scores.draw(rng, side, 10))
    while used < 2 * samples:
        size = min(max(8, int(growth * used)), 2 * samples - used)
        n_p = min(max(round(size * share), 1), size - 1)
        sizes = (n_p, size - n_p)
        fresh = [scores.draw(rng, side, n) for side, n in enumerate(sizes)]
        events = record.events(0)
        place_bets([test], events, *sizes, 2 * samples - used)
        yield events, sizes
        test.update(*(count_hits(x, events.threshold) for x in fresh), *sizes)
        for side in (0, 1):
            record.add(side, fresh[side])
        used += size


def mean_multipliers(test, events, scores, sizes):
    """Return the exact mean of what each playing null's accounts are multiplied by.

    The releases being independent, it is a product over them of the mean return of one.
    """
    plan, (n_p, n_q) = test._placed, sizes
    tails = [scores.tail(events.threshold, side) for side in (0, 1)]
    p, q = (np.diff(t[plan.events], axis=1, prepend=0.0, append=1.0) for t in tails)
    means = []
    for stake in plan.stakes:
        on_p = np.sum(p * plan.bets.on_p, axis=1)[plan.bet]
        on_q = np.sum(q * plan.bets.on_q, axis=1)[plan.bet]
        means.append(
            n_p * np.log1p(stake * on_p)
            + n_q * np.log1p(stake * on_q)
            - (n_p + n_q) * stake * plan.bets.slack[plan.bet]
        )
    return np.exp(means)


@pytest.mark.parametrize("name", TRUE_CLAIMS)
def test_every_bet_is_fair_given_its_past(name):
    """Exactly, not by simulation: the conditional mean of each e-value is at most 1.

    For every null at or above the truth, both accounts, in every round, from the
    pilot to 2500 releases a side, with even and uneven shares. Null i plays the bet of
    a larger one unless it is planned itself.
    """
    scores, claim = TRUE_CLAIMS[name]
    family, played = coarse(claim), 0
    for seed, (share, planned) in enumerate(((0.5, 12), (0.2, 2), (0.8, 12))):
        test = SequentialTest(family, ALPHA, **MODES[seed % 2], planned=planned)
        rng = np.random.default_rng(seed)
        for events, sizes in rounds(scores, test, rng, 2500, share=share):
            if test._placed is None:
                continue
            true = test._placed.playing >= family.claimed
            means = mean_multipliers(test, events, scores, sizes)[:, true]
            assert (means <= 1 + 1e-9).all()
            played += true.sum()
    assert played > 0


@pytest.mark.parametrize("name", FALSE_CLAIMS)
def test_false_claims_fall(name):
    """By 5000 releases a side, whichever way the wealth is divided."""
    scores, claim = FALSE_CLAIMS[name]
    for seed, mode in enumerate(MODES):
        test = SequentialTest(coarse(claim), ALPHA, **mode, planned=6)
        for _ in rounds(scores, test, np.random.default_rng(seed), 5000):
            if test.refutes_claim:
                break
        assert test.refutes_claim


def test_lower_bounds_never_go_back_and_end_near_the_truth():
    """Randomised response at 1.6, in 5000 releases a side."""
    test = SequentialTest(coarse(PureDP(1.0)), 0.05, **MODES[1], planned=12)
    rejected, bound, refuted = test.rejected.copy(), 0.0, False
    rng = np.random.default_rng(0)
    for _ in rounds(randomised_response(1.6), test, rng, 5000, growth=0.3):
        assert (test.rejected >= rejected).all()
        assert test.lower_bound >= bound
        assert test.refutes_claim >= refuted
        rejected, bound = test.rejected.copy(), test.lower_bound
        refuted = test.refutes_claim
    assert 1.3 < test.lower_bound < 1.61


@pytest.mark.parametrize("alpha", [0.05, 1e-3, 1e-9])
def test_a_null_falls_when_its_wealth_reaches_one_over_alpha(alpha):
    """And stays fallen. Accounts grow by the log e-values of their own stakes."""
    family, scores = coarse(PureDP(1.0)), laplace(2.5)
    shares, rng = (0.3, 0.1, 0.6), np.random.default_rng(0)
    test = SequentialTest(family, alpha, shares=shares)
    np.testing.assert_allclose(test.log_wealth, 0, atol=1e-15)
    np.testing.assert_allclose(
        np.exp(test._accounts), np.transpose([shares]) * np.ones(61)
    )
    highest = np.zeros(len(family))
    record = ScoreRecord()
    for side in (0, 1):
        record.add(side, scores.draw(rng, side, 30))
    events = record.events(0)
    for _ in range(12):
        place_bets([test], events, 20, 10, 1000)
        sizes = (20, 10)
        fresh = [scores.draw(rng, side, n) for side, n in enumerate(sizes)]
        hits = [count_hits(x, events.threshold) for x in fresh]
        accounts, plan = test._accounts.copy(), test._placed
        if plan is not None:
            counts = [
                np.diff(h[plan.events], axis=1, prepend=0, append=n)
                for h, n in zip(hits, sizes, strict=True)
            ]
            for account, stake in zip(accounts, plan.stakes, strict=True):
                account[plan.playing] += plan.bets.log_e(*counts, stake, plan.bet)
        test.update(*hits, *sizes)
        np.testing.assert_allclose(test.log_wealth, np.logaddexp.reduce(accounts))
        highest = np.maximum(highest, test.log_wealth)
        assert (test.rejected == (highest >= -np.log(alpha))).all()
    assert 0 < test.rejected.sum() < len(family)


@pytest.mark.parametrize("shares", [(0.5, 0.3, 0.3), (1.2, -0.1, -0.1)])
def test_no_more_than_the_whole_wealth_can_be_shared(shares):
    with pytest.raises(ValueError, match="shares"):
        SequentialTest(coarse(PureDP(1.0)), ALPHA, shares=shares)


def test_nulls_play_the_next_larger_bet_and_share_in_the_claims():
    family = coarse(PureDP(1.0))
    test = SequentialTest(family, ALPHA, planned=4)
    record, rng = ScoreRecord(), np.random.default_rng(0)
    for side in (0, 1):
        record.add(side, laplace(1.0).draw(rng, side, 200))
    place_bets([test], record.events(0), 50, 50, 1000)
    placed = test._placed
    planned = placed.nulls
    assert family.claimed in planned
    assert planned[0] == 0
    for null, bet in zip(placed.playing, placed.bet, strict=True):
        assert planned[bet] >= null
        assert bet == 0 or planned[bet - 1] < null
    # They have fallen when the evidence against the claim is 1/share of the goal.
    family, share = coarse(PureDP(1.0)), 0.9
    test = SequentialTest(family, ALPHA, shared=share)
    accounts = gambled(test, np.random.default_rng(0))
    own, claimed = np.exp(np.logaddexp.reduce(accounts, axis=0)), family.claimed
    expected = own.copy()
    expected[:claimed] = (1 - share) * own[:claimed] + share * own[claimed]
    np.testing.assert_allclose(np.exp(test.log_wealth), expected)
    test._accounts[:] = -50.0
    test._accounts[0, claimed] = np.log(1 / (share * ALPHA)) + 1e-9
    assert (test.log_wealth[:claimed] >= -np.log(ALPHA)).all()
    # Also where the claim itself fell long ago, and accounts are alike.
    test.rejected[claimed:] = True
    for much, fallen in ((0.0, True), (-1e-6, False)):
        wealth = test._accounts[0, claimed] + much
        test._accounts[:, claimed] = wealth - np.log(3)
        test._reject()
        assert (test.log_wealth[:claimed] >= -np.log(ALPHA)).all() == fallen
        assert test.rejected[:claimed].all() == fallen
        test.rejected[:claimed] = False
    test = SequentialTest(coarse(PureDP(1.0)), 0.05)
    assert not len(*place_bets([test], Events.join([]), 4, 4, 100))
    test.update(np.zeros(0, dtype=int), np.zeros(0, dtype=int), 4, 4)
    np.testing.assert_allclose(test.log_wealth, 0, atol=1e-15)
    test.rejected[:] = True
    events = Events.single(0.0, (3, 1), (10, 10))
    assert not len(*place_bets([test], events, 4, 4, 100))


@pytest.mark.parametrize("claim", [PureDP(0.3), ApproxDP(1.5, 1e-3), GaussianDP(1.0)])
def test_families_side_by_side_play_what_each_plans_alone(claim):
    """Clear violations and none, with events that exclude each other beside."""
    several = families.families_for(claim, 1e-5, 1.0)
    tests = [SequentialTest(each, ALPHA) for each in several.values()]
    assert len(tests) > 1
    record, rng = ScoreRecord(), np.random.default_rng(0)
    for side in (0, 1):
        record.add(side, laplace(1.0).draw(rng, side, 400))
    rare = record.events(1, exclusive=True)
    events = Events.join([record.events(0), rare])
    place_bets(tests, events, 400, 400, 1000)
    for test in tests:
        both, nulls = test._placed, test._placed.nulls
        anchor, _ = find_anchor(test.family, events)
        plan = plan_bets(test.family, nulls, events, 400, 400, anchor)
        alone = replace(both, bets=plan.bets, events=plan.events)
        every, stake = (
            np.arange(len(nulls)),
            np.minimum(plan.bets.largest_stake() / 2, 1),
        )
        together, apart = (
            each.bets.log_e(*(each.cells(h, 400) for h in events.hits), stake, every)
            for each in (both, alone)
        )
        np.testing.assert_allclose(together, apart, rtol=1e-9, atol=1e-12)
        assert (together != 0).any()


@pytest.mark.parametrize(("seen", "plays"), [(3, False), (13, True)])
def test_the_claim_is_bet_against_where_an_atom_breaks_it(seen, plays):
    """Though the bulk of the releases, which shows the anchor, is far inside it."""
    record, rng = ScoreRecord(), np.random.default_rng(0)
    for side in (0, 1):
        record.add(side, laplace(0.8).draw(rng, side, 8000))
    atom = Events.single(1.0, (seen, 0), (8000, 8000))
    atom = replace(atom, attack=atom.attack + 1, exclusive=~atom.exclusive)
    events = Events.join([record.events(0), atom])
    test = SequentialTest(coarse(ApproxDP(1.0, 1e-5)), ALPHA)
    _, top = find_anchor(test.family, events)
    assert top < test.family.claimed
    place_bets([test], events, 1000, 1000, 10_000)
    assert (test.family.claimed in test._placed.playing) is plays


def test_only_the_events_asked_for_are_needed():
    """Counts of other events may be anything: they may not even be counted."""
    scores, rng = laplace(2.0), np.random.default_rng(0)
    record = ScoreRecord()
    for side in (0, 1):
        record.add(side, scores.draw(rng, side, 200))
    events = record.events(0)
    fresh = [scores.draw(rng, side, 40) for side in (0, 1)]
    hits = np.stack([count_hits(x, events.threshold) for x in fresh])
    wealth = []
    for junk in (0, 7):
        test = SequentialTest(coarse(PureDP(1.0)), ALPHA)
        [needed] = place_bets([test], events, 40, 40, 1000)
        assert len(needed) < len(events)
        sparse = np.full_like(hits, junk)
        sparse[:, needed] = hits[:, needed]
        test.update(*sparse, 40, 40)
        wealth.append(test.log_wealth)
    np.testing.assert_array_equal(*wealth)
    assert (wealth[0] != 0).any()


def test_step_down_needs_every_smaller_null():
    test = SequentialTest(families.families_for(PureDP(1.0), 0.0, 1.0)["epsilon"], 0.05)
    assert test.lower_bound == 0.0
    assert test.frontier == 0
    test.rejected[:5] = True
    test.rejected[7:] = True
    assert test.lower_bound == test.family.parameter[4]
    assert test.frontier == 5
    assert not test.refutes_claim
    # The claim falls just if the bound reaches it.
    claimed = test.family.claimed
    test.rejected[: claimed + 1] = True
    assert test.refutes_claim
    test.rejected[claimed] = False
    assert not test.refutes_claim
    test.rejected[:] = True
    assert test.refutes_claim
    assert test.lower_bound == test.family.parameter[-1]
    assert test.frontier == len(test.family) - 1


def gambled(test, rng):
    """Give the accounts some fortunes."""
    test._accounts += rng.normal(scale=3.0, size=test._accounts.shape)
    return test._accounts.copy()


def test_wealth_is_renewed_where_it_was_lost():
    """The wealth against each null stays; the eager account has its share, or more."""
    test = SequentialTest(coarse(PureDP(1.0)), ALPHA, renewed=0.6)
    events, hits = Events.single(0.0, (3, 1), (10, 10)), np.ones(1, dtype=int)
    before = gambled(test, np.random.default_rng(0))
    wealth = np.logaddexp.reduce(before, axis=0)
    poor = before[0] < wealth + np.log(0.6)
    assert 10 < poor.sum() < 50
    for renewed in (False, True):  # after 1996 releases, and after 2000
        size = 2 if renewed else 998
        place_bets([test], events, size, size, 10**4)
        nothing = np.zeros_like(test._placed.stakes)  # is won or lost
        test.place(replace(test._placed, stakes=nothing))
        test.update(hits, hits, size, size)
        np.testing.assert_allclose(np.logaddexp.reduce(test._accounts, axis=0), wealth)
        assert np.allclose(test._accounts, before) == (not renewed)
    np.testing.assert_allclose(test._accounts[:, ~poor], before[:, ~poor])
    np.testing.assert_allclose(test._accounts[0, poor], wealth[poor] + np.log(0.6))
    others = test._accounts[1:, poor] - before[1:, poor]
    np.testing.assert_allclose(others[0], others[1])


def test_a_family_without_the_claim_shares_nothing_and_refutes_nothing():
    family = families.families_for(GaussianDP(1.0), 1e-5, 1.0)["epsilon"]
    test = SequentialTest(family, ALPHA, shared=0.9)
    accounts = gambled(test, np.random.default_rng(0))
    np.testing.assert_allclose(test.log_wealth, np.logaddexp.reduce(accounts, axis=0))
    test.rejected[:] = True
    assert not test.refutes_claim
