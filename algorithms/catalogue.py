"""The catalogue: every mechanism by name, with its source and how to build it.

The command line, the checks, the benchmarks and the report read it. Adding a mechanism
takes one entry here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpaudit.algorithms.analyze_gauss import AnalyzeGauss
from dpaudit.algorithms.goe_gaussian import GOEGaussian
from dpaudit.algorithms.symmetric_noise import SymmetricNoise
from dpaudit.algorithms.symmetrised_wishart import SymmetrisedWishart
from dpaudit.mechanism import Mechanism
from dpaudit.neighbours import Relation
from dpaudit.validation import check_name

__all__ = ["CATALOGUE", "Entry", "build", "entry"]


@dataclass(frozen=True)
class Entry:
    """A mechanism that dpaudit knows by name.

    Parameters
    ----------
    name : str
    family : str
        What is perturbed.
    source : str
        Paper and place, or "dpaudit".
    summary : str
        One line.
    constructor : callable
        Named constructor taking epsilon, delta if `approximate`, relation, row_norm.
    approximate : bool
        Whether it takes a delta.
    expected_refuted : bool
        Whether the audit must refute its claim on the worst pair. (A claim can be
        false by less than sampling can show; then only the exact layer says so.)
    """

    name: str
    family: str
    source: str
    summary: str
    constructor: Callable[..., Mechanism]
    approximate: bool
    expected_refuted: bool = False

    def build(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        relation: Relation | str = Relation.ADD_REMOVE,
        row_norm: float = 1.0,
    ) -> Mechanism:
        """Return the mechanism; `delta` is not used where the claim is pure."""
        options: dict[str, Any] = {"relation": relation, "row_norm": row_norm}
        if self.approximate:
            options["delta"] = delta
        return self.constructor(epsilon, **options)


_ENTRIES = (
    Entry(
        name="analyze-gauss",
        family="covariance",
        source="Dwork et al. 2014, Algorithm 1; analytic calibration by dpaudit",
        summary="i.i.d. Gaussian upper triangle, smallest proven noise",
        constructor=AnalyzeGauss.calibrated,
        approximate=True,
    ),
    Entry(
        name="analyze-gauss-published",
        family="covariance",
        source="Dwork, Talwar, Thakurta, Zhang, STOC 2014, Algorithm 1",
        summary="i.i.d. Gaussian upper triangle, classical constant",
        constructor=AnalyzeGauss.as_published,
        approximate=True,
    ),
    Entry(
        name="goe-gaussian",
        family="covariance",
        source="dpaudit",
        summary="rotation-invariant Gaussian noise, smallest proven noise",
        constructor=GOEGaussian.calibrated,
        approximate=True,
    ),
    Entry(
        name="symmetric-noise",
        family="covariance",
        source="Imtiaz, Sarwate, ICASSP 2016, Algorithm 1",
        summary="one Wishart matrix; the published claim is false",
        constructor=SymmetricNoise.as_published,
        approximate=False,
        expected_refuted=True,
    ),
    Entry(
        name="symmetrised-wishart",
        family="covariance",
        source="dpaudit",
        summary="difference of two Wishart matrices, pure DP",
        constructor=SymmetrisedWishart.calibrated,
        approximate=False,
    ),
)

CATALOGUE: dict[str, Entry] = {each.name: each for each in _ENTRIES}
"""Every entry by its name."""


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


def build(name: str, **options: Any) -> Mechanism:
    """Return the mechanism of that name; options as for `Entry.build`."""
    return entry(name).build(**options)
