"""Named constructors that say what is their own, and hand on the rest.

A mechanism is a dataclass, and a constructor such as `calibrated` or `as_published`
computes some of its fields from a promise. The others it takes as the class does, and
hands them on. Which these are is data: `hands_on` reads their types and defaults from
the class, `inspect.signature` shows them, and the class documents them.

Those that mechanisms of clipped rows share, noise for a promise, are here too.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, wraps
from inspect import Parameter, signature
from types import FunctionType, MethodType
from typing import Any, Self, TypeVar, cast, get_type_hints

from dpaudit.claims import ApproxDP, Claim, GaussianDP, PureDP
from dpaudit.gaussian import gaussian_mu
from dpaudit.validation import check_positive

__all__ = ["GaussianCalibrated", "PureCalibrated", "hands_on"]

_F = TypeVar("_F", bound=Callable[..., Any])


def hands_on(
    *names: str,
    but: tuple[str, ...] = (),
    to: str = "",
    also: str = "",
    **defaults: Any,
) -> Callable[[_F], _F]:
    """Return a decorator for a class method that ends in ``cls(..., **fields)``.

    Parameters
    ----------
    *names : str
        The fields of the class that it takes besides its own arguments.
    but : tuple of str
        In place of names: it takes all fields but these.
    to : str
        The attribute of the class that says whose fields they are. Default: its own.
    also : str
        The class method whose keyword arguments it takes as well.
    **defaults
        Further fields, with other defaults than the class has.

    Examples
    --------
    >>> from dataclasses import dataclass, field
    >>> @dataclass
    ... class Box:
    ...     volume: float
    ...     colour: str = "red"
    ...     marks: list[str] = field(default_factory=list)
    ...
    ...     @hands_on(but=("volume",))
    ...     @classmethod
    ...     def cube(cls, side: float, **fields):
    ...         return cls(volume=side**3, **fields)
    >>> Box.cube(2.0, colour="blue", marks=None)
    Box(volume=8.0, colour='blue', marks=[])
    >>> print(signature(Box.cube))
    (side: float, *, colour: str = 'red', marks: list[str] = None)
    """

    def decorate(method: _F) -> _F:
        function = cast(Any, method).__func__
        names_of = (*names, *defaults)
        return cast(_F, _HandingOn(function, names_of, but, to, also, defaults))

    return decorate


class _HandingOn(classmethod):  # type: ignore[type-arg]
    """A class method whose signature has fields of the class that it is of."""

    def __init__(
        self,
        function: FunctionType,
        names: tuple[str, ...],
        but: tuple[str, ...],
        to: str,
        also: str,
        defaults: dict[str, Any],
    ) -> None:
        super().__init__(function)
        self._names, self._but, self._to = names, but, to
        self._also, self._defaults = also, defaults
        self._made = cache(self._make)

    def __get__(self, instance: object, owner: type | None = None) -> MethodType:
        kind = type(instance) if owner is None else owner
        return MethodType(self._made(kind), kind)

    def _make(self, kind: Any) -> Callable[..., Any]:
        """Return the function for a class, which takes the class."""
        function, defaults = cast(FunctionType, self.__func__), self._defaults
        whole = signature(function)
        shown = [
            each
            for each in whole.parameters.values()
            if each.kind is not Parameter.VAR_KEYWORD
        ]
        made, source = set(), getattr(kind, self._to, None) if self._to else kind
        known = fields(source) if is_dataclass(source) else ()
        types = get_type_hints(source) if known else {}
        for each in known:
            named = each.name in (self._but or self._names)
            if named is bool(self._but) or each.name in whole.parameters:
                continue
            default = defaults.get(each.name, each.default)
            if each.default_factory is not MISSING:
                made.add(each.name)
                default = None
            default = Parameter.empty if default is MISSING else default
            shown.append(
                Parameter(
                    each.name,
                    Parameter.KEYWORD_ONLY,
                    default=default,
                    annotation=types[each.name],
                )
            )
        if self._also:
            more = signature(getattr(kind, self._also)).parameters.values()
            shown += [each for each in more if each.kind is Parameter.KEYWORD_ONLY]

        @wraps(function)
        def constructor(cls: Any, *args: Any, **given: Any) -> Any:
            # None asks for what the class makes where nothing is given.
            asked = {k: v for k, v in given.items() if k not in made or v is not None}
            return function(cls, *args, **(defaults | asked))

        cast(Any, constructor).__signature__ = whole.replace(parameters=shown)
        return constructor


class PureCalibrated(ABC):
    """A mechanism that has the least noise for a pure epsilon."""

    @classmethod
    @abstractmethod
    def _at(cls, epsilon: float, claim: Claim, **fields: Any) -> Self:
        """Return the mechanism at the least noise for epsilon, with the claim."""

    @hands_on("relation", "row_norm")
    @classmethod
    def calibrated(cls, epsilon: float, **fields: Any) -> Self:
        """Return the mechanism at the least noise proven to be epsilon-DP."""
        epsilon = check_positive("epsilon", epsilon)
        return cls._at(epsilon, PureDP(epsilon), **fields)


class GaussianCalibrated(ABC):
    """A mechanism that has the least noise for a mu of Gaussian DP."""

    @classmethod
    @abstractmethod
    def _at(cls, mu: float, claim: Claim, **fields: Any) -> Self:
        """Return the mechanism at the least noise for mu, with the claim."""

    @hands_on("relation", "row_norm")
    @classmethod
    def calibrated(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return the mechanism at the least noise that is (epsilon, delta)-DP."""
        mu = gaussian_mu(epsilon, delta)
        return cls._at(mu, ApproxDP(epsilon, delta), **fields)

    @hands_on("relation", "row_norm")
    @classmethod
    def from_mu(cls, mu: float, **fields: Any) -> Self:
        """Return the mechanism at the least noise that is mu-GDP."""
        return cls._at(mu, GaussianDP(mu), **fields)
