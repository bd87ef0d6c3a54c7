import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import InputError, Relation
from dpaudit.algorithms.subspace.perturbation import (
    gap_sensitivity,
    projector_sensitivity,
    turned_pair,
)
from dpaudit.subspace import second_moment

ADD_REMOVE, REPLACE_ONE = Relation
SHAPES = [(2, 1), (3, 2), (5, 3)]
CASES = [(relation, *shape) for relation in Relation for shape in SHAPES]


def eigengap(matrix, k):
    values = np.linalg.eigvalsh(matrix)[::-1]
    return values[k - 1] - values[k]


def projector(matrix, k):
    top = np.linalg.eigh(matrix).eigenvectors[:, -k:]
    return top @ top.T


def moved(one, other, k):
    return np.linalg.norm(projector(one, k) - projector(other, k))


def unit_ball(row):
    return row / max(1.0, np.linalg.norm(row))


def changed(base, first, second, relation):
    """A and A': `first` joins the rows of the base, or replaces `second`."""
    first, second = unit_ball(first), unit_ball(second)
    one = base + np.outer(first, first)
    if relation is ADD_REMOVE:
        return base, one
    return base + np.outer(second, second), one


def with_gap(d, k, gap, rng):
    """A positive semi-definite matrix with that eigengap, in general position."""
    values = np.sort(rng.exponential(size=d))[::-1]
    values[:k] += gap - (values[k - 1] - values[k])
    basis = np.linalg.qr(rng.standard_normal((d, d))).Q
    return (basis * (values + 1)) @ basis.T


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("excess", ["1e-12", "0.1", "1", "1e4", "1e9"])
def test_the_closed_form_keeps_all_its_digits(relation, excess):
    with mpmath.workdps(60):
        unit = mpmath.mpf(1 if relation is ADD_REMOVE else 2)
        gap = float(unit + mpmath.mpf(excess))
        angle = mpmath.asin(unit / mpmath.mpf(gap))
        expected = float(mpmath.sqrt(2) * mpmath.sin(angle / 2))
    assert float(projector_sensitivity(gap, relation)) == pytest.approx(
        expected, rel=1e-9 if excess == "1e-12" else 1e-14
    )


@pytest.mark.parametrize("relation", list(Relation))
def test_nothing_is_said_of_gaps_that_one_row_can_close(relation):
    unit = gap_sensitivity(relation)
    gaps = [unit, unit - 1e-9, 0.0, -3.0, -np.inf, np.nan]
    assert np.isnan(projector_sensitivity(gaps, relation)).all()
    assert projector_sensitivity(np.nextafter(unit, 3), relation) == pytest.approx(1.0)
    assert projector_sensitivity(np.inf, relation) == 0.0


def test_unknown_relations_are_named():
    for function in (gap_sensitivity, lambda r: projector_sensitivity(3.0, r)):
        with pytest.raises(InputError, match=r"relation must be one of .*, got 'swap'"):
            function("swap")


@settings(max_examples=50)
@given(
    st.integers(0, 2**32), st.sampled_from(CASES), st.floats(1e-3, 30.0), st.booleans()
)
def test_no_row_moves_more(seed, case, excess, in_plane):
    relation, d, k = case
    rng = np.random.default_rng(seed)
    unit = gap_sensitivity(relation)
    base = with_gap(d, k, unit + excess, rng)
    first, second = 3 * rng.standard_normal((2, d))
    if in_plane:
        # Near the worst case: rows in the plane of the two directions at the gap.
        plane = np.linalg.eigh(base).eigenvectors[:, [d - k, d - k - 1]]
        first, second = (row @ plane @ plane.T for row in (first, second))
    one, other = changed(base, first, second, relation)
    gaps = eigengap(one, k), eigengap(other, k)
    assert abs(gaps[0] - gaps[1]) <= unit + 1e-12
    bound = projector_sensitivity(max(gaps), relation)
    if not np.isnan(bound):
        assert moved(one, other, k) <= bound * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize(("relation", "d", "k"), CASES)
def test_rows_along_the_two_directions_move_the_gap_most(relation, d, k):
    base = np.diag(np.arange(d, 0.0, -1.0)) * 4
    first, second = np.eye(d)[k - 1], np.eye(d)[k]
    one, other = changed(base, first, second, relation)
    assert abs(eigengap(one, k) - eigengap(other, k)) == gap_sensitivity(relation)


@pytest.mark.parametrize(("relation", "d", "k"), CASES)
@pytest.mark.parametrize("row_norm", [3.0])
def test_turned_pairs_nearly_attain_the_bound(relation, d, k, row_norm):
    pair = turned_pair(k, d, 60.5 * row_norm**2, relation, row_norm)
    assert pair.relation is relation
    assert pair.data.shape[1] == d
    lengths = np.linalg.norm(np.vstack([pair.data, pair.neighbour]), axis=1)
    np.testing.assert_allclose(lengths, row_norm)
    one, other = (
        second_moment(rows) / row_norm**2 for rows in (pair.data, pair.neighbour)
    )
    gap = max(eigengap(one, k), eigengap(other, k))
    assert 60 < gap < 63
    bound = float(projector_sensitivity(gap, relation))
    assert 0.99 * bound < moved(one, other, k) <= bound
