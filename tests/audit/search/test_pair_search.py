"""The search among pairs, in simulated worlds: it finds, it climbs, it is frugal.

And glue that only some datasets show: a search with a domain alone refutes it. Every
claim there is false, so a test fails by chance only if evidence is slow; seeded.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused, refuses

from dpaudit import MechanismError, Pair, PureDP
from dpaudit.attacks import Identity
from dpaudit.audit import Run, audit, replay
from dpaudit.audit.search.pair_search import PairSearch
from dpaudit.audit.search.proposals import Proposals
from dpaudit.domains import Box, UnitBall


class FixedPairs:
    """Arm i adds the number i + 1; there is nothing beyond the first pairs."""

    endless = False

    def __init__(self, count):
        self.count = count

    def first(self):
        return [Pair([0.0], [0.0, i + 1.0]) for i in range(self.count)]


def added(pair):
    return pair.neighbour[-1]


def play(search, value, total, *, seed=0):
    """Play `total` releases in rounds that grow as an audit's; return the rounds.

    Evidence on a pair grows by ``value(pair)`` per release: after n of them z is a
    normal variable around sqrt(2 n value), and z sqrt(n) has independent increments.
    """
    rng = np.random.default_rng(seed)
    walks = {}
    played, rounds = 0, []
    while played < total:
        size = min(max(4, math.ceil(0.15 * played)), total - played)
        arm, used, bets = search.next_round(size)
        assert 1 <= used
        assert used <= size or not bets
        used = min(used, total - played)
        rate = value(search.pair(arm))
        drift = math.copysign(math.sqrt(2 * abs(rate)), rate)
        n, walk = walks.get(arm, (0, 0.0))
        n, walk = n + used, walk + drift * used + math.sqrt(used) * rng.normal()
        walks[arm] = n, walk
        search.report(arm, walk / math.sqrt(n), used)
        rounds.append((arm, used))
        played += used
    return rounds


def test_the_best_of_forty_arms_is_found():
    """In 8 or more of 20 worlds; the others lie 0.03 to 0.11 below.

    It is found in 0.87 of all worlds, so other seeds fail with probability 1e-7.
    """
    total = 20_000
    found = 0
    for seed in range(20):
        values = np.random.default_rng(seed).uniform(-0.05, 0.03, 40)
        values[2 * seed] = 0.06
        search = PairSearch(FixedPairs(40), seed)
        value = dict(enumerate(values, start=1))
        rounds = play(search, lambda p, v=value: v[added(p)], total, seed=seed)
        found += search.best() == 2 * seed
        assert len(rounds) <= 300
        assert search.explored <= total / 3
    assert found >= 8


def test_a_loud_arm_gets_most_releases_and_a_good_first_one_two_thirds():
    search = PairSearch(FixedPairs(40), 0)
    rounds = play(search, lambda pair: 1.0 * (added(pair) == 30), 5000)
    assert search.best() == 29
    assert sum(size for arm, size in rounds if arm == 29) >= 2400
    first = next(i for i, (arm, _) in enumerate(rounds) if arm == 29)
    # 29 probes before it are a third of the releases, but for one round of the rest.
    assert sum(size for _, size in rounds[:first]) <= 1.15 * 3 * 16 * 30
    search = PairSearch(FixedPairs(40), 0)
    rounds = play(search, lambda pair: 1.0 * (added(pair) == 1), 3000)
    assert rounds[0][0] == 0
    on_best = np.cumsum([size * (arm == 0) for arm, size in rounds])
    total = np.cumsum([size for _, size in rounds])
    assert (on_best >= total * 2 / 3 - 1).all()


def test_arms_that_may_be_better_are_looked_at_again_and_others_left_alone():
    """Nothing is violated: exploring goes on, on all arms alike."""
    search = PairSearch(FixedPairs(5), 0)
    rounds = play(search, lambda pair: 0.0, 20_000)
    assert search.explored >= 0.25 * 20_000
    played = [sum(size for arm, size in rounds if arm == i) for i in range(5)]
    assert min(played) >= 500
    assert len(rounds) <= 200
    search = PairSearch(FixedPairs(5), 0)
    play(search, lambda pair: 1.0 * (added(pair) == 1), 20_000)
    assert search.explored <= 5 * 64
    assert search.live == set(range(5))


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ((2.0, 10), (3.0, 1000)),  # growth 0.2 against 0.0045
        ((8.0, 1000), (1.0, 16)),  # 0.032 from much against 0.031 from little
        ((-10.0, 1000), (-3.0, 10)),  # inside by 0.05 against 0.45
        ((0.0, 1000), (0.0, 10)),
    ],
)
def test_the_best_arm_has_the_largest_cautious_growth(better, worse):
    for order in ((better, worse), (worse, better)):
        search = PairSearch(FixedPairs(2), 0)
        for arm, (z, releases) in enumerate(order):
            search.report(arm, z, releases)
        assert order[search.best()] == better


@given(
    st.integers(1, 40),
    st.lists(st.tuples(st.floats(-30, 30), st.integers(1, 500)), max_size=60),
    st.sampled_from([0.1, 1 / 3, 0.7]),
)
def test_exploring_never_takes_more_than_its_share(count, reports, share):
    search = PairSearch(FixedPairs(count), 0, share=share)
    total = 0
    for score, size in reports:
        arm, used, bets = search.next_round(size)
        assert 1 <= used
        assert used <= size or not bets
        assert arm in search.live
        search.report(arm, score, used)
        total += used
        assert search.explored <= share * total
        assert search.best() in search.live


@pytest.mark.parametrize("domain", [Box(0, 1, 2), UnitBall(3)])
def test_ascent_climbs_a_smooth_landscape(domain):
    """The best of the first pairs is at 0.074; the summit 0.1 lies between them."""
    target = np.array([0.8, 0.3, 0.0][: domain.shape[0]])

    def value(pair):
        gap = pair.neighbour[-1] - target
        return 0.1 - 0.2 * float(gap @ gap) - 0.02 * (len(pair.data) > 0)

    reached = []
    for seed in range(5):
        source = Proposals(lambda data, rng: 0.0, domain, "add-remove", seed)
        assert max(map(value, source.first())) < 0.075
        search = PairSearch(source, seed)
        rounds = play(search, value, 100_000, seed=seed)
        reached.append(value(search.pair(search.best())))
        assert len(rounds) <= 800
        assert search.explored <= 100_000 / 3
    assert np.median(reached) > 0.09


def test_random_pairs_are_tried_arms_stay_few_and_the_seed_decides():
    def played():
        source = Proposals(lambda data, rng: 0.0, Box(0, 1, 3), "replace-one", 3)
        search = PairSearch(source, 3, limit_arms=20)
        assert len(search.live) == 20
        rounds = play(search, lambda pair: float(pair.neighbour.sum()) / 1e3, 20_000)
        assert len({arm for arm, _ in rounds}) > 30
        assert len(search.live) <= 20
        return rounds

    assert played() == played()


def test_refused_pairs_are_left_alone_and_bets_wait_for_known_ones():
    search = PairSearch(FixedPairs(5), 0)
    played = []
    for _ in range(100):
        arm, size, _ = search.next_round(20)
        played.append(arm)
        refused = arm in (0, 2)
        search.report(arm, -math.inf if refused else -1.0, 0 if refused else size)
    assert played.count(0) == played.count(2) == 1
    assert search.live == {1, 3, 4}
    assert search.best() in search.live
    for arm in (1, 3, 4):
        search.report(arm, -math.inf, 0)
    refuses("refuses all 5 pairs", search.next_round, 10, error=MechanismError)
    search = PairSearch(FixedPairs(2), 0)
    search.next_round(10_000)
    search.report(0, -50.0, 10_000)
    probe = search.next_round(10_000)
    search.report(1, 5.0, probe.size)
    assert search.next_round(10_000) == (1, (10_000 + probe.size) // 40 - 16, False)
    search = PairSearch(FixedPairs(1), 0)
    for size in (4, 4, 1000, 10**6):
        assert search.next_round(size) == (0, size, True)
        search.report(0, -1.0, size)
    assert search.explored == 0
    assert search.best() == 0
    assert search.live == {0}


test_bad_reports_are_named = refused(
    ((7, 0.0, 1), "arm must be an integer"),
    ((0, math.nan, 1), "score must be finite or -inf, got nan"),
    ((0, math.inf, 1), "score must be finite or -inf, got inf"),
    ((0, 0.0, 0), "releases must be an integer >= 1"),
    by=lambda report: PairSearch(FixedPairs(2), 0).report(*report),
)


test_bad_options_are_named = refused(
    (2, {"share": 0.0}, "share must be in"),
    (2, {"limit_arms": 3}, "limit_arms must be an integer >= 16"),
    (0, {}, "source must propose a pair"),
    by=lambda pairs, options: PairSearch(FixedPairs(pairs), 0, **options),
)


def beyond_the_quartiles(x, rng):
    v = np.ravel(x)
    if len(v) >= 4:
        low, high = np.quantile(v, [0.25, 0.75])
        reach = 1.5 * (high - low)
        v = v[(v >= low - reach) & (v <= high + reach)]
    return v.sum() + rng.laplace(scale=1.0)


def scale_of_the_largest_length(x, rng):
    largest = np.linalg.norm(x, axis=1).max() if len(x) else 1.0
    return x[:, 0].sum() + rng.laplace(scale=largest)


def median(x, rng):
    """It moves by a whole unit only between two balanced camps."""
    return (np.median(x) if len(x) else 0.5) + rng.laplace(scale=0.25)


CASES = [
    (median, "scalar:0,1", "replace-one"),
    (beyond_the_quartiles, "scalar:0,1:rows=20", "add-remove"),
    (scale_of_the_largest_length, "ball:2", "add-remove"),
]


@pytest.mark.parametrize(
    ("mechanism", "domain", "relation"), CASES, ids=[case[0].__name__ for case in CASES]
)
def test_a_search_finds_the_pair(mechanism, domain, relation):
    where = {"domain": domain, "relation": relation, "claim": PureDP(1.0)}
    run = Run(attacks=[Identity()])
    assert audit(mechanism, **where, run=run, budget=6000, seed=1).refuted


def beyond_deviations(x, rng):
    v = np.ravel(x)
    near = np.abs(v - v.mean()) <= 3 * v.std() if len(v) else v > 0
    return v[near].sum() + rng.laplace(scale=1.0)


@pytest.mark.parametrize("mechanism", [beyond_the_quartiles, beyond_deviations])
def test_one_outlier_more_lets_all_of_them_pass_in_few_rows(mechanism):
    where = {"domain": "box:0,1:1", "relation": "add-remove"}
    result = replay(mechanism, **where, claim=PureDP(1.0))
    assert result.proof
    assert result.loss == pytest.approx(2.0)
