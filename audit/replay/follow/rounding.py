"""What rounding leaves where large numbers are taken off each other."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.affine import AffineLaw

__all__ = ["Rounding"]

_CANCELLED = 1e-3  # what is smaller beside its parts is a difference of them
_ROUGH = 1e-14  # of these parts: many times what one operation leaves
_NOTHING = 1e-12  # beside the scale of the noise


@dataclass
class Rounding:
    """By how much the numbers with noise of an execution may be off."""

    rough: float = 0.0

    def cancels(self, result: Array, *parts: Array) -> None:
        """Note what rounding leaves of a sum, or difference, of parts.

        A number between them that ought to be 0, or the same on both sides, is off by
        some units in the last place of these.
        """
        with np.errstate(all="ignore"):
            size = np.max([float(np.abs(part).max(initial=0.0)) for part in parts])
            if not 4 * self.rough < _ROUGH * size < math.inf:
                return  # nothing is lost, or not much more than was already
            least = float(np.abs(result).min(initial=math.inf))
            if least >= _CANCELLED * size:
                return
            # Of a vector, only where an entry is small beside those it is made of.
            wide = np.zeros(result.shape)
            for part in parts:
                wide = np.maximum(wide, np.abs(part))
            gone = np.abs(result) < _CANCELLED * wide
            lost = _ROUGH * float(wide[gone].max(initial=0.0))
            self.rough = max(self.rough, lost)

    def of_law(self, law: AffineLaw, noisy: Any = True) -> AffineLaw:
        """Return a law that knows by how much its noisy entries may be off."""
        if not self.rough:
            return law
        apart = law.known and len(law.first) == len(law.mean)
        if apart and (self.rough <= _NOTHING * law.scale).all():
            return law
        return replace(law, rough=np.where(noisy, self.rough, np.zeros(len(law.mean))))
