"""Lines of a mechanism, for findings about its release."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dpaudit.audit.replay.follow.places import is_code, place_in
from dpaudit.audit.sampling.draws import ways_to_draw

__all__ = ["place_of_definition", "watching_returns"]


@contextmanager
def watching_returns() -> Iterator[list[str]]:
    """Keep ``file:line`` of the last return, or raise, of the audited code in a list.

    By a profiler's hook; where there is one already (a measurement of coverage, say),
    the list stays empty.
    """
    last: list[str] = []
    if sys.getprofile() is not None:
        yield last
        return

    def hook(frame: Any, event: str, argument: Any) -> None:
        if event == "return" and is_code(frame.f_code.co_filename):
            last[:] = [place_in(frame.f_code.co_filename, frame.f_lineno)]

    sys.setprofile(hook)
    try:
        yield last
    finally:
        sys.setprofile(None)


def place_of_definition(mechanism: Any) -> str:
    """Return ``file:line`` where a mechanism is defined, "?" if that is not known."""
    one, _ = ways_to_draw(mechanism)
    kind = getattr(mechanism, "release", None) or one
    code = getattr(getattr(kind, "__func__", kind), "__code__", None)
    return "?" if code is None else place_in(code.co_filename, code.co_firstlineno)
