"""What some names of Python are in the module of a mechanism while it is executed.

What ``float(noise)`` gives is an ordinary number, from which no noise can be told. So
``float``, ``int`` and ``complex`` stand, in the module that defines the mechanism, for
classes that leave draws what they are if nothing was added to them yet; ``sum`` adds no
0 to them. Python looks for names in a module before it looks for its own. In any other
module it is an ordinary number, and a coin.
So it is with fractions and decimal numbers, by whatever name they go in the module.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from inspect import unwrap
from typing import Any

from dpaudit.audit.replay.follow.places import is_code
from dpaudit.functions import FunctionMechanism

__all__ = ["CONVERSIONS", "EXACT", "named"]

CONVERSIONS: dict[str, Any] = {}
"""What stands for them: `dpaudit.audit.replay.execute.conversions` fills it in."""
EXACT: dict[type, type] = {}
"""The same for fractions and decimal numbers."""


@contextmanager
def named(mechanism: Any, *, follows: bool) -> Iterator[None]:
    """Define the names in the module of a mechanism for the block."""
    space = _space_of(mechanism) if follows else None
    if space is None:
        yield
        return
    ours = {name: each for name, each in CONVERSIONS.items() if name not in space}
    exact = {
        name: (real, EXACT[real])
        for name, real in space.items()
        if isinstance(real, type) and real in EXACT
    }
    try:
        space.update(ours, **{name: each for name, (_, each) in exact.items()})
        yield
    finally:
        for name, each in ours.items():
            if space.get(name) is each:
                del space[name]
        for name, (real, each) in exact.items():
            if space.get(name) is each:
                space[name] = real


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
