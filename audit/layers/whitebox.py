r"""White box: what the exact privacy loss of a mechanism says about one pair.

A mechanism that knows its privacy loss L = log(p/q) need not be attacked: with P and Q
the laws of the releases on D and D',

.. math:: \delta_{P \| Q}(\epsilon) = E_P[(1 - e^{\epsilon - L})_+]

is the mean of a variable in [0, 1], infinite losses giving 1, and draws on D bound it
from **both** sides. The same with D and D' exchanged; the pair's delta(epsilon) is the
larger of the two. Intervals are by betting (`dpaudit.audit.layers.means`): exact in
finite samples and valid at all times at once. The error probability 1 - confidence is
split evenly over the directions and the epsilons, so that all intervals hold together:
P(delta of some direction, at some epsilon, at some time, is outside) <= 1 - confidence.

n releases cannot bound a delta below about log(1/alpha)/n from above. For small ones
releases are drawn where large losses are common and weighted
(`dpaudit.audit.layers.tilting`, with what each bound then assumes).

All of it is about the mechanism's own `privacy_loss`: if that is not the log-density
ratio of its own releases, an interval may be wrong
(`dpaudit.audit.layers.consistency.loss_consistency` looks for a disagreement).

References
----------
Balle, Barthe, Gaboardi, *Privacy profiles and amplification by subsampling*, 2020,
Theorem 6 (the divergence as an expectation over the loss).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.arrays import Array
from dpaudit.audit.layers.exact import check_relation
from dpaudit.audit.layers.means import BettingInterval
from dpaudit.audit.layers.tilting import (
    Direction,
    Proposal,
    affordable,
    places,
    weighted_excess,
)
from dpaudit.audit.layers.whitebox_result import WhiteBoxResult
from dpaudit.errors import InputError
from dpaudit.mechanism import HasPrivacyLoss
from dpaudit.neighbours import Pair, Relation
from dpaudit.streams import stream
from dpaudit.validation import check_count, check_fraction, check_nonnegative

__all__ = ["directions", "white_box", "white_box_steps"]

_Datasets: TypeAlias = tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]
_ProposalChoice: TypeAlias = Literal["auto", "translate"] | _Datasets | None

_FIRST_BATCH = 16

# Streams are keyed by their use, the direction and the place in the run.
_PILOTS, _BATCHES = 0, 1


def white_box(
    mechanism: Any,
    pair: Pair,
    *,
    epsilon: float | Sequence[float] | Array,
    confidence: float = 0.999,
    max_samples: int = 200_000,
    seed: int = 0,
    proposal: _ProposalChoice = None,
) -> WhiteBoxResult:
    """Bound the privacy profile of a pair from both sides, by the exact privacy loss.

    Parameters
    ----------
    mechanism : Mechanism
        With a `privacy_loss`.
    pair : Pair
    epsilon : float or sequence of float
        Distinct numbers >= 0.
    confidence : float
        In (0, 1), of all intervals together.
    max_samples : int
        Releases per direction; with proposal "auto" or "translate" per direction and
        epsilon, beside pilots of a few thousand.
    seed : int
        >= 0. The same seed gives the same result.
    proposal : {"auto", "translate"} or pair of datasets, optional
        Where releases are drawn. None: on D and D'. "auto": for each direction and
        epsilon on a dataset further from the other side, if one is found that pays.
        "translate": releases translated away from the other side; only for noise that
        is added to the mechanism's statistic and ignores the data. Two datasets: drawn
        on the first instead of D, on the second instead of D' (None: on D, D').
        Other than None, upper bounds rest on an assumption that the result states.

    Returns
    -------
    WhiteBoxResult

    Raises
    ------
    InputError
        If an argument is not allowed.
    MechanismError
        If the mechanism raises, or its loss says that its own releases are impossible.
    UnsupportedError
        If the mechanism has no privacy loss in this case.

    Examples
    --------
    >>> from dpaudit.algorithms import GOEGaussian
    >>> mechanism = GOEGaussian.from_mu(1.0)
    >>> pair = mechanism.worst_case()
    >>> result = white_box(mechanism, pair, epsilon=1.0, max_samples=20_000)
    >>> exact = mechanism.exact_claim(pair).delta_at(1.0)
    >>> bool(result.delta_low[0] < exact < result.delta_high[0])
    True
    """
    *_, result = white_box_steps(
        mechanism,
        pair,
        epsilon=epsilon,
        confidence=confidence,
        max_samples=max_samples,
        seed=seed,
        proposal=proposal,
    )
    return result


def white_box_steps(
    mechanism: Any,
    pair: Pair,
    *,
    epsilon: float | Sequence[float] | Array,
    confidence: float = 0.999,
    max_samples: int = 200_000,
    seed: int = 0,
    proposal: _ProposalChoice = None,
) -> Iterator[WhiteBoxResult]:
    """Yield the result of `white_box` so far, each time half as many releases more.

    All the results hold together at the stated confidence, so a caller may stop at any
    of them, for whatever reason. Arguments as for `white_box`.
    """
    epsilons = _epsilons(epsilon)
    confidence = check_fraction("confidence", confidence)
    max_samples = check_count("max_samples", max_samples)
    seed = check_count("seed", seed, minimum=0)
    alpha = (1 - confidence) / (2 * len(epsilons))
    runs = [
        _Draws(
            index,
            where,
            [
                _Estimate(
                    column,
                    float(epsilons[column]),
                    *trusted_ceiling,
                    BettingInterval(alpha, horizon=max_samples),
                )
                for column, trusted_ceiling in zip(columns, ceilings, strict=True)
            ],
        )
        for index, way in enumerate(directions(mechanism, pair))
        for where, columns, ceilings in places(
            way,
            _choice(proposal, index),
            epsilons,
            max_samples,
            stream(seed, _PILOTS, index),
        )
    ]
    samples, batch, limit = 0, 0, _FIRST_BATCH
    while samples < max_samples:
        target = min(max_samples, samples + max(_FIRST_BATCH, samples // 2))
        while samples < target:
            size = min(limit, target - samples)
            limit = min(
                run.play(size, stream(seed, _BATCHES, key, batch))
                for key, run in enumerate(runs)
            )
            samples, batch = samples + size, batch + 1
        yield _result(runs, epsilons, samples, confidence, pair.relation, seed)


@dataclass
class _Estimate:
    """What is known of delta at one epsilon, from draws of one proposal."""

    column: int
    epsilon: float
    ceiling: float
    trusted: bool
    interval: BettingInterval
    total: float = 0.0

    def update(self, losses: Array, log_weights: Array) -> None:
        lower, value, upper = (
            weighted_excess(losses, log_weights, self.epsilon, error)
            for error in (-1, 0, 1)
        )
        if np.any(upper > self.ceiling):
            self.trusted = False  # the order is disproved, and the upper bound with it
        self.interval.update(
            np.minimum(lower / self.ceiling, 1.0), np.minimum(upper / self.ceiling, 1.0)
        )
        self.total += float(value.sum())

    @property
    def low(self) -> float:
        return self.ceiling * self.interval.low

    @property
    def high(self) -> float:
        return min(1.0, self.ceiling * self.interval.high) if self.trusted else 1.0


@dataclass(frozen=True, eq=False)
class _Draws:
    """Draws of one proposal, in one direction, and the estimates that live on them."""

    index: int
    proposal: Proposal
    estimates: list[_Estimate]

    def play(self, size: int, rng: np.random.Generator) -> int:
        """Draw a batch; return how many releases the next one may have."""
        releases = self.proposal.draw(size, rng)
        losses, log_weights = self.proposal.losses(releases)
        for estimate in self.estimates:
            estimate.update(losses, log_weights)
        return affordable(releases)


def directions(mechanism: Any, pair: Pair) -> tuple[Direction, Direction]:
    """Return both ways round of a pair of a mechanism that knows its loss.

    Raises
    ------
    InputError
        If it has no `privacy_loss`, or claims privacy under another relation.
    """
    if not isinstance(mechanism, HasPrivacyLoss):
        raise InputError(
            f"mechanism must have a privacy_loss, got {type(mechanism).__name__}"
        )
    check_relation(mechanism, pair)
    return (
        Direction(mechanism, pair.data, pair.neighbour),
        Direction(mechanism, pair.neighbour, pair.data),
    )


def _epsilons(epsilon: ArrayLike) -> Array:
    values = [check_nonnegative("epsilon", float(e)) for e in np.ravel(epsilon)]
    if not values or len(set(values)) < len(values):
        raise InputError(f"epsilon must be distinct numbers >= 0, got {epsilon!r}")
    return np.array(values)


def _choice(proposal: _ProposalChoice, index: int) -> Any:
    """Return None, "auto", "translate" or the dataset for one direction."""
    if isinstance(proposal, tuple) and len(proposal) == 2:
        return proposal[index]
    if proposal is None or proposal in ("auto", "translate"):
        return proposal
    raise InputError(
        "proposal must be None, 'auto', 'translate' or a pair of datasets, "
        f"got {proposal!r}"
    )


def _result(
    runs: list[_Draws],
    epsilons: Array,
    samples: int,
    confidence: float,
    relation: Relation,
    seed: int,
) -> WhiteBoxResult:
    low, high, mean = np.empty((3, 2, len(epsilons)))
    assumptions: list[str] = []
    upper: list[str] = []
    names: list[str] = []
    for run in runs:
        assumptions += run.proposal.assumes
        for estimate in run.estimates:
            place = run.index, estimate.column
            low[place], high[place] = estimate.low, estimate.high
            mean[place] = estimate.total / samples
            names.append(
                f"{'reverse' if run.index else 'forward'}, epsilon "
                f"{estimate.epsilon:.6g}: {run.proposal.name}"
            )
            if estimate.trusted:
                upper += run.proposal.upper_assumes
    return WhiteBoxResult(
        epsilon=epsilons,
        low_by_direction=low,
        high_by_direction=high,
        estimate_by_direction=mean,
        samples=samples,
        confidence=confidence,
        relation=relation,
        seed=seed,
        proposals=tuple(names),
        assumptions=tuple(dict.fromkeys(assumptions)),
        upper_assumptions=tuple(dict.fromkeys(upper)),
    )
