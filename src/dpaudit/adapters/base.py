"""What all adapters share: what is promised."""

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.claims import Claim
from dpaudit.neighbours import Neighbouring
from dpaudit.validation import Checked

__all__ = ["Adapter"]


@dataclass(frozen=True)
class Adapter(Checked, ABC):
    """A mechanism that stands for something else; also a function ``(data, rng)``.

    Parameters
    ----------
    claim : Claim, optional
        What is promised. Without it, an audit has to be told.
    relation : Relation or str, optional
        Under which relation. Without it, an audit takes that of the pair.
    """

    _: KW_ONLY
    claim: Claim | None = None
    relation: Neighbouring | None = None

    @abstractmethod
    def release(self, data: NDArray[np.float64], *, rng: np.random.Generator) -> Any:
        """Return one release."""

    def __call__(self, data: NDArray[np.float64], rng: np.random.Generator) -> Any:
        return self.release(data, rng=rng)
