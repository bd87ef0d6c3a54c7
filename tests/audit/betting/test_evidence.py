"""The e-value has mean at most one: by exact enumeration, not by simulation."""

from fractions import Fraction
from functools import cache
from math import factorial

import numpy as np
import pytest

from dpaudit import ApproxDP, PureDP, ZeroConcentratedDP
from dpaudit.audit.betting.evidence import Bets
from dpaudit.audit.betting.projection import HalfSpaces, Projection, project

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
            rows.append((cells, *pair, float(claim.delta(slope))))
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


def test_log_e_of_several_stakes_on_several_bets():
    bets = Bets(
        np.array([[1.0, -0.5], [0.0, 0.25]]),
        np.array([[-0.5, 0.5], [0.5, -0.2]]),
        np.array([0.1, 0.0]),
    )
    np.testing.assert_allclose(bets.largest_stake(), [2.0, 5.0])
    counts_p, counts_q = np.array([[2, 1], [0, 3]]), np.array([[1, 1], [1, 1]])
    found = bets.log_e(
        counts_p, counts_q, np.array([1.0, 0.5, 0.0]), np.array([0, 1, 0])
    )
    first = 2 * np.log(2) + np.log(0.5) + np.log(0.5) + np.log(1.5) - 5 * 0.1
    second = 3 * np.log(1.125) + np.log(1.25) + np.log(0.9)
    np.testing.assert_allclose(found, [first, second, 0.0])
    assert bets.take(np.array([1])).largest_stake() == pytest.approx([5.0])


def test_a_bet_without_losses_has_no_largest_stake():
    bets = Bets(np.zeros((1, 2)), np.zeros((1, 2)), np.zeros(1))
    assert bets.largest_stake()[0] == np.inf
