"""What an object holds, where its attributes are all of it, or it is a tensor.

A dataclass is its fields, and an ordinary object its attributes: there is nothing in it
that these do not say, if

- its class is at the top level of a module, so that no function around it keeps more;
- all of its state is in them. `object.__reduce_ex__` says what a pickle would keep, and
  refuses objects that have memory of their own (compiled code's, a generator's);
- the class does not read or keep attributes in a way of its own;
- no name begins with an underscore, which asks not to be looked at. A field may: it is
  shown when the dataclass is printed.

A member of an enumeration is its name, a graph of networkx its nodes, edges and what is
said of them. What a class holds is not looked at.
"""

import dataclasses
import sys
from collections.abc import AsyncIterator, Awaitable, Coroutine
from enum import Enum
from numbers import Number
from types import SimpleNamespace
from typing import Any

import numpy as np

from dpaudit.errors import MechanismError

__all__ = ["array_of_tensor", "attributes_of"]

_OWN = "__reduce__", "__reduce_ex__", "__getstate__", "__getattribute__"


def attributes_of(value: Any) -> dict[str, Any] | None:
    """Return what an object holds by its names; None if it may hold anything else.

    Of a number it is None as well.

    Examples
    --------
    >>> attributes_of(SimpleNamespace(count=3.5))
    {'count': 3.5}
    >>> attributes_of(iter([3.5])) is None
    True
    """
    check_awaited(value)
    kind = type(value)
    if isinstance(value, type | Number) or "<locals>" in kind.__qualname__:
        return None
    if isinstance(value, Enum):
        return {"name": value.name}
    if str(kind.__module__).startswith("networkx.") and hasattr(kind, "adjacency"):
        nodes, edges = dict(value.nodes(data=True)), dict(value.adjacency())
        return {"graph": value.graph, "nodes": nodes, "edges": edges}
    if kind is SimpleNamespace:
        return _public(vars(value))
    if dataclasses.is_dataclass(kind):
        names = [each.name for each in dataclasses.fields(kind)]
        if kind.__getattribute__ is not object.__getattribute__:
            return None
        if not (vars(value) if hasattr(value, "__dict__") else {}).keys() <= {*names}:
            return None
        return {name: getattr(value, name, None) for name in names}
    if any(getattr(kind, name) is not getattr(object, name) for name in _OWN):
        return None
    try:
        kept: Any = object.__reduce_ex__(value, 2)
    except Exception:
        return None
    _, made_of, state, *more = kept
    if len(made_of) != 1 or any(each is not None for each in more):
        return None  # an entry, or a number, besides
    both = state if isinstance(state, tuple) else (state, None)
    return _public({name: part[name] for part in both if part for name in part})


def array_of_tensor(value: Any) -> Any:
    """Return the entries of a tensor of PyTorch that NumPy does not take as it is.

    It has a gradient, or a short type, or is on a device. Of anything else, and where
    it holds more than its entries (which of them are zero), it is an array of objects.
    """
    kind = getattr(sys.modules.get("torch"), "Tensor", ())
    if not isinstance(value, kind) or str(value.layout) != "torch.strided":
        return np.empty(0, object)
    value = value.detach().cpu().resolve_conj().resolve_neg()
    return np.asarray(value.double() if value.is_floating_point() else value)


def check_awaited(value: object) -> None:
    """Raise `MechanismError` if an async function returned it, before it is awaited."""
    if isinstance(value, Awaitable | AsyncIterator):
        if isinstance(value, Coroutine):
            value.close()  # or Python warns of each
        raise MechanismError(
            f"the mechanism returns {type(value).__name__}, which nobody awaits: audit "
            "a function that is not async, and returns asyncio.run(...)"
        )


def _public(held: dict[str, Any]) -> dict[str, Any] | None:
    """Return attributes, None if there are none, or private ones."""
    return held if held and all(name[0] != "_" for name in held) else None
