r"""The law of scaling: a public bound on rows is a unit, and says nothing else.

A mechanism for rows of norm at most R adds noise in proportion to what one of them
moves: R to some power. A power that is wrong is right at R = 1, which is where most
tests are made, and breaks the promise at R = 2 or wastes accuracy there.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np

from dpaudit.arrays import Array
from dpaudit.claims import Claim
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.mechanism import (
    HasBatchedDraw,
    HasCanonicalPairs,
    HasExactClaim,
    HasGaussianSteps,
    HasPrivacyLoss,
    HasStatistic,
    HasTranscript,
    HasTranscriptLoss,
    HasTrueEpsilon,
    HasWorstCase,
    Mechanism,
)
from dpaudit.neighbours import Pair
from dpaudit.streams import stream
from dpaudit.testing.conformance import ConformanceError
from dpaudit.validation import check_count, check_positive

__all__ = ["check_scaling"]

Fields: TypeAlias = dict[str, Array]
Build: TypeAlias = Callable[[float], Mechanism]

_POWERS = range(-8, 9)
_TOLERANCE = 1e-9  # of the largest entry
_EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0)
_RELEASES, _TRANSCRIPTS = range(2)  # the streams that are drawn from


def check_scaling(
    build: Build,
    *,
    pair: Pair | None = None,
    factor: float = 2.0,
    size: int = 20,
    seed: int = 0,
) -> None:
    """Check that a mechanism takes its bound on rows for a unit.

    Data times `factor`, with a mechanism built for a bound times `factor`, must be as
    private as before, in every particular:

    1. The claim and ``true_epsilon`` are the same.
    2. The pairs that it names are those from before, times `factor`.
    3. From the same generator state the releases are those from before times a power
       of `factor`, with a whole exponent: 0 for directions, 1 for means, 2 for second
       moments. It is one for all data, in each field of a release; likewise for the
       fields of ``transcript``, and for ``statistic`` with its ``sensitivity``, which
       have the exponent of a release.
    4. ``exact_claim``, ``privacy_loss``, ``transcript_loss``, and ``step_means`` over
       ``step_scales`` are the same.

    A sensitivity that is off by a power of the bound breaks the third or the fourth:
    what the data say and what the noise says then scale differently. Capabilities that
    the mechanism lacks, or answers with `UnsupportedError` both times, are passed over.

    Parameters
    ----------
    build : callable
        From a bound to a mechanism. All else that has a unit must follow the bound: a
        step size for x x^T is in proportion to ``bound**-2``, a clip to ``bound**2``.
    pair : Pair, optional
        Where to look, with the bound 1. Default: all pairs that the mechanism names.
    factor : float
        > 0, not 1. With a power of 2 nothing is rounded otherwise than before.
    size : int
        Releases and transcripts on either side of each pair.
    seed : int
        The result is a function of it.

    Raises
    ------
    ConformanceError
        An `AssertionError` whose message says what does not scale.
    InputError
        If there is no pair to look at, or an argument is not what it should be.

    Examples
    --------
    >>> from dpaudit.algorithms import GOEGaussian
    >>> check_scaling(lambda bound: GOEGaussian.from_mu(1.0, row_norm=bound))
    >>> check_scaling(lambda bound: GOEGaussian.from_mu(1.0, row_norm=bound**2))
    Traceback (most recent call last):
        ...
    dpaudit.testing.conformance.ConformanceError: side ... of pair 0 ...
    """
    factor = check_positive("factor", factor)
    if factor == 1:
        raise InputError("factor must be another number than 1, got 1.0")
    size, seed = check_count("size", size), check_count("seed", seed, minimum=0)
    one, other = build(1.0), build(factor)
    _check_same(_promise(one), _promise(other))
    pairs = _named(one) if pair is None else [pair]
    scaled = [
        Pair(factor * each.data, factor * each.neighbour, each.relation)
        for each in pairs
    ]
    if pair is None:
        _check_same(_rows(scaled), _rows(_named(other)))
    before, after = (
        [_measured(mechanism, side, size, seed) for each in named for side in each]
        for mechanism, named in (
            (one, map(_sides, pairs)),
            (other, map(_sides, scaled)),
        )
    )
    for name in {name: None for each in (*before, *after) for name in each}:
        pieces = [
            (x.get(name), y.get(name)) for x, y in zip(before, after, strict=True)
        ]
        if not any(_follow(pieces, factor**power) for power in _POWERS):
            raise ConformanceError(
                f"{name} is not multiplied by a power of {factor:g}, one for all data, "
                f"when data and bound are multiplied by {factor:g}"
            )
    for first, second in zip(pairs, scaled, strict=True):
        _check_same(_losses(one, first, size, seed), _losses(other, second, size, seed))


def _check_same(before: Fields, after: Fields) -> None:
    for name in {**before, **after}:
        if not _follow([(before.get(name), after.get(name))]):
            raise ConformanceError(
                f"{name} is not what it was before data and bound were multiplied"
            )


def _follow(pieces: list[tuple[Array | None, Array | None]], by: float = 1.0) -> bool:
    """Say whether the second of each two is the first times a number."""
    return all(
        one is not None and other is not None and _close(one * by, other)
        for one, other in pieces
    )


def _close(one: Array, other: Array) -> bool:
    """Say whether arrays are the same, up to rounding of their largest entries."""
    if one.shape != other.shape:
        return False
    scale = np.abs(one[np.isfinite(one)]).max(initial=0.0)
    return np.allclose(one, other, rtol=0.0, atol=_TOLERANCE * scale, equal_nan=True)


def _profile(claim: Claim) -> Array:
    return np.array([float(claim.delta_at(epsilon)) for epsilon in _EPSILONS])


def _promise(mechanism: Mechanism) -> Fields:
    promise = {"claim": _profile(mechanism.claim)}
    if isinstance(mechanism, HasTrueEpsilon):
        promise["true_epsilon"] = np.array(mechanism.true_epsilon)
    return promise


def _named(mechanism: Mechanism) -> list[Pair]:
    if isinstance(mechanism, HasCanonicalPairs):
        return list(mechanism.canonical_pairs())
    if isinstance(mechanism, HasWorstCase):
        return [mechanism.worst_case()]
    raise InputError("pair is needed: the mechanism names none")


def _sides(pair: Pair) -> tuple[Array, Array]:
    return pair.data, pair.neighbour


def _rows(pairs: list[Pair]) -> Fields:
    return {
        f"side {side} of pair {number} that it names": rows
        for number, pair in enumerate(pairs)
        for side, rows in enumerate(_sides(pair))
    }


def _measured(mechanism: Mechanism, data: Array, size: int, seed: int) -> Fields:
    """Return all that has a unit, by name."""
    fields = _releases(mechanism, data, size, seed)
    if isinstance(mechanism, HasStatistic):
        # In the field of the releases, because it has the same unit.
        (name,) = fields
        query = np.asarray(mechanism.statistic(data))[np.newaxis]
        bound = np.full(query.shape, mechanism.sensitivity.value)
        fields[name] = np.concatenate([fields[name], query, bound])
    transcripts = _transcripts(mechanism, data, size, seed)
    return fields | ({} if transcripts is None else _fields("transcript", transcripts))


def _losses(mechanism: Mechanism, pair: Pair, size: int, seed: int) -> Fields:
    """Return what is said of privacy on a pair, and has no unit, by name."""
    data, other = _sides(pair)
    found: Fields = {}
    with suppress(UnsupportedError):
        if isinstance(mechanism, HasExactClaim):
            found["exact_claim"] = _profile(mechanism.exact_claim(pair))
    with suppress(UnsupportedError):
        if isinstance(mechanism, HasPrivacyLoss):
            (releases,) = _releases(mechanism, data, size, seed).values()
            found["privacy_loss"] = mechanism.privacy_loss(releases, data, other)
    transcripts = _transcripts(mechanism, data, size, seed)
    if transcripts is None:
        return found
    with suppress(UnsupportedError):
        if isinstance(mechanism, HasTranscriptLoss):
            loss = mechanism.transcript_loss(transcripts, data, other)
            found["transcript_loss"] = loss
    with suppress(UnsupportedError):
        if isinstance(mechanism, HasGaussianSteps):
            means = mechanism.step_means(transcripts, other)
            scaled = {key: means[key] / mechanism.step_scales[key] for key in means}
            found |= _fields("step_means over step_scales", scaled)
    return found


def _releases(mechanism: Mechanism, data: Array, size: int, seed: int) -> Fields:
    rng = stream(seed, _RELEASES)
    if isinstance(mechanism, HasBatchedDraw):
        return _fields("release", mechanism.draw(data, size, rng=rng))
    singles = [
        _fields("release", mechanism.release(data, rng=rng)) for _ in range(size)
    ]
    return {name: np.stack([each[name] for each in singles]) for name in singles[0]}


def _transcripts(
    mechanism: Mechanism, data: Array, size: int, seed: int
) -> Mapping[str, Array] | None:
    if isinstance(mechanism, HasTranscript):
        with suppress(UnsupportedError):
            return mechanism.transcript(data, size, rng=stream(seed, _TRANSCRIPTS))
    return None


def _fields(name: str, value: Any) -> Fields:
    if isinstance(value, Mapping):
        return {f"{name} [{key!r}]": np.asarray(value[key]) for key in sorted(value)}
    return {name: np.asarray(value)}
