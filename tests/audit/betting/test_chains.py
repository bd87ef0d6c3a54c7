import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import norm

from dpaudit import ApproxDP, GaussianDP, Profile, PureDP
from dpaudit.audit.betting.chains import (
    Chains,
    _agreeing_tails,
    forward_chains,
    hold,
    symmetric_chains,
)
from dpaudit.audit.betting.events import Events, find_anchor, violation
from dpaudit.audit.betting.families import families_for, verdict_family
from dpaudit.audit.betting.pooled import _pool, pooled_chains
from dpaudit.audit.betting.projection import project
from dpaudit.audit.betting.scores import ScoreRecord

FAMILIES = {
    "pure": verdict_family(PureDP(1.0)),
    "approximate": verdict_family(ApproxDP(1.0, 1e-3)),
    "delta": families_for(ApproxDP(1.0, 0.1), 0.1, 1.0)["delta"],
    "gaussian": verdict_family(GaussianDP(1.0)),
    "profile": verdict_family(Profile((0.0, 1.0), (0.3, 0.05))),
}


def forward(family, nulls, anchor, events, share):
    """Choose events at the anchor, and for nulls below it at the null itself."""
    return forward_chains(family, nulls, np.minimum(nulls, anchor), events, share)


def test_events_are_held_to_their_own_half_planes_and_chains_stack():
    """Two events, three half-planes each: what they cost, and whom they bind."""
    ratio, limit = np.array([[[2, 3, 4], [5, 6, 8]]]), np.ones((1, 2, 3))
    heavy, real = np.array([[True, False]]), np.array([[True, True]])
    spaces = hold(np.log(ratio), limit, heavy, real)
    assert spaces.cells.tolist() == [[1, 1, 1, 2, 2, 2]]
    odds = [[2, 3, 4, 1 / 5, 1 / 6, 1 / 8]]
    np.testing.assert_allclose(-spaces.on_q / spaces.on_p, odds)
    np.testing.assert_allclose(1 / spaces.limit, ratio.reshape(1, 6))
    family, events = FAMILIES["gaussian"], gaussian_events(1.0, 1000)
    nulls = np.array([10, 200])
    first = forward(family, nulls, 300, events, 0.5)
    second = pooled_chains(family, nulls, events)
    both = Chains.stack([first, second])
    assert len(both.events) == 4
    check(both, events, 4)
    growth = project(both.p1, both.q1, both.half_spaces, 0.5).growth
    for rows, way in ((slice(2), first), (slice(2, 4), second)):
        alone = project(way.p1, way.q1, way.half_spaces, 0.5).growth
        np.testing.assert_allclose(growth[rows], alone, rtol=1e-7)


def exact_events(p, q, n, *, attack=None):
    """Return events whose counts are what is expected in n releases a side."""
    hits = np.round(np.array([p, q]) * n).astype(np.intp)
    attack = np.zeros(len(p), dtype=np.intp) if attack is None else np.array(attack)
    thresholds = -np.arange(len(p), dtype=float)
    common = np.zeros(len(p), dtype=bool)
    return Events(attack, thresholds, hits, np.full(hits.shape, n), common)


def laplace_events(epsilon, n):
    """Upper tails of Laplace noise about 1 on D and about 0 on D', rarest first."""
    x = np.linspace(6.0, -5.0, 45) / epsilon
    both = [
        np.where(
            x >= c,
            np.exp(-epsilon * np.abs(x - c)) / 2,
            1 - np.exp(-epsilon * np.abs(x - c)) / 2,
        )
        for c in (1.0, 0.0)
    ]
    return exact_events(*both, n)


def gaussian_events(mu, n, levels=41):
    x = np.linspace(3.0, -3.0 + mu, levels)
    return exact_events(ndtr(mu - x), ndtr(-x), n)


def all_chains(family, nulls, events, share=0.5):
    """Return every kind of chain that applies."""
    anchor, _ = find_anchor(family, events)
    ways = [
        forward(family, nulls, anchor, events, share),
        symmetric_chains(family, nulls, events, np.zeros(len(events))),
    ]
    if family is FAMILIES["gaussian"]:
        ways.append(pooled_chains(family, nulls, events))
    return [way for way in ways if way is not None]


def check(chains, events, m):
    """Nested events of one attack, laws that sum to one, half-spaces to match."""
    m_, j = chains.events.shape
    assert m_ == m
    assert (np.diff(chains.events, axis=1) >= 0).all()
    attack = events.attack[chains.events]
    assert (attack == attack[:, :1]).all()
    for law in (chains.p1, chains.q1):
        assert law.shape == (m, j + 1)
        assert np.isfinite(law).all()
        assert (law >= 0).all()
        np.testing.assert_allclose(law.sum(axis=1), 1)
    spaces = chains.half_spaces
    assert (spaces.cells[np.abs(spaces.on_p) + np.abs(spaces.on_q) > 0] >= 1).all()
    assert (spaces.cells <= j).all()
    assert not np.isnan(spaces.limit).any()
    # An event is chosen once; where it is repeated to fill a row, its cell is empty.
    repeated = np.diff(chains.events, axis=1) == 0
    assert (chains.p1[:, 1:-1][repeated] == 0).all()
    assert (chains.q1[:, 1:-1][repeated] == 0).all()


@pytest.mark.parametrize("key", FAMILIES)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_chains_are_nested_events_and_laws(key, share):
    family, rng = FAMILIES[key], np.random.default_rng(0)
    nulls = np.unique(np.linspace(0, len(family) - 1, 12).astype(np.intp))
    for n in (10, 100, 3000):
        record = ScoreRecord()
        for side, shift in ((0, 1.0), (1, 0.0)):
            record.add(side, rng.normal(shift, 1.0, n))
        events = record.events(0)
        for chains in all_chains(family, nulls, events, share):
            check(chains, events, len(nulls))


@pytest.mark.parametrize("key", FAMILIES)
def test_half_spaces_contain_their_null(key):
    """Each half-space of a chain is one that the null implies, either way round."""
    family = FAMILIES[key]
    claims = {
        **{"pure": PureDP, "approximate": lambda e: ApproxDP(e, 1e-3)},
        **{"delta": lambda d: ApproxDP(1.0, d), "gaussian": GaussianDP},
        "profile": lambda _: Profile((0.0, 1.0), (0.3, 0.05)),
    }
    nulls = np.unique(np.linspace(0, len(family) - 2, 6).astype(np.intp))
    q = np.linspace(0, 1, 401)
    for events in (gaussian_events(1.5, 500), laplace_events(2.0, 500)):
        for chains in all_chains(family, nulls, events):
            spaces = chains.half_spaces
            for row, null in enumerate(nulls):
                p = claims[key](family.parameter[null]).tpr(q)
                for on_p, on_q, limit in zip(
                    spaces.on_p[row], spaces.on_q[row], spaces.limit[row], strict=True
                ):
                    size = max(abs(on_p), abs(on_q), 1.0)
                    worst = max(
                        (on_p * p + on_q * q).max(), (on_p * q + on_q * p).max()
                    )
                    assert worst - limit <= 1e-9 * size


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_anchor_is_below_the_truth_and_doubt_ends_above_it(epsilon):
    family = FAMILIES["pure"]
    for n in (300, 3000, 100_000):
        anchor, top = find_anchor(family, laplace_events(epsilon, n))
        assert family.parameter[anchor] < epsilon < family.parameter[top]
    # With much past both are near.
    assert family.parameter[anchor] > 0.9 * epsilon
    assert family.parameter[top] < 1.1 * epsilon


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_anchor_is_the_same_wherever_it_is_looked_for_first(epsilon):
    family = FAMILIES["pure"]
    events = laplace_events(epsilon, 3000)
    anchor, top = find_anchor(family, events)
    step = len(family) // 500
    for near in (0, anchor - 40 * step, anchor, anchor + 3 * step, len(family) - 1):
        again = find_anchor(family, events, near)
        assert abs(again[0] - anchor) <= step
        assert abs(again[1] - top) <= 2 * step


def test_the_anchor_is_clearly_violated_and_the_next_hardly_is():
    """Four standard errors, up to the resolution of the search."""
    family, events = FAMILIES["gaussian"], gaussian_events(1.0, 1000)
    anchor, _ = find_anchor(family, events)
    assert violation(family, anchor, events) > 0
    # Of the z of the best event 1.5 standard errors are taken off.
    assert violation(family, anchor, events) + 1.5 == pytest.approx(4.0, abs=0.1)
    # The laws agree: no null is violated clearly, though small ones are in doubt.
    family = FAMILIES["pure"]
    p = np.linspace(0.05, 0.95, 19)
    assert find_anchor(family, exact_events(p, p, 500))[0] == 0


def test_violation_is_signed_and_estimates_inside_a_null_are_lifted_just_outside():
    family, claim = FAMILIES["pure"], FAMILIES["pure"].claimed
    assert violation(family, claim, laplace_events(2.0, 1000)) > 0
    assert violation(family, claim, laplace_events(0.5, 1000)) < 0
    assert violation(family, claim, exact_events([], [], 10)) == 0.0
    weak, strong = (
        violation(family, claim, laplace_events(e, 10_000)) for e in (1.5, 3.0)
    )
    assert strong > weak > 0
    # By a standard error, if they lie inside by less than two; else they are kept.
    family = FAMILIES["pure"]
    events = exact_events([0.73], [0.2689], 400)  # just about e^1 apart
    chains = forward(family, np.array([family.claimed]), 0, events, 0.5)
    assert project(chains.p1, chains.q1, chains.half_spaces, 0.5).growth[0] > 0
    events = exact_events([0.5], [0.45], 400)
    chains = forward(family, np.array([family.claimed]), 0, events, 0.5)
    np.testing.assert_allclose(chains.p1[0], [events.p[0], 1 - events.p[0]])
    assert project(chains.p1, chains.q1, chains.half_spaces, 0.5).growth[0] == 0


@pytest.mark.parametrize("way", [forward, None])
def test_both_tails_of_laplace_noise_are_found(way):
    """One event is where D is likelier, another one's complement where D' is."""
    family, events = FAMILIES["pure"], laplace_events(2.0, 30_000)
    null, anchor = np.array([family.claimed]), find_anchor(family, events)[0]
    if way is None:
        chains = symmetric_chains(family, null, events, np.zeros(len(events)))
    else:
        chains = forward(family, null, anchor, events, 0.5)
    p, q = events.p[chains.events[0]], events.q[chains.events[0]]
    ratio, complement = np.log(p / q), np.log((1 - q) / (1 - p))
    assert ratio[0] > 1.8
    assert complement[-1] > 1.8
    growth = project(chains.p1, chains.q1, chains.half_spaces, 0.5).growth[0]
    one = forward(family, null, anchor, events.take([int(chains.events[0, 0])]), 0.5)
    alone = project(one.p1, one.q1, one.half_spaces, 0.5).growth[0]
    assert growth > 1.5 * alone


def test_forward_chains_start_with_what_violates_by_most_and_stop_in_time():
    """Among a good event and useless ones, of other attacks as well."""
    p = np.array([0.02, 0.5, 0.9, 0.3, 0.6])
    q = np.array([0.02, 0.1, 0.88, 0.29, 0.6])
    events = exact_events(p, q, 1000, attack=[0, 0, 0, 1, 1])
    family = FAMILIES["pure"]
    chains = forward(family, np.array([family.claimed]), 0, events, 0.5)
    assert 1 in chains.events[0]
    assert (events.attack[chains.events] == 0).all()
    # Of randomised response and events without information, the one that tells.
    events = exact_events([0.002, 0.75, 0.998], [0.002, 0.25, 0.998], 1000)
    family = FAMILIES["pure"]
    chains = forward(family, np.array([family.claimed]), 0, events, 0.5)
    assert np.unique(chains.events[0]).tolist() == [1]
    # The first adds something, and less than its two numbers are worth.
    events = exact_events([0.5, 0.75, 0.9], [0.2, 0.25, 0.6], 1000)
    chains = forward(family, np.array([family.claimed]), 0, events, 0.5)
    assert np.unique(chains.events[0]).tolist() == [1, 2]


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
def test_pooled_chains_recover_the_shift(mu):
    """All the events of a Gaussian pair show the same mu, and so do the cells."""
    family, events = FAMILIES["gaussian"], gaussian_events(mu, 100_000)
    below = int(np.searchsorted(family.parameter, 0.8 * mu))
    chains = pooled_chains(family, np.array([below]), events)
    assert chains is not None
    p, q = (np.cumsum(law[0])[:-1] for law in (chains.p1, chains.q1))
    np.testing.assert_allclose(ndtri(p) - ndtri(q), mu, rtol=0.02)
    check(chains, events, 1)


def test_pooling_keeps_what_events_disagree_on_and_needs_hits():
    """Laplace noise is no Gaussian pair: the shifts keep their own values."""
    family, events = FAMILIES["gaussian"], laplace_events(2.0, 100_000)
    chains = pooled_chains(family, np.array([0]), events)
    p, q = (np.cumsum(law[0])[:-1] for law in (chains.p1, chains.q1))
    np.testing.assert_allclose(p, events.p[chains.events[0]], atol=0.01)
    np.testing.assert_allclose(q, events.q[chains.events[0]], atol=0.01)
    events = exact_events([0.5, 0.9], [0.1, 0.4], 8)
    assert pooled_chains(FAMILIES["gaussian"], np.array([0]), events) is None


def uneven_events(mu, n_p, n_q, *, swapped=False):
    """Tails of N(mu, 1) and N(0, 1), or exchanged, seen in n_p and n_q releases."""
    x = np.linspace(3.0, -3.0 + mu, 41)
    laws, n = [ndtr(mu - x), ndtr(-x)], np.array([[n_p], [n_q]])
    hits = np.round(np.array(laws[::-1] if swapped else laws) * n).astype(np.intp)
    scored = np.broadcast_to(n, hits.shape).copy()
    attack = np.zeros(41, dtype=np.intp)
    return Events(attack, -np.arange(41.0), hits, scored, attack > 0)


@pytest.mark.parametrize("swapped", [False, True])
def test_mirrored_tails_are_pooled_by_their_releases(swapped):
    events = uneven_events(1.0, 400, 3600, swapped=swapped)
    tails = _agreeing_tails(events)
    assert len(tails.p) > 5
    p, q = events.p, events.q
    n, other = (3600, 400) if swapped else (400, 3600)
    if swapped:
        p, q = q, p
    up, low = tails.upper, tails.lower
    assert (tails.heavy == (not swapped)).all()
    expected = (n * p[up] + other * (1 - q[low])) / 4000
    np.testing.assert_allclose(tails.p, expected, rtol=1e-12)
    expected = (other * q[up] + n * (1 - p[low])) / 4000
    np.testing.assert_allclose(tails.q, expected, rtol=1e-12)
    assert (np.abs(tails.p - p[up]) > 1e-4).any()  # or it would not matter


@pytest.mark.parametrize("mu", [0.3, 1.0, 1.5])
def test_pooling_knows_no_direction(mu):
    """Exchange D and D', and the bets are exchanged: lifted away from 0 both times."""
    family = FAMILIES["gaussian"]
    near = int(np.searchsorted(family.parameter, mu))  # where estimates are lifted
    nulls = np.array([0, near, near + 20, near + 400])
    one = pooled_chains(family, nulls, uneven_events(mu, 2000, 2000))
    other = pooled_chains(family, nulls, uneven_events(mu, 2000, 2000, swapped=True))
    np.testing.assert_allclose(one.p1, other.q1, rtol=1e-9)
    np.testing.assert_allclose(one.q1, other.p1, rtol=1e-9)
    np.testing.assert_allclose(one.half_spaces.on_p, other.half_spaces.on_q, rtol=1e-9)
    np.testing.assert_allclose(one.half_spaces.limit, other.half_spaces.limit)
    p, q = (np.cumsum(law, axis=1)[:, :-1] for law in (one.p1, one.q1))
    shift = (ndtri(p) - ndtri(q)).mean(axis=1)
    assert (shift > 0.9 * mu).all()
    assert (shift[1:3] > family.parameter[nulls[1:3]]).all()


def test_the_pooled_shift_is_the_best_linear_estimate():
    """Of the shifts of nested events, whose quantiles vary together (Aitken)."""
    events = uneven_events(1.0, 700, 2300)
    pooled = _pool(events, np.arange(41))
    p, q = events.p[pooled.events], events.q[pooled.events]
    covariance = np.zeros((len(p), len(p)))
    for law, n in ((p, 700), (q, 2300)):
        for i, a in enumerate(law):
            for j, b in enumerate(law):
                density = norm.pdf(norm.ppf(a)) * norm.pdf(norm.ppf(b))
                covariance[i, j] += (min(a, b) - a * b) / (n * density)
    inverse = np.linalg.inv(covariance)
    shift = norm.ppf(p) - norm.ppf(q)
    assert pooled.pooled == pytest.approx(inverse.sum(axis=0) @ shift / inverse.sum())
    assert pooled.error == pytest.approx(1 / np.sqrt(inverse.sum()), rel=1e-5)


HARD_CASES = {
    **{"one hit": (np.array([[1], [0]]), 1), "one release": (np.array([[1], [1]]), 1)},
    "no hits on one side": (np.array([[5, 9, 10], [0, 0, 0]]), 10),
    "no hits on the other": (np.array([[0, 0, 0], [5, 9, 10]]), 10),
    "always": (np.array([[10, 10], [10, 10]]), 10),
    "never": (np.array([[0, 0], [0, 0]]), 10),
    "disjoint": (np.array([[10, 10, 10], [0, 0, 0]]), 10),
    "ties": (np.array([[3, 3, 3, 7], [1, 1, 1, 5]]), 10),
    "equal": (np.array([[3, 5, 8], [3, 5, 8]]), 10),
    "many": (np.array([[10**6, 9 * 10**6], [0, 8 * 10**6]]), 10**7),
}


@pytest.mark.parametrize("key", FAMILIES)
@pytest.mark.parametrize("case", HARD_CASES)
def test_tiny_samples_and_ties_do_no_harm(case, key):
    hits, n = HARD_CASES[case]
    t = hits.shape[1]
    attack, thresholds = np.zeros(t, dtype=np.intp), -np.arange(t, dtype=float)
    family = FAMILIES[key]
    nulls = np.unique(np.linspace(0, len(family) - 1, 9).astype(np.intp))
    for share, common in ((0.05, False), (0.5, True)):
        events = Events(
            attack, thresholds, hits, np.full((2, t), n), np.full(t, common)
        )
        anchor, top = find_anchor(family, events)
        assert 0 <= anchor <= top < len(family)
        assert np.isfinite(violation(family, int(nulls[-1]), events))
        for chains in all_chains(family, nulls, events, share):
            check(chains, events, len(nulls))
            found = project(chains.p1, chains.q1, chains.half_spaces, share)
            assert np.isfinite(found.growth).all()
            if case in ("equal", "never") and len(family) > 1:
                # Equal counts violate nothing; only small nulls are in doubt.
                assert found.growth[-1] == 0


@pytest.mark.parametrize("claim", [PureDP(30.0), PureDP(400.0), GaussianDP(40.0)])
def test_large_claims_do_no_harm(claim):
    """Slopes beyond the square root of the largest double, without a warning."""
    for family in families_for(claim, 1e-5, 300.0).values():
        nulls = np.unique(np.linspace(0, len(family) - 1, 9).astype(np.intp))
        for events in (gaussian_events(1.0, 300), laplace_events(3.0, 300)):
            anchor, _ = find_anchor(family, events)
            chains = forward(family, nulls, anchor, events, 0.5)
            check(chains, events, len(nulls))
