"""What the exponential mechanisms have in common, and the Markov chain of one of them.

Its stationary law, and how soon it is near. A draw from the exact law must stay one
after a sweep; this does not ask how fast the chain converges. From a uniform start it
must be near enough that the same tests pass. And frames: uniform ones, those of
complements, and taking a direction away.

Type-I error: 1e-9 for each of the 17 statistical tests, 2e-9 for the run of the
conformance kit: 2e-8 in total, at fixed seeds. R-hat and the effective sample size of
chains whose truth is known are held to bounds that are many standard errors wide.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from bingham_oracles import angle_p_value
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix_bingham_oracles import TYPE_I_ERROR, plane_p_values, same_law_p_values
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
from dpaudit.algorithms.subspace import base, perturbation
from dpaudit.algorithms.subspace.exact_exponential import MatrixACG
from dpaudit.algorithms.subspace.gibbs import PlaneRotations
from dpaudit.errors import InputError


def assert_plausible(p_values):
    assert min(p_values) >= TYPE_I_ERROR / len(p_values)


def moved(values, frames, sweeps, seed=0):
    chains = PlaneRotations(values, frames)
    chains.sweep(sweeps, rng=np.random.default_rng(seed))
    return chains.frames


@pytest.mark.parametrize("gap", [1.0, 8.0, 1000.0])
def test_in_the_plane_one_rotation_is_an_exact_draw(gap):
    # Wherever the chains start.
    start = np.tile([[0.6], [0.8]], (10_000, 1, 1))
    for values in ([gap, 0.0], [0.0, gap]):
        draws = moved(values, start, 1)[..., 0]
        assert angle_p_value(draws[:, np.argsort(values)[::-1]], gap) >= TYPE_I_ERROR
    assert angle_p_value(draws[:, ::-1], 2 * gap) < TYPE_I_ERROR


PLANES = [[20.0, 10.0, 5.0, 0.0], [0.0, 3000.0, 7.0, 10.0]]


@pytest.mark.parametrize("values", PLANES)
def test_exact_draws_stay_exact_draws(values):
    exact = MatrixACG(values, 2).draw(10_000, rng=np.random.default_rng(1))
    assert_plausible(plane_p_values(moved(values, exact, 2), values))
    other = 2 * np.array(values)
    with pytest.raises(AssertionError):
        assert_plausible(plane_p_values(moved(other, exact, 2), values))


def test_starts_that_are_far_apart_soon_meet():
    # Null hypothesis: after 6 sweeps from the eigenvectors and from a uniform start the
    # loss of the first direction has one mean. Without a new numbering in each sweep
    # the first coordinate lags behind.
    values, size = 6e3 / np.arange(1, 41) ** 2.0, 60
    starts = (
        np.tile(np.eye(40)[:, :3], (size, 1, 1)),
        base.uniform_frames(size, 40, 3, rng=np.random.default_rng(1)),
    )
    losses = [
        values[0] * (1 - (moved(values, start, 6, seed)[:, 0] ** 2).sum(axis=-1))
        for seed, start in enumerate(starts)
    ]
    means, variances = np.mean(losses, axis=1), np.var(losses, axis=1)
    # Means of 60 are nearly normal: 1e-9 two-sided is 6.1 standard errors.
    assert abs(means[0] - means[1]) < 7 * np.sqrt(variances.sum() / size)
    assert np.sqrt(variances.sum() / size) < 0.1 * means.mean()


@pytest.mark.parametrize(("values", "k"), [([50.0, 30.0, 20.0, 15.0, 0.0, 0.0], 3)])
def test_it_has_the_law_of_exact_draws(values, k):
    exact = MatrixACG(values, k).draw(3000, rng=np.random.default_rng(1))
    start = base.uniform_frames(3000, len(values), k, rng=np.random.default_rng(2))
    assert_plausible(same_law_p_values(moved(values, start, 12), exact, values))
    with pytest.raises(AssertionError):
        assert_plausible(same_law_p_values(moved(values, start, 1), exact, values))


def test_releases_have_the_density_of_the_definition():
    rng = np.random.default_rng(5)
    rotation = base.uniform_frames(1, 4, 4, rng=rng)[0]
    rows = np.repeat(np.diag([2.0, 9.0, 1.0, 0.5]), [5, 2, 6, 1], axis=0) @ rotation.T
    mechanism = GibbsExponential(
        n_components=2,
        epsilon=3.0,
        row_norm=2.0,
        relation=Relation.REPLACE_ONE,
        sweeps=10,
    )
    values = 3.0 / 2 / 4.0 * np.array([20.0, 8.0, 6.0, 0.25])
    releases = rotation.T @ mechanism.draw(rows, 10_000, rng=rng)
    assert_plausible(plane_p_values(releases, values))


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("k", "d"), [(1, 1), (1, 5), (4, 5), (3, 3)])
def test_draws_are_those_of_the_exact_mechanism_where_it_draws_vectors(relation, k, d):
    rows = np.random.default_rng(0).standard_normal((30, d))
    gibbs, exact = (
        make(n_components=k, relation=relation).draw(
            rows, 10, rng=np.random.default_rng(1)
        )
        for make in (GibbsExponential, ExactExponential)
    )
    np.testing.assert_array_equal(gibbs, exact)


@pytest.mark.parametrize(("d", "k"), [(2, 1), (8, 8), (30, 4)])
def test_frames_stay_orthonormal(d, k):
    rng = np.random.default_rng(0)
    frames = moved(100 * rng.random(d), base.uniform_frames(5, d, k, rng=rng), 50)
    gram = frames.swapaxes(-2, -1) @ frames
    np.testing.assert_allclose(gram, np.tile(np.eye(k), (5, 1, 1)), atol=1e-12)


@pytest.mark.parametrize("d", [2, 5, 6])
def test_a_sweep_turns_every_pair_of_rows(d):
    # A vector along one of two directions of equal values, which are apart from all the
    # others by a wide gap, turns in their plane by a uniform angle, and out of it by
    # next to nothing.
    for pair in itertools.combinations(range(d), 2):
        values = np.full(d, -1e9)
        values[list(pair)] = 0.0
        start = np.zeros((400, d, 1))
        start[:, pair[0]] = 1.0
        frames = moved(values, start, 1)
        part = np.abs(frames[:, pair[1], 0])
        assert np.median(part) > 0.5
        assert np.abs(np.delete(frames, pair, axis=1)).max(initial=0.0) < 0.01


def test_no_chain_depends_on_the_others_and_starts_are_left_alone():
    # Correlations of the utilities of chains side by side.
    values = [20.0, 10.0, 5.0, 0.0]
    start = base.uniform_frames(20_000, 4, 2, rng=np.random.default_rng(0))
    chains = PlaneRotations(values, start)
    chains.sweep(6, rng=np.random.default_rng(1))
    utility = (chains.frames**2).sum(axis=-1) @ values
    score = (utility - utility.mean()) / utility.std()
    # Sums of products of independent scores are normal with variance 1, about: 1e-9.
    for lag in (1, 2, 10_000):
        products = score[:-lag] * score[lag:]
        assert abs(products.sum()) / np.sqrt(len(products)) < 7
    rng = np.random.default_rng(0)
    values = rng.standard_normal(5)
    start = base.uniform_frames(6, 5, 2, rng=rng)
    before = start.copy()
    chains = PlaneRotations(values, start)
    np.testing.assert_array_equal(chains.frames, before)
    chains.sweep(0, rng=rng)
    np.testing.assert_array_equal(chains.frames, before)
    chains.sweep(3, rng=rng)
    np.testing.assert_array_equal(start, before)


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
def test_many_rows_give_the_top_eigenvectors_and_short_ones_are_refused(kind):
    moment = 1e6 * np.diag([0.5, 0.3, 0.15, 0.05])
    draws = kind(n_components=2).draw_from(moment, 50, rng=rng())
    assert (draws[:, :2] ** 2).sum(axis=(-2, -1)).min() > 2 - 1e-3
    if kind is DeflationExponential:  # one after the other
        assert np.abs(draws[:, range(2), range(2)]).min() > 0.999
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


SHAPES = pytest.mark.parametrize(("d", "k"), [(1, 0), (1, 1), (3, 3), (5, 2), (20, 11)])


def assert_orthonormal(frames):
    size, _, k = frames.shape
    gram = frames.swapaxes(-2, -1) @ frames
    np.testing.assert_allclose(gram, np.tile(np.eye(k), (size, 1, 1)), atol=1e-13)


@SHAPES
@pytest.mark.parametrize("size", [0, 40])
def test_frames_and_complements_are_orthonormal(d, k, size):
    rng = np.random.default_rng(0)
    frames = base.uniform_frames(size, d, k, rng=rng)
    rest = base.uniform_complements(frames, rng=rng)
    assert frames.shape == (size, d, k)
    assert rest.shape == (size, d, d - k)
    assert_orthonormal(np.concatenate([frames, rest], axis=-1))


def test_entries_of_uniform_frames_and_angles_of_square_ones():
    # Null hypothesis: every entry squared is Beta(1/2, (d - 1)/2), with either sign.
    frames = base.uniform_frames(20_000, 3, 2, rng=np.random.default_rng(0))
    # In three dimensions an entry is uniform.
    law = stats.uniform(-1, 2)
    for values in frames.reshape(-1, 6).T:
        assert stats.kstest(values, law.cdf).pvalue >= TYPE_I_ERROR / 6
    frames = base.uniform_frames(20_000, 2, 2, rng=np.random.default_rng(0))
    angle = np.arctan2(frames[:, 1, 0], frames[:, 0, 0])
    law = stats.uniform(-np.pi, 2 * np.pi)
    assert stats.kstest(angle, law.cdf).pvalue >= TYPE_I_ERROR / 2
    positive = int((np.linalg.det(frames) > 0).sum())
    assert stats.binomtest(positive, len(frames)).pvalue >= TYPE_I_ERROR / 2


def test_complements_are_uniform_and_give_more_columns_than_half():
    # Null hypothesis: in the complement of e_1, the first column's angle is uniform.
    frames = np.tile(np.eye(3)[:, :1], (20_000, 1, 1))
    rest = base.uniform_complements(frames, rng=np.random.default_rng(0))
    angle = np.arctan2(rest[:, 2, 0], rest[:, 1, 0])
    law = stats.uniform(-np.pi, 2 * np.pi)
    assert stats.kstest(angle, law.cdf).pvalue >= TYPE_I_ERROR
    moment = np.diag([30.0, 20.0, 6.0, 3.0, 0.0])
    gibbs, exact = (
        make(n_components=3).draw_from(moment, 2000, rng=np.random.default_rng(seed))
        for seed, make in enumerate((GibbsExponential, ExactExponential))
    )
    assert_plausible(same_law_p_values(gibbs, exact, np.diag(moment)))


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(0, 4))
def test_what_is_left_and_what_is_taken_make_the_span(seed, q, more):
    rng = np.random.default_rng(seed)
    frames = base.uniform_frames(7, q + more, q, rng=rng)
    directions = base.uniform_frames(7, q, 1, rng=rng)[..., 0]
    # Along and against the first column, too.
    directions[:2] = 0.0
    directions[:2, 0] = [1.0, -1.0]
    before = frames.copy()
    rest = base.deflated_frames(frames, directions)
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
        perturbation.new_direction_pair(k, d, copies, relation, 2.0),
        perturbation.repeated_direction_pair(d, copies, relation, 2.0),
    ]
    if k < d:
        pairs.append(perturbation.tied_directions_pair(k, d, copies, relation, 2.0))
    for pair in pairs:
        assert pair.relation is relation
        assert len(pair.neighbour) <= 10_001
        for rows in (pair.data, pair.neighbour):
            assert rows.shape[1] == d
            assert (np.linalg.norm(rows, axis=1) == 2.0).all()
