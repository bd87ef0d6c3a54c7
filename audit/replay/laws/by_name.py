"""Laws that go by a name of `scipy.stats`, and by ordinary numbers.

Some are families of their own, or another of the same law by another name; others have
a density, or probabilities of integers, that SciPy computes to all digits. Those are
listed: of what is found by solving equations, or by sums and integrals of densities,
the far tails have errors, and a ratio of two of them might refute what is right.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, kve, logsumexp, xlogy

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.coded import MOST_STEPS, Lattice, frozen
from dpaudit.audit.replay.laws.one_draw import DrawLaw

__all__ = ["METHODS", "Density", "GammaDifference", "Poisson", "law_by_name"]

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
    "standard_cauchy": ("cauchy", lambda: ((), (), 1, 0)),
    "standard_t": ("t", lambda df: ((df,), (df,), 1, 0)),
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
_REACH = np.sinh(np.linspace(-12.0, 12.0, 4001))
_ERROR = 1e-7  # relative, of losses that are differences of computed densities
_SAME = 1e-9  # relative, of parameters that are one number, rounded differently
_TO_ALL_DIGITS = frozenset(("t", "gamma", "beta"))  # log-densities, however small
_UNDERFLOW = -600.0  # log-density below which one may be made up


@dataclass(frozen=True)
class Density:
    """A law that SciPy knows.

    Parameters
    ----------
    name : str
        In `scipy.stats`.
    parameters : tuple of float
    """

    name: str
    parameters: tuple[float, ...]

    @property
    def law(self) -> Any:
        """The law itself."""
        return frozen(self.name, self.parameters)

    @property
    def jumps(self) -> Array:
        """Where the density jumps: where it ends."""
        ends = np.array(self.law.support())
        return ends[np.isfinite(ends)]

    def log_density(self, u: Array) -> Array:
        """Return the logarithm of its density, NaN where that may be an underflow."""
        with np.errstate(all="ignore"):
            log = np.asarray(self.law.logpdf(u))
        few = (log < _UNDERFLOW) & (self.name not in _TO_ALL_DIGITS)
        low, high = self.law.support() if few.any() else (0.0, 0.0)
        return np.where(few & (u > low) & (u < high), np.nan, log)

    def supremum(self, shift: float, other: Any = None) -> float:
        """Return the largest |log f(u) - log f(u - shift)| of many u.

        For Student's laws the supremum is more by far less than 1e-6 of it.
        """
        if other is not None and not self._is(other):
            return math.inf
        most = _largest(self, float(shift)) if shift else 0.0
        return most * (1 - _ERROR)

    def _is(self, other: Any) -> bool:
        """Say whether a law is this one, up to the rounding of its parameters."""
        if not isinstance(other, Density) or other.name != self.name:
            return False
        return bool(np.allclose(other.parameters, self.parameters, rtol=_SAME, atol=0))

    def sample(self, rng: np.random.Generator, size: Any) -> Array:
        """Return independent draws."""
        return np.asarray(self.law.rvs(size=size, random_state=rng))


@dataclass(frozen=True)
class Poisson(Lattice):
    """Poisson probabilities of integers from the first on, beyond the table as well.

    Parameters
    ----------
    mean : float
    share : float
        The logarithm of the probability of an integer from the first on.
    """

    mean: float = 1.0
    share: float = 0.0

    @classmethod
    def of_mean(cls, mean: float) -> "Poisson":
        """Return the law of a mean > 0."""
        return cls(0, (), exact=True, mean=mean)._with_table()

    def _with_table(self) -> "Poisson":
        end = math.ceil(self.mean + 60 * math.sqrt(self.mean) + 60.5)  # no whole number
        k = np.arange(self.start, max(end, self.start + 60), dtype=np.float64)
        return replace(self, log=tuple(self.log_probability(k).tolist()))

    def log_probability(self, k: Array) -> Array:
        """Return the log-probabilities of integers, given as floats."""
        k = np.asarray(k, dtype=np.float64)
        with np.errstate(invalid="ignore"):
            log = xlogy(k, self.mean) - self.mean - gammaln(k + 1) - self.share
        return np.where(k < self.start, -np.inf, log)

    def among_those(self, held: Callable[[Array], NDArray[np.bool_]]) -> Lattice | None:
        """Return the law of an integer of which it is known that something holds."""
        some = held(self.start + np.arange(len(self.log), dtype=np.float64))
        first = int(np.argmax(some))
        if not some[first:].all():
            return super().among_those(held)
        share = self.share + float(logsumexp(self.log[first:]))
        law = replace(self, start=self.start + first, share=share)
        return law._with_table()

    def suprema(self, shift: float, other: Any = None) -> tuple[float, float]:
        """Return the suprema of log P(k)/Q(k - shift), and of its negative."""
        forth, back = super().suprema(shift, other)
        if isinstance(other, Poisson) and not math.isclose(
            self.mean, other.mean, rel_tol=_SAME
        ):  # far out the larger mean is any number of times as probable
            if self.mean > other.mean:
                return math.inf, back
            return forth, math.inf
        return forth, back


@dataclass(frozen=True)
class GammaDifference:
    """The difference of two independent gamma draws of scale 1.

    Sums of such are such: their shapes add up. Of one shape a it has the density
    (|x|/2)^(a - 1/2) K(|x|) / (sqrt(pi) Gamma(a)), where K is the Bessel function of
    the second kind of order a - 1/2 (Kotz, Kozubowski, Podgorski 2001, section 4.1).

    Parameters
    ----------
    shape, other : float
    """

    shape: float
    other: float

    @property
    def jumps(self) -> Array:
        """Where the density may be infinite."""
        return np.zeros(1)

    def log_density(self, u: Array) -> Array:
        """Return the logarithm of its density, if both shapes are one."""
        order, size = self.shape - 0.5, np.abs(u)
        with np.errstate(divide="ignore", invalid="ignore"):
            log = order * np.log(size / 2) + np.log(kve(order, size)) - size
        at_0 = gammaln(order) - math.log(2) if order > 0 else math.inf
        log = np.where(size == 0, at_0, log)
        return np.asarray(log - math.log(math.pi) / 2 - gammaln(self.shape))

    def supremum(self, shift: float, other: Any = None) -> float:
        """Return the largest |log f(u) - log f(u - shift)|, as of a `Density`."""
        if (other is not None and other != self) or self.shape <= 0.5:
            return math.inf if shift or other not in (None, self) else 0.0
        return _largest(self, float(shift)) * (1 - _ERROR) if shift else 0.0

    def sample(self, rng: np.random.Generator, size: Any) -> Array:
        """Return independent draws."""
        one, two = (rng.gamma(each, size=size) for each in (self.shape, self.other))
        return np.asarray(one - two)


@lru_cache(maxsize=256)
def _largest(density: Any, shift: float) -> float:
    u = shift / 2 + _REACH * max(1.0, abs(shift))
    for _ in range(4):
        with np.errstate(invalid="ignore"):
            losses = np.abs(density.log_density(u) - density.log_density(u - shift))
        losses = np.nan_to_num(losses, nan=0.0, posinf=np.inf)
        best = int(np.argmax(losses))
        u = np.linspace(u[max(best - 1, 0)], u[min(best + 1, len(u) - 1)], 101)
    return float(losses[best])


# By how much the logarithm of a probability falls with a step, far out.
_FALLS: dict[str, Callable[[float], float]] = {
    "nbinom": lambda p: -math.log1p(-p),
    "logser": lambda p: -math.log(p),
}
_EXACT = {"geom": Lattice.geometric, "poisson": Poisson.of_mean}  # by formulas


@lru_cache(maxsize=1024)
def law_by_name(name: str, parameters: tuple[float, ...]) -> DrawLaw | None:
    """Return a law of SciPy's at the place 0 and the scale 1, None if it is not known.

    Examples
    --------
    >>> law_by_name("weibull_min", (1.0,)).kind
    'exponential'
    """
    kind = _KINDS.get(name) if not parameters else _ONES.get((name, parameters[0]))
    if kind is not None and len(parameters) < 2:
        return DrawLaw(0.0, 1.0, kind)
    if name == "gumbel_l" and not parameters:
        return DrawLaw(0.0, -1.0, "gumbel")
    if name not in _DENSITIES | _TABLES or not all(map(math.isfinite, parameters)):
        return None
    density = Density(name, parameters)
    if np.isnan(density.law.support()).any():  # there is no such law
        return None
    if name in _DENSITIES:
        return DrawLaw(0.0, 1.0, "coded", law=density)
    made = _EXACT.get(name) if parameters[-1] < MOST_STEPS / 4 else None
    lattice = made(*parameters) if made else _table(density.law)
    return None if lattice is None else DrawLaw(0.0, 1.0, "lattice", lattice)


def _table(law: Any) -> Lattice | None:
    """Return the probabilities of integers, to where they are below any use."""
    start, end = law.support()
    middle = float(law.median())
    low, high = max(start, middle - MOST_STEPS / 4), min(end, middle + MOST_STEPS / 4)
    k = np.arange(low, high + 1)
    with np.errstate(divide="ignore"):  # some laws of SciPy warn of log 0
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
    known = _FALLS.get(law.dist.name)
    far = (
        below if start == -math.inf else math.inf,
        (known(law.args[-1]) if known else above) if end == math.inf else math.inf,
    )
    return Lattice(int(k[first]), tuple(table.tolist()), below, above, far=far)
