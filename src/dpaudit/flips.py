"""Generators that are asked for flips, whatever is quickest with others.

A sampler that knows a quicker way to independent flips than a uniform number for each
(the gaps between successes, say) asks a generator that is `Flipping` for the flips
themselves: whoever follows a mechanism draw by draw hands one out.
"""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Flipping"]


@runtime_checkable
class Flipping(Protocol):
    """A generator that wants to know of flips."""

    def flips(self, p: float, size: Any) -> NDArray[np.bool_]:
        """Return independent flips of that shape, true with probability p."""
        ...
