r"""Comparisons of noisy numbers: the probability that they turn out as they did.

A comparison of x + b z with a number, or with a noisy threshold t + c w, is an event
s (l + b z - c w) > 0 of one or two draws. An answer may be compared several times, and
a threshold with many answers, as sparse vector does. So the probability of all events
along a branch is that of their intersection, and no product.

Draws that no events connect are independent. Connected ones must be a *star*: there is
a draw w, the threshold, that all events with two draws have. Given w, the others are
independent, each between two ends that are affine in w. So the probability is

.. math:: \int f(w) 1[w_0 < w < w_1] \prod_i (F_i(h_i(w)) - F_i(l_i(w)))_+ dw.

It is integrated by Gauss-Legendre nodes on pieces without a kink inside: kinks are
where an end comes to one of a density, or to another end. What is off is far below
1e-12, and that all branches add up to 1 is checked by who uses it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.choices import ROUNDING, ChoiceLaw, nodes_between
from dpaudit.audit.replay.laws.coded import law_of
from dpaudit.audit.replay.laws.cuts import Cut
from dpaudit.audit.replay.laws.one_draw import distribution

__all__ = ["Event", "ThresholdLaw", "log_joint"]

_TAIL, _MOST_PIECES = 45.0, 2000


@dataclass(frozen=True)
class Event:
    """That level + sum of coefs times draws is positive, or that it is not.

    Parameters
    ----------
    level : float
    coefs : dict of int to float
        Of draws, by their numbers.
    families : dict of int to int
        Of the draws, none of them on a lattice.
    """

    level: float
    coefs: dict[int, float]
    families: dict[int, int]

    @property
    def opposite(self) -> "Event":
        """That it is not."""
        coefs = {draw: -coef for draw, coef in self.coefs.items()}
        return Event(-self.level, coefs, self.families)


@dataclass(frozen=True, eq=False)
class ThresholdLaw(ChoiceLaw):
    """The law of comparisons, which are not independent of others.

    Parameters
    ----------
    events : tuple of Event
        Of each the outcome is 1 if it comes about.
    """

    events: tuple[Event, ...] = field(default=())

    @classmethod
    def of_events(cls, events: Sequence[Event]) -> "ThresholdLaw | None":
        """Return the law of comparisons, None if it cannot be computed."""
        p = []
        for event in events:
            draws = sorted(event.coefs)
            noise = tuple((event.coefs[k], event.families[k]) for k in draws)
            p.append(_alone(event.level, noise))
        if None in p:
            return None
        made = ChoiceLaw.flips(np.array(p, dtype=np.float64), len(p))
        return cls(made.log, "comparison of noisy numbers", ROUNDING, tuple(events))

    def came_about(self, value: Array) -> list[Event]:
        """Return the events that outcomes say came about."""
        turned_out = zip(self.events, np.ravel(value).tolist(), strict=True)
        return [event if held else event.opposite for event, held in turned_out]


@lru_cache(maxsize=1024)
def _alone(level: float, noise: tuple[tuple[float, int], ...]) -> float | None:
    """Return the probability of an event by itself: a loop comes by many times."""
    coefs = {number: coef for number, (coef, _) in enumerate(noise)}
    families = {number: family for number, (_, family) in enumerate(noise)}
    log = log_joint([Event(level, coefs, families)])
    return None if log is None else min(1.0, math.exp(log))


def log_joint(events: Iterable[Event]) -> float | None:
    """Return the log-probability that all events come about; None if it is not known.

    Examples
    --------
    >>> above = Event(0.0, {0: 1.0, 1: -1.0}, {0: 1, 1: 1})
    >>> again = Event(0.0, {2: 1.0, 1: -1.0}, {1: 1, 2: 1})
    >>> round(math.exp(log_joint([above, again])), 12)  # of three, the least
    0.333333333333
    """
    families: dict[int, int] = {}
    connected: list[tuple[set[int], list[Event]]] = []
    log = 0.0
    for event in events:
        families |= event.families
        if not event.coefs:
            log += 0.0 if event.level > 0 else -math.inf
            continue
        draws, several = set(event.coefs), [event]
        for each in [each for each in connected if each[0] & draws]:
            connected.remove(each)
            draws, several = draws | each[0], several + each[1]
        connected.append((draws, several))
    for draws, several in connected:
        p = _of_star(draws, several, families)
        if p is None:
            return None
        log += math.log(p) if p > 0 else -math.inf
    return log


def _of_star(draws: set[int], events: list[Event], families: dict[int, int]) -> Any:
    """Return the probability of connected events, None if they are no star."""
    middle = set.intersection(
        draws, *(set(e.coefs) for e in events if len(e.coefs) > 1)
    )
    if not middle:
        return None
    centre = max(middle, key=lambda draw: (sum(draw in e.coefs for e in events), -draw))
    ends: dict[int, list[tuple[bool, float, float]]] = {draw: [] for draw in draws}
    for event in events:
        other = next((draw for draw in event.coefs if draw != centre), centre)
        by = event.coefs[other]
        slope = 0.0 if other == centre else -event.coefs.get(centre, 0.0) / by
        # Whether the draw is above, and what it is compared with.
        ends[other].append((by > 0, -event.level / by, slope))
    low = max((at for above, at, _ in ends[centre] if above), default=-math.inf)
    high = min((at for above, at, _ in ends[centre] if not above), default=math.inf)
    rest = {draw: found for draw, found in ends.items() if draw != centre}
    law = distribution(families[centre])
    if not rest:
        return float(Cut.between(law, np.array([low]), np.array([high]))[0])
    nodes = _nodes(families, centre, rest, max(low, -_TAIL), min(high, _TAIL))
    if nodes is None:
        return None
    w, weights = nodes
    with np.errstate(all="ignore"):
        total = weights * law.pdf(w)
        for draw, found in rest.items():
            lows = [at + slope * w for above, at, slope in found if above]
            highs = [at + slope * w for above, at, slope in found if not above]
            lower = np.max([np.full(len(w), -np.inf), *lows], axis=0)
            upper = np.min([np.full(len(w), np.inf), *highs], axis=0)
            total = total * Cut.between(distribution(families[draw]), lower, upper)
    return float(total.sum())


def _nodes(
    families: dict[int, int],
    centre: int,
    rest: dict[int, list[tuple[bool, float, float]]],
    low: float,
    high: float,
) -> tuple[Array, NDArray[np.float64]] | None:
    """Return nodes and weights between two numbers, on pieces without kinks."""
    cuts = list(law_of(families[centre]).kinks)
    steepest = 1.0
    for draw, found in rest.items():
        for _, at, slope in found:
            steepest = max(steepest, abs(slope))
            kinks = law_of(families[draw]).kinks if slope else ()
            cuts += [(kink - at) / slope for kink in kinks]
        cuts += [
            (b[1] - a[1]) / (a[2] - b[2])
            for a, b in combinations(found, 2)
            if a[2] != b[2]
        ]
    if not low < high:
        return np.empty(0), np.empty(0)
    inner = sorted(cut for cut in set(cuts) if low < cut < high)
    edges = [low]
    for cut in (*inner, high):
        count = math.ceil((cut - edges[-1]) * steepest)
        if len(edges) + count > _MOST_PIECES:
            return None
        edges += np.linspace(edges[-1], cut, count + 1)[1:].tolist()
    return nodes_between(np.array(edges))
