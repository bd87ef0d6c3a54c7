"""Modules that convert draws by ``float`` or ``int``, and what these are there.

What ``float(noise)`` gives is an ordinary number, from which no noise can be told. If
nothing was added to the draw yet, the release is not followed then. So the module that
calls it by name is kept in mind; the execution is made again, in which the name stands
for something that keeps the noise. Python looks for names in a module before it looks
for its own.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dpaudit.audit.replay.follow.places import caller, spelled

__all__ = ["CONVERSIONS", "known_modules", "named", "note_conversion"]

CONVERSIONS: dict[str, type] = {}
"""What stands for ``float`` and ``int``: `dpaudit.audit.replay.execute.conversions`."""
_modules: list[dict[str, Any]] = []


def known_modules() -> int:
    """Return in how many modules draws are known to be converted."""
    return len(_modules)


def note_conversion(name: str) -> None:
    """Keep in mind where a draw is converted, if that can be followed."""
    frame = caller(sys._getframe(1))
    if frame is None or not spelled(frame, name):
        return
    space = frame.f_globals
    if not any(space is each for each in _modules) and CONVERSIONS.keys().isdisjoint(
        space
    ):
        _modules.append(space)


@contextmanager
def named(*, follows: bool) -> Iterator[None]:
    """Define the names in these modules for the block."""
    spaces = _modules.copy() if follows else []
    try:
        for space in spaces:
            space.update(CONVERSIONS)
        yield
    finally:
        for space in spaces:
            for name, ours in CONVERSIONS.items():
                if space.get(name) is ours:
                    del space[name]
