"""Canonical releases: equal reals are equal, and everything else stays what it is."""

import copy
import pickle

import numpy as np
import pytest

from dpaudit import InputError, Pair, PureDP, Relation
from dpaudit.attacks import BITS
from dpaudit.attacks.base import flatten
from dpaudit.audit import Run, Verdict, audit, verify
from dpaudit.audit.canonical import Canon
from dpaudit.audit.canonical.canon import ReleaseGrid
from dpaudit.audit.game.fitted import BITS_ONLY
from dpaudit.audit.game.pair_audit import data_size
from dpaudit.audit.game.portfolio import Portfolio
from dpaudit.audit.keeping.witness import grid_of
from dpaudit.batches import Batch
from dpaudit.outputs import Output
from dpaudit.reports.bench.equal_reals import FORMS, UNITS, EqualReals

pytestmark = pytest.mark.usefixtures("in_few_rounds")

SCALES = (1e-300, 1e-160, 1e-20, 1.0, 1e9, 1e160, 1e290)
ONE_ULP = [
    *((1.0, 1 / 49 * 49), (0.1 + 0.2, 0.3), (1.0, np.nextafter(1.0, 2.0))),
    *((1.0, np.nextafter(1.0, 0.0)), (2.0, np.nextafter(2.0, 0.0))),
    (-1e5 / 3, np.nextafter(-1e5 / 3, 0.0)),
]


def batch(numbers, layout="x"):
    return Batch.of(Output(layout, numbers))


def canonical(first, second=None, seed=0, data=1.0):
    """Return releases on D and on D' as attacks see them, and the grids."""
    sides = [
        batch(np.asarray(side, dtype=float))
        for side in (first, first if second is None else second)
    ]
    canon = Canon(seed, 0, data)
    canon.learn(*sides)
    return *(canon(side).numbers("x") for side in sides), canon


def column(value, size=10):
    return np.full((size, 1), value)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("first", "second"), ONE_ULP)
def test_equal_reals_are_equal_in_every_unit(first, second, scale):
    """Over 8 offsets one pair is split with probability 8 2^-22, about 2e-6."""
    for seed in range(8):
        ours, theirs, _ = canonical(column(first * scale), column(second * scale), seed)
        assert (ours == theirs[0]).all()


def test_a_boundary_is_hit_as_often_as_the_proof_says():
    """Reals 2^-36 apart are split by steps of 2^-30 with probability 2^-6.

    Of 4,000 offsets 62.5 split them on average; fewer than 30, or more than 100, do
    with probability below 1e-4.
    """
    split = 0
    for seed in range(4000):
        grid = Canon(seed, 0)._grid("new")
        numbers = np.array([[0.7], [0.7 + 2.0**-36]])
        one, other = grid.apply(numbers)[:, 0]
        split += one != other
    # The step is 2^-30 or 2^-31, as 0.7 lies above or below the binade that was drawn.
    assert 30 <= split <= 160


@pytest.mark.parametrize("scale", SCALES)
def test_noise_stays_what_it_is(scale):
    noise = np.random.default_rng(0).laplace(size=(200, 3)) * scale
    ours, _, _ = canonical(noise)
    assert len(np.unique(ours)) == noise.size
    assert np.abs(ours - noise).max() <= 2.0**-28 * np.abs(noise).max()


@pytest.mark.parametrize(
    "exact",
    [
        *(np.arange(-5.0, 15.0), np.arange(20) / 8, 1.7e9 + np.arange(20.0)),
        *(np.arange(20) * 2.0**-900, np.array([0.0, -0.0] * 10)),
        np.array([np.nan, np.inf, -np.inf, 1.0] * 5),
    ],
)
def test_what_is_exact_stays_so(exact):
    ours, _, _ = canonical(exact[:, np.newaxis])
    np.testing.assert_array_equal(ours[:, 0], exact + 0.0)
    assert not np.signbit(ours[ours == 0]).any()


def test_last_bits_are_beyond_a_lattice_and_what_varies_by_them_is_constant():
    """Large integers, and once in a while 1e20 by two ways: split with 2^-22."""
    integers = np.random.default_rng(0).integers(2**32, 2**33, size=(20, 1))
    ours, _, canon = canonical(integers)
    assert (ours == integers).all()
    far = np.array([[1e20], [np.nextafter(1e20, 0)]])
    one, other = canon(batch(far)).numbers("x")
    assert one == other
    angles = np.random.default_rng(0).normal(size=(50, 1)) * 1e3
    ours, _, _ = canonical(np.cos(angles) ** 2 + np.sin(angles) ** 2)
    assert len(np.unique(ours)) == 1
    values = np.random.default_rng(0).laplace(size=(40, 1))
    values[::20] = 1e300
    ours, _, _ = canonical(values)
    assert len(np.unique(ours)) == 39


@pytest.mark.parametrize("offset", [1.7e9, -3e5, 1e12])
def test_columns_that_vary_little_keep_their_noise(offset):
    noise = np.random.default_rng(0).laplace(size=(50, 1)) * abs(offset) * 2.0**-31
    ours, _, _ = canonical(offset + noise, offset + noise[::-1])
    assert len(np.unique(ours)) >= 49
    assert np.abs(ours - offset - noise).max() <= 2.0**-6 * np.abs(noise).max()


RESIDUES = {"constants": (1e-17, 3e-17), "squares": (1e-34, 0.0), "noise": (1.0, 3.0)}


@pytest.mark.parametrize("scale", SCALES[1:-1])
@pytest.mark.parametrize("kind", RESIDUES)
def test_what_is_left_of_sums_is_nothing(kind, scale):
    rng = np.random.default_rng(0)
    sides = []
    for left in RESIDUES[kind]:
        beside = rng.laplace(size=(10, 1))
        rest = column(left)
        if kind == "noise":
            rest = (rng.normal(size=(10, 1)) * left) * 2.0**-52
        sides.append(np.hstack([beside, rest]) * scale)
    ours, theirs, canon = canonical(*sides)
    assert not ours[:, 1].any()
    assert not theirs[:, 1].any()
    assert len(np.unique(ours[:, 0])) == 10
    if kind != "noise":
        (doubt,) = canon.doubts
        assert doubt.startswith("1 of 2 entries")


def test_the_sign_of_a_zero_is_no_real_number_and_is_told():
    noise = np.random.default_rng(0).laplace(size=(20, 1))
    zeros = np.zeros((10, 1))
    for signs, told in (((0, 1), 1), ((1, 0), 1), ((1, 1), 0), ((0, 0), 0)):
        sides = [
            np.hstack([noise[10 * side : 10 * side + 10], np.copysign(zeros, -sign)])
            for side, sign in enumerate(signs)
        ]
        ours, theirs, canon = canonical(*sides)
        assert (ours[:, 1] == theirs[:, 1]).all()
        assert len(canon.doubts) == told


def test_noise_stays_noise_and_a_sum_that_should_be_0_is_known():
    """A count beside a time in nanoseconds, and noise far below data of size 1."""
    rng = np.random.default_rng(0)
    both = np.hstack(
        [5 + rng.laplace(size=(20, 1)) / 4, rng.normal(size=(20, 1)) * 1e18]
    )
    assert len(np.unique(canonical(both[:10], both[10:])[0][:, 0])) == 10
    small = rng.laplace(size=(20, 1)) * 1e-20
    assert len(np.unique(canonical(small, data=1.0)[0])) == 20
    ours, theirs, _ = canonical(column(2.0**-53), column(-3 * 2.0**-54), data=1.0)
    assert not ours.any()
    assert not theirs.any()
    # Not so where the data are as small.
    ours, theirs, _ = canonical(column(2.0**-53), column(-(2.0**-53)), data=2.0**-53)
    assert (ours != theirs).all()


@pytest.mark.parametrize("value", [0.1, -1e5 / 3, 7e-12])
def test_single_precision_is_known_by_its_bits(value):
    """Twenty offsets: at steps of 2^-12 of the size one in 4,096 splits the two."""
    for seed in range(20):
        ours, theirs, _ = canonical(column(np.float32(value)), column(value), seed)
        assert (ours == theirs).all()


def test_dictionaries_and_layouts_have_grids_of_their_own():
    rng = np.random.default_rng(0)
    numbers = {"b": rng.normal(size=(20, 2)) * 1e-9, "a": rng.normal(size=(20, 3, 3))}
    canon = Canon(1, 0)
    assert canon.learn(batch(numbers), batch(numbers)) == ["x"]
    seen = canon(batch(numbers)).numbers("x")
    assert list(seen) == ["b", "a"]
    apart = [Canon(1, 0, 0.0, {}) for _ in range(2)]
    for each, key in zip(apart, "ab", strict=True):
        each.learn(batch(numbers[key]), batch(numbers[key]))
        expected = each(batch(numbers[key])).numbers("x")
        np.testing.assert_array_equal(seen[key], expected)
    # Of a layout that is new nothing is known but its entries.
    new = canon(batch(numbers["b"], "new")).numbers("new")
    assert np.abs(new / numbers["b"] - 1).max() <= 2.0**-29


def test_grids_are_learned_again_while_little_is_known():
    rng = np.random.default_rng(0)
    canon = Canon(0, 0)
    first = batch(np.zeros((5, 1)))
    assert canon.learn(first, first) == ["x"]
    assert not canon.is_due({"x": 39})
    assert canon.is_due({"x": 40})
    later = batch(rng.normal(size=(20, 1)) * 1e-9)
    assert canon.learn(later, later) == ["x"]
    again = batch(rng.normal(size=(80, 1)) * 1e-9)
    assert canon.learn(again, again) == []
    assert pickle.loads(pickle.dumps(canon))(later).equals(canon(later))


def test_grids_are_what_their_parameters_say_and_releases_depend_on_nothing_beside():
    numbers = np.random.default_rng(0).normal(size=(20, 3)) * [1, 1e-9, 1e9]
    _, _, canon = canonical(numbers)
    grid = canon.grids["x"]
    again = grid_of(grid.parameters)
    np.testing.assert_array_equal(again.apply(numbers), grid.apply(numbers))
    for name, value in [
        *(("offset", np.array([1.0, 0.6])), ("offset", np.array([0.5, 0.4]))),
        *(("exponent", np.array([2000])), ("exponent", np.zeros((1, 1), dtype=int))),
        *(("bits", np.array([53, 53, 53])), ("reach", np.full(3, np.nan))),
        ("reach", "far"),
    ]:
        with pytest.raises(InputError, match="no parameters of a grid"):
            grid_of(grid.parameters | {name: value})
    rng = np.random.default_rng(0)
    numbers = np.hstack([rng.normal(size=(300, 4)), rng.normal(size=(300, 4)) * 1e150])
    numbers[::7, 3] *= 1e40
    _, _, canon = canonical(numbers[:20])
    together = canon(batch(numbers)).numbers("x")
    alone = [canon(batch(row[np.newaxis])).numbers("x")[0] for row in numbers]
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(canon(batch(together)).numbers("x"), together)


@pytest.mark.parametrize("reach", [0.0, 3.1])
def test_an_infinite_release_beside_changes_no_other(reach):
    """It takes another way, for numbers whose steps may be no doubles."""
    edges = 0.7 * np.ldexp(1.0, np.arange(-40, 60))  # where steps double
    beside = [np.nextafter(edges, end) for end in (0.0, np.inf)]
    noise = np.random.default_rng(0).normal(size=400) * np.geomspace(1e-3, 1e6, 400)
    numbers = np.concatenate([edges, *beside, -edges, noise, [3.1, 9 * 3.1, -0.0]])
    numbers = np.tile(numbers[:, np.newaxis], (1, 3))
    exponent, bits = np.array([-20, -3, -20]), np.array([12, 12, 30])
    grid = ReleaseGrid(exponent, bits, np.array([reach, 0, 9 * reach]), 0.3, 0.7)
    alone = grid.apply(numbers)
    for beside in (np.inf, -np.inf, np.nan, np.finfo(float).max):
        together = grid.apply(np.vstack([numbers, np.full((1, 3), beside)]))[:-1]
        np.testing.assert_array_equal(alone.view(np.int64), together.view(np.int64))


@pytest.mark.parametrize(
    ("datasets", "size"),
    [
        *((([1.0, -3.0], [2.0]), 3.0), (([np.nan, np.inf, 2.0],), 2.0)),
        *(((["a", "b"],), 0.0), (([],), 0.0)),
    ],
)
def test_the_size_of_data_is_that_of_their_largest_number(datasets, size):
    assert data_size(*datasets) == size


def subject_of(form):
    place = list(FORMS).index(form)
    relation = list(Relation)[place % 2]
    return EqualReals(form, UNITS[place % len(UNITS)], relation)


@pytest.mark.parametrize("form", FORMS)
def test_equal_reals_of_every_form_are_equal(form):
    """Wrong with a probability of about 1e-5 a form: that of a boundary.

    It is 1e-2 for the sum in single precision, which is the same on every machine.
    """
    subject, rng = subject_of(form), np.random.default_rng(0)
    pair = subject.worst_case()
    sides = [
        [subject.release(data, rng=rng) for _ in range(10)]
        for data in (pair.data, pair.neighbour)
    ]
    ours, theirs, _ = canonical(*sides, data=data_size(pair.data))
    beside = np.vstack([ours, theirs])[:, 1:]
    if form.startswith("noise") and form != "noise cancelled":
        once, again = np.split(beside, 2, axis=1)
        assert (once == again).all()
    else:
        assert (beside == beside[0]).all()
    assert len(np.unique(ours[:, 0])) == 10


@pytest.mark.parametrize("form", ["reciprocal", "rotation", "noise scaled and back"])
def test_equal_reals_are_not_refuted(form):
    """Wrong with probability 1e-6 each, and about as much for a boundary."""
    found = audit(subject_of(form), confidence=1 - 1e-6, budget=60)
    assert not found.refuted
    assert not any("given up" in warning for warning in found.warnings)


@pytest.mark.parametrize("scale", SCALES[::3])
def test_wrong_mechanisms_fall_in_every_unit(scale):
    def half_the_noise(data, rng):
        return np.array([data.sum() + rng.laplace(scale=0.3), 1.0]) * scale

    pair = Pair([0.5], [0.5, 1.0])
    found = audit(half_the_noise, pair=pair, claim=PureDP(1.0), budget=2000)
    assert found.refuted
    assert verify(found.witness, mechanism=half_the_noise, seed=1).confirmed


def by_bits(data, rng):
    return [data.sum() + rng.laplace(), 1.0 + 2.0**-52 * len(data)]


def unlucky(monkeypatch):
    """Put the boundary of a grid between two doubles."""

    def at_the_boundary(self):
        self.score_offset, self._offset, self._binade = 0.5, 0.0, 0.5

    monkeypatch.setattr(Canon, "__post_init__", at_the_boundary)


SETTINGS = {"pair": Pair([0.5], [0.5, 1.0]), "claim": PureDP(1.0)}


def test_a_refutation_by_last_bits_says_so(monkeypatch):
    """By bad luck the boundary lies between the two: the last look finds it out."""

    def split(data, rng):
        return [data.sum() + rng.laplace(), 1.0 - 2.0**-53 * (len(data) - 1)]

    unlucky(monkeypatch)
    found = audit(split, **SETTINGS, budget=100, seed=3)
    assert found.verdict is Verdict.NOT_REFUTED
    assert BITS_ONLY in found.warnings
    assert (found.epsilon_lower, found.delta_lower, found.witness) == (0.0, 0.0, None)
    assert (found.trajectory, found.roc, found.refuted_at) == ((), (), None)
    # Without that look it is a refutation, which nobody's replay confirms.
    monkeypatch.setattr(Portfolio, "rests_on_bits", lambda *_: False)
    witness = audit(split, **SETTINGS, budget=100, seed=3).witness
    again = verify(witness, mechanism=split, seed=4)
    assert not again.confirmed
    assert BITS_ONLY in again.warnings


def test_who_asks_for_doubles_gets_them_and_nudges_stay_small():
    assert audit(by_bits, **SETTINGS, budget=300, run=Run(attacks=BITS)).refuted
    found = audit(by_bits, **SETTINGS, budget=300)
    assert not found.refuted
    (doubt,) = found.warnings
    assert doubt.startswith("1 of 2 entries of a release differ between D and D' by no")
    numbers = np.random.default_rng(0).normal(size=(50, 3))
    before = copy.deepcopy(numbers)
    _, _, canon = canonical(numbers)
    moved = canon.grids["x"].nudged(numbers, canon.nudges())
    np.testing.assert_array_equal(numbers, before)
    assert 0 < np.abs(flatten(moved) - numbers).max() <= 2.0**-36
