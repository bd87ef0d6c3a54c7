r"""What an attack is: a score that separates releases on D from releases on D'.

An attack first fits on releases of the past, which yields its parameters (named
arrays), and then scores releases that it has not seen. It holds no state of its own:
attack name, parameters and a threshold say completely what event was tested, which is
how witnesses store it. An audit is valid whatever an attack does; a better attack only
needs fewer releases.

**A score depends on its release alone**, and on parameters that were fixed before:
``score(batch)[i] == score(batch[i:i+1])[0]``, whatever else is in the batch, up to the
last bits, in which linear algebra depends on the size of its arguments and which the
audit rounds away. The event "score >= t" is then one set of outputs, as the proof of an
audit takes for granted. What is read off a batch, such as "are these matrices
symmetric?", belongs to `fit` and its parameters.

**Features.** Which entries of releases are redundant, which of them can be NaN or
infinite, and what stands in for those, is decided from past releases; the answers are
parameters like any other. The same release then gets the same features in every batch.
Entries are divided by a power of two of their size, so that squares are finite whatever
the unit.
"""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.errors import DPAuditError, MechanismError
from dpaudit.mechanism import Mechanism, Release
from dpaudit.neighbours import Pair
from dpaudit.outputs import raised_by_signal, telling_interrupts
from dpaudit.printable import printable, said

__all__ = ["Attack", "Parameters", "Target", "consult", "flatten", "score_ordinary"]

Parameters: TypeAlias = Mapping[str, NDArray[Any]]
_LARGEST = (
    1e100  # of numbers and, times its unit, of features: sums of squares are finite
)
_INDICATORS: dict[str, Callable[[Array], NDArray[np.bool_]]] = {
    "is_nan": np.isnan,
    "is_above": np.isposinf,
    "is_below": np.isneginf,
}


@dataclass(frozen=True)
class Target:
    """What is attacked: a mechanism (or a callable) on a pair of neighbours."""

    mechanism: Mechanism | Callable[..., Any]
    pair: Pair


class Attack(ABC):
    """A family of scores; high scores speak for D, low ones for D', or the reverse."""

    name: ClassVar[str]
    """How reports and witnesses call it."""

    score_is: ClassVar[str] = ""
    """What a score is, in words; by default "the score of attack NAME"."""

    learns: ClassVar[bool]
    """Whether `fit` looks at the releases (and so must not be judged on them)."""

    sufficient: ClassVar[bool] = False
    """Whether no other score could tell more of the pair, if this one is right."""

    patient: ClassVar[bool] = False
    """Whether what it looks for may turn up late, so that it is never given up."""

    dear: ClassVar[bool] = False
    """Whether a fit takes much longer than to draw what it learns from."""

    exclusive: ClassVar[bool] = False
    """Whether what never occurred on one of the datasets is likely impossible there."""

    reads: ClassVar[Literal["numbers", "bits", "outputs"]] = "numbers"
    """What it is given: releases, the numbers of outputs of one layout, or outputs.

    Outputs are a `~dpaudit.batches.Batch`, in which each has a layout of its own. Who
    reads bits wants the numbers to the last bit: an audit with such an attack is of the
    doubles that are returned, not of the mechanism over the real numbers.
    """

    states: ClassVar[type | None] = None
    """What a mechanism has to state for it: a protocol of `dpaudit.mechanism`."""

    axes: ClassVar[int | None] = 0
    """How many axes releases have at least, where no mechanism states it.

    1 for vectors and dictionaries, 2 for matrices; of outputs, how many layouts there
    are beside the first. None if only what is stated will do.
    """

    appetite: ClassVar[int] = 2**20
    """How many numbers a side `fit` can make use of, at most."""

    def applies(self, target: Target, releases: Release) -> bool:
        """Say whether the attack can score releases such as these.

        By default if they, or the mechanism, have what is declared, and it `suits`.
        """
        if not isinstance(target.mechanism, self.states or ()):
            if isinstance(releases, np.ndarray):
                axes = releases.ndim - 1
            elif isinstance(releases, Mapping):
                axes = 1
            else:  # a `dpaudit.batches.Batch`
                axes = len(releases.parts) - 1
            if self.axes is None or axes < self.axes:
                return False
        return self.suits(target, releases)

    def suits(self, target: Target, releases: Release) -> bool:
        """Say whether it applies where what the class declares is given."""
        return True

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        """Return parameters fitted to past releases on D and on D'."""
        return {}

    def honest_scores(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> tuple[Array, Array] | None:
        """Score releases, each by a fit to most others; None if that would be dear.

        The audit then judges an attack that learns by a fit to the other half.
        """
        return None

    @abstractmethod
    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        """Return one number per release, infinities allowed; shape (size,)."""

    def event(self, threshold: float, *, reached: bool = True) -> str:
        """Return in words that a score reaches a threshold, or that it does not."""
        subject = self.score_is or f"the score of attack {printable(self.name)}"
        if threshold == math.inf:
            return f"{subject} is {'' if reached else 'not '}infinite"
        return f"{subject} {'>=' if reached else '<'} {threshold:.4g}"


def consult(capability: Callable[..., Any], *arguments: Any) -> Any:
    """Call a capability of the mechanism under attack; its failures are its own.

    Raises
    ------
    MechanismError
        If it raises anything that dpaudit does not raise on purpose.
    """
    with telling_interrupts():
        try:
            return capability(*arguments)
        except BaseException as error:
            if isinstance(error, DPAuditError) or raised_by_signal(error):
                raise
            name = getattr(capability, "__name__", "capability")
            raise MechanismError(
                f"the mechanism's {name} raised {said(error)}"
            ) from error


def score_ordinary(releases: Array, score: Callable[[Array], Array]) -> Array:
    """Score releases without NaN and infinities; all others get -inf.

    Parameters
    ----------
    releases : ndarray, shape (size, ...)
    score : callable
        From releases to scores, shape (size,), each of its own release alone. It is
        given 0 in place of a release that is not finite, and 1e100 for what is larger,
        so that squares are finite.
    """
    with np.errstate(all="ignore"):
        if max(releases.max(initial=0.0), -releases.min(initial=0.0)) <= _LARGEST:
            return score(releases)
        finite = np.isfinite(releases).all(axis=tuple(range(1, releases.ndim)))
        kept = finite.reshape(-1, *[1] * (releases.ndim - 1))
        clipped = np.clip(releases, -_LARGEST, _LARGEST)
        scores = score(np.where(kept, clipped, 0.0))
    return np.where(finite, scores, -np.inf)


def flatten(releases: Release) -> Array:
    """Return the entries of each release in one row, shape (size, m).

    Dictionaries are joined in the order of their sorted keys. NaN and infinities stay.
    """
    if isinstance(releases, Mapping):
        return np.hstack([flatten(releases[key]) for key in sorted(releases)])
    return releases.reshape(len(releases), math.prod(releases.shape[1:]))


def learn_features(
    first: Release, second: Release, most: int
) -> Mapping[str, NDArray[Any]]:
    """Choose the features of releases such as these.

    Parameters
    ----------
    first, second : Release
        Past releases on D and on D'.
    most : int
        How many entries to keep at most: those whose means differ most, in standard
        errors. Of symmetric matrices one triangle is considered.

    Returns
    -------
    dict of ndarray
        ``columns``: the entries kept; ``unit``: what each is divided by; ``filler``:
        the median of each, which replaces what is not finite; ``is_nan``, ``is_above``,
        ``is_below``: the entries that get an indicator of NaN, of +inf, of -inf, again
        at most `most` each.
    """
    mirrored = _mirrored(first) & _mirrored(second)
    unit, filler, orders = _looked_at(flatten(first), flatten(second), mirrored)
    kept = {key: np.sort(order[:most]) for key, order in orders.items()}
    columns = kept["columns"]
    return {**kept, "filler": (filler * unit)[columns], "unit": unit[columns]}


_RECENT: dict[bytes, tuple[Array, Array, Mapping[str, NDArray[np.intp]]]] = {}
_REMEMBERED = 3


def _looked_at(
    first: Array, second: Array, mirrored: NDArray[np.bool_]
) -> tuple[Array, Array, Mapping[str, NDArray[np.intp]]]:
    """Return units, fillers, and what differs by most: entries, and their indicators.

    Several attacks ask it of the same releases, and of the halves of these: so it is
    remembered for three, which are known by a digest of all that is asked.
    """
    digest = hashlib.sha256(repr((first.shape, first.dtype, second.dtype)).encode())
    for part in (first, second, mirrored):
        digest.update(np.ascontiguousarray(part).view(np.uint8).data)
    key = digest.digest()
    found = _RECENT.get(key)
    if found is None:
        found = _RECENT[key] = _look_at(first, second, np.flatnonzero(~mirrored))
        for old in list(_RECENT)[:-_REMEMBERED]:
            _RECENT.pop(old, None)
    return found


def _look_at(
    first: Array, second: Array, considered: NDArray[np.intp]
) -> tuple[Array, Array, Mapping[str, NDArray[np.intp]]]:
    unit = _units(np.vstack([first, second]))
    sides = first / unit, second / unit
    both = np.vstack(sides)
    orders = {
        key: _by_shift(test(sides[0]), test(sides[1]), considered)
        for key, test in _INDICATORS.items()
    }
    filler = _medians(both)
    filled = [
        np.clip(np.where(np.isfinite(side), side, filler), -_LARGEST, _LARGEST)
        for side in sides
    ]
    orders["columns"] = considered[shift_order(*(x[:, considered] for x in filled))]
    return unit, filler, orders


def features(parameters: Mapping[str, NDArray[Any]], releases: Release) -> Array:
    """Return finite features in the layout of `learn_features`, shape (size, m)."""
    flat = flatten(releases)
    kept = np.take(flat, parameters["columns"], axis=1)
    finite = np.isfinite(kept)
    if not finite.all():
        kept = np.where(finite, kept, parameters["filler"])
    kept = kept / parameters["unit"]
    np.clip(kept, -_LARGEST, _LARGEST, out=kept)
    indicators = [
        test(flat[:, parameters[key]])
        for key, test in _INDICATORS.items()
        if len(parameters[key])
    ]
    return np.hstack([kept, *indicators]) if indicators else kept


def shift_order(first: Array, second: Array) -> NDArray[np.intp]:
    """Order columns by how far their means differ, in standard errors."""
    spread = np.sqrt(first.var(axis=0) + second.var(axis=0))
    shift = np.abs(first.mean(axis=0) - second.mean(axis=0))
    # Columns that are constant on either side and differ come first.
    statistic = np.where(shift > 0, np.inf, 0.0)
    np.divide(shift, spread, out=statistic, where=spread > 0)
    return np.argsort(-statistic, kind="stable")


def _by_shift(
    first: NDArray[np.bool_], second: NDArray[np.bool_], considered: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return those of some columns of truth values that vary, by `shift_order`."""
    true = np.count_nonzero(first, axis=0) + np.count_nonzero(second, axis=0)
    true = true[considered]
    varying = considered[(true > 0) & (true < len(first) + len(second))]
    one, two = (side[:, varying].astype(np.float64) for side in (first, second))
    return varying[shift_order(one, two)]


def _mirrored(releases: Release) -> NDArray[np.bool_]:
    """Say which entries repeat another one by symmetry, shape (m,)."""
    if isinstance(releases, Mapping):
        return np.concatenate([_mirrored(releases[key]) for key in sorted(releases)])
    shape = releases.shape[1:]
    if (
        len(shape) == 2
        and shape[0] == shape[1]
        and np.array_equal(releases, releases.swapaxes(-2, -1), equal_nan=True)
    ):
        return np.tril(np.ones(shape, dtype=bool), -1).ravel()
    return np.zeros(int(np.prod(shape)), dtype=bool)


def _units(flat: Array) -> Array:
    """Return powers of two near the typical size of columns, shape (m,)."""
    with np.errstate(all="ignore"):
        size = _medians(np.where(flat == 0, np.nan, np.abs(flat)))
        _, exponent = np.frexp(np.where(np.isfinite(size), size, np.inf))
    # A quotient of doubles by such a power is exact, and so is the power.
    return np.ldexp(1.0, np.clip(np.where(size > 0, exponent, 0), -1000, 1000))


def _medians(flat: Array) -> Array:
    """Return the median of the finite values of each column, 0 where there are none.

    Where some are not finite, the lower one of two middle values.
    """
    finite = np.isfinite(flat)
    if finite.all():
        return np.median(flat, axis=0)
    counts = finite.sum(axis=0)
    # The finite values of each column first, in order.
    ordered = np.sort(np.where(finite, flat, np.inf), axis=0)
    middle = np.maximum(counts - 1, 0) // 2
    picked = np.take_along_axis(ordered, middle[np.newaxis], axis=0)[0]
    return np.where(counts > 0, picked, 0.0)


def canary_rows(pair: Pair) -> tuple[Array, Array]:
    """Return the rows that are only in the data, and only in the neighbour.

    Shapes (0 or 1, d) where rows are vectors in R^d. Of several equal rows it does not
    matter which one is missing.
    """
    (ours, place), (theirs, other) = zip(
        (pair.data, pair.neighbour), pair.changed, strict=True
    )
    return (
        ours[:0] if place is None else ours[place : place + 1],
        theirs[:0] if other is None else theirs[other : other + 1],
    )


def common_mean(pair: Pair) -> Array:
    """Return the mean of the rows that both datasets have; zero if there are none."""
    place, other = pair.changed
    longer, place = (pair.neighbour, other) if place is None else (pair.data, place)
    assert place is not None
    common = np.delete(longer, place, axis=0)
    return common.sum(axis=0) / max(len(common), 1)


def shaped_as_bases(pair: Pair, releases: Release) -> Array | None:
    """Return releases as stacks of vectors in R^d, shape (size, d, k), if they fit.

    Taken are d-vectors and d x k or k x d matrices with 0 < k < d, where the rows of
    the pair are finite vectors in R^d, d > 1. None for anything else.
    """
    if not isinstance(releases, np.ndarray) or not pair.finite or pair.data.ndim != 2:
        return None
    match releases.shape[1:], pair.data.shape[1]:
        case ((a,), d) if a == d > 1:
            return releases[:, :, np.newaxis]
        case ((a, b), d) if 0 < b < a == d:
            return releases
        case ((a, b), d) if 0 < a < b == d:
            return releases.swapaxes(1, 2)
    return None


def square_on_rows(pair: Pair, releases: Release) -> bool:
    """Say whether releases are d x d matrices, and rows finite vectors, d > 1."""
    if not isinstance(releases, np.ndarray) or not pair.finite or pair.data.ndim != 2:
        return False
    dimension = pair.data.shape[1]
    return dimension > 1 and releases.shape[1:] == (dimension, dimension)
