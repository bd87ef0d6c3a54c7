"""Libraries that train in private: their noise and their batches, as they are drawn.

Of these libraries arrays need not be followed: DP-SGD looks at a noisy
sum in each step, and the code between two of them is ordinary, and is executed again
on the neighbour. So two kinds of functions are replaced during an execution:

- **What draws noise** returns an object that waits for the numbers that it is added to.
  Adding is one noisy value, whose input is what the library adds to and whose scale is
  the deviation that it asks for, right or wrong. The sum is an
  ordinary array of the library's again, with the very bits that were recorded.
- **What draws Poisson batches** flips a coin for each row, as the source of the library
  says that it does, in the order of the rows.

Nothing is imported, and a library is replaced only if it is loaded. JAX is executed
without compilation meanwhile: a compiled function would hide what it does.

What is taken for granted: keys and generators of the library are taken for fresh and
secret, as noise and flips come from the recorder, and not from them. A key that makes
noise twice in one execution is noticed, and not followed.

All is read off the sources of jax_privacy 2.0 and Opacus 1.6. Correlated noise, batches
that are cyclic or truncated, and samplers of several machines are not followed.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy import asarray  # the real one, in an execution too

from dpaudit.arrays import Array
from dpaudit.audit.replay.declare.array_draws import DRAWN_ARRAYS, ArrayDraws
from dpaudit.audit.replay.declare.declarations import gaussian
from dpaudit.audit.replay.declare.libraries import replaced
from dpaudit.audit.replay.declare.tensor_draws import DRAWN_TENSORS, TensorDraws
from dpaudit.audit.replay.declare.tensor_making import MAKING
from dpaudit.audit.replay.declare.tensors import TRANSFORMS, on_ordinary
from dpaudit.audit.replay.follow.outside import note_outside

__all__ = ["training_libraries"]


class _PendingNoise:
    """Normal noise that has not been added to anything yet.

    Parameters
    ----------
    rng : Any
        The generator that records.
    scale : float
        Its standard deviation.
    shape : tuple of int
    like : object
        The array of the library that it was made for. If it is added to another, such
        as the noise of a step before, it may hide more than that, or less.
    """

    # So that arrays leave additions to it: of NumPy, and of JAX and PyTorch, which ask
    # for what they do not know.
    __array_ufunc__ = None

    def __init__(
        self, rng: Any, scale: float, shape: tuple[int, ...], like: Any
    ) -> None:
        self._rng, self._scale, self._shape, self._like = rng, scale, shape, like
        self._added = False

    def __radd__(self, value: Any) -> Any:
        tape = self._rng.tape
        detach = getattr(value, "detach", None)  # of PyTorch
        numbers = asarray(value if detach is None else detach().cpu())
        if value is not self._like or numbers.dtype.kind != "f" or tape.closed:
            return value + self._ordinary()
        if self._added:
            tape.cannot_follow("noise that was added before is added again")
            return value + self._ordinary()
        self._added = True
        with tape.within():
            noise = self._scale * tape.inner.standard_normal(self._shape)
        law = gaussian(numbers, self._scale)
        output = asarray(numbers + noise, dtype=numbers.dtype)
        given = tape.declare(law, output.astype(np.float64).ravel(), self._shape)
        if given is not None:
            output = given.value.astype(numbers.dtype).reshape(self._shape)
        return _as_like(output, value)

    __add__ = __radd__

    def __mul__(self, factor: Any) -> Any:
        if isinstance(factor, int | float):
            scale = abs(float(factor)) * self._scale
            return _PendingNoise(self._rng, scale, self._shape, self._like)
        return self._ordinary() * factor

    __rmul__ = __mul__

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        own = [each for each in args if isinstance(each, cls)]
        plus = function.__name__ in ("add", "__add__", "__radd__")
        if plus and len(own) == 1 and len(args) == 2 and not kwargs:
            return own[0].__radd__(args[0] if args[1] is own[0] else args[1])
        return function(*map(_plain, args), **(kwargs or {}))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("shape", "ndim", "dtype", "size"):
            return getattr(self._like, name)
        return getattr(self._ordinary(), name)

    def _ordinary(self) -> Any:
        """Return noise as an array of the library, with a note that it is used so."""
        tape = self._rng.tape
        tape.cannot_follow("noise of a library is used in other ways than by adding it")
        with tape.within():
            noise = self._scale * tape.inner.standard_normal(self._shape)
        return _as_like(noise, self._like)


def _plain(argument: Any) -> Any:
    """Return an argument with ordinary numbers in place of noise."""
    if isinstance(argument, list | tuple):
        return type(argument)(map(_plain, argument))
    return argument._ordinary() if isinstance(argument, _PendingNoise) else argument


def _as_like(numbers: Array, like: Any) -> Any:
    """Return numbers as an array of the library and type that another is of."""
    if isinstance(like, np.ndarray):
        return numbers.astype(like.dtype)
    if hasattr(like, "new_tensor"):  # PyTorch
        return like.new_tensor(numbers)
    if hasattr(like, "at"):  # JAX
        return like.at[...].set(numbers)
    return float(numbers)


# -- the libraries


def _iid_normal_noise(rng: Any) -> Callable[..., Any]:
    """Stand for noise on a tree of arrays, which is given with the key."""
    keys: set[bytes] = set()

    def draw(prng_key: Any, target_tree: Any, stddev: float, dtype: Any = None) -> Any:
        jax = sys.modules["jax"]
        key = asarray(jax.random.key_data(prng_key)).tobytes()
        if key in keys:
            rng.tape.cannot_follow("a key makes noise that has made noise before")
        keys.add(key)
        return jax.tree.map(
            lambda leaf: _PendingNoise(rng, float(stddev), tuple(np.shape(leaf)), leaf),
            target_tree,
        )

    return draw


def _generate_noise(rng: Any) -> Callable[..., Any]:
    """Stand for noise on one array."""

    def draw(
        std: float, reference: Any, generator: Any = None, secure_mode: bool = False
    ) -> Any:
        return _PendingNoise(rng, float(std), tuple(reference.shape), reference)

    return draw


def _cyclic_poisson(rng: Any) -> Callable[..., Any]:
    """Stand for the batches of `CyclicPoissonSampling`, if they are Poisson ones."""

    def batch_iterator(self: Any, num_examples: int, *args: Any, **kwargs: Any) -> Any:
        if self.cycle_length != 1 or self.truncated_batch_size is not None:
            return NotImplemented
        dtype, chance = np.min_scalar_type(-num_examples), float(self.sampling_prob)
        flips = (rng.flips(chance, num_examples) for _ in range(self.iterations))
        return (np.flatnonzero(chosen).astype(dtype) for chosen in flips)

    return batch_iterator


def _uniform_sampler(rng: Any) -> Callable[..., Any]:
    """Stand for the batches of `UniformWithReplacementSampler`."""

    def batches(self: Any) -> Any:
        chance, count = float(self.sample_rate), self.num_samples
        flips = (rng.flips(chance, count) for _ in range(self.steps))
        return (np.flatnonzero(chosen).tolist() for chosen in flips)

    return batches


def _not_followed(rng: Any) -> Callable[..., Any]:
    """Stand for what draws by a seed or key that is taken for secret."""
    return lambda *args, **kwargs: NotImplemented


def _stand_in(
    rng: Any, draws: Callable[[Any], Callable[..., Any]], real: Any
) -> Callable[..., Any]:
    """Return a function that draws from the recorder in an execution.

    Else it is the real one; so it is, with a note, where nothing stands for its draws.
    """
    drawn = draws(rng)

    def call(*args: Any, **kwargs: Any) -> Any:
        if rng.tape.follows:
            made = drawn(*args, **kwargs)
            if made is not NotImplemented:
                return made
            rng.tape.cannot_follow(
                "correlated noise, or batches of this kind, are not followed"
            )
        return real(*args, **kwargs)

    return call


_STAND_INS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("jax_privacy.noise_addition._iid_normal_noise", _iid_normal_noise),
    ("jax_privacy.noise_addition._gaussian_linear_combination", _not_followed),
    (
        "jax_privacy.batch_selection.CyclicPoissonSampling.batch_iterator",
        _cyclic_poisson,
    ),
    *(
        (f"jax_privacy.batch_selection.{name}.batch_iterator", _not_followed)
        for name in ("BallsInBinsSampling", "BMinSepSampling", "FixedBatchSampling")
    ),
    (
        "opacus.utils.uniform_sampler.UniformWithReplacementSampler.__iter__",
        _uniform_sampler,
    ),
    # Wherever it is imported by name.
    *(
        (f"opacus.optimizers.{module}._generate_noise", _generate_noise)
        for module in (
            "optimizer",
            "adaclipoptimizer",
            "ddp_perlayeroptimizer",
            "fsdpoptimizer_fast_gradient_clipping",
            "optimizer_fast_gradient_clipping",
        )
    ),
)

_DRAWING = """
    randint randint_like randperm bernoulli poisson binomial multinomial
    Tensor.multinomial Tensor.bernoulli Tensor.bernoulli_ Tensor.cauchy_
    Tensor.geometric_ Tensor.log_normal_
"""
"""Functions of PyTorch that draw, and whose draws are not followed."""

_FOLLOWED: tuple[tuple[str, str, Any, Any], ...] = (
    ("torch", "default_generator", TensorDraws, DRAWN_TENSORS),
    ("jax._src.core", "trace_ctx", ArrayDraws, DRAWN_ARRAYS),
)
"""Modules, what they have when they are loaded, and what draws in their place."""

_HEADS = {
    path.partition(".")[0]
    for path in (*dict(_STAND_INS), *DRAWN_TENSORS, *DRAWN_ARRAYS)
}


def _told(rng: Any, path: str, real: Any) -> Callable[..., Any]:
    """Return a function that notes where it is called."""

    def call(*args: Any, **kwargs: Any) -> Any:
        note_outside(rng.tape, f"{path} draws, which is not followed")
        return real(*args, **kwargs)

    return call


@contextmanager
def training_libraries(rng: Any) -> Iterator[dict[int, Any]]:
    """Replace noise and batches of all libraries that are loaded, for the block.

    Yielded is what replaces each function, by its `id`.
    """
    stand_ins = ((path, partial(_stand_in, rng, draws)) for path, draws in _STAND_INS)
    drawing = [f"torch.{name}" for name in _DRAWING.split()]
    told = ((path, partial(_told, rng, path)) for path in drawing)
    every: list[Any] = [*stand_ins, *told] if _HEADS & sys.modules.keys() else []
    torch: Any = sys.modules.get("torch")
    with ExitStack() as stack:
        if "jax_privacy" in sys.modules and "jax" in sys.modules:
            stack.enter_context(sys.modules["jax"].disable_jit())
        for module, part, draws_of, paths in _FOLLOWED:
            if hasattr(
                sys.modules.get(module), part
            ):  # loaded, of a version known here
                draws = draws_of(rng)
                every += [(path, partial(draws.draws, path)) for path in paths]
                stack.enter_context(draws.kept())
        every += [(path, on_ordinary) for path in TRANSFORMS]
        every += MAKING.items() if hasattr(torch, "default_generator") else ()
        yield stack.enter_context(replaced(every))
