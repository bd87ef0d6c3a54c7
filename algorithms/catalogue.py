"""The catalogue: every mechanism by name, with its source and how to build it.

The command line, the checks, the benchmarks and the report read it. Adding a mechanism
takes one entry in `entries.py` of its family.
"""

from typing import Any

from dpaudit.algorithms.covariance.entries import COVARIANCE
from dpaudit.algorithms.entries import Entry
from dpaudit.algorithms.online.entries import ONLINE
from dpaudit.algorithms.robust.entries import ROBUST
from dpaudit.algorithms.streaming.entries import STREAMING
from dpaudit.algorithms.subspace.entries import SUBSPACE
from dpaudit.algorithms.textbook.entries import TEXTBOOK
from dpaudit.algorithms.third_party.entries import THIRD_PARTY
from dpaudit.algorithms.training.entries import TRAINING
from dpaudit.mechanism import Mechanism
from dpaudit.validation import check_name

__all__ = ["CATALOGUE", "FAMILIES", "Entry", "build", "entry", "names_of"]

CATALOGUE: dict[str, Entry] = {
    each.name: each
    for each in (
        *COVARIANCE,
        *SUBSPACE,
        *STREAMING,
        *ROBUST,
        *ONLINE,
        *TRAINING,
        *TEXTBOOK,
        *THIRD_PARTY,
    )
}
"""Every entry by its name; those of libraries that are not installed, too."""


FAMILIES: dict[str, str] = {
    "covariance": "Noise on the second-moment matrix of the rows",
    "subspace": "Principal components released as a subspace",
    "streaming": "One pass over the rows: private forms of Oja, DP-PCA and its parts",
    "robust": "PCA that outliers do not turn",
    "online": "A release after every row",
    "training": "Models trained by DP-SGD, and mistakes that are made of it",
    "textbook": "Textbook mechanisms, right and wrong, with their true epsilon",
    "third-party": "What other libraries ship",
}
"""What each family is, in the order of the catalogue."""


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
    """Return the names of a family's mechanisms, in the order of the catalogue.

    Examples
    --------
    >>> names_of("covariance")[0]
    'analyze-gauss'
    """
    check_name("family", family, tuple({e.family for e in CATALOGUE.values()}))
    return tuple(name for name, e in CATALOGUE.items() if e.family == family)


def build(name: str, **options: Any) -> Mechanism:
    """Return the mechanism of that name; options as for `Entry.build`."""
    return entry(name).build(**options)
