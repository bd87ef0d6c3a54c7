"""Hard instances for private subspaces, as a dataset.

References
----------
Dwork, Talwar, Thakurta, Zhang, *Analyze Gauss: optimal bounds for privacy-preserving
principal component analysis*, STOC 2014, section 5.
"""

import numpy as np

from dpaudit.datasets.dataset import Dataset
from dpaudit.fingerprinting.instances import PAD_RATIO, HardInstance
from dpaudit.subspace import top_components
from dpaudit.validation import check_count

__all__ = ["fingerprints"]


def fingerprints(
    n_rows: int,
    length: int,
    *,
    n_clusters: int = 1,
    cutoff: float | None = None,
    pad_ratio: int = PAD_RATIO,
    rng: np.random.Generator,
) -> Dataset:
    """Draw clusters of padded codewords of a Tardos code, disguised.

    Who wants to trace as well keeps the secrets:
    `dpaudit.fingerprinting.HardInstance`.

    Parameters
    ----------
    n_rows : int
        m, the rows of one cluster.
    length : int
        n, the symbols of a codeword.
    n_clusters : int
        k, the dimension of the subspace wanted; at most the length of a row.
    cutoff : float, optional
        t of the code, in (0, 1/2). By default Tardos's 1/(300 m).
    pad_ratio : int
        Ones per symbol; 15 in the paper.
    rng : numpy.random.Generator
        Advanced by the call.

    Returns
    -------
    Dataset
        k m rows of length (1 + pad_ratio) n and norm 1; `labels` are the clusters,
        `subspace` is that of the k first principal components.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> fingerprints(5, 8, pad_ratio=3, rng=np.random.default_rng(0)).rows.shape
    (5, 32)
    """
    m = check_count("n_rows", n_rows)
    instance = HardInstance.generate(
        m,
        length,
        n_clusters=n_clusters,
        cutoff=1 / (300 * m) if cutoff is None else cutoff,
        pad_ratio=pad_ratio,
        rng=rng,
    )
    rows = instance.rows
    return Dataset(
        "fingerprints",
        rows,
        source=f"drawn: Tardos code, {n_clusters} times {m} words of {length} symbols",
        labels=instance.labels,
        subspace=_first_components(rows, instance.n_clusters),
    )


def _first_components(rows: np.ndarray, k: int) -> np.ndarray:
    """Return the k first right singular vectors; there are more columns than rows."""
    if len(rows) >= rows.shape[1]:
        return top_components(rows.T @ rows, k)
    components: np.ndarray = np.linalg.svd(rows, full_matrices=False)[2][:k].T
    return components
