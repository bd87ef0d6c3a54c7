from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses

from dpaudit import InputError, MechanismError, Pair, PureDP, Relation, UnsupportedError
from dpaudit.algorithms import SymmetricNoise
from dpaudit.audit import audit
from dpaudit.audit.search.proposals import Proposals
from dpaudit.audit.search.suspects import suspects
from dpaudit.domains import Binary, Box, Domain, UnitBall
from dpaudit.mechanism import HasCanonicalPairs

SPECS = [
    *("ball:1", "ball:3", "ball:2:norm=2:rows=1", "box:0,1:5", "box:-1,2:1"),
    *("scalar:0,1", "scalar:1,2:rows=2", "binary:5", "binary:1", "categories:4"),
    *("codes:2", "box:0,1:2:nonfinite", "scalar:0,1:nonfinite"),
    *("ball:3:rows=2:nonfinite", "categories:3:nonfinite"),
]
relations = st.sampled_from(list(Relation))
specs = st.sampled_from(SPECS)
pytestmark = pytest.mark.usefixtures("in_few_rounds")


def black_box(data, rng):
    return data.sum()


def proposals(spec, relation, seed=0):
    return Proposals(black_box, Domain.parse(spec), relation, seed)


def check(pair: Pair, domain: Domain, relation: Relation) -> None:
    """Pair itself refuses what are no neighbours under the relation."""
    assert pair.relation is relation
    for rows in (pair.data, pair.neighbour):
        assert rows.shape[1:] == domain.shape
        assert all(domain.contains(row) for row in rows)


def same(one: Pair, two: Pair) -> bool:
    sides = ((one.data, two.data), (one.neighbour, two.neighbour))
    return all(np.array_equal(*side, equal_nan=True) for side in sides)


def sums(pairs) -> set[tuple]:
    """Return the column sums of both datasets, in either order."""
    sides = [(p.data, p.neighbour) for p in pairs]
    sides += [side[::-1] for side in sides]
    return {tuple(np.hstack([rows.sum(axis=0) for rows in side])) for side in sides}


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("relation", list(Relation))
def test_first_pairs_are_legal_few_and_different(spec, relation):
    source = proposals(spec, relation)
    first = source.first()
    assert 1 <= len(first) <= 40
    for pair in first:
        check(pair, source.domain, relation)
    keys = {
        frozenset((x.shape, (x + 0.0).tobytes()) for x in (p.data, p.neighbour))
        for p in first
    }
    assert len(keys) == len(first)


@settings(max_examples=30)
@given(specs, relations, st.integers(0, 1000), st.floats(0.001, 1.0))
def test_ascent_is_legal_reproducible_and_moves(spec, relation, seed, scale):
    source = proposals(spec, relation)
    one, two = (np.random.default_rng(seed) for _ in range(2))
    pair, again = (source.random(np.random.default_rng(seed + 1)) for _ in range(2))
    assert same(pair, again)
    for _ in range(5):
        moved = source.ascend(pair, scale, one)
        check(moved, source.domain, relation)
        assert same(moved, source.ascend(pair, scale, two))
        assert not same(moved, pair)
        pair = moved


def test_ascent_changes_rows_common_rows_and_their_number():
    source = proposals("ball:2", "replace-one")
    rng = np.random.default_rng(0)
    pair = Pair([[0.1, 0], [0.5, 0], [0.5, 0]], [[0.2, 0], [0.5, 0], [0.5, 0]])
    moved = [source.ascend(pair, 0.1, rng) for _ in range(300)]
    assert {len(p.data) for p in moved} == {2, 3, 4}
    same_size = [p for p in moved if len(p.data) == 3]
    assert any(not np.array_equal(p.data[0], pair.data[0]) for p in same_size)
    assert any(not np.array_equal(p.neighbour[0], [0.2, 0]) for p in same_size)
    assert any(np.array_equal(p.data[2], [0.1, 0]) for p in same_size)  # place
    both = [p for p in same_size if not np.array_equal(p.data[1], pair.data[1])]
    assert any(np.array_equal(p.data[1], p.data[2]) for p in both)  # all copies
    assert any(not np.array_equal(p.data[1], p.data[2]) for p in both)


@pytest.mark.parametrize("relation", list(Relation))
def test_the_seed_decides_and_strange_rows_come_first_where_they_are_legal(relation):
    one, again, other = (proposals("ball:3", relation, n).first() for n in (0, 0, 1))
    assert all(map(same, one, again))
    assert not all(map(same, one, other))
    first = proposals("box:0,1:2:nonfinite", relation).first()
    added = [pair.neighbour[-1] for pair in first[:3]]
    np.testing.assert_array_equal(added, np.full((2, 3), [np.nan, np.inf, -np.inf]).T)
    assert all(pair.finite for pair in first[3:])
    finite = proposals("box:0,1:2", relation).first()
    assert all(map(same, first[3:], finite))


@pytest.mark.parametrize("relation", list(Relation))
def test_the_worst_case_of_symmetric_noise_is_among_the_first(relation):
    """Known to the mechanism, and proposed to one that hides it, among the first 5."""
    mechanism = SymmetricNoise.as_published(1.0, relation=relation)
    named = Proposals(mechanism, UnitBall(2), relation, 0).first()[0]
    assert same(named, mechanism.worst_case(2))
    first = proposals("ball:2", relation).first()
    traces = [abs((p.data**2).sum() - (p.neighbour**2).sum()) for p in first[:5]]
    assert max(traces) == pytest.approx(1)
    if relation is Relation.ADD_REMOVE:
        assert same(first[0], Pair(np.zeros((0, 2)), [[1.0, 0.0]]))


ONES = (1, 1, 1, 1, 1)
PATTERNS = {
    "replace-one": {
        (*ONES, 2, 1, 1, 1, 1),  # one above
        (*ONES, 0, 1, 1, 1, 1),  # one below
        (*ONES, 2, 0, 0, 0, 0),  # one above, rest below
        (*ONES, 0, 2, 2, 2, 2),  # one below, rest above
        (*ONES, 0, 0, 2, 2, 2),  # half, half
        (*ONES, 2, 2, 2, 2, 2),  # all above
        (*ONES, 0, 0, 0, 0, 0),  # all below
        (1, 1, 0, 0, 0, 0, 0, 1, 1, 1),  # X shape
    },
    "add-remove": {
        *((*ONES, 2, 1, 1, 1, 1), (*ONES, 1, 2, 2, 2, 2), (*ONES, 1, 1, 2, 2, 2)),
        *((*ONES, 2, 2, 2, 2, 2), (1, 1, 0, 0, 0, *ONES)),
    },
}


@pytest.mark.parametrize("relation", PATTERNS)
@pytest.mark.parametrize("spec", ["binary:5", "box:0,1:5"])
def test_counting_patterns(spec, relation):
    assert PATTERNS[relation] <= sums(proposals(spec, relation).first())


@pytest.mark.parametrize(
    ("spec", "camps"),
    [
        ("categories:4", (1, 1, 1, 1, 2, 1, 1, 1)),
        ("ball:3:rows=6", (3, 0, 3, 4, 0, 3)),
        ("scalar:0,1:rows=4", (2, 3)),
    ],
)
def test_balanced_camps(spec, camps):
    assert camps in sums(proposals(spec, "add-remove").first())


class Textbook:
    claim = PureDP(1.0)
    relation = Relation.ADD_REMOVE

    def __init__(self, *pairs, error=None):
        self.pairs, self.error = pairs, error

    def release(self, data, *, rng):
        return data.sum()

    def canonical_pairs(self):
        if self.error is not None:
            raise self.error
        return self.pairs


OUTSIDE = Pair([5.0], [5.0, 9.0])


def test_canonical_pairs_come_first_and_are_all_without_a_domain():
    mechanism = Textbook(OUTSIDE, OUTSIDE, Pair([], [1.0]))
    assert isinstance(mechanism, HasCanonicalPairs)
    first = Proposals(mechanism, Box(0, 6), "add-remove", 0).first()
    assert same(first[0], Pair([5.0], [5.0, 6.0]))
    assert same(first[1], mechanism.pairs[2])
    assert sum(same(pair, first[1]) for pair in first) == 1
    source = Proposals(Textbook(OUTSIDE), None, "add-remove", 0)
    assert source.first() == (OUTSIDE,)
    assert not source.endless
    refuses("domain is needed", source.random, np.random.default_rng(0))
    refuses("domain is needed", source.ascend, OUTSIDE, 0.5, np.random.default_rng(0))


@pytest.mark.parametrize(
    "outside",
    [
        Pair([5.0], [9.0]),  # both become 1
        Pair([[5.0]], [[0.0]]),  # rows of another shape
        Pair([np.nan], [0.0], allow_nonfinite=True),
    ],
)
def test_canonical_pairs_that_no_domain_holds_are_left_out(outside):
    mechanism = Textbook(outside)
    source = Proposals(mechanism, Box(0, 1), "replace-one", 0)
    plain = proposals("scalar:0,1", "replace-one")
    assert all(map(same, source.first(), plain.first()))


@settings(max_examples=40)
@given(
    specs,
    relations,
    st.integers(0, 1000),
    st.sampled_from([0.1, 1.0, 5.0]),
    st.booleans(),
)
def test_all_pairs_are_legal_whatever_the_mechanism_names(
    spec, relation, seed, size, strange
):
    """First, random, and ascending from wherever the mechanism's own pairs lie."""
    rng = np.random.default_rng(seed)
    domain = Domain.parse(spec)
    named = []
    for shape in (domain.shape, domain.shape, (), (2,)):
        rows = size * rng.standard_normal((4, *shape))
        if strange:
            rows[2:] = rng.choice([np.nan, np.inf, -np.inf])
        other = rows[1:]
        if relation is Relation.REPLACE_ONE:
            other = rows.copy()
            other[rng.integers(2)] *= -1
        named.append(Pair(rows, other, relation, allow_nonfinite=True))
    source = Proposals(Textbook(*named), domain, relation, seed)
    for pair in source.first():
        check(pair, domain, relation)
    check(source.random(rng), domain, relation)
    for pair in source.first()[:4]:
        check(source.ascend(pair, 0.3, rng), domain, relation)


@pytest.mark.parametrize(
    ("mechanism", "error", "message"),
    [
        (black_box, InputError, "domain is needed: the mechanism names no pair"),
        (Textbook(), InputError, "domain is needed"),
        (Textbook(error=UnsupportedError("no")), InputError, "domain is needed"),
        (Textbook(error=ZeroDivisionError("oh")), MechanismError, "ZeroDivisionError"),
        (Textbook(Pair([0.0], [1.0])), InputError, "replace-one, but .* add-remove"),
        (Textbook(([0.0], [1.0])), InputError, "must be a Pair, got tuple"),
    ],
)
def test_what_cannot_be_proposed_is_said(mechanism, error, message):
    with pytest.raises(error, match=message):
        Proposals(mechanism, None, "add-remove", 0)


def test_given_pairs_users_of_each_label_and_spectral_directions_come_first():
    domain = Domain.parse("records of x:0..9 sex:{f,m}")
    given = Pair([[3, 1]], [[3, 1], [0, 0]])
    first = Proposals(black_box, domain, "add-remove", 0, given).first()
    assert first[0].data == [{"x": 3, "sex": "m"}]
    assert first[0].neighbour == [{"x": 3, "sex": "m"}, {"x": 0, "sex": "f"}]
    others = Proposals(black_box, domain, "add-remove", 0).first()
    assert first[1].data == others[0].data
    domain = "list of user:user colour:{red,green,blue} each=3"
    first = proposals(domain, "add-remove").first()
    colours = ["red", "green", "blue"]
    several = [("a", each) for each in colours]
    single = list(zip("bcd", colours, strict=True))
    assert any((p.data, p.neighbour) == (single, several + single) for p in first)
    pairs = proposals("ball:3:rows=6", "add-remove").first()
    spread = [p for p in pairs if len(np.unique(p.data, axis=0)) == 6]
    top = np.linalg.eigh(spread[0].data.T @ spread[0].data)[1][:, -1]
    aligned = [abs(p.neighbour[-1] @ top) for p in spread]
    assert max(aligned) == pytest.approx(1.0)
    assert min(aligned) == pytest.approx(0.0, abs=1e-9)


def test_pairs_of_sets_end_and_those_of_another_relation_do_not_ascend():
    source = proposals("set of {a,b,c}", "replace-one")
    for seed in range(20):
        pair = source.random(np.random.default_rng(seed))
        assert pair.data != pair.neighbour
    source = Proposals(black_box, Binary(2), "add-remove", 0)
    with pytest.raises(InputError, match="replace-one"):
        source.ascend(Pair([[0, 0]], [[0, 1]]), 0.5, np.random.default_rng(0))


MANY = 25


def is_marked(rows, mark):
    return mark in rows and len(rows) > MANY


def compares(rows, mark=61, *, rng):
    if any(row == "q7" for row in rows) or is_marked(rows, mark):
        return 0.0
    return rng.laplace() + 7 * (mark == 61)


def test_pairs_at_what_a_function_compares_with():
    numbers = Domain.parse("list of 0..100")
    cuts = [*suspects(partial(compares, mark=17), numbers, "add-remove")]
    assert {len(cut.common) for cut in cuts} >= {MANY, MANY - 1, 61, 60}
    assert {float(cut.after[0]) for cut in cuts} == {100.0, 61.0, 25.0, 17.0}
    assert len(cuts) <= 12
    codes = Domain.parse("code:{a,q7} user:label each=2")
    rows = [cut.after for cut in suspects(compares, codes, "add-remove")]
    assert any("code=q7" in codes.told(row) for row in rows)
    for unread in (len, UnitBall(2), partial(max, 3)):
        assert [*suspects(unread, numbers, "add-remove")] == []


def exact_if_many(rows, rng):
    return np.mean(rows) if len(rows) > MANY else rng.laplace()


def raw_if_marked(rows, rng):
    return 9.0 * (61 in rows) + rng.laplace()


@pytest.mark.parametrize("function", [exact_if_many, raw_if_marked])
def test_a_branch_that_ranges_do_not_tell_is_found(function):
    """Chance hides neither: the one is exact there, the other's loss is 9."""
    told = {"domain": "list of 0..1000", "relation": "add-remove"}
    assert audit(function, **told, claim=PureDP(1.0), budget=3000).refuted
