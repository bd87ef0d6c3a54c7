r"""Streams: one row in, one release out, with a state that can be kept.

A stream holds the exact A_t, what it has to remember of the noise, and what the
subspace solver remembers: for a tree O(d^2 log m) numbers, none of which grows with t.
A row costs one draw of d (d + 1)/2 normals and O(d^2) operations, besides the
eigenvectors.

What has to be remembered of the noise depends on how the noise of prefixes is made:
`dpaudit.algorithms.online.noise`.

From the same generator a stream releases what `release` does, up to rounding, since the
noise is drawn in the order of the rows.

**State.** `state` returns a plain dict of arrays (`numpy.savez` takes it): with it goes
the configuration, and the state of the generator, so that the resumed stream gives what
the uninterrupted one would have given, bit for bit. It is as secret as the data: it
holds exact sums, and the noise that hides them. And a saved generator that goes on
twice, with other rows, draws one noise for two nodes: resume a state once. States are
to be trusted like code.
"""

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.algorithms.online.leading_subspace import LeadingSubspace
from dpaudit.algorithms.online.noise import NoiseMemory, coordinates, pack_rows, unpack
from dpaudit.algorithms.online.prefix_sums import PrefixSums
from dpaudit.algorithms.shared.bases import Rng
from dpaudit.arrays import Array
from dpaudit.codec import decode, differences, encode
from dpaudit.errors import InputError
from dpaudit.rows import clip_into
from dpaudit.validation import check_count, check_real

__all__ = ["PrefixStream", "RowStream", "StreamableSums", "SubspaceStream"]

State = dict[str, NDArray[Any]]

_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


class RowStream:
    """What all streams share: rows of length d are counted and checked, states kept.

    The mechanism, whose stream it is, has a declared length and a row norm; it goes
    into the state as the configuration, and so do the options. The generator belongs to
    the stream from now on.
    """

    def __init__(
        self, mechanism: Any, dimension: int, *, rng: Rng, **options: float
    ) -> None:
        if mechanism.length is None:
            raise InputError(
                "length must be declared for rows that arrive one by one, got None"
            )
        self.length: int = mechanism.length
        self.dimension = check_count("dimension", dimension)
        self.step = 0
        self._row_norm = mechanism.row_norm
        self._rng = rng
        self._configuration = {
            "class": type(mechanism).__name__,
            "mechanism": encode(mechanism),
            "dimension": self.dimension,
            **options,
        }

    def prepared(self, row: ArrayLike) -> Array:
        """Return a row, clipped, shape (1, d), and count it; or raise `InputError`."""
        values = check_real("row", row, "a numeric vector")
        if values.shape != (self.dimension,):
            raise InputError(
                f"row must have shape ({self.dimension},), got {values.shape}"
            )
        if not np.isfinite(values).all():
            raise InputError(f"row must be finite, but has a NaN or infinity: {row!r}")
        if self.step >= self.length:
            raise InputError(
                f"row {self.step + 1} is beyond the declared length {self.length}"
            )
        self.step += 1
        whole = values[np.newaxis]
        return clip_into(whole, self._row_norm, np.empty_like(whole))

    def state(self) -> State:
        """Return all that is needed to go on, as a dict of arrays."""
        generator = encode(self._rng.bit_generator.state)
        return {
            "configuration": np.array(json.dumps(self._configuration, sort_keys=True)),
            "generator": np.array(json.dumps(generator, sort_keys=True)),
            "step": np.array(self.step),
            **{name: np.array(value) for name, value in self._arrays().items()},
        }

    def restore(self, state: Mapping[str, ArrayLike]) -> None:
        """Go on from a state that a stream of the same configuration gave.

        If something is missing or different, it is named in an `InputError`.
        """
        arrays = {name: np.asarray(value) for name, value in state.items()}
        _check_keys(arrays, {"configuration", "generator", "step"})
        saved = json.loads(str(arrays["configuration"]))
        here = json.loads(json.dumps(self._configuration))
        for name, ours, theirs in differences(here, saved):
            raise InputError(
                f"state is of another configuration: {name} is {theirs!r} there and "
                f"{ours!r} here"
            )
        _check_keys(arrays, self._arrays().keys())
        for name, value in self._arrays().items():
            if arrays[name].shape != np.shape(value):
                raise InputError(
                    f"state must have {name} of shape {np.shape(value)}, got "
                    f"{arrays[name].shape}"
                )
        self.step = check_count(
            "step", int(arrays["step"]), minimum=0, maximum=self.length
        )
        self._rng = _generator(str(arrays["generator"]))
        self._load({name: np.array(arrays[name]) for name in self._arrays()})

    def _arrays(self) -> dict[str, Array]:
        """Return what a subclass remembers."""
        raise NotImplementedError

    def _load(self, arrays: dict[str, Array]) -> None:
        """Take over what `_arrays` returned once."""
        raise NotImplementedError


class PrefixStream(RowStream):
    """Noisy prefix sums, row by row; maybe a part of the stream of a mechanism."""

    def __init__(
        self,
        sums: "StreamableSums",
        dimension: int,
        *,
        rng: Rng,
        mechanism: Any = None,
        **options: float,
    ) -> None:
        super().__init__(mechanism or sums, dimension, rng=rng, **options)
        self._ratio = sums.noise.ratio
        self._deviation = sums.deviation()
        self._moment = np.zeros(coordinates(self.dimension))
        self._memory = sums.memory(len(self._moment))

    def add(self, row: ArrayLike) -> Array:
        """Take a row, and return the noisy prefix that ends with it, shape (d, d)."""
        self._moment += pack_rows(self.prepared(row), self._ratio)[0]
        noise = self._rng.standard_normal(len(self._moment))
        noise *= self._deviation
        noise = self._memory.noise(self.step, noise)
        noise += self._moment
        return unpack(noise, self._ratio)

    def _arrays(self) -> dict[str, Array]:
        return {"moment": self._moment, **self._memory.arrays()}

    def _load(self, arrays: dict[str, Array]) -> None:
        self._moment = arrays["moment"]
        self._memory.load(arrays)


class Streamed:
    """A mechanism that has a stream, which can be resumed."""

    start: Callable[..., Any]
    """Takes d, a generator and options; returns a stream of rows of length d."""

    def resume(self, state: Mapping[str, ArrayLike], **options: Any) -> Any:
        """Return a stream that goes on where another one gave this state.

        Options are those of `start`, but for the generator, which is in the state.
        """
        rng = np.random.default_rng(0)
        stream = self.start(_saved_dimension(state), rng=rng, **options)
        stream.restore(state)
        return stream


@dataclass(frozen=True, kw_only=True)
class StreamableSums(Streamed, PrefixSums):
    """Prefix sums with a stream."""

    @abstractmethod
    def memory(self, width: int) -> NoiseMemory:
        """Return what a stream remembers of its noise, of q coordinates."""

    def start(self, dimension: int, *, rng: Rng) -> PrefixStream:
        """Return a stream of rows of length d; a length must be declared."""
        return PrefixStream(self, dimension, rng=rng)


class SubspaceStream(PrefixStream):
    """The leading subspaces of noisy prefixes, row by row.

    The tolerance is that of `dpaudit.algorithms.online.leading_subspace`; with 0
    subspaces are exact. The next row is met with the `basis`, shape (d, k).
    """

    def __init__(
        self, mechanism: Any, dimension: int, *, tolerance: float, rng: Rng
    ) -> None:
        super().__init__(
            mechanism.sums, dimension, rng=rng, mechanism=mechanism, tolerance=tolerance
        )
        k = mechanism.n_components
        self.leading = LeadingSubspace(dimension, k, tolerance=tolerance)
        self.basis = np.eye(dimension, k)

    def add(self, row: ArrayLike) -> Array:
        """Take a row, and return the basis for the next one, shape (d, k)."""
        self.basis = self.leading.of(super().add(row))
        return self.basis

    def _arrays(self) -> dict[str, Array]:
        solver = self.leading.state()
        solver["last"] = self.basis
        return super()._arrays() | {f"solver_{key}": solver[key] for key in solver}

    def _load(self, arrays: dict[str, Array]) -> None:
        super()._load(arrays)
        solver = {name.removeprefix("solver_"): value for name, value in arrays.items()}
        self.leading.restore(solver)
        self.basis = solver["last"]


def _saved_dimension(state: Mapping[str, ArrayLike]) -> int:
    """Return d of a saved state."""
    try:
        configuration = json.loads(str(state["configuration"]))
        return check_count("dimension", configuration["dimension"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"state must be what a stream's state() returned: {error}"
        ) from error


def _check_keys(arrays: Mapping[str, Array], wanted: Set[str]) -> None:
    if missing := sorted(wanted - arrays.keys()):
        raise InputError(f"state must have {missing}, got {sorted(arrays)}")


def _generator(saved: str) -> np.random.Generator:
    state = decode(json.loads(saved))
    if state.get("bit_generator") not in _GENERATORS:
        raise InputError(
            f"state must have a generator of {_GENERATORS}, got "
            f"{state.get('bit_generator')!r}"
        )
    bits = getattr(np.random, state["bit_generator"])()
    bits.state = state
    return np.random.Generator(bits)
