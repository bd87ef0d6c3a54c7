"""The array that nearly every function takes and returns."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array"]

Array: TypeAlias = NDArray[np.float64]
"""Real numbers in double precision, of any shape."""
