r"""What is left to statistics: suspicions that executions by themselves do not prove.

Three mechanisms for `dpaudit.audit.audit`, whose sequential test is valid even if their
own losses, which serve it as an attack, were wrong:

- `SimulatedMechanism`: both laws of the release are known exactly, and are drawn from;
- `ReplayedMechanism`: whole transcripts, each with its exact loss from replays on both
  datasets;
- the mechanism itself: releases, with all attacks of a black-box audit.

**The exact losses of transcripts** bet against a claim (`refuted_by_losses`). With P
and Q the laws of transcripts on D and D', and L = log(p/q), the claim says that

.. math:: \delta_{P \| Q}(\epsilon) = E_P[(1 - e^{\epsilon - L})_+] \le \delta(\epsilon)

for every epsilon, and so with D and D' exchanged (infinite losses give 1). Let
X_1, X_2, ... be these variables of independent transcripts. For a stake g >= 0 the
product of (1 + g X_i)/(1 + g delta(epsilon)) is a non-negative supermartingale if the
claim is true, and so is an average over ways round, epsilons and stakes that are fixed
before. By Ville's inequality it ever reaches 1/alpha with probability at most alpha:
**a true claim is refuted with probability at most alpha**, whenever one stops.

Where delta is small, few losses above epsilon suffice: with g of the order of 1/delta,
one that is larger by log 2 multiplies the evidence by about 1/(4 delta). (Intervals by
the same bets are in `dpaudit.audit.layers.means`.)
"""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.execute.executor import Trace, execute
from dpaudit.audit.replay.follow.observations import Observation, Observations, Shapes
from dpaudit.audit.replay.follow.tape import EAGER, Mode
from dpaudit.audit.replay.judge.sampled import (
    NotThroughNoise,
    SecretBatches,
    Side,
    flips_by_row,
)
from dpaudit.audit.replay.judge.ways import Ways, check_followed, gives_all
from dpaudit.audit.replay.laws.affine import AffineLaw
from dpaudit.audit.replay.laws.choices import ChoiceLaw
from dpaudit.audit.replay.laws.comparison import compare, loss, losses
from dpaudit.audit.replay.laws.loss_law import LossLaw
from dpaudit.claims import Claim
from dpaudit.errors import UnsupportedError
from dpaudit.mechanism import Mechanism
from dpaudit.neighbours import Pair, Relation
from dpaudit.streams import stream

__all__ = ["ReplayedMechanism", "SimulatedMechanism", "refuted_by_losses"]

_EPSILONS = (0.0, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
_STAKES = np.logspace(-1, 9, 16)
_BATCH = 4
_RELEASE = "release"
_MOST_SEED = 2**62


@dataclass(frozen=True, eq=False)
class SimulatedMechanism:
    """Releases on the two datasets of a pair, drawn from their exact laws.

    Parameters
    ----------
    pair : Pair
    law, other : AffineLaw or LossLaw
        With the latter the loss of a release stands for it.
    """

    pair: Pair
    law: AffineLaw | LossLaw
    other: AffineLaw | LossLaw

    def draw(self, data: Array, size: int, *, rng: np.random.Generator) -> Array:
        """Return independent releases as flat arrays, shape (size, n)."""
        return self._law(data).sample(size, rng=rng)

    def release(self, data: Array, *, rng: np.random.Generator) -> Array:
        """Return one release, shape (n,)."""
        return self.draw(data, 1, rng=rng)[0]

    def privacy_loss(self, releases: Array, data: Array, other: Array) -> Array:
        """Return the exact losses, shape (size,)."""
        law, there = self._law(data), self._law(other)
        if isinstance(law, LossLaw):
            return law.losses(releases)
        assert isinstance(there, AffineLaw)
        return losses(law, there, releases)

    def _law(self, data: Array) -> AffineLaw | LossLaw:
        return self.law if self.pair.is_data(data) else self.other


@dataclass(frozen=True)
class ReplayedMechanism:
    """Any mechanism whose noisy values can be followed, with their exact losses.

    It has the transcript of `dpaudit.mechanism.HasTranscript`, one entry to each noisy
    value and one to the numbers of the release, and their loss as in
    `HasTranscriptLoss`: so all that works with those works with foreign code.

    Parameters
    ----------
    mechanism : Mechanism or callable
    claim : Claim, optional
        By default the mechanism's own.
    relation : Relation, optional
        By default the mechanism's own.
    mode : Mode
        By default noise to which data are added is one noisy value.
    pair : Pair, optional
        Of the datasets, where there are secret batches: the flips of the row that
        differs are in no transcript then, and losses are those of mixtures
        (`dpaudit.audit.replay.judge.sampled`). Without it flips are not supported, as
        they may be hidden, but for a mode in which everybody sees them.

    Examples
    --------
    >>> def noisy_sum(data, rng):
    ...     return data.sum() + rng.laplace(scale=2.0)
    >>> followed = ReplayedMechanism(noisy_sum)
    >>> one, other = np.zeros((1, 1)), np.ones((1, 1))
    >>> seen = followed.transcript(one, 3, rng=np.random.default_rng(0))
    >>> losses = followed.transcript_loss(seen, one, other)
    >>> bool((abs(losses) <= 0.5 + 1e-12).all())
    True
    """

    mechanism: Mechanism | Callable[..., Any]
    claim: Claim | None = None
    relation: Relation | None = None
    mode: Mode = EAGER
    pair: Pair | None = None
    _known: dict[bytes, float] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    _remembers: list[bool] = field(
        init=False, repr=False, compare=False, default_factory=list
    )
    _groups: list[Any] = field(
        init=False, repr=False, compare=False, default_factory=list
    )

    def __post_init__(self) -> None:
        for name in ("claim", "relation"):
            if getattr(self, name) is None:
                stated = getattr(self.mechanism, name, None)
                object.__setattr__(self, name, stated)

    def release(self, data: Array, *, rng: np.random.Generator) -> Array:
        """Return the numbers of one release, shape (n,)."""
        return self.transcript(data, 1, rng=rng)[_RELEASE][0]

    def transcript(
        self, data: Array, size: int, *, rng: np.random.Generator
    ) -> Mapping[str, Array]:
        """Return independent transcripts.

        Raises
        ------
        UnsupportedError
            If the code cannot be followed, or comes to other values from time to time.
        """
        rows = []
        for _ in range(size):
            trace = self._execute(data, seed=int(rng.integers(_MOST_SEED)))
            check_followed(trace)
            rows.append(self._seen(trace, data))
        layouts = {tuple((k, v.shape) for k, v in row.items()) for row in rows}
        if len(layouts) > 1:
            raise UnsupportedError(
                "the mechanism comes to other noisy values from time to time"
            )
        names = rows[0] if rows else {}
        return {name: np.stack([row[name] for row in rows]) for name in names}

    def transcript_loss(
        self, transcript: Mapping[str, Array], data: Array, other: Array
    ) -> Array:
        """Return the exact losses, from replays on both datasets, shape (size,).

        Raises
        ------
        UnsupportedError
            If a replay cannot be followed.
        """
        rows = (
            {name: values[row] for name, values in transcript.items()}
            for row in range(len(transcript[_RELEASE]))
        )
        return np.array([self._loss(row, data, other) for row in rows])

    @cached_property
    def _by_row(self) -> tuple[Shapes, Shapes]:
        """The shapes of the flips by row on the two datasets of the pair."""
        if self.pair is None or self.mode.public:
            return {}, {}
        sides = self.pair.data, self.pair.neighbour
        return flips_by_row(self.pair, *map(self._execute, sides))

    def _side(self, data: Array) -> tuple[int | None, Shapes]:
        """Return where a dataset has the row that differs, and its flips by row."""
        assert self.pair is not None
        same = self.pair.is_data(data)
        return self.pair.changed[not same], self._by_row[not same]

    def _seen(self, trace: Trace, data: Array) -> dict[str, Array]:
        """Return a transcript, without the flips that are hidden."""
        place, shapes = self._side(data) if self._by_row[0] else (None, {})
        values: dict[str, Array] = {}
        for number, one in enumerate(trace.tape.observations):
            flat = one.value
            if flat.dtype == np.uint8:  # flips, of which many are kept as bits
                flat = flat.astype(np.intp)
            value = flat.reshape(one.shape)
            if number in shapes and one.shape == shapes[number]:
                value = flat if place is None else np.delete(flat, place)
            elif number in shapes or (
                isinstance(one.law, ChoiceLaw)
                and one.law.kind == "flip"
                and not self.mode.public
            ):
                raise UnsupportedError(f"{one.place}: flips may be hidden")
            values[f"value {number}"] = value
        return {**values, _RELEASE: trace.value}

    def _execute(
        self, data: Array, script: Observations | None = None, seed: int = 0
    ) -> Trace:
        return execute(self.mechanism, data, seed, script=script, mode=self.mode)

    def _mixed(
        self, script: list[Observation], release: Array, data: Array, other: Array
    ) -> float:
        """Return the loss of a transcript over secret batches."""
        ways = [Ways(partial(self._execute, x), *self._side(x)) for x in (data, other)]
        if self._remembers:
            if not self._groups:
                has_it = ways[ways[0].place is None]
                self._groups.append(has_it.groups(script))
            known = self._groups[0], len(self._known)  # others are checked each time
            return ways[0].loss(ways[1], script, release, *known)
        here, there = (Side.of(each, 0, script) for each in ways)
        try:
            batched = SecretBatches(here, there)
        except NotThroughNoise:
            self._remembers.append(True)
            return self._mixed(script, release, data, other)
        traces = here.without, here.within, there.without, there.within
        for trace in traces:
            check_followed(trace)
        possible = [_comes_to(trace, script, release) for trace in traces]
        if all(possible[:2]) and not any(possible[2:]):
            return math.inf
        if all(possible[2:]) and not any(possible[:2]):
            return -math.inf
        if not all(possible):
            raise UnsupportedError("a number without noise depends on the batch")
        numbers = [*range(len(script)), -1]
        if any(here.differs(there, number) for number in numbers):
            raise UnsupportedError("a number has no noise, or rows other probabilities")
        return sum(batched.losses(script, release, here.without))

    def _loss(self, values: dict[str, Array], data: Array, other: Array) -> float:
        """Return the loss of one transcript; an audit asks for each many times."""
        parts = (*values.values(), data, other)
        digest = hashlib.sha256(b"|".join(map(_bytes, parts))).digest()
        if digest not in self._known:
            self._known[digest] = self._replayed(values, data, other)
        return self._known[digest]

    def _replayed(self, values: dict[str, Array], data: Array, other: Array) -> float:
        release = values.pop(_RELEASE)
        given = [_scripted(value) for value in values.values()]
        if self._by_row[0]:
            return _known(self._mixed(given, release, data, other))
        script = Observations(given)
        here, there = self._execute(data, script), self._execute(other, script)
        for trace in (here, there):
            check_followed(trace)
        possible = [_comes_to(trace, script, release) for trace in (here, there)]
        if not all(possible):
            return math.inf if possible[0] else -math.inf if possible[1] else math.nan
        found = loss(here.law, there.law, release)
        if compare(here.law, there.law).singular:
            found = math.nan  # which of them it came from is not known any more
        for one, two in zip(
            here.tape.observations, there.tape.observations, strict=True
        ):
            if getattr(one.law, "keys", ()) != getattr(two.law, "keys", ()):
                # The place of an outcome is given back here.
                raise UnsupportedError("a choice is among others on the neighbour")
            found += loss(one.law, two.law, one.value)
        return _known(found)


def _bytes(part: Any) -> bytes:
    """Return what a value is known by: its numbers, or the object that it is."""
    if isinstance(part, np.ndarray) and not part.dtype.hasobject:
        return part.tobytes()
    return str(id(part)).encode()


def _known(loss_: float) -> float:
    if math.isnan(loss_):
        raise UnsupportedError("the loss of a noisy value is not known")
    return loss_


def _scripted(value: Array) -> Observation:
    places = np.empty((0, 0), dtype=np.intp)
    none = AffineLaw.of(np.empty(0), places, np.empty((0, 0)), places.ravel())
    return Observation("", "", none, np.ravel(value), np.shape(value))


def _comes_to(trace: Trace, script: Sequence[Observation], release: Array) -> bool:
    """Say whether a replay gives all values, and can give the release."""
    if not gives_all(trace, script, release):
        return False
    constant = trace.law.unit < 0
    ordinary = trace.value[constant], release[constant]
    return bool(np.allclose(*ordinary, rtol=1e-7, atol=1e-9, equal_nan=True))


def refuted_by_losses(
    followed: Any, pair: Pair, claim: Claim, *, alpha: float, most: int, seed: int
) -> tuple[bool, int]:
    """Say whether transcripts refute a claim, and how many were drawn on either side.

    Parameters
    ----------
    followed : HasTranscriptLoss
    pair : Pair
    claim : Claim
    alpha : float
        In (0, 1).
    most : int
        Transcripts on either side.
    seed : int

    Raises
    ------
    UnsupportedError
        If a loss is not known.
    """
    named = claim.parameters.get("epsilon")
    epsilons = np.array(sorted({*_EPSILONS, *([named] if named is not None else [])}))
    # What rounding may have added to a loss, or taken off a delta, is allowed for.
    delta = 1.0001 * np.asarray(claim.delta_at(epsilons))[:, np.newaxis] + 1e-12
    ways = (pair.data, pair.neighbour), (pair.neighbour, pair.data)
    wealth = np.zeros((len(ways), len(epsilons), len(_STAKES)))
    samples = 0
    while samples < most:
        size = min(_BATCH, most - samples)
        for way, (data, other) in enumerate(ways):
            rng = stream(seed, way, samples)
            seen = followed.transcript(data, size, rng=rng)
            for found in followed.transcript_loss(seen, data, other):
                excess = _excess(float(found), epsilons)[:, np.newaxis]
                wealth[way] += np.log1p(_STAKES * excess) - np.log1p(_STAKES * delta)
        samples += size
        if np.logaddexp.reduce(wealth, axis=None) >= math.log(wealth.size / alpha):
            return True, samples
    return False, samples


def _excess(loss: float, epsilons: Array) -> Array:
    """Return (1 - e^(epsilon - loss))_+."""
    with np.errstate(over="ignore"):
        return np.maximum(-np.expm1(epsilons - loss), 0.0)
