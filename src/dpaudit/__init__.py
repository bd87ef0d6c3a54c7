"""dpaudit finds out whether a differentially private mechanism keeps its promise.

This package holds the vocabulary that everything else shares: privacy claims,
neighbouring datasets, the `Mechanism` protocol, subspace measures and datasets. The
work is done by `dpaudit.audit`, `dpaudit.algorithms`, `dpaudit.attacks` and
`dpaudit.reports`.
"""

from importlib.metadata import PackageNotFoundError, version

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

try:
    __version__ = version("dpaudit")
except PackageNotFoundError:  # a checkout on the path, not installed
    __version__ = "0+unknown"

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
    "Profile",
    "PureDP",
    "Relation",
    "UnsupportedError",
    "ZeroConcentratedDP",
    "__version__",
]
