"""Row by row is all at once, and what was kept goes on as if nothing had been.

Warm starts give the exact subspace to their tolerance, or are not taken.
"""

import json

import numpy as np
import pytest
from refusals import refuses
from seeded import rng

from dpaudit.algorithms import DoublingOnlinePCA, OnlinePCA, TreeAggregation
from dpaudit.algorithms.online import tree_aggregation
from dpaudit.algorithms.online.factorised import FactorisedOnlinePCA, FactorisedSums
from dpaudit.algorithms.online.leading_subspace import LeadingSubspace
from dpaudit.algorithms.online.subspace_sequence import SubspaceSequence, leading_bases
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.subspace import largest_principal_angle_sine

LENGTH = 45
# So little noise that warm starts succeed and epochs end.
OPTIONS = {"epsilon": 400.0, "delta": 1e-5, "length": LENGTH}
MAKERS = {
    "tree": TreeAggregation.calibrated,
    "tree-published": TreeAggregation.as_published,
    "stepwise": tree_aggregation.StepwiseSums.calibrated,
    "online": lambda **options: OnlinePCA.calibrated(n_components=2, **options),
    "leader": tree_aggregation.FollowPerturbedLeader.as_published,
    "factorised": FactorisedSums.calibrated,
    "poles": lambda **options: FactorisedSums.calibrated(poles=8, **options),
    "online-factorised": FactorisedOnlinePCA.calibrated,
    "online-poles": lambda **options: FactorisedOnlinePCA.calibrated(
        n_components=2, poles=8, **options
    ),
    "doubling": DoublingOnlinePCA.calibrated,
    "doubling-published": lambda **options: DoublingOnlinePCA.as_published(
        n_components=2, **options
    ),
}
makers = pytest.mark.parametrize("name", MAKERS)


ROWS = rng(7).standard_normal((LENGTH, 4)) * [1.0, 0.7, 0.2, 0.2]


def build(name):
    return MAKERS[name](**OPTIONS)


def exact(mechanism, dimension, generator):
    """Start a stream whose subspaces are exact, where there is a choice."""
    options = {"tolerance": 0.0} if isinstance(mechanism, SubspaceSequence) else {}
    return mechanism.start(dimension, rng=generator, **options)


@makers
def test_a_stream_gives_what_a_release_does_and_refuses_more_rows(name):
    mechanism = build(name)
    stream = exact(mechanism, 4, rng(3))
    found = np.array([stream.add(row) for row in ROWS])
    release = mechanism.release(ROWS, rng=rng(3))
    if name == "doubling-published":
        # Its padding is drawn row by row in both.
        assert stream.epoch > 0
    np.testing.assert_allclose(found, release, atol=1e-9)
    stream = MAKERS[name](**(OPTIONS | {"length": 2})).start(4, rng=rng())
    for row in ROWS[:2]:
        stream.add(row)
    before = stream.state()
    refuses("row 3 is beyond the declared length 2", stream.add, ROWS[2])
    after = stream.state()
    for key, value in before.items():
        np.testing.assert_array_equal(after[key], value)
    with pytest.raises(InputError, match="length must be "):
        MAKERS[name](**(OPTIONS | {"length": None})).start(4, rng=rng())
    refuses("dimension must be an integer >= 1, got 0", build(name).start, 0, rng=rng())


def test_epochs_end_in_streams_and_states_do_not_change_when_they_go_on():
    for name in ("doubling", "doubling-published"):
        stream = build(name).start(4, rng=rng(3))
        epochs = [(stream.add(row), stream.epoch)[1] for row in ROWS]
        assert epochs[-1] > 0
        assert sorted(epochs) == epochs
    for name in MAKERS:
        stream = build(name).start(4, rng=rng())
        stream.add(ROWS[0])
        state = stream.state()
        before = {key: value.copy() for key, value in state.items()}
        for row in ROWS[1:9]:
            stream.add(row)
        for key, value in before.items():
            np.testing.assert_array_equal(state[key], value)


@makers
@pytest.mark.parametrize("kept", [0, 1, 20, 31])
def test_a_resumed_stream_goes_on_bit_for_bit(name, kept, tmp_path):
    mechanism = build(name)
    stream = mechanism.start(4, rng=rng(5))
    for row in ROWS[:kept]:
        stream.add(row)
    np.savez(tmp_path / "state.npz", **stream.state())
    expected = [stream.add(row) for row in ROWS[kept:]]
    with np.load(tmp_path / "state.npz") as saved:
        resumed = mechanism.resume(dict(saved))
    assert resumed.step == kept
    for row, value in zip(ROWS[kept:], expected, strict=True):
        np.testing.assert_array_equal(resumed.add(row), value)
    first, second = stream.state(), resumed.state()
    assert first.keys() == second.keys()
    for key in first:
        np.testing.assert_array_equal(first[key], second[key])


@pytest.mark.parametrize("bits", ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"])
def test_every_generator_is_kept(bits):
    mechanism = build("tree")
    generator = np.random.Generator(getattr(np.random, bits)(3))
    generator.integers(7, dtype=np.int32)  # leaves half a word behind in some
    stream = mechanism.start(4, rng=generator)
    stream.add(ROWS[0])
    resumed = mechanism.resume(stream.state())
    np.testing.assert_array_equal(resumed.add(ROWS[1]), stream.add(ROWS[1]))


def test_memory_is_of_the_order_of_the_levels():
    d, m = 4, 2**20
    stream = OnlinePCA.calibrated(1.0, 1e-5, length=m).start(d, rng=rng())
    for row in ROWS:
        stream.add(row)
    numbers = sum(v.size for v in stream.state().values() if v.dtype.kind == "f")
    assert numbers <= (21 + 1) * d * (d + 1) / 2 + 4 * d


def test_memory_is_of_the_order_of_the_poles():
    d, m = 4, 2**14
    mechanism = FactorisedOnlinePCA.calibrated(1.0, 1e-5, length=m, poles=6)
    stream = mechanism.start(d, rng=rng())
    for row in ROWS:
        stream.add(row)
    numbers = sum(v.size for v in stream.state().values() if v.dtype.kind == "f")
    assert numbers <= (6 + 1) * d * (d + 1) / 2 + 4 * d


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"length": LENGTH + 1}, "length is 45 there and 46 here"),
        ({"row_norm": 2.0}, "row_norm is 1.0 there and 2.0 here"),
        ({"epsilon": 1.0}, "epsilon is 400.0 there and 1.0 here"),
        ({"delta": 1e-6}, "delta is 1e-05 there and 1e-06 here"),
    ],
)
@makers
def test_a_state_of_another_configuration_is_refused_by_name(name, change, message):
    stream = build(name).start(4, rng=rng())
    stream.add(ROWS[0])
    with pytest.raises(
        InputError, match=f"state is of another configuration: .*{message}"
    ):
        MAKERS[name](**(OPTIONS | change)).resume(stream.state())


def test_a_state_of_another_version_is_refused():
    # Of one whose mechanism had no poles, or had something that this one has not.
    state = build("poles").start(4, rng=rng()).state()
    configuration = json.loads(str(state["configuration"]))
    fields = configuration["mechanism"]["arguments"]
    for other in (
        {name: value for name, value in fields.items() if name != "poles"},
        fields | {"buffers": 3},
    ):
        changed = configuration | {
            "mechanism": configuration["mechanism"] | {"arguments": other}
        }
        old = state | {"configuration": np.array(json.dumps(changed))}
        refuses(r"another configuration: .*(poles|buffers)", build("poles").resume, old)
    refuses("poles is 8 there and None here", build("factorised").resume, state)


def test_what_is_no_state_and_other_differences_are_refused():
    mechanism = build("online")
    state = mechanism.start(4, rng=rng()).state()
    refuses("state must be what a stream", mechanism.resume, {})
    with pytest.raises(InputError, match=r"state must have \['stack'\]"):
        mechanism.resume({k: v for k, v in state.items() if k != "stack"})
    with pytest.raises(InputError, match="state must have moment of shape"):
        mechanism.resume(state | {"moment": np.zeros(3)})
    with pytest.raises(InputError, match="step must be an integer >= 0 and <= 45"):
        mechanism.resume(state | {"step": np.array(46)})
    other = json.dumps({"bit_generator": "Dice"})
    with pytest.raises(InputError, match="state must have a generator of"):
        mechanism.resume(state | {"generator": np.array(other)})
    state = build("online").start(4, rng=rng()).state()
    with pytest.raises(InputError, match="another configuration: tolerance is 0"):
        build("online").resume(state, tolerance=0.5)
    with pytest.raises(InputError, match="n_components is 2 there and 3 here"):
        OnlinePCA.calibrated(n_components=3, **OPTIONS).resume(state)
    refuses("class is 'OnlinePCA' there", build("tree").resume, state)
    with pytest.raises(InputError, match="another configuration: dimension"):
        build("online").start(5, rng=rng()).restore(state)
    with pytest.raises(InputError, match=r"n_components must be at most .* 1, got 2"):
        build("online").start(1, rng=rng())
    with pytest.raises(InputError, match=r"tolerance must be in \[0, 1\), got 1"):
        build("online").start(4, rng=rng(), tolerance=1)
    planted = SubspaceSequence(sums=tree_aggregation.FreshNoiseTree.planted(1.0, 1e-5))
    with pytest.raises(UnsupportedError, match="FreshNoiseTree has no stream"):
        planted.start(4, rng=rng())


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([1.0, 2.0], r"row must have shape \(4,\), got \(2,\)"),
        ([1.0, 2.0, np.nan, 0.0], "row must be finite"),
        (["a", "b", "c", "d"], "row must be a numeric vector"),
    ],
)
@makers
def test_bad_rows_are_refused_and_change_nothing(name, row, message):
    stream = build(name).start(4, rng=rng())
    refuses(message, stream.add, row)
    assert stream.step == 0


def walk(steps, dimension, gap, noise, seed=0):
    """Yield symmetric matrices: a fixed one with a gap, and noise that changes."""
    rng = np.random.default_rng(seed)
    turned = np.linalg.qr(rng.standard_normal((dimension, dimension)))[0]
    values = np.linspace(0, 1, dimension)
    values[-3:] += gap
    fixed = (turned * values) @ turned.T
    for step in range(1, steps + 1):
        error = noise * rng.standard_normal((dimension, dimension))
        yield step * fixed + error + error.T


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("noise", [0.0, 0.1, 10.0])
def test_angles_are_within_the_tolerance(tolerance, noise):
    leading = LeadingSubspace(20, 3, tolerance=tolerance)
    for matrix in walk(80, 20, 4.0, noise):
        basis = leading.of(matrix)
        np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-12)
        exact = leading_bases(matrix, 3)
        assert largest_principal_angle_sine(basis, exact) <= tolerance
    if noise < 1:
        assert leading.exact_steps < 30  # warm starts do happen


def test_subspaces_are_left_and_worked_out_where_noise_outweighs_the_gap():
    leading = LeadingSubspace(20, 3, tolerance=1e-4)
    for matrix in walk(150, 20, 0.0, 100.0):
        leading.of(matrix)
    assert leading.exact_steps == 150
    # The old one stays invariant: its residual is zero, and only the Cholesky
    # decomposition can tell.
    leading = LeadingSubspace(4, 1, tolerance=1e-3)
    for _ in range(5):
        leading.of(np.diag([9.0, 1.0, 0.5, 0.2]))
    swapped = np.diag([9.0, 1.0, 0.5, 20.0])
    np.testing.assert_allclose(leading.of(swapped)[:, 0] ** 2, [0, 0, 0, 1])


@pytest.mark.parametrize(("dimension", "rank"), [(1, 1), (2, 1), (3, 3), (5, 4)])
def test_without_a_tolerance_it_is_the_oracle(dimension, rank):
    leading = LeadingSubspace(dimension, rank, tolerance=0.0)
    for matrix in walk(5, max(dimension, 3), 4.0, 0.3):
        part = matrix[:dimension, :dimension]
        found = leading.of(part)
        np.testing.assert_allclose(found, leading_bases(part, rank), atol=1e-9)
        assert (np.take_along_axis(found, abs(found).argmax(0)[None], 0) > 0).all()
    assert leading.exact_steps == 5


def test_subspaces_of_zero_matrices_and_none_can_be_written_to():
    leading = LeadingSubspace(4, 2, tolerance=1e-3)
    for _ in range(4):
        basis = leading.of(np.zeros((4, 4)))
        np.testing.assert_allclose(basis.T @ basis, np.eye(2), atol=1e-12)
    leading = LeadingSubspace(4, 2, tolerance=1e-3)
    with pytest.raises(ValueError, match="read-only"):
        leading.of(np.eye(4))[0] = 1
