"""What a declaration of a primitive names: kernels, by the numbers that make them.

A law here is right if the primitive does as its declaration says. That is taken for
granted.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import log_softmax

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.affine import AffineLaw
from dpaudit.audit.replay.laws.choices import ROUNDING, NamedChoiceLaw, noisy_maximum
from dpaudit.audit.replay.laws.coded import Family
from dpaudit.audit.replay.laws.comparison import AnyLaw, LawComparison, equal
from dpaudit.audit.replay.laws.non_affine import NonAffineLaw
from dpaudit.claims import ApproxDP, Claim, PureDP
from dpaudit.errors import InputError
from dpaudit.validation import check_fraction, check_nonnegative

__all__ = ["KERNELS", "TrustedLaw"]


@dataclass(frozen=True, eq=False)
class TrustedLaw:
    """A primitive whose law is not known, and the promise about it.

    Parameters
    ----------
    value : object
        The input.
    terms : tuple
        What the promise depends on: if it is another one on D', nothing is promised.
    distance : callable
        Two inputs -> how far they lie apart, NaN if that is not known.
    promise : callable
        A distance > 0 -> the claim that holds of two inputs so far apart, None if there
        is none.
    words : str
        Of the promise, for people.
    """

    value: Any
    terms: tuple[Any, ...]
    distance: Callable[[Any, Any], float]
    promise: Callable[[float], Claim | None]
    words: str

    @property
    def kind(self) -> str:
        """What it is, for people."""
        return "a trusted primitive"

    def compared(self, other: "TrustedLaw") -> LawComparison:
        """Return the promise about the two."""
        if self.terms != other.terms:
            text = f"{self.words} on D, and {other.words} on D'"
            return _unknown(math.nan, note=("scale", text))
        distance = self.distance(self.value, other.value)
        if distance == 0:
            return LawComparison()
        bound = None if math.isnan(distance) else self.promise(distance)
        if bound is not None:
            return _unknown(distance, bound=bound)
        how = "an unknown distance" if math.isnan(distance) else f"{distance:.6g}"
        text = f"the inputs lie {how} apart: {self.words}"
        return _unknown(distance, note=("distance", text))

    def loss(self, other: "TrustedLaw", value: Array) -> float:
        """Return 0: it is asked for where the inputs are the same, and nowhere else."""
        return 0.0


def _unknown(distance: float, **what: Any) -> LawComparison:
    """Return a comparison of laws that are not known: a bound, or a note, is."""
    return LawComparison.of_unit(Family.TRUSTED, distance, known=False, **what)


def laplace(value: Any, scale: Any, lower: Any = -np.inf, upper: Any = np.inf) -> Any:
    """Return Laplace noise of a scale; the value is clamped to [lower, upper] then."""
    mean, b, low, high = _entries(value, scale, lower, upper)
    if (np.isinf(low) & np.isinf(high)).all():
        return _law(Family.LAPLACE, mean, b)
    return NonAffineLaw(Family.CLAMPED_LAPLACE, mean, b, low, high)


def truncated_laplace(value: Any, scale: Any, lower: Any, upper: Any) -> NonAffineLaw:
    """Return Laplace noise that is drawn until the value is within the bounds.

    A value beyond a bound is taken to it first.
    """
    x, b, low, high = _entries(value, scale, lower, upper)
    return NonAffineLaw(Family.TRUNCATED_LAPLACE, np.clip(x, low, high), b, low, high)


def folded_laplace(value: Any, scale: Any, lower: Any, upper: Any) -> NonAffineLaw:
    """Return Laplace noise with the value reflected at the bounds until it is within.

    The law is symmetric: it is that of the reflected input.
    """
    x, b, low, high = _entries(value, scale, lower, upper)
    if (np.isinf(low) & np.isinf(high)).any():
        raise InputError("one of lower and upper must be finite")
    with np.errstate(invalid="ignore"):
        width = high - low
        turned = np.where(
            np.isinf(high), low + np.abs(x - low), high - np.abs(high - x)
        )
        across = np.mod(x - low, 2 * width)
        wide = low + np.minimum(across, 2 * width - across)
    finite = np.isfinite(width) & (width > 0)
    folded = np.where(finite, wide, np.clip(turned, low, high))
    return NonAffineLaw(Family.FOLDED_LAPLACE, folded, b, low, high)


def gaussian(value: Any, scale: Any) -> AffineLaw:
    """Return normal noise of a standard deviation."""
    mean, sigma, _, _ = _entries(value, scale)
    return _law(Family.GAUSSIAN, mean, sigma)


def discrete_laplace(
    value: Any, scale: Any, lower: Any = -np.inf, upper: Any = np.inf
) -> NonAffineLaw:
    """Return integer noise, P(k) proportional to e^(-|k|/scale); clamped then."""
    return NonAffineLaw(Family.DISCRETE_LAPLACE, *_entries(value, scale, lower, upper))


def discrete_gaussian(value: Any, scale: Any) -> NonAffineLaw:
    """Return integer noise, P(k) proportional to e^(-k^2/(2 scale^2))."""
    return NonAffineLaw(Family.DISCRETE_GAUSSIAN, *_entries(value, scale))


def exponential(
    scores: Any, scale: Any, candidates: Any = None, measure: Any = None
) -> NamedChoiceLaw:
    """Return a choice, P(i) proportional to e^(score/scale), times a measure."""
    x, b = _scores(scores, scale)
    if measure is None:
        weights = np.zeros(len(x))
    else:
        with np.errstate(divide="ignore"):
            weights = np.log(_numbers("measure", measure))
    if b == 0:
        x = np.where(x == x.max(), 0.0, -np.inf)
    else:
        x = (x - x.max()) / b
    return _choice(np.asarray(log_softmax(x + weights)), candidates)


def noisy_maximum_of(family: Family) -> Callable[..., NamedChoiceLaw]:
    """Return what makes the law of a noisy maximum with noise of a family."""

    def law(scores: Any, scale: Any, candidates: Any = None) -> NamedChoiceLaw:
        x, b = _scores(scores, scale)
        if b == 0:
            return exponential(x, 0.0, candidates)
        log = noisy_maximum(x, b, family)
        if log is None:
            raise InputError(f"there are too many scores: {len(x)}")
        return _choice(log, candidates)

    return law


def randomised_response(value: Any, truth: Any, outcomes: Any = 2) -> NamedChoiceLaw:
    """Return choices: an entry with probability truth, else another, all alike."""
    p = float(truth)
    if not 0 <= p <= 1:
        raise InputError(f"truth must be in [0, 1], got {truth!r}")
    names = range(int(outcomes)) if isinstance(outcomes, int) else outcomes
    single = isinstance(value, str) or np.ndim(value) == 0
    k, c = len(names), 1 if single else np.size(value)
    made = NamedChoiceLaw(np.empty((c, k)), "randomised response", names=tuple(names))
    try:
        told, _ = made.places(value)
    except LookupError:
        raise InputError(f"value must be one of {list(names)!r}") from None
    with np.errstate(divide="ignore"):
        log = np.full((len(told), k), np.log((1 - p) / max(1, k - 1)))
        log[np.arange(len(told)), told] = np.log(p)
    return NamedChoiceLaw.among(log, made.names, made.kind, ROUNDING)


def trusted(
    value: Any,
    sensitivity: Any,
    epsilon: Any,
    delta: Any = 0.0,
    norm: Any = None,
    distance: Any = None,
) -> TrustedLaw:
    """Return a promise for inputs no further apart than a sensitivity.

    The distance is that of `numpy.linalg.norm` with ``ord=norm``, 1 by default; for a
    matrix, norm 2 is the spectral one. Or it is a function of two inputs of any kind.
    """
    sensitivity = check_nonnegative("sensitivity", _scalar(sensitivity))
    epsilon = check_nonnegative("epsilon", _scalar(epsilon))
    delta = check_fraction("delta", _scalar(delta), allow_zero=True)

    def promise(far: float) -> Claim | None:
        if far > sensitivity * (1 + 1e-9):
            return None
        least = max(epsilon, 1e-100)  # which claims can say
        return ApproxDP(least, delta) if delta else PureDP(least)

    if distance is None:
        norm = 1 if norm is None else norm
        kept: Any = np.array(_numbers("value", value))
        measured = partial(_norm_of_difference, norm=norm)
    else:
        kept = copy.deepcopy(value)  # as it is now
        measured = partial(_measured, distance)
    words = f"({epsilon:.6g}, {delta:.6g}) is declared at sensitivity {sensitivity:.6g}"
    terms = (sensitivity, epsilon, delta, norm, distance)
    return TrustedLaw(kept, terms, measured, promise, words)


def _norm_of_difference(x: Array, x2: Array, *, norm: Any) -> float:
    if x.shape != x2.shape:
        return math.nan
    gap = np.where(equal(x, x2), 0.0, x - x2)
    return float(np.linalg.norm(gap, ord=norm if gap.ndim else None))


def _measured(distance: Callable[[Any, Any], Any], x: Any, x2: Any) -> float:
    """Return how far inputs lie apart by a user's function, which may keep neither."""
    shown = getattr(distance, "__qualname__", repr(distance))
    try:
        found = distance(copy.deepcopy(x), copy.deepcopy(x2))
    except Exception as error:
        raise InputError(
            f"the distance {shown} raised {type(error).__name__} for two inputs of "
            f"type {type(x).__name__}: {error}"
        ) from error
    try:
        number = _scalar(found)
    except (TypeError, ValueError):
        number = math.nan
    if not number >= 0:
        raise InputError(
            f"the distance {shown} must return a number >= 0, got {found!r}"
        )
    return number


def _law(family: Family, mean: Array, scale: Array) -> AffineLaw:
    """Return independent entries: constants where there is no scale."""
    draws, families = np.arange(len(mean)), np.full(len(mean), family)
    return AffineLaw.of(mean, draws[:, np.newaxis], scale[:, np.newaxis], families)


def _entries(
    value: Any, scale: Any, lower: Any = -np.inf, upper: Any = np.inf
) -> tuple[Array, Array, Array, Array]:
    """Return flat columns of numbers, or raise if there is noise of no scale."""
    names = ("value", "scale", "lower", "upper")
    parts = [
        _numbers(name, each)
        for name, each in zip(names, (value, scale, lower, upper), strict=True)
    ]
    shape = parts[0].shape
    if np.broadcast_shapes(*[part.shape for part in parts]) != shape:
        raise InputError(f"the scale has another shape than the value, {shape}")
    mean, b, low, high = (np.array(np.broadcast_to(p, shape)).ravel() for p in parts)
    if not (np.isfinite(b).all() and (b >= 0).all()):
        raise InputError(f"scale must be finite and >= 0, got {scale!r}")
    if not (low <= high).all():
        raise InputError(f"lower must be <= upper, got {lower!r} and {upper!r}")
    return mean, b, low, high


def _scores(scores: Any, scale: Any) -> tuple[Array, float]:
    x = _numbers("scores", scores)
    if x.ndim != 1 or not len(x) or not np.isfinite(x).all():
        raise InputError("scores must be finite, of shape (k,)")
    return x, check_nonnegative("scale", _scalar(scale))


def _choice(log: Array, candidates: Any) -> NamedChoiceLaw:
    names = range(len(log)) if candidates is None else candidates
    return NamedChoiceLaw.among(log[np.newaxis], list(names), "a choice")


def _numbers(name: str, value: Any) -> Array:
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name} must be numbers, got {type(value).__name__}")
    return np.asarray(array, dtype=np.float64)


def _scalar(value: Any) -> float:
    return float(np.asarray(value, dtype=np.float64))


KERNELS: dict[str, Callable[..., AnyLaw]] = {
    "laplace": laplace,
    "truncated-laplace": truncated_laplace,
    "folded-laplace": folded_laplace,
    "gaussian": gaussian,
    "discrete-laplace": discrete_laplace,
    "discrete-gaussian": discrete_gaussian,
    "exponential": exponential,
    "permute-and-flip": noisy_maximum_of(Family.EXPONENTIAL),
    "noisy-max": noisy_maximum_of(Family.LAPLACE),
    "randomised-response": randomised_response,
    "trusted": trusted,
}
