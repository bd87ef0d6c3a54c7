"""A conformance kit: checks that a mechanism obeys the protocol audits rely on.

An audit of a mechanism whose batches differ from its single releases, or whose stated
privacy loss is not that of its own releases, says nothing. `run_conformance` looks for
such mistakes; it does not judge the privacy claim, which is the audit's job.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.claims import Claim
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.mechanism import (
    HasBatchedDraw,
    HasExactClaim,
    HasPrivacyLoss,
    HasStatistic,
    HasSupport,
    HasWorstCase,
    Mechanism,
    Release,
)
from dpaudit.neighbours import Pair, Relation
from dpaudit.streams import stream
from dpaudit.testing.two_samples import broken_change_of_measure, difference_of_laws
from dpaudit.validation import check_count

__all__ = ["ConformanceError", "run_conformance"]

_FALSE_ALARM = 1e-9  # of a correct mechanism; for each of the two random checks
_REPEATS = 500

_NOT_DETERMINISTIC = (
    "is not deterministic: one generator state gave two results in a row "
    "(randomness from elsewhere, or state that is kept)"
)

# The streams that the checks draw from.
_SINGLE, _REPEATED, _BATCH, _ON_DATA, _ON_NEIGHBOUR, _DIRECTIONS = range(6)


class ConformanceError(AssertionError):
    """A mechanism breaks the protocol; the message says how."""


def run_conformance(
    mechanism: Mechanism, *, pair: Pair | None = None, size: int = 2000, seed: int = 0
) -> None:
    r"""Check that a mechanism obeys the protocol of `dpaudit.mechanism`.

    Capabilities that the mechanism lacks, or answers with `UnsupportedError`, are
    passed over. In brackets: the probability that a correct mechanism fails.

    1. It has a `Claim`, a `Relation` and ``release(data, *, rng)`` [0].
    2. Releases are numeric and all of one shape [0]. NaN and infinities are outputs
       like any other.
    3. The same generator state gives the same release, different states do not all
       give the same one, and `draw` likewise [0 for continuous noise; at most
       p^(repeats - 1) if the likeliest output has probability p]. A query without
       noise fails here: it may be private, but there is nothing to audit.
    4. No call writes into the arrays that it is given; ``release`` and ``draw``
       give what they gave after many calls, on the neighbour too: releases of a
       mechanism that keeps state are not independent [0].
    5. ``draw`` agrees with repeated ``release`` in distribution: two-sample
       Kolmogorov-Smirnov tests of 4 random projections and of their distances from
       the median of both samples, each at level 1e-9 / 8, by the exact p-value. What
       is projected are ranks: of each entry, and of indicators of NaN, inf and -inf
       where there are any. Ranks and median are those of both samples together, so
       that under the null hypothesis all is exchangeable; the arithmetic is that of
       whole numbers, so that equal releases stay equal [1e-9 in total].
    6. ``worst_case`` gives a pair under the mechanism's own relation [0].
    7. ``statistic`` has the shape of a release, and on the pair it moves by at most
       ``sensitivity``, up to one part in 1e9 [0].
    8. Releases lie in their own ``in_support`` [0, up to rounding].
    9. ``exact_claim`` is a `Claim` [0].
    10. ``privacy_loss`` has shape (size,), is no NaN, is not -inf on releases on the
        data, nor inf on releases on the neighbour, changes its sign when the datasets
        are exchanged [0], and is the loss of the releases drawn [1e-9 in total]. For
        that, with P and Q the laws on the data and on the neighbour and L the loss,

        .. math:: E_Q[e^L 1\{L \le t\}] = P(L \le t)

        for 9 values of t, both ways round. Both sides are means of independent
        variables, in [0, e^t] and in [0, 1], so by Hoeffding's inequality their
        difference exceeds
        :math:`\sqrt{\log(2/\alpha) \, (1 + e^{2t}) / (2 \, size)}` with probability
        at most alpha = 1e-9 / 18. At the default size, a loss that moves one of these
        probabilities by about 0.15 is caught; ask for a larger size to see less.

    Parameters
    ----------
    mechanism : Mechanism
    pair : Pair, optional
        Where to look. Default: the mechanism's ``worst_case()``.
    size : int
        Releases per batch, >= 100. At most 500 are also made one by one.
    seed : int
        The result is a function of it.

    Raises
    ------
    ConformanceError
        An `AssertionError` whose message says what is wrong.
    InputError
        If there is no pair to look at, or it is one of another relation.

    Examples
    --------
    >>> from dpaudit.algorithms import GOEGaussian
    >>> run_conformance(GOEGaussian.from_mu(1.0))
    """
    size = check_count("size", size, minimum=100)
    _check_promise(mechanism)
    _Trial(mechanism, _choose_pair(mechanism, pair), size, seed).check()


def _fail(message: str) -> NoReturn:
    raise ConformanceError(message)


def _check_promise(mechanism: Any) -> None:
    if not isinstance(getattr(mechanism, "claim", None), Claim):
        _fail(f"{mechanism!r} has no claim: give it an attribute `claim`, a Claim")
    if not isinstance(getattr(mechanism, "relation", None), Relation):
        _fail(f"{mechanism!r} has no relation: give it an attribute `relation`")
    if not callable(getattr(mechanism, "release", None)):
        _fail(f"{mechanism!r} has no method release(data, *, rng)")


def _choose_pair(mechanism: Mechanism, pair: Pair | None) -> Pair:
    if isinstance(mechanism, HasWorstCase):
        worst = mechanism.worst_case()
        if worst.relation is not mechanism.relation:
            _fail(
                f"worst_case() is a pair under {worst.relation}, "
                f"but the mechanism's relation is {mechanism.relation}"
            )
        pair = pair or worst
    if pair is None:
        raise InputError("pair is needed: the mechanism has no worst_case()")
    if pair.relation is not mechanism.relation:
        raise InputError(
            f"pair must be a pair under {mechanism.relation}, got {pair.relation}"
        )
    return pair


@dataclass(frozen=True)
class _Trial:
    """The checks of a mechanism on a pair, with batches of a size."""

    mechanism: Mechanism
    pair: Pair
    size: int
    seed: int

    def check(self) -> None:
        """Carry out all checks."""
        mechanism, pair = self.mechanism, self.pair
        first, repeated = self._check_release()
        shapes = _shapes(first)
        batch = None
        if isinstance(mechanism, HasBatchedDraw):
            batch = self._check_draw(shapes)
            directions = stream(self.seed, _DIRECTIONS)
            samples = _entries(repeated), _entries(batch)
            difference = difference_of_laws(*samples, directions, _FALSE_ALARM)
            if difference is not None:
                _fail(f"draw and repeated release differ in distribution: {difference}")
        if isinstance(mechanism, HasStatistic):
            _check_sensitivity(mechanism, pair, shapes)
        sides = (
            (pair.data, self._sample(pair.data, _ON_DATA)),
            (pair.neighbour, self._sample(pair.neighbour, _ON_NEIGHBOUR)),
        )
        self._check_no_state(first, batch)
        if isinstance(mechanism, HasSupport):
            for data, releases in sides:
                inside = _untouched("in_support", mechanism.in_support, releases, data)
                if not np.all(inside):
                    _fail(
                        "releases lie outside in_support on the data they were drawn on"
                    )
        if isinstance(mechanism, HasExactClaim):
            with suppress(UnsupportedError):
                exact: Any = mechanism.exact_claim(pair)
                if not isinstance(exact, Claim):
                    _fail(f"exact_claim must return a Claim, got {exact!r}")
        if isinstance(mechanism, HasPrivacyLoss):
            _check_privacy_loss(mechanism, pair, *(releases for _, releases in sides))

    def _releases(self, data: Array, count: int, key: int) -> Iterator[Any]:
        rng = stream(self.seed, key)
        for _ in range(count):
            yield _untouched("release", self.mechanism.release, data, rng=rng)

    def _first(self, data: Array) -> Any:
        return next(self._releases(data, 1, _SINGLE))

    def _draw(self, data: Array, size: int, *key: int) -> Any:
        draw = cast(HasBatchedDraw, self.mechanism).draw
        return _untouched("draw", draw, data, size, rng=stream(self.seed, *key))

    def _sample(self, data: Array, key: int) -> Release:
        if isinstance(self.mechanism, HasBatchedDraw):
            batch: Release = self._draw(data, self.size, key)
            return batch
        return _stack(list(self._releases(data, min(self.size, _REPEATS), key)))

    def _check_release(self) -> tuple[Any, Release]:
        """Return the first release, and repeated ones."""
        data = self.pair.data
        first, again = (self._first(data) for _ in range(2))
        if not _equal(first, again):
            _fail(f"release {_NOT_DETERMINISTIC}")
        shapes = _shapes(first)
        repeats = min(self.size, _REPEATS)
        repeated = []
        for release in self._releases(data, repeats, _REPEATED):
            _check_numeric("release", release)
            if _shapes(release) != shapes:
                _fail(f"release changes its shape: {_shapes(release)} after {shapes}")
            repeated.append(release)
        if all(_equal(first, release) for release in repeated):
            _fail(
                f"release: output does not depend on rng, {repeats + 1} releases are "
                "all the same (a query without noise, or noise that is made only once)"
            )
        return first, _stack(repeated)

    def _check_draw(self, shapes: dict[str, tuple[int, ...]]) -> Release:
        """Return a batch."""
        draw = partial(self._draw, self.pair.data)
        batch: Release = draw(self.size, _BATCH)
        for count, releases in ((self.size, batch), (1, draw(1, _BATCH))):
            expected = {key: (count, *shape) for key, shape in shapes.items()}
            if _shapes(releases) != expected:
                _fail(
                    f"draw of {count} must have the shape {expected}, "
                    f"got {_shapes(releases)}"
                )
        _check_numeric("draw", batch)
        if not _equal(batch, draw(self.size, _BATCH)):
            _fail(f"draw {_NOT_DETERMINISTIC}")
        if _equal(batch, draw(self.size, _BATCH, 1)):
            _fail(
                "draw: output does not depend on rng, two generators gave the same "
                "batch"
            )
        return batch

    def _check_no_state(self, first: Any, batch: Release | None) -> None:
        """Repeat the first calls, after many others and one on the neighbour."""
        changed = (
            "gives another result than at first, after other calls: it keeps state"
        )
        data, neighbour = self.pair.data, self.pair.neighbour
        self._first(neighbour)
        if not _equal(first, self._first(data)):
            _fail(f"release {changed}")
        if batch is not None:
            self._draw(neighbour, 1, _BATCH)
            if not _equal(batch, self._draw(data, self.size, _BATCH)):
                _fail(f"draw {changed}")


def _untouched(
    name: str, call: Callable[..., Any], *arguments: Any, **rest: Any
) -> Any:
    """Call on writable copies of the arrays, and see that they stay as they were."""
    copies = [_copy(argument) for argument in arguments]
    result = _copy(call(*copies, **rest))
    for copy, argument in zip(copies, arguments, strict=True):
        if not _equal(copy, argument):
            _fail(f"{name} writes into the arrays that it is given")
    return result


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: np.array(item) for key, item in value.items()}
    return np.array(value) if isinstance(value, np.ndarray) else value


def _fields(release: Any) -> dict[str, NDArray[Any]]:
    named = release if isinstance(release, Mapping) else {"": release}
    return {str(key): np.asarray(item) for key, item in sorted(named.items())}


def _equal(first: Any, second: Any) -> bool:
    one, two = _fields(first), _fields(second)
    return one.keys() == two.keys() and all(
        np.array_equal(one[key], two[key], equal_nan=one[key].dtype.kind in "fc")
        for key in one
    )


def _shapes(release: Any) -> dict[str, tuple[int, ...]]:
    return {key: item.shape for key, item in _fields(release).items()}


def _check_numeric(name: str, release: Any) -> None:
    for key, item in _fields(release).items():
        if item.dtype.kind not in "biuf":
            label = f"{name} [{key!r}]" if key else name
            _fail(f"{label} must return real numbers, got an array of {item.dtype}")


def _stack(releases: list[Any]) -> Release:
    fields = [_fields(release) for release in releases]
    stacked = {key: np.stack([each[key] for each in fields]) for key in fields[0]}
    return stacked if isinstance(releases[0], Mapping) else stacked[""]


def _entries(batch: Release) -> Array:
    """Return one row of numbers per release."""
    flat = [item.reshape(len(item), -1) for item in _fields(batch).values()]
    return np.hstack(flat).astype(np.float64)


def _check_sensitivity(
    mechanism: HasStatistic, pair: Pair, shapes: dict[str, tuple[int, ...]]
) -> None:
    one, two = (
        _untouched("statistic", mechanism.statistic, data)
        for data in (pair.data, pair.neighbour)
    )
    if _shapes(one) != shapes:
        _fail(f"statistic has the shape {_shapes(one)}, a release {shapes}")
    if not np.isfinite(one).all():
        _fail("statistic returned a NaN or an infinity")
    allowed = mechanism.sensitivity
    moved = float(allowed.measure(one - two))
    if not moved <= allowed.value * (1 + 1e-9):
        _fail(
            f"statistic moves by {moved:g} on the pair, beyond its stated sensitivity "
            f"{allowed.value:g} ({allowed.norm} norm)"
        )


def _check_privacy_loss(
    mechanism: HasPrivacyLoss, pair: Pair, on_data: Release, on_neighbour: Release
) -> None:
    def loss(releases: Release, first: Array, second: Array) -> Array:
        value = _untouched(
            "privacy_loss", mechanism.privacy_loss, releases, first, second
        )
        expected = (len(next(iter(_fields(releases).values()))),)
        if np.shape(value) != expected:
            _fail(f"privacy_loss must have shape {expected}, got {np.shape(value)}")
        return np.asarray(value, dtype=np.float64)

    losses = []
    for releases in (on_data, on_neighbour):
        try:
            forth = loss(releases, pair.data, pair.neighbour)
            back = loss(releases, pair.neighbour, pair.data)
        except UnsupportedError:
            return
        if np.isnan(forth).any() or np.isnan(back).any():
            _fail("privacy_loss is NaN on a release")
        scale = np.abs(forth[np.isfinite(forth)]).max(initial=1.0)
        if not np.allclose(forth, -back, rtol=1e-9, atol=1e-9 * scale):
            _fail("privacy_loss does not change its sign with the datasets exchanged")
        losses.append(forth)
    forth, back = losses[0], -losses[1]
    for value, side in ((forth, "data"), (back, "neighbour")):
        if np.isneginf(value).any():
            _fail(f"privacy_loss calls a release on the {side} impossible there")
    for sides in (
        (forth, -back, "data", "neighbour"),
        (back, -forth, "neighbour", "data"),
    ):
        wrong = broken_change_of_measure(*sides, _FALSE_ALARM / 2)
        if wrong is not None:
            _fail(f"privacy_loss is not that of the releases: {wrong}")
