import dataclasses
import gzip
import hashlib
from pathlib import Path

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from refusals import refused, refuses

from dpaudit import DataUnavailableError, InputError, datasets
from dpaudit.datasets import published
from dpaudit.datasets.published import IdxFile, parse_idx, read_idx
from dpaudit.streams import stream
from dpaudit.subspace import second_moment


@pytest.fixture
def isolated(monkeypatch, tmp_path):
    """A machine without data: an empty scikit-learn home and no DPAUDIT_DATA."""
    home = tmp_path / "home"
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(home))
    monkeypatch.delenv("DPAUDIT_DATA", raising=False)
    return home


# The registry and the record
OPTIONS = {
    "fingerprints": {"n_rows": 4, "length": 5},
    "haystack": {"n_rows": 10, "dimension": 3, "n_components": 1, "inlier_share": 0.5},
    "signal_in_noise": {"n_rows": 9, "dimension": 3, "noise": 0.1},
    "spiked_gaussian": {"n_rows": 9, "dimension": 3, "spikes": [2.0, 1.0]},
    "stylised_genotypes": {"n_outliers": 4, "dimension": 9},
}


def drawn(name, seed=0, **changes):
    return datasets.load(name, **{**OPTIONS[name], "rng": stream(seed), **changes})


def test_every_name_loads_or_says_what_it_needs(isolated):
    """The seed decides everything that is drawn."""
    missing = set()
    for name in datasets.names():
        try:
            data = drawn(name) if name in OPTIONS else datasets.load(name)
        except DataUnavailableError:
            missing.add(name)
            continue
        assert data.name == name
        assert data.source
        if name in OPTIONS:
            np.testing.assert_array_equal(drawn(name).rows, data.rows)
            assert not np.array_equal(drawn(name, seed=1).rows, data.rows)
    assert missing == {"covertype", "mnist"}


test_bad_arguments_of_what_is_drawn_are_named = refused(
    ("spiked_gaussian", {"n_rows": 0}, "n_rows must be an integer >= 1"),
    ("spiked_gaussian", {"dimension": 0}, "dimension must be an integer >= 1"),
    ("spiked_gaussian", {"spikes": []}, "spikes must hold 1 to 3 numbers, got 0"),
    ("spiked_gaussian", {"spikes": [1] * 4}, "hold 1 to 3 numbers, got 4"),
    ("spiked_gaussian", {"spikes": [1, -1.0]}, r"spikes\[1\] must be .* got -1.0"),
    ("spiked_gaussian", {"spikes": [[1.0]]}, r"spikes\[0\] must be a real number"),
    ("spiked_gaussian", {"noise": -1.0}, "noise must be a finite number >= 0"),
    ("spiked_gaussian", {"basis": np.eye(3)}, r"\(3, 2\), got shape \(3, 3\)"),
    ("spiked_gaussian", {"basis": np.ones((3, 2))}, "basis must have orthonormal"),
    ("spiked_gaussian", {"rng": 0}, "rng must be a numpy.random.Generator, got 0"),
    ("haystack", {"n_rows": 1}, "n_rows must be an integer >= 2"),
    ("haystack", {"dimension": 1}, "dimension must be an integer >= 2"),
    ("haystack", {"n_components": 3}, "n_components must be .* >= 1 and <= 2"),
    ("haystack", {"inlier_share": 0}, r"inlier_share must be in \(0, 1\)"),
    ("haystack", {"inlier_share": 0.01}, "one outlier among 10 rows"),
    ("haystack", {"inlier_share": 0.99}, "one outlier among 10 rows"),
    ("haystack", {"rng": np.random}, "rng must be a numpy.random.Generator"),
    ("signal_in_noise", {"n_rows": 0}, "n_rows must be an integer >= 1"),
    ("signal_in_noise", {"dimension": 0}, "dimension must be an integer >= 1"),
    ("signal_in_noise", {"noise": -0.1}, "noise must be a finite number >= 0"),
    ("signal_in_noise", {"rng": 0}, "rng must be a numpy.random.Generator, got 0"),
    ("signal_in_noise", {"direction": [1.0, 0.0]}, r"direction .* shape \(3,\)"),
    ("signal_in_noise", {"direction": [1, 1, 0]}, "direction .* orthonormal"),
    ("stylised_genotypes", {"n_inliers": 1}, "n_inliers must be an integer >= 2"),
    ("stylised_genotypes", {"n_outliers": -1}, "n_outliers must be"),
    ("stylised_genotypes", {"dimension": 1}, "dimension must be"),
    ("stylised_genotypes", {"rng": 7}, "rng must be"),
    ("stylised_genotypes", {"scores": np.ones((5, 1))}, "2 columns or more"),
    ("stylised_genotypes", {"scores": np.zeros((5, 2))}, "not all be 0"),
    ("stylised_genotypes", {"scores": [[np.nan, 1], [1, 1]]}, "row 0 has a NaN"),
    ("stylised_genotypes", {"scores": np.ones((5, 2)), "n_inliers": 4}, "5, got 4"),
    ("stylised_genotypes", {"scores": "nowhere.txt"}, "be read from nowhere.txt"),
    by=lambda name, changes: drawn(name, **changes),
)


test_unknown_names_and_options_are_met_with_help = refused(
    ("minst", {}, "unknown dataset 'minst'; did you mean 'mnist'"),
    ("mnist", {"splitt": "test"}, "'splitt'; did you mean 'split'"),
    ("mnist", {"split": "tests"}, "unknown split 'tests'; did you mean 'test'"),
    ("digits", {"split": "test"}, "'digits' takes no options, got 'split'"),
    ("haystack", {"n_rows": 5}, "'haystack': missing a required .*'dimension'"),
    ("mnist", {"path": 3}, "path must be the path of a folder, got 3"),
    ("covertype", {"path": 3}, "path must be the path of a folder, got 3"),
    by=lambda name, options: datasets.load(name, **options),
)


def test_a_dataset_is_a_read_only_copy():
    rows, labels = np.eye(2), np.array([0, 1])
    data = datasets.Dataset("x", rows, "by hand", labels, np.eye(2)[:, :1])
    rows[:] = 7
    labels[:] = 7
    np.testing.assert_array_equal(data.rows, np.eye(2))
    np.testing.assert_array_equal(data.labels, [0, 1])
    for array in (data.rows, data.labels, data.subspace):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "y"


test_malformed_datasets_are_refused = refused(
    ({"rows": [[np.nan]]}, "rows must be finite, but row 0"),
    ({"rows": np.empty((0, 2))}, "rows must have shape"),
    ({"labels": np.array([0, 1])}, r"labels must be integers of shape \(3,\)"),
    ({"labels": np.zeros(3)}, r"labels must be integers .*, got float"),
    ({"subspace": np.eye(3)}, r"subspace must have shape \(2, k\)"),
    ({"subspace": np.ones((2, 1))}, "subspace must have orthonormal columns"),
    ({"subspace": np.eye(2)[None]}, r"subspace must have shape \(2, k\)"),
    by=lambda fields: datasets.Dataset(
        **({"name": "x", "rows": np.ones((3, 2)), "source": ""} | fields)
    ),
)


@pytest.mark.parametrize(
    ("name", "shape", "range_", "classes"),
    [("digits", (1797, 64), (0, 16), 10), ("breast_cancer", (569, 30), (0, 4254), 2)],
)
def test_shipped_datasets_are_the_published_ones(name, shape, range_, classes):
    data = datasets.load(name)
    assert data.rows.shape == shape
    assert (data.rows.min(), data.rows.max()) == range_
    assert sorted(set(data.labels.tolist())) == list(range(classes))


# What is drawn
def test_rows_have_their_covariances_and_subspaces_no_direction():
    basis = np.linalg.qr(stream(1).standard_normal((4, 2))).Q
    n = 200_000
    options = {"spikes": [9.0, 3.0], "noise": 0.5, "basis": basis}
    data = datasets.spiked_gaussian(n, 4, **options, rng=stream(2))
    covariance = 0.25 * np.eye(4) + basis @ np.diag([9.0, 3.0]) @ basis.T
    np.testing.assert_array_equal(data.subspace, basis)
    # An entry has standard deviation sqrt((c_ii c_jj + c_ij^2)/n) < 0.03: five of them.
    assert np.abs(second_moment(data.rows) / n - covariance).max() < 0.15
    assert np.abs(data.rows.mean(axis=0)).max() < 0.05
    # The mean projector is (k/d) I; an entry's standard deviation is below 0.5/sqrt(n).
    n, rng = 2_000, stream(4)
    mean = np.zeros((3, 3))
    for _ in range(n):
        v = datasets.spiked_gaussian(1, 3, spikes=[1.0], rng=rng).subspace
        mean += v @ v.T / n
    assert np.abs(mean - np.eye(3) / 3).max() < 5 * 0.5 / np.sqrt(n)
    d, r, n = 4, 2, 100_000
    options = {"inlier_share": 0.5, "spherise": False}
    data = datasets.haystack(n, d, r, **options, rng=stream(5))
    # Shuffled: half of the neighbours differ, with a deviation of 158.
    assert np.count_nonzero(np.diff(data.labels)) > 48_000
    inliers, outliers = data.rows[data.labels == 1], data.rows[data.labels == 0]
    projector = data.subspace @ data.subspace.T
    # Entries have standard deviation at most sqrt(2) / (r sqrt(n/2)) < 0.0032.
    for rows, covariance in ((inliers, projector / r), (outliers, np.eye(d) / d)):
        assert np.abs(second_moment(rows) / len(rows) - covariance).max() < 0.016


@given(
    st.integers(0, 2**32),
    st.integers(2, 6),
    st.integers(1, 9).map(lambda tenths: tenths / 10),
    st.booleans(),
    st.data(),
)
def test_haystack_inliers_lie_in_the_subspace_and_no_outlier_does(
    seed, d, share, spherise, data
):
    r = data.draw(st.integers(1, d - 1))
    drawn = datasets.haystack(
        20, d, r, inlier_share=share, spherise=spherise, rng=stream(seed)
    )
    residual = drawn.rows - drawn.rows @ drawn.subspace @ drawn.subspace.T
    inside = np.linalg.norm(residual, axis=1) < 1e-13
    np.testing.assert_array_equal(inside, drawn.labels == 1)
    assert drawn.labels.sum() == round(20 * share)
    if spherise:
        np.testing.assert_allclose(np.linalg.norm(drawn.rows, axis=1), 1, rtol=1e-14)


# IDX files
def idx_bytes(array):
    header = bytes([0, 0, 8, array.ndim])
    return header + np.array(array.shape, dtype=">u4").tobytes() + array.tobytes()


def describe(name, array):
    digest = hashlib.sha256(idx_bytes(array)).hexdigest()
    return IdxFile(name, array.shape, digest)


@given(hnp.arrays(np.uint8, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0)))
def test_idx_content_survives_a_round_trip(array):
    parsed = parse_idx(idx_bytes(array), Path("x"))
    np.testing.assert_array_equal(parsed, array)
    assert parsed.shape == array.shape


test_malformed_idx_content_is_diagnosed = refused(
    (b"\x1f\x8b\x08\x00", "x is not an IDX file .* got '1f 8b 08 00'"),
    (bytes([0, 0, 13, 1, 0, 0, 0, 1, 0]), "x is not an IDX file of unsigned bytes"),
    (bytes([0, 0, 8, 3, 0, 0]), "x is truncated: its header needs 16 bytes, got 6"),
    (bytes([0, 0, 8, 1, 0, 0, 0, 2, 1]), "truncated: .* needs 2 bytes .* got 1"),
    (bytes([0, 0, 8, 1, 0, 0, 0, 1, 1, 2]), "x is too long: .* needs 1 bytes"),
    (bytes([0, 0, 8, 2] + [255] * 8), "x is truncated: shape"),
    by=lambda content: parse_idx(content, Path("x")),
)


def test_damaged_files_are_diagnosed(tmp_path):
    array = stream(0).integers(0, 256, (6, 5), dtype=np.uint8)
    expected = describe("x", array)
    wrapped = gzip.compress(idx_bytes(array))
    damage = {
        "cut.gz": (wrapped[:-20], "cannot be read"),
        "crc.gz": (wrapped[:-8] + bytes(8), "cannot be read: CRC"),
        "bits.gz": (wrapped[:12] + b"\xff\xff" + wrapped[14:], "cannot be read"),
        "shape": (idx_bytes(array.reshape(5, 6)), r"shape \(5, 6\), expected \(6, 5\)"),
        "other": (idx_bytes(array ^ 1), "is not the published file .* SHA-256"),
        "long": (idx_bytes(array) + b"\0" * 9, "is too long"),
    }
    for name, (content, message) in damage.items():
        where = tmp_path / name
        where.write_bytes(content)
        refuses(f"{name} .*{message}", read_idx, where, expected)


# MNIST
@pytest.fixture
def tiny_mnist(isolated, monkeypatch):
    """Stand-ins for the MNIST files: 5 and 3 digits of 2 x 2 pixels."""
    rng = stream(9)
    arrays, files = {}, {}
    for split, n, stem in (("train", 5, "train"), ("test", 3, "t10k")):
        images = rng.integers(0, 256, (n, 2, 2), dtype=np.uint8)
        labels = rng.integers(0, 10, n, dtype=np.uint8)
        arrays[split] = images, labels
        files[split] = (
            describe(f"{stem}-images-idx3-ubyte", images),
            describe(f"{stem}-labels-idx1-ubyte", labels),
        )
    monkeypatch.setattr(published, "MNIST_FILES", files)
    return arrays


def write_idx(folder, arrays, split, suffix=""):
    folder.mkdir(parents=True, exist_ok=True)
    for file, array in zip(published.MNIST_FILES[split], arrays[split], strict=True):
        content = gzip.compress(idx_bytes(array)) if suffix else idx_bytes(array)
        (folder / f"{file.name}{suffix}").write_bytes(content)


def write_arff(where, arrays, *, head="% tiny\n@RELATION mnist\n@DATA\n", flip=0):
    where.parent.mkdir(parents=True, exist_ok=True)
    table = np.concatenate(
        [np.c_[i.reshape(len(i), -1), y] for i, y in (arrays["train"], arrays["test"])]
    )
    table[0, 0] ^= flip
    body = "\n".join(",".join(map(str, row)) for row in table.tolist())
    where.write_bytes(gzip.compress(f"{head}{body}\n".encode()))


def assert_is(data, arrays, split):
    images, labels = arrays[split]
    np.testing.assert_array_equal(data.rows, images.reshape(len(images), -1))
    np.testing.assert_array_equal(data.labels, labels)
    assert split in data.source


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("subfolder", ["", "mnist"])
def test_mnist_is_found_by_path_and_by_environment(
    tiny_mnist, tmp_path, monkeypatch, split, suffix, subfolder
):
    write_idx(tmp_path / "data" / subfolder, tiny_mnist, split, suffix)
    data = datasets.load_mnist(split=split, path=tmp_path / "data")
    assert_is(data, tiny_mnist, split)
    monkeypatch.setenv("DPAUDIT_DATA", str(tmp_path / "data"))
    assert_is(datasets.load("mnist", split=split), tiny_mnist, split)


@pytest.mark.parametrize("tail", published.OPENML_PATHS)
@pytest.mark.parametrize("split", ["train", "test"])
def test_mnist_is_read_from_what_fetch_openml_left(tiny_mnist, isolated, split, tail):
    write_arff(isolated / tail, tiny_mnist)
    assert_is(datasets.load_mnist(split=split), tiny_mnist, split)


def test_what_was_named_does_not_fall_through(
    tiny_mnist, isolated, tmp_path, monkeypatch
):
    """Neither an explicit path without files nor a damaged file that comes first."""
    write_idx(isolated / "mnist", tiny_mnist, "train", ".gz")
    assert_is(datasets.load_mnist(), tiny_mnist, "train")
    write_idx(tmp_path, tiny_mnist, "train")
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(b"")
    monkeypatch.setenv("DPAUDIT_DATA", str(tmp_path))
    refuses("train-labels-idx1-ubyte is not an IDX file", datasets.load_mnist)
    write_arff(isolated / published.OPENML_PATHS[0], tiny_mnist)
    with pytest.raises(DataUnavailableError, match="elsewhere"):
        datasets.load_mnist(path=tmp_path / "elsewhere")


# NumPy 2.0 reads 256 as a byte: then it is another file.
NO_BYTE = (
    "is not the published file"
    if np.__version__ < "2.1"
    else "cannot be read: could not convert"
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"flip": 1}, "is not the published file"),
        ({"head": "@RELATION mnist\n"}, "cannot be read: it has no @data line"),
        ({"head": "@DATA\n0,0\n"}, "cannot be read: the number of columns"),
        ({"head": "@DATA\n0,0,0,256,1\n"}, NO_BYTE),
    ],
)
def test_a_damaged_openml_cache_is_diagnosed(tiny_mnist, isolated, options, message):
    write_arff(isolated / published.OPENML_PATHS[0], tiny_mnist, **options)
    refuses(message, datasets.load_mnist)


MISSING = {
    "mnist": "train-images-idx3-ubyte train-labels-idx1-ubyte yann.lecun.com "
    "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "covertype": "covtype.data.gz https://archive.ics.uci.edu/ "
    "614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
}


@pytest.mark.parametrize("name", MISSING)
def test_missing_files_are_explained(isolated, name):
    with pytest.raises(DataUnavailableError) as raised:
        datasets.load(name)
    for part in (*MISSING[name].split(), "DPAUDIT_DATA", str(isolated / name)):
        assert part in str(raised.value)
    assert not isolated.exists(), "looking for data must not create folders"


# Covertype
@pytest.fixture
def tiny_covertype(isolated, monkeypatch):
    """A stand-in for covtype.data.gz with 4 rows: the table and the file's bytes."""
    table = stream(10).integers(0, 8, (4, 55))
    content = gzip.compress(
        "".join(",".join(map(str, row)) + "\n" for row in table.tolist()).encode()
    )
    monkeypatch.setattr(
        published, "COVERTYPE_SHA256", hashlib.sha256(content).hexdigest()
    )
    monkeypatch.setattr(published, "COVERTYPE_SHAPE", (4, 54))
    return table, content


@pytest.mark.parametrize("subfolder", ["", "covertype"])
def test_covertype_is_found_by_path_and_by_environment(
    tiny_covertype, tmp_path, monkeypatch, subfolder
):
    table, content = tiny_covertype
    (tmp_path / subfolder).mkdir(exist_ok=True)
    (tmp_path / subfolder / "covtype.data.gz").write_bytes(content)
    by_path = datasets.load_covertype(path=str(tmp_path))
    monkeypatch.setenv("DPAUDIT_DATA", str(tmp_path))
    for data in (by_path, datasets.load_covertype()):
        np.testing.assert_array_equal(data.rows, table[:, :-1])
        np.testing.assert_array_equal(data.labels, table[:, -1])


def write_cache(home, table):
    folder = home / "covertype"
    folder.mkdir(parents=True)
    joblib.dump(table[:, :-1].astype(float), folder / "samples_py3", compress=9)
    joblib.dump(table[:, -1].astype(np.int32), folder / "targets_py3", compress=9)
    return folder


def test_covertype_is_read_from_what_fetch_covtype_left(tiny_covertype, isolated):
    table, _ = tiny_covertype
    write_cache(isolated, table)
    data = datasets.load_covertype()
    np.testing.assert_array_equal(data.rows, table[:, :-1])
    np.testing.assert_array_equal(data.labels, table[:, -1])
    with pytest.raises(DataUnavailableError, match="Covertype was not found"):
        datasets.load_covertype(path=isolated)


def test_damaged_covertype_files_are_diagnosed(tiny_covertype, isolated, tmp_path):
    table, content = tiny_covertype
    (tmp_path / "covtype.data.gz").write_bytes(content[:-10])
    with pytest.raises(InputError, match=r"covtype\.data\.gz is not the published"):
        datasets.load_covertype(path=tmp_path)
    folder = write_cache(isolated, table[:3])
    refuses(r"shape \(3, 54\), expected \(4, 54\)", datasets.load_covertype)
    (folder / "samples_py3").write_bytes(b"damaged")
    refuses(r"scikit-learn's cache .* cannot be read", datasets.load_covertype)
