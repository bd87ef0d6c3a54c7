"""Declarations of primitives: a kernel, and where the fields of it are found."""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.audit.replay.declare.declarations import KERNELS
from dpaudit.audit.replay.laws.comparison import AnyLaw
from dpaudit.errors import InputError
from dpaudit.validation import check_name

__all__ = ["Declaration"]

_FUNCTIONS = ("distance",)  # fields that are functions, and not found by one


@dataclass(frozen=True)
class Declaration:
    """The kernel of a primitive, and where its fields are found.

    Parameters
    ----------
    kernel : callable
        Fields -> a law.
    fields : mapping
        As for `primitive`.
    arguments : tuple of str
        Names of the arguments of compiled code, which has no signature.
    trusted : bool
        Whether what is declared is taken for granted.
    bits : bool
        Whether doubles are audited of a primitive that is not trusted.
    """

    kernel: Callable[..., AnyLaw]
    fields: Mapping[str, Any]
    arguments: tuple[str, ...] = ()
    trusted: bool = True
    bits: bool = False

    @classmethod
    def of(
        cls,
        kernel: str,
        fields: Mapping[str, Any],
        *,
        trusted: bool = True,
        bits: bool = False,
    ) -> "Declaration":
        """Return a declaration, or raise `InputError` if it cannot be one."""
        make = KERNELS[check_name("kernel", kernel, tuple(KERNELS))]
        known = inspect.signature(make).parameters
        for name in fields:
            check_name(f"field of {kernel!r}", name, tuple(known))
        for name, each in known.items():
            if each.default is each.empty and name not in fields:
                raise InputError(f"{kernel!r} needs {name}=")
        if {"norm", "distance"} <= fields.keys():
            raise InputError("norm and distance exclude each other")
        for name, value in fields.items():
            if name in _FUNCTIONS and not (isinstance(value, str) or callable(value)):
                raise InputError(f"{name} must be a function, got {value!r}")
            if not (isinstance(value, str) or callable(value)):
                _check_constant(name, value)
        for name, value in (("trusted", trusted), ("bits", bits)):
            if not isinstance(value, bool):
                raise InputError(f"{name} must be True or False, got {value!r}")
        if bits and trusted:
            raise InputError("bits is of primitives that are not trusted alone")
        return cls(make, dict(fields), trusted=trusted, bits=bits)

    def signature_of(self, function: Callable[..., Any]) -> inspect.Signature:
        """Return the signature of a function, which must have all that is named."""
        signature = _signature(function, self.arguments)
        for name, value in self.fields.items():
            for wanted in _arguments(name, value):
                if wanted not in signature.parameters:
                    shown = getattr(function, "__qualname__", repr(function))
                    has = ", ".join(signature.parameters) or "none"
                    raise InputError(
                        f"{name} names the argument {wanted!r}, which {shown} lacks "
                        f"(it has: {has})"
                    )
        return signature

    def read(self, arguments: Mapping[str, Any]) -> AnyLaw:
        """Return the law of a call with these arguments."""
        values = {
            name: _field(name, self.fields[name], arguments) for name in self.fields
        }
        return self.kernel(**values)


def _signature(
    function: Callable[..., Any], known: tuple[str, ...] = ()
) -> inspect.Signature:
    if known:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(name, kind) for name in known])
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        raise InputError(f"{function!r} has no signature, and cannot be used") from None


def _arguments(name: str, value: Any) -> list[str]:
    """Return the arguments that a field needs."""
    if isinstance(value, str):
        return [value.partition(".")[0]]
    if name in _FUNCTIONS or not callable(value):
        return []
    return list(_signature(value).parameters)


def _field(name: str, value: Any, arguments: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        head, *attributes = value.split(".")
        return functools.reduce(getattr, attributes, arguments[head])
    if name not in _FUNCTIONS and callable(value):
        return value(**{each: arguments[each] for each in _arguments(name, value)})
    return value


def _check_constant(name: str, value: Any) -> None:
    """Raise if a constant is none that a field can have."""
    if name in ("candidates", "outcomes", "norm"):
        return
    try:
        numbers = np.asarray([] if value is None else value, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if not numbers.size:
        raise InputError(f"{name} must be a number, got {value!r}")
    if np.isnan(numbers).any():
        raise InputError(f"{name} must not be NaN, got {value!r}")
    positive = name in ("scale", "sensitivity", "epsilon")
    if positive and not (np.isfinite(numbers) & (numbers > 0)).all():
        raise InputError(f"{name} must be a finite number > 0, got {value!r}")
