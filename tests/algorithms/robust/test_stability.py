"""Stability, permeance, alignment: closed forms, brute force, and the theorems."""

import doctest

import numpy as np
import pytest
import stability_oracles
from stability_oracles import (
    alignment_bounds,
    expected_minibatch_stability,
    pca_stability,
    permeance,
    reaper_alignment,
    reaper_permeance_bounds,
    reaper_stability_bounds,
    stability_bounds,
)

from dpaudit.algorithms.robust.ggd import GeodesicDescent
from dpaudit.algorithms.robust.glad import spherise, term_sum
from dpaudit.algorithms.robust.grassmannian import polar, squared_distance
from dpaudit.datasets import haystack
from dpaudit.errors import InputError
from dpaudit.subspace import principal_angles, top_components


def rng(seed=0):
    return np.random.default_rng(seed)


def hay(seed, n=300, d=6, r=2, share=0.7):
    data = haystack(n, d, r, inlier_share=share, rng=rng(seed))
    return data, data.rows[data.labels == 1], data.rows[data.labels == 0]


def test_distances_keep_their_digits():
    first, second = polar(rng(1).standard_normal((2, 5, 2)))
    expected = 1 - np.linalg.svd(first.T @ second, compute_uv=False)[-1]
    assert np.isclose(squared_distance(first, second), expected)
    tiny = polar(np.array([[1.0], [1e-9]]))
    assert np.isclose(squared_distance([[1.0], [0.0]], tiny), 0.5e-18, rtol=1e-6)


def test_statistics_are_their_definitions():
    _, inside, outside = hay(2)
    rho, n = 0.3, len(inside) + len(outside)
    spread = np.sort(np.linalg.eigvalsh(inside.T @ inside))[::-1][1]
    expected = 2 * np.sin(np.arccos(0.7)) * spread - np.linalg.norm(outside, 2) ** 2
    found = pca_stability(inside * 3, outside, n_components=2, rho=rho)
    assert np.isclose(found, expected)
    assert np.isclose(permeance(inside, n_components=2, total=n), spread / n)
    low, high = alignment_bounds(outside, n_components=2, total=n, rng=rng())
    bound = np.sqrt(len(outside)) * np.linalg.norm(outside, 2) / n
    assert np.isclose(high, bound)
    below, above = stability_bounds(inside, outside, n_components=2, rho=rho, rng=rng())
    assert np.isclose(below, 0.7 * spread / n - high)
    assert np.isclose(above, 0.7 * spread / n - low)


@pytest.mark.parametrize(("d", "n"), [(2, 1), (2, 5), (3, 4)])
def test_alignment_bounds_hold_what_a_grid_finds(d, n):
    rows = spherise(rng(3).standard_normal((n, d)))
    low, high = alignment_bounds(rows, n_components=1, rng=rng())
    bases = polar(rng(4).standard_normal((20_000, d, 1)))
    found = np.linalg.norm(term_sum(rows, bases), axis=(1, 2)).max() / n
    assert found <= high
    assert low <= high
    assert low >= 0.97 * found


def test_one_outlier_is_aligned_with_almost_anything():
    low, high = alignment_bounds(np.eye(3)[:1], n_components=1, rng=rng())
    assert high == 1
    assert 0.95 < low <= 1


def test_permeance_of_reaper_is_exact_in_the_plane():
    rows = rng(5).standard_normal((40, 2))
    basis = polar(rng(6).standard_normal((5, 2)))
    low, high = reaper_permeance_bounds(rows @ basis.T, basis, rng=rng())
    angles = np.linspace(0, np.pi, 200_001)
    units = np.stack([np.cos(angles), np.sin(angles)])
    found = np.abs(rows @ units).mean(axis=0).min()
    assert low == high
    assert high <= found * (1 + 1e-12)
    assert np.isclose(high, found, rtol=1e-4)
    one = reaper_permeance_bounds(rows[:, :1] @ basis[:, :1].T, basis[:, :1], rng=rng())
    assert np.allclose(one, np.abs(rows[:, 0]).mean())


def test_permeance_of_reaper_is_bracketed_in_space():
    rows = rng(7).standard_normal((60, 3))
    low, high = reaper_permeance_bounds(rows, np.eye(3), total=100, rng=rng())
    units = spherise(rng(8).standard_normal((50_000, 3)))
    found = np.abs(rows @ units.T).sum(axis=0).min() / 100
    assert low <= found
    assert 0.9 * high <= found
    assert high <= 1.05 * found


def test_stability_of_reaper_is_its_definition():
    data, inside, outside = hay(9, share=0.9)
    off = outside - outside @ data.subspace @ data.subspace.T
    off /= np.linalg.norm(off, axis=1, keepdims=True)
    harm = np.linalg.norm(outside, 2) * np.linalg.norm(off, 2) / 300
    found = reaper_alignment(outside, data.subspace, total=300)
    assert np.isclose(found, harm)
    low, high = reaper_permeance_bounds(inside, data.subspace, total=300, rng=rng())
    bounds = reaper_stability_bounds(inside, outside, data.subspace, rng=rng())
    share = 4 * np.sqrt(2)
    assert np.allclose(bounds, (low / share - harm, high / share - harm))
    assert reaper_alignment(np.empty((0, 6)), data.subspace) == 0
    on = reaper_alignment(data.subspace.T, data.subspace)
    assert on == 0


@pytest.mark.parametrize("seed", range(5))
def test_theorem_1_pca_starts_near(seed):
    data, inside, outside = hay(seed, share=0.5)
    basis = top_components(data.rows.T @ data.rows, 2)
    distance = float(squared_distance(basis, data.subspace))
    holds = [
        rho
        for rho in np.linspace(0.001, 0.999, 300)
        if pca_stability(inside, outside, n_components=2, rho=float(rho)) > 0
    ]
    assert holds
    assert distance < min(holds)


def test_stable_data_are_where_descent_arrives():
    data, inside, outside = hay(11, share=0.8)
    low, _ = stability_bounds(inside, outside, n_components=2, rho=0.3, rng=rng())
    assert low > 0
    release = GeodesicDescent(n_components=2, iterations=1500).release(
        data.rows, rng=rng()
    )
    assert principal_angles(release, data.subspace).max() < 1e-7


def test_minibatches_are_less_stable_than_all_rows():
    _, inside, outside = hay(12, share=0.9)
    options = {"n_components": 2, "rho": 0.2, "rng": rng()}
    whole, error = expected_minibatch_stability(
        inside, outside, batch_size=300, batches=3, **options
    )
    low, _ = stability_bounds(inside, outside, **options)
    assert error < 1e-12
    assert np.isclose(whole, low)
    part, error = expected_minibatch_stability(
        inside, outside, batch_size=30, **options
    )
    assert part + 6 * error < whole


def test_nothing_inside_or_outside_is_well_defined():
    rows = np.eye(3)
    none = np.empty((0, 3))
    assert alignment_bounds(none, n_components=1, rng=rng()) == (0.0, 0.0)
    assert pca_stability(none, rows, n_components=1, rho=0.5) == -1
    assert pca_stability(rows, none, n_components=1, rho=0.5) > 0
    low, high = stability_bounds(rows, none, n_components=1, rho=0.5, rng=rng())
    assert np.isclose(low, high)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: pca_stability(np.eye(2), np.eye(3), n_components=1, rho=0.5),
            "length",
        ),
        (lambda: pca_stability(np.eye(2), np.eye(2), n_components=1, rho=1.0), "rho"),
        (lambda: permeance(np.eye(2), n_components=3), "n_components"),
        (lambda: permeance([[0.0, 0.0]], n_components=1), "row 0 is zero"),
        (
            lambda: alignment_bounds(np.eye(2), n_components=2, rng=rng()),
            "n_components must be an integer >= 1 and <= 1",
        ),
        (
            lambda: reaper_permeance_bounds(np.eye(3), np.eye(2)[:, :1], rng=rng()),
            "inliers must have shape",
        ),
        (
            lambda: expected_minibatch_stability(
                np.eye(2), np.eye(2), n_components=1, rho=0.5, batch_size=5, rng=rng()
            ),
            "batch_size",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_the_examples_are_as_printed():
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testmod(stability_oracles, optionflags=flags).failed == 0
