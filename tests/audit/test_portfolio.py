from types import SimpleNamespace

import numpy as np
import pytest
from audit_cases import PAIR

from dpaudit import MechanismError, PureDP, Relation
from dpaudit.attacks import (
    Abnormal,
    Attack,
    ExactLoss,
    Identity,
    LogisticClassifier,
    MeanShift,
    Target,
)
from dpaudit.attacks.base import flatten
from dpaudit.audit.canonical import Canon
from dpaudit.audit.game.fitted import CandidateAttack, FittedAttack
from dpaudit.audit.game.portfolio import Portfolio
from dpaudit.audit.sampling.sampler import DATA, NEIGHBOUR
from dpaudit.batches import Batch
from dpaudit.outputs import Output

NOBODY = np.empty(0, dtype=np.intp)
LAYOUT = "numbers"


class Laplace:
    """The Laplace mechanism with its exact loss, as anybody would write it."""

    claim = PureDP(1.0)
    relation = Relation.ADD_REMOVE

    def draw(self, data, size, *, rng):
        return data.sum() + rng.laplace(size=size)

    def release(self, data, *, rng):
        return self.draw(data, 1, rng=rng)[0]

    def privacy_loss(self, releases, data, other):
        return np.abs(releases - other.sum()) - np.abs(releases - data.sum())


def black_box(data, rng):
    raise AssertionError("portfolios do not draw releases")


TARGET = Target(black_box, PAIR)


def ordinary(values):
    numbers = np.asarray(values, dtype=np.float64)
    return Batch.of(Output(LAYOUT, numbers))


def absorb(portfolio, side, batch, events):
    """Read and note a batch, as a round does."""
    seen = portfolio.reading()(side, int(portfolio.seen[side]), batch)
    return portfolio.note(side, seen, events)


def labelled(layouts, values=()):
    """Return outputs of these layouts; those of '' are numbers."""
    numbers = iter(values)
    return Batch.gather(
        [
            Output(layout, None) if layout else Output(LAYOUT, np.array(next(numbers)))
            for layout in layouts
        ]
    )


def both_sides(mechanism, size, rng):
    return [
        ordinary(mechanism.draw(data, size, rng=rng))
        for data in (PAIR.data, PAIR.neighbour)
    ]


def fit(attack, on_data, on_neighbour, target=TARGET):
    layout = "" if attack.reads == "outputs" else LAYOUT
    return FittedAttack.fit(attack, target, on_data, on_neighbour, layout)


def begun(attacks, on_data, on_neighbour, target=TARGET):
    portfolio = Portfolio(target, attacks)
    portfolio.begin(on_data, on_neighbour)
    return portfolio


def test_dust_is_no_evidence_and_grids_have_offsets_that_are_drawn():
    """Where the loss is +-1 exactly, its last bits differ between D and D'."""
    rng = np.random.default_rng(0)
    mechanism, target = Laplace(), Target(Laplace(), PAIR)
    on_data, on_neighbour = both_sides(mechanism, 5000, rng)
    raw = mechanism.privacy_loss(on_data.numbers(LAYOUT), PAIR.data, PAIR.neighbour)
    fitted = fit(ExactLoss(), on_data, on_neighbour, target)
    near = np.abs(raw - 1) < 1e-6
    assert len(np.unique(raw[near])) > 1
    assert len(np.unique(fitted.score(target, on_data)[near])) == 1
    # A score that lies on a boundary of some grid lies on that of few: 2^-22 each.
    rng = np.random.default_rng(0)
    sides = ordinary(rng.normal(size=20)), ordinary(rng.normal(size=20))
    for seed in range(10):
        portfolio = Portfolio(TARGET, [Identity()], Canon(seed, 0))
        portfolio.begin(*sides)
        portfolio.prepare()
        fitted = portfolio.fitted(0)
        at = (np.arange(64) / 64 + 1) * fitted.resolution
        some = ordinary(at)
        below = fitted.rounded(some, np.nextafter(at, 0))
        np.testing.assert_array_equal(fitted.rounded(some, at), below)


def test_nan_scores_are_lowest_and_company_is_refused():
    class Broken(Laplace):
        def privacy_loss(self, releases, data, other):
            return np.full(len(releases), np.nan)

    target = Target(Broken(), PAIR)
    fitted = fit(ExactLoss(), ordinary([0, 0]), ordinary([1, 1]), target)
    assert (fitted.score(target, ordinary([0, 0])) == -np.inf).all()
    noise = [ordinary(np.random.default_rng(0).normal(size=20)) for _ in range(2)]
    with pytest.raises(MechanismError, match=r"'centring' scores .* by itself"):
        begun([Centring()], *noise).prepare()


def test_other_layouts_score_lowest_where_one_is_read():
    fitted = fit(Identity(), ordinary([1, 2]), ordinary([3, 4]))
    mixed = labelled(["", "raises KeyError", ""], [5, 6])
    assert fitted.score(TARGET, mixed).tolist() == [5, -np.inf, 6]
    nothing = labelled(["raises KeyError"] * 2)
    assert fitted.score(TARGET, nothing).tolist() == [-np.inf, -np.inf]
    sides = labelled(["no"] * 9 + [""], [1.0]), ordinary(np.ones(10))
    fitted = fit(Abnormal(), *sides)
    scores = fitted.score(TARGET, labelled(["", "no", "other"], [1.0]))
    assert scores[1] > scores[2] > scores[0]
    assert len(set(fitted.score(TARGET, ordinary(np.ones(5))))) == 1


@pytest.mark.parametrize("scale", [1e-290, 1e-12, 1.0, 1e12, 1e300])
def test_resolution_follows_the_scale_of_the_scores(scale):
    sides = ordinary(scale * np.zeros(5)), ordinary(scale * np.ones(5))
    fitted = fit(Identity(), *sides)
    assert 0 < fitted.resolution <= 1e-9 * scale
    raw = scale * np.linspace(-3, 3, 50)
    rounded = fitted.score(TARGET, ordinary(raw))
    np.testing.assert_allclose(rounded, raw, atol=1e-9 * scale)


@pytest.mark.parametrize("largest", [0.0, 5e-324, 1e-310, 2.3e-308, np.inf])
def test_resolution_is_never_zero(largest):
    """Not even where the scores are subnormal; warnings are errors here."""
    fitted = fit(Identity(), ordinary([0.0, largest]), ordinary([0.0, 0.0]))
    assert fitted.resolution > 0
    assert not np.isnan(fitted.score(TARGET, ordinary([0.0, largest, -1.0]))).any()


class Memorising(Attack):
    """Knows again what it has learned from, and nothing else."""

    name = "memorising"
    learns = True

    def applies(self, target, releases):
        return True

    def fit(self, target, on_data, on_neighbour):
        return {"on_data": on_data, "on_neighbour": on_neighbour}

    def score(self, target, parameters, releases):
        known = [np.isin(releases, side) for side in parameters.values()]
        return known[0].astype(float) - known[1]


def test_learned_attacks_are_judged_on_what_they_did_not_learn_from():
    """By cross-fitting; after a refit on fresh releases these, too."""
    rng = np.random.default_rng(1)
    portfolio = begun(
        [Memorising()], *(ordinary(rng.normal(size=16)) for _ in range(2))
    )
    events = portfolio.prepare()
    assert np.max(np.abs(events.p - events.q), initial=0.0) == 0.0
    for size in (16, 40, 100):
        portfolio.trust(events, np.arange(len(events)))
        for side in (DATA, NEIGHBOUR):
            absorb(portfolio, side, ordinary(rng.normal(size=size)), events)
        events = portfolio.prepare()
        assert np.max(np.abs(events.p - events.q), initial=0.0) == 0.0


def test_learned_attacks_wait_when_others_apply():
    class Known(Laplace):
        sensitivity = None

        def statistic(self, data):
            return data.sum()

    noise = ordinary(np.arange(20.0)), ordinary(np.arange(20.0) + 1)
    target = Target(Known(), PAIR)
    alone = begun([LogisticClassifier()], *noise, target).prepare()
    assert set(alone.attack.tolist()) == {0}
    portfolio = begun([MeanShift(), LogisticClassifier()], *noise, target)
    assert set(portfolio.prepare().attack.tolist()) == {0}
    absorb(portfolio, DATA, ordinary(np.arange(400.0)), portfolio.prepare())
    absorb(portfolio, NEIGHBOUR, ordinary(np.arange(400.0) + 1), portfolio.prepare())
    assert set(portfolio.prepare().attack.tolist()) == {0, 1}


def test_no_attack_is_fitted_again_for_the_last_releases():
    """But one that has no fit is."""
    noise = ordinary(np.arange(20.0)), ordinary(np.arange(20.0) + 1)
    fits = []
    for ending in (False, True):
        portfolio = begun([LogisticClassifier()], *noise)
        events = portfolio.prepare()
        portfolio.ending = ending
        for side in (DATA, NEIGHBOUR):
            absorb(portfolio, side, ordinary(np.arange(400.0) + side), events)
        portfolio.prepare()
        fits.append(portfolio._candidates[0].fitted_on)
        fresh = Portfolio(TARGET, [LogisticClassifier()])
        fresh.ending = ending
        fresh.begin(*noise)
        assert len(fresh.prepare())
    assert fits == [420, 20]


@pytest.mark.parametrize("telling", [False, True])
def test_a_dear_attack_rests_once_another_tells_more(telling):
    class Sign(Identity):
        learns = dear = True

        def score(self, target, parameters, releases):
            return np.sign(releases) if telling else np.abs(releases)

    class Remainder(Identity):
        def score(self, target, parameters, releases):
            return releases % 1.0 if telling else releases

    rng = np.random.default_rng(0)

    def sides(size):
        return [ordinary(rng.normal(shift, size=size)) for shift in (0.5, 0.0)]

    portfolio = begun([Remainder(), Sign()], *sides(1000))
    fitted = []
    for more in (1000, 2000, 4000, 8000, 120_000):
        events = portfolio.prepare()
        fitted.append(portfolio._candidates[1].fitted_on)
        portfolio.trust(events, np.empty(0, dtype=int))
        for side, batch in enumerate(sides(more)):
            absorb(portfolio, side, batch, events)
    portfolio.prepare()
    fitted.append(portfolio._candidates[1].fitted_on)
    # It has another trial at last, though the pool has ended.
    assert portfolio._pool_limit < 64 * 1000
    expected = [1000, 1000, 4000, 4000, 16000] if telling else [1000] * 5
    assert fitted == [*expected, 16000 if telling else portfolio._pool_limit]


def test_dear_attacks_wait_and_exact_losses_stand_alone_unless_beaten():
    portfolio = Portfolio(TARGET, [LogisticClassifier()])
    noise = ordinary(np.arange(20.0)), ordinary(np.arange(20.0) + 1)
    portfolio.begin(*noise, screens=True)
    assert not len(portfolio.prepare())
    assert len(portfolio.prepare(screens=False))
    # With few releases nobody can know that it is wrong; then the others join.
    assert offered(Laplace(), 20) == {1}
    assert offered(Laplace(), 1000) == {1}
    assert offered(LaplaceWithAWrongLoss(), 10) == {1}
    assert offered(LaplaceWithAWrongLoss(), 1000) == {0, 1}


def test_hits_equal_a_recount():
    rng = np.random.default_rng(1)
    mechanism, target = Laplace(), Target(Laplace(), PAIR)
    attacks = [Identity(), Identity(), Memorising()]
    portfolio = begun(attacks, *both_sides(mechanism, 200, rng), target)
    events = portfolio.prepare()
    assert set(events.attack.tolist()) >= {0, 1}
    for side in (DATA, NEIGHBOUR):
        fresh = both_sides(mechanism, 30, rng)[side]
        hits = absorb(portfolio, side, fresh, events)
        scores = [portfolio.fitted(i).score(target, fresh) for i in range(len(attacks))]
        assert hits.tolist() == [
            (scores[attack] >= threshold).sum()
            for attack, threshold in zip(events.attack, events.threshold, strict=True)
        ]
    assert portfolio.seen.tolist() == [230, 230]


class Spy(Attack):
    """Notes how many releases it was asked to score, and to learn from."""

    name = "spy"
    learns = False

    def __init__(self):
        self.scored, self.fits = 0, []

    def applies(self, target, releases):
        return True

    def fit(self, target, on_data, on_neighbour):
        self.fits.append(len(flatten(on_data)))
        return {}

    def score(self, target, parameters, releases):
        numbers = flatten(releases)[:, 0]
        self.scored += len(numbers)
        return numbers


def scored_by(portfolio, events, attack):
    """Return how many outputs on D the attack scored."""
    place = int(np.flatnonzero(events.attack == attack)[0])
    return portfolio.counts(events, place)[1]


def test_idle_attacks_stop_scoring_after_the_trial():
    rng = np.random.default_rng(3)
    spies = [Spy(), Spy()]
    portfolio = begun(spies, *(ordinary(rng.normal(size=600)) for _ in range(2)))
    events = portfolio.prepare()
    idle, used = [], []
    for round_ in range(6):
        portfolio.trust(events, np.flatnonzero(events.attack == 1))
        before = [spy.scored for spy in spies]
        hits = [
            absorb(portfolio, side, ordinary(rng.normal(size=300)), events)
            for side in (DATA, NEIGHBOUR)
        ]
        idle.append(spies[0].scored - before[0])
        used.append(spies[1].scored - before[1])
        assert hits[0][events.attack == 1].any()
        if round_ == 2:
            # Idle ones are known from fewer scores, and say so.
            events = portfolio.prepare()
            scored = {a: scored_by(portfolio, events, a) for a in (0, 1)}
            assert scored == {0: 1200, 1: 1500}
    assert idle == [600, 600, 0, 0, 0, 0]
    assert used == [600] * 6
    events = portfolio.prepare()
    assert {scored_by(portfolio, events, a) for a in (0, 1)} == {2400}
    # Somebody who bets on it again sets it to work again.
    portfolio.trust(events, np.flatnonzero(events.attack == 0))
    absorb(portfolio, DATA, ordinary(rng.normal(size=300)), events)
    events = portfolio.prepare()
    assert scored_by(portfolio, events, 0) == 2700


def test_sufficient_attacks_are_never_idle_and_memory_is_bounded():
    """Chance decides whom the first bets trust, and must not dismiss the best."""
    rng = np.random.default_rng(3)
    spies = [Spy(), Spy()]
    spies[0].sufficient = True
    portfolio = begun(spies, *(ordinary(rng.normal(size=600)) for _ in range(2)))
    events = portfolio.prepare()
    portfolio.trust(events, np.flatnonzero(events.attack == 1))
    before = spies[0].scored
    for _ in range(4):
        absorb(portfolio, DATA, ordinary(rng.normal(size=300)), events)
    assert spies[0].scored - before == 4 * 300
    rng = np.random.default_rng(2)
    spy = HungrySpy()
    portfolio = begun([spy], *(ordinary(rng.normal(size=50)) for _ in range(2)))
    for _ in range(10):
        events = portfolio.prepare()
        portfolio.trust(events, np.arange(len(events)))
        for side in (DATA, NEIGHBOUR):
            absorb(portfolio, side, ordinary(rng.normal(size=20_000)), events)
    assert max(spy.fits) == 2**12 // 32
    assert portfolio.seen.tolist() == [200_050, 200_050]
    # Nothing was refitted since the pool was full: all later scores are remembered.
    assert (portfolio.prepare().scored >= 180_000).all()


def offered(mechanism, size):
    rng, target = np.random.default_rng(5), Target(mechanism, PAIR)
    attacks = [Identity(), ExactLoss()]
    events = begun(attacks, *both_sides(mechanism, size, rng), target).prepare()
    return set(events.attack.tolist())


class LaplaceWithAWrongLoss(Laplace):
    """Its loss tells next to nothing of the pair."""

    def privacy_loss(self, releases, data, other):
        return np.cos(50 * releases)


def test_attacks_on_whole_outputs_join_when_another_layout_turns_up():
    rng = np.random.default_rng(4)
    portfolio = begun(
        [Identity(), Abnormal()], *(ordinary(rng.normal(size=10)) for _ in range(2))
    )
    for _ in range(30):
        events = portfolio.prepare()
        assert set(events.attack.tolist()) == {0}
        portfolio.trust(events, NOBODY)
        for side in (DATA, NEIGHBOUR):
            absorb(portfolio, side, ordinary(rng.normal(size=100)), events)
    late = labelled(["raises KeyError"] * 60 + [""] * 40, rng.normal(size=40))
    absorb(portfolio, DATA, late, events)
    events = portfolio.prepare()
    assert set(events.attack.tolist()) == {0, 1}
    names = [portfolio.fitted(index).attack.name for index in (0, 1)]
    assert names == ["identity", "abnormal"]
    # What it learned then tells in what comes next.
    scores = [
        portfolio.fitted(1).score(TARGET, batch)
        for batch in (late, ordinary(rng.normal(size=100)))
    ]
    assert (scores[0] > scores[1].max()).sum() == 60


def test_attacks_on_numbers_wait_for_some_and_others_are_asked_again():
    words = labelled(["value 'no'"] * 10)
    portfolio = begun([Identity(), Abnormal()], words, words)
    events = portfolio.prepare()
    assert set(events.attack.tolist()) <= {0}
    mixed = labelled(["value 'no'", ""] * 30, np.arange(30.0))
    for side in (DATA, NEIGHBOUR):
        absorb(portfolio, side, mixed, events)
    events = portfolio.prepare()
    assert {portfolio.fitted(int(a)).attack.name for a in events.attack} >= {"identity"}
    rng = np.random.default_rng(0)
    portfolio = begun([LateSpy()], *(ordinary(rng.normal(size=60)) for _ in range(2)))
    events = portfolio.prepare()
    assert not len(events)
    for side in (DATA, NEIGHBOUR):
        absorb(portfolio, side, ordinary(rng.normal(size=300)), events)
    assert len(portfolio.prepare())


class LateSpy(Spy):
    """Applies to many outputs only."""

    def applies(self, target, releases):
        return len(flatten(releases)) >= 500


class HungrySpy(Spy):
    learns = True
    appetite = 2**12  # releases of one number count as if they had 32


class Centring(Attack):
    """Takes the mean of whatever it is given."""

    name = "centring"
    learns = False

    def applies(self, target, releases):
        return True

    def score(self, target, parameters, releases):
        return releases - releases.mean()


@pytest.mark.parametrize(
    ("fitted_on", "rival", "rests"),
    [
        (400, 9.0, False),
        (600, 1.05, False),
        (600, 1.15, True),
        (1200, 1.05, True),
        (1200, 0.95, False),
    ],
)
def test_a_dear_attack_rests_that_is_clearly_beaten(fitted_on, rival, rests):
    """By a standard error of .1 after a short trial, by anything after a long one."""
    known = {"in_use": False, "attack": SimpleNamespace(dear=True), "layout": "float"}
    mine = SimpleNamespace(fitted_on=fitted_on, separation=(1.0, 0.1), **known)
    other = SimpleNamespace(layout="float", separation=(rival, 0.1))
    another = SimpleNamespace(layout="int", separation=(9.0, 0.1))
    assert CandidateAttack.adds_nothing(mine, [mine, other, another]) == rests
