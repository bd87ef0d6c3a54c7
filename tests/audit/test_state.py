from dataclasses import replace
from itertools import pairwise

import pytest
from audit_cases import PAIR, SETTINGS, laplace_sum
from refusals import refused, refuses

from dpaudit import InputError, MechanismError, Pair, PureDP
from dpaudit.attacks import Identity
from dpaudit.audit import Budget
from dpaudit.audit.betting.families import families_for
from dpaudit.audit.game.pair_audit import PairAudit
from dpaudit.audit.game.state import AuditState
from dpaudit.audit.sampling.sampler import DATA, NEIGHBOUR
from dpaudit.audit.search.pair_search import PairSearch
from dpaudit.audit.summary import strongest_event

OTHER = Pair([5.0], [5.0, 1.0])


class Pairs:
    """Some pairs, and none beyond them."""

    endless = False

    def __init__(self, *pairs):
        self._pairs = pairs

    def first(self):
        return self._pairs

    def random(self, rng):
        raise AssertionError("there are no others")

    def ascend(self, pair, scale, rng):
        raise AssertionError("there are no others")


def half_laplace_sum(data, rng):
    return data.sum() + rng.laplace(scale=0.5)


def audit_of(mechanism, *pairs, claim=1.0, budget=500, seed=0):
    settings = replace(
        SETTINGS,
        claim=PureDP(claim),
        budget=Budget.of(budget),
        seed=seed,
        attacks=(Identity(),),
    )
    return AuditState(mechanism, PairSearch(Pairs(*(pairs or [PAIR])), seed), settings)


def play(state):
    return list(state.rounds())


@pytest.mark.parametrize("budget", [2, 3, 7, 40])
def test_the_budget_is_spent_and_no_more(budget):
    state = audit_of(laplace_sum, budget=budget)
    told = play(state)
    assert state.samples == budget
    assert 2 * budget - 1 <= state.drawn.sum() <= 2 * budget
    samples = [s for s, _ in told]
    assert samples == sorted(set(samples))
    assert samples[-1] == budget


def test_lower_bounds_only_rise_and_sampling_stays_even():
    told = play(audit_of(half_laplace_sum, budget=Budget(600, stop=False)))
    bounds = [bound for _, bound in told]
    assert bounds == sorted(bounds)
    assert 0.5 < bounds[-1] <= 2
    state = audit_of(laplace_sum, budget=200)
    play(state)
    assert state.drawn.tolist() == [200, 200]


def test_sampling_is_uneven_where_needed_and_pairs_play_for_the_same_wealth():
    """A bit that is rare on D', and not on D; epsilon is log(300)."""
    calls = {1: 0, 2: 0}

    def counted(data, rng):
        calls[len(data)] += 1
        return float(rng.random() < (0.3 if len(data) == 1 else 0.001))

    counted.seedable = False  # or some would be drawn again, to be compared
    state = audit_of(counted, claim=5.0, budget=3000)
    play(state)
    assert state.drawn.tolist() == [calls[1], calls[2]]
    assert state.drawn[NEIGHBOUR] > 1.5 * state.drawn[DATA]
    assert state.samples <= 3000
    assert state.samples == -(-state.drawn.sum() // 2)

    # A search among pairs of which one is bad finds it, and leaves the others.
    def mechanism(data, rng):
        return data.sum() + rng.laplace(scale=0.3 if data.max() >= 5 else 1.0)

    state = audit_of(mechanism, PAIR, OTHER, budget=3000)
    play(state)
    assert state.verdict.refutes_claim
    assert state.pairs == 2
    pair_audit, events = state.best()
    assert pair_audit.target.pair is OTHER
    strongest = strongest_event(state, pair_audit, events)
    hits, scored, hits_neighbour, scored_neighbour = strongest.counts
    assert abs(hits / scored - hits_neighbour / scored_neighbour) > 0.2


@pytest.mark.parametrize("error", [ZeroDivisionError, InputError("n must be >= 5")])
def test_pairs_that_fail_or_are_refused_are_left_to_themselves(error):
    def fails_on_small(data, rng):
        if data.max() < 5:
            raise error
        return laplace_sum(data, rng)

    state = audit_of(fails_on_small, PAIR, OTHER, budget=40)
    play(state)
    assert state.samples == 40
    assert state.pairs == 1
    assert state.best()[0].target.pair is OTHER
    assert not state.verdict.refutes_claim


@pytest.mark.parametrize("pairs", [(PAIR,), (PAIR, OTHER)])
def test_an_error_that_leaves_no_pair_is_raised(pairs):
    def fails(data, rng):
        raise ZeroDivisionError

    with pytest.raises(MechanismError, match="raises ZeroDivisionError on both data"):
        play(audit_of(fails, *pairs))


def test_wrong_lengths_are_raised_and_pairs_have_streams_of_their_own():
    class Tiring:
        calls = 0

        def draw(self, data, size, *, rng):
            self.calls += 1
            return rng.laplace(size=size - (self.calls > 8))

    refuses("releases instead of", play, audit_of(Tiring()), error=MechanismError)
    # Else what one pair shows by chance, the others show too, and none is new.
    drawn = {}

    def noted(data, rng):
        number = rng.random()
        drawn.setdefault(data.max(), set()).add(number)
        return number

    play(audit_of(noted, PAIR, OTHER, budget=100))
    assert len(drawn) == 3
    assert len(set.union(*drawn.values())) == sum(map(len, drawn.values())) >= 80


def test_a_thawed_state_knows_which_pairs_were_refused():
    """And goes on as it would have: refused pairs have rounds, too."""

    def refuses_small(data, rng):
        if data.max() < 5:
            refused.append(data)
            raise InputError("n must be >= 5")
        return laplace_sum(data, rng)

    refused = []
    pairs = PAIR, OTHER, Pair([2.0], [2.0, 1.0]), Pair([6.0], [6.0, 1.0])
    state, other = (
        audit_of(refuses_small, *pairs, budget=80) for _ in ("one", "other")
    )
    rounds = state.rounds()
    while state.samples < 60:
        next(rounds)
    assert len(refused) == 2
    other.thaw(state.freeze())
    assert list(other.rounds()) == list(rounds)
    assert len(refused) == 2
    assert other.played == state.played
    assert other.outcome == state.outcome


def pair_audit_of(mechanism, size=20):
    pair_audit = PairAudit(mechanism, PAIR, [Identity()], seed=0, key=0)
    pair_audit.pilot(size)
    return pair_audit


def test_violation_is_positive_only_where_there_seems_to_be_one():
    family = next(iter(families_for(PureDP(1.0), 0.0, 1.0).values()))
    loud = pair_audit_of(lambda d, g: d.sum() + g.laplace(scale=0.1), 200)
    assert loud.violation(family, family.claimed) > 0
    quiet = pair_audit_of(lambda d, g: d.sum() + g.laplace(scale=10.0), 200)
    assert quiet.violation(family, family.claimed) <= 0
    family = next(iter(families_for(PureDP(1.0), 0.0, 1.0).values()))
    few, many = (
        pair_audit_of(lambda d, g: 7.0, size).violation(family, family.claimed)
        for size in (20, 200)
    )
    assert many < few < 0
    assert many < -5


test_a_mechanism_that_does_nothing_else_is_a_bug = refused(
    (lambda: 1 / 0, "raises ZeroDivisionError on both datasets"),
    (object, "returns object on both datasets"),
    by=lambda output: pair_audit_of(lambda data, rng: output()),
    error=MechanismError,
)


def test_words_and_failures_on_one_side_are_no_bug():
    pair_audit_of(lambda data, rng: "word")

    def one_side(data, rng):
        return rng.laplace() if len(data) == 2 else 1 / 0

    pair_audit_of(one_side)


def sizes(state):
    """The releases a side after each round, and the growth by it."""
    ends = [samples for samples, _ in state.rounds()]
    return ends, [after / before for before, after in pairwise(ends)]


def test_rounds_go_by_what_bets_promise():
    """Fast where nothing is seen, in small steps to a goal, as before in a search."""
    nothing, found = audit_of(laplace_sum, budget=3000), audit_of(half_laplace_sum)
    for samples, _ in nothing.rounds():
        # Whether few releases are left to use a fit, when the round began.
        ending = nothing._pair_audits[0].portfolio.ending
        assert ending if samples > 2800 else samples > 1400 or not ending
    ends, growth = sizes(audit_of(laplace_sum, budget=14_000))
    assert nothing.refuted_at is None
    assert sum(1.35 < each < 1.5 for each in growth) >= 5
    assert sum(1.9 < each for each in growth[8:]) >= 2
    before = list(zip(ends, growth, strict=False))
    assert max(each for end, each in before if 30 < end < 100) < 1.15
    assert max(each for end, each in before if 30 < end < 2000) < 1.5
    assert ends[-1] - ends[-2] >= 14_000 / 25 / 4
    assert len(ends) < 45
    ends, growth = sizes(found)
    assert found.refuted_at == ends[-1] < 300
    assert max(growth[-3:]) < 1.2
    assert found.verdict.promised > 0
    ends, growth = sizes(audit_of(laplace_sum, PAIR, OTHER, budget=500))
    assert max(growth[-20:]) < 1.3


def test_an_audit_that_refines_is_frozen_as_such():
    state, other = (
        audit_of(half_laplace_sum, budget=Budget(1500, refine=0.5))
        for _ in ("one", "other")
    )
    rounds = state.rounds()
    while state.refuted_at is None:
        next(rounds)
    assert state.limit == -(-3 * state.refuted_at // 2) < 1500
    other.thaw(state.freeze())
    assert (other.refuted_at, other.limit) == (state.refuted_at, state.limit)
    assert list(other.rounds()) == list(rounds)
    assert other.samples == state.limit
    assert other.outcome == state.outcome
