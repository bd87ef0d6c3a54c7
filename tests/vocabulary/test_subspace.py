import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from dpaudit.errors import InputError
from dpaudit.subspace import (
    captured_variance,
    captured_variance_share,
    largest_principal_angle_sine,
    principal_angles,
    projector_distance,
    second_moment,
    top_components,
)

DISTANCES = [
    largest_principal_angle_sine,
    projector_distance,
    lambda v, w: projector_distance(v, w, norm="frobenius"),
]


def random_basis(rng, *shape):
    return np.linalg.qr(rng.standard_normal(shape)).Q


def random_symmetric(rng, *leading, d):
    noise = rng.standard_normal((*leading, d, d))
    return noise + np.swapaxes(noise, -1, -2)


def plane_pair(angles, d):
    """Two subspaces of R^d with the given principal angles, by construction."""
    k = len(angles)
    v, w = np.zeros((d, k)), np.zeros((d, k))
    v[:k] = np.eye(k)
    w[:k] = np.diag(np.cos(angles))
    w[k : 2 * k] = np.diag(np.sin(angles))
    return v, w


@st.composite
def pairs(draw):
    """Two random subspaces of one space, from independent to nearly equal."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    d = draw(st.integers(1, 8))
    k = draw(st.integers(1, d))
    rank = draw(st.just(k) | st.integers(1, d))
    v = random_basis(rng, d, k)
    if rank == k and draw(st.booleans()):
        shift = 10.0 ** draw(st.integers(-14, 0)) * rng.standard_normal((d, k))
        return v, np.linalg.qr(v + shift).Q
    return v, random_basis(rng, d, rank)


@given(pairs())
def test_angles_agree_with_scipy_and_distances_with_the_projectors(pair):
    # SciPy sorts in descending order. Where small and large angles mix, it takes some
    # from the ill-conditioned formula: hence 1e-7. The next tests hold the accuracy.
    expected = scipy.linalg.subspace_angles(*pair)[::-1]
    np.testing.assert_allclose(principal_angles(*pair), expected, atol=1e-7)
    v, w = pair
    difference = v @ v.T - w @ w.T
    spectral, frobenius = (np.linalg.norm(difference, each) for each in (2, "fro"))
    np.testing.assert_allclose(projector_distance(v, w), spectral, atol=1e-13)
    found = projector_distance(v, w, norm="frobenius")
    np.testing.assert_allclose(found, frobenius, atol=1e-13)
    if v.shape == w.shape:
        sine = largest_principal_angle_sine(v, w)
        np.testing.assert_allclose(sine, spectral, atol=1e-13)


@pytest.mark.parametrize(
    "angles",
    [
        *([0.0, 1e-300, 1e-15, 1e-9], [1e-8, 1e-8, 1e-4, np.pi / 4]),
        [0.3, np.pi / 2 - 1e-8, np.pi / 2 - 1e-15, np.pi / 2],
        [1e-12, np.pi / 4 - 1e-9, np.pi / 4 + 1e-9, np.pi / 2 - 1e-12],
    ],
)
def test_small_and_large_angles_are_accurate_to_rounding(angles):
    rng = np.random.default_rng(5)
    v, w = plane_pair(angles, d=10)
    turn = random_basis(rng, 10, 10)
    v = turn @ v @ random_basis(rng, 4, 4)
    w = turn @ w @ random_basis(rng, 4, 4)
    np.testing.assert_allclose(principal_angles(v, w), angles, atol=4e-15)


@given(st.integers(0, 2**32), st.integers(1, 6), st.data())
def test_top_components_are_eigenvectors_and_capture_most(seed, d, data):
    k = data.draw(st.integers(1, d))
    matrix = random_symmetric(np.random.default_rng(seed), d=d)
    v = top_components(matrix, k)
    eigenvalues = np.sort(np.linalg.eigvalsh(matrix))[::-1][:k]
    np.testing.assert_allclose(v.T @ v, np.eye(k), atol=1e-13)
    np.testing.assert_allclose(matrix @ v, v * eigenvalues, atol=1e-12)
    k = data.draw(st.integers(1, d))
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((d + 2, d))
    matrix = second_moment(rows)
    share = captured_variance_share(random_basis(rng, 50, d, k), matrix)
    assert (share >= 0).all()
    assert (share <= 1 + 1e-12).all()
    best = captured_variance_share(top_components(matrix, k), matrix)
    np.testing.assert_allclose(best, 1, rtol=1e-12)


def test_captured_variance_is_the_energy_and_bad_arguments_are_named():
    rng = np.random.default_rng(3)
    rows, v = rng.standard_normal((9, 5)), random_basis(rng, 5, 2)
    captured = captured_variance(v, second_moment(rows))
    np.testing.assert_allclose(captured, np.sum((rows @ v) ** 2), rtol=1e-13)
    with pytest.raises(InputError, match="other must have as many rows as basis"):
        principal_angles(E1, np.eye(4)[:, :1])
    refuses("matrix must have as many rows as basis", captured_variance, E1, np.eye(2))
    with pytest.raises(InputError, match="leading axes of other and basis"):
        principal_angles(np.tile(E1, (2, 1, 1)), np.tile(E1, (3, 1, 1)))
    with pytest.raises(InputError, match="did you mean 'frobenius'"):
        projector_distance(E1, E1, norm="frobenious")  # type: ignore[arg-type]
    for nothing in (np.zeros((3, 3)), -np.eye(3)):
        refuses("must have a sum > 0", captured_variance_share, E1, nothing)


@pytest.mark.parametrize(
    ("left", "right"),
    [((), (6,)), ((6,), ()), ((4, 1), (6,)), ((6,), (6,)), ((0,), ())],
)
def test_measures_of_stacks_equal_a_loop_over_pairs(left, right):
    rng = np.random.default_rng(8)
    v, w = random_basis(rng, *left, 5, 2), random_basis(rng, *right, 5, 2)
    matrix = random_symmetric(rng, *right, d=5) + 20 * np.eye(5)
    leading = np.broadcast_shapes(left, right)
    vs = np.broadcast_to(v, (*leading, 5, 2))
    uses = [(function, w) for function in (principal_angles, *DISTANCES)]
    uses += [(captured_variance, matrix), (captured_variance_share, matrix)]
    for function, second in uses:
        seconds = np.broadcast_to(second, (*leading, *second.shape[-2:]))
        result = np.asarray(function(v, second))
        assert result.shape[: len(leading)] == leading
        for i in np.ndindex(leading):
            alone = function(vs[i], seconds[i])
            np.testing.assert_allclose(result[i], alone, rtol=1e-13, atol=1e-14)
    for i in np.ndindex(right):
        alone = top_components(matrix[i], 2)
        angles = principal_angles(top_components(matrix, 2)[i], alone)
        np.testing.assert_allclose(angles, 0, atol=1e-13)


# Bad input

E1 = np.eye(3)[:, :1]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.ones((2, 3)) / np.sqrt(2), "1 <= k <= d"),
        *((np.empty((3, 0)), "1 <= k <= d"), ([1.0, 0.0, 0.0], "must have shape")),
        (2 * E1, r"orthonormal columns, but V\^T V differs from the identity by 3"),
        (np.ones((3, 2)) / np.sqrt(3), "orthonormal columns"),
        ([[np.nan], [0.0], [1.0]], "must be finite"),
        ([["x"], ["y"], ["z"]], "must be a numeric array"),
    ],
)
def test_bad_bases_are_named(bad, message):
    for function in [principal_angles, *DISTANCES]:
        refuses(f"^basis .*({message})", function, bad, E1)
        refuses(f"^other .*({message})", function, E1, bad)
    for function in [captured_variance, captured_variance_share]:
        refuses(f"^basis .*({message})", function, bad, np.eye(3))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.ones((2, 3)), r"must have shape \(..., d, d\)"),
        (np.empty((0, 0)), r"must have shape \(..., d, d\)"),
        ([[1.0, 2.0], [0.0, 1.0]], "must be symmetric"),
        ([[1e-9, 2e-9], [0.0, 1e-9]], "must be symmetric"),
        ([1e9 * np.eye(2), [[1.0, 2.0], [0.0, 1.0]]], "must be symmetric"),
        (np.diag([1.0, np.nan]), "must be finite"),
        ([["a"]], "must be a numeric array"),
    ],
)
def test_bad_matrices_are_named(bad, message):
    for use in (top_components, lambda matrix, _: captured_variance(E1[:2], matrix)):
        refuses(f"^matrix {message}", use, bad, 1)


@pytest.mark.parametrize("k", [0, 4, 1.0, True])
def test_impossible_numbers_of_components_are_named(k):
    refuses(r"n_components must be .* >= 1 and <= 3", top_components, np.eye(3), k)
