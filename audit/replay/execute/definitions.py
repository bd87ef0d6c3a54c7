"""Where a mechanism is defined."""

import linecache
from typing import Any

from dpaudit.audit.replay.follow.places import place_in
from dpaudit.audit.sampling.draws import ways_to_draw
from dpaudit.functions import FunctionMechanism

__all__ = ["place_of_definition"]


def place_of_definition(mechanism: Any) -> str:
    """Return ``file:line`` where a mechanism is defined, "?" if that is not known."""
    one, _ = ways_to_draw(mechanism)
    mechanism = FunctionMechanism.written(mechanism)
    kind = getattr(mechanism, "release", None) or FunctionMechanism.written(one)
    code = getattr(getattr(kind, "__func__", kind), "__code__", None)
    if code is None:
        return "?"
    line = first = code.co_firstlineno
    last = max((at for *_, at in code.co_lines() if at), default=first)
    if linecache.getline(code.co_filename, first).lstrip().startswith("@"):
        below = range(first + 1, last + 1)  # decorators may have several lines
        line = next((at for at in below if _defines(code.co_filename, at)), first)
    return place_in(code.co_filename, line)


def _defines(file: str, line: int) -> bool:
    words = "def ", "async def ", "class "
    return linecache.getline(file, line).lstrip().startswith(words)
