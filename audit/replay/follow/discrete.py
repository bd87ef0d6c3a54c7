"""Draws beside the families of `dpaudit.audit.replay.laws.coded`, as methods.

Integers have a law on a lattice: geometric, Poisson and binomial ones, as long as their
parameters are single numbers. What has a density whose parameters hold data is one
noisy value where it is drawn. A fair coin may become the sign of noise, so it is not
decided before the code looks at it. An integer from a large range may become the seed
of a generator, which is then followed as one that was spawned.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import gammaln

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.observations import Unfollowed
from dpaudit.audit.replay.follow.places import place_of_caller
from dpaudit.audit.replay.follow.tape import Tape
from dpaudit.audit.replay.follow.tracked import (
    Tracked,
    isinstance_tracked,
    looked_at_within,
)
from dpaudit.audit.replay.laws.by_name import METHODS, Density, Poisson, law_by_name
from dpaudit.audit.replay.laws.choices import ChoiceLaw
from dpaudit.audit.replay.laws.coded import FIRST, MOST_STEPS, Family, Lattice, code_of
from dpaudit.audit.replay.laws.drawn import TURN, Angle, Dirichlet
from dpaudit.audit.replay.laws.one_draw import DrawLaw
from dpaudit.audit.replay.laws.pushforward import family_of

__all__ = ["DiscreteDraws"]

_MOST_NUMBERS = 256  # of which one is drawn, and waits to be looked at
_SEEDS = 2**16  # numbers from which on a range may be one of seeds
_LONGEST_SEED = 16  # numbers of one
_MOST_LAWS = 64  # of draws that are made at once
_FAIR = Lattice.among((0, 1), (0.5, 0.5))
_OPTIONS = {"check_valid", "tol", "method"}
_NOT_FOLLOWED = "{} draws from a law that is not followed"


class DiscreteDraws:
    """Methods of a generator that records."""

    tape: Tape
    _streams: Any
    _next: Callable[[], np.random.Generator]
    _noise: Callable[..., Any]
    _chosen: Callable[..., Any]
    _unfollowed: Callable[..., Any]

    @property
    def _notes(self) -> bool:
        """Whether draws are followed."""
        raise NotImplementedError

    def _of_law(self, law: Any, name: str, *args: Any, size: Any) -> Any:
        """Return draws of a law that has a code."""

        def drawn(generator: np.random.Generator) -> Any:
            return getattr(generator, name)(*args, size=size)

        values, code = drawn(self._next()), code_of(law)
        if not self._notes:
            return values
        if code is None:
            self.tape.coin(_NOT_FOLLOWED.format(name))
            return values
        once = self._streams.again()
        floats = np.asarray(values, dtype=np.float64)
        return Tracked.fresh(self.tape, code, floats, lambda seed: drawn(once(seed)))

    def by_name(
        self, name: str, parameters: tuple[Any, ...], drawn: Any, size: Any
    ) -> Any:
        """Return draws of a law of SciPy's, as `drawn` gives them of a generator.

        NotImplemented where it is none that is known here.
        """
        if not all(map(_is_number, parameters)):
            return NotImplemented
        noise = law_by_name(name, tuple(map(float, parameters)))
        if noise is None:
            return NotImplemented
        return self.of_noise(noise, drawn, size)

    def of_noise(self, noise: DrawLaw, drawn: Any, size: Any) -> Any:
        """Return draws of a + b X, as `drawn` gives them of a generator."""
        shift, scale, family = family_of(noise)

        def standard(values: Any) -> Array:
            return (np.asarray(values, dtype=np.float64) - shift) / scale

        made: Any
        if family < FIRST and noise.kind != "lattice":
            made = self._noise(Family(family), size)
        else:
            values = drawn(self._next())
            if not self._notes:
                return values
            once = self._streams.again()
            whole = standard(values)
            again = lambda seed: standard(drawn(once(seed)))  # noqa: E731
            made = Tracked.fresh(self.tape, family, whole, again)
        made = made * scale if scale != 1 else made
        return made + shift if shift else made

    def _named(self, method: str, *args: Any, size: Any = None, **more: Any) -> Any:
        """Return draws of a method of NumPy's whose law has a name in SciPy."""
        name, standard = METHODS[method]
        count = standard.__code__.co_argcount
        args, size = args[:count], args[count] if len(args) > count else size
        if all(map(_is_number, (*args, *more.values()))):
            with np.errstate(all="ignore"):
                given, parameters, scale, shift = standard(*args, **more)
            if math.isfinite(shift) and 0 < scale < math.inf:
                made = self.by_name(
                    name,
                    parameters,
                    lambda rng: getattr(rng, method)(*given, size),
                    size,
                )
                if made is not NotImplemented:
                    made = made if scale == 1 else made * scale
                    return made + shift if shift else made
        return self._unfollowed(method, *args, size=size, **more)

    def _of_data(self, name: str, *args: Any, size: Any, low: float = -math.pi) -> Any:
        """Return draws whose parameters may hold data, each of a law of its own.

        Where the code looks at them they are noisy values, as the sum of data and noise
        is.
        """
        given = [np.asarray(looked_at_within(each), dtype=np.float64) for each in args]

        def drawn(generator: np.random.Generator) -> Any:
            made = getattr(generator, name)(*given, size=size)
            return made if low else made % TURN

        values = np.asarray(drawn(self._next()))
        if not self._notes or not values.size:
            return values[()]
        once, wide = self._streams.again(), values.shape
        if name == "dirichlet":
            rows = np.broadcast_to(given[0], wide).reshape(-1, wide[-1])
        else:
            columns = [np.broadcast_to(each, wide).ravel() for each in given]
            rows = np.stack(columns, axis=-1)
        laws = [_law_of(name, low, row) for row in rows[:_MOST_LAWS].tolist()]
        codes = [None if law is None else code_of(law) for law in laws]
        if len(rows) > _MOST_LAWS or None in codes:
            self.tape.coin(_NOT_FOLLOWED.format(name))
            return values[()]

        def part(number: int, seed: int) -> Array:
            return np.ravel(drawn(once(seed))).reshape(len(rows), -1)[number]

        parts, each = [], values.reshape(len(rows), -1)
        for number, code in enumerate(codes):
            assert code is not None
            again = partial(part, number)
            parts.append(Tracked.fresh(self.tape, code, each[number], again))
            assert len(parts[-1].index)  # numbers that follow on each other
            if name == "dirichlet":
                self.tape.draws.leave_gap(self.tape.first_place)
        made = Tracked.joined(self.tape, parts).reshape(wide)
        made.bare = False
        return made

    def vonmises(self, mu: Any, kappa: Any, size: Any = None) -> Any:
        return self._angles(mu, kappa, size)

    def _angles(self, mu: Any, kappa: Any, size: Any, low: float = -math.pi) -> Any:
        if _is_number(mu) and mu == 0 and _is_number(kappa) and 0 < kappa < math.inf:
            law, numbers = Angle(0.0, float(kappa), low), (0.0, float(kappa))
            if low:
                return self._of_law(law, "vonmises", *numbers, size=size)
        return self._of_data("vonmises", mu, kappa, size=size, low=low)

    def dirichlet(self, alpha: Any, size: Any = None) -> Any:
        return self._of_data("dirichlet", alpha, size=size)

    def geometric(self, p: Any, size: Any = None) -> Any:
        known = _is_number(p) and 0 < p < 1
        law = Lattice.geometric(float(p)) if known else None
        if law is None:
            return self._unfollowed("geometric", p, size)
        return self._of_law(law, "geometric", float(p), size=size)

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Any:
        if not (_is_number(lam) and 0 < lam < MOST_STEPS / 4):
            return self._unfollowed("poisson", lam, size)
        lam = float(lam)
        return self._of_law(Poisson.of_mean(lam), "poisson", lam, size=size)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        if isinstance_tracked(p) or np.ndim(n):
            return self._unfollowed("binomial", n, p, size)
        if n == 1 and _is_number(p) and p == 0.5:
            return self._coin_flip(0, 1, size=size, name="binomial")
        if n == 1 and self.tape.mode.keeps and self._notes and _is_number(p):
            chances = np.array([1 - p, p], dtype=np.float64)
            if 0 < p < 1:
                return self._of_table(chances, lambda rng: rng.binomial(1, p, size))
        if n == 1:
            held = self._next().binomial(1, p, size)
            chance = np.broadcast_to(np.asarray(p, dtype=np.float64), np.shape(held))
            return self._chosen(held, partial(ChoiceLaw.flips, chance.ravel()))
        if not (_is_number(p) and 0 < p < 1 and 0 < n < MOST_STEPS):
            return self._unfollowed("binomial", n, p, size)
        n, p = int(n), float(p)
        k = np.arange(n + 1)
        ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
        log = ways + k * math.log(p) + (n - k) * math.log1p(-p)
        law = Lattice(0, tuple(log.tolist()), exact=True)
        return self._of_law(law, "binomial", n, p, size=size)

    def standard_gamma(
        self, shape: Any, size: Any = None, dtype: Any = np.float64, out: Any = None
    ) -> Any:
        if out is not None or np.dtype(dtype) != np.float64:
            return self._unfollowed("standard_gamma", shape, size, dtype, out)
        if not (_is_number(shape) and 0 < shape < math.inf):
            return self._of_data("standard_gamma", shape, size=size)
        if shape == 1:
            return self._noise(Family.EXPONENTIAL, size)
        law = Density("gamma", (float(shape),))
        return self._of_law(law, "standard_gamma", float(shape), size=size)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
        if not (_is_number(scale) and 0 < scale < math.inf):
            return self._unfollowed("gamma", shape, scale, size)
        return self.standard_gamma(shape, size) * float(scale)

    def chisquare(self, df: Any, size: Any = None) -> Any:
        return self.standard_gamma(np.divide(df, 2.0), size) * 2.0

    def beta(self, a: Any, b: Any, size: Any = None) -> Any:
        if not all(_is_number(each) and 0 < each < math.inf for each in (a, b)):
            return self._of_data("beta", a, b, size=size)
        a, b = float(a), float(b)
        return self._of_law(Density("beta", (a, b)), "beta", a, b, size=size)

    def multivariate_normal(
        self, mean: Any, cov: Any, size: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        """Return mean + z L^T, where the covariance is L L^T, whatever L is."""
        covariance = np.asarray(cov, dtype=np.float64)
        method = kwargs.get("method", "svd")
        odd = args or kwargs.get("check_valid") == "raise" or kwargs.keys() - _OPTIONS
        odd = odd or method not in ("svd", "eigh", "cholesky")
        if odd or isinstance_tracked(cov) or covariance.ndim != 2:
            given = mean, cov, size, *args
            return self._unfollowed("multivariate_normal", *given, **kwargs)
        if method == "cholesky":
            np.linalg.cholesky(covariance)  # which fails for NumPy, too
        shape = () if size is None else tuple(np.atleast_1d(size).tolist())
        noise = self._noise(Family.GAUSSIAN, (*shape, len(covariance)))
        scales = np.sqrt(np.diag(covariance))
        if (covariance == np.diag(scales**2)).all():
            return noise * scales + np.asarray(mean)
        left, values, _ = np.linalg.svd(covariance, hermitian=True)
        return noise @ (left * np.sqrt(values)).T + np.asarray(mean)

    def integers(
        self,
        low: Any,
        high: Any = None,
        size: Any = None,
        dtype: Any = np.int64,
        endpoint: bool = False,
        *,
        told: str = "integers",
    ) -> Any:
        least, end = (0, low) if high is None else (low, high)
        given = low, high, size, dtype, endpoint
        if not (_is_number(least) and _is_number(end)):
            return self._unfollowed("integers", *given, told=told)
        least, count = int(least), int(end) - int(least) + bool(endpoint)
        if count == 2 and np.dtype(dtype).kind in "iu":
            return self._coin_flip(least, least + 1, size=size, name="integers")
        ordinary = self.tape.closed or self.tape.inside
        if self.tape.mode.keeps and self._notes and 0 < count <= _MOST_NUMBERS:
            p = np.full(count, 1 / count)
            made = self._of_table(p, lambda rng: rng.integers(0, count, size))
            return made + least if least else made
        many = np.prod(1 if size is None else size) > _LONGEST_SEED
        if count < _SEEDS or many or ordinary:
            return self._unfollowed("integers", *given, told=told)
        self.tape.check_thread()
        seed = self._next().integers(*given)
        note = Unfollowed(place_of_caller(), _NOT_FOLLOWED.format(told))
        for each in np.ravel(seed).tolist():
            self._streams.shared.seeds[each] = note
        return seed

    def _of_table(self, p: Array, drawn: Callable[[np.random.Generator], Any]) -> Any:
        """Return draws of 0, 1, ... with probabilities, which wait."""
        held = np.asarray(drawn(self._next()))
        if len(p) == 1:
            return held[()]
        code = code_of(Lattice.among(range(len(p)), p.tolist()))
        if code is None:
            self.tape.coin("there are too many laws of choices")
            return held[()]
        once = self._streams.again()
        floats = held.astype(np.float64)
        return Tracked.fresh(self.tape, code, floats, lambda seed: drawn(once(seed)))

    def _coin_flip(self, tail: Any, head: Any, *, size: Any, name: str) -> Any:
        """Return one of two numbers, each with probability one half."""

        def drawn(generator: np.random.Generator) -> Any:
            return generator.integers(0, 2, size)

        held, tape = np.asarray(drawn(self._next())), self.tape
        law = partial(ChoiceLaw.flips, np.full(held.size, 0.5))
        if not self._notes or tape.mode.public or not tape.mode.selects:
            held = np.asarray(self._chosen(held, law))
            return np.where(held, head, tail)[()]
        once, code = self._streams.again(), code_of(_FAIR)
        assert code is not None
        made = Tracked.fresh(
            tape, code, held.astype(float), lambda seed: drawn(once(seed))
        )

        def choose(values: Array) -> Any:
            tape.selected = True
            return tape.choose(law(len(values)), values.astype(np.intp), values.shape)

        block = made.terms.block
        assert block is not None
        if not tape.mode.keeps:
            block.choose = choose
        return made if (tail, head) == (0, 1) else made * (head - tail) + tail


def _law_of(name: str, low: float, row: list[float]) -> Any:
    """Return the law of a draw with these parameters, None if it is none."""
    known = all(map(math.isfinite, row)) and min(row[name == "vonmises" :]) >= 0
    if name == "vonmises":
        return Angle(row[0], row[1], low) if known else None
    if name == "dirichlet":
        return Dirichlet(tuple(row)) if known and max(row) > 0 else None
    kind = name.rpartition("_")[2]  # as SciPy calls it
    return Density(kind, tuple(row)) if known and min(row) > 0 else None


def _is_number(value: Any) -> bool:
    return not isinstance_tracked(value) and np.ndim(value) == 0
