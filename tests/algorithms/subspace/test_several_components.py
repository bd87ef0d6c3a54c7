"""What the exponential mechanisms have in common, however their bases are drawn.

And frames: uniform ones, those of complements, and taking a direction away.

Type-I error: 1e-9 for each of the 3 goodness-of-fit tests, at fixed seeds.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses
from scipy import stats
from seeded import rng

from dpaudit import PureDP, Relation
from dpaudit.algorithms import (
    DeflationExponential,
    ExactExponential,
    ExponentialMechanism,
    GibbsExponential,
    build,
    entry,
)
from dpaudit.algorithms.subspace.base import (
    deflated_frames,
    uniform_complements,
    uniform_frames,
)
from dpaudit.algorithms.subspace.perturbation import (
    new_direction_pair,
    repeated_direction_pair,
    tied_directions_pair,
)
from dpaudit.errors import InputError

KINDS = pytest.mark.parametrize(
    "kind", [ExactExponential, DeflationExponential, GibbsExponential]
)


NAMES = {
    "exponential-pca": ExponentialMechanism,
    "exponential-pca-acg": ExactExponential,
    "exponential-pca-deflation": DeflationExponential,
    "exponential-pca-gibbs": GibbsExponential,
}


@pytest.mark.parametrize("name", NAMES)
def test_they_are_built_as_they_are_written(name):
    kind, k = NAMES[name], 1 if name == "exponential-pca" else 2
    mechanism = kind(n_components=k, epsilon=1.0)
    assert mechanism == kind.calibrated(1.0, n_components=k)
    assert mechanism == build(name, n_components=k)
    assert mechanism.claim == PureDP(1.0)
    assert mechanism.relation is Relation.ADD_REMOVE
    twice = replace(mechanism, epsilon=2)
    assert twice.claim == PureDP(2.0)
    # What is known of a chain is its stationary law.
    known = name != "exponential-pca-gibbs"
    assert ("stationary law" in entry(name).summary) != known
    assert hasattr(mechanism, "privacy_loss") == known
    assert getattr(twice, "true_epsilon", None) == (2.0 if known else None)
    assert build(name).n_components == 1
    assert entry(name).has_components
    assert not entry(name).approximate


@pytest.mark.parametrize("name", ["exponential-pca-acg", "exponential-pca-gibbs"])
@pytest.mark.parametrize("row_norm", [1.0, 3.0])
def test_the_coefficient_is_that_of_one_component(name, row_norm):
    for relation in Relation:
        options = {"epsilon": 0.7, "relation": relation, "row_norm": row_norm}
        one = ExponentialMechanism(**options).coefficient
        for k in (1, 2, 5):
            assert build(name, n_components=k, **options).coefficient == one


@KINDS
@pytest.mark.parametrize(
    ("n", "d", "k"), [(0, 4, 2), (1, 1, 1), (30, 6, 3), (9, 4, 4), (50, 7, 5)]
)
def test_releases_are_orthonormal_bases(kind, n, d, k):
    mechanism, rows = kind(n_components=k), rng(1).standard_normal((n, d))
    releases = mechanism.draw(rows, 20, rng=rng())
    assert releases.shape == (20, d, k)
    gram = releases.swapaxes(-2, -1) @ releases
    np.testing.assert_allclose(gram, np.tile(np.eye(k), (20, 1, 1)), atol=1e-12)
    assert mechanism.release(rows, rng=rng()).shape == (d, k)
    assert mechanism.draw(rows, 0, rng=rng()).shape == (0, d, k)


@KINDS
def test_many_rows_give_the_top_eigenvectors(kind):
    moment = 1e6 * np.diag([0.5, 0.3, 0.15, 0.05])
    draws = kind(n_components=2).draw_from(moment, 50, rng=rng())
    assert (draws[:, :2] ** 2).sum(axis=(-2, -1)).min() > 2 - 1e-3
    if kind is DeflationExponential:  # one after the other
        assert np.abs(draws[:, range(2), range(2)]).min() > 0.999


@KINDS
def test_rows_that_are_too_short_are_refused(kind):
    mechanism = kind(n_components=3)
    with pytest.raises(InputError, match="at most the length of a row, 2, got 3"):
        mechanism.draw(np.zeros((5, 2)), 3, rng=rng())
    refuses("n_components must be", mechanism.draw_from, np.eye(2), 3, rng=rng())


@pytest.mark.parametrize(
    "kind",
    [ExponentialMechanism, ExactExponential, DeflationExponential, GibbsExponential],
)
def test_bad_moments_are_refused(kind):
    refuses("symmetric", kind().draw_from, np.triu(np.ones((4, 4))), 3, rng=rng())
    refuses("NaN", kind().draw_from, np.full((2, 2), np.nan), 3, rng=rng())


TYPE_I_ERROR = 1e-9
SHAPES = pytest.mark.parametrize(("d", "k"), [(1, 0), (1, 1), (3, 3), (5, 2), (20, 11)])


def assert_orthonormal(frames):
    size, _, k = frames.shape
    gram = frames.swapaxes(-2, -1) @ frames
    np.testing.assert_allclose(gram, np.tile(np.eye(k), (size, 1, 1)), atol=1e-13)


@SHAPES
@pytest.mark.parametrize("size", [0, 40])
def test_frames_and_complements_are_orthonormal(d, k, size):
    rng = np.random.default_rng(0)
    frames = uniform_frames(size, d, k, rng=rng)
    rest = uniform_complements(frames, rng=rng)
    assert frames.shape == (size, d, k)
    assert rest.shape == (size, d, d - k)
    assert_orthonormal(np.concatenate([frames, rest], axis=-1))


def test_entries_of_uniform_frames():
    # Null hypothesis: every entry squared is Beta(1/2, (d - 1)/2), with either sign.
    frames = uniform_frames(20_000, 3, 2, rng=np.random.default_rng(0))
    # In three dimensions an entry is uniform.
    law = stats.uniform(-1, 2)
    for values in frames.reshape(-1, 6).T:
        assert stats.kstest(values, law.cdf).pvalue >= TYPE_I_ERROR / 6


def test_square_frames_have_uniform_angles_and_either_determinant():
    frames = uniform_frames(20_000, 2, 2, rng=np.random.default_rng(0))
    angle = np.arctan2(frames[:, 1, 0], frames[:, 0, 0])
    law = stats.uniform(-np.pi, 2 * np.pi)
    assert stats.kstest(angle, law.cdf).pvalue >= TYPE_I_ERROR / 2
    positive = int((np.linalg.det(frames) > 0).sum())
    assert stats.binomtest(positive, len(frames)).pvalue >= TYPE_I_ERROR / 2


def test_bases_of_complements_are_uniform():
    # Null hypothesis: in the complement of e_1, the first column's angle is uniform.
    frames = np.tile(np.eye(3)[:, :1], (20_000, 1, 1))
    rest = uniform_complements(frames, rng=np.random.default_rng(0))
    angle = np.arctan2(rest[:, 2, 0], rest[:, 1, 0])
    law = stats.uniform(-np.pi, 2 * np.pi)
    assert stats.kstest(angle, law.cdf).pvalue >= TYPE_I_ERROR


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(0, 4))
def test_what_is_left_and_what_is_taken_make_the_span(seed, q, more):
    rng = np.random.default_rng(seed)
    frames = uniform_frames(7, q + more, q, rng=rng)
    directions = uniform_frames(7, q, 1, rng=rng)[..., 0]
    # Along and against the first column, too.
    directions[:2] = 0.0
    directions[:2, 0] = [1.0, -1.0]
    before = frames.copy()
    rest = deflated_frames(frames, directions)
    np.testing.assert_array_equal(frames, before)
    assert rest.shape == (7, q + more, q - 1)
    taken = frames @ directions[..., np.newaxis]
    whole = np.concatenate([taken, rest], axis=-1)
    assert_orthonormal(whole)
    np.testing.assert_allclose(
        whole @ whole.swapaxes(-2, -1), frames @ frames.swapaxes(-2, -1), atol=1e-13
    )


# Pairs of rows along basis vectors


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("k", "d"), [(1, 1), (2, 2), (3, 7)])
@pytest.mark.parametrize("copies", [1, 5, 10**9])
def test_pairs_are_neighbours_of_few_rows(relation, k, d, copies):
    pairs = [
        new_direction_pair(k, d, copies, relation, 2.0),
        repeated_direction_pair(d, copies, relation, 2.0),
    ]
    if k < d:
        pairs.append(tied_directions_pair(k, d, copies, relation, 2.0))
    for pair in pairs:
        assert pair.relation is relation
        assert len(pair.neighbour) <= 10_001
        for rows in (pair.data, pair.neighbour):
            assert rows.shape[1] == d
            assert (np.linalg.norm(rows, axis=1) == 2.0).all()
