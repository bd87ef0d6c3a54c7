"""Where descents start, and how they move.

Private starts: laws, sensitivities, costs, losses, bad input. Polar retraction, settled
bases and geodesics: against generic solvers.

Type-I error: 1e-9 for each test of a law, 1e-8 in all, at fixed seeds.
"""

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from refusals import refused
from robust_objectives import looks_standard_normal
from seeded import rng

from dpaudit import GaussianDP, InputError, PureDP, Relation, UnsupportedError
from dpaudit.algorithms.covariance.entrywise import GOEGaussian
from dpaudit.algorithms.robust.geometries import (
    geodesic_step,
    polar,
    settle,
    squared_distance,
    to_tangent,
)
from dpaudit.algorithms.robust.initialisation import (
    GaussianStart,
    PowerStart,
    PrincipalStart,
    PublicStart,
    PublishedStart,
    WishartStart,
)
from dpaudit.algorithms.robust.objectives import spherise
from dpaudit.algorithms.robust.parts import check_start
from dpaudit.subspace import principal_angles, top_components

ROWS = spherise(np.random.default_rng(0).standard_normal((40, 4)) * [9, 5, 1, 1])
TOP = top_components(ROWS.T @ ROWS, 2)
relations = pytest.mark.parametrize("relation", list(Relation))
STARTS = {
    **{"public": PublicStart(), "gaussian": GaussianStart(0.7)},
    **{"power": PowerStart(0.7, iterations=3), "wishart": WishartStart(0.5)},
    **{"published": PublishedStart(0.5), "principal": PrincipalStart()},
}


@pytest.mark.parametrize("name", list(STARTS))
@pytest.mark.parametrize("size", [0, 1, 5])
def test_starts_are_settled_bases(name, size):
    start = STARTS[name]
    values = start.draw(ROWS, 2, size, rng=rng(1))
    assert all(key.startswith("start") for key in values)
    assert all(len(value) == size for value in values.values())
    bases = start.points(values, (size, 4, 2))
    assert bases.shape == (size, 4, 2)
    assert np.allclose(bases.swapaxes(1, 2) @ bases, np.eye(2), atol=1e-12)
    # The nearest to E: V^T E is symmetric and positive semi-definite.
    overlap = bases[:, :2]
    assert np.allclose(overlap, overlap.swapaxes(1, 2), atol=1e-12)
    assert np.all(np.linalg.eigvalsh(overlap) > -1e-12)


@relations
@pytest.mark.parametrize("name", ["gaussian", "power"])
def test_what_gaussian_starts_publish_is_gaussian_about_its_means(name, relation):
    made = {"gaussian": GaussianStart, "power": PowerStart}[name](0.7, relation)
    values = made.draw(ROWS, 2, 800, rng=rng(2))
    means = made.means(values, ROWS)
    assert means.keys() == made.scales.keys() == {"start"}
    assert looks_standard_normal(
        (values["start"] - means["start"]) / made.scales["start"]
    )


@relations
def test_the_gaussian_start_is_goe_noise_in_other_coordinates(relation):
    made, peer = (
        GaussianStart(0.7, relation),
        GOEGaussian.from_mu(0.7, relation=relation),
    )
    noise = made.draw(np.zeros((1, 3)), 1, 1, rng=rng(3))["start"]
    assert noise.shape == (1, 6)
    assert np.isclose(made.scales["start"], peer.sigma)


@relations
def test_gaussian_starts_move_by_mu_at_most(relation):
    generator, worst = rng(4), 0.0
    made, power = GaussianStart(0.7, relation), PowerStart(0.7, relation)
    basis = np.linalg.qr(generator.standard_normal((3, 2))).Q
    for trial in range(300):
        pair = spherise(generator.standard_normal((2, 3)))
        if trial == 0:
            pair = np.eye(3)[:2]
        first = np.vstack([ROWS[:5, :3], pair[:1]])
        second = ROWS[:5, :3]
        if relation is Relation.REPLACE_ONE:
            second = np.vstack([second, pair[1:]])
        published = {"start": np.zeros((1, 6))}
        shift = (
            made.means(published, first)["start"]
            - (made.means(published, second)["start"])
        )
        moved = np.linalg.norm(shift) / made.scales["start"]
        worst = max(worst, moved)
        assert moved <= 0.7 * (1 + 1e-12)
        values = {"start_basis": basis[None], "start": np.zeros((1, 4, 3, 2))}
        values["start"][:] = basis
        steps = (
            power.means(values, first)["start"] - (power.means(values, second)["start"])
        )
        assert np.linalg.norm(steps) / power.scales["start"] <= 0.7 * (1 + 1e-12)
    assert np.isclose(worst, 0.7)


@pytest.mark.parametrize(
    "start", [GaussianStart(1e6), PowerStart(1e6, iterations=60), WishartStart(1e6)]
)
def test_without_noise_a_start_is_pca(start):
    bases = start.points(start.draw(ROWS, 2, 3, rng=rng(5)), (3, 4, 2))
    assert principal_angles(bases, TOP).max() < 1e-4


def test_the_principal_start_is_pca_and_wisharts_lose_what_their_mechanisms_do():
    start = PrincipalStart()
    bases = start.points(start.draw(ROWS, 2, 2, rng=rng(6)), (2, 4, 2))
    assert principal_angles(bases, TOP).max() < 1e-12
    one = start.points(start.draw(np.eye(4)[:1], 3, 1, rng=rng(6)), (1, 4, 3))
    assert one.shape == (1, 4, 3)
    assert np.isclose(np.linalg.norm(one[0].T @ np.eye(4)[0]), 1)
    rows, other = np.eye(2)[[0, 0, 1]], np.eye(2)[[0, 1, 1]]
    for start in (WishartStart(0.5), PublishedStart(0.5)):
        values = start.draw(rows, 1, 20, rng=rng(9))
        loss = start.loss(values, rows, other)
        expected = start.mechanism.privacy_loss(values["start"], rows, other)
        assert np.array_equal(loss, expected)
    start = WishartStart(0.5)
    values = start.draw(ROWS, 1, 2, rng=rng())
    with pytest.raises(UnsupportedError):
        start.loss(values, ROWS, ROWS[1:])


def test_losses_change_sign_and_have_the_mean_of_a_gaussian():
    made = GaussianStart(0.7)
    values = made.draw(ROWS, 2, 4000, rng=rng(7))
    loss = made.loss(values, ROWS, ROWS[1:])
    assert np.allclose(loss, -made.loss(values, ROWS[1:], ROWS))
    # A row of norm 1 moves the whole by mu exactly.
    assert looks_standard_normal((loss - 0.7**2 / 2) / 0.7)
    power = PowerStart(0.7)
    values = power.draw(ROWS, 2, 50, rng=rng(8))
    loss = power.loss(values, ROWS, ROWS[1:])
    assert np.allclose(loss, -power.loss(values, ROWS[1:], ROWS))
    assert np.abs(loss).max() > 0


def test_costs_are_named_and_long_rows_need_a_start_without_square_matrices():
    assert PublicStart().claim is None
    assert GaussianStart(0.7).claim == PowerStart(0.7).claim == GaussianDP(0.7)
    assert WishartStart(0.5).claim == PublishedStart(0.5).claim == PureDP(0.5)
    # Jiang's 3/(2 N epsilon), times N.
    assert PublishedStart(0.5).mechanism.scale == 3.0
    assert PublishedStart(0.5).relation is Relation.REPLACE_ONE
    rows = spherise(rng(10).standard_normal((5, 3000)))
    for start in (GaussianStart(1.0), WishartStart(1.0)):
        with pytest.raises(InputError, match="must be a PowerStart or a PublicStart"):
            start.draw(rows, 1, 1, rng=rng())
    start = PowerStart(1.0)
    assert start.points(start.draw(rows, 2, 1, rng=rng()), (1, 3000, 2)).shape == (
        1,
        3000,
        2,
    )


test_bad_input_is_named = refused(
    (lambda: check_start("pca", Relation.ADD_REMOVE), "start must be a Start"),
    (
        lambda: check_start(GaussianStart(1.0), Relation.REPLACE_ONE),
        "start must be under replace-one",
    ),
)


@pytest.mark.parametrize("shape", [(1, 2, 1), (4, 5, 1), (4, 3, 2), (3, 6, 4)])
def test_polar_is_the_polar_factor(shape):
    matrices = rng(1).standard_normal(shape)
    expected = [scipy.linalg.polar(each)[0] for each in matrices]
    assert np.allclose(polar(matrices), expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("ratio", [1.0, 1e-3, 1e-9, 1e-14, 0.0])
def test_polar_of_nearly_dependent_columns_is_orthonormal(ratio):
    first, second = rng(3).standard_normal((2, 5))
    bases = polar(np.stack([first, first + ratio * second], axis=1)[None])
    assert np.abs(bases[0].T @ bases[0] - np.eye(2)).max() < 1e-11
    assert np.isfinite(polar(np.zeros((2, 3, 1)))).all()


def test_settled_bases_depend_on_the_span_alone_wherever_it_is():
    bases = polar(rng(4).standard_normal((6, 5, 3)))
    turns = polar(rng(5).standard_normal((6, 3, 3)))
    settled = settle(bases)
    assert np.allclose(settle(bases @ turns), settled, atol=1e-12)
    assert principal_angles(bases, settled).max() < 1e-12
    nearest = np.linalg.norm(settled - np.eye(5)[:, :3], axis=(1, 2))
    for seed in range(50):
        other = bases @ polar(rng(seed).standard_normal((6, 3, 3)))
        assert np.all(nearest <= np.linalg.norm(other - np.eye(5)[:, :3], axis=(1, 2)))
    assert np.allclose(settle(settled), settled, atol=1e-12)
    settled = settle(np.eye(4)[:, 2:])
    assert principal_angles(settled, np.eye(4)[:, 2:]).max() == 0


@pytest.mark.parametrize(("d", "r"), [(2, 1), (5, 2), (4, 3)])
def test_geodesics_are_those_of_the_matrix_exponential(d, r):
    basis = polar(rng(6).standard_normal((d, r)))
    tangent = to_tangent(basis, rng(7).standard_normal((d, r)))
    # A polar factor errs by an ulp times the square of its condition: 1e-12 or less.
    assert np.abs(basis.T @ tangent).max() < 1e-11
    # The rotation that carries V along H: the exponential of H V^T - V H^T.
    turn = scipy.linalg.expm(tangent @ basis.T - basis @ tangent.T)
    assert np.allclose(geodesic_step(basis, tangent), turn @ basis, atol=1e-11)


def test_geodesics_turn_by_the_singular_values_and_retractions_nearly():
    basis = polar(rng(8).standard_normal((6, 2)))
    tangent = 0.1 * to_tangent(basis, rng(9).standard_normal((6, 2)))
    angles = principal_angles(basis, geodesic_step(basis, tangent))
    lengths = np.linalg.svd(tangent, compute_uv=False)
    assert np.allclose(angles, lengths[::-1], rtol=1e-12)
    flat = principal_angles(basis, polar(basis + tangent))
    assert np.allclose(flat, np.arctan(lengths[::-1]), rtol=1e-12)
    basis = polar(rng(10).standard_normal((6, 2)))
    tangent = to_tangent(basis, rng(11).standard_normal((6, 2)))
    gaps = [
        np.linalg.norm(polar(basis + h * tangent) - geodesic_step(basis, h * tangent))
        for h in (0.02, 0.01)
    ]
    assert np.isclose(gaps[0] / gaps[1], 8, rtol=0.01)


def test_retractions_of_stacks_and_distances_keep_their_digits():
    matrices = rng(12).standard_normal((2, 3, 5, 2))
    bases, tangents = polar(matrices), to_tangent(polar(matrices), matrices[::-1])
    for place in np.ndindex(2, 3):
        assert np.allclose(bases[place], polar(matrices[place]), atol=1e-11)
        alone = geodesic_step(bases[place], tangents[place])
        assert np.allclose(geodesic_step(bases, tangents)[place], alone, atol=1e-11)
        assert np.allclose(settle(bases)[place], settle(bases[place]), atol=1e-11)
    first, second = polar(rng(1).standard_normal((2, 5, 2)))
    expected = 1 - np.linalg.svd(first.T @ second, compute_uv=False)[-1]
    assert np.isclose(squared_distance(first, second), expected)
    tiny = polar(np.array([[1.0], [1e-9]]))
    assert np.isclose(squared_distance([[1.0], [0.0]], tiny), 0.5e-18, rtol=1e-6)
