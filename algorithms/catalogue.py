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
from dpaudit.algorithms.textbook import SUITE
from dpaudit.errors import InputError
from dpaudit.mechanism import Mechanism
from dpaudit.neighbours import Relation
from dpaudit.validation import check_name

__all__ = ["CATALOGUE", "Entry", "build", "entry", "names_of"]


@dataclass(frozen=True)
class Entry:
    """A mechanism that dpaudit knows by name.

    Parameters
    ----------
    name : str
    family : str
        What is perturbed, or "textbook" for the suite with known truth.
    source : str
        Paper and place, or "dpaudit".
    summary : str
        One line.
    constructor : callable
        Named constructor taking epsilon; delta if `approximate`; relation if there is
        more than one; row_norm if `has_row_norm`.
    approximate : bool
        Whether it takes a delta.
    expected_refuted : bool
        Whether its claim is false on the worst pair, at the entry's own epsilon, by so
        much that an audit must refute it. (A claim can be false by less than sampling
        can show; then only the exact layer says so.)
    epsilon : float
        The claim when none is asked for.
    relations : tuple of Relation
        Those for which the claim can be made; the first is the default.
    has_row_norm : bool
        Whether rows are clipped to a public norm that the user chooses.
    """

    name: str
    family: str
    source: str
    summary: str
    constructor: Callable[..., Mechanism]
    approximate: bool
    expected_refuted: bool = False
    epsilon: float = 1.0
    relations: tuple[Relation, ...] = tuple(Relation)
    has_row_norm: bool = True

    def build(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 1e-5,
        relation: Relation | str | None = None,
        row_norm: float | None = None,
    ) -> Mechanism:
        """Return the mechanism.

        Parameters
        ----------
        epsilon : float, optional
            Default: the entry's own.
        delta : float
            Not used where the claim is pure.
        relation : Relation or str, optional
            Default: the first of the entry's `relations`.
        row_norm : float, optional
            Default: 1, where there is one.

        Raises
        ------
        InputError
            If the relation is none of the entry's, if a row norm is given to a
            mechanism that has none, or a value is not allowed.
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
        if self.has_row_norm:
            options["row_norm"] = 1.0 if row_norm is None else row_norm
        if self.approximate:
            options["delta"] = delta
        return self.constructor(self.epsilon if epsilon is None else epsilon, **options)


def _textbook(
    name: str,
    source: str,
    summary: str,
    *,
    epsilon: float = 0.1,
    approximate: bool = False,
    refuted: bool = False,
) -> Entry:
    """Return the entry of a mechanism of the textbook suite."""
    constructor: Any = SUITE[name]
    owner = getattr(constructor, "__self__", constructor)
    return Entry(
        name=name,
        family="textbook",
        source=source,
        summary=summary,
        constructor=constructor,
        approximate=approximate,
        expected_refuted=refuted,
        epsilon=epsilon,
        relations=(owner.relation,),
        has_row_norm=False,
    )


_DING = "Ding et al., CCS 2018"
_LYU = "Lyu, Su, Li, VLDB 2017"
_SHADOW = "Wang et al., PLDI 2019"
_RAPPOR = "Erlingsson, Pihur, Korolova, CCS 2014"

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
    _textbook(
        "laplace",
        "Dwork, McSherry, Nissim, Smith, TCC 2006",
        "a sum with Laplace noise",
        epsilon=1.0,
    ),
    _textbook(
        "laplace-under-noised",
        "dpaudit",
        "half of the Laplace noise that its claim needs",
        epsilon=1.0,
        refuted=True,
    ),
    _textbook(
        "gaussian",
        "Balle, Wang, ICML 2018",
        "a sum with the least Gaussian noise",
        epsilon=1.0,
        approximate=True,
    ),
    _textbook(
        "gaussian-classical",
        "Dwork, Roth 2014, Theorem A.1",
        "a sum with Gaussian noise, classical constant",
        epsilon=1.0,
        approximate=True,
    ),
    _textbook(
        "gaussian-under-noised",
        "dpaudit",
        "half of the Gaussian noise that its claim needs",
        epsilon=1.0,
        approximate=True,
        refuted=True,
    ),
    _textbook(
        "randomised-response",
        "Warner, JASA 1965",
        "one bit, flipped at random",
        epsilon=1.0,
    ),
    _textbook(
        "truncated-geometric",
        "Balcer, Vadhan, Algorithm 4.8, as in DP-Sniper",
        "a clamped count; the wrong logarithm in its noise",
        refuted=True,
    ),
    _textbook("noisy-hist-1", f"{_DING}, Algorithm 9", "histogram with Laplace noise"),
    _textbook(
        "noisy-hist-2",
        f"{_DING}, Algorithm 10",
        "a histogram; the scale of the noise is upside down",
        refuted=True,
    ),
    _textbook(
        "noisy-max-1", f"{_DING}, Algorithm 5", "place of the maximum, Laplace noise"
    ),
    _textbook(
        "noisy-max-2",
        f"{_DING}, Algorithm 6",
        "place of the maximum, exponential noise",
    ),
    _textbook(
        "noisy-max-3",
        f"{_DING}, Algorithm 7",
        "the noisy maximum itself, Laplace noise",
        refuted=True,
    ),
    _textbook(
        "noisy-max-4",
        f"{_DING}, Algorithm 8",
        "the noisy maximum itself, exponential noise",
        refuted=True,
    ),
    _textbook("svt-1", f"{_LYU}, Algorithm 1", "sparse vector, as it should be"),
    _textbook("svt-2", f"{_LYU}, Algorithm 2", "sparse vector, renewed thresholds"),
    _textbook(
        "svt-3",
        f"{_LYU}, Algorithm 3",
        "sparse vector that releases what it compared",
        refuted=True,
    ),
    _textbook(
        "svt-4",
        f"{_LYU}, Algorithm 4",
        "sparse vector with too little noise",
        refuted=True,
    ),
    _textbook(
        "svt-5",
        f"{_LYU}, Algorithm 5",
        "sparse vector without noise on the queries",
        refuted=True,
    ),
    _textbook(
        "svt-6", f"{_LYU}, Algorithm 6", "sparse vector without an end", refuted=True
    ),
    _textbook("numerical-svt", _SHADOW, "sparse vector with fresh noisy answers"),
    _textbook(
        "svt-3-4-parallel",
        "Bichsel et al., S&P 2021",
        "svt-3 and svt-4 on the same data",
        refuted=True,
    ),
    _textbook(
        "prefix-sum",
        _SHADOW,
        "running totals, where one person moves every count",
        refuted=True,
    ),
    _textbook(
        "rappor",
        _RAPPOR,
        "a noisy Bloom filter; claims less than eight bits lose",
        refuted=True,
    ),
    _textbook(
        "one-time-rappor",
        _RAPPOR,
        "a Bloom filter, permanent noise; claims what one bit loses",
        refuted=True,
    ),
    _textbook(
        "laplace-parallel",
        "Bichsel et al., S&P 2021",
        "twenty Laplace mechanisms that share epsilon",
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
