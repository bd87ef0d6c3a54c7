"""Flips that a generator is asked for, whatever is quickest with others.

A sampler that knows a quicker way to independent flips than a uniform number for each
(the gaps between successes, say) asks the generator whether it wants to draw the flips
itself. One that follows a mechanism draw by draw has a method ``flips(p, shape)``: it
returns independent truth values of that shape, true with probability p.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Flips", "flips_of"]

Flips: TypeAlias = Callable[[float, tuple[int, ...]], NDArray[np.bool_]]


def flips_of(rng: Any) -> Flips | None:
    """Return what draws flips, where a generator has it.

    Examples
    --------
    >>> flips_of(np.random.default_rng()) is None
    True
    """
    return getattr(rng, "flips", None)
