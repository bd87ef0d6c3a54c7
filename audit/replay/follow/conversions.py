"""Ways from numbers with noise to Python's own: each looks at the numbers."""

import math
import operator
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

    def __float__(self) -> float:
        return float(self.looked_at("float"))

    def __int__(self) -> int:
        return int(self.looked_at("int"))

    def __index__(self) -> int:
        return operator.index(self.looked_at("index")[()])

    def __complex__(self) -> complex:
        return complex(self.looked_at("complex"))

    def __bool__(self) -> bool:
        return bool(self.looked_at("bool"))

    def __round__(self, digits: int | None = None) -> Any:
        return round(float(self.looked_at("round")), digits)

    def __trunc__(self) -> int:
        return math.trunc(float(self.looked_at("trunc")))

    def __floor__(self) -> int:
        return math.floor(float(self.looked_at("floor")))

    def __ceil__(self) -> int:
        return math.ceil(float(self.looked_at("ceil")))

    def __format__(self, form: str) -> str:
        return format(self._native("format"), form)

    def __str__(self) -> str:
        return str(self._native("str"))

    def __repr__(self) -> str:
        return repr(self._native("repr"))

    def __contains__(self, item: Any) -> bool:
        return item in self.looked_at("in")

    def __reduce__(self) -> Any:
        return self._native("pickle").__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return np.asarray(self.looked_at("pickle")).__reduce_ex__(protocol)

    __hash__ = None  # type: ignore[assignment]

    def _native(self, how: str) -> Any:
        array = self.looked_at(how)
        return array if array.ndim else float(array)
