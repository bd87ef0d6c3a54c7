"""Primitives of libraries, by their import paths.

They are declared while a mechanism is executed, if the library is loaded: nothing is
imported here, and all is put back after any exit. The declarations are
read off the sources (diffprivlib 0.6, OpenDP 0.16, PyDP 1.1, multi-freq-ldpy 0.2); a
class or argument that another version lacks is left alone, and its randomness cannot be
followed then.
"""

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np

from dpaudit.audit.replay.declare.declaration import Declaration
from dpaudit.audit.replay.declare.declarations import KERNELS, TrustedLaw
from dpaudit.audit.replay.declare.primitives import declared
from dpaudit.audit.replay.laws.comparison import AnyLaw
from dpaudit.claims import ApproxDP, Claim, PureDP, ZeroConcentratedDP
from dpaudit.errors import InputError

__all__ = ["declared_libraries", "loaded_libraries", "register", "replaced"]

_TRAINING = frozenset({"jax_privacy", "opacus"})  # libraries that train
_MOST_ROWS = 2_000  # of lists whose insertions and deletions are counted


# -- diffprivlib


def _laplace_scale(self: Any) -> float:
    return float(self.sensitivity / (self.epsilon - math.log(1 - self.delta)))


def _categories(self: Any) -> list[Any]:
    return list(self._normalising_constant)


def _of(kernel: str, value: Any = "value", **fields: Any) -> Declaration:
    return Declaration.of(kernel, {"value": value, **fields})


def _trusted(**fields: Any) -> Declaration:
    names = ("sensitivity", "epsilon", "delta")
    return _of("trusted", **{name: f"self.{name}" for name in names} | fields)


_BOUNDS = {"lower": "self.lower", "upper": "self.upper"}
_GEOMETRIC = {"scale": lambda self: self.sensitivity / self.epsilon}
_CHOICE = {
    "scores": "self.utility",
    "scale": lambda self: self.sensitivity * (2 - self.monotonic) / self.epsilon,
    "candidates": lambda self: self.candidates or None,
}
_DIFFPRIVLIB = {
    "Laplace": _of("laplace", scale=_laplace_scale),
    "LaplaceTruncated": _of("laplace", scale=_laplace_scale, **_BOUNDS),
    "LaplaceFolded": _of("folded-laplace", scale=_laplace_scale, **_BOUNDS),
    "LaplaceBoundedDomain": _of(
        "truncated-laplace",
        scale=lambda self: self._find_scale() if self._scale is None else self._scale,
        **_BOUNDS,
    ),
    "LaplaceBoundedNoise": _trusted(),
    "Geometric": _of("discrete-laplace", **_GEOMETRIC),
    "GeometricTruncated": _of("discrete-laplace", **_GEOMETRIC, **_BOUNDS),
    "GeometricFolded": _trusted(),
    "Gaussian": _of("gaussian", scale="self._scale"),
    "GaussianDiscrete": _of("discrete-gaussian", scale="self._scale"),
    "Binary": _of(
        "randomised-response",
        truth=lambda self: 1 / (1 + math.exp(-self.epsilon)),
        outcomes=lambda self: [self.value0, self.value1],
    ),
    "Exponential": Declaration.of(
        "exponential", {**_CHOICE, "measure": lambda self: self.measure or None}
    ),
    "PermuteAndFlip": Declaration.of("permute-and-flip", _CHOICE),
    "ExponentialCategorical": Declaration.of(
        "exponential",
        {
            "scores": lambda self, value: [
                math.log(self._get_prob(value, other)) for other in _categories(self)
            ],
            "scale": 1.0,
            "candidates": _categories,
        },
    ),
    "Staircase": _trusted(),
    "Snapping": _trusted(),
    "Uniform": _trusted(),
    # Its input and output are functions, so that a call of it is not followed.
    "Vector": _trusted(sensitivity="self.function_sensitivity"),
    "Bingham": _trusted(norm=2),
}


# -- OpenDP


def _opendp(measurement: Any, value: Any) -> TrustedLaw:
    """Return what the map of a measurement promises."""
    metric = str(measurement.input_metric)
    measure = str(measurement.output_measure)
    distance = _METRICS.get(metric.partition("(")[0])

    def promise(far: float) -> Claim | None:
        number = int(far) if far == int(far) else far
        for each in dict.fromkeys((number, float(far))):
            try:
                return _claim(measure, measurement.map(each))
            except Exception:  # the map takes numbers of one type
                continue
        return None

    return TrustedLaw(
        list(value) if isinstance(value, list) else value,
        (metric, measure, _made_by(measurement)),
        lambda x, x2: math.nan if distance is None else distance(x, x2),
        promise,
        f"the measurement, of {metric} to {measure}, promises nothing for that",
    )


def _claim(measure: str, spent: Any) -> Claim | None:
    """Return the claim that is meant by an output distance."""
    numbers = spent if isinstance(spent, tuple) else (spent,)
    if not all(isinstance(e, float | int) and math.isfinite(e) for e in numbers):
        return None
    kind = _MEASURES.get((measure, len(numbers)))
    return None if kind is None else kind(max(numbers[0], 1e-100), *numbers[1:])


def _made_by(measurement: Any) -> Any:
    """Return what a measurement was made of, by which it is known again."""
    made = getattr(measurement, "__opendp_dict__", None)
    if isinstance(made, dict):
        return tuple((key, _made_of(value)) for key, value in sorted(made.items()))
    return id(measurement)


def _made_of(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((str(key), _made_of(part)) for key, part in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(_made_of, value))
    if hasattr(value, "__opendp_dict__"):
        return _made_by(value)
    if hasattr(value, "origin"):  # a type, or a metric of one
        return str(value)
    return repr(value) if isinstance(value, str | int | float | None) else id(value)


def _symmetric(x: Any, x2: Any) -> float:
    count, count2 = Counter(map(repr, _rows(x))), Counter(map(repr, _rows(x2)))
    return float((count - count2).total() + (count2 - count).total())


def _insert_delete(x: Any, x2: Any) -> float:
    one, two = _rows(x), _rows(x2)
    if max(len(one), len(two)) > _MOST_ROWS:
        return math.nan
    # The longest common part, row by row.
    longest = np.zeros(len(two) + 1)
    for row in one:
        equal = np.array([row == other for other in two], dtype=float)
        longest[1:] = np.maximum.accumulate(
            np.maximum(longest[1:], longest[:-1] + equal)
        )
    return float(len(one) + len(two) - 2 * longest[-1])


def _hamming(x: Any, x2: Any) -> float:
    one, two = _rows(x), _rows(x2)
    if len(one) != len(two):
        return math.nan
    return float(sum(a != b for a, b in zip(one, two, strict=True)))


def _change_one(x: Any, x2: Any) -> float:
    same_length = len(_rows(x)) == len(_rows(x2))
    return _symmetric(x, x2) / 2 if same_length else math.nan


def _rows(x: Any) -> list[Any]:
    return np.asarray(x).tolist() if isinstance(x, np.ndarray) else list(x)


def _norm(order: float) -> Callable[[Any, Any], float]:
    def distance(x: Any, x2: Any) -> float:
        one, two = (np.ravel(np.asarray(each, dtype=np.float64)) for each in (x, x2))
        return (
            float(np.linalg.norm(one - two, order))
            if len(one) == len(two)
            else math.nan
        )

    return distance


_MEASURES: dict[tuple[str, int], Callable[..., Claim]] = {
    ("MaxDivergence", 1): PureDP,
    ("ZeroConcentratedDivergence", 1): ZeroConcentratedDP,
    ("Approximate(MaxDivergence)", 2): ApproxDP,
}
_METRICS: dict[str, Callable[[Any, Any], float]] = {
    "SymmetricDistance": _symmetric,
    "InsertDeleteDistance": _insert_delete,
    "HammingDistance": _hamming,
    "ChangeOneDistance": _change_one,
    "DiscreteDistance": lambda x, x2: float(x != x2),
    "AbsoluteDistance": _norm(1),
    "L1Distance": _norm(1),
    "L2Distance": _norm(2),
    "LInfDistance": _norm(math.inf),
}


# -- PyDP, on which PipelineDP stands


def _numerical(mechanism: Any, value: Any) -> AnyLaw:
    """Return the law of a compiled mechanism, by the class that it is of."""
    if hasattr(mechanism, "diversity"):
        return KERNELS["laplace"](value=value, scale=mechanism.diversity)
    return KERNELS["gaussian"](value=value, scale=mechanism.std)


# -- multi-freq-ldpy


# -- the registry


_LDP = "multi_freq_ldpy.pure_frequency_oracles"
_OURS: dict[str, Declaration] = {
    f"diffprivlib.mechanisms.{name}.randomise": declaration
    for name, declaration in _DIFFPRIVLIB.items()
} | {
    f"opendp.mod.Measurement.{name}": Declaration(
        _opendp, {"measurement": "self", "value": "arg"}
    )
    for name in ("__call__", "invoke")
}
_OURS |= {
    "pydp._pydp._mechanisms.NumericalMechanism.add_noise": Declaration(
        _numerical, {"mechanism": "self", "value": "value"}, ("self", "value")
    ),
    f"{_LDP}.GRR.GRR_Client": _of(
        *("randomised-response", "input_data"),
        truth=lambda k, epsilon: 1 / (1 + (int(k) - 1) * math.exp(-epsilon)),
        outcomes="k",
    ),
    f"{_LDP}.HE.HE_Client": _of(
        *("laplace", lambda input_data, k: np.eye(int(k))[int(input_data)]),
        scale=lambda epsilon: 2 / epsilon,
    ),
}
_HEADS = {path.partition(".")[0] for path in _OURS} | _TRAINING
_yours: dict[str, Declaration] = {}


def register(
    path: str, kernel: str, *, trusted: bool = True, bits: bool = False, **fields: Any
) -> None:
    """Declare a primitive of a library that you cannot decorate, for `replay`.

    Parameters
    ----------
    path : str
        Where the function, or the method of a class, is looked up when it is called:
        ``"library.module.Class.method"``. A path that is registered already is
        declared anew. The library need not be loaded, and is not by this.
    kernel, trusted, bits, **fields
        As for `primitive`.

    Raises
    ------
    InputError
        As `primitive` does; of arguments that the function lacks only when a mechanism
        is executed.

    Examples
    --------
    >>> register("tables.noise.Noise.add", "laplace", value="x", scale="self.b")
    """
    parts = path.split(".") if isinstance(path, str) else []
    if len(parts) < 2 or not all(part.isidentifier() for part in parts):
        raise InputError(f"path must be one like 'library.function', got {path!r}")
    _yours[path] = Declaration.of(kernel, fields, trusted=trusted, bits=bits)


def loaded_libraries() -> frozenset[str]:
    """Return the libraries with registered primitives that are loaded by now."""
    yours = {path.partition(".")[0] for path in _yours}
    return frozenset(sys.modules.keys() & (_HEADS | yours))


def declared_libraries() -> AbstractContextManager[Any]:
    """Declare the primitives of all libraries that are loaded, for the block."""
    every = (_OURS | _yours).items() if loaded_libraries() else ()
    return replaced((path, partial(_wrapped, path, each)) for path, each in every)


_made: dict[str, tuple[Any, Declaration, Any]] = {}


def _wrapped(path: str, declaration: Declaration, real: Any) -> Any:
    """Return a declared primitive; None where ours name what this version lacks."""
    known = _made.get(path)
    if known is None or known[0] is not real or known[1] is not declaration:
        try:
            wrapped = declared(declaration, real)
        except InputError:
            if path in _yours:
                raise
            wrapped = None
        known = _made[path] = (real, declaration, wrapped)
    return known[2]


# -- what stands at paths of libraries


@contextmanager
def replaced(
    several: Iterable[tuple[str, Callable[[Any], Any]]],
) -> Iterator[dict[int, Any]]:
    """Replace what stands at some paths for the block.

    Yielded is what replaces each, by its `id`.

    Parameters
    ----------
    several : iterable of (str, callable)
        Paths, and functions from an object there to the one that replaces it, None if
        none does. An object that is not loaded, or not callable, stays as it is.
    """
    made: dict[int, Any] = {}
    with ExitStack() as stack:
        for path, replacement in several:
            if path.partition(".")[0] not in sys.modules:
                continue
            owner, name = _owner(path)
            own = vars(owner).get(name) if owner is not None else None
            # Methods of a class of C, which the class under it may have for a while.
            inherited = own is None and path.startswith("torch.Tensor.")
            real = getattr(owner, name, None) if inherited else own
            new = replacement(real) if callable(real) else None
            if new is not None:
                setattr(owner, name, new)
                if inherited:
                    stack.callback(delattr, owner, name)
                else:
                    stack.callback(setattr, owner, name, real)
                made[id(real)] = new
        yield made


def _owner(path: str) -> tuple[Any, str]:
    """Return the module, or class, that a path leads to if it is loaded; and a name."""
    parts = path.split(".")
    for end in range(len(parts) - 1, 0, -1):
        found: Any = sys.modules.get(".".join(parts[:end]))
        if found is None:
            continue
        for part in parts[end:-1]:
            found = getattr(found, part, None)
        return found, parts[-1]
    return None, parts[-1]
