"""What the results of all kinds of audits have in common."""

import math
from collections.abc import Sequence
from dataclasses import fields
from enum import Enum, StrEnum
from html import escape
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

import numpy as np

from dpaudit.claims import Claim

__all__ = ["UNFOUNDED", "Judged", "PrintedResult", "Verdict"]

UNFOUNDED = (
    "releases were seen not to be independent draws with the rng that is handed over, "
    "which every statement assumes. Draw all randomness from rng (other libraries can "
    "be seeded from it), and keep nothing from one call to the next. What cannot be "
    "changed and takes fresh randomness from the operating system for each release may "
    "say so by an attribute (below a function f: f.seedable = False); a program in a "
    "process of its own is audited by dpaudit.adapters.from_command"
)
"""Why there is no verdict, and how to go on."""


class Verdict(StrEnum):
    """What sampling can say about a privacy claim."""

    REFUTED = "REFUTED"
    NOT_REFUTED = "NOT_REFUTED"
    NO_VERDICT = "NO_VERDICT"


@runtime_checkable
class Judged(Protocol):
    """What an audit says of a claim, however it looked at the mechanism.

    Bounds, and what else was measured, are the kinds' own.
    """

    @property
    def name(self) -> str:
        """What was audited."""
        ...

    @property
    def claim(self) -> Claim:
        """What it was held to."""
        ...

    @property
    def verdict(self) -> Any:
        """A word: REFUTED, NOT_REFUTED, or why there is neither."""
        ...

    @property
    def confidence(self) -> float:
        """A true claim is refuted with probability at most 1 - confidence."""
        ...

    @property
    def refuted(self) -> bool:
        """Whether the verdict is REFUTED."""
        ...

    @property
    def findings(self) -> Sequence[Any]:
        """What speaks against the claim: each in words, if printed."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready Python."""
        ...


class PrintedResult:
    """A result whose text has a first line, then lines of a name and what it says.

    A notebook shows it as a table.
    """

    derived: ClassVar[tuple[str, ...]] = ()
    """What is told of it beside its fields: properties."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready Python; infinity and NaN are words."""
        names = [each.name for each in fields(cast(Any, self))]
        names.extend(self.derived)
        return {name: _plain(getattr(self, name)) for name in names}

    def rows(self) -> list[tuple[str, str]]:
        """Return what is printed after the first line: a name, if any, and a text."""
        cells = (line.strip().partition("  ") for line in str(self).splitlines()[1:])
        return [
            (name, text.strip()) if gap else ("", name) for name, gap, text in cells
        ]

    def _repr_html_(self) -> str:
        head = str(self).partition("\n")[0]
        body = "".join(
            f"<tr><th style='text-align: left'>{escape(name)}</th>"
            f"<td style='text-align: left'>{escape(text)}</td></tr>"
            for name, text in self.rows()
        )
        table = f"<table><tbody>{body}</tbody></table>"
        return f"<p><strong>{escape(head)}</strong></p>{table}"


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it: infinity and NaN are words."""
    match value:
        case Enum():
            return value.value
        case np.ndarray():
            return _plain(value.tolist())
        case float() if not math.isfinite(value):
            return str(float(value))
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
    return value.to_dict() if hasattr(value, "to_dict") else value
