"""The entries of the textbook suite in the catalogue."""

from typing import Any

from dpaudit.algorithms.entries import Entry
from dpaudit.algorithms.textbook import SUITE

__all__ = ["TEXTBOOK"]


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

TEXTBOOK = (
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
"""Every mechanism of the suite."""
