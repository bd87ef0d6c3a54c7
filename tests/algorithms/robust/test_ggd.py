"""Geodesic descent without noise: by hand, where it leads, its restarts, bad input."""

import numpy as np
import pytest
from refusals import refused
from seeded import rng

from dpaudit import ApproxDP
from dpaudit.algorithms import GeodesicDescent, MinibatchGeodesicDescent
from dpaudit.algorithms.robust.fantope import Euclidean
from dpaudit.algorithms.robust.ggd import NoiselessGGD
from dpaudit.algorithms.robust.grassmannian import Geodesic, Polar, squared_distance
from dpaudit.algorithms.robust.initialisation import (
    CentralStart,
    PrincipalStart,
    PublicStart,
)
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


def test_steps_are_those_of_the_paper():
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


@pytest.mark.parametrize("geometry", [Geodesic(), Polar()])
def test_descent_goes_down_and_finds_the_subspace(geometry):
    descent = GeodesicDescent(n_components=2, iterations=2000, geometry=geometry)
    assert squared_distance(descent.release(HAY.rows, rng=rng()), HAY.subspace) < 1e-20


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
    assert squared_distance(path[-1][0], HAY.subspace) < 1e-28
    outliers = HAY.rows[HAY.labels == 0]
    for each in (
        descent,
        MinibatchGeodesicDescent(n_components=2, batches=WithReplacement(batch_size=3)),
        GeodesicDescent(n_components=7, start=PublicStart()),
    ):
        release = each.release(outliers, rng=rng())
        r = each.n_components
        assert np.allclose(release.T @ release, np.eye(r), atol=1e-12)
    one = descent.release(np.eye(3)[:1], rng=rng())
    assert np.isclose(np.linalg.norm(one[0]), 1)


test_bad_input_is_named = refused(
    (lambda: GeodesicDescent(n_components=0), "n_components must be"),
    (lambda: GeodesicDescent(n_components=1, iterations=0), "iterations must be"),
    (lambda: GeodesicDescent(n_components=1, geometry="flat"), "geometry must be"),
    (
        lambda: GeodesicDescent(n_components=1, geometry=Euclidean()),
        "geometry must be for subspaces",
    ),
    (
        lambda: GeodesicDescent(n_components=1, start=CentralStart()),
        "start must be for subspaces",
    ),
    (
        lambda: GeodesicDescent(n_components=1, relation="add-remove"),
        "relation must be replace-one",
    ),
    (lambda: GeodesicDescent(n_components=1, batches=4), "batches must be"),
    (lambda: GeodesicDescent(n_components=1, noise=0.1), "noise must be"),
    (lambda: GeodesicDescent(n_components=1, step_sizes=0.1), "must be StepSizes"),
    (lambda: GeodesicDescent(n_components=1, claim="1-DP"), "claim must be"),
    (lambda: GeodesicDescent(n_components=1, start="pca"), "start must be a Start"),
    (
        lambda: MinibatchGeodesicDescent(
            n_components=1, batches=WithReplacement(batch_size=0)
        ),
        "batch_size must be",
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
    (
        lambda: GeodesicDescent(n_components=2).components(np.eye(3)[None], 3),
        "n_components must be the 2",
    ),
    (lambda: HalvingSteps(0.0), "first must be"),
    (lambda: HalvingSteps(period=0), "period must be"),
)


@pytest.mark.parametrize("components", [1, 2, 3])
def test_the_refuting_pair_meets_the_condition_of_theorem_11(components):
    """Nine inliers and more in each direction, and one outlier of length one.

    So lambda_r = 8 or more where any row is left out, and the stability that the
    theorem asks for, (0.9 lambda_r - 1)/N or more, is positive.
    """
    mechanism = NoiselessGGD.as_published(1.0, 1e-5, n_components=components)
    assert mechanism.claim == ApproxDP(1.0, 1e-5)
    assert mechanism.start == PrincipalStart()
    pair = mechanism.worst_case()
    for rows in (pair.data, pair.neighbour):
        outlying = np.abs(rows[:, components:]).max(axis=1) > 0
        assert outlying.tolist() == [False] * (9 * components) + [True]
        assert np.array_equal(rows[:-1].sum(axis=0), [9] * components + [0])
        assert np.isclose(np.linalg.norm(rows[-1]), 1)
    draws = mechanism.draw(pair.data, 3, rng=rng())
    assert np.array_equal(draws[0], draws[2])
    assert not np.allclose(draws[0], mechanism.release(pair.neighbour, rng=rng()))
