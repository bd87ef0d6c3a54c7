"""What stands at paths of libraries that are loaded, and is replaced for a block."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

__all__ = ["TRAINING", "replaced"]

TRAINING = frozenset({"jax_privacy", "opacus"})
"""Libraries that train."""

_INHERITED = ("normal_", "uniform_", "exponential_")
"""Methods of a class of C, which the class under it may have for a while."""


@contextmanager
def replaced(several: Iterable[tuple[str, Callable[[Any], Any]]]) -> Iterator[None]:
    """Replace what stands at some paths for the block.

    Parameters
    ----------
    several : iterable of (str, callable)
        Paths, and functions from an object there to the one that replaces it, None if
        none does. An object that is not loaded, or not callable, stays as it is.
    """
    with ExitStack() as stack:
        for path, replacement in several:
            if path.partition(".")[0] not in sys.modules:
                continue
            owner, name = _owner(path)
            own = vars(owner).get(name) if owner is not None else None
            inherited = own is None and name in _INHERITED
            real = getattr(owner, name, None) if inherited else own
            new = replacement(real) if callable(real) else None
            if new is not None:
                setattr(owner, name, new)
                if inherited:
                    stack.callback(delattr, owner, name)
                else:
                    stack.callback(setattr, owner, name, real)
        yield


def _owner(path: str) -> tuple[Any, str]:
    """Return the module, or class, that a path leads to if it is loaded; and a name."""
    parts = path.split(".")
    for end in range(len(parts) - 1, 0, -1):
        found: Any = sys.modules.get(".".join(parts[:end]))
        if found is None:
            continue
        for part in parts[end:-1]:
            found = getattr(found, part, None)
        return found, parts[-1]
    return None, parts[-1]
