import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from dpaudit import InputError
from dpaudit.codec import encode, rebuild
from dpaudit.domains import Binary, Box, Categories, Domain, UnitBall, WithNonfinite
from dpaudit.streams import stream

dimensions, n_rows = st.integers(1, 6), st.integers(1, 9)
finite_domains = st.one_of(
    st.builds(UnitBall, dimensions, st.floats(0.01, 100), n_rows=n_rows),
    st.builds(
        lambda low, width, k, n: Box(low, low + width, k, n_rows=n),
        *(st.floats(-10, 10), st.floats(0.01, 10), st.none() | dimensions, n_rows),
    ),
    st.builds(Binary, dimensions, n_rows=n_rows),
    st.builds(Categories, st.integers(2, 6), st.booleans(), n_rows=n_rows),
)
TABLES = [
    "age:0..100 income:-1e5..0.0? sex:{f,m}",
    *('arrays of "a b":{0,1,"2"} c:label rows=2', "polars of x:0..1 user:label each=2"),
    *("records of who:user x:{a,b}? y:0.5..2 rows=3", "set of {true,false,-1.5}"),
    "list of 3..9",
]
TABLE_DOMAINS = [*map(Domain.parse, TABLES)]
tables = st.sampled_from(TABLE_DOMAINS)
domains = finite_domains | st.builds(WithNonfinite, finite_domains) | tables
seeds = st.integers(0, 2**32 - 1)
scales = st.floats(0.001, 1.0)


@given(domains, seeds, scales)
def test_rows_are_legal(domain, seed, scale):
    rng = stream(seed)
    row = domain.random_row(rng=rng)
    np.testing.assert_array_equal(domain.random_row(rng=stream(seed)), row)
    extremes = domain.extremes()
    most = 9 if domain in TABLE_DOMAINS else 6 + 3 * domain.nonfinite
    assert 2 <= len(extremes) <= most
    assert len({extreme.tobytes() for extreme in extremes}) == len(extremes)
    rows = [row, domain.project(100 * rng.standard_normal(domain.shape)), *extremes]
    rows += [domain.nearby(each, scale, rng=rng) for each in (row, *extremes)]
    for legal in rows:
        assert legal.dtype == np.float64
        assert legal.shape == domain.shape
        assert domain.contains(legal)


@given(domains)
def test_names_are_read_back(domain):
    assert Domain.parse(str(domain)) == domain
    assert rebuild(encode(domain)) == domain


@given(finite_domains, seeds)
def test_projection_is_the_nearest_row(domain, seed):
    """No legal row that is tried lies nearer."""
    rng = np.random.default_rng(seed)
    wild = 3 * rng.standard_normal(domain.shape)
    best = np.linalg.norm(np.atleast_1d(domain.project(wild) - wild))
    others = [*domain.extremes(), *(domain.random_row(rng=rng) for _ in range(20))]
    for other in others:
        assert best <= np.linalg.norm(np.atleast_1d(other - wild)) + 1e-9


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("ball:3:norm=2.5:rows=10", UnitBall(3, 2.5, n_rows=10)),
        ("box:0,1:5", Box(0, 1, 5)),
        ("box:-1.5,1e3:2:rows=7", Box(-1.5, 1000, 2, n_rows=7)),
        ("scalar:0,1", Box(0, 1)),
        ("codes:4:rows=1", Categories(4, one_hot=False, n_rows=1)),
        ("box:0,1:3:nonfinite", WithNonfinite(Box(0, 1, 3))),
        ("ball:3:rows=2:nonfinite", WithNonfinite(UnitBall(3, n_rows=2))),
    ],
)
def test_the_forms_of_the_command_line(text, domain):
    assert Domain.parse(text) == domain


UNKNOWN = """ball ball:x ball:3:4 ball:3:size=2 box:0:3 box:0,1
scalar:0,1,2 scalar:0,1:2 binary:5:norm=2 sphere:3 categories:4:rows=many
nonfinite ball:3:nonfinite:nonfinite"""


@pytest.mark.parametrize("text", ["", *UNKNOWN.split()])
def test_other_texts_are_refused_with_all_forms(text):
    forms = "ball:.*box:.*scalar:.*binary:.*categories:.*codes:.*rows="
    refuses(f"domain must be columns.*{forms}.*{text!r}", Domain.parse, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ball:0", "dimension must be an integer >= 1, got 0"),
        ("ball:2:norm=-1", "norm must be a finite number > 0"),
        ("box:1,0:3", "low < high, got 1.0, 0.0"),
        ("scalar:0,inf", "must be finite"),
        ("box:0,1:0", "dimension must be an integer >= 1"),
        ("binary:0", "dimension must be an integer >= 1"),
        ("categories:1", "count must be an integer >= 2"),
        ("scalar:0,1:rows=0", "n_rows must be an integer >= 1"),
    ],
)
def test_values_that_are_not_allowed_are_named(text, message):
    refuses(f"^domain '{text}': .*{message}", Domain.parse, text)


@pytest.mark.parametrize(
    ("domain", "row"),
    [
        *((UnitBall(2), [1.0, 1e-7]), (UnitBall(2), [0.5])),
        *((UnitBall(2), [np.nan, 0.0]), (WithNonfinite(UnitBall(2)), [np.nan, 1.1])),
        (WithNonfinite(Box(0, 1, 2)), [np.inf, -0.1]),
        (WithNonfinite(Binary(2)), [np.nan, 0.5]),
        (WithNonfinite(Categories(3)), [np.nan, 1.0, 1.0]),
        *((WithNonfinite(Box(0, 1)), [np.nan]), (Box(0, 1), [0.5]), (Box(0, 1), 1.1)),
        *((Binary(2), [0.5, 1.0]), (Categories(3), [1.0, 1.0, 0.0])),
        *((Categories(3, one_hot=False), 3.0), (Categories(3, one_hot=False), 0.5)),
    ],
)
def test_other_rows_are_not_legal(domain, row):
    assert not domain.contains(row)


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_any_entry_of_a_legal_row_may_be_strange_where_that_is_legal(strange):
    domain = WithNonfinite(Box(0, 1, 2))
    for row in ([0.5, strange], [strange, strange], [0.5, 0.5]):
        assert domain.contains(row)
    np.testing.assert_array_equal(domain.project([strange, 7.0]), [strange, 1.0])
    refuses(r"row must have shape \(2,\)", domain.project, [strange])
    with pytest.raises(InputError, match=r"row must be a finite array of shape \(2,\)"):
        domain.inner.project([1.0, 2.0, 3.0])
    refuses("inner must be a domain of finite rows", WithNonfinite, domain)


def test_rows_become_strange_and_are_repaired():
    domain, rng = WithNonfinite(Box(0, 1, 3)), np.random.default_rng(0)
    drawn = np.array([domain.random_row(rng=rng) for _ in range(400)])
    entries = np.isfinite(drawn).sum(axis=1)
    assert set(entries) == {0, 2, 3}
    assert 250 < (entries == 3).sum() < 350
    for start in (drawn[entries == 3][0], drawn[entries == 0][0]):
        near = [domain.nearby(start, 0.1, rng=rng) for _ in range(200)]
        finite = np.isfinite(near).all(axis=1)
        assert 50 < finite.sum() < 180


def test_rotations_and_steps_both_happen_in_a_ball():
    rng = stream(0)
    near = [UnitBall(2).nearby([0.3, 0.4], 0.1, rng=rng) for _ in range(100)]
    kept = np.isclose(np.linalg.norm(near, axis=1), 0.5, rtol=1e-12)
    assert 20 < kept.sum() < 80


@pytest.mark.parametrize("domain", [UnitBall(4), Box(-1, 1, 4), Box(-1, 1)])
def test_steps_shrink_with_their_scale(domain):
    rng = np.random.default_rng(0)
    start = np.full(domain.shape, 0.1)
    wide, narrow = (
        np.mean([np.abs(domain.nearby(start, s, rng=rng) - start) for _ in range(200)])
        for s in (0.1, 0.001)
    )
    assert 30 < wide / narrow < 300


def test_flips_change_one_entry():
    """A change is missed by all 99 draws with probability 3 (2/3)^99 < 1e-16."""
    rng = np.random.default_rng(0)
    for domain, row, expected in (
        (Binary(3), [0.0, 1.0, 1.0], {(1, 1, 1), (0, 0, 1), (0, 1, 0)}),
        (Categories(3), [0.0, 1.0, 0.0], {(1, 0, 0), (0, 0, 1)}),
    ):
        assert {tuple(domain.nearby(row, 1, rng=rng)) for _ in range(99)} == expected
