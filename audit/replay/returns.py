"""The line from which a mechanism returned, for findings about its release."""

import sys
from typing import Any

from dpaudit.arrays import Array
from dpaudit.audit.drawing import ways_to_draw
from dpaudit.audit.replay.executor import execute
from dpaudit.audit.replay.tape import is_code, place_in
from dpaudit.errors import DPAuditError

__all__ = ["place_of_definition", "place_of_return"]


def place_of_return(mechanism: Any, data: Array, seed: int) -> str:
    """Return "file:line" of the last return, or raise, of the mechanism's own code.

    It is executed once more for that, under a profiler's hook; where there is one
    already (a debugger, a measurement of coverage), its definition will do.
    """
    if sys.getprofile() is not None:
        return place_of_definition(mechanism)
    last: list[str] = []

    def hook(frame: Any, event: str, argument: Any) -> None:
        if event == "return" and is_code(frame.f_code.co_filename):
            last[:] = [place_in(frame.f_code.co_filename, frame.f_lineno)]

    sys.setprofile(hook)
    try:
        execute(mechanism, data, seed, follows=False)
    except DPAuditError:
        pass
    finally:
        sys.setprofile(None)
    return last[0] if last else place_of_definition(mechanism)


def place_of_definition(mechanism: Any) -> str:
    """Return "file:line" where a mechanism is defined, "?" if that is not known."""
    one, _ = ways_to_draw(mechanism)
    kind = getattr(mechanism, "release", None) or one
    code = getattr(getattr(kind, "__func__", kind), "__code__", None)
    return "?" if code is None else place_in(code.co_filename, code.co_firstlineno)
