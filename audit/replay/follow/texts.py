"""Texts of draws alone, which may become exact numbers.

``Decimal(str(noise))`` is the noise, over the real numbers. So a text of draws, to
which nothing was added yet, waits: if it becomes a number, that is the noise, and if
nothing comes of it until the execution ends, it was an ordinary text, and is noted so.
Whatever else is done with it looks at the draws at once.
"""

import re
from collections.abc import Callable
from typing import Any

from dpaudit.audit.replay.follow.places import place_of_caller
from dpaudit.printable import printable

__all__ = ["Text", "written"]

_NUMBER = re.compile(r"(?<![\w.])[-+]?(\d+)(\.\d*)?(?:[eE][-+]?\d+)?(?![\w.])")

_AS_TEXT = "noise is used as a text"
_TWICE = "a text of noise becomes a number, and is used as a text as well"
_READ = {"__str__", "__repr__", "__format__", "__hash__", "__eq__", "__ne__"}
_READ |= {"__lt__", "__le__", "__gt__", "__ge__", "__reduce_ex__"}


class Text(str):
    """The text of a draw.

    Parameters
    ----------
    text : str
    noise : Tracked
    """

    noise: Any
    place: str
    taken: bool
    __slots__ = ("noise", "place", "taken")

    def __new__(cls, text: str, noise: Any) -> "Text":
        made = super().__new__(cls, text)
        made.noise, made.place, made.taken = noise, place_of_caller(), False
        noise.tape.draws.texts.append(made)
        return made

    def number(self) -> Any:
        """Return the noise, as a number."""
        self.taken = True
        return self.noise.reshape(())

    def end(self) -> None:
        """Note that it became no number, if it did not."""
        if not self.taken:
            self.noise.tape.coin(_AS_TEXT, place=self.place)


def _seen(name: str) -> Callable[..., Any]:
    """Return a method of texts that looks at the noise."""
    real = getattr(str, name)

    def method(self: Text, *args: Any, **kwargs: Any) -> Any:
        if self.taken:
            self.noise.tape.cannot_follow(_TWICE)
        self.noise.looked_at("str")
        return real(self, *args, **kwargs)

    return method


for _name in _READ.union(dir(str)).difference(set(dir(object)) - _READ):
    if callable(getattr(str, _name)):
        setattr(Text, _name, _seen(_name))


def written(text: str) -> str:
    """Return how numbers in a text are written that have no point, or zeros in front.

    3 and 3.0 are one number, and who reads the text knows which of them stands there.
    More digits or fewer may be rounding, and are left out.
    """
    forms = []
    for found in _NUMBER.finditer(text):
        whole = found[1]
        padded = len(whole) > 1 and whole[0] == "0"
        forms.append(("0" * len(whole) if padded else "1") + ".0" * bool(found[2]))
    if {"1.0"}.issuperset(forms):
        return ""
    return f" written {printable(', '.join(forms), longest=60)}"
