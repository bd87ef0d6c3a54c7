"""MNIST and Covertype, from the user's files; nothing that is in them is trusted.

Nothing here touches the network. A file counts only if the SHA-256 of its content is
the published one.

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
import math
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpaudit.datasets.dataset import Dataset
from dpaudit.errors import DataUnavailableError, InputError
from dpaudit.validation import check_name

__all__ = ["IdxFile", "find_file", "load_covertype", "load_mnist", "search_folders"]

_UNSIGNED_BYTE = 0x08
# What reading a damaged gzip file may raise; gzip.BadGzipFile is an OSError.
_READ_ERRORS = (OSError, EOFError, zlib.error)


def _scikit_learn_home() -> Path:
    """Return scikit-learn's data folder, which need not exist.

    `sklearn.datasets.get_data_home` follows the same rule but creates the folder, which
    a function that only looks must not do (and cannot, in a read-only home).
    """
    return Path(os.environ.get("SCIKIT_LEARN_DATA", "~/scikit_learn_data")).expanduser()


def search_folders(dataset: str, path: str | os.PathLike[str] | None) -> list[Path]:
    """Return the folders that may hold the files of a dataset, in the order to look.

    Each itself, and its subfolder of that name: the user's explicit choice, after which
    nothing else is tried; without it that in the environment variable ``DPAUDIT_DATA``,
    then scikit-learn's.
    """
    if path is not None:
        if not isinstance(path, str | os.PathLike):
            raise InputError(f"path must be the path of a folder, got {path!r}")
        root = Path(path).expanduser()
        return [root, root / dataset]
    folders = [_scikit_learn_home() / dataset]
    if variable := os.environ.get("DPAUDIT_DATA"):
        root = Path(variable).expanduser()
        folders = [root, root / dataset, *folders]
    return folders


def find_file(folder: Path, name: str) -> Path | None:
    """Return the file of that name in `folder`, plain or with ``.gz``, or None."""
    for candidate in (folder / name, folder / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    return None


def _check_sha256(where: Path, actual: str, expected: str) -> None:
    """Raise `InputError` unless the two hexadecimal digests agree."""
    if actual != expected:
        raise InputError(
            f"{where} is not the published file (an incomplete download, or other "
            f"data): its content has SHA-256 {actual}, expected {expected}"
        )


@dataclass(frozen=True)
class IdxFile:
    """An array of unsigned bytes in IDX form whose content is known beforehand.

    Parameters
    ----------
    name : str
        File name without ``.gz``.
    shape : tuple of int
        Shape of the array.
    sha256 : str
        Hexadecimal digest of the whole *decompressed* file, header included, because
        mirrors wrap the same content in different gzip envelopes.
    """

    name: str
    shape: tuple[int, ...]
    sha256: str

    @property
    def header(self) -> bytes:
        """The bytes before the data: type and number of axes, then their lengths."""
        lengths = b"".join(size.to_bytes(4, "big") for size in self.shape)
        return bytes([0, 0, _UNSIGNED_BYTE, len(self.shape)]) + lengths


def read_idx(where: Path, expected: IdxFile) -> NDArray[np.uint8]:
    """Return the array in an IDX file, plain or gzip, after checking all of it.

    Raises
    ------
    InputError
        If it cannot be read, or is not what was published.
    """
    # One byte more than expected shows an excess, however large it would unpack.
    limit = len(expected.header) + math.prod(expected.shape) + 1
    try:
        with gzip.open(where) if where.suffix == ".gz" else where.open("rb") as stream:
            content = stream.read(limit)
    except _READ_ERRORS as error:
        raise InputError(f"{where} cannot be read: {error}") from error
    array = parse_idx(content, where)
    if array.shape != expected.shape:
        raise InputError(
            f"{where} holds an array of shape {array.shape}, expected {expected.shape}"
        )
    _check_sha256(where, hashlib.sha256(content).hexdigest(), expected.sha256)
    return array


def parse_idx(content: bytes, where: Path) -> NDArray[np.uint8]:
    """Return the array in the content of an IDX file of unsigned bytes.

    The format: two zero bytes, the type (8 for unsigned bytes), the number of axes, the
    length of each axis as a big-endian 32-bit integer, the entries in C order.

    Raises
    ------
    InputError
        If the content is not of that format, too short or too long.

    Examples
    --------
    >>> from pathlib import Path
    >>> from dpaudit.datasets.published import parse_idx
    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]), Path("two-bytes"))
    array([7, 9], dtype=uint8)
    """
    if content[:3] != bytes([0, 0, _UNSIGNED_BYTE]) or len(content) < 4:
        raise InputError(
            f"{where} is not an IDX file of unsigned bytes: it must begin with the "
            f"bytes 00 00 08 and the number of axes, got {content[:4].hex(' ')!r}"
        )
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise InputError(
            f"{where} is truncated: its header needs {start} bytes, got {len(content)}"
        )
    shape = tuple(int(size) for size in np.frombuffer(content[4:start], dtype=">u4"))
    size = math.prod(shape)
    if len(content) != start + size:
        verdict = "truncated" if len(content) < start + size else "too long"
        raise InputError(
            f"{where} is {verdict}: shape {shape} needs {size} bytes after the "
            f"header, got {len(content) - start}"
            + (" or more" if verdict == "too long" else "")
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


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
        folder = _scikit_learn_home() / "covertype"
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
    _check_sha256(where, digest, COVERTYPE_SHA256)
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
        As for `load_covertype`: the folder with the IDX files, each plain or gzip, or
        the one above ``mnist``. In scikit-learn's folder also what
        ``fetch_openml("mnist_784", version=1)`` left there.

    Returns
    -------
    Dataset
        Rows of 784 pixel values in 0..255, row-major from the top left, as published:
        neither centred nor rescaled, since a statistic of the data would lie outside
        every privacy proof. Labels 0 to 9.

    Raises
    ------
    DataUnavailableError, InputError
        As `load_covertype`.
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
            if (cached := _scikit_learn_home() / tail).is_file():
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
    except (*_READ_ERRORS, ValueError) as error:
        raise InputError(f"{where} cannot be read: {error}") from error
    images, labels = MNIST_FILES[split]
    part = slice(labels.shape[0]) if split == "train" else slice(-labels.shape[0], None)
    arrays = []
    for file, columns in ((images, table[part, :-1]), (labels, table[part, -1])):
        # Rebuilding the original file lets one hash vouch for both forms.
        content = file.header + columns.tobytes()
        _check_sha256(where, hashlib.sha256(content).hexdigest(), file.sha256)
        arrays.append(columns.reshape(file.shape))
    return arrays
