"""What the exponential mechanisms have in common, however their bases are drawn."""

import numpy as np
import pytest
from refusals import refuses
from seeded import rng

from dpaudit.algorithms import DeflationExponential, ExactExponential, GibbsExponential
from dpaudit.algorithms.subspace.exact_exponential import ExponentialMechanism
from dpaudit.errors import InputError

KINDS = pytest.mark.parametrize(
    "kind", [ExactExponential, DeflationExponential, GibbsExponential]
)


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
