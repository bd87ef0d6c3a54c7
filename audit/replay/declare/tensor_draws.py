"""Draws of PyTorch, as tensors that keep what they are made of.

A function that draws returns a `NoisyTensor` during an execution.

**Generators.** Draws come from the recorder, in place of a generator that was seeded by
a number which the recorder drew, or of the global one, if the code did not seed it. A
generator of any other seed draws by itself, and that is noted. Where the state of a
generator is one that it had before, the same draws come again: that is not followed.

A tensor that is filled with draws (``torch.empty(3).normal_()``) is followed if it has
no name yet, and its numbers no other owner: so nothing but what is returned has them.
Where that cannot be told it draws by itself, and that is noted.
"""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dpaudit.audit.replay.declare.held import note_rounding
from dpaudit.audit.replay.declare.tensors import (
    NoisyTensor,
    as_tensor,
    dtype_of,
    is_int,
    loaded_torch,
    numbers_of,
)
from dpaudit.audit.replay.follow.outside import note_outside
from dpaudit.audit.replay.follow.places import is_code
from dpaudit.audit.replay.follow.tracked import isinstance_tracked

__all__ = ["DRAWN_TENSORS", "TensorDraws"]

_AGAIN = "a generator of PyTorch is in a state again that it drew from before"
_BITS = "a generator of PyTorch has a seed that was not drawn"


class TensorDraws:
    """What draws tensors in an execution, in place of PyTorch.

    Parameters
    ----------
    rng : RecordingGenerator
    """

    def __init__(self, rng: Any) -> None:
        self._rng = rng
        self._recorders: dict[Any, Any] = {}
        self._states: set[bytes] = set()
        self._start = loaded_torch().initial_seed()
        self._before = loaded_torch().get_rng_state()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Let tensors have tensors with noise in the block, as ordinary ones.

        After it the global generator is put back, if code seeded it there.
        """
        kind = loaded_torch().Tensor
        slots = {name: getattr(kind, name) for name in ("grad", "data")}
        try:
            for name, slot in slots.items():
                setattr(kind, name, _slot(slot, name))
            kind._of_noisy = staticmethod(_of_noisy)
            yield
        finally:
            for name in (*slots, "_of_noisy"):
                delattr(kind, name)
            if loaded_torch().initial_seed() != self._start:
                loaded_torch().set_rng_state(self._before)

    def draws(self, path: str, real: Any) -> Callable[..., Any]:
        """Return what stands for a function, or method, that draws."""
        made_by, name = DRAWN_TENSORS[path], path.rpartition(".")[2]

        def call(*args: Any, **kwargs: Any) -> Any:
            tape = self._rng.tape
            if not tape.follows:
                return real(*args, **kwargs)
            made = NotImplemented
            if own := is_code(sys._getframe(1).f_code.co_filename):
                made = made_by(self, *args, **kwargs)
            if made is not NotImplemented:
                return made
            if own or not name.endswith("_"):  # by which layers are made, too
                note_outside(tape, f"{path} draws, which is not followed")
            return real(*args, **kwargs)

        call.__name__ = name
        return call

    def recorder(self, generator: Any, size: int) -> Any:
        """Return the recorder in place of a generator, None if there is none.

        The generator goes on, as if it had drawn so many numbers.
        """
        torch = loaded_torch()
        own = torch.default_generator if generator is None else generator
        seed, state = own.initial_seed(), own.get_state().numpy().tobytes()
        if state in self._states:
            self._rng.tape.cannot_follow(_AGAIN)
        self._states.add(state)
        torch._C._VariableFunctions.rand(max(size, 1), generator=own)
        key = id(own), seed
        if key not in self._recorders:
            made = self._rng.of_seed(seed)
            if made is None and own is torch.default_generator and seed == self._start:
                made = self._rng.unseeded()
            self._recorders[key] = made, own
        found = self._recorders[key][0]
        if found is None:
            note_outside(self._rng.tape, _BITS)
        return found

    def of(
        self,
        shape: Any,
        draw: Callable[[Any, tuple[int, ...]], Any],
        generator: Any = None,
        dtype: Any = None,
    ) -> Any:
        """Return draws of a shape as a tensor; NotImplemented if there are none."""
        dtype = loaded_torch().get_default_dtype() if dtype is None else dtype
        shape = tuple(map(int, shape))
        if not dtype.is_floating_point:
            return NotImplemented
        recorder = self.recorder(generator, math.prod(shape))
        if recorder is None:
            return NotImplemented
        made = draw(recorder, shape)
        note_rounding(made, [], loaded_torch().finfo(dtype).eps)
        return as_tensor(made, dtype)


def _of_noisy(made: Any, parts: tuple[Any, ...]) -> Any:
    """Return what NumPy made of tensors and numbers with noise, as a tensor."""
    arrays = any(isinstance_tracked(each) and each.ndim for each in parts)
    dtype = loaded_torch().float64 if arrays else dtype_of(list(parts))
    note_rounding(made, [], loaded_torch().finfo(dtype).eps)
    return as_tensor(made, dtype)


def _slot(slot: Any, name: str) -> Any:
    """Return what stands for an attribute of tensors that is a tensor."""

    def put(self: Any, value: Any) -> None:
        given = value.ordinary(name) if type(value) is NoisyTensor else value
        slot.__set__(self, given)

    return property(slot.__get__, put, slot.__delete__)


def _size(size: tuple[Any, ...]) -> Any:
    """Return a shape that is given as one argument, or as several."""
    single = len(size) == 1 and not is_int(size[0])
    return size[0] if single else size


def _plainly(more: dict[str, Any]) -> bool:
    """Say whether nothing is asked for but numbers on this machine."""
    known = {"layout", "device", "pin_memory", "requires_grad", "memory_format"}
    return not (set(more) - known or more.get("requires_grad"))


def _standard(name: str, *, like: bool = False) -> Callable[..., Any]:
    """Return what stands for ``torch.randn`` or ``torch.rand``.

    Or for ``torch.randn_like`` or ``torch.rand_like``.
    """

    def made(
        draws: TensorDraws,
        *given: Any,
        generator: Any = None,
        dtype: Any = None,
        **more: Any,
    ) -> Any:
        if like:
            other = given[0] if given else more.pop("input")
            shape, dtype = other.shape, other.dtype if dtype is None else dtype
        else:
            shape = more.pop("size", _size(given))
        if not _plainly(more):
            return NotImplemented
        return draws.of(shape, lambda rng, n: getattr(rng, name)(n), generator, dtype)

    return made


def _normal(
    draws: TensorDraws,
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    **more: Any,
) -> Any:
    """Stand for ``torch.normal``."""
    if not _plainly(more):
        return NotImplemented
    if size is None:
        size = np.broadcast_shapes(
            np.shape(numbers_of(mean)), np.shape(numbers_of(std))
        )
    dtype = dtype_of([mean, std]) if dtype is None else dtype
    return draws.of(
        size,
        lambda rng, n: rng.normal(_single(mean), _single(std), n),
        generator,
        dtype,
    )


def _single(value: Any) -> Any:
    """Return a parameter, one that is the same for all draws as a number."""
    value = numbers_of(value)
    if type(value) is np.ndarray and value.size and (value == value.flat[0]).all():
        return float(value.flat[0])
    return value


_LAWS: dict[str, Callable[..., Any]] = {
    "Normal": lambda rng, n, p: rng.normal(p("loc"), p("scale"), n),
    "Laplace": lambda rng, n, p: rng.laplace(p("loc"), p("scale"), n),
    "Gumbel": lambda rng, n, p: rng.gumbel(p("loc"), p("scale"), n),
    "Exponential": lambda rng, n, p: rng.exponential(1 / p("rate"), n),
    "Uniform": lambda rng, n, p: rng.uniform(p("low"), p("high"), n),
}
"""By the names of distributions, what draws from them."""


def _sample(draws: TensorDraws, law: Any, sample_shape: Any = ()) -> Any:
    """Stand for the methods of a distribution."""
    by = _LAWS.get(type(law).__name__)
    if by is None or type(law).__module__.partition(".")[0] != "torch":
        return NotImplemented

    def parameter(name: str) -> Any:
        return _single(getattr(law, name))

    names = ("loc", "scale", "rate", "low", "high")
    dtype = dtype_of([getattr(law, name, None) for name in names])
    shape = law._extended_shape(loaded_torch().Size(sample_shape))
    return draws.of(shape, lambda rng, n: by(rng, n, parameter), None, dtype)


def _filled(draw: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """Return what replaces a method that fills a tensor with draws.

    It replaces it only for a tensor that has no other reference than the result.
    """

    def made(
        draws: TensorDraws, target: Any, *args: Any, generator: Any = None, **more: Any
    ) -> Any:
        if sys.getrefcount(target) != _UNNAMED or not _is_alone(target):
            return NotImplemented
        given = dict(zip(names, args, strict=False)) | more
        if set(given) - set(names) or type(target) is not loaded_torch().Tensor:
            return NotImplemented
        numbers = {name: numbers_of(each) for name, each in given.items()}
        return draws.of(
            target.shape,
            lambda rng, n: draw(rng, n, **numbers),
            generator,
            target.dtype,
        )

    return made


def _is_alone(target: Any) -> bool:
    """Say whether nothing else has the numbers of a tensor."""
    counted = getattr(loaded_torch()._C, "_storage_Use_Count", None)
    uses = getattr(target, "_use_count", None)
    if counted is None or uses is None or type(target) is not loaded_torch().Tensor:
        return False
    if target.requires_grad or target._base is not None:
        return False
    new = loaded_torch().empty(1)
    kept, own = new.untyped_storage(), target.untyped_storage()
    return bool(uses() == 1 and counted(own._cdata) == counted(kept._cdata))


class _Unnamed:
    """Counts references to itself, as they are counted where tensors are filled."""

    def filled(*args: Any, **kwargs: Any) -> int:
        return _references(None, *args, **kwargs)


def _references(draws: Any, target: Any, *args: Any, **more: Any) -> int:
    return sys.getrefcount(target)


def _of_unnamed() -> int:
    """Return how many there are to what has no name; 0 if one tells nothing."""
    count: Any = _Unnamed().filled()
    named = _Unnamed()
    return count if named.filled() > count else 0


_UNNAMED = _of_unnamed()
DRAWN_TENSORS: dict[str, Callable[..., Any]] = {
    "torch.randn": _standard("standard_normal"),
    "torch.rand": _standard("random"),
    "torch.randn_like": _standard("standard_normal", like=True),
    "torch.rand_like": _standard("random", like=True),
    "torch.normal": _normal,
    "torch.distributions.distribution.Distribution.sample": _sample,
    **{
        f"torch.distributions.{path}.{method}": _sample
        for path in (
            *(f"{name.lower()}.{name}" for name in (*_LAWS, "Gamma")),
            "transformed_distribution.TransformedDistribution",
        )
        for method in ("sample", "rsample")
    },
    "torch.Tensor.normal_": _filled(
        lambda rng, n, mean=0.0, std=1.0: rng.normal(mean, std, n), *("mean", "std")
    ),
    "torch.Tensor.uniform_": _filled(
        lambda rng, n, to=1.0, **low: rng.uniform(low.get("from", 0.0), to, n),
        *("from", "to"),
    ),
    "torch.Tensor.exponential_": _filled(
        lambda rng, n, lambd=1.0: rng.exponential(1 / lambd, n), "lambd"
    ),
}
"""Functions of PyTorch that draw, by their paths, and what stands for them."""
