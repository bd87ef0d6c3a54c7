"""Named constructors that say what is their own, and hand on the rest.

A mechanism is a dataclass, and a constructor such as `calibrated` or `as_published`
computes some of its fields from a promise. The others it takes as the class does, and
hands them on. Which these are is data: `hands_on` reads their types and defaults from
the class, `inspect.signature` shows them, and the class documents them.

Those that mechanisms of clipped rows share, noise for a promise, are here too.
"""

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, wraps
from inspect import Parameter, signature
from types import FunctionType, MethodType
from typing import Any, ClassVar, Self, TypeVar, cast, get_type_hints

from dpaudit import ApproxDP, Claim, GaussianDP, InputError, PureDP
from dpaudit.gaussian import gaussian_mu
from dpaudit.validation import check_positive

__all__ = ["GaussianCalibrated", "PureCalibrated", "hands_on"]

_F = TypeVar("_F", bound=Callable[..., Any])

_COMPUTED = set("claim multiplier noise rule scale sigma split".split())
_COMPUTED |= {"epsilon", "excess", "mu", "unit_scale"}


def hands_on(
    *names: str, to: str = "", also: str = "", **defaults: Any
) -> Callable[[_F], _F]:
    """Return a decorator for a class method that ends in ``cls(..., **fields)``.

    A class that releases one component, and says which mechanism releases `several`, is
    asked for ``n_components`` too, and refuses any other number than 1.

    Parameters
    ----------
    *names : str
        The fields of the class that it takes besides its own arguments. If none are
        named: all but those that constructors compute, the claim and the noise.
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
    ...     scale: float
    ...     colour: str = "red"
    ...     marks: list[str] = field(default_factory=list)
    ...
    ...     @hands_on()
    ...     @classmethod
    ...     def cube(cls, side: float, **fields):
    ...         return cls(scale=side**3, **fields)
    >>> Box.cube(2.0, colour="blue", marks=None)
    Box(scale=8.0, colour='blue', marks=[])
    >>> print(signature(Box.cube))
    (side: float, *, colour: str = 'red', marks: list[str] = None)
    """

    def decorate(method: _F) -> _F:
        function = cast(Any, method).__func__
        return cast(_F, _HandingOn(function, (*names, *defaults), to, also, defaults))

    return decorate


class _HandingOn(classmethod):  # type: ignore[type-arg]
    """A class method whose signature has fields of the class that it is of."""

    def __init__(
        self,
        function: FunctionType,
        names: tuple[str, ...],
        to: str,
        also: str,
        defaults: dict[str, Any],
    ) -> None:
        super().__init__(function)
        self._names, self._to, self._also = names, to, also
        self._defaults = defaults
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
        made = set(defaults)
        source = getattr(kind, self._to, None) if self._to else kind
        known = fields(source) if is_dataclass(source) else ()
        types = get_type_hints(source) if known else {}
        for each in known:
            named = each.name in (self._names or _COMPUTED)
            if named is not bool(self._names) or each.name in whole.parameters:
                continue
            default = defaults.get(each.name, each.default)
            if each.default_factory is not MISSING:
                made.add(each.name)
                default = None
            default = Parameter.empty if default is MISSING else default
            one = Parameter(each.name, Parameter.KEYWORD_ONLY, default=default)
            shown.append(one.replace(annotation=types[each.name]))
        if self._also:
            more = signature(getattr(kind, self._also)).parameters.values()
            shown += [each for each in more if each.kind is Parameter.KEYWORD_ONLY]
        if several := getattr(kind, "several", ""):
            one = Parameter("n_components", Parameter.KEYWORD_ONLY, default=1)
            shown.append(one.replace(annotation=int))

        @wraps(function)
        def constructor(cls: Any, *args: Any, **given: Any) -> Any:
            if several and ((k := given.pop("n_components", 1)) != 1 or k is True):
                raise InputError(
                    f"n_components of {kind.__name__} must be 1, got {k!r}; for more "
                    f"see {several}"
                )
            # None asks for what is taken, or made, where nothing is given.
            asked = {k: v for k, v in given.items() if k not in made or v is not None}
            return function(cls, *args, **(defaults | asked))

        cast(Any, constructor).__signature__ = whole.replace(parameters=shown)
        return constructor


class _Calibrated:
    """A mechanism that has the least noise for a promise."""

    _least: ClassVar[str]
    """The field by which it is told; what has another one has an `_at` of its own."""

    @classmethod
    def _at(cls, least: float, claim: Claim, /, **fields: Any) -> Self:
        """Return the mechanism at the least noise for what it is told by."""
        kind: Any = cls
        return kind(**{cls._least: least}, claim=claim, **fields)


class PureCalibrated(_Calibrated):
    """A mechanism that has the least noise for a pure epsilon."""

    _least = "epsilon"

    @hands_on()
    @classmethod
    def calibrated(cls, epsilon: float, **fields: Any) -> Self:
        """Return the mechanism at the least noise proven to be epsilon-DP."""
        epsilon = check_positive("epsilon", epsilon)
        return cls._at(epsilon, PureDP(epsilon), **fields)


class GaussianCalibrated(_Calibrated):
    """A mechanism that has the least noise for a mu of Gaussian DP."""

    _least = "mu"

    @hands_on()
    @classmethod
    def calibrated(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return the mechanism at the least noise that is (epsilon, delta)-DP."""
        mu = gaussian_mu(epsilon, delta)
        return cls._at(mu, ApproxDP(epsilon, delta), **fields)

    @hands_on()
    @classmethod
    def from_mu(cls, mu: float, **fields: Any) -> Self:
        """Return the mechanism at the least noise that is mu-GDP."""
        return cls._at(mu, GaussianDP(mu), **fields)
