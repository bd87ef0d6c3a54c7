"""Datasets that scikit-learn ships, so that they are there on every machine.

scikit-learn is imported on the first call: it takes longer than all of dpaudit.
"""

import numpy as np

from dpaudit.datasets.dataset import Dataset

__all__ = ["load_breast_cancer", "load_digits"]


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
    from sklearn import datasets

    rows, labels = datasets.load_digits(return_X_y=True)
    return Dataset(
        "digits",
        np.asarray(rows),
        source="scikit-learn load_digits: test part of the UCI Optical Recognition of "
        "Handwritten Digits",
        labels=np.asarray(labels),
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
    from sklearn import datasets

    rows, labels = datasets.load_breast_cancer(return_X_y=True)
    return Dataset(
        "breast_cancer",
        np.asarray(rows),
        source="scikit-learn load_breast_cancer: UCI Breast Cancer Wisconsin "
        "(Diagnostic)",
        labels=np.asarray(labels),
    )
