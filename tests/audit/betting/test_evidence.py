"""The e-value has mean at most one, by exact enumeration; and its projection.

By its optimality conditions and in closed form. A problem there is a list of
half-spaces (cells, on_p, on_q, limit), as in `HalfSpaces`.
"""

from fractions import Fraction
from functools import cache
from math import factorial

import numpy as np
import pytest

from dpaudit import ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP
from dpaudit.audit.betting.evidence import Bets
from dpaudit.audit.betting.projection import HalfSpaces, Projection, project

POLYGONS = [
    ApproxDP(epsilon, delta)
    for epsilon in (0.05, 0.5, 1.0, 3.0)
    for delta in (0.0, 1e-6, 0.02, 0.2)
]
TANGENTS = [GaussianDP(mu) for mu in (0.1, 0.5, 1.0, 2.0)]


def polygon(claim, cells, flipped):
    """Both sides of the polygon of an event, on P - e^slope Q or the other way."""
    epsilon = claim.parameters["epsilon"]
    return [
        half_space(slope, float(claim.delta_at(slope)), cells, flipped)
        for slope in (epsilon, -epsilon)
    ]


def half_space(log_ratio, limit, cells, flipped):
    pair = (1.0, -np.exp(log_ratio))
    return (cells, *(pair[::-1] if flipped else pair), limit)


def stack(problems):
    """Put lists of half-spaces below each other, padded to the same width."""
    width = max(map(len, problems))
    rows = [[*rows, *[(0, 0.0, 0.0, 1.0)] * (width - len(rows))] for rows in problems]
    cells, on_p, on_q, limit = np.moveaxis(np.array(rows), 2, 0)
    return HalfSpaces(cells.astype(np.intp), on_p, on_q, limit)


def random_problem(rng, kind, n_cells):
    """One claim held against every event, in random directions; both laws; a share."""
    p1, q1 = (rng.dirichlet(np.full(n_cells, 1.0)) + 1e-4 for _ in range(2))
    rows = []
    claim = rng.choice(POLYGONS) if kind == "polygon" else rng.choice(TANGENTS)
    for cells in range(1, n_cells):
        flipped = bool(rng.random() < 0.5)
        if kind == "polygon":
            rows += polygon(claim, cells, flipped)
        else:
            slope = claim.parameters["mu"] * rng.normal()
            rows.append(half_space(slope, float(claim.delta_at(slope)), cells, flipped))
    return p1 / p1.sum(), q1 / q1.sum(), rows, float(rng.uniform(0.05, 0.95))


def minimiser(p1, q1, spaces, share, found):
    """Return p0 and q0 that the multipliers stand for, shape (M, K)."""
    on_p, on_q = spaces.loads(p1.shape[1])
    w = np.broadcast_to(share, (len(p1),))[:, np.newaxis]
    a = found.multipliers[..., np.newaxis]
    r = 1 + ((on_p @ a)[..., 0] - found.nu_p[:, np.newaxis]) / w
    s = 1 + ((on_q @ a)[..., 0] - found.nu_q[:, np.newaxis]) / (1 - w)
    assert (r > 0).all()
    assert (s > 0).all()
    return p1 / r, q1 / s


def excess(p0, q0, spaces):
    """Return by how much each half-space is exceeded, shape (M, J)."""
    on_p, on_q = spaces.loads(p0.shape[1])
    return (
        np.einsum("mkj,mk->mj", on_p, p0)
        + np.einsum("mkj,mk->mj", on_q, q0)
        - spaces.limit
    )


@pytest.mark.parametrize("kind", ["polygon", "tangent"])
def test_optimality_conditions(kind):
    """Feasible, normalised, complementary: with convexity, that is optimal.

    Problems of all sizes are solved at once, padded with empty cells and with
    half-spaces that hold nothing.
    """
    rng = np.random.default_rng(1)
    m, k = 200, 6
    p1, q1, problems, share = np.zeros((m, k)), np.zeros((m, k)), [], np.zeros(m)
    for row in range(m):
        size = int(rng.integers(2, k + 1))
        p, q, rows, share[row] = random_problem(rng, kind, size)
        problems.append(rows)
        p1[row, :size], q1[row, :size] = p, q
    spaces = stack(problems)
    found = project(p1, q1, spaces, share)
    assert (found.multipliers >= 0).all()
    assert (found.multipliers[(spaces.on_p == 0) & (spaces.on_q == 0)] == 0).all()
    p0, q0 = minimiser(p1, q1, spaces, share, found)
    np.testing.assert_allclose(p0.sum(axis=1), 1, atol=1e-4)
    np.testing.assert_allclose(q0.sum(axis=1), 1, atol=1e-4)
    over = excess(p0, q0, spaces)
    assert over.max() < 1e-4
    assert np.abs(found.multipliers * over).max() < 1e-4
    # No duality gap: the growth is the divergence of the minimiser.
    with np.errstate(invalid="ignore"):
        divergence = share * np.nansum(p1 * np.log(p1 / p0), axis=1)
        divergence += (1 - share) * np.nansum(q1 * np.log(q1 / q0), axis=1)
    np.testing.assert_allclose(found.growth, divergence, atol=1e-4)
    assert (found.growth > 0.01).sum() > m / 8  # not all is inside the nulls


def test_two_parallel_sides_of_an_event_do_not_jam_the_solver():
    """At small epsilon both sides of the polygon are nearly the same half-space.

    Newton's step then often points out of the domain in one of them.
    """
    rng = np.random.default_rng(3)
    claim = ApproxDP(0.01, 1e-3)
    m = 300
    p1, q1 = (10 ** rng.uniform(-3, 0, (m, 4)) for _ in range(2))
    p1, q1 = p1 / p1.sum(axis=1, keepdims=True), q1 / q1.sum(axis=1, keepdims=True)
    events = np.cumsum(p1 - q1, axis=1)[:, :-1]
    spaces = stack(
        [
            [row for j in range(3) for row in polygon(claim, j + 1, bool(e[j] < 0))]
            for e in events
        ]
    )
    for share in (0.05, 0.5, 0.95):
        found = project(p1, q1, spaces, share)
        p0, q0 = minimiser(p1, q1, spaces, share, found)
        np.testing.assert_allclose(p0.sum(axis=1), 1, atol=5e-3)
        np.testing.assert_allclose(q0.sum(axis=1), 1, atol=5e-3)
        assert excess(p0, q0, spaces).max() < 5e-3


def test_one_event_in_closed_form_and_several_stakes():
    """Randomised response against a smaller epsilon, by symmetry.

    Under the null's best law the event has probability e^epsilon / (1 + e^epsilon).
    """
    truth, claim = 2.0, ApproxDP(1.0, 0.0)
    p1, p0 = 1 / (1 + np.exp(-truth)), 1 / (1 + np.exp(-1.0))
    found = project(
        np.array([[p1, 1 - p1]]),
        np.array([[1 - p1, p1]]),
        stack([polygon(claim, 1, flipped=False)]),
        0.5,
    )
    expected = p1 * np.log(p1 / p0) + (1 - p1) * np.log((1 - p1) / (1 - p0))
    assert found.growth[0] == pytest.approx(expected, rel=1e-10)
    bets = Bets(
        np.array([[1.0, -0.5], [0.0, 0.25]]),
        np.array([[-0.5, 0.5], [0.5, -0.2]]),
        np.array([0.1, 0.0]),
    )
    np.testing.assert_allclose(bets.largest_stake(), [2.0, 5.0])
    counts_p, counts_q = np.array([[2, 1], [0, 3]]), np.array([[1, 1], [1, 1]])
    # Neighbours that stake as much on the same bet, or one of the two alike.
    stake, bet = np.array([1.0, 1.0, 0.5, 0.5, 0.0]), np.array([0, 0, 0, 1, 0])
    found = bets.log_e(counts_p, counts_q, stake, bet)
    first = 2 * np.log(2) + np.log(0.5) + np.log(0.5) + np.log(1.5) - 5 * 0.1
    half = 2 * np.log(1.5) + np.log(0.75) + np.log(0.75) + np.log(1.25) - 5 * 0.05
    second = 3 * np.log(1.125) + np.log(1.25) + np.log(0.9)
    np.testing.assert_allclose(found, [first, first, half, second, 0.0])
    assert len(bets.log_e(counts_p, counts_q, stake[:0], bet[:0])) == 0
    assert bets.take(np.array([1])).largest_stake() == pytest.approx([5.0])


def test_many_problems_at_once_are_as_one_at_a_time():
    rng = np.random.default_rng(4)
    made = [random_problem(rng, "polygon", 4) for _ in range(40)]
    p1, q1, rows, share = (list(x) for x in zip(*made, strict=True))
    p1, q1, spaces, share = np.array(p1), np.array(q1), stack(rows), np.array(share)
    together = project(p1, q1, spaces, share)
    for row in range(len(p1)):
        one = np.array([row])
        alone = project(p1[one], q1[one], spaces.take(one), float(share[row]))
        np.testing.assert_allclose(alone.growth, together.growth[one], atol=1e-12)
        p0, q0 = minimiser(p1, q1, spaces, share, together)
        p0_alone, q0_alone = minimiser(
            p1[one], q1[one], spaces.take(one), share[row], alone
        )
        np.testing.assert_allclose(p0_alone, p0[one], atol=1e-6)
        np.testing.assert_allclose(q0_alone, q0[one], atol=1e-6)


def test_padding_changes_nothing_and_growth_is_at_most_the_divergence():
    """Empty cells before the last, and half-spaces that hold nothing."""
    rng = np.random.default_rng(5)
    p1, q1, rows, share = random_problem(rng, "polygon", 3)
    plain, nothing = stack([rows]), np.zeros((1, 2))
    padded = [
        np.hstack([x[np.newaxis, :-1], nothing, x[np.newaxis, -1:]]) for x in (p1, q1)
    ]
    expected = project(p1[np.newaxis], q1[np.newaxis], plain, share)
    found = project(*padded, plain.widen(9), share)
    np.testing.assert_allclose(found.growth, expected.growth, rtol=1e-9)
    assert (found.multipliers[:, len(rows) :] == 0).all()
    # A dual value bounds the primal from below, solved or not.
    rng = np.random.default_rng(2)
    p1, q1, rows, share = random_problem(rng, "polygon", 4)
    p1, q1, spaces = p1[np.newaxis], q1[np.newaxis], stack([rows])
    best = project(p1, q1, spaces, share).growth[0]
    assert best > 0
    for tolerance in (1e-6, 1e-3, 0.1, 10.0):
        rough = project(p1, q1, spaces, share, tolerance=tolerance)
        assert 0 <= rough.growth[0] <= best * (1 + 1e-9)


def test_half_spaces_stack_and_bets_without_losses_have_no_largest_stake():
    first = stack([polygon(ApproxDP(1.0, 0.0), 1, flipped=False)])
    second = stack([polygon(ApproxDP(2.0, 0.1), 2, flipped=True)])
    both = HalfSpaces.stack([first, second])
    assert both.limit.shape == (2, 2)
    np.testing.assert_array_equal(both.take(np.array([1])).on_p, second.on_p)
    on_p, _ = both.loads(3)
    np.testing.assert_array_equal(on_p[0, :, 0], [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(on_p[1, :, 0], [second.on_p[0, 0]] * 2 + [0.0])
    bets = Bets(np.zeros((1, 2)), np.zeros((1, 2)), np.zeros(1))
    assert bets.largest_stake()[0] == np.inf


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0, 200.0, 400.0])
@pytest.mark.parametrize("delta", [0.0, 1e-12, 0.1, 0.9])
def test_extreme_problems_give_finite_bets_and_all_returns_are_positive(epsilon, delta):
    rng = np.random.default_rng(7)
    claim = ApproxDP(epsilon, delta)
    m = 60
    p1, q1 = (10 ** rng.uniform(-12, 0, (m, 4)) for _ in range(2))
    p1, q1 = p1 / p1.sum(axis=1, keepdims=True), q1 / q1.sum(axis=1, keepdims=True)
    spaces = stack(
        [
            [x for j in (1, 2, 3) for x in polygon(claim, j, bool(rng.random() < 0.5))]
            for _ in range(m)
        ]
    )
    for n_p, n_q in ((500, 500), (1, 999), (950, 50)):
        found = project(p1, q1, spaces, n_p / (n_p + n_q))
        bets = Bets.place(spaces, found, 4, n_p, n_q)
        for x in (found.multipliers, found.growth, bets.on_p, bets.on_q, bets.slack):
            assert np.isfinite(x).all()
        assert (found.growth >= 0).all()
        assert (1 + bets.on_p > 0).all()
        assert (1 + bets.on_q > 0).all()
        assert (bets.largest_stake() > 1).all()


CLAIMS = [PureDP(0.1), PureDP(1.0), ApproxDP(0.5, 0.1), ZeroConcentratedDP(0.3)]
SIZES = [(1, 1), (4, 4), (2, 5), (6, 1)]


@cache
def outcomes(n, n_cells):
    """Return all ways n releases can fall into the cells, and the orders of each."""
    if n_cells == 1:
        counts = np.array([[n]])
    else:
        counts = np.vstack(
            [
                np.insert(outcomes(n - first, n_cells - 1)[0], 0, first, axis=1)
                for first in range(n + 1)
            ]
        )
    orders = [factorial(n) / np.prod([factorial(x) for x in row]) for row in counts]
    return counts, np.array(orders)


def expectations(bets, stake, n_p, n_q, p, q):
    """Return E[E] of one bet under many laws (L, K), summed over all outcomes."""
    n_cells = p.shape[1]
    (k, orders_p), (m, orders_q) = outcomes(n_p, n_cells), outcomes(n_q, n_cells)
    every_k, every_m = np.repeat(k, len(m), axis=0), np.tile(m, (len(k), 1))
    size = len(every_k)
    rows = np.zeros(size, dtype=np.intp)
    log_e = bets.take(rows).log_e(
        every_k, every_m, np.full(size, stake), np.arange(size)
    )
    e = np.exp(log_e).reshape(len(k), len(m))
    chance_p = orders_p * np.prod(p[:, np.newaxis] ** k, axis=2)
    chance_q = orders_q * np.prod(q[:, np.newaxis] ** m, axis=2)
    np.testing.assert_allclose(chance_p.sum(axis=1), 1)
    return np.einsum("lk,km,lm->l", chance_p, e, chance_q)


def laws(claim, n_cells):
    """Return pairs of laws that meet a claim: on its boundary, and inside.

    Cells are ordered by likelihood ratio, so the events that matter are the unions of
    first cells; on the boundary their points lie on the claim's curve. Both ways round.
    """
    grid = np.array([0.02, 0.1, 0.3, 0.6])
    if n_cells == 2:
        q_events = [(x,) for x in [0.0, 1e-3, *grid, 0.9, 1.0]]
    else:
        q_events = [(x, y) for x in [0.0, *grid] for y in [*grid, 1.0] if x <= y]
    q_events = np.array(q_events)
    p_events = claim.tpr(q_events)
    pairs = []
    for lift in (1.0, 0.5):
        mixed = lift * p_events + (1 - lift) * q_events
        p, q = (
            np.maximum(np.diff(x, axis=1, prepend=0.0, append=1.0), 0.0)
            for x in (mixed, q_events)
        )
        pairs += [(p, q), (q, p), (p[:, ::-1], q[:, ::-1])]
    p, q = (np.vstack(x) for x in zip(*pairs, strict=True))
    return p, q


def half_spaces(claim, n_cells, rng):
    """Hold every event to two random half-planes of the claim, in random directions."""
    rows = []
    for cells in range(1, n_cells):
        knot = claim.parameters.get("epsilon")
        slopes = rng.normal(size=2) if knot is None else (knot, -knot)
        for slope in slopes:
            pair = [1.0, -np.exp(slope)]
            if rng.random() < 0.5:
                pair.reverse()
            rows.append((cells, *pair, float(claim.delta_at(slope))))
    cells, on_p, on_q, limit = np.array(rows).T[:, np.newaxis]
    return HalfSpaces(cells.astype(np.intp), on_p, on_q, limit)


def in_null(p, q, spaces):
    """Say which laws meet all the half-spaces."""
    on_p, on_q = spaces.loads(p.shape[1])
    return (p @ on_p[0] + q @ on_q[0] <= spaces.limit[0] + 1e-12).all(axis=1)


def sharp_laws(rng, spaces, n_cells, n=300):
    """Return laws in the null, moved along random segments up to its boundary."""
    p1, q1, centre = (rng.dirichlet(np.full(n_cells, 0.5), n) for _ in range(3))
    low, high = np.zeros(n), np.ones(n)
    for _ in range(40):
        t = (low + high) / 2
        p, q = (x * t[:, None] + centre * (1 - t[:, None]) for x in (p1, q1))
        inside = in_null(p, q, spaces)
        low, high = np.where(inside, t, low), np.where(inside, high, t)
    return tuple(x * low[:, None] + centre * (1 - low[:, None]) for x in (p1, q1))


def alternatives(rng, n_cells):
    p1, q1 = (rng.dirichlet(np.full(n_cells, 0.5)) + 1e-3 for _ in range(2))
    return p1[np.newaxis] / p1.sum(), q1[np.newaxis] / q1.sum()


def stakes_of(bets):
    """Return stakes up to the largest; up to 3 where no stake loses everything."""
    return np.minimum(bets.largest_stake()[0], 3.0) * np.array([0.1, 0.5, 0.9, 0.999])


def arbitrary(rng, spaces):
    """Return multipliers that solve nothing."""
    size = 10 ** rng.uniform(-2, 1)
    return Projection(
        size * rng.exponential(size=spaces.limit.shape) * (rng.random() < 0.8),
        size * rng.normal(size=1),
        size * rng.normal(size=1),
        np.ones(1),
    )


@pytest.mark.parametrize("solver", ["projection", "rough projection", "arbitrary"])
@pytest.mark.parametrize("n_cells", [2, 3])
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_mean_is_at_most_one(claim, n_cells, solver):
    """On the boundary of the claim, of the half-spaces alone, and inside."""
    rng = np.random.default_rng(n_cells)
    on_claim = laws(claim, n_cells)
    for n_p, n_q in SIZES:
        for _ in range(2):
            spaces = half_spaces(claim, n_cells, rng)
            assert in_null(*on_claim, spaces).all()
            p, q = (
                np.vstack(x)
                for x in zip(on_claim, sharp_laws(rng, spaces, n_cells), strict=True)
            )
            if solver == "arbitrary":
                found = arbitrary(rng, spaces)
            else:
                found = project(
                    *alternatives(rng, n_cells),
                    spaces,
                    n_p / (n_p + n_q),
                    tolerance=1e-12 if solver == "projection" else 0.5,
                )
            bets = Bets.place(spaces, found, n_cells, n_p, n_q)
            for stake in stakes_of(bets):
                mean = expectations(bets, stake, n_p, n_q, p, q)
                # Chords of a smooth curve: `ZeroConcentratedDP.tpr` is an envelope.
                assert mean.max() <= 1 + 1e-9


def test_mean_is_one_where_the_projection_touches():
    """The bet wastes nothing: at the projection itself the mean is one."""
    rng = np.random.default_rng(4)
    touched = 0
    for _ in range(20):
        spaces, (p1, q1) = half_spaces(PureDP(1.0), 3, rng), alternatives(rng, 3)
        found = project(p1, q1, spaces, 0.5)
        if found.growth[0] < 1e-3:
            continue
        bets = Bets.place(spaces, found, 3, 4, 4)
        p0, q0 = p1 / (1 + bets.on_p), q1 / (1 + bets.on_q)
        p0, q0 = p0 / p0.sum(), q0 / q0.sum()
        mean = expectations(bets, 1.0, 4, 4, p0, q0)
        assert mean[0] == pytest.approx(1.0, abs=1e-3)
        touched += 1
    assert touched >= 3


def test_slack_is_rounded_up():
    """Against the exact sum: never below it, and by next to nothing above it."""
    rng = np.random.default_rng(5)
    for _ in range(100):
        spaces = half_spaces(ApproxDP(2.0, 1e-5), 4, rng)
        found = arbitrary(rng, spaces)
        bets = Bets.place(spaces, found, 4, 3, 5)
        a = [Fraction(float(x)) for x in found.multipliers[0]]
        limit = [Fraction(float(x)) for x in spaces.limit[0]]
        nus = Fraction(float(found.nu_p[0])) + Fraction(float(found.nu_q[0]))
        exact = sum((x * y for x, y in zip(a, limit, strict=True)), -nus)
        above = Fraction(float(bets.slack[0])) - exact
        assert above >= 0
        assert above <= Fraction(1, 10**9)
