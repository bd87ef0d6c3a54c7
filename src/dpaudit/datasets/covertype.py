"""The Forest Covertype measurements, from the user's files.

References
----------
Blackard and Dean, *Comparative accuracies of artificial neural networks and
discriminant analysis in predicting forest cover types from cartographic variables*,
Computers and Electronics in Agriculture 24, 1999.
"""

import hashlib
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpaudit.datasets.dataset import Dataset
from dpaudit.datasets.files import check_sha256, scikit_learn_home, search_folders
from dpaudit.errors import DataUnavailableError, InputError

__all__ = ["load_covertype"]

URL = (
    "https://archive.ics.uci.edu/ml/machine-learning-databases/covtype/covtype.data.gz"
)
FILE_NAME = "covtype.data.gz"
SHA256 = "614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771"
SHAPE = (581_012, 54)


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
        if (where := folder / FILE_NAME).is_file():
            rows, labels = _read_published(where)
            break
    else:
        folder = scikit_learn_home() / "covertype"
        if path is not None or not any(folder.glob("samples*")):
            raise DataUnavailableError(
                f"Covertype was not found: put {FILE_NAME} (SHA-256 "
                f"{SHA256}) from {URL} in a folder, and name it by "
                "path or by the environment variable DPAUDIT_DATA "
                f"(looked in: {', '.join(map(str, folders))})"
            )
        rows, labels = _read_scikit_learn_cache(folder)
    return Dataset(
        "covertype",
        rows,
        source=f"UCI Covertype (Blackard, Dean, Anderson), {URL}",
        labels=labels.astype(np.int64),
    )


def _read_published(where: Path) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    try:
        with where.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{where} cannot be read: {error}") from error
    check_sha256(where, digest, SHA256)
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
    if np.shape(rows) != SHAPE:
        raise InputError(
            f"scikit-learn's cache in {folder} holds rows of shape {np.shape(rows)}, "
            f"expected {SHAPE}"
        )
    return np.asarray(rows), np.asarray(labels)
