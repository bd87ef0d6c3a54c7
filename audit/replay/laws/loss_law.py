"""The loss of a release from a mixture, as a release by itself."""

from dataclasses import dataclass

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.mixtures import CommonSupport

__all__ = ["LossLaw"]

_FARTHEST = 1e6  # loss of one that is drawn


@dataclass(frozen=True, eq=False)
class LossLaw:
    """The law of the loss log p/q of a release, which stands for the release.

    It is a sufficient statistic of it, to tell D from D'.

    Parameters
    ----------
    parts : list of CommonSupport
    back : bool
        Whether the release is one on D'.
    """

    parts: list[CommonSupport]
    back: bool = False

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Return independent losses, shape (size, 1)."""
        sides = [part.other if self.back else part.one for part in self.parts]
        p = np.array([side.p.sum() for side in sides])
        chosen = rng.choice(len(p), size, p=p / p.sum())
        made = np.empty((size, 1))
        for number in np.unique(chosen).tolist():
            rows, part = np.flatnonzero(chosen == number), self.parts[number]
            made[rows, 0] = part.exact_loss(sides[number].sample(rng, len(rows)))
        return np.clip(made, -_FARTHEST, _FARTHEST)

    def losses(self, values: Array) -> Array:
        """Return the losses of this side against the other, shape (size,)."""
        return np.asarray(-values[:, 0] if self.back else values[:, 0])
