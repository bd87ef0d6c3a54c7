"""IRLS-REAPER and FMS: against generic solvers, where they lead, false claims."""

import numpy as np
import pytest
from refusals import refused
from robust_objectives import frobenius_projection, glad, reaper, reaper_subgradient
from scipy.optimize import Bounds, LinearConstraint, minimize
from seeded import rng

from dpaudit.algorithms import FastMedianSubspace, GeodesicDescent, IterativeReaper
from dpaudit.algorithms.robust.ggd import least_squares_eigenvalues
from dpaudit.algorithms.robust.glad import spherise
from dpaudit.algorithms.robust.grassmannian import squared_distance
from dpaudit.algorithms.robust.initialisation import GaussianStart, PublicStart
from dpaudit.datasets import haystack

HAY = haystack(400, 8, 2, inlier_share=0.6, rng=np.random.default_rng(0))
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


def test_water_filling_of_few_eigenvalues():
    values = np.array([0.0, 3.0, 0.0, 2.0])
    assert np.array_equal(least_squares_eigenvalues(values, 2), [0, 1, 0, 1])
    assert np.array_equal(least_squares_eigenvalues(values, 3), [1, 1, 0, 1])
    assert np.allclose(least_squares_eigenvalues(np.ones(4), 1), 0.25)
    assert np.allclose(least_squares_eigenvalues(np.ones(4), 4), 1)


@kinds
def test_the_subspace_is_found(kind):
    for start in (None, PublicStart()):
        options = {} if start is None else {"start": start}
        mechanism = kind(n_components=2, **options)
        releases = mechanism.draw(HAY.rows, 2, rng=rng(1))
        assert squared_distance(releases, HAY.subspace).max() < 1e-18


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


def test_noisy_rows_lead_to_a_minimum_of_glad():
    rows = spherise(HAY.rows[:80] + 0.1 * rng(3).standard_normal((80, 8)))
    median = FastMedianSubspace(n_components=2, iterations=2000)
    found = median.release(rows, rng=rng())
    descent = GeodesicDescent(n_components=2, iterations=1500)
    expected = descent.release(rows, rng=rng())
    assert np.isclose(glad(rows, found), glad(rows, expected), rtol=1e-9)


@kinds
def test_extreme_data_are_well_defined(kind):
    mechanism = kind(n_components=2)
    outliers = np.vstack([np.eye(4), -np.eye(4)])
    inliers = rng(4).standard_normal((8, 2)) @ np.eye(4)[:2]
    for rows in (outliers, inliers, np.eye(4)[:1], np.repeat(np.eye(4)[:1], 9, 0)):
        release = mechanism.release(rows, rng=rng())
        assert np.allclose(release.T @ release, np.eye(2), atol=1e-12)
    found = mechanism.release(inliers, rng=rng())
    assert squared_distance(found, np.eye(4)[:, :2]) < 1e-20
    assert mechanism.draw(outliers, 0, rng=rng()).shape == (0, 4, 2)


def test_rows_longer_than_they_are_many():
    data = haystack(40, 300, 2, inlier_share=0.7, rng=rng(5))
    release = FastMedianSubspace(n_components=2).release(data.rows, rng=rng())
    assert squared_distance(release, data.subspace) < 1e-20


test_bad_arguments_are_named = refused(
    ({"n_components": 0}, "n_components must be"),
    ({"iterations": 0}, "iterations must be"),
    ({"floor": 0.0}, "floor must be"),
    ({"claim": "1-DP"}, "claim must be"),
    ({"start": "pca"}, "start must be a Start"),
    ({"start": GaussianStart(1.0)}, "start must be under replace-one"),
    by=lambda kind, change: kind(**{"n_components": 1} | change),
    each=KINDS,
)


test_bad_data_are_named = refused(
    (np.eye(2), "n_components must be less than the length of a row, 2, got 2"),
    ([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], "row 1 is zero"),
    (np.empty((0, 3)), "n >= 1"),
    by=lambda kind, data: kind(n_components=2).release(data, rng=rng()),
    each=KINDS,
)


test_other_components_are_refused = refused(
    ("n_components must be the 2",),
    by=lambda kind: kind(n_components=2).components(np.eye(3)[:, :2], 1),
    each=KINDS,
)
