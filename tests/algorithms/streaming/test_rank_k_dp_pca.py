"""DP-PCA for several components: deflation, composition, and what is read how often.

Nothing here is random from run to run: seeds are fixed.
"""

import numpy as np
import pytest
from budget_oracles import composed_delta
from seeded import rng

from dpaudit import ApproxDP, InputError
from dpaudit.algorithms import DPPCA, RankKDPPCA
from dpaudit.algorithms.streaming.mean_budget import CalibratedSplit
from dpaudit.subspace import projector_distance

LOUD = {"epsilon": 400.0, "delta": 0.1, "group_constant": 400.0}


def graded(n, deviations, seed=0):
    return rng(seed).standard_normal((n, len(deviations))) * deviations


def test_one_component_is_dp_pca_and_more_are_found():
    rows = graded(700, [1.0, 0.4, 0.4])
    one = DPPCA.calibrated(20.0, 1e-2).draw(rows, 20, rng=rng(1))
    several = RankKDPPCA.calibrated(20.0, 1e-2, n_components=1)
    np.testing.assert_array_equal(several.draw(rows, 20, rng=rng(1))[:, :, 0], one)
    mechanism = RankKDPPCA.calibrated(4.0, 1e-6, n_components=2)
    rows = graded(100_000, [1.0, 0.4, 0.02, 0.02])
    bases = mechanism.draw(rows, 6, rng=rng(1))
    assert np.median(projector_distance(bases, np.eye(4)[:, :2])) < 0.2


@pytest.mark.parametrize("k", [2, 3])
def test_releases_are_orthonormal_or_bottom(k):
    rows = graded(1500, [1.0, 0.6, 0.4, 0.2])
    mechanism = RankKDPPCA.calibrated(**LOUD, n_components=k)
    draws = mechanism.draw(rows, 60, rng=rng(1))
    assert draws.shape == (60, 4, k)
    bottom = np.isnan(draws)
    assert (bottom.any(axis=(1, 2)) == bottom.all(axis=(1, 2))).all()
    found = draws[~bottom.any(axis=(1, 2))]
    assert len(found) > 30
    gram = found.swapaxes(1, 2) @ found
    np.testing.assert_allclose(gram, np.tile(np.eye(k), (len(found), 1, 1)), atol=1e-9)
    assert (np.abs(found).max(axis=1) == found.max(axis=1)).all()
    np.testing.assert_array_equal(mechanism.components(draws, k), draws)
    one = mechanism.release(rows, rng=rng(2))
    np.testing.assert_array_equal(one, mechanism.draw(rows, 1, rng=rng(2))[0])


def test_bottom_in_the_last_component_is_bottom_and_the_composition_accounted():
    mechanism = RankKDPPCA.calibrated(20.0, 1e-2, n_components=2)
    rows = graded(300, [1.0, 0.4, 0.4])
    means = mechanism.transcript(rows, 200, rng=rng(1))["means"]
    first, last = (np.isnan(means[:, j]).any(axis=(1, 2)) for j in (0, 1))
    assert (last & ~first).any()
    assert (~last).any()
    bottom = np.isnan(mechanism.draw(rows, 200, rng=rng(1)))
    np.testing.assert_array_equal(bottom.all(axis=(1, 2)), first | last)
    np.testing.assert_array_equal(bottom.any(axis=(1, 2)), first | last)
    for k in (1, 2, 5):
        mechanism = RankKDPPCA.calibrated(1.0, 1e-6, n_components=k)
        assert mechanism.claim == ApproxDP(1.0, 1e-6)
        assert mechanism.scale_finder.claim == ApproxDP(1 / k, 1e-6 / k)
        assert mechanism.mean.split == CalibratedSplit(1.0, 1e-6, uses=k)
        noise = mechanism.mean.split.noise(20)
        spent = composed_delta(1.0, noise=noise, dimension=20, uses=k)
        assert spent == pytest.approx(1e-6, rel=1e-6)
        root = mechanism.budget
        assert (root.epsilon, root.delta) == (pytest.approx(1.0), pytest.approx(1e-6))
        assert str(root).count("top-eigenvalue of component") == k


def test_the_steps_of_a_component_are_those_of_deflated_matrices():
    mechanism = RankKDPPCA.calibrated(**LOUD, n_components=2, step_sizes=2.0)
    rows = graded(900, [1.0, 0.7, 0.2])
    runs = mechanism.transcript(rows, 8, rng=rng(1))
    draws = mechanism.draw(rows, 8, rng=rng(1))
    steps = mechanism.batches(900)[1]
    assert runs["starts"].shape == (8, 2, 3)
    assert runs["scales"].shape == (8, 2, steps)
    assert runs["means"].shape == (8, 2, steps, 3)
    for trial in range(8):
        before = np.zeros((3, 3))
        for j in range(2):
            w = runs["starts"][trial, j]
            for mean in runs["means"][trial, j]:
                w = w + 2.0 * (mean - before @ mean)
                w = w / np.linalg.norm(w)
            w = w * np.sign(w[np.abs(w).argmax()])
            np.testing.assert_allclose(draws[trial, :, j], w, atol=1e-9)
            assert np.abs(before @ w).max() < 1e-9
            before = before + np.outer(w, w)
    # The gradients themselves are deflated: their means have nothing along v_1.
    inner = np.einsum("td,tsd->ts", draws[:, :, 0], runs["means"][:, 1])
    assert np.abs(inner).max() < 0.05 * np.abs(runs["means"][:, 1]).max()


def test_bad_data_are_named_and_the_worst_case_has_room():
    mechanism = RankKDPPCA.calibrated(1.0, 1e-5, n_components=4)
    with pytest.raises(InputError, match="at most the length of a row, 3, got 4"):
        mechanism.draw(np.ones((50, 3)), 1, rng=rng())
    with pytest.raises(InputError, match="n_components must be the 4 that"):
        mechanism.components(np.ones((1, 5, 4)), 3)
    four = RankKDPPCA.calibrated(1.0, 1e-5, n_components=4)
    assert four.worst_case().data.shape[1] == 5
    with pytest.raises(InputError, match="dimension must be an integer >= 4"):
        four.worst_case(3)
