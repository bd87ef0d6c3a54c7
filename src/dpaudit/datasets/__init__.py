"""Datasets to audit and to compare mechanisms on.

Synthetic ones come with the truth; scikit-learn's digits and breast cancer work
everywhere (it is imported when they are asked for, since that takes longer than all of
dpaudit); MNIST and Covertype are read from the user's files, never downloaded.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.datasets.dataset import Dataset
from dpaudit.datasets.genotypes import stylised_genotypes
from dpaudit.datasets.published import load_covertype, load_mnist
from dpaudit.datasets.streaming_models import signal_in_noise
from dpaudit.datasets.synthetic import fingerprints, haystack, spiked_gaussian
from dpaudit.errors import InputError
from dpaudit.validation import check_name

__all__ = [
    "Dataset",
    "fingerprints",
    "haystack",
    "load",
    "load_breast_cancer",
    "load_covertype",
    "load_digits",
    "load_mnist",
    "names",
    "signal_in_noise",
    "spiked_gaussian",
    "stylised_genotypes",
]


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
        "digits", "test part of the UCI Optical Recognition of Handwritten Digits"
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


_REGISTRY: dict[str, Callable[..., Dataset]] = {
    "breast_cancer": load_breast_cancer,
    "covertype": load_covertype,
    "digits": load_digits,
    "fingerprints": fingerprints,
    "haystack": haystack,
    "mnist": load_mnist,
    "signal_in_noise": signal_in_noise,
    "spiked_gaussian": spiked_gaussian,
    "stylised_genotypes": stylised_genotypes,
}


def names() -> tuple[str, ...]:
    """Return the names that `load` knows, sorted.

    Examples
    --------
    >>> from dpaudit.datasets import names
    >>> names()
    ('breast_cancer', 'covertype', 'digits', 'fingerprints', 'haystack', 'mnist',
     'signal_in_noise', 'spiked_gaussian', 'stylised_genotypes')
    """
    return tuple(sorted(_REGISTRY))


def load(name: str, **options: Any) -> Dataset:
    """Return a dataset by name.

    Parameters
    ----------
    name : str
        One of `names`.
    **options
        Arguments of the function behind the name, all by keyword.

    Returns
    -------
    Dataset

    Raises
    ------
    InputError
        If the name or an option is unknown (the nearest is suggested), or an option is
        missing or out of range.
    DataUnavailableError
        If the dataset needs files that are not on this machine.

    Examples
    --------
    >>> from dpaudit.datasets import load
    >>> load("digits").rows.shape
    (1797, 64)
    >>> load("digit")
    Traceback (most recent call last):
    ...
    dpaudit.errors.InputError: unknown dataset 'digit'; did you mean 'digits'? ...
    """
    loader = _REGISTRY[check_name("dataset", name, names())]
    signature = inspect.signature(loader)
    if options and not signature.parameters:
        raise InputError(
            f"dataset {name!r} takes no options, got {next(iter(options))!r}"
        )
    for option in options:
        check_name(f"option of {name!r}", option, tuple(signature.parameters))
    try:
        signature.bind(**options)
    except TypeError as error:
        raise InputError(f"dataset {name!r}: {error}") from None
    return loader(**options)
