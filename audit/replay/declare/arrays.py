"""Arrays of JAX with noise: what is done with them is done by NumPy's functions.

All that JAX does comes to its primitives, of which there are few (add, gather,
select). A trace, as JAX's own transformations have, sees each: one that has a
`NoisyArray` among its operands is done as real numbers, by what is known of NumPy's
functions. What only moves entries is done with their places instead, and what is linear
with each unit. All else looks at the numbers, and gets ordinary arrays; so does what
has no noise in it. Functions are executed without compilation meanwhile: so ``jit``,
``scan`` and ``cond`` are Python, line by line, and ``vmap`` and ``grad`` come to
primitives.

How sums in single precision are rounded is as `dpaudit.audit.replay.declare.held` has
it.
"""

import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import new_class
from typing import Any, ClassVar

import numpy as np
from numpy import asarray  # the real one, in an execution too

from dpaudit.audit.replay.declare.held import HeldArray, note_rounding
from dpaudit.audit.replay.follow.tracked import Tracked, isinstance_tracked, moved_by

__all__ = ["DRAWS", "NoiseTrace", "internals", "loaded"]

DRAWS = "dpaudit_draws"
"""The name of the primitive that draws."""

_MOST_UNITS = 512  # numbers, of which a linear function is known by each


def loaded(name: str) -> Any:
    """Return a module of JAX, which the code under audit has loaded."""
    return sys.modules[f"jax.{name}" if name else "jax"]


def internals() -> Any:
    """Return JAX's core."""
    return loaded("_src.core")


class NoisyArray(HeldArray):
    """Numbers with noise where an array of JAX is expected.

    It is a tracer of JAX as well, which holds a `Tracked`.
    """

    __slots__ = ()
    held: Tracked
    aval: Any
    _trace: Any

    def ordinary(self, how: str) -> Any:
        """Return an ordinary array, with a note on the tape."""
        return self._trace.array(self.held.looked_at(how), self.aval)

    def like(self) -> Any:
        """Return an ordinary array of zeros that is like it."""
        return self._trace.array(np.zeros(self.held.shape), self.aval)

    def to_concrete_value(self) -> Any:
        return self  # it is looked at where it is converted

    def __index__(self) -> int:
        if self.aval.dtype.kind not in "iub":
            raise TypeError("only integer arrays can be an index")
        return operator.index(self.ordinary("index"))

    def __format__(self, form: str) -> str:
        return format(self.ordinary("format"), form)

    def __repr__(self) -> str:
        return repr(self.ordinary("repr"))

    def block_until_ready(self) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        try:
            return internals().Tracer.__getattr__(self, name)
        except AttributeError:
            if name.startswith("__"):
                raise
            return getattr(self.like(), name)


@cache
def _of_jax(ours: type, base: str) -> Any:
    """Return a class of ours as a kind of one of JAX."""
    slots = {"__slots__": ("held",)} if ours is NoisyArray else {}
    bases = ours, getattr(internals(), base)
    return new_class(ours.__name__, bases, {}, lambda space: space.update(slots))


def _is_noisy(value: Any) -> bool:
    return issubclass(type(value), NoisyArray)


class NoiseTrace:
    """What sees each primitive of JAX in an execution.

    Parameters
    ----------
    seen : callable
        What is told of primitives without noise: the primitive, its operands,
        parameters and results.
    """

    now: ClassVar[Any] = None
    parent_trace: Any

    @staticmethod
    def of(seen: Callable[..., None]) -> Any:
        """Return a trace of JAX."""
        made = _of_jax(NoiseTrace, "Trace")()
        made.parent_trace = internals().trace_ctx.trace
        made.seen = seen
        return made

    @contextmanager
    def on(self) -> Iterator[None]:
        """Let it see what is done in the block, line by line."""
        jax: Any = loaded("")
        api: Any = loaded("_src.api")
        real, before = api._device_get, NoiseTrace.now
        _let_in()
        try:
            NoiseTrace.now = self
            api._device_get = lambda x: x.held if _is_noisy(x) else real(x)
            with jax.disable_jit(), internals().set_current_trace(self):
                yield
        finally:
            NoiseTrace.now = before
            api._device_get = real

    def plainly(self) -> Any:
        """Return a block in which JAX does what it does elsewhere."""
        return internals().set_current_trace(self.parent_trace)

    def array(self, value: Any, aval: Any) -> Any:
        """Return numbers as an array, those with noise as one that keeps it."""
        if isinstance_tracked(value) and value.noisy:
            made = _of_jax(NoisyArray, "Tracer")(self, aval)
            made.held = value
            return made
        value = value.centre if isinstance_tracked(value) else asarray(value)
        with self.plainly():
            return loaded("numpy").asarray(value.copy(), dtype=aval.dtype)

    # -- what JAX asks of a trace

    def stage_value(self, value: Any) -> Any:
        return value if _is_noisy(value) else self.parent_trace.stage_value(value)

    def process_primitive(self, primitive: Any, given: Any, params: Any, /) -> Any:
        if any(map(_is_noisy, given)):
            made = self._followed(primitive, given, params)
            if made is not NotImplemented:
                return made
            name = primitive.name
            given = [e.ordinary(name) if _is_noisy(e) else e for e in given]
        if primitive.name == DRAWS:
            aval = primitive.abstract_eval(*map(internals().typeof, given), **params)
            return self.array(primitive.impl(*given, **params), aval[0])
        with self.plainly():
            made = primitive.bind(*given, **params)
        self.seen(primitive, given, params, made)  # type: ignore[attr-defined]
        return made

    def process_custom_jvp_call(self, _: Any, function: Any, *given: Any, **__: Any):  # type: ignore[no-untyped-def]
        with internals().set_current_trace(self):
            return function.call_wrapped(*given[-1])

    process_custom_vjp_call = process_custom_jvp_call

    def _followed(self, primitive: Any, given: Any, params: Any) -> Any:
        """Return what a primitive gives as real numbers; NotImplemented if nothing."""
        name, core = primitive.name, internals()
        if name in _CALLS:
            jaxpr = params.get("jaxpr", params.get("call_jaxpr"))
            inner, consts = getattr(jaxpr, "jaxpr", jaxpr), getattr(jaxpr, "consts", ())
            with core.set_current_trace(self):
                return core.eval_jaxpr(inner, consts, *given)
        kinds = {each.dtype.kind for each in given if _is_noisy(each)}
        if (name in _OF_FLOATS and kinds & set("iub")) or (
            name in _OF_BOOLS and kinds != {"b"}
        ):
            return NotImplemented
        try:
            numbers = [_numbers(each) for each in given]
            result = NotImplemented
            if name in _FUNCTIONS:
                result = _FUNCTIONS[name](*numbers, **params)
            if result is NotImplemented and name in _MOVING:
                result = self._moved(primitive, numbers, given, params)
            if result is NotImplemented and name in _LINEAR:
                result = self._linear(primitive, numbers, given, params)
        except (TypeError, ValueError):
            return NotImplemented
        if result is NotImplemented:
            return result
        avals = primitive.abstract_eval(*map(core.typeof, given), **params)[0]
        if not primitive.multiple_results:
            return self._rounded(result, numbers, avals)
        every = zip(result, avals, strict=True)
        return [self._rounded(each, numbers, aval) for each, aval in every]

    def _rounded(self, result: Any, numbers: list[Any], aval: Any) -> Any:
        if aval.dtype.kind not in "iub":
            eps = float(loaded("numpy").finfo(aval.dtype).eps)
            note_rounding(result, numbers, eps)
        return self.array(result, aval)

    def _moved(self, primitive: Any, numbers: Any, given: Any, params: Any) -> Any:
        """Return what a primitive gives that only moves entries."""
        listed = _MOVING[primitive.name] or range(len(given))
        moves = [at for at in listed if at < len(given)]
        if any(_is_noisy(e) for at, e in enumerate(given) if at not in moves):
            return NotImplemented
        values = [numbers[at] for at in moves]
        jnp = loaded("numpy")

        def move(*several: Any) -> Any:
            operands = list(given)
            for at, places in zip(moves, several, strict=True):
                operands[at] = jnp.asarray(places, dtype=jnp.int32)
            made = primitive.bind(*operands, **params)
            return list(map(asarray, made)) if type(made) is list else asarray(made)

        tape = next(e.held.tape for e in given if _is_noisy(e))
        with self.plainly():
            return moved_by(move, tape, values)

    def _linear(self, primitive: Any, numbers: Any, given: Any, params: Any) -> Any:
        """Return what a primitive gives that is linear in the operand with noise."""
        noisy = [at for at, each in enumerate(given) if _is_noisy(each)]
        (place, *others), base = noisy, 0.0
        operands = list(given)
        if primitive.name == "scatter-add":
            place, base = 2, numbers[0]
            jnp = loaded("numpy")
            with self.plainly():
                operands[0] = jnp.zeros(given[0].shape, given[0].dtype)
            others = [at for at in noisy if at == 1]
        value, jax = numbers[place], loaded("")
        size = np.size(value)
        if others or not 0 < size <= _MOST_UNITS:
            return NotImplemented

        def of_one(one: Any) -> Any:
            operands[place] = one
            made = primitive.bind(*operands, **params)
            if not primitive.multiple_results:
                return made
            (made,) = made
            return made

        with self.plainly():
            units = np.eye(size).reshape(size, *np.shape(value))
            dtype = given[place].dtype
            columns = jax.vmap(of_one)(jax.numpy.asarray(units, dtype=dtype))
        shape = columns.shape[1:]
        matrix = asarray(columns, dtype=np.float64).reshape(size, -1).T
        made = np.matmul(matrix, value.reshape(-1)).reshape(shape)
        made = made if primitive.name != "scatter-add" else np.add(base, made)
        return [made] if primitive.multiple_results else made


@cache
def _let_in() -> None:
    """Let JAX take numbers with noise of NumPy."""

    def lifted(value: Tracked) -> Any:
        trace = NoiseTrace.now
        if trace is None or not value.noisy:
            return asarray(value)
        with trace.plainly():
            like = loaded("numpy").zeros(value.shape)
        return trace.array(value, internals().typeof(like))

    dtypes = loaded("_src.dtypes")
    dtypes.register_canonicalize_value_handler(Tracked, lifted)


def _numbers(value: Any) -> Any:
    """Return what NumPy knows of an array, in double precision."""
    if _is_noisy(value):
        return value.held
    value = asarray(value)
    return value if value.dtype.kind in "iub" else value.astype(np.float64)


def _dot(left: Any, right: Any, *, dimension_numbers: Any, **more: Any) -> Any:
    (own, other), (batch, _) = dimension_numbers
    if batch or len(own) != 1 or max(left.ndim, right.ndim) > 2:
        return NotImplemented
    return np.matmul(np.moveaxis(left, own[0], -1), np.moveaxis(right, other[0], 0))


def _converted(value: Any, *, new_dtype: Any, **more: Any) -> Any:
    kind = np.dtype(new_dtype).kind
    if kind == "b":
        return np.not_equal(value, 0)
    if value.is_whole():
        return value
    return value.astype(np.int64) if kind in "iu" else value


def _selected(which: Any, *cases: Any) -> Any:
    if not isinstance_tracked(which) or len(cases) != 2:
        return NotImplemented
    return np.where(which, cases[1], cases[0])


def _largest(function: Any) -> Callable[..., Any]:
    def call(x: Any, *, axes: Any, **more: Any) -> Any:
        return function(x) if x.ndim == 1 else NotImplemented

    return call


def _plain(function: Any) -> Callable[..., Any]:
    """Return a function whose parameters say how, and not what."""
    return lambda *numbers, **how: function(*numbers)


def _itself(*numbers: Any, **how: Any) -> Any:
    return numbers[0]


_BY_NUMPY = {
    **{"add": "add", "add_any": "add", "sub": "subtract", "mul": "multiply"},
    **{"div": "true_divide", "pow": "power", "rem": "fmod", "neg": "negative"},
    **{"max": "maximum", "min": "minimum", "lt": "less", "le": "less_equal"},
    **{"gt": "greater", "ge": "greater_equal", "atan2": "arctan2"},
    **{
        name: name
        for name in "exp log log1p expm1 abs sqrt sign floor ceil cos sin tan".split()
    },
    **{name: name for name in "tanh square cbrt".split()},
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _plain(getattr(np, by)) for name, by in _BY_NUMPY.items()},
    **dict.fromkeys(("stop_gradient", "copy", "copy_p", "reduce_precision"), _itself),
    "not": lambda x: np.subtract(1.0, x),
    "rsqrt": lambda x, **how: np.true_divide(1.0, np.sqrt(x)),
    "integer_pow": lambda x, y: np.power(x, y),
    "round": lambda x, rounding_method: (
        np.rint(x) if int(rounding_method) == 1 else NotImplemented
    ),
    "clamp": lambda low, x, high: np.clip(x, low, high),
    "convert_element_type": _converted,
    "select_n": _selected,
    "reduce_sum": lambda x, axes, **how: np.add.reduce(x, axis=tuple(axes)),
    "argmax": _largest(np.argmax),
    "argmin": _largest(np.argmin),
    "dot_general": _dot,
}
"""By their names in JAX, what primitives do with numbers."""
_MOVING: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("reshape", "broadcast_in_dim", "squeeze", "transpose"), (0,)),
    **dict.fromkeys(("slice", "dynamic_slice", "gather", "rev", "expand_dims"), (0,)),
    **dict.fromkeys(("split", "unstack"), (0,)),
    **{"concatenate": (), "stack": (), "pad": (0, 1), "scatter": (0, 2)},
    "dynamic_update_slice": (0, 1),
    "select_n": tuple(range(1, 9)),
}
"""Which operands primitives move, none for all."""
_LINEAR = {
    *("dot_general", "cumsum", "scatter-add", "custom_linear_solve"),
    *("triangular_solve", "conv_general_dilated"),
}
_CALLS = frozenset({"jit", "pjit", "closed_call", "remat", "remat2", "checkpoint"})
_OF_FLOATS = frozenset({"div", "pow", "rem", "integer_pow", "sqrt"})
_OF_BOOLS = frozenset({"not"})
