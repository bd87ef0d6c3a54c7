"""The catalogue: every mechanism by name, with its source and how to build it.

The command line, the checks, the benchmarks and the report read it. Adding a mechanism
takes one entry here (or, for the suite, in `dpaudit.algorithms.textbook.entries`).
"""

from typing import Any

from dpaudit.algorithms.analyze_gauss import AnalyzeGauss
from dpaudit.algorithms.entries import Entry
from dpaudit.algorithms.goe_gaussian import GOEGaussian
from dpaudit.algorithms.symmetric_noise import SymmetricNoise
from dpaudit.algorithms.symmetrised_wishart import SymmetrisedWishart
from dpaudit.algorithms.textbook.entries import TEXTBOOK
from dpaudit.mechanism import Mechanism
from dpaudit.validation import check_name

__all__ = ["CATALOGUE", "Entry", "build", "entry", "names_of"]

_COVARIANCE = (
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

CATALOGUE: dict[str, Entry] = {each.name: each for each in (*_COVARIANCE, *TEXTBOOK)}
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
