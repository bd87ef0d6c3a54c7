"""Selections: the place of the largest of noisy numbers, as one choice."""

import numpy as np

from dpaudit.audit.replay.chances import Chances, noisy_maximum
from dpaudit.audit.replay.laws import Family
from dpaudit.audit.replay.tracked import Tracked

__all__ = ["select"]


def select(noisy: Tracked, sign: float = 1.0) -> "np.intp | None":
    """Return where the largest number is, or the smallest if the sign is -1.

    The draws are used up by that: nothing else is known of them than which is ahead.
    None where the choice has no law that is known: the numbers must have one fresh draw
    of one family and one scale each, which only adds to them.
    """
    tape = noisy.tape
    if not tape.reading.selects or tape.closed or noisy.bare:
        return None
    noisy.settle()
    index, mean = noisy.index, sign * noisy.centre.ravel()
    coef = np.abs(noisy.coef) if _even(noisy) else sign * noisy.coef
    if index.shape[1] != 1 or not index.size or not np.isfinite(mean).all():
        return None
    draws, scale = index[:, 0], float(coef[0, 0])
    distinct = (draws >= 0).all() and len(np.unique(draws)) == len(draws)
    if not (distinct and scale > 0 and (coef == scale).all()):
        return None
    families = tape.families[draws]
    if (families != families[0]).any() or not tape.are_fresh(draws):
        return None
    log = noisy_maximum(mean, scale, int(families[0]))
    if log is None:
        return None
    place = np.asarray(
        np.argmax(sign * tape.value(noisy.centre.ravel(), index, noisy.coef))
    )
    tape.use_up(draws)
    tape.selected = True
    law = Chances(log[np.newaxis], "noisy maximum")
    return np.intp(tape.choose(law, place, ())[()])


def _even(noisy: Tracked) -> bool:
    """Say whether the draws have the law of their negatives."""
    used = noisy.index[noisy.index >= 0]
    return bool((noisy.tape.families[used] == Family.LAPLACE).all())
