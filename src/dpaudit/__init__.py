"""dpaudit finds out whether a differentially private mechanism keeps its promise.

This package holds the vocabulary that everything else shares: privacy claims,
neighbouring datasets, the `Mechanism` protocol, subspace measures and datasets. The
work is done by `dpaudit.audit`, `dpaudit.algorithms`, `dpaudit.attacks` and
`dpaudit.reports`.

Names are imported when they are first used: the pytest plugin is imported by every
pytest of an environment that has dpaudit, and most of them audit nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpaudit.algorithms.estimators.private_pca import PrivatePCA
    from dpaudit.claims import (
        ApproxDP,
        Claim,
        GaussianDP,
        Profile,
        PureDP,
        ZeroConcentratedDP,
    )
    from dpaudit.domains import Domain
    from dpaudit.errors import (
        DataUnavailableError,
        DPAuditError,
        InputError,
        MechanismError,
        UnsupportedError,
    )
    from dpaudit.mechanism import Mechanism
    from dpaudit.neighbours import Pair, Relation

    __version__: str

__all__ = [
    "ApproxDP",
    "Claim",
    "DPAuditError",
    "DataUnavailableError",
    "Domain",
    "GaussianDP",
    "InputError",
    "Mechanism",
    "MechanismError",
    "Pair",
    "PrivatePCA",
    "Profile",
    "PureDP",
    "Relation",
    "UnsupportedError",
    "ZeroConcentratedDP",
    "__version__",
]

_HOMES = {
    "ApproxDP": "dpaudit.claims",
    "Claim": "dpaudit.claims",
    "DPAuditError": "dpaudit.errors",
    "DataUnavailableError": "dpaudit.errors",
    "Domain": "dpaudit.domains",
    "GaussianDP": "dpaudit.claims",
    "InputError": "dpaudit.errors",
    "Mechanism": "dpaudit.mechanism",
    "MechanismError": "dpaudit.errors",
    "Pair": "dpaudit.neighbours",
    "PrivatePCA": "dpaudit.algorithms.estimators.private_pca",
    "Profile": "dpaudit.claims",
    "PureDP": "dpaudit.claims",
    "Relation": "dpaudit.neighbours",
    "UnsupportedError": "dpaudit.errors",
    "ZeroConcentratedDP": "dpaudit.claims",
}

_PACKAGES = ("algorithms", "attacks", "audit", "datasets", "reports")

if not TYPE_CHECKING:  # or every misspelt name would pass the type checkers

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            value = _version()
        elif name in _HOMES:
            value = getattr(import_module(_HOMES[name]), name)
        elif name in _PACKAGES:
            value = import_module(f"dpaudit.{name}")
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_PACKAGES})


def _version() -> str:
    """Return the version of this very code: a checkout's own, or the installed one.

    A checkout goes first, since it may be on the path without being installed, or
    beside another dpaudit that is.
    """
    import tomllib
    from importlib.metadata import PackageNotFoundError, version
    from pathlib import Path

    try:
        text = Path(__file__).parents[2].joinpath("pyproject.toml").read_text("utf-8")
        project = tomllib.loads(text)["project"]
        if project["name"] == "dpaudit":
            return str(project["version"])
    except (OSError, ValueError, KeyError):
        pass  # no checkout
    try:
        return version("dpaudit")
    except PackageNotFoundError:
        return "0+unknown"
