"""Finding data files on this machine, and trusting nothing that is in them.

Nothing here touches the network. A file counts only if the SHA-256 of its content is
the published one.
"""

import gzip
import hashlib
import math
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import InputError

__all__ = [
    "IdxFile",
    "check_sha256",
    "find_file",
    "parse_idx",
    "read_idx",
    "scikit_learn_home",
    "search_folders",
]

# What reading a damaged gzip file may raise; gzip.BadGzipFile is an OSError.
READ_ERRORS = (OSError, EOFError, zlib.error)


def scikit_learn_home() -> Path:
    """Return scikit-learn's data folder, which need not exist.

    `sklearn.datasets.get_data_home` follows the same rule but creates the folder, which
    a function that only looks must not do (and cannot, in a read-only home).
    """
    return Path(os.environ.get("SCIKIT_LEARN_DATA", "~/scikit_learn_data")).expanduser()


def search_folders(dataset: str, path: str | os.PathLike[str] | None) -> list[Path]:
    """Return the folders that may hold the files of a dataset, in the order to look.

    Parameters
    ----------
    dataset : str
        Name of the subfolder that is tried next to each folder itself.
    path : path or None
        The user's explicit choice, after which nothing else is tried. Without it: the
        folder in the environment variable ``DPAUDIT_DATA``, then scikit-learn's.
    """
    if path is not None:
        if not isinstance(path, str | os.PathLike):
            raise InputError(f"path must be the path of a folder, got {path!r}")
        root = Path(path).expanduser()
        return [root, root / dataset]
    folders = [scikit_learn_home() / dataset]
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


def check_sha256(where: Path, actual: str, expected: str) -> None:
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
        return bytes([0, 0, UNSIGNED_BYTE, len(self.shape)]) + lengths


UNSIGNED_BYTE = 0x08


def read_idx(where: Path, expected: IdxFile) -> NDArray[np.uint8]:
    """Return the array in an IDX file, plain or gzip, after checking all of it.

    Raises
    ------
    InputError
        If the file cannot be read or decompressed, is not well-formed, or is not the
        expected one.
    """
    # One byte more than expected shows an excess, however large it would unpack.
    limit = len(expected.header) + math.prod(expected.shape) + 1
    try:
        with gzip.open(where) if where.suffix == ".gz" else where.open("rb") as stream:
            content = stream.read(limit)
    except READ_ERRORS as error:
        raise InputError(f"{where} cannot be read: {error}") from error
    array = parse_idx(content, where)
    if array.shape != expected.shape:
        raise InputError(
            f"{where} holds an array of shape {array.shape}, expected {expected.shape}"
        )
    check_sha256(where, hashlib.sha256(content).hexdigest(), expected.sha256)
    return array


def parse_idx(content: bytes, where: Path) -> NDArray[np.uint8]:
    """Return the array in the content of an IDX file of unsigned bytes.

    The format: two zero bytes, the type (8 for unsigned bytes), the number of axes, the
    length of each axis as a big-endian 32-bit integer, the entries in C order.

    Raises
    ------
    InputError
        If the header or the number of bytes is wrong; `where` is named.

    Examples
    --------
    >>> from pathlib import Path
    >>> from dpaudit.datasets.files import parse_idx
    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]), Path("two-bytes"))
    array([7, 9], dtype=uint8)
    """
    if content[:3] != bytes([0, 0, UNSIGNED_BYTE]) or len(content) < 4:
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
