import numpy as np
import pytest
from scipy.stats import norm

from dpaudit import ApproxDP, GaussianDP, Profile, PureDP
from dpaudit.audit.betting.events import Events, find_anchor
from dpaudit.audit.betting.evidence import Bets, PlacedBets
from dpaudit.audit.betting.families import families_for
from dpaudit.audit.betting.scores import ScoreRecord
from dpaudit.audit.betting.strategy import PlannedBets, best_share, plan_bets

CLAIMS = [
    *(PureDP(0.5), ApproxDP(1.0, 0.05), GaussianDP(1.0)),
    Profile((0.0, 1.0), (0.3, 0.05)),
]


def family_of(claim):
    return next(iter(families_for(claim, 0.05, 1.0).values()))


def past(shift, n, seed=0):
    """Events of Gaussian scores that are shifted on D."""
    record, rng = ScoreRecord(), np.random.default_rng(seed)
    for side in (0, 1):
        record.add(side, rng.normal(shift * (side == 0), 1.0, n))
    return record.events(0)


def plan_for(family, events, nulls, n_p=30, n_q=50):
    anchor, _ = find_anchor(family, events)
    return plan_bets(family, np.asarray(nulls), events, n_p, n_q, anchor)


def some_nulls(family):
    return np.unique(np.linspace(0, len(family) - 1, 9).astype(np.intp))


def a_plan(growth, worst=-0.5, scored=1000, eager=1.5, careful=7.5):
    """A plan with given growth rates whose bets can lose that much."""
    m = len(growth)
    on_p = np.tile([1.0, worst], (m, 1))
    return PlannedBets(
        np.zeros((m, 1), dtype=np.intp),
        Bets(on_p, on_p, np.zeros(m)),
        np.asarray(growth, dtype=float),
        np.full(m, scored),
        np.array([[eager], [careful]]) * np.ones(m),
    )


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize("shift", [0.0, 1.0, 4.0, -2.0])
def test_stakes_are_within_the_allowed(claim, shift):
    """In [0, largest), for every progress and deadline; 0 where nothing grows.

    And what they lose at most leaves a tenth of the wealth.
    """
    family = family_of(claim)
    for n in (10, 1000):
        plan = plan_for(family, past(shift, n), some_nulls(family))
        m = len(plan.events)
        bet = np.repeat(np.arange(m), 6)
        progress = np.tile([-1e4, -50.0, -3.0, -1e-9, 0.0, 5.0], m)
        largest = plan.bets.largest_stake()[bet]
        for remaining in (1, 100, 10**7):
            found = plan.stakes(bet, progress, remaining)
            for i in range(len(bet)):  # whoever is beside it
                alone = plan.stakes(bet[i : i + 1], progress[i : i + 1], remaining)
                assert alone[:, 0].tolist() == found[:, i].tolist()
            for stake in found:
                assert (stake >= 0).all()
                assert (stake < largest).all()
                assert (stake[plan.growth[bet] <= 0] == 0).all()
                assert np.isfinite(stake).all()
                for returns in (plan.bets.on_p[bet], plan.bets.on_q[bet]):
                    assert (1 + stake[:, np.newaxis] * returns >= 0.099).all()


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_flattery(claim):
    """Who is eager charges less, and nothing for a choice among few thresholds."""
    family = family_of(claim)
    for n in (10, 100, 10_000):
        plan = plan_for(family, past(1.2, n), some_nulls(family))
        eager, careful = plan.optimism
        assert (eager > 0).all()
        assert (eager < careful).all()
        if n == 10:
            np.testing.assert_array_equal(eager, eager[0])
        # Luck in the choice of the attack, and what was fitted: pooled, one number.
        fewest = 1 if isinstance(claim, GaussianDP) else 2
        assert (careful >= 0.4 + 2 * fewest).all()


def test_the_deadline_account_is_the_hedge_of_a_digital_option():
    """phi(Phi^-1(u)) / u standard deviations of what the remaining releases can bring.

    The stake t gives n releases of growth g the standard deviation t sqrt(2 g n).
    """
    plan, zero = a_plan([0.002]), np.zeros(1, dtype=int)
    for u in (1e-6, 0.01, 0.05, 0.5):
        for remaining in (10**4, 10**5):
            *_, stake = plan.stakes(zero, np.log([u]), remaining)
            deviation = stake[0] * np.sqrt(2 * 0.002 * remaining)
            assert deviation == pytest.approx(norm.pdf(norm.ppf(u)) / u, rel=1e-9)
    # Bounded however desperate.
    assert plan.stakes(zero, np.array([-500.0]), 1)[-1, 0] == pytest.approx(0.9 * 2)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_plans(claim):
    """Nested events, one bet for each null, cells that count every release once."""
    family, events = family_of(claim), past(1.2, 400)
    nulls = some_nulls(family)
    plan = plan_for(family, events, nulls)
    assert (np.diff(plan.events, axis=1) >= 0).all()
    assert plan.bets.on_p.shape == (len(nulls), plan.events.shape[1] + 1)
    assert (plan.scored == 800).all()
    placed = PlacedBets(plan.bets, nulls, plan.events, (400, 400), nulls, None)
    cells = placed.cells(events.hits[0], 400)
    assert (cells >= 0).all()
    assert (cells.sum(axis=1) == 400).all()
    # The more a null allows, the less there is to gain.
    if len(nulls) > 1:
        assert plan.growth[0] > 0
        assert plan.growth[-1] == 0


def test_growth_is_what_bets_gain_and_stakes_shrink_by_flattery():
    """Expected log return of stake 1, if the cells are as the past shows them."""
    family, events = family_of(GaussianDP(1.0)), past(2.0, 5000)
    plan = plan_for(family, events, [family.claimed], n_p=40, n_q=40)
    p, q = (
        np.diff(x[plan.events[0]], prepend=0.0, append=1.0)
        for x in (events.p, events.q)
    )
    gain = 0.5 * p @ np.log1p(plan.bets.on_p[0]) + 0.5 * q @ np.log1p(plan.bets.on_q[0])
    assert plan.growth[0] == pytest.approx(gain - plan.bets.slack[0], rel=0.1)
    # James-Stein: 1 - c/z^2, with z^2 = 2 * n * 0.01 seen in the past.
    zero = np.zeros(1, dtype=int)
    for n in (10, 1000, 10**6):
        for c in (0.0, 1.0, 19.0, 20.0, 500.0):
            plan = a_plan([0.01], eager=c / 2, careful=c, scored=n)
            eager, careful, _ = plan.stakes(zero, np.array([-3.0]), 100)[:, 0]
            assert eager == pytest.approx(max(1 - 50 * c / (2 * n), 0))
            assert careful == pytest.approx(max(1 - 50 * c / n, 0))


def growth_at(family, events, share):
    """Return the growth of the best event against the claim at a share."""
    n_p = round(share * 1000)
    plan = plan_bets(
        family, np.array([family.claimed]), events, n_p, 1000 - n_p, family.claimed
    )
    return plan.growth[0]


@pytest.mark.parametrize("flipped", [False, True])
def test_the_rare_side_gets_more_releases(flipped):
    """At epsilon = 6 an event of probability 1/2 on D may have 0.0012 on D'."""
    family = family_of(PureDP(6.0))
    hits = (5000, 2) if not flipped else (2, 5000)
    events = Events.single(0.0, hits, (10_000, 10_000))
    share = best_share(family, family.claimed, events)
    assert share > 0.5 if flipped else share < 0.5
    assert growth_at(family, events, share) > 1.1 * growth_at(family, events, 0.5)


@pytest.mark.parametrize("hits", [(1, 0), (10, 0), (0, 10), (0, 0), (10, 10), (5, 5)])
def test_tiny_pasts_do_no_harm(hits):
    for claim in CLAIMS:
        family = family_of(claim)
        events = Events.single(0.0, hits, (10, 10))
        plan = plan_for(family, events, some_nulls(family), 1, 1)
        assert np.isfinite(plan.growth).all()
        for x in (plan.bets.on_p, plan.bets.on_q, plan.bets.slack):
            assert np.isfinite(x).all()
        assert 0 < best_share(family, int(family.claimed), events) < 1


def test_a_planned_bet_is_the_best_of_its_chains_in_shares_that_help():
    """Never worse, but for the handicap of forward selection, than one event alone."""
    family, events = family_of(GaussianDP(1.0)), past(2.0, 5000)
    null = np.array([family.claimed])
    plan = plan_for(family, events, null, 50, 50)
    best = 0.0
    for place in range(len(events)):
        one = events.take([place])
        alone = plan_bets(family, null, one, 50, 50, family.claimed)
        best = max(best, alone.growth[0])
    assert plan.growth[0] > best > 0
    family = family_of(PureDP(0.5))
    events = Events.single(0.0, (700, 300), (1000, 1000))
    assert best_share(family, family.claimed, events) == 0.5
    # Nothing is violated: nothing grows at any share.
    events = Events.single(0.0, (500, 500), (1000, 1000))
    assert best_share(family, family.claimed, events) == 0.5
