"""What all executions in a block drew, kept so that they can be compared."""

from dataclasses import dataclass, field
from typing import Any, Self

__all__ = ["LOGS", "DrawLog"]

LOGS: list["DrawLog"] = []
"""Those that are kept now."""


@dataclass(frozen=True, slots=True, eq=False)
class DrawLog:
    """What all executions in its block drew.

    Parameters
    ----------
    places : set of str
        Where they drew.
    late : list of Unfollowed
        Where noise of an earlier execution was used.
    """

    places: set[str] = field(default_factory=set)
    late: list[Any] = field(default_factory=list)

    def __enter__(self) -> Self:
        LOGS.append(self)
        return self

    def __exit__(self, *raised: object) -> None:
        LOGS.remove(self)
