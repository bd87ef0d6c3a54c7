"""What mechanisms of many kinds share: how one release is drawn, and components of it.

Where releases are principal components already, as many as their mechanism makes, what
`dpaudit.mechanism.HasComponents` asks for is the release itself, and any other number
of components is refused.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from math import prod, sqrt
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.validation import check_count, check_positive

__all__ = ["Batched", "ReleasesBasis", "ReleasesVector", "Rng"]

Data = TypeVar("Data", contravariant=True)

Rng: TypeAlias = np.random.Generator
"""Where randomness is from."""

Values: TypeAlias = Mapping[str, Array]
"""Named values of independent runs, trials leading."""

EDGE = 2.2
"""Where noise may have eigenvalues, in deviations times sqrt(d); it ends at 2."""
APART = 3.0
"""How far noise may part two eigenvalues, in deviations."""

_MOST_ROWS = 10_000_000

Run: TypeAlias = tuple[dict[str, Array], dict[str, Array], Array]
"""Values of independent runs, their means on the data, and releases."""

Replaced: TypeAlias = Literal["opposite", "orthogonal"]
"""How the terms of a row and of its replacement lie where they are worst."""


class Batched(ABC, Generic[Data]):
    """A mechanism that draws many releases at once, on data of some type."""

    @abstractmethod
    def draw(self, data: Data, size: int, *, rng: Rng) -> Array:
        """Return `size` independent releases, stacked along the first axis."""

    def release(self, data: Data, *, rng: Rng) -> Array:
        """Return one release, as those of `draw`."""
        return np.asarray(self.draw(data, 1, rng=rng)[0])


class Transcribed(ABC):
    """A mechanism that draws what it sees, and can be told it instead."""

    @abstractmethod
    def _run(self, data: Any, size: int, source: Rng | Values) -> Run:
        """Return values, their means on the data, and releases.

        Values are drawn about the means, or are those of a transcript.
        """

    def transcript(self, data: Any, size: int, *, rng: Rng) -> Values:
        """Return what `size` independent runs see, named, as the class says.

        From the same state of `rng`, `draw` returns what follows from it (of so many
        runs as it makes at a time).
        """
        return self._run(data, check_count("size", size, minimum=0), rng)[0]

    def step_means(self, transcript: Values, data: Any) -> Values:
        """Return the means of the values on `data`, given those before them."""
        return self._run(data, len(next(iter(transcript.values()))), transcript)[1]


class GaussianSteps(Transcribed):
    """A mechanism whose transcript is Gaussian, each value given those before it."""

    @property
    @abstractmethod
    def step_scales(self) -> dict[str, float]:
        """The deviations of the noise of its values."""

    def transcript_loss(self, transcript: Values, data: Any, other: Any) -> Array:
        """Return the exact loss of all that was released, shape (size,)."""
        one, two = (self.step_means(transcript, rows) for rows in (data, other))
        return gaussian_loss(transcript, one, two, self.step_scales)


class ReleasesComponents(ABC):
    """A mechanism whose release is principal components, as many as it makes."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """The number of components, k."""

    def components(self, releases: Array, n_components: int) -> Array:
        """Return the bases, shape (..., d, k); k is that of the mechanism."""
        check_components(n_components, self.rank)
        return releases

    def _shaped(self, bases: Array) -> Array:
        """Return bases, shape (..., d, k), in the shape that is released."""
        return bases


class ReleasesBasis(ReleasesComponents):
    """A mechanism whose release is a basis, shape (d, k).

    Its `n_components`, k, is at least 1 and at most d.
    """

    n_components: int

    @property
    def rank(self) -> int:
        return self.n_components


class ReleasesVector(ReleasesComponents):
    """A mechanism whose release is a unit vector, shape (d,)."""

    several: ClassVar[str] = ""
    """The mechanism that releases more; constructors then take an n_components of 1."""

    @property
    def rank(self) -> int:
        """The number of components, 1."""
        return 1

    def components(self, releases: Array, n_components: int) -> Array:
        """Return the vectors as bases of one column, shape (..., d, 1)."""
        return super().components(releases, n_components)[..., np.newaxis]

    def _shaped(self, bases: Array) -> Array:
        return bases[..., 0]


def gaussian_loss(
    values: Values, one: Values, two: Values, scales: Mapping[str, float]
) -> Array:
    """Return the loss of normal values about either means, (size,), by deviations."""
    loss = np.zeros(len(next(iter(values.values()))))
    for name, scale in scales.items():
        terms = (one[name] - two[name]) * (values[name] - (one[name] + two[name]) / 2)
        terms = terms.reshape(len(loss), prod(terms.shape[1:])).sum(axis=1)
        loss += terms / scale / scale
    return loss


def answered(
    source: Rng | Values, name: str, at: Any, mean: Array, scale: float = 1.0
) -> Array:
    """Return values about a mean with normal noise, or those of a transcript there."""
    if isinstance(source, np.random.Generator):
        return mean + scale * source.standard_normal(mean.shape)
    return np.asarray(source[name][at])


def check_rank(n_components: int, dimension: int) -> None:
    """Raise unless k <= d."""
    if n_components > dimension:
        raise InputError(
            f"n_components must be at most the length of a row, {dimension}, "
            f"got {n_components}"
        )


def check_shares(least: int, name: str, value: Any) -> tuple[float, ...]:
    """Return positive shares, or raise if there are less than one, or two."""
    shares = tuple(check_positive(name, share) for share in value)
    if len(shares) < least:
        number = "one share" if least == 1 else "two shares"
        raise InputError(f"{name} must have at least {number}, got {value!r}")
    return shares


def check_components(n_components: int, released: int) -> None:
    """Raise unless as many components are asked for as a mechanism releases."""
    if n_components != released or isinstance(n_components, bool):
        raise InputError(
            f"n_components must be the {released} that the mechanism releases, "
            f"got {n_components!r}"
        )


def drawn_in_parts(
    size: int, shape: tuple[int, ...], width: int, draw: Callable[[int], Array]
) -> Array:
    """Return `size` releases of a shape, made by `width` at a time, or one by one."""
    size = check_count("size", size, minimum=0)
    releases = np.empty((size, *shape))
    for some in slices(size, width):
        releases[some] = draw(some.stop - some.start)
    return releases


def slices(count: int, width: int) -> Iterator[slice]:
    """Yield slices of so many things, of `width` at a time, or one by one."""
    width = max(1, width)
    for first in range(0, count, width):
        yield slice(first, min(first + width, count))


def first_accepted(
    size: int,
    propose: Callable[[int], Array],
    *,
    shape: tuple[int, ...],
    fewest: int,
    most: int,
) -> Array:
    """Return the first draws that rejection leaves, of shape ``(size, *shape)``.

    From a number of proposals `propose` makes those of them that are accepted. As many
    are made at a time as seem needed, from what was accepted before, within bounds.
    """
    kept: list[Array] = [np.empty((0, *shape))]
    count = tried = 0
    while count < size:
        expected = (size - count) * (tried + 1) / (count + 1)
        tries = min(max(int(expected), fewest), most)
        kept.append(propose(tries))
        count += len(kept[-1])
        tried += tries
    return np.concatenate(kept)[:size]


def enough_rows(count: float) -> int:
    """Return how many rows a pair has, or raise if it would fill the memory."""
    if not count <= _MOST_ROWS:
        raise UnsupportedError(
            f"no pair is named that takes more than {_MOST_ROWS:,} rows, as noise this "
            f"large does, got {count:,.0f}: smaller noise has one"
        )
    return int(count)


def end_of(walk: Iterator[list[Array]]) -> Array:
    """Return the last state of a walk, of which each step is [what is seen, state]."""
    return deque(walk, maxlen=1)[0][1]


def transcribed(walk: Iterator[list[Array]]) -> dict[str, Array]:
    """Return what is seen of the start of a walk, and of its steps, along axis 1."""
    start, *steps = (seen for seen, _ in walk)
    return {"start": start, "steps": np.stack(steps, axis=1)}


def laplace_noise(shape: int | tuple[int, ...], scale: float, *, rng: Rng) -> Array:
    """Draw independent centred Laplace variables, density exp(-|x|/scale)/(2 scale).

    An exponential with a random sign: a third of the time that
    `numpy.random.Generator.laplace` takes.
    """
    noise = rng.standard_exponential(shape)
    noise *= scale
    signs = rng.random(shape)
    signs -= 0.5
    return np.copysign(noise, signs, out=noise)


def stand_out(values: Array, n_components: int, noise: float) -> NDArray[np.bool_]:
    """Say whether components stand out of noise, by eigenvalues of a noisy matrix.

    The k-th eigenvalue must lie beyond those of noise alone, and as far above the next
    as noise seldom parts two.

    Parameters
    ----------
    values : ndarray of shape (..., d)
        All eigenvalues, in descending order.
    n_components : int
        k. All of the d directions always stand out.
    noise : float
        The standard deviation of an entry off the diagonal.

    Returns
    -------
    ndarray of bool, shape (...)
    """
    d, k = values.shape[-1], n_components
    if k == d:
        return np.ones(values.shape[:-1], dtype=bool)
    last, after = values[..., k - 1], values[..., k]
    return np.asarray((last > EDGE * noise * sqrt(d)) & (last - after > APART * noise))


def orient(bases: Array) -> Array:
    """Return bases with the largest entry of each column positive, (..., d, k)."""
    d, k = bases.shape[-2:]
    flat = bases.reshape(-1, d, k)
    peaks = np.abs(flat).argmax(axis=1)
    signs = np.sign(flat[np.arange(len(flat))[:, np.newaxis], peaks, np.arange(k)])
    return np.asarray(bases * signs.reshape(*bases.shape[:-2], 1, k))
