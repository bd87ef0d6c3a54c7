"""The projection, by its optimality conditions and in closed form.

A problem here is a list of half-spaces (cells, on_p, on_q, limit), as in `HalfSpaces`.
"""

import numpy as np
import pytest

from dpaudit import ApproxDP, GaussianDP
from dpaudit.audit.betting.evidence import Bets
from dpaudit.audit.betting.projection import HalfSpaces, project

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
        half_space(slope, float(claim.delta(slope)), cells, flipped)
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
            rows.append(half_space(slope, float(claim.delta(slope)), cells, flipped))
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


def test_growth_is_never_more_than_the_divergence():
    """A dual value bounds the primal from below, solved or not."""
    rng = np.random.default_rng(2)
    p1, q1, rows, share = random_problem(rng, "polygon", 4)
    p1, q1, spaces = p1[np.newaxis], q1[np.newaxis], stack([rows])
    best = project(p1, q1, spaces, share).growth[0]
    assert best > 0
    for tolerance in (1e-6, 1e-3, 0.1, 10.0):
        rough = project(p1, q1, spaces, share, tolerance=tolerance)
        assert 0 <= rough.growth[0] <= best * (1 + 1e-9)


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


def test_one_event_in_closed_form():
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


def test_padding_changes_nothing():
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


def test_two_sets_of_half_spaces_stack():
    first = stack([polygon(ApproxDP(1.0, 0.0), 1, flipped=False)])
    second = stack([polygon(ApproxDP(2.0, 0.1), 2, flipped=True)])
    both = HalfSpaces.stack([first, second])
    assert both.limit.shape == (2, 2)
    np.testing.assert_array_equal(both.take(np.array([1])).on_p, second.on_p)
    on_p, _ = both.loads(3)
    np.testing.assert_array_equal(on_p[0, :, 0], [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(on_p[1, :, 0], [second.on_p[0, 0]] * 2 + [0.0])


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
