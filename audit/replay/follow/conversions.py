"""Ways from numbers with noise to Python's own: each looks at the numbers."""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.arrays import Array

__all__ = ["Conversions"]


class Conversions:
    """What Python and NumPy ask of an array that is to become something else."""

    __slots__ = ()

    def looked_at(self, how: str) -> Array:
        """Return the numbers as an ordinary array, with a note on the tape."""
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.looked_at("array")
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.looked_at(name), name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return np.asarray(self.looked_at("pickle")).__reduce_ex__(protocol)

    __hash__ = None  # type: ignore[assignment]


def _native(array: Array) -> Any:
    return array if array.ndim else float(array)


def _looking(how: str, convert: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that looks at the numbers, and converts them."""

    def method(self: Conversions, *arguments: Any) -> Any:
        return convert(self.looked_at(how), *arguments)

    return method


_CONVERSIONS: dict[str, Callable[..., Any]] = {
    "float": float,
    "int": int,
    "complex": complex,
    "bool": bool,
    "index": lambda array: operator.index(array[()]),
    "round": lambda array, digits=None: round(float(array), digits),
    "trunc": lambda array: math.trunc(float(array)),
    "floor": lambda array: math.floor(float(array)),
    "ceil": lambda array: math.ceil(float(array)),
    "format": lambda array, form: format(_native(array), form),
    "str": lambda array: str(_native(array)),
    "repr": lambda array: repr(_native(array)),
    "contains": operator.contains,
    "reduce": lambda array: _native(array).__reduce__(),
}
for _name, _convert in _CONVERSIONS.items():
    setattr(Conversions, f"__{_name}__", _looking(_name, _convert))
