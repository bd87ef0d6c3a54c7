"""Functions as people write them, as mechanisms.

An audit calls ``function(data, rng)``. A function may as well take its generator under
a name, or a seed, or neither, and draw from `numpy.random`, `random`, or a generator
that it makes without a seed: these are then seeded for every release, from the
generator of the audit, so that releases are independent and come out again. A seed
whose default is a number stays that number, as it does for whoever calls the function:
all releases then have the same noise, which hides nothing. What draws from the
operating system cannot be seeded, and may say so by an attribute ``seedable`` that is
False.
"""

import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from inspect import Parameter, signature
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from dpaudit.errors import InputError
from dpaudit.printable import printable
from dpaudit.streams import draw_seed

__all__ = ["FunctionMechanism"]

_GENERATORS = ("rng", "generator", "prng", "random_generator", "gen", "np_random")
_SEEDS = ("seed", "random_state", "random_seed")
_PRIVACY = ("epsilon", "eps", "delta", "rho", "mu", "sigma", "scale", "sensitivity")
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_MANY = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_ONE_AT_A_TIME = threading.RLock()  # of those that draw from what all threads share


@dataclass(frozen=True)
class FunctionMechanism:
    """A function of a dataset, and of more that is given, as a mechanism.

    Parameters
    ----------
    function : callable
        Its first parameter is the dataset.
    given : mapping of str to object
        Arguments by name.

    Raises
    ------
    InputError
        If it takes no dataset, or something else that is not given.

    Examples
    --------
    >>> def noisy_count(rows, epsilon, seed=None):
    ...     return len(rows) + np.random.default_rng(seed).laplace(scale=1 / epsilon)
    >>> mechanism = FunctionMechanism(noisy_count, {"epsilon": 1.0})
    >>> one, two = (
    ...     mechanism.release([7, 8], rng=np.random.default_rng(0)) for _ in range(2)
    ... )
    >>> one == two
    True
    """

    function: Callable[..., Any]
    given: Mapping[str, Any] = field(default_factory=dict)
    _way: tuple[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"function must be callable, got {self.function!r}")
        way = _randomness(self.function, self.given)
        object.__setattr__(self, "_way", way)
        missing = self.lacking(self.function, self.given)
        if missing:
            given = ", ".join(f"{name}=..." for name in missing)
            raise InputError(
                f"{_name(self.function)} takes {' and '.join(missing)}, which is not "
                f"given: audit functools.partial({_name(self.function)}, {given})"
            )

    @property
    def seedable(self) -> bool:
        """Whether the same seed gives the same release, unless the function says no."""
        return getattr(self.function, "seedable", True) is not False

    def __call__(self, data: Any, rng: np.random.Generator) -> Any:
        return self.release(data, rng=rng)

    def release(self, data: Any, *, rng: np.random.Generator) -> Any:
        """Return one release."""
        name, kind = self._way
        if kind == "generator":
            return self.function(data, **self.given, **{name: rng})
        if kind == "seed":
            return self.function(data, **self.given, **{name: draw_seed(rng)})
        if kind == "second":
            return self.function(data, rng, **self.given)
        with _seeded(rng):
            return self.function(data, **self.given)

    @staticmethod
    def of(function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function as one of a dataset and a generator: itself, if it is one.

        Raises
        ------
        InputError
            As for the class.
        """
        if type(function) in (FunctionType, partial):  # which are equal to none other
            return _known(function)
        return _called(function)

    @staticmethod
    def written(mechanism: Any) -> Any:
        """Return the function that is called in the end; another mechanism as it is."""
        if isinstance(mechanism, partial):
            return FunctionMechanism.written(mechanism.func)
        if isinstance(mechanism, FunctionMechanism):
            return FunctionMechanism.written(mechanism.function)
        return mechanism

    @staticmethod
    def lacking(function: Callable[..., Any], given: Mapping[str, Any]) -> list[str]:
        """Return the parameters of a function that are not given and have no default.

        The dataset, and what its randomness comes from, are not among them.

        Raises
        ------
        InputError
            If it takes no dataset.
        """
        source, _ = _randomness(function, given)
        return [
            each.name
            for each in _parameters(function)[1:]
            if _is_needed(each) and each.name not in (source, *given)
        ]


def _called(function: Any) -> Any:
    mechanism = FunctionMechanism(function)
    return function if mechanism._way[1] == "second" else mechanism


_known = lru_cache(maxsize=64)(_called)


def _randomness(
    function: Callable[..., Any], given: Mapping[str, Any]
) -> tuple[str, str]:
    """Return the parameter by which randomness comes, and as what: "" if none does.

    A second one that has no default, and no other known name, is the generator if
    nothing else is lacking.
    """
    parameters = _parameters(function)
    if not parameters or parameters[0].kind is Parameter.VAR_POSITIONAL:
        return "", "second"  # nobody knows what it takes
    rest = [each for each in parameters[1:] if each.name not in given]
    for each in rest:
        if each.name in _GENERATORS or "Generator" in str(each.annotation):
            beside = each is parameters[1] and each.kind in _POSITIONAL
            return each.name, "second" if beside else "generator"
    for each in rest:
        if each.name in _SEEDS and each.default in (None, Parameter.empty):
            return each.name, "seed"
    needed = [each for each in rest if _is_needed(each)]
    if any(each.kind is Parameter.VAR_POSITIONAL for each in rest[:1]):
        return "", "second"
    if len(needed) == 1 and needed[0] is parameters[1]:
        (only,) = needed
        if only.kind in _POSITIONAL and only.name not in _PRIVACY:
            return only.name, "second"
    return "", ""


def _is_needed(parameter: Parameter) -> bool:
    return parameter.default is Parameter.empty and parameter.kind not in _MANY


def parameters_of(function: Any) -> list[Parameter]:
    """Return the parameters by which a function is called, decorated or not.

    A decorator may take others than what it decorates, such as a generator. Those of
    the function below (``__wrapped__``) are meant where it takes any, and no generator.

    Raises
    ------
    TypeError, ValueError
        If they are not known.
    """
    layer = function
    while isinstance(layer, FunctionType | MethodType) and hasattr(
        layer, "__wrapped__"
    ):
        own = list(signature(layer, follow_wrapped=False).parameters.values())
        generators = {each.name for each in own} & {*_GENERATORS}
        if generators or not any(each.kind in _MANY for each in own):
            return own
        below: Any = getattr(layer, "__wrapped__")  # noqa: B009
        if isinstance(layer, MethodType) and hasattr(below, "__get__"):
            below = below.__get__(layer.__self__)
        layer = below
    return list(signature(layer).parameters.values())


def _parameters(function: Any) -> list[Parameter]:
    """Return the parameters of a function, none if they are not known."""
    try:
        found = parameters_of(function)
    except (TypeError, ValueError):
        return []
    if not found or found[0].kind not in (*_POSITIONAL, Parameter.VAR_POSITIONAL):
        raise InputError(
            f"{_name(function)} takes no dataset: its first parameter must be one, got "
            f"{_name(function)}({', '.join(map(str, found))})"
        )
    return found


def _name(function: Any) -> str:
    return printable(getattr(function, "__name__", type(function).__name__))


@contextmanager
def _seeded(rng: np.random.Generator) -> Iterator[None]:
    """Seed whatever code draws from that is handed no generator, for the block."""
    with _ONE_AT_A_TIME:
        real = np.random.default_rng

        def default_rng(seed: Any = None) -> np.random.Generator:
            return real(draw_seed(rng) if seed is None else seed)

        np.random.seed(draw_seed(rng))  # noqa: NPY002
        random.seed(draw_seed(rng))
        np.random.default_rng = default_rng
        try:
            yield
        finally:
            np.random.default_rng = real
