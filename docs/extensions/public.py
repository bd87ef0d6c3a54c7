"""Which modules the reference is about."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module

__all__ = ["modules"]

INTERNAL = (
    "dpaudit.__main__",
    "dpaudit.cli",  # has pages of its own: commands.md
    "dpaudit.audit.checks",
    "dpaudit.algorithms.third_party.subjects",
    "dpaudit.reports.",
)
"""Where modules begin that nobody but dpaudit calls."""

CALLED = ("dpaudit.reports.comparison.run", "dpaudit.reports.writer")
"""Those among them that users call nevertheless."""


def modules() -> Iterator[str]:
    """Yield the names of all public modules."""
    root = import_module("dpaudit")
    yield root.__name__
    for _, name, _ in pkgutil.walk_packages(root.__path__, "dpaudit."):
        if name in CALLED or not name.startswith(INTERNAL):
            yield name
