"""Runs side by side, each on a dataset of its own, are the runs on those datasets.

Where batches are all rows, and there is next to no noise, a run is a function of its
data, so nothing here is left to chance.
"""

from dataclasses import replace

import numpy as np
import pytest
from seeded import rng

from dpaudit.algorithms import GeodesicDescent, PrivateGGD, PrivateSGGD
from dpaudit.algorithms.robust.initialisation import PrincipalStart
from dpaudit.algorithms.robust.parts import FixedNoise, PublishedNoise
from dpaudit.algorithms.robust.private_reaper import (
    PrivateGradientReaper,
    PrivateStochasticGradientReaper,
    PrivateStochasticMirrorReaper,
)
from dpaudit.algorithms.shared.batches import PoissonBatches, padded_with_zeros, taken
from dpaudit.claims import ApproxDP
from dpaudit.datasets import haystack
from dpaudit.subspace import top_components

CLAIM = ApproxDP(1.0, 1e-3)
FULL = {"noise": FixedNoise(1e-12), "claim": CLAIM}
ALL = {**FULL, "batches": PoissonBatches(rate=1.0, batch_size=40.0)}


DATA = [haystack(40, 5, 2, inlier_share=0.7, rng=rng(seed)).rows for seed in (1, 2, 3)]


@pytest.mark.parametrize(
    "descent",
    [
        GeodesicDescent(n_components=2, iterations=5),
        PrivateGGD(n_components=2, start=PrincipalStart(), **FULL),
        PrivateSGGD(n_components=2, start=PrincipalStart(), **ALL),
    ],
    ids=["ggd", "dp-ggd", "dp-sggd"],
)
def test_descents_on_glad(descent):
    *_, together = descent.iterates(DATA, rng=rng())
    for place, data in enumerate(DATA):
        *_, alone = descent.iterates([data], rng=rng(9))
        assert np.allclose(together[place], alone[0], atol=1e-9)
        assert not np.allclose(together[place], together[place - 1], atol=1e-3)
        release = descent.release(data, rng=rng())
        projectors = [v @ v.T for v in (alone[0], release)]
        assert np.allclose(*projectors, atol=1e-9)


@pytest.mark.parametrize(
    "descent",
    [
        PrivateGradientReaper(n_components=2, **FULL),
        PrivateStochasticGradientReaper(n_components=2, **ALL),
        PrivateStochasticMirrorReaper(n_components=2, **ALL),
    ],
    ids=["dp-gd-reap", "dp-sgd-reap", "dp-smd-reap"],
)
def test_descents_on_reaper(descent):
    for average in descent.iterates(DATA, rng=rng()):
        together = average
    for place, data in enumerate(DATA):
        for average in descent.iterates([data], rng=rng(9)):
            alone = average[0]
        assert np.allclose(together[place], alone, atol=1e-9)
        assert not np.allclose(together[place], together[place - 1], atol=1e-3)
        release = descent.release(data, rng=rng())
        basis = top_components(alone, 2)
        assert np.allclose(basis @ basis.T, release @ release.T, atol=1e-6)


@pytest.mark.parametrize("kind", [PrivateSGGD, PrivateStochasticMirrorReaper])
def test_batches_with_replacement_are_of_the_runs_own_rows(kind):
    # The rows of each dataset are all the same one, so its batches are, too.
    mechanism = kind.as_published(1.0, 1e-3, n_components=1, iterations=3)
    mechanism = replace(mechanism, noise=PublishedNoise(0.0))
    data = [np.repeat(rows[:1], 40, axis=0) for rows in DATA]
    rows = np.stack([mechanism.rows(each) for each in data])
    start = rng(5).standard_normal((5, 5)) if kind is not PrivateSGGD else None
    if start is None:
        state = np.repeat(np.eye(5)[np.newaxis, :, :1], 3, axis=0)
    else:
        state = np.repeat((start + start.T)[np.newaxis], 3, axis=0)
    together = mechanism.summing(rows, rng())(state)
    for place in range(3):
        alone = mechanism.summing(rows[place], rng(9))(state[:1])
        assert np.allclose(together[place], alone[0], atol=1e-12)


def test_rows_are_taken_from_each_trials_own():
    rows = rng().standard_normal((3, 4, 2))
    batches = np.array([[0, 4], [3, 3], [1, 0]])
    padded = padded_with_zeros(rows)
    found = taken(padded, batches)
    assert found.shape == (3, 2, 2)
    assert np.array_equal(found[0], [rows[0, 0], [0, 0]])
    assert np.array_equal(found[1], [rows[1, 3], rows[1, 3]])
    assert np.array_equal(taken(padded[2], batches[2:]), found[2:])
    assert padded_with_zeros(np.empty((0, 2))).tolist() == [[0.0, 0.0]]
