"""What the exponential mechanisms have in common, however their bases are drawn."""

from dataclasses import replace

import numpy as np
import pytest
from refusals import refuses
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
