import numpy as np
import pytest
from refusals import refused
from robust_objectives import frobenius_projection, glad, reaper, reaper_subgradient
from scipy.optimize import Bounds, LinearConstraint, minimize
from seeded import rng

from dpaudit import ApproxDP
from dpaudit.algorithms import (
    FastMedianSubspace,
    GeodesicDescent,
    IterativeReaper,
    MinibatchGeodesicDescent,
)
from dpaudit.algorithms.robust import geometries, initialisation
from dpaudit.algorithms.robust.ggd import NoiselessGGD, least_squares_eigenvalues
from dpaudit.algorithms.robust.objectives import spherise
from dpaudit.algorithms.shared.batches import WithReplacement
from dpaudit.algorithms.shared.step_sizes import HalvingSteps
from dpaudit.datasets import haystack
from dpaudit.subspace import principal_angles, projector_distance

HAY = haystack(400, 8, 2, inlier_share=0.6, rng=np.random.default_rng(0))


def by_hand(rows, start, etas):
    """One row, and one column of the exponential map, after the other."""
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    basis = start
    for eta in etas:
        gradient = np.zeros(basis.shape)
        for row in rows:
            residual = row - basis @ (basis.T @ row)
            if np.linalg.norm(residual) > 1e-12:
                unit = residual / np.linalg.norm(residual)
                gradient -= np.outer(unit, basis.T @ row) / len(rows)
        u, s, wt = np.linalg.svd(-eta * gradient, full_matrices=False)
        basis = (basis @ wt.T @ np.diag(np.cos(s)) + u @ np.diag(np.sin(s))) @ wt
    return basis


def test_steps_are_those_of_the_paper_and_water_fills_few_eigenvalues():
    steps = HalvingSteps()
    assert np.array_equal(steps.sizes(2000), 2.0 ** -np.floor(np.arange(2000) / 50))
    assert np.all(HalvingSteps(period=1).sizes(3000) > 0)
    rows = HAY.rows[:30]
    descent = GeodesicDescent(
        n_components=2, iterations=7, step_sizes=HalvingSteps(0.3, period=3)
    )
    path = list(descent.iterates([rows], rng=rng()))
    assert len(path) == 8
    expected = by_hand(rows, path[0][0], descent.step_sizes.sizes(7))
    assert np.allclose(path[-1][0], expected, atol=1e-12)
    release = descent.release(rows, rng=rng())
    assert projector_distance(release, expected) < 1e-12
    values = np.array([0.0, 3.0, 0.0, 2.0])
    assert np.array_equal(least_squares_eigenvalues(values, 2), [0, 1, 0, 1])
    assert np.array_equal(least_squares_eigenvalues(values, 3), [1, 1, 0, 1])
    assert np.allclose(least_squares_eigenvalues(np.ones(4), 1), 0.25)
    assert np.allclose(least_squares_eigenvalues(np.ones(4), 4), 1)


@pytest.mark.parametrize("geometry", [geometries.Geodesic(), geometries.Polar()])
def test_descent_goes_down_and_finds_the_subspace(geometry):
    descent = GeodesicDescent(n_components=2, iterations=2000, geometry=geometry)
    assert (
        geometries.squared_distance(descent.release(HAY.rows, rng=rng()), HAY.subspace)
        < 1e-20
    )


def test_batches_of_trials_are_their_trials():
    descent = MinibatchGeodesicDescent(
        n_components=2, iterations=5, batches=WithReplacement(batch_size=400)
    )
    # All rows at one place: every batch is the same.
    rows = np.repeat(HAY.rows[:1], 400, axis=0)
    releases = descent.draw(rows, 3, rng=rng())
    assert np.allclose(releases, releases[0], atol=1e-10)
    assert descent.draw(rows, 0, rng=rng()).shape == (0, 8, 2)
    release = GeodesicDescent(n_components=2).release(HAY.rows, rng=rng())
    angles = principal_angles(
        release, GeodesicDescent(n_components=2).draw(HAY.rows, 2, rng=rng(5))
    )
    assert angles.max() < 1e-12


def test_zero_residuals_and_no_inliers_are_well_defined():
    inliers = HAY.rows[HAY.labels == 1]
    descent = GeodesicDescent(n_components=2)
    path = list(descent.iterates([inliers], rng=rng()))
    assert np.array_equal(path[0], path[-1])
    assert geometries.squared_distance(path[-1][0], HAY.subspace) < 1e-28
    outliers = HAY.rows[HAY.labels == 0]
    for each in (
        descent,
        MinibatchGeodesicDescent(n_components=2, batches=WithReplacement(batch_size=3)),
        GeodesicDescent(n_components=7, start=initialisation.PublicStart()),
    ):
        release = each.release(outliers, rng=rng())
        r = each.n_components
        assert np.allclose(release.T @ release, np.eye(r), atol=1e-12)
    one = descent.release(np.eye(3)[:1], rng=rng())
    assert np.isclose(np.linalg.norm(one[0]), 1)


test_bad_input_is_named = refused(
    (
        lambda: GeodesicDescent(n_components=1, geometry=geometries.Euclidean()),
        "geometry must be for subspaces",
    ),
    (
        lambda: GeodesicDescent(n_components=1, start=initialisation.CentralStart()),
        "start must be for subspaces",
    ),
    (
        lambda: GeodesicDescent(n_components=1, relation="add-remove"),
        "relation must be replace-one",
    ),
    (
        lambda: GeodesicDescent(n_components=2).release(np.eye(2), rng=rng()),
        "n_components must be less than the length of a row, 2, got 2",
    ),
    (
        lambda: GeodesicDescent(n_components=1).release([[0.0, 0.0]], rng=rng()),
        "row 0 is zero",
    ),
    (
        lambda: MinibatchGeodesicDescent(
            n_components=1, batches=WithReplacement(batch_size=3)
        ).release(np.eye(2), rng=rng()),
        "batch_size must be at most the number of rows, 2, got 3",
    ),
)


@pytest.mark.parametrize("components", [1, 2, 3])
def test_the_refuting_pair_meets_the_condition_of_theorem_11(components):
    """Nine inliers and more in each direction, and one outlier of length one.

    So lambda_r = 8 or more where any row is left out, and the stability that the
    theorem asks for, (0.9 lambda_r - 1)/N or more, is positive.
    """
    mechanism = NoiselessGGD.as_published(1.0, 1e-5, n_components=components)
    assert mechanism.claim == ApproxDP(1.0, 1e-5)
    assert mechanism.start == initialisation.PrincipalStart()
    pair = mechanism.worst_case()
    for rows in (pair.data, pair.neighbour):
        outlying = np.abs(rows[:, components:]).max(axis=1) > 0
        assert outlying.tolist() == [False] * (9 * components) + [True]
        assert np.array_equal(rows[:-1].sum(axis=0), [9] * components + [0])
        assert np.isclose(np.linalg.norm(rows[-1]), 1)
    draws = mechanism.draw(pair.data, 3, rng=rng())
    assert np.array_equal(draws[0], draws[2])
    assert not np.allclose(draws[0], mechanism.release(pair.neighbour, rng=rng()))


KINDS = (IterativeReaper, FastMedianSubspace)
kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.parametrize(("d", "r"), [(2, 1), (5, 2), (8, 5)])
def test_water_filling_is_what_a_generic_solver_finds(d, r):
    for seed in range(8):
        values = rng(seed).exponential(size=d) ** 2

        def objective(p, values=values):
            return np.sum(values * (1 - p) ** 2), -2 * values * (1 - p)

        result = minimize(
            objective,
            np.full(d, r / d),
            method="SLSQP",
            jac=True,
            bounds=Bounds(np.zeros(d), np.ones(d)),
            constraints=LinearConstraint(np.ones(d), r, r),
            options={"ftol": 1e-15, "maxiter": 500},
        )
        shares = least_squares_eigenvalues(values, r)
        assert np.isclose(shares.sum(), r)
        assert objective(shares)[0] <= objective(result.x)[0] + 1e-9
        assert np.allclose(shares, result.x, atol=2e-4)


@kinds
def test_the_subspace_is_found_and_extreme_data_are_well_defined(kind):
    for start in (None, initialisation.PublicStart()):
        options = {} if start is None else {"start": start}
        mechanism = kind(n_components=2, **options)
        releases = mechanism.draw(HAY.rows, 2, rng=rng(1))
        assert geometries.squared_distance(releases, HAY.subspace).max() < 1e-18
    mechanism = kind(n_components=2)
    outliers = np.vstack([np.eye(4), -np.eye(4)])
    inliers = rng(4).standard_normal((8, 2)) @ np.eye(4)[:2]
    for rows in (outliers, inliers, np.eye(4)[:1], np.repeat(np.eye(4)[:1], 9, 0)):
        release = mechanism.release(rows, rng=rng())
        assert np.allclose(release.T @ release, np.eye(2), atol=1e-12)
    found = mechanism.release(inliers, rng=rng())
    assert geometries.squared_distance(found, np.eye(4)[:, :2]) < 1e-20
    assert mechanism.draw(outliers, 0, rng=rng()).shape == (0, 4, 2)


def test_noisy_rows_lead_to_the_minimum_of_reaper():
    # With few rows around the subspace the minimiser is no projector.
    rows = spherise(HAY.rows[:60] + 0.2 * rng(2).standard_normal((60, 8)))
    iterative = IterativeReaper(n_components=2, iterations=3000)
    least = iterative.minimiser(rows, np.eye(8)[:, :2])
    values = np.linalg.eigvalsh(least)
    assert np.isclose(values.sum(), 2)
    assert -1e-9 < values.min() <= values.max() < 1 + 1e-9
    # The subgradient's inequality bounds what is left: by its least value over H,
    # attained at the top-r projector of the negative subgradient.
    down = -reaper_subgradient(rows, least)
    gap = np.linalg.eigvalsh(down)[-2:].sum() - np.sum(down * least)
    assert -1e-9 < gap < 1e-4
    other = least
    for step in 0.5 / np.sqrt(np.arange(1, 200)):
        other = frobenius_projection(other - step * reaper_subgradient(rows, other), 2)
        assert reaper(rows, other) > reaper(rows, least) - gap - 1e-12


def test_noisy_rows_lead_to_a_minimum_and_long_ones_to_bases():
    rows = spherise(HAY.rows[:80] + 0.1 * rng(3).standard_normal((80, 8)))
    median = FastMedianSubspace(n_components=2, iterations=2000)
    found = median.release(rows, rng=rng())
    descent = GeodesicDescent(n_components=2, iterations=1500)
    expected = descent.release(rows, rng=rng())
    assert np.isclose(glad(rows, found), glad(rows, expected), rtol=1e-9)
    data = haystack(40, 300, 2, inlier_share=0.7, rng=rng(5))
    release = FastMedianSubspace(n_components=2).release(data.rows, rng=rng())
    assert geometries.squared_distance(release, data.subspace) < 1e-20


test_bad_arguments_are_named = refused(
    ({"start": initialisation.GaussianStart(1.0)}, "start must be under replace-one"),
    by=lambda kind, change: kind(**{"n_components": 1} | change),
    each=KINDS,
)
