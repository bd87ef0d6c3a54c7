"""Laws that go by a name of `scipy.stats`, and by ordinary numbers.

Some are families of their own, or another of the same law by another name; others have
a density, or probabilities of integers, that SciPy computes to all digits. Those are
listed: of what is found by solving equations, or by sums and integrals of densities,
the far tails have errors, and a ratio of two of them might refute what is right.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np

from dpaudit.audit.replay.laws.coded import MOST_STEPS, Density, Lattice
from dpaudit.audit.replay.laws.one_draw import Noise

__all__ = ["METHODS", "law_by_name"]

_KINDS = {
    **{"norm": "gaussian", "laplace": "laplace", "expon": "exponential"},
    **{"uniform": "uniform", "gumbel_r": "gumbel", "logistic": "logistic"},
    **{"cauchy": "cauchy", "rayleigh": "rayleigh", "halfnorm": "half gaussian"},
}
_ONES = {
    ("gamma", 1.0): "exponential",
    ("erlang", 1.0): "exponential",
    ("weibull_min", 1.0): "exponential",
    ("powerlaw", 1.0): "uniform",
    ("gennorm", 1.0): "laplace",
    ("laplace_asymmetric", 1.0): "laplace",
    ("t", 1.0): "cauchy",
}
_DENSITIES = frozenset(
    """
    alpha anglit arcsine beta betaprime bradford burr burr12 chi chi2 cosine
    crystalball dgamma dweibull erlang exponnorm exponpow exponweib f fatiguelife fisk
    foldcauchy foldnorm gamma genexpon genextreme gengamma genhalflogistic genlogistic
    gennorm genpareto gibrat gompertz halfcauchy halfgennorm halflogistic hypsecant
    invgamma invgauss invweibull johnsonsb johnsonsu kappa3 laplace_asymmetric levy
    levy_l loggamma loglaplace lognorm loguniform lomax maxwell mielke moyal nakagami
    pareto pearson3 powerlaw powerlognorm powernorm rdist recipinvgauss reciprocal
    semicircular skewcauchy skewnorm t trapezoid triang truncexpon truncnorm wald
    weibull_max weibull_min
    """.split()
)
_TABLES = frozenset(
    """
    bernoulli betabinom binom boltzmann dlaplace geom hypergeom logser nbinom nhypergeom
    planck poisson randint zipfian
    """.split()
)
# By methods of NumPy's: the name in SciPy, and of arguments those of a standard draw,
# its parameters in SciPy, and how many times it is taken, and what is added.
METHODS: dict[str, tuple[str, Any]] = {
    "weibull": ("weibull_min", lambda a: ((a,), (a,), 1, 0)),
    "pareto": ("lomax", lambda a: ((a,), (a,), 1, 0)),
    "power": ("powerlaw", lambda a: ((a,), (a,), 1, 0)),
    "rayleigh": ("rayleigh", lambda scale=1.0: ((1.0,), (), scale, 0)),
    "lognormal": (
        "lognorm",
        lambda mean=0.0, sigma=1.0: ((0.0, sigma), (sigma,), np.exp(mean), 0),
    ),
    "triangular": (
        "triang",
        lambda left, mode, right: (
            (0.0, np.divide(mode - left, right - left), 1.0),
            (np.divide(mode - left, right - left),),
            right - left,
            left,
        ),
    ),
    "wald": (
        "invgauss",
        lambda mean, scale: (
            (np.divide(mean, scale), 1.0),
            (np.divide(mean, scale),),
            scale,
            0,
        ),
    ),
    "f": ("f", lambda dfnum, dfden: ((dfnum, dfden), (dfnum, dfden), 1, 0)),
    "negative_binomial": ("nbinom", lambda n, p: ((n, p), (n, p), 1, 0)),
    "hypergeometric": (
        "hypergeom",
        lambda ngood, nbad, nsample: (
            (ngood, nbad, nsample),
            (ngood + nbad, ngood, nsample),
            1,
            0,
        ),
    ),
    "logseries": ("logser", lambda p: ((p,), (p,), 1, 0)),
}
_LEAST = -80.0  # log-probability beyond which a table ends


@lru_cache(maxsize=1024)
def law_by_name(name: str, parameters: tuple[float, ...]) -> Noise | None:
    """Return a law of SciPy's at the place 0 and the scale 1, None if it is not known.

    Examples
    --------
    >>> law_by_name("weibull_min", (1.0,)).kind
    'exponential'
    """
    kind = _KINDS.get(name) if not parameters else _ONES.get((name, parameters[0]))
    if kind is not None and len(parameters) < 2:
        return Noise(0.0, 1.0, kind)
    if name == "gumbel_l" and not parameters:
        return Noise(0.0, -1.0, "gumbel")
    if name not in _DENSITIES | _TABLES or not all(map(math.isfinite, parameters)):
        return None
    density = Density(name, parameters)
    if np.isnan(density.law.support()).any():  # there is no such law
        return None
    if name in _DENSITIES:
        return Noise(0.0, 1.0, "coded", law=density)
    lattice = _table(density.law)
    return None if lattice is None else Noise(0.0, 1.0, "lattice", lattice)


def _table(law: Any) -> Lattice | None:
    """Return the probabilities of integers, to where they are below any use."""
    start, end = law.support()
    middle = float(law.median())
    low, high = max(start, middle - MOST_STEPS / 4), min(end, middle + MOST_STEPS / 4)
    k = np.arange(low, high + 1)
    log = np.asarray(law.logpmf(k))
    some = np.flatnonzero(log > _LEAST)
    if not len(some) or np.isnan(log).any():
        return None
    first, last = int(some[0]), int(some[-1])
    cut = k[first] > start and first == 0, k[last] < end and last == len(k) - 1
    if any(cut):  # it goes on, and not as a geometric law does
        return None
    table = log[first : last + 1]
    wide = len(table) > 2
    below = float(table[1] - table[0]) if wide and k[first] > start else math.inf
    above = float(table[-2] - table[-1]) if wide and k[last] < end else math.inf
    return Lattice(int(k[first]), tuple(table.tolist()), below, above)
