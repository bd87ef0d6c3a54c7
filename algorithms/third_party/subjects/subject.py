"""What is audited of a library: a list of subjects, each a few lines.

A subject says how a release is made with the library's public interface, from which
data, and what the library claims of it: the words of its documentation, with the place
where they stand, and the neighbouring relation that these name. Many libraries name
none. Nothing of a library is imported before a release is made.

A module has such a list, named ``SUBJECTS``. A witness names the module and the
subject, so whoever has the library can draw releases again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from dpaudit import Claim, Domain, InputError, PureDP, Relation
from dpaudit.algorithms.shared.bases import Rng
from dpaudit.validation import check_name

__all__ = ["Subject", "Subjects", "subjects_of"]

Make = Callable[[Any, np.random.Generator], Any]


@dataclass(frozen=True)
class Subject:
    """A mechanism or model of a library, and what its documentation says of it.

    Parameters
    ----------
    module : str
        The module that lists it.
    name, library, distribution : str
        In the library, as in ``"tools.mean"``, of what is imported, and installed.
    make : callable
        ``(data, rng) -> release``.
    domain : str
        Legal datasets, as `dpaudit.domains.Domain.parse` takes them. One row where the
        dataset is the input of a mechanism, or what one person has.
    claim : Claim
    relation : Relation or None
        None if the documentation names no relation. Under REPLACE_ONE the number of
        rows is public and fixed: that of the domain.
    stated : str
        Where the claim, and the relation if there is one, are stated.
    """

    module: str
    name: str
    library: str
    distribution: str
    make: Make
    domain: str
    claim: Claim
    relation: Relation | None
    stated: str

    def __post_init__(self) -> None:
        Domain.parse(self.domain)

    def __str__(self) -> str:
        return f"{self.library}.{self.name}"

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The relations that the claim may be read for."""
        return tuple(Relation) if self.relation is None else (self.relation,)

    def mechanism(self) -> "OfLibrary":
        """Return the mechanism, which a witness can name."""
        return OfLibrary(self.module, self.name)


@dataclass(frozen=True)
class OfLibrary:
    """A subject by its name in a module: what audits execute, and witnesses store."""

    module: str
    name: str
    seedable: ClassVar[bool] = False
    """Few libraries take a generator; most draw from the operating system."""

    def release(self, data: Any, *, rng: Rng) -> Any:
        """Return one release of the library.

        Of no rows it is refused: that nothing can be computed of them is no finding.
        """
        known = subjects_of(self.module)
        subject = known[check_name("subject", self.name, tuple(known))]
        sized = subject.relation is Relation.REPLACE_ONE
        least = Domain.parse(subject.domain).n_rows if sized else 1
        if len(data) < least or (sized and len(data) > least):
            raise InputError(
                f"data must have {least} rows{'' if sized else ' or more'}, got "
                f"{len(data)}"
            )
        return subject.make(data, rng)


@dataclass
class Subjects:
    """Collects the subjects of one library.

    Parameters
    ----------
    module : str
        ``__name__`` of the module that lists them.
    library, distribution : str
        As for `Subject`; the distribution is called as the library by default.

    Examples
    --------
    >>> of = Subjects("here", "tables")
    >>> @of("noise.Laplace", "scalar:0,1:rows=1", stated="noise.py: epsilon-DP")
    ... def laplace(data, rng):
    ...     return data[0] + rng.laplace()
    >>> [str(each) for each in of.subjects], of.subjects[0].relations[0].value
    (['tables.noise.Laplace'], 'add-remove')
    """

    module: str
    library: str
    distribution: str = ""
    subjects: list[Subject] = field(default_factory=list)

    def __call__(
        self,
        name: str,
        domain: str,
        *,
        stated: str,
        claim: Claim | None = None,
        relation: Relation | str | None = None,
    ) -> Callable[[Make], Make]:
        """Return a decorator that lists a function as a subject.

        The claim is pure differential privacy at epsilon 1 by default.
        """

        def put(make: Make) -> Make:
            self.subjects.append(
                Subject(
                    module=self.module,
                    name=name,
                    library=self.library,
                    distribution=self.distribution or self.library,
                    make=make,
                    domain=domain,
                    claim=PureDP(1.0) if claim is None else claim,
                    relation=None if relation is None else Relation.parse(relation),
                    stated=stated,
                )
            )
            return make

        return put


def subjects_of(module: str) -> dict[str, Subject]:
    """Return the subjects that a module lists, by their names."""
    try:
        found = import_module(module).SUBJECTS
        return {each.name: each for each in found}
    except (ImportError, AttributeError, TypeError) as error:
        raise InputError(
            f"a module must have a list SUBJECTS, got {module!r} ({error})"
        ) from error
