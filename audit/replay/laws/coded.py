"""Laws of standard draws that have a code, beside the families with a name."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from scipy import stats

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.lattice import Lattice

__all__ = ["FIRST", "CodedLaw", "Density", "code_of", "lattice_of", "law_of"]

FIRST, _LAST = 14, 62  # codes; those below are of `Family`
_REACH = np.sinh(np.linspace(-12.0, 12.0, 4001))


@dataclass(frozen=True)
class Density:
    """A law that SciPy knows.

    Parameters
    ----------
    name : str
        In `scipy.stats`.
    parameters : tuple of float
    """

    name: str
    parameters: tuple[float, ...]

    @property
    def law(self) -> Any:
        """The law itself."""
        return getattr(stats, self.name)(*self.parameters)

    def log_density(self, u: Array) -> Array:
        """Return the logarithm of its density."""
        return np.asarray(self.law.logpdf(u))

    def supremum(self, shift: float, other: Any = None) -> float:
        """Return the largest |log f(u) - log f(u - shift)| of many u.

        It is no less than the supremum but for the distance of these from the best, by
        far less than 1e-6 of it for Student's laws.
        """
        if other is not None and other != self:
            return math.inf
        return _largest(self, float(shift)) if shift else 0.0

    def sample(self, rng: np.random.Generator, size: Any) -> Array:
        """Return independent draws."""
        return np.asarray(self.law.rvs(size=size, random_state=rng))


@lru_cache(maxsize=256)
def _largest(density: Density, shift: float) -> float:
    u = shift / 2 + _REACH * max(1.0, abs(shift))
    for _ in range(4):
        losses = np.abs(density.log_density(u) - density.log_density(u - shift))
        best = int(np.argmax(losses))
        u = np.linspace(u[max(best - 1, 0)], u[min(best + 1, len(u) - 1)], 101)
    return float(losses[best])


CodedLaw: TypeAlias = Lattice | Density
_registered: dict[CodedLaw, int] = {}


def code_of(law: CodedLaw) -> int | None:
    """Return the code of a law, the same for equal ones; None if there are too many."""
    code = _registered.setdefault(law, FIRST + len(_registered))
    return code if code <= _LAST else None


def law_of(code: int) -> CodedLaw:
    """Return the law of a code."""
    return list(_registered)[code - FIRST]


def lattice_of(code: int) -> Lattice | None:
    """Return the law of a code if it is one on a lattice."""
    law = law_of(code) if code >= FIRST else None
    return law if isinstance(law, Lattice) else None
