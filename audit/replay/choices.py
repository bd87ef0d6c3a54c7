"""`np.argmax` of numbers with noise."""

from typing import Any

__all__ = ["argmax"]


def argmax(a: Any, axis: Any = None, out: Any = None, **more: Any) -> Any:
    """Return NotImplemented: the numbers are looked at."""
    return NotImplemented
