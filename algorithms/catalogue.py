"""The catalogue: every mechanism by name, with its source and how to build it.

The command line, the checks, the benchmarks and the report read it. The mechanisms of a
family are declared in ``entries.toml`` of its folder: ``about`` says what the family
is, ``[all]`` what is true of all its mechanisms, a table what is true of one. Tables
have the fields of `Entry`, but

- ``made_by``: the module of the family, and the constructor in it;
- ``refuted_within``: releases, and ``refuted_on``: the place of the pair, of a
  `Refutation`.
"""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from dpaudit import ApproxDP, Claim, InputError, Mechanism, PureDP, Relation
from dpaudit.validation import check_name

__all__ = ["CATALOGUE", "FAMILIES", "Entry", "Refutation", "build", "entry", "names_of"]


@dataclass(frozen=True)
class Refutation:
    """How soon an audit must refute a false claim, in ``pytest audit/``.

    At confidence 0.999 it does within so many releases a side, with room for bad luck,
    on one of the pairs that the mechanism names.
    """

    releases: int
    pair: int = 0


_TAKEN = {
    "approximate": "delta",
    "has_row_norm": "row_norm",
    "has_components": "n_components",
}
"""What is asked of an entry, and the parameter of a constructor that answers it."""


@dataclass(frozen=True)
class Entry:
    """A mechanism that dpaudit knows by name: what is said of it anywhere.

    The command line, the checks, the tests, the report and the tables of the pages read
    it.

    Parameters
    ----------
    name : str
    family : str
        What is perturbed; "textbook" for the suite with known truth; "third-party" for
        what others wrote.
    source : str
        Paper and place, or "dpaudit".
    summary : str
        One line.
    released : str, optional
        What a release is, of rows of length d and k components asked for; empty if the
        summary begins with it.
    constructor : callable
        Named constructor taking epsilon; delta if `approximate`; relation if there is
        more than one; row_norm if `has_row_norm`, the public norm that rows are clipped
        to; n_components if `has_components`, fixed beforehand: what is released is a
        basis of them. Its signature is where these are read, unless they are given.
    refutation : Refutation, optional
        Given if the claim is false on a pair that it names, at the entry's own epsilon,
        by so much that an audit must refute it. (A claim can be false by less than
        sampling can show; then only the exact layer says so.)
    epsilon : float
        The claim when none is asked for.
    relations : tuple of Relation, optional
        Those for which the claim can be made; the first is the default. If none are
        given, both for a constructor that takes a relation, and else the one of its
        class, or REPLACE_ONE.
    extra : str, optional
        The optional requirement without which nothing can be drawn: the name of the
        extra of dpaudit, and of the package that it installs.
    truth : float, optional
        The smallest true epsilon, over all neighbours and events, at the entry's own
        epsilon (and delta 1e-5 if `approximate`), to four digits, where it is known by
        proof: of textbook mechanisms.
    lost : str
        With it: what is wrong, if anything, and the event by which most is lost.
    """

    name: str
    family: str
    source: str
    summary: str
    constructor: Callable[..., Mechanism]
    approximate: bool = field(default=None)  # type: ignore[assignment]
    refutation: Refutation | None = None
    epsilon: float = 1.0
    relations: tuple[Relation, ...] = ()
    has_row_norm: bool = field(default=None)  # type: ignore[assignment]
    has_components: bool = field(default=None)  # type: ignore[assignment]
    extra: str | None = None
    truth: float | None = None
    lost: str = ""
    released: str = ""

    def __post_init__(self) -> None:
        accepted = signature(self.constructor).parameters
        for name, parameter in _TAKEN.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, parameter in accepted)
        if not self.relations:
            fixed = getattr(self.owner, "relation", None)
            one = fixed if isinstance(fixed, Relation) else Relation.REPLACE_ONE
            relations = tuple(Relation) if "relation" in accepted else (one,)
            object.__setattr__(self, "relations", relations)

    @property
    def claim(self) -> Claim:
        """The claim at the entry's own epsilon, and delta 1e-5 if it has one."""
        if self.approximate:
            return ApproxDP(self.epsilon, 1e-5)
        return PureDP(self.epsilon)

    @property
    def owner(self) -> Any:
        """The class whose method the constructor is; or the constructor, a function."""
        return getattr(self.constructor, "__self__", self.constructor)

    @property
    def made_by(self) -> str:
        """The constructor by its name, with that of its class."""
        name = str(self.constructor.__name__)
        owner = self.owner
        return name if owner is self.constructor else f"{owner.__name__}.{name}"

    @property
    def planted(self) -> bool:
        """Whether its claim is no one's, but made up to be false."""
        return "planted" in self.source

    @property
    def expected_refuted(self) -> bool:
        """Whether an audit must refute the claim."""
        return self.refutation is not None

    @property
    def installed(self) -> bool:
        """Whether the library is there that the mechanism is from, if it needs one."""
        return self.extra is None or find_spec(self.extra) is not None

    def build(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 1e-5,
        relation: Relation | str | None = None,
        row_norm: float | None = None,
        n_components: int | None = None,
    ) -> Mechanism:
        """Return the mechanism; delta is not used where the claim is pure.

        By default epsilon is the entry's own, the relation the first of its relations,
        and row norm and number of components 1, where there are such. Other relations
        are refused, and so is a norm or a number for a mechanism that has none.
        """
        options: dict[str, Any] = {}
        chosen = self.relations[0] if relation is None else Relation.parse(relation)
        if chosen not in self.relations:
            raise InputError(
                f"relation of {self.name} must be one of "
                f"{[r.value for r in self.relations]}, got {chosen.value!r}"
            )
        if len(self.relations) > 1:
            options["relation"] = chosen
        if row_norm is not None and not self.has_row_norm:
            raise InputError(
                f"{self.name} has no row_norm: the range of its rows is fixed, "
                f"got {row_norm!r}"
            )
        if n_components is not None and not self.has_components:
            raise InputError(
                f"{self.name} has no n_components: its releases give any number of "
                f"components, or none at all, got {n_components!r}"
            )
        if self.has_components:
            options["n_components"] = 1 if n_components is None else n_components
        if self.has_row_norm:
            options["row_norm"] = 1.0 if row_norm is None else row_norm
        if self.approximate:
            options["delta"] = delta
        return self.constructor(self.epsilon if epsilon is None else epsilon, **options)


CATALOGUE: dict[str, Entry] = {}
"""Every entry by its name; those of libraries that are not installed, too."""

FAMILIES: dict[str, str] = {}
"""What each family is, in the order of the catalogue."""


def _declare(family: str) -> None:
    """Read what is declared of a family."""
    folder = family.replace("-", "_")
    path = Path(__file__).with_name(folder) / "entries.toml"
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    FAMILIES[family] = tables.pop("about")
    shared = tables.pop("all", {})
    for name, table in tables.items():
        told = {**shared, **table}
        made_by = f"dpaudit.algorithms.{folder}.{told.pop('made_by')}"
        pair = told.pop("refuted_on", 0)
        if "refuted_within" in told:
            told["refutation"] = Refutation(told.pop("refuted_within"), pair)
        told["relations"] = tuple(map(Relation, told.get("relations", ())))
        CATALOGUE[name] = Entry(
            name=name, family=family, constructor=resolve_name(made_by), **told
        )


for _family in (
    "covariance",
    "subspace",
    "streaming",
    "robust",
    "online",
    "training",
    "textbook",
    "third-party",
):
    _declare(_family)


def entry(name: str) -> Entry:
    """Return the entry of that name, or raise with the nearest suggestion.

    Examples
    --------
    >>> entry("goe-gausian")
    Traceback (most recent call last):
        ...
    dpaudit.errors.InputError: unknown mechanism 'goe-gausian'; did you mean ...
    """
    return CATALOGUE[check_name("mechanism", name, tuple(CATALOGUE))]


def names_of(family: str) -> tuple[str, ...]:
    """Return the names of a family's mechanisms, in the order of the catalogue."""
    check_name("family", family, tuple({e.family for e in CATALOGUE.values()}))
    return tuple(name for name, e in CATALOGUE.items() if e.family == family)


def build(name: str, **options: Any) -> Mechanism:
    """Return the mechanism of that name; options as for `Entry.build`."""
    return entry(name).build(**options)
