"""Published datasets, from files on this machine.

scikit-learn ships its digits and the breast cancer; it is imported on the first call,
since it takes longer than all of dpaudit. MNIST and Covertype are the user's files.

References
----------
LeCun, Bottou, Bengio and Haffner, *Gradient-based learning applied to document
recognition*, Proceedings of the IEEE 86, 1998 (MNIST).
Blackard and Dean, *Comparative accuracies of artificial neural networks and
discriminant analysis in predicting forest cover types from cartographic variables*,
Computers and Electronics in Agriculture 24, 1999 (Forest Covertype).
"""

import gzip
import hashlib
import os
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpaudit.datasets.dataset import Dataset
from dpaudit.datasets.files import (
    READ_ERRORS,
    IdxFile,
    check_sha256,
    find_file,
    read_idx,
    scikit_learn_home,
    search_folders,
)
from dpaudit.errors import DataUnavailableError, InputError
from dpaudit.validation import check_name

__all__ = ["load_breast_cancer", "load_covertype", "load_digits", "load_mnist"]

COVERTYPE_URL = (
    "https://archive.ics.uci.edu/ml/machine-learning-databases/covtype/covtype.data.gz"
)
COVERTYPE_FILE = "covtype.data.gz"
COVERTYPE_SHA256 = "614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771"
COVERTYPE_SHAPE = (581_012, 54)
MNIST_URL = "http://yann.lecun.com/exdb/mnist/"
MNIST_MIRROR = "https://storage.googleapis.com/cvdf-datasets/mnist/"
MNIST_FILES = {
    "train": (
        IdxFile(
            "train-images-idx3-ubyte",
            (60_000, 28, 28),
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        IdxFile(
            "train-labels-idx1-ubyte",
            (60_000,),
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
    ),
    "test": (
        IdxFile(
            "t10k-images-idx3-ubyte",
            (10_000, 28, 28),
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        IdxFile(
            "t10k-labels-idx1-ubyte",
            (10_000,),
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ),
}
# Where fetch_openml("mnist_784", version=1) leaves its download, in current and in
# older releases of scikit-learn, below its data folder.
OPENML_PATHS = (
    "openml/openml.org/data/v1/download/52667/mnist_784.arff.gz",
    "openml/openml.org/data/v1/download/52667.gz",
)


def load_covertype(*, path: str | os.PathLike[str] | None = None) -> Dataset:
    """Return the Forest Covertype measurements from files on this machine.

    Parameters
    ----------
    path : path, optional
        The folder with ``covtype.data.gz``, or the folder above one called
        ``covertype``; no other place is tried then. Otherwise the folder in the
        environment variable ``DPAUDIT_DATA`` is tried in the same way, then
        scikit-learn's data folder: its subfolder ``covertype``, and in it what
        `sklearn.datasets.fetch_covtype` keeps there (parsed data, which scikit-learn
        compared with the published hash when it downloaded them; only the shape is
        checked again).

    Returns
    -------
    Dataset
        581,012 rows: 10 quantitative and 44 binary features, as published (neither
        centred nor rescaled); labels 1 to 7.

    Raises
    ------
    DataUnavailableError
        If the file is in none of these places; names it, its hash and a source.
    InputError
        If the file is there but damaged, or not the published one.
    """
    folders = search_folders("covertype", path)
    for folder in folders:
        if (where := folder / COVERTYPE_FILE).is_file():
            rows, labels = _read_published(where)
            break
    else:
        folder = scikit_learn_home() / "covertype"
        if path is not None or not any(folder.glob("samples*")):
            raise DataUnavailableError(
                f"Covertype was not found: put {COVERTYPE_FILE} (SHA-256 "
                f"{COVERTYPE_SHA256}) from {COVERTYPE_URL} in a folder, and name it by "
                "path or by the environment variable DPAUDIT_DATA "
                f"(looked in: {', '.join(map(str, folders))})"
            )
        rows, labels = _read_scikit_learn_cache(folder)
    return Dataset(
        "covertype",
        rows,
        source=f"UCI Covertype (Blackard, Dean, Anderson), {COVERTYPE_URL}",
        labels=labels.astype(np.int64),
    )


def _read_published(where: Path) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    try:
        with where.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{where} cannot be read: {error}") from error
    check_sha256(where, digest, COVERTYPE_SHA256)
    table = np.loadtxt(where, delimiter=",")
    return table[:, :-1], table[:, -1]


def _read_scikit_learn_cache(
    folder: Path,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    from sklearn.datasets import fetch_covtype

    try:
        rows, labels = fetch_covtype(
            data_home=folder.parent, download_if_missing=False, return_X_y=True
        )
    except Exception as error:  # Unpickling a damaged file may raise anything.
        raise InputError(
            f"scikit-learn's cache in {folder} cannot be read: {error}"
        ) from error
    if np.shape(rows) != COVERTYPE_SHAPE:
        raise InputError(
            f"scikit-learn's cache in {folder} holds rows of shape {np.shape(rows)}, "
            f"expected {COVERTYPE_SHAPE}"
        )
    return np.asarray(rows), np.asarray(labels)


def load_mnist(
    *,
    split: Literal["train", "test"] = "train",
    path: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Return the MNIST handwritten digits from files on this machine.

    Parameters
    ----------
    split : {"train", "test"}
        60,000 or 10,000 digits.
    path : path, optional
        The folder with the IDX files, each plain or gzip, or the folder above one
        called ``mnist``; no other place is tried then. Otherwise the folder in the
        environment variable ``DPAUDIT_DATA`` is tried in the same way, then
        scikit-learn's data folder: its subfolder ``mnist``, and what
        ``fetch_openml("mnist_784", version=1)`` left there.

    Returns
    -------
    Dataset
        Rows of 784 pixel values in 0..255, row-major from the top left, as published:
        neither centred nor rescaled, since a statistic of the data would lie outside
        every privacy proof. Labels 0 to 9.

    Raises
    ------
    DataUnavailableError
        If the files are in none of these places; names them, their hashes and a source.
    InputError
        If a file is there but damaged, or not the published one.
    """
    check_name("split", split, tuple(MNIST_FILES))
    files = MNIST_FILES[split]
    folders = search_folders("mnist", path)
    arrays: list[NDArray[np.uint8]] | None = None
    for folder in folders:
        found = [(find_file(folder, file.name), file) for file in files]
        if all(where is not None for where, _ in found):
            arrays = [read_idx(where, file) for where, file in found if where]
            break
    if arrays is None and path is None:
        for tail in OPENML_PATHS:
            if (cached := scikit_learn_home() / tail).is_file():
                arrays = _read_openml(cached, split)
                break
    if arrays is None:
        raise DataUnavailableError(
            f"MNIST ({split}) was not found: put "
            + " and ".join(f"{f.name}[.gz] (SHA-256 {f.sha256})" for f in files)
            + f", hashes of the decompressed content, from {MNIST_URL} or "
            f"{MNIST_MIRROR} in a folder, and name it by path or by the environment "
            f"variable DPAUDIT_DATA (looked in: {', '.join(map(str, folders))})"
        )
    images, labels = arrays
    return Dataset(
        "mnist",
        images.reshape(len(images), -1).astype(np.float64),
        source=f"MNIST (LeCun, Cortes, Burges), {split} split, {MNIST_URL}, "
        f"SHA-256 of the images {files[0].sha256}",
        labels=labels.astype(np.int64),
    )


def _read_openml(where: Path, split: str) -> list[NDArray[np.uint8]]:
    # OpenML's table has the training rows, then the test rows, and the label last.
    # Calling fetch_openml is no option: it replaces a bad file by a download.
    try:
        with gzip.open(where, "rt", encoding="ascii") as lines:
            for line in lines:
                if line.strip().lower() == "@data":
                    break
            else:
                raise ValueError("it has no @data line")
            table = np.loadtxt(lines, delimiter=",", dtype=np.uint8, ndmin=2)
    except (*READ_ERRORS, ValueError) as error:
        raise InputError(f"{where} cannot be read: {error}") from error
    images, labels = MNIST_FILES[split]
    part = slice(labels.shape[0]) if split == "train" else slice(-labels.shape[0], None)
    arrays = []
    for file, columns in ((images, table[part, :-1]), (labels, table[part, -1])):
        # Rebuilding the original file lets one hash vouch for both forms.
        content = file.header + columns.tobytes()
        check_sha256(where, hashlib.sha256(content).hexdigest(), file.sha256)
        arrays.append(columns.reshape(file.shape))
    return arrays


def load_digits() -> Dataset:
    """Return scikit-learn's 8 x 8 handwritten digits.

    Returns
    -------
    Dataset
        1797 rows of 64 pixel counts in 0..16; labels 0 to 9.

    Examples
    --------
    >>> from dpaudit.datasets import load_digits
    >>> load_digits().rows.shape
    (1797, 64)
    """
    return _shipped(
        "digits",
        "test part of the UCI Optical Recognition of Handwritten Digits",
    )


def load_breast_cancer() -> Dataset:
    """Return scikit-learn's Wisconsin diagnostic breast-cancer measurements.

    Returns
    -------
    Dataset
        569 rows of 30 positive features whose scales differ by a factor of 10^5;
        labels 0 (malignant) and 1 (benign).

    Examples
    --------
    >>> from dpaudit.datasets import load_breast_cancer
    >>> load_breast_cancer().rows.shape
    (569, 30)
    """
    return _shipped("breast_cancer", "UCI Breast Cancer Wisconsin (Diagnostic)")


def _shipped(name: str, source: str) -> Dataset:
    from sklearn import datasets

    rows, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
    return Dataset(
        name,
        np.asarray(rows),
        source=f"scikit-learn load_{name}: {source}",
        labels=np.asarray(labels),
    )
