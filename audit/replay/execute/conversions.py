"""Functions of Python's own that are replaced, so that they keep noise.

**Names.** ``float(noise)`` is an ordinary number, whatever an object of ours returns,
and the noise cannot be told from it. So the module that defines the mechanism gets the
names ``float``, ``int`` and ``complex`` for classes that leave draws as they are while
nothing was added to them; its ``sum`` adds no 0 to them. Python looks for names in a
module before it looks for its own. In any other module the result is an ordinary
number, and counts as a coin. The same holds for fractions and decimal numbers, under
every name that the module gives them.
"""

import bisect
import decimal
import json
import math
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from decimal import Decimal
from fractions import Fraction
from functools import partial, reduce
from inspect import unwrap
from operator import add
from typing import Any

import numpy as np

from dpaudit.audit.replay.declare.held import HeldArray
from dpaudit.audit.replay.follow.derived import derived
from dpaudit.audit.replay.follow.directions import directed, norm
from dpaudit.audit.replay.follow.places import is_code
from dpaudit.audit.replay.follow.selection import searchsorted, select
from dpaudit.audit.replay.follow.texts import Text
from dpaudit.audit.replay.follow.tracked import Tracked, has_noise, isinstance_tracked
from dpaudit.audit.replay.laws.one_draw import DrawLaw
from dpaudit.streams import FunctionMechanism

__all__ = ["conversions", "drawn_by_name", "like", "named"]

_MATH = {
    **{name: name for name in ("copysign", "cos", "exp", "expm1", "log", "log10")},
    **{name: name for name in ("log1p", "log2", "sin", "sqrt", "tan", "floor", "ceil")},
    **{"fabs": "absolute", "pow": "power", "atan": "arctan"},
}
"""Functions of Python's, and what they are called in NumPy."""
_BISECT = {"bisect": "right", "bisect_right": "right", "bisect_left": "left"}


def conversions() -> Iterator[tuple[Any, str, Any]]:
    """Yield owners, names, and what stands there during an execution."""
    ours: list[tuple[Any, str, Callable[..., Any]]] = [
        *((math, name, partial(_of_noise, numpys)) for name, numpys in _MATH.items()),
        *((bisect, name, partial(_bisected, side)) for name, side in _BISECT.items()),
        (math, "dist", _distance),
        (math, "hypot", _length),
        (statistics.NormalDist, "inv_cdf", _normal),
        (json.JSONEncoder, "default", _default),
    ]
    from scipy import stats  # slow to import: by who executes alone

    for kind in (stats.rv_continuous, stats.rv_discrete):
        ours += ((kind, name, partial(_quantiles, name)) for name in ("ppf", "isf"))
    for owner, name, function in ours:
        yield owner, name, _asked_first(function, getattr(owner, name))
    yield math, "fsum", _summed(math.fsum)
    yield decimal, "Decimal", _EXACT[Decimal]


def like(real: type, made_by: Callable[..., Any], **more: Any) -> type:
    """Return a class that stands for another one, whose instances a function makes."""

    class StandIn(type(real)):  # type: ignore[misc]
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return made_by(*args, **kwargs)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, real)

        def __subclasscheck__(cls, kind: type) -> bool:
            return type.__subclasscheck__(real, kind)

        # Where types are looked up in a table, as in ``T=float``.
        def __eq__(cls, other: object) -> bool:
            return other is cls or other is real

        def __hash__(cls) -> int:
            return hash(real)

    return StandIn(real.__name__, (real,), {"stands_for": real, **more})


def _asked_first(ours: Callable[..., Any], real: Any) -> Callable[..., Any]:
    """Return a function that is ours where that gives something, else the real one."""

    def call(*args: Any, **kwargs: Any) -> Any:
        made = ours(*args, **kwargs)
        return real(*args, **kwargs) if made is NotImplemented else made

    return call


def _of_noise(name: str, *args: Any) -> Any:
    """Return what a function of `math` makes of draws alone."""
    if not any(map(isinstance_tracked, args)):
        return NotImplemented
    made = directed(name, args)
    return derived(name, *args) if made is NotImplemented else made


def _summed(real: Any) -> Callable[..., Any]:
    def fsum(seq: Any, /) -> Any:
        numbers = list(seq)
        return reduce(add, numbers) if has_noise(numbers) else real(numbers)

    return fsum


def _length(*coordinates: Any) -> Any:
    """Return the length of a vector of draws alone as one draw."""
    if not all(isinstance_tracked(each) and each.is_alone for each in coordinates):
        return NotImplemented
    parts = list(coordinates)
    return norm(Tracked.joined(parts[0].tape, parts)) if parts else NotImplemented


def _distance(p: Any, q: Any, /) -> Any:
    for one, other in ((p, q), (q, p)):
        if has_noise([*one]) and not has_noise([*other]) and not any(other):
            return math.hypot(*one)
    return NotImplemented


def drawn_by_name(real: Any, recorder_of: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return what draws by a law of SciPy's, followed by its name if that is known.

    Parameters
    ----------
    real : callable
        ``rvs`` of SciPy's laws.
    recorder_of : callable
        Returns what draws for a ``random_state``, and the recorder, or None.
    """

    def rvs(self: Any, *args: Any, **kwargs: Any) -> Any:
        discrete = {"discrete": True} if kwargs.pop("discrete", None) else {}
        state = kwargs.pop("random_state", None)
        state, rng = recorder_of(self._random_state if state is None else state)
        if rng is not None and not has_noise([*args, *kwargs.values()]):
            parameters, loc, scale, size = self._parse_args_rvs(*args, **kwargs)
            if np.all(self._argcheck(*parameters)) and np.all(scale > 0):
                made = _named(self, rng, parameters, size)
                if made is not NotImplemented:
                    made = made if np.all(scale == 1) else made * scale
                    made = made if np.all(loc == 0) else made + loc
                    if discrete and not isinstance_tracked(made):
                        whole = np.asarray(made).astype(np.int64)
                        return whole if whole.ndim else int(whole)
                    return made
        made = real(self, *args, **kwargs, **discrete, random_state=state)
        placed = "loc" in kwargs or len(args) > self.numargs
        if isinstance_tracked(made) and made.noisy and not placed:
            return Tracked(made.tape, made.centre, made.terms, bare=True)
        return made

    return rvs


def _named(law: Any, rng: Any, parameters: Any, size: Any) -> Any:
    """Return standard draws of a law of SciPy's, NotImplemented if it is not known."""
    size, name = None if size == () else size, str(law.name)

    def drawn(generator: Any) -> Any:
        shape = () if size is None else size
        return law._rvs(*parameters, size=shape, random_state=generator)

    if hasattr(law, "xk"):  # a table of one's own
        noise = DrawLaw.on_lattice(law.xk, law.pk) if law.xk.ndim == 1 else None
        return NotImplemented if noise is None else rng.of_noise(noise, drawn, size)
    own: Any = getattr(sys.modules["scipy.stats"], name, None)
    if type(own) is not type(law):
        return NotImplemented
    return rng.by_name(name, tuple(each[()] for each in parameters), drawn, size)


def _bisected(side: str, a: Any, x: Any, *more: Any, **kwargs: Any) -> Any:
    if not (isinstance_tracked(x) and x.noisy) or more or kwargs:
        return NotImplemented
    place = searchsorted(a, x, side)
    return place if place is NotImplemented else int(place)


def _quantiles(name: str, self: Any, q: Any, *args: Any, **kwargs: Any) -> Any:
    """Return what a method of SciPy's laws makes of draws alone."""
    own: Any = getattr(sys.modules["scipy.stats"], str(self.name), None)
    count = self.numargs
    more = dict(zip(("loc", "scale"), args[count:], strict=False)) | kwargs
    plain = len(args) >= count and not set(more) - {"loc", "scale"}
    if not (isinstance_tracked(q) and type(own) is type(self) and plain):
        return NotImplemented
    made = derived(f"{self.name}.{name}", q, *args[:count])
    if made is NotImplemented:
        return made
    return made * more.get("scale", 1) + more.get("loc", 0)


def _normal(self: Any, p: Any) -> Any:
    """Return the quantiles of Python's own normal law."""
    made = derived("norm.ppf", p) if isinstance_tracked(p) else NotImplemented
    return made if made is NotImplemented else made * self.stdev + self.mean


def _default(self: Any, o: Any) -> Any:
    """Return numbers with noise as JSON: NumPy's doubles are floats to it."""
    noisy = isinstance_tracked(o) and not o.ndim
    return o.looked_at("json").tolist() if noisy else NotImplemented


def _waits(value: Any) -> bool:
    """Say whether a number with noise may stay what it is.

    Draws alone may, and all of them in executions that decide what the code compares.
    """
    keeps = value.tape.mode.keeps and value.noisy and not value.tape.closed
    return bool(value.is_alone or keeps)


def _float(value: Any = 0.0, /) -> Any:
    if type(value) is Text:
        return value.number()
    held = value.held if issubclass(type(value), HeldArray) else value
    if isinstance_tracked(held) and held.size == 1 and _waits(held):
        return held.reshape(())
    return float(value)


def _int(*args: Any, **kwargs: Any) -> Any:
    value, *more = args or (0,)
    held = value.held if issubclass(type(value), HeldArray) else value
    if isinstance_tracked(held) and held.size == 1 and _waits(held):
        held = held.reshape(())
        if held.on_lattice() or held.is_whole():
            return held
        made = derived("trunc", held)
        if made is not NotImplemented:
            return made
    return int(value, *more, **kwargs)


def _complex(*args: Any, **kwargs: Any) -> Any:
    if 1 <= len(args) <= 2 and not kwargs and has_noise(list(args)):
        real, imag = (*args, 0.0)[:2]
        if not (np.ndim(real) or np.ndim(imag)):
            return real + 1j * imag if len(args) > 1 else real * (1 + 0j)
    return complex(*args, **kwargs)


def _exact(real: Any) -> Callable[..., Any]:
    """Return what makes exact numbers: noise, and its text, stay what they are."""

    def make(*args: Any, **kwargs: Any) -> Any:
        value = args[0] if len(args) == 1 and not kwargs else None
        if type(value) is Text:
            return value.number()
        if value is not None and isinstance_tracked(value) and value.noisy:
            return value.reshape(())
        if len(args) == 2 and isinstance_tracked(args[0]) and not kwargs:
            return args[0] / args[1]
        return real(*args, **kwargs)

    return make


_EXACT = {real: like(real, _exact(real)) for real in (Fraction, Decimal)}


def _sum(iterable: Any, /, start: Any = 0) -> Any:
    numbers = list(iterable)
    if type(start) is int and start == 0 and has_noise(numbers):
        return reduce(add, numbers)
    return sum(numbers, start)


def _extreme(real: Any, sign: float) -> Callable[..., Any]:
    """Return ``max``, or ``min``, by noisy keys: which is ahead is one choice."""

    def call(*args: Any, **kwargs: Any) -> Any:
        key = kwargs.get("key")
        if len(args) == 1 and set(kwargs) <= {"key"}:
            items = list(args[0])
            keys = items if key is None else [*map(key, items)]
            pairs = len(keys) > 1 and all(type(e) is tuple and e for e in keys)
            numbers = [each[0] for each in keys] if pairs else keys
            if (pairs or key is not None) and all(map(_is_one, numbers)) and numbers:
                joined = Tracked.joined(numbers[0].tape, numbers)
                if (place := select(joined, sign)) is not None:
                    return items[place]
            if key is not None and items:
                return items[real(range(len(keys)), key=keys.__getitem__)]
            args = (items,)
        return real(*args, **kwargs)

    return call


def _is_one(value: Any) -> bool:
    """Say whether it is one number with noise."""
    return bool(isinstance_tracked(value) and value.noisy and value.size == 1)


_CONVERSIONS: dict[str, Any] = {
    "sum": _sum,
    "max": _extreme(max, 1.0),
    "min": _extreme(min, -1.0),
    "complex": like(complex, _complex, dtype=np.dtype(np.complex128)),
    "float": like(float, _float, dtype=np.dtype(np.float64)),
    "int": like(int, _int, dtype=np.dtype(np.int64)),
}
"""What stands for names of Python in the module of a mechanism."""


@contextmanager
def named(
    mechanism: Any, *, follows: bool
) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Define the names in the module of a mechanism for the block.

    Yielded is what makes blocks in it in which they are Python's own again.
    """
    space: Any = _space_of(mechanism) if follows else None
    if space is None:
        yield nullcontext
        return
    ours = {name: each for name, each in _CONVERSIONS.items() if name not in space}
    exact = {
        name: real
        for name, real in space.items()
        if isinstance(real, type) and real in _EXACT
    }
    ours |= {name: _EXACT[real] for name, real in exact.items()}

    def put_back() -> None:
        for name, each in ours.items():
            if space.get(name) is each:
                del space[name]
                space.update({name: exact[name]} if name in exact else {})

    @contextmanager
    def plainly() -> Iterator[None]:
        put_back()
        try:
            yield
        finally:
            space.update(ours)

    try:
        space.update(ours)
        yield plainly
    finally:
        put_back()


def _space_of(mechanism: Any) -> dict[str, Any] | None:
    """Return the names of the module that defines a mechanism; not of our own ones."""
    mechanism = FunctionMechanism.written(mechanism)
    function = unwrap(getattr(mechanism, "release", None) or mechanism)
    function = getattr(function, "__func__", function)
    if not hasattr(function, "__code__"):
        function = vars(type(function)).get("__call__")
    code, space = (
        getattr(function, f"__{each}__", None) for each in ("code", "globals")
    )
    if code is None or space is None or not is_code(code.co_filename):
        return None
    own = str(space.get("__name__", "")).partition(".")[0] == "dpaudit"
    return None if own else space
