"""Noise of jax_privacy (2.0.0) on one clipped gradient.

``noise_addition.py`` adds noise of a standard deviation, and says nothing of epsilon:
that is its accountant's. One row moves a sum of clipped gradients by at most 1 if it is
added or removed, so noise of standard deviation 1 is 1/2-zCDP.
"""

from importlib import import_module
from typing import Any

import numpy as np

from dpaudit.algorithms.third_party.subjects.shelf import Shelf
from dpaudit.claims import ZeroConcentratedDP

__all__ = ["SUBJECTS"]

_of = Shelf(__name__, "jax_privacy", "jax-privacy")


@_of(
    "noise_addition.gaussian_privatizer",
    "scalar:0,1:rows=4",
    claim=ZeroConcentratedDP(0.5),
    relation="add-remove",
    stated="noise_addition.py, by its standard deviation",
)
def gaussian(data: Any, rng: Any) -> Any:
    """Add noise to a sum of numbers in [0, 1]."""
    noise = import_module("jax_privacy.noise_addition")
    seed = int(rng.integers(2**31))
    made = noise.gaussian_privatizer(stddev=1.0, prng_key=seed)
    total = np.full(1, data.sum(), dtype=np.float32)
    noisy, _ = made.update(total, made.init(total))
    return np.asarray(noisy, dtype=np.float64)


SUBJECTS = tuple(_of.subjects)
"""What is audited."""
