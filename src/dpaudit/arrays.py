"""The arrays that nearly every function takes and returns."""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Release"]

Array: TypeAlias = NDArray[np.float64]
"""Real numbers in double precision, of any shape."""

Release: TypeAlias = Array | Mapping[str, Array]
"""One release, or a batch of them with a leading trial axis."""
