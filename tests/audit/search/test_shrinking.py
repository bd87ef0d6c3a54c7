"""A pair that refutes is shrunk, and what is shown of it fell by itself.

The audits here refute mechanisms without noise where they leak, so that they fail by
chance with probability below 1e-6; seeded.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from dpaudit import Domain, Pair, PureDP
from dpaudit.audit import Run, audit
from dpaudit.audit.game import state
from dpaudit.audit.search.cut import PairCut
from dpaudit.audit.search.shrinking import _simpler_rows, shrunk

DOMAIN = Domain.parse("array of 0.0..9.0")
pytestmark = pytest.mark.usefixtures("in_few_rounds")


def shrink(pair, excess, falls=lambda pair: True, most=10**6):
    """Shrink by a given excess; return the pair, and what was asked of the audits."""
    keys, shares = [], []

    def looked(pair, key, size):
        keys.append(key)
        return excess(pair, key)

    def audited(pair, key, share):
        keys.append(key)
        shares.append(share)
        return SimpleNamespace(refuted=falls(pair), pair=pair)

    found = shrunk(
        pair,
        DOMAIN,
        refuted_at=100,
        most=most,
        excess=looked,
        audited=audited,
        stop=lambda: False,
    )
    assert len(set(keys)) == len(keys)  # all releases are fresh
    assert sum(shares) <= 1
    return None if found is None else found.pair.rows, shares


def pair_of(data, neighbour):
    rows = (
        np.reshape(np.array(each, dtype=float), (-1, 1)) for each in (data, neighbour)
    )
    found = DOMAIN.pair(*rows, Pair(data, neighbour).relation)
    assert found is not None
    return found


def test_rows_go_and_entries_become_simple_while_the_excess_stays():
    """It stays while there are two rows at least, and one of them above 5."""
    start = pair_of([7.25, 3.5, 8.125, 2.0], [7.25, 3.5, 8.125, 6.125, 2.0])
    found, shares = shrink(
        start, lambda p, _: 9.0 * (len(p.neighbour) > 1 and np.max(p.neighbour) > 5)
    )
    assert found.sizes == (1, 2)
    assert sorted(found.neighbour.ravel()) == [0.0, 9.0]
    assert shares == [0.5]


def test_neither_luck_of_one_look_nor_what_does_not_fall_is_shown():
    start = pair_of([4.0, 4.0], [4.0, 4.0, 9.0])
    found, shares = shrink(start, lambda p, key: 9.0 if key == 0 or key % 2 else 0.0)
    assert found is None
    assert shares == []
    start = pair_of([4.0, 4.0], [4.0, 4.0, 9.5 - 0.75])
    found, shares = shrink(start, lambda *_: 9.0, falls=lambda p: False)
    assert found is None
    assert len(shares) > 1
    larger, _ = shrink(start, lambda *_: 9.0, falls=lambda p: p.neighbour.max() > 0)
    assert larger.sizes == (0, 1)
    assert shrink(start, lambda *_: 9.0, most=50)[1] == []  # no room to look twice


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_an_audit_names_its_pair_and_a_smaller_one(relation, monkeypatch):
    keys, real = [], state.PairAudit

    def noted(*parts, bits):
        keys.append(parts[4])
        return real(*parts, bits=bits)

    monkeypatch.setattr(state, "PairAudit", noted)

    def leaks_with_three(rows, rng):
        exact = len(rows) >= 3 and max(rows) > 90
        return (0.0 if exact else rng.laplace()) + rng.laplace() * (not exact)

    told = {
        **{"domain": "list of 0..100", "relation": relation, "claim": PureDP(1.0)},
        "seed": 1,
    }
    result = audit(leaks_with_three, **told, budget=20_000)
    assert len(set(keys)) == len(keys)  # the search's and all that follow are fresh
    small = result.shrunk
    assert result.refuted
    assert small.refuted
    assert small.confidence > result.confidence
    assert small.log_evidence >= -np.log(1 - small.confidence)
    rows = small.witness.pair.rows
    assert max(rows.sizes) == 3
    assert f"smaller pair   {small.neighbours}: refuted there too" in str(result)
    assert result.to_dict()["shrunk"]["neighbours"] == small.neighbours


def _tells(rows, rng):
    return len(rows) + 0.1 * rng.laplace()


TELLS = {"domain": "x:0..9 sex:{f,m}", "relation": "add-remove", "claim": PureDP(1.0)}


def test_a_kept_audit_that_is_stopped_while_it_shrinks_goes_on(tmp_path):
    told, asked = TELLS | {"budget": 3000}, []
    whole = audit(_tells, **told, run=Run(should_stop=lambda: asked.append(1)))
    left = iter(asked[1:])  # what is asked last is whether the smaller pair is audited
    run = Run(store=tmp_path / "s", should_stop=lambda: next(left, None) is None)
    ended = audit(_tells, **told, run=run)
    assert (ended.refuted, ended.interrupted, ended.shrunk) == (True, True, None)
    for from_store in (False, True):
        again = audit(_tells, **told, run=Run(store=tmp_path / "s"))
        assert again.from_store is from_store
        assert again.shrunk.neighbours == whole.shrunk.neighbours
        assert not again.interrupted


def test_what_was_assumed_is_said_and_without_error_left_nothing_shrinks():
    result = audit(_tells, **TELLS, budget=3000, confidence=1 - 2**-53)
    assert result.refuted
    assert result.shrunk is None
    told = {"relation": "add-remove", "claim": PureDP(1.0), "budget": 60}
    result = audit(lambda rows, rng: sum(rows), domain=Domain.like([1, 9]), **told)
    assert result.assumed in str(result)
    assert result.assumed.endswith("as the example has it: 1..9")


def test_pairs_are_in_words_and_of_wide_rows_few_tried():
    domain = Domain.parse("age:0..90 sex:{f,m} user:label each=2")
    (zero, _, both, *_), users = domain.extremes(), domain.spread()
    kept = np.array([zero, zero, users[0]])
    longer = np.array([zero, zero, users[0], both])
    words = PairCut.words(
        domain.pair(longer, kept, Pair(longer, kept).relation), domain
    )
    assert words == (
        "D' has 2 x a user of (age=0 sex=f), a user of (age=90 sex=f)"
        "; D has a user of (age=90 sex=f) and (age=90 sex=m) besides"
    )
    many = PairCut.words(
        Pair(np.arange(6.0), [*np.arange(5.0), 9.0]), Domain.parse("scalar:0,9")
    )
    assert many == "D has 5; D' has 9 in its place beside 0, 1, 2, 3 and 1 other rows"
    # There are as many simpler ones as entries, each as long as the row.
    domain = Domain.parse("box:0,1:1000")
    assert 10 < len(list(_simpler_rows(np.full(1000, 0.7), domain))) < 300
