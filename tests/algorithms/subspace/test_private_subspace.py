"""Propose, test, release: its margins, its runs, and its exact privacy on pairs.

The transcript (g, W) is a number with a Laplace density and, given that, a Gaussian
matrix, so its privacy on a pair is one integral over g: see `exact_delta`.

Nothing is a matter of chance: runs by hand draw the same numbers.
"""

from itertools import pairwise

import numpy as np
import pytest
from refusals import refuses
from scipy import stats
from seeded import rng

from dpaudit import ApproxDP, InputError, Pair, Relation
from dpaudit.algorithms import PrivateSubspace, PublishedPrivateSubspace
from dpaudit.algorithms.subspace.perturbation import (
    gap_sensitivity,
    projector_sensitivity,
)
from dpaudit.gaussian import gaussian_delta

ADD_REMOVE, REPLACE_ONE = Relation
MAKERS = {
    "corrected": PrivateSubspace.calibrated,
    "published": PublishedPrivateSubspace.as_published,
}


def gap_and_projector(mechanism, data):
    """The statistics of Algorithm 2, by its own words."""
    rows = np.array(data)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows * np.minimum(1, mechanism.row_norm / np.maximum(lengths, 1e-300))
    values, vectors = np.linalg.eigh(rows.T @ rows)
    k = mechanism.n_components
    order = np.argsort(values)[::-1]
    top = vectors[:, order[:k]]
    return values[order[k - 1]] - values[order[k]], top @ top.T


# Exact privacy of the transcript
def exact_delta(mechanism, data, other, epsilon):
    """The hockey-stick divergence of the transcripts on two datasets, by quadrature.

    Given g, W is a Gaussian whose mean is the projector: mu of a shift S is
    ||S||_F/(sqrt 2 s) for noise of the orthogonal ensemble, and the norm of the upper
    triangle over s for i.i.d. noise. With l(g) the loss of g, the divergence is the
    integral of p(g) times that of a Gaussian pair at epsilon - l(g).
    """
    (gap, one), (other_gap, two) = (
        gap_and_projector(mechanism, rows) for rows in (data, other)
    )
    if mechanism.diagonal_ratio == 1:
        shift = np.linalg.norm(np.triu(one - two))
    else:
        shift = np.linalg.norm(one - two) / np.sqrt(2)
    scale = mechanism.gap_scale
    reach = 45 * scale
    limit = mechanism.margin
    if isinstance(mechanism, PrivateSubspace):
        limit += gap_sensitivity(mechanism.relation) * mechanism.row_norm**2
    knots = np.unique([gap - reach, gap, other_gap, limit, gap + reach])
    nodes, weights = np.polynomial.legendre.leggauss(40)
    total = 0.0
    for low, high in pairwise(knots):
        edges = np.linspace(low, high, 21)
        middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        g = (middle[:, None] + half[:, None] * nodes).ravel()
        mass = (half[:, None] * weights).ravel() * stats.laplace(gap, scale).pdf(g)
        loss = (np.abs(g - other_gap) - np.abs(g - gap)) / scale
        # Bottom, or infinite noise, says nothing beyond g.
        deviation = mechanism.projector_scale(g)
        mu = np.where(np.isnan(deviation), 0.0, shift / deviation)
        total += float(mass @ gaussian_delta(epsilon - loss, mu))
    return total


def worst_delta(mechanism, pair):
    epsilon = mechanism.claim.parameters["epsilon"]
    return max(
        exact_delta(mechanism, pair.data, pair.neighbour, epsilon),
        exact_delta(mechanism, pair.neighbour, pair.data, epsilon),
    )


def turned_pair(k, relation, row_norm, gap, angle):
    """So many rows along the first k directions; one row at an angle to the k-th."""
    common = row_norm * np.repeat(np.eye(k + 1)[:k], int(gap), axis=0)
    first, second = np.zeros((2, 1, k + 1))
    first[0, k - 1 :] = row_norm * np.array([np.cos(angle), np.sin(angle)])
    second[0, k - 1 :] = row_norm * np.array([-np.sin(angle), np.cos(angle)])
    data = np.vstack([common, first])
    if relation is ADD_REMOVE:
        return Pair(common, data, relation)
    return Pair(np.vstack([common, second]), data, relation)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_no_pair_loses_more_than_promised(share, relation):
    promise = 1.0, 1e-4
    mechanism = PrivateSubspace.calibrated(
        *promise, n_components=1, relation=relation, gap_share=share
    )
    edge = mechanism.margin + gap_sensitivity(relation)
    for gap in edge * np.array([0.2, 0.9, 1.0, 1.1, 3.0]):
        for angle in (0.0, np.pi / 4, np.pi / 2):
            pair = turned_pair(1, relation, 1.0, max(1, round(gap)), angle)
            assert worst_delta(mechanism, pair) <= promise[1]


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(("epsilon", "delta"), [(2.0, 2e-6), (0.1, 1e-3)])
def test_the_published_claim_is_false(epsilon, delta, k, relation):
    mechanism = PublishedPrivateSubspace.as_published(
        epsilon, delta, n_components=k, relation=relation, row_norm=2.0
    )
    assert worst_delta(mechanism, mechanism.worst_case()) > 0.9


# Constants
@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("row_norm", [0.5, 3.0])
@pytest.mark.parametrize("share", [0.1, 0.7])
def test_every_stage_spends_its_share(share, row_norm, relation):
    mechanism = PrivateSubspace.calibrated(
        0.8, 1e-4, n_components=2, relation=relation, row_norm=row_norm, gap_share=share
    )
    assert mechanism.claim == ApproxDP(0.8, 1e-4)
    assert (mechanism.relation, mechanism.row_norm) == (relation, row_norm)
    unit = gap_sensitivity(relation) * row_norm**2
    assert unit / mechanism.gap_scale == pytest.approx(share * 0.8)
    certificate_fails = stats.laplace(scale=mechanism.gap_scale).sf(mechanism.margin)
    assert certificate_fails == pytest.approx(share * 1e-4)
    for certified in (1.001, 1.5, 40.0):
        gap = certified * unit + mechanism.margin
        scale = float(mechanism.projector_scale(gap))
        moved = float(
            projector_sensitivity(gap_sensitivity(relation) * certified, relation)
        )
        attained = gaussian_delta((1 - share) * 0.8, moved / (np.sqrt(2) * scale))
        assert float(attained) == pytest.approx((1 - share) * 1e-4, rel=1e-6)
    gaps = mechanism.margin + unit * np.array([1.0 - 1e-9, 0.5, -4.0])
    assert np.isnan(mechanism.projector_scale(gaps)).all()


def test_the_published_constants_are_the_papers_and_ends_are_met():
    # At epsilon' = 1 and delta' = 1e-6, for rows in the unit ball.
    mechanism = PublishedPrivateSubspace.as_published(2.0, 2e-6, n_components=1)
    assert mechanism.claim == ApproxDP(2.0, 2e-6)
    assert mechanism.gap_scale == pytest.approx(2.0)
    numerator = 1 + np.sqrt(2 * np.log(1e6))
    gaps = np.array([-5.0, 0.0, 1.0, 100.0])
    expected = numerator / np.sqrt((gaps - 2 * (1 + np.log(1e6))) ** 2)
    np.testing.assert_allclose(mechanism.projector_scale(gaps), expected)
    assert expected[2] == pytest.approx(0.2185, abs=5e-5)
    assert np.isposinf(mechanism.projector_scale(mechanism.margin))

    class Exactly(PublishedPrivateSubspace):
        def projector_scale(self, gaps):
            return super().projector_scale(np.full_like(gaps, self.margin))

    mechanism = Exactly.as_published(1.0, 1e-5, n_components=1)
    assert np.isnan(mechanism.draw(np.eye(2), 3, rng=rng())).all()
    mechanism = PrivateSubspace.calibrated(1.0, 0.9, n_components=1, gap_share=0.8)
    assert mechanism.margin == 0.0
    with pytest.raises(InputError, match=r"gap_share must be in \(0, 1\), got 1.0"):
        PrivateSubspace.calibrated(1.0, 1e-5, n_components=1, gap_share=1.0)
    with pytest.raises(InputError, match=r"gap_share must be in \(0, 1\), got 0.0"):
        PrivateSubspace.calibrated(1.0, 1e-5, n_components=1, gap_share=0.0)
    for make in MAKERS.values():
        mechanism = make(1.0, 1e-5, n_components=2)
        found = mechanism.transcript(np.zeros((5, 3)), 0, rng=rng())
        assert found["projector"].shape == (0, 3, 3)
        assert found["gap"].shape == (0,)


def wide(make, **options):
    """A mechanism, and data whose noisy gap is certified as often as not."""
    mechanism = make(2.0, 1e-3, n_components=2, **options)
    copies = round(mechanism.margin)
    rows = np.vstack(
        [np.repeat(np.eye(4)[:2], copies, axis=0), rng().random((3, 4)) / 2]
    )
    return mechanism, rows


@pytest.mark.parametrize("name", list(MAKERS))
@pytest.mark.parametrize("relation", list(Relation))
def test_batches_are_many_runs_by_hand(relation, name):
    mechanism, rows = wide(MAKERS[name], relation=relation)
    size = 40
    gap, projector = gap_and_projector(mechanism, rows)
    transcript = mechanism.transcript(rows, size, rng=rng(4))
    draws = mechanism.draw(rows, size, rng=rng(4))
    generator = rng(4)
    gaps = gap + generator.laplace(0.0, mechanism.gap_scale, size)
    normals = generator.standard_normal((size, 10))
    bottoms = 0
    for trial in range(size):
        assert transcript["gap"][trial] == pytest.approx(gaps[trial])
        scale = float(mechanism.projector_scale(gaps[trial]))
        if np.isnan(scale):
            bottoms += 1
            assert np.isnan(transcript["projector"][trial]).all()
            assert np.isnan(draws[trial]).all()
            continue
        noisy = projector.copy()
        for (i, j), normal in zip(
            np.stack(np.triu_indices(4), 1), normals[trial], strict=True
        ):
            if i == j:
                noisy[i, i] += scale * mechanism.diagonal_ratio * normal
            else:
                noisy[i, j] += scale * normal
                noisy[j, i] += scale * normal
        np.testing.assert_allclose(transcript["projector"][trial], noisy, atol=1e-12)
        values, vectors = np.linalg.eigh(noisy)
        for column, place in enumerate(np.argsort(values)[::-1][:2]):
            vector = vectors[:, place]
            vector = vector * np.sign(vector[np.argmax(np.abs(vector))])
            np.testing.assert_allclose(draws[trial, :, column], vector, atol=1e-8)
    assert (0 < bottoms < size) == (name == "corrected")


# Pairs
@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("k", [1, 3])
def test_pairs_exchange_a_direction_as_published_and_move_far_as_corrected(k, relation):
    mechanism = PublishedPrivateSubspace.as_published(
        1.0, 1e-5, n_components=k, relation=relation, row_norm=2.0
    )
    for dimension in (None, k + 1, k + 4):
        pair = mechanism.worst_case(dimension)
        assert pair.relation is relation
        assert pair.data.shape[1] == (dimension or k + 1)
        (gap, one), (other_gap, two) = (
            gap_and_projector(mechanism, rows) for rows in (pair.data, pair.neighbour)
        )
        expected = 4.0 if relation is REPLACE_ONE else 2.0
        assert gap == pytest.approx(expected)
        assert other_gap == pytest.approx(expected)
        assert np.linalg.norm(one - two) == pytest.approx(np.sqrt(2))
    mechanism = PrivateSubspace.calibrated(
        1.0, 1e-5, n_components=k, relation=relation, row_norm=2.0
    )
    for pair in mechanism.canonical_pairs():
        assert pair.relation is relation
        (gap, one), (other_gap, two) = (
            gap_and_projector(mechanism, rows) for rows in (pair.data, pair.neighbour)
        )
        bound = projector_sensitivity(max(gap, other_gap) / 4, relation)
        assert 0.98 * bound < np.linalg.norm(one - two) <= bound
    assert mechanism.worst_case(k + 3).data.shape[1] == k + 3
    gap, _ = gap_and_projector(mechanism, mechanism.worst_case().data)
    assert gap == pytest.approx(2 * mechanism.margin, rel=0.05)
    refuses(f"dimension must be an integer >= {k + 1}", mechanism.worst_case, k)


# Bad and degenerate input


@pytest.mark.parametrize("make", MAKERS.values())
def test_components_must_leave_a_gap(make):
    for k, message in ((3, "at most the length of a row, 2, got 3"), (2, "less than")):
        mechanism = make(1.0, 1e-5, n_components=k)
        for use in (mechanism.draw, mechanism.transcript):
            refuses(message, use, np.eye(2), 1, rng=rng())
