"""Draws of JAX, as arrays that keep what they are made of.

**Keys.** A key is a function of a seed, and draws are a function of the key. So keys
are told apart by their bits, wherever they come from: a key has a recorder of its own
if its seed was drawn, or if it was split from a key that has one, or made from one by
folding a number in. Code that draws from the same key again gets the same draws again,
and they are recognized. Draws of another kind from that key would use the same bits for
something else, and so would draws from a key that is split: these are not followed. A
key of any other seed gives the same numbers in each execution, and that is noted; a key
that was there before the execution is not followed.

Functions that draw are replaced where JAX itself calls them, so that the names under
which the code has them do not matter.
"""

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy import asarray  # the real one, in an execution too

from dpaudit.audit.replay.declare.arrays import DRAWS, NoiseTrace, internals, loaded
from dpaudit.audit.replay.declare.held import note_rounding
from dpaudit.audit.replay.follow.outside import note_outside

__all__ = ["DRAWN_ARRAYS", "ArrayDraws"]

_OTHERWISE = "a key of JAX is used again, and not for the same draws"
_SPLIT = "a key of JAX is split, and drawn from"
_BEFORE = "a key of JAX was there before, so that its draws are the same each time"
_FIXED = "a key of JAX has a seed that was not drawn"
_BITS = "JAX draws from a law that is not followed"
_WITHIN = "JAX draws within a loop or a function that it compiles"
_TOGETHER = "JAX draws by several keys of a kind of which one counts"
_BY_KEY = "threefry2x32"  # of which each key draws by itself, under vmap too
_THROUGH = ("BatchTrace", "JVPTrace", "LinearizeTrace")  # of vmap and grad


@dataclass
class _Key:
    """What is known of a key: its recorder, if any, and what it was used for."""

    rng: Any
    why: str = ""
    drawn: Any = None
    is_split: bool = False


class ArrayDraws:
    """What draws arrays in an execution, in place of JAX.

    Parameters
    ----------
    rng : RecordingGenerator
    """

    def __init__(self, rng: Any) -> None:
        self._rng = rng
        self._keys: dict[bytes, _Key] = {}
        self._trace = NoiseTrace.of(self._seen)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Let arrays keep noise in the block."""
        with self._trace.on():
            yield

    def draws(self, path: str, real: Any) -> Callable[..., Any]:
        """Return what stands for a function that draws."""
        made_by, name = DRAWN_ARRAYS[path], path.rpartition(".")[2]
        signature = inspect.signature(real)

        def call(*args: Any, **kwargs: Any) -> Any:
            if not (self._rng.tape.follows and self._is_here()):
                return real(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            given = dict(bound.arguments)
            of = given.pop("key")

            def plainly(key: Any) -> Any:
                return real(key, **given)

            try:
                made = made_by(_Call(self, name, of, plainly, dict(given)))
            except TypeError:  # of what has no numbers yet
                made = NotImplemented
            return real(*args, **kwargs) if made is NotImplemented else made

        call.__name__ = name
        return call

    def _is_here(self) -> bool:
        """Say whether what is drawn comes to this execution's trace."""
        trace = internals().trace_ctx.trace
        while type(trace).__name__ in _THROUGH:
            trace = trace.parent_trace
        return trace is self._trace

    def _bits(self, keys: Any) -> list[bytes]:
        with self._trace.plainly():
            numbers = asarray(loaded("").random.key_data(keys))
        return [each.tobytes() for each in numbers.reshape(-1, numbers.shape[-1])]

    def _known(self, bits: bytes) -> _Key:
        """Return what is known of a key; of one that was drawn it has a recorder."""
        if bits not in self._keys:
            words = np.frombuffer(bits, dtype=np.uint32).tolist()
            made = self._rng.of_words(words)
            self._keys[bits] = _Key(made, _BEFORE if made is None else "")
        return self._keys[bits]

    def _seen(self, primitive: Any, given: Any, params: Any, made: Any) -> None:
        """Take note of a primitive that has to do with keys."""
        name, tape = primitive.name, self._rng.tape
        if not tape.follows:
            return
        if name == "random_seed":
            for bits in self._bits(made):
                if bits not in self._keys and self._known(bits).rng is None:
                    self._keys[bits].why = _FIXED
        elif name in ("random_split", "random_fold_in"):
            self._derived(name == "random_split", given[0], made)
        elif name == "random_bits":
            for bits in self._bits(given[0]):
                if self._used(self._known(bits), _BITS) is not None:
                    tape.coin(_BITS)
        elif any(map(_draws, internals().jaxprs_in_params(params))):
            tape.cannot_follow(_WITHIN)

    def _derived(self, splits: bool, keys: Any, made: Any) -> None:
        """Note that keys are made of others."""
        children, parents = self._bits(made), self._bits(keys)
        each = max(1, len(children) // max(1, len(parents)))
        for place, bits in enumerate(children):
            parent = self._known(parents[min(place // each, len(parents) - 1)])
            if splits:
                parent.is_split = True
                if parent.drawn is not None and parent.rng is not None:
                    self._rng.tape.cannot_follow(_SPLIT)
            if bits not in self._keys:
                child = None if parent.rng is None else parent.rng.unseeded()
                self._keys[bits] = _Key(child, parent.why)

    def _used(self, key: _Key, what: Any) -> Any:
        """Return the recorder that draws with a key, None if there is none."""
        tape = self._rng.tape
        if key.rng is None:
            if key.why == _BEFORE:
                tape.cannot_follow(key.why)
            else:
                note_outside(tape, key.why)
            return None
        if key.is_split:
            tape.cannot_follow(_SPLIT)
        if key.drawn not in (None, what):
            tape.cannot_follow(_OTHERWISE)
            return key.rng.unseeded()
        key.drawn = what
        return deepcopy(key.rng)  # which draws the same

    def of(self, keys: Any, call: "_Call", shape: Any, dtype: Any, draw: Any) -> Any:
        """Return draws of each of some keys, as numbers."""
        parts = []
        what = call.name, math.prod(shape), str(dtype)
        flat = keys.reshape(-1)
        if keys.shape and str(loaded("random").key_impl(keys)) != _BY_KEY:
            self._rng.tape.cannot_follow(_TOGETHER)
        for place, bits in enumerate(self._bits(keys)):
            recorder = self._used(self._known(bits), what)
            if recorder is None:
                with self._trace.plainly():
                    parts.append(asarray(call.plainly(flat[place])))
            else:
                parts.append(draw(recorder, shape))
        made = np.stack(parts) if keys.shape else parts[0]
        if dtype.kind not in "iub":
            eps = float(loaded("numpy").finfo(dtype).eps)
            note_rounding(made, [], eps)
        return np.reshape(made, (*keys.shape, *shape))


def _draws(jaxpr: Any) -> bool:
    """Say whether something within a function of JAX draws."""
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    return any(
        each.primitive.name == "random_bits"
        or any(map(_draws, internals().jaxprs_in_params(each.params)))
        for each in jaxpr.eqns
    )


@dataclass
class _Call:
    """The call of a function that draws: by which key, and what it was given."""

    draws: ArrayDraws
    name: str
    key: Any
    plainly: Callable[[Any], Any]
    given: dict[str, Any]

    def numbers(self, name: str) -> Any:
        """Return a parameter as numbers of NumPy."""
        value = self.given[name]
        if isinstance(value, internals().Tracer):
            value = value.to_concrete_value()
            if value is None:
                raise TypeError("a parameter that has no numbers yet")
        value = asarray(value)
        return value if value.dtype.kind in "iub" else value.astype(np.float64)

    def number(self, name: str) -> Any:
        """Return a parameter, as one number if it is the same for all draws."""
        value = self.numbers(name)
        same = value.size and (value == value.flat[0]).all()
        return value.flat[0].item() if same else value

    def of(self, draw: Callable[..., Any], dtype: Any = None, last: Any = ()) -> Any:
        """Return draws by what a recorder does, of a shape that ends with the last."""
        jax, key = loaded(""), self.key
        dtype = np.dtype(self.given["dtype"] if dtype is None else dtype)
        shape = (*(self.given["shape"] or ()), *last)
        if dtype.kind == "c":
            return NotImplemented
        if not jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key):
            key = jax.random.wrap_key_data(key)
        return _drawing().bind(key, call=self, shape=shape, dtype=dtype, draw=draw)


@cache
def _drawing() -> Any:
    """Return the primitive of JAX that draws, of a key or of each of some."""
    made = internals().Primitive(DRAWS)
    batching = loaded("_src.interpreters.batching")
    batching.defvectorized(made)

    def impl(keys: Any, *, call: Any, shape: Any, dtype: Any, draw: Any) -> Any:
        return call.draws.of(keys, call, shape, dtype, draw)

    def abstract(keys: Any, *, shape: Any, dtype: Any, **how: Any) -> Any:
        return internals().ShapedArray((*keys.shape, *shape), dtype)

    made.def_impl(impl)
    made.def_abstract_eval(abstract)
    return made


def _named(name: str, *parameters: str) -> Callable[[_Call], Any]:
    """Return what draws by a method of a recorder."""

    def made(call: _Call) -> Any:
        numbers = [call.number(each) for each in parameters]
        return call.of(lambda rng, n: getattr(rng, name)(*numbers, size=n))

    return made


def _uniform(call: _Call) -> Any:
    low, high = call.number("minval"), call.number("maxval")
    if (low, high) == (0, 1):
        return call.of(lambda rng, n: rng.random(n))
    return call.of(lambda rng, n: rng.uniform(low, high, n))


def _gamma(call: _Call) -> Any:
    a = call.number("a")
    if call.given["log_space"]:
        return NotImplemented
    return call.of(lambda rng, n: rng.standard_gamma(a, n))


def _dirichlet(call: _Call) -> Any:
    alpha = call.numbers("alpha")
    if call.given["shape"] or alpha.ndim != 1:
        return NotImplemented
    return call.of(lambda rng, n: rng.dirichlet(alpha), last=alpha.shape)


def _bernoulli(call: _Call) -> Any:
    p = call.numbers("p")
    if call.given["shape"] is None:
        call.given["shape"] = p.shape
    if (p == 0.5).all():
        return call.of(lambda rng, n: rng.integers(0, 2, n), bool)
    return call.of(lambda rng, n: np.less(rng.random(n), p), bool)


def _rademacher(call: _Call) -> Any:
    return call.of(lambda rng, n: rng.choice([-1, 1], n))


def _choice(call: _Call) -> Any:
    a, more = call.numbers("a"), call.given
    if more["p"] is None or more["axis"] or not more["replace"]:
        return NotImplemented
    p, count = call.numbers("p"), len(a) if a.ndim else int(a)
    places = call.of(lambda rng, n: rng.choice(count, n, p=p / p.sum()), np.int32)
    return loaded("numpy").asarray(call.given["a"])[places] if a.ndim else places


_LAWS: dict[str, Callable[[_Call], Any]] = {
    "_normal": _named("standard_normal"),
    "_laplace": _named("laplace"),
    "_gumbel": _named("gumbel"),
    "_exponential": _named("standard_exponential"),
    "_logistic": _named("logistic"),
    "_cauchy": _named("standard_cauchy"),
    "_uniform": _uniform,
    "_gamma": _gamma,
    "_beta": _named("beta", "a", "b"),
    "_t": _named("standard_t", "df"),
    "_chisquare": _named("chisquare", "df"),
    "_dirichlet": _dirichlet,
    "_poisson": _named("poisson", "lam"),
    "_geometric": _named("geometric", "p"),
    "_bernoulli": _bernoulli,
    "_rademacher": _rademacher,
    "_randint": _named("integers", "minval", "maxval"),
    "choice": _choice,
}
"""By the names of JAX's own functions, what draws in their place."""
DRAWN_ARRAYS = {
    f"jax.{where}.{name}": made
    for where in ("random", "_src.random", "_src.random.core")  # by versions
    for name, made in _LAWS.items()
}
"""Functions of JAX that draw, by their paths, and what stands for them."""
