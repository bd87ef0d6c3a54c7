"""What holds of the adapters whether their libraries are there or not."""

import json
import pickle
import sys
from types import ModuleType

import numpy as np
import pytest
from click.testing import CliRunner
from refusals import refused, refuses

from dpaudit import DPAuditError, InputError, Relation
from dpaudit.algorithms import CATALOGUE, build, entry, names_of
from dpaudit.algorithms.third_party import base, diffprivlib, opendp
from dpaudit.algorithms.third_party.opendp import OpenDPEigenvector, OpenDPPCA
from dpaudit.cli import main
from dpaudit.extras import how_to_install
from dpaudit.mechanism import HasBatchedDraw

NAMES = names_of("third-party")
EIGENVECTORS = ("diffprivlib-bingham", "opendp-eigenvector")
LIBRARIES = ("diffprivlib", "opendp")


@pytest.fixture
def absent(monkeypatch):
    """Make every library unimportable, as if it were not installed."""
    opendp._laplace_sum.cache_clear()
    opendp._gaussian_sum.cache_clear()
    loaded = [name for name in sys.modules if name.split(".")[0] in LIBRARIES]
    for name in {*loaded, *LIBRARIES}:
        monkeypatch.setitem(sys.modules, name, None)


# In the catalogue
def test_all_are_in_the_catalogue():
    assert {name.partition("-")[0] for name in NAMES} == set(LIBRARIES)
    assert len(NAMES) == 10
    assert {n for n in NAMES if entry(n).expected_refuted} == set(EIGENVECTORS)
    ours = [each for name, each in CATALOGUE.items() if name not in NAMES]
    assert all(each.extra is None and each.installed for each in ours)


@pytest.mark.parametrize("name", NAMES)
def test_mechanisms_are_what_an_audit_takes(name):
    mechanism = build(name)
    assert isinstance(mechanism, HasBatchedDraw)
    assert mechanism.worst_case().relation is mechanism.relation
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism


# Without the library
@pytest.mark.parametrize("name", NAMES)
def test_drawing_says_how_to_install_the_library(name, absent):
    each, mechanism, rng = entry(name), build(name), np.random.default_rng(0)
    assert each.extra == mechanism.library == name.split("-")[0]
    assert not each.installed
    data = mechanism.worst_case().data
    for draw in (mechanism.release, lambda data, rng: mechanism.draw(data, 2, rng=rng)):
        with pytest.raises(base.MissingLibraryError) as caught:
            draw(data, rng=rng)
        assert how_to_install(each.extra) in str(caught.value)
    assert isinstance(caught.value, DPAuditError)
    assert isinstance(caught.value, ImportError)


@pytest.mark.parametrize("name", ["opendp-eigenvector", "diffprivlib-laplace"])
def test_the_command_line_says_so_in_one_line(name, absent):
    done = CliRunner().invoke(main, ["audit", name])
    assert done.exit_code == 2
    assert how_to_install(entry(name).extra) in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_list_marks_what_is_missing(absent):
    lines = CliRunner().invoke(main, ["list"]).stdout.splitlines()
    for name in NAMES:
        (line,) = (line for line in lines if line.startswith(f"{name} "))
        assert line.endswith(f"  {entry(name).extra} (not installed)")
    (ours,) = (line for line in lines if line.startswith("goe-gaussian "))
    assert ours.endswith("dpaudit")  # its source
    rows = json.loads(CliRunner().invoke(main, ["list", "--json"]).stdout)
    missing = [row["name"] for row in rows if not row["installed"]]
    assert missing == [row["name"] for row in rows if row["extra"]] == list(NAMES)


def test_a_broken_library_is_named_with_its_complaint(monkeypatch):
    broken = ModuleType("diffprivlib")  # without what the adapters ask it for
    for name in [n for n in sys.modules if n.startswith("diffprivlib.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "diffprivlib", broken)
    with pytest.raises(base.MissingLibraryError, match=r"diffprivlib\.mechanisms"):
        build("diffprivlib-laplace").release([1.0], rng=np.random.default_rng(0))


# What is asked of data and parameters
test_bad_parameters_are_named = refused(
    ("diffprivlib-gaussian", {"epsilon": 1.5}, r"epsilon must be at most 1, got 1.5"),
    *(
        ("opendp-gaussian", {"delta": delta}, f"delta must be .*got {delta}")
        for delta in (0.0, 1.0, -1e-5)
    ),
    ("diffprivlib-bingham", {"row_norm": -1}, r"row_norm must be .*got -1"),
    ("opendp-pca", {"row_norm": -1}, r"row_norm must be .*got -1"),
    ("diffprivlib-pca", {"n_components": 0}, r"n_components must be .*got 0"),
    by=lambda name, options: build(name, **options),
)


@pytest.mark.parametrize("name", ["diffprivlib-bingham", "opendp-pca"])
def test_bad_rows_are_named(name):
    mechanism, rng = build(name), np.random.default_rng(0)
    refuses("rows of length >= 2", mechanism.release, np.ones((3, 1)), rng=rng)
    refuses("n >= 2", mechanism.release, np.ones((1, 3)), rng=rng)
    refuses(r"size must be .*got 0", mechanism.draw, np.ones((3, 2)), 0, rng=rng)
    with pytest.raises(InputError, match=r"n_components must be .*<= 2, got 3"):
        OpenDPPCA(n_components=3).release(np.eye(2), rng=rng)


def test_components_of_releases():
    vectors = np.eye(3)[:2]
    bases = OpenDPEigenvector().components(vectors, 1)
    assert bases.shape == (2, 3, 1)
    np.testing.assert_array_equal(bases[1, :, 0], vectors[1])
    refuses("n_components", OpenDPEigenvector().components, vectors, 2)
    released = {"components": np.eye(4)[np.newaxis, :2]}
    model = diffprivlib.DiffprivlibPCA(n_components=2)
    np.testing.assert_array_equal(model.components(released, 2)[0], np.eye(4)[:, :2])
    refuses("n_components", model.components, released, 1)
    refuses("dictionaries", model.components, np.eye(4), 2)


# The pair
@pytest.mark.parametrize("dimension", [2, 8])
def test_the_pair_is_nearly_degenerate(dimension):
    pair = base.near_degenerate_pair(dimension, row_norm=2.0)
    expected = np.zeros((2, dimension))
    expected[:, :2] = [[3000, 2998], [2999, 2999]]
    for rows, diagonal in zip((pair.data, pair.neighbour), expected, strict=True):
        np.testing.assert_array_equal(rows.T @ rows, 4 * np.diag(diagonal))
        np.testing.assert_array_equal(np.linalg.norm(rows, axis=1), 2.0)
    np.testing.assert_array_equal(pair.data.sum(axis=0), 0.0)
    assert pair.relation is Relation.REPLACE_ONE


@pytest.mark.parametrize("name", NAMES)
def test_the_pair_is_the_worst_case_of_what_finds_eigenvectors(name):
    mechanism = build(name)
    if isinstance(mechanism, base.ScalarSum):
        assert mechanism.relation is Relation.ADD_REMOVE
        refuses("dimension", mechanism.worst_case, 2)
        return
    assert mechanism.worst_case().data.shape == (5998, 8)
    assert mechanism.worst_case(3).data.shape == (5998, 3)
    refuses(r"dimension must be .*>= 2, got 1", mechanism.worst_case, 1)


# What the library is handed, seen by a stand-in
class Recorder:
    """Stands for a mechanism of diffprivlib, and remembers how it was called."""

    def __init__(self, **arguments):
        self.arguments = arguments
        Recorder.made = self

    def randomise(self, value):
        self.value = value
        return self.arguments["random_state"].normal() + np.sum(value)


@pytest.fixture
def stand_in(monkeypatch):
    mechanisms = ModuleType("mechanisms")
    for name in ("Laplace", "Gaussian", "GaussianAnalytic", "Bingham"):
        setattr(mechanisms, name, Recorder)
    monkeypatch.setitem(sys.modules, "diffprivlib", ModuleType("diffprivlib"))
    monkeypatch.setitem(sys.modules, "diffprivlib.mechanisms", mechanisms)


def test_sums_are_clipped_and_seeded(stand_in):
    mechanism = diffprivlib.DiffprivlibLaplace(0.3)
    first, again, other = (
        mechanism.draw([0.5, 7.0, -7.0], 3, rng=np.random.default_rng(seed))
        for seed in (1, 1, 2)
    )
    assert Recorder.made.value == 1.5
    assert Recorder.made.arguments["epsilon"] == 0.3
    assert Recorder.made.arguments["sensitivity"] == 1
    assert first.shape == (3,)
    assert len(set(first)) == 3
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_gaussians_are_told_their_delta(stand_in):
    for name in ("diffprivlib-gaussian", "diffprivlib-gaussian-analytic"):
        mechanism = build(name, epsilon=0.5, delta=1e-3)
        assert mechanism.release([1.0], rng=np.random.default_rng(0)).shape == ()
        told = {key: Recorder.made.arguments[key] for key in ("epsilon", "delta")}
        assert told == {"epsilon": 0.5, "delta": 1e-3}


def test_eigenvectors_get_the_moment_of_clipped_rows(stand_in):
    rows = np.array([[3.0, 0.0], [0.0, -0.5]])
    rng = np.random.default_rng(0)
    diffprivlib.DiffprivlibBingham(0.3, row_norm=2.0).release(rows, rng=rng)
    np.testing.assert_allclose(Recorder.made.value, np.diag([4.0, 0.25]))
    assert Recorder.made.arguments["sensitivity"] == 4.0
