r"""Where to draw releases from when the losses that matter are rare.

With P and Q the laws of the releases on D and on D', p and q their densities and
L = log(p/q), the divergence delta(epsilon) = E_P[(1 - e^(epsilon - L))_+] can be
estimated from any law R with density r:

.. math:: \delta(\epsilon) \ge E_R[h], \quad
          h = \frac{p}{r} \, (1 - e^{\epsilon - L})_+ ,

with equality if r > 0 wherever p > 0 and L > epsilon. A good R makes losses just above
epsilon common, so that h varies little.

Lower bounds. h >= 0, so cutting it off at any B only makes the mean smaller: a lower
bound for the mean of min(h, B) is one for delta, whatever R and B are.

Upper bounds. They need h <= B everywhere, with a B not much larger than delta, and no
number of releases can show that: a part of the output space that holds mass 1e-6 is
missed by a hundred thousand of them. For R = P, B = 1 is a fact. For any other R the
bound B rests on an **assumption**, *order*:

    of two releases, the one with the larger loss has a p/r that is no larger.

It holds for Gaussian noise and for Laplace noise on a line if R is P moved along
mean(P) - mean(Q), away from Q (p/r is then a decreasing function of L). Under it every
release y_i seen in a pilot bounds p/r at all losses above its own, so for sorted losses
l_0 <= epsilon < l_1 < ... < l_n, with w_i = min over j <= i of p/r at y_j,

.. math:: h \le B = \max(\max_{1 \le i \le n} w_{i-1} (1 - e^{\epsilon - l_i}), w_n).

The pilot, and every release afterwards, is checked against it.

Two devices provide R: releases on another dataset, whose p/r is the mechanism's own
privacy loss; and releases on D translated by k (statistic(D) - statistic(D')), for
mechanisms that add to the statistic noise whose law does not depend on the data. There
q(u) = p(u + c) with c = statistic(D) - statistic(D'), hence L(u) = log p(u)/p(u + c),
and the sum of L(y - j c) over j = 1..k telescopes to log r(y)/p(y).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, TypeAlias

import numpy as np

from dpaudit.arrays import Array
from dpaudit.attacks.base import consult
from dpaudit.errors import InputError, MechanismError, UnsupportedError
from dpaudit.mechanism import HasBatchedDraw, HasStatistic, Release
from dpaudit.outputs import arrays_of

__all__ = [
    "Direction",
    "Proposal",
    "affordable",
    "ceiling",
    "places",
    "weighted_excess",
]

_ORDER = "of two releases, the one with the larger loss has no larger p/r"
_ADDITIVE = "the mechanism adds to its statistic noise of a law that ignores the data"
_STEPS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64)
_FRACTIONS = (0.25, 0.5, 0.75)
_RESOLUTION = 2.0**-30  # of a loss, relative to itself or 1: see `weighted_excess`
_ROUNDING = 1e-6  # of a density ratio, and on top of every ceiling
_TRIAL, _PILOT = 500, 4000
_LOG_TERM = 10.0
_FIRST, _MOST_IN_BATCH, _BATCH_BYTES = 16, 2**16, 32 * 2**20


@dataclass(frozen=True, eq=False)
class Direction:
    """One way round of a pair: P is the law on `data`, Q that on `other`."""

    mechanism: Any
    data: Array
    other: Array

    def draw(self, data: Array, size: int, rng: np.random.Generator) -> Release:
        """Return releases on any dataset."""
        mechanism = self.mechanism
        if isinstance(mechanism, HasBatchedDraw):
            return consult(lambda: mechanism.draw(data, size, rng=rng))
        return np.stack(
            [consult(lambda: mechanism.release(data, rng=rng)) for _ in range(size)]
        )

    def loss(self, releases: Release) -> Array:
        """Return log(p/q) of each release, shape (size,)."""
        return self.log_ratio(releases, self.other)

    def log_ratio(self, releases: Release, other: Array) -> Array:
        """Return log(p/density on `other`) of each release, shape (size,)."""
        capability = self.mechanism.privacy_loss
        ratio = np.asarray(consult(capability, releases, self.data, other))
        if ratio.shape != (_size(releases),):
            raise MechanismError(
                f"the mechanism's privacy_loss returned shape {ratio.shape} for "
                f"{_size(releases)} releases"
            )
        return ratio


@dataclass(frozen=True, eq=False)
class Proposal:
    """A law R that releases are drawn from, and its density relative to P's: R = P."""

    direction: Direction

    assumes: ClassVar[tuple[str, ...]] = ()
    """What both bounds rest on, beside the mechanism's privacy loss."""
    upper_assumes: ClassVar[tuple[str, ...]] = ()
    """What the upper bound rests on in addition."""

    @property
    def name(self) -> str:
        """How results describe it."""
        return "releases on D"

    def draw(self, size: int, rng: np.random.Generator) -> Release:
        """Return `size` independent releases from R."""
        return self.direction.draw(self.direction.data, size, rng)

    def log_weights(self, releases: Release) -> Array:
        """Return log(p/r) of each release, shape (size,)."""
        return np.zeros(_size(releases))

    def losses(self, releases: Release) -> tuple[Array, Array]:
        """Return losses and log-weights, and refuse what releases cannot have.

        Raises
        ------
        MechanismError
            If a release that has density on D, because it was drawn there or by its
            weight, has none by the mechanism's own privacy loss.
        UnsupportedError
            If p/r is not defined, for noise with bounded support for example.
        """
        losses, log_weights = self.direction.loss(releases), self.log_weights(releases)
        if np.any(np.isnan(log_weights) | np.isposinf(log_weights)):
            raise UnsupportedError(f"no density ratio for {self.name}")
        impossible = np.isnan(losses) | np.isneginf(losses)
        if np.any(impossible & ~np.isneginf(log_weights)):
            raise MechanismError(
                "the mechanism's privacy_loss says that a release is impossible on "
                "the very dataset that it was drawn on"
            )
        return np.where(impossible, -np.inf, losses), log_weights


@dataclass(frozen=True, eq=False)
class _OtherDataset(Proposal):
    """R = the law on another dataset."""

    dataset: Array

    upper_assumes = (_ORDER,)

    @property
    def name(self) -> str:
        return f"releases on another dataset ({len(self.dataset)} rows)"

    def draw(self, size: int, rng: np.random.Generator) -> Release:
        return self.direction.draw(self.dataset, size, rng)

    def log_weights(self, releases: Release) -> Array:
        return self.direction.log_ratio(releases, self.dataset)


@dataclass(frozen=True, eq=False)
class _Translation(Proposal):
    """R = P, translated by `steps` times statistic(D) - statistic(D')."""

    steps: int

    assumes = (_ADDITIVE,)
    upper_assumes = (_ORDER,)

    @property
    def name(self) -> str:
        return f"releases on D, translated by {self.steps} steps"

    def _step(self) -> Array:
        data, other = self.direction.data, self.direction.other
        statistic = self.direction.mechanism.statistic
        return np.asarray(consult(statistic, data)) - consult(statistic, other)

    def draw(self, size: int, rng: np.random.Generator) -> Release:
        return np.asarray(super().draw(size, rng)) + self.steps * self._step()

    def log_weights(self, releases: Release) -> Array:
        moved, step = np.array(releases), self._step()
        total = np.zeros(len(moved))
        for _ in range(self.steps):
            moved -= step
            total -= self.direction.loss(moved)
        return total


_Place: TypeAlias = tuple[Proposal, list[int], list[tuple[float, bool]]]


def places(
    way: Direction, choice: Any, epsilons: Array, samples: int, rng: np.random.Generator
) -> Iterator[_Place]:
    """Yield proposals, the places of the epsilons they serve, and a ceiling for each.

    With every ceiling comes whether the values are known to be below it.

    Parameters
    ----------
    way : Direction
    choice : None, "auto", "translate" or ndarray
        As for `~dpaudit.audit.layers.whitebox.white_box`, of this direction.
    epsilons : ndarray, shape (k,)
    samples : int
        Releases to come.
    rng : numpy.random.Generator
        Draws the pilots.
    """
    own, everything = Proposal(way), list(range(len(epsilons)))
    if choice is None:
        yield own, everything, [(1.0, True)] * len(epsilons)
    elif isinstance(choice, str):
        for column, epsilon in enumerate(epsilons):
            others = _other_datasets if choice == "auto" else _translations
            found = _choose(chain([own], others(way)), float(epsilon), samples, rng)
            if found is None or found[0] is own:
                found = own, 1.0
            yield found[0], [column], [(found[1], True)]
    else:
        given = _OtherDataset(way, np.asarray(choice, dtype=np.float64))
        losses, log_weights = _pilot(given, _PILOT, rng)
        ceilings = []
        for epsilon in epsilons:
            bound = ceiling(losses, log_weights, float(epsilon))
            trusted = bool(np.isfinite(bound))
            if not trusted:
                # Where nothing bounds the values, cutting them still bounds below.
                largest = weighted_excess(losses, log_weights, float(epsilon)).max()
                bound = float(largest) or 1.0
            ceilings.append((bound, trusted))
        yield given, everything, ceilings


def _other_datasets(direction: Direction) -> Iterator[Proposal]:
    """Yield datasets whose releases lie further from D' than those on D.

    The row x that D has and D' has not is scaled up, or repeated; a row -a x joins D
    where it is D' that has one more; where a row x' replaces x, x moves on along
    x - x'. Datasets that a mechanism clips to D are useless, and not chosen.
    """
    data, other = direction.data, direction.other
    shorter, longer = sorted((data, other), key=len)
    size = len(shorter)
    same = (shorter == longer[:size]).all(axis=tuple(range(1, data.ndim)))
    place = size if same.all() else int(np.argmin(same))
    for amount in (*_FRACTIONS, *_STEPS):
        if len(data) == len(other):
            moved = data.copy()
            moved[place] += amount * (data[place] - other[place])
            yield _OtherDataset(direction, moved)
        elif len(data) < len(other):
            row = -amount * other[place]
            yield _OtherDataset(direction, np.insert(data, place, row, axis=0))
        else:
            scaled = data.copy()
            scaled[place] *= 1 + amount
            yield _OtherDataset(direction, scaled)
            if amount == int(amount):
                copies = np.repeat(data[place : place + 1], int(amount), axis=0)
                yield _OtherDataset(direction, np.concatenate([data, copies]))


def _translations(direction: Direction) -> Iterator[Proposal]:
    """Yield translations by a growing number of steps.

    Raises
    ------
    InputError
        If the mechanism has no statistic.
    """
    if not isinstance(direction.mechanism, HasStatistic):
        raise InputError(
            "proposal 'translate' needs a mechanism with a statistic, "
            f"got {type(direction.mechanism).__name__}"
        )
    for steps in _STEPS:
        yield _Translation(direction, steps)


def weighted_excess(
    losses: Array, log_weights: Array, epsilon: float, error: int = 0
) -> Array:
    """Return p/r (1 - e^(epsilon - L))_+ of each release, shape (size,).

    Parameters
    ----------
    losses, log_weights : ndarray, shape (size,)
    epsilon : float
    error : {-1, 0, 1}
        Take losses to be smaller, or larger, than given by a relative 2^-30 of
        max(1, |L|). Where the true loss is constant, such as epsilon itself on half of
        all releases of a Laplace mechanism, arithmetic scatters it about the truth;
        privacy over the real numbers must not be refuted by the last bits.
    """
    finite = np.where(np.isfinite(losses), np.abs(losses), 0.0)
    shift = error * _RESOLUTION * np.maximum(finite, 1.0)
    share = -np.expm1(np.minimum(epsilon - losses - shift, 0.0))
    with np.errstate(under="ignore", over="ignore", invalid="ignore"):
        return np.where(share > 0, np.exp(log_weights) * share, 0.0)


def ceiling(losses: Array, log_weights: Array, epsilon: float) -> float:
    """Return the B of the module's docstring from a pilot; inf if there is none.

    There is none if the pilot contradicts the order, or holds no loss <= epsilon.
    """
    order = np.argsort(losses, kind="stable")
    losses, log_weights = losses[order], log_weights[order]
    least = np.minimum.accumulate(log_weights)
    # How many losses are smaller by more than arithmetic could make them.
    finite = np.where(np.isfinite(losses), np.abs(losses), 0.0)
    clearly = losses - _RESOLUTION * np.maximum(finite, 1.0)
    before = np.searchsorted(losses, clearly, side="left")
    seen = before > 0
    tolerance = _ROUNDING * np.maximum(1.0, np.abs(log_weights[seen]))
    above = losses[seen] > epsilon
    rises = log_weights[seen] > least[before[seen] - 1] + tolerance
    if np.any(rises & above) or losses[0] > epsilon:
        return float("inf")
    start = int(np.searchsorted(losses, epsilon, side="right"))
    share = -np.expm1(np.minimum(epsilon - losses, 0.0))
    # The cell up to l_i starts at the last loss that is clearly smaller than l_i.
    cells = [np.exp(least[before[i] - 1]) * share[i] for i in range(start, len(losses))]
    return float(max([*cells, np.exp(least[-1])]) * (1 + _ROUNDING))


def _choose(
    candidates: Iterator[Proposal],
    epsilon: float,
    samples: int,
    rng: np.random.Generator,
) -> tuple[Proposal, float] | None:
    """Return the proposal that promises the narrowest interval, and its ceiling.

    None if no candidate's pilot keeps the order and sees a loss above epsilon.
    """
    best, best_width = None, float("inf")
    for proposal in candidates:
        try:
            losses, log_weights = _pilot(proposal, _TRIAL, rng)
        except UnsupportedError:
            continue
        bound = ceiling(losses, log_weights, epsilon)
        values = weighted_excess(losses, log_weights, epsilon)
        mean = float(values.mean())
        if not (np.isfinite(bound) and mean > 0):
            continue
        width = np.sqrt(2 * values.var() * _LOG_TERM / samples)
        width = (width + bound * _LOG_TERM / samples) / mean
        if width < best_width:
            best, best_width = proposal, width
    if best is None:
        return None
    bound = ceiling(*_pilot(best, _PILOT, rng), epsilon)
    return (best, bound) if np.isfinite(bound) else None


def _pilot(
    proposal: Proposal, size: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return losses and log-weights of a first look, shape (size,) each."""
    parts, drawn, limit = [], 0, _FIRST
    while drawn < size:
        releases = proposal.draw(min(limit, size - drawn), rng)
        limit = affordable(releases)
        drawn += _size(releases)
        parts.append(proposal.losses(releases))
    losses, log_weights = zip(*parts, strict=True)
    return np.concatenate(losses), np.concatenate(log_weights)


def affordable(releases: Release) -> int:
    """Return how many releases such as these make a batch of bounded memory."""
    each = sum(array.nbytes for array in arrays_of(releases)) / _size(releases)
    return int(np.clip(_BATCH_BYTES / each, 1, _MOST_IN_BATCH))


def _size(releases: Release) -> int:
    return len(arrays_of(releases)[0])
