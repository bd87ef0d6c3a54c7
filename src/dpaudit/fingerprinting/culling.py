r"""The list-culling game: a good answer found by ignoring half of what one knows.

Source: Dwork, Talwar, Thakurta, Zhang, *Analyze Gauss*, STOC 2014, section 5.2.

1. Dave has v in {-1, 1}^n. Alice has a copy in which f positions, chosen at random, are
   erased.
2. Without knowing which, Dave sends a list of words of {-1, 1}^n, one of them (the
   *promise*) within Hamming distance beta n of v, where beta < 1/20.
3. Alice fills in the erased positions from one of the words. She wins if less than a
   third of them are wrong.

Most agreement: she takes a word that agrees best with what she has. It loses against
the *sphere*, all words at distance exactly f from v (a legal list if f <= beta n): the
only one that agrees with all that she has is wrong on everything that she has not.

Random half: she takes a word that agrees best on h = floor((n - f)/2) of her positions,
chosen at random, the test set. Why it wins: the test set is a random h-subset of [n],
and given it, *the erased positions are a random f-subset of the other n - h*. What she
takes depends on the list and on the test set only (ties are broken without a look at
the rest), so if it has w errors outside of the test set, its errors on the erased
positions are hypergeometric with mean f w/(n - h), for every list and every
way to break ties. On the sphere she takes a word without an error in the test set, for
n - h >= f there is one, hence w = f and

.. math:: P(\text{win}) = P(\mathrm{Hyp}(n - h, f, f) < f/3),

exactly (`sphere_win_probability`).

For any list of L words, `loss_bound` is a bound in finite samples. For any s and w,
Alice loses only if the promised word has more than s errors in the test set; or some
word has at most s there and more than w outside (then it may be taken); or the word
taken has at most w outside and f/3 or more on the erased positions. So

    P(lose) <= P(Hyp(n, floor(beta n), h) > s)
               + L P(Hyp(n, w + 1 + s, h) <= s)
               + P(Hyp(n - h, w, f) >= f/3),

minimised over s and w. The middle term is the largest over words with D > w errors of
P(Hyp(n, D, h) <= min(s, D - w - 1)): with x for the limit, more than x + w + 1 errors
only make it smaller, and an error more together with a limit raised by one makes it
larger. (Fewer than floor(beta n) errors of the promised word only help.) With s and w
in proportion to n the first term falls exponentially in n, the second for L = exp(c n)
and a small c, and the third exponentially in f: Theorem 26, with its constants.

The paper leaves open how ties are broken. On the sphere most agreement has none to
break, and random half wins however it is done; `play` breaks them by chance.
"""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from dpaudit.errors import InputError
from dpaudit.fingerprinting.codes import check_symbols
from dpaudit.validation import check_count, check_fraction, check_generator, check_name

__all__ = ["CullingGame", "CullingStrategy", "Proportion"]

CullingStrategy: TypeAlias = Literal["most-agreement", "random-half"]

_STRATEGIES: tuple[CullingStrategy, ...] = get_args(CullingStrategy)
_LARGEST_SHARE = 1 / 20
_LARGEST_LIST = 2**24  # symbols of an explicit list
_SMALLEST = 1e-290  # smaller chances count as this


@dataclass(frozen=True)
class Proportion:
    """Hits among independent trials, with Clopper and Pearson's interval.

    Parameters
    ----------
    hits, trials : int
        0 <= hits <= trials, trials at least 1.
    confidence : float
        In (0, 1): the interval covers the probability at least as often.

    Examples
    --------
    >>> print(Proportion(1000, 1000))
    1000 of 1000 (0.9947 to 1 with 99 % confidence)
    """

    hits: int
    trials: int
    confidence: float = 0.99

    def __post_init__(self) -> None:
        check_count("trials", self.trials)
        check_count("hits", self.hits, minimum=0, maximum=self.trials)
        check_fraction("confidence", self.confidence)

    @property
    def share(self) -> float:
        """The observed share."""
        return self.hits / self.trials

    @property
    def interval(self) -> tuple[float, float]:
        """The least and the largest probability of the interval."""
        tail, misses = (1 - self.confidence) / 2, self.trials - self.hits
        low = betaincinv(self.hits, misses + 1, tail) if self.hits else 0.0
        high = betaincinv(self.hits + 1, misses, 1 - tail) if misses else 1.0
        return float(low), float(high)

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.hits} of {self.trials} ({low:.4g} to {high:.4g} with "
            f"{100 * self.confidence:g} % confidence)"
        )


@dataclass(frozen=True)
class CullingGame:
    """The rules of one game.

    Parameters
    ----------
    length : int
        n.
    erased : int
        f, from 1 to n - 2: two positions are left, one for the test set.
    closeness : float
        beta, in [0, 1/20).

    Raises
    ------
    InputError
        If a number is not allowed.

    Examples
    --------
    >>> game = CullingGame(length=10_000, erased=100, closeness=0.02)
    >>> game.sphere_win_probability("most-agreement")
    0.0
    >>> round(1 - game.sphere_win_probability("random-half"), 24) < 1e-20
    True
    """

    length: int
    erased: int
    closeness: float

    def __post_init__(self) -> None:
        n = check_count("length", self.length, minimum=3)
        check_count("erased", self.erased, maximum=n - 2)
        beta = check_fraction("closeness", self.closeness, allow_zero=True)
        if not beta < _LARGEST_SHARE:
            raise InputError(f"closeness must be in [0, 1/20), got {self.closeness!r}")

    @property
    def promised(self) -> int:
        """The largest Hamming distance of the promised word, floor(beta n)."""
        return math.floor(self.closeness * self.length + 1e-9)

    @property
    def tested(self) -> int:
        """h, the size of the test set."""
        return (self.length - self.erased) // 2

    @property
    def fewest_lost(self) -> int:
        """The fewest wrong positions with which Alice loses: a third or more."""
        return -(-self.erased // 3)

    @property
    def sphere_log_size(self) -> float:
        """The natural logarithm of the number of words at distance f."""
        n, f = self.length, self.erased
        return math.lgamma(n + 1) - math.lgamma(f + 1) - math.lgamma(n - f + 1)

    def sphere_win_probability(self, strategy: CullingStrategy) -> float:
        """Return the exact probability that Alice wins against the sphere.

        Raises
        ------
        InputError
            If the strategy is unknown, or the sphere breaks the promise: f > beta n.
        """
        from scipy.stats import hypergeom  # slow to import

        self._check_sphere(strategy)
        if strategy == "most-agreement":
            return 0.0
        n, f, h = self.length, self.erased, self.tested
        return float(hypergeom.cdf(self.fewest_lost - 1, n - h, f, f))

    def play_sphere(
        self, strategy: CullingStrategy, *, games: int, rng: np.random.Generator
    ) -> Proportion:
        """Play against the sphere, whose list is too long to be written down.

        By symmetry the words that agree best are known: those whose f errors avoid all
        that is looked at; the tie is broken by chance.

        Parameters
        ----------
        strategy : {"most-agreement", "random-half"}
        games : int
            How many independent games.
        rng : numpy.random.Generator
        """
        self._check_sphere(strategy)
        games = check_count("games", games)
        check_generator(rng)
        n, f, h = self.length, self.erased, self.tested
        if strategy == "most-agreement":
            wrong = np.full(games, f)  # f errors, and nowhere else to be
        else:
            wrong = rng.hypergeometric(f, n - h - f, f, size=games)
        return Proportion(int(np.count_nonzero(wrong < self.fewest_lost)), games)

    def play(
        self,
        truth: ArrayLike,
        answers: ArrayLike,
        strategy: CullingStrategy,
        *,
        games: int,
        rng: np.random.Generator,
    ) -> Proportion:
        """Play against a list, each time with fresh erasures.

        Parameters
        ----------
        truth : array_like of int, shape (n,)
            v.
        answers : array_like of int, shape (L, n)
            The list; at most 2^24 symbols.
        strategy : {"most-agreement", "random-half"}
        games : int
        rng : numpy.random.Generator

        Raises
        ------
        InputError
            If the list breaks the promise, or a shape or a symbol is wrong.
        """
        check_name("strategy", strategy, _STRATEGIES)
        games = check_count("games", games)
        check_generator(rng)
        errors = self._errors(truth, answers)
        n, f = self.length, self.erased
        looked_at = n - f if strategy == "most-agreement" else self.tested
        won = 0
        for _ in range(games):
            order = rng.permutation(n)
            erased, tested = order[:f], order[f : f + looked_at]
            found = errors[:, tested].sum(axis=1, dtype=np.int64)
            taken = rng.choice(np.flatnonzero(found == found.min()))
            won += int(errors[taken, erased].sum()) < self.fewest_lost
        return Proportion(won, games)

    def loss_bound(self, log_size: float) -> float:
        """Return a bound on the probability that random half loses, for any list.

        Parameters
        ----------
        log_size : float
            The natural logarithm of the number of words in the list, >= 0.

        Returns
        -------
        float
            In [0, 1]; the bound at the head of this module.

        Examples
        --------
        >>> game = CullingGame(length=4000, erased=200, closeness=0.02)
        >>> game.loss_bound(0.004 * 4000) < 1e-6
        True
        """
        from scipy.stats import hypergeom  # slow to import

        if not (np.isreal(log_size) and 0 <= log_size < math.inf):
            raise InputError(f"log_size must be a number >= 0, got {log_size!r}")
        n, f, h = self.length, self.erased, self.tested
        close = self.promised
        best = 1.0
        # A smaller w makes the second term large, a larger one the third.
        for outside in np.unique(np.linspace(close // 2, (n - h) // 2, 40).astype(int)):
            third = float(hypergeom.sf(self.fewest_lost - 1, n - h, outside, f))
            if third >= best:
                break
            for inside in np.unique(np.linspace(close // 2, outside, 16).astype(int)):
                first = float(hypergeom.sf(inside, n, close, h))
                if first + third >= best:
                    continue
                chance = float(hypergeom.cdf(inside, n, outside + 1 + inside, h))
                worst = math.log(max(chance, _SMALLEST))
                second = math.exp(min(worst + log_size, 0.0))
                best = min(best, first + second + third)
        return best

    def _check_sphere(self, strategy: CullingStrategy) -> None:
        check_name("strategy", strategy, _STRATEGIES)
        if self.erased > self.promised:
            raise InputError(
                f"the sphere of radius f = {self.erased} breaks the promise of a word "
                f"within {self.promised} of the truth: closeness must be larger"
            )

    def _errors(self, truth: ArrayLike, answers: ArrayLike) -> NDArray[np.bool_]:
        shape = np.shape(answers)
        if math.prod(shape) > _LARGEST_LIST:
            raise InputError(
                f"answers must have at most 2^24 symbols, got shape {shape}"
            )
        words = check_symbols("answers", answers, self.length)
        v = check_symbols("truth", np.atleast_2d(np.asarray(truth)), self.length)
        if len(v) != 1:
            raise InputError(f"truth must be one word, got {len(v)}")
        errors = words != v[0]
        nearest = int(errors.sum(axis=1).min())
        if nearest > self.promised:
            raise InputError(
                f"answers must have a word within {self.promised} of the truth, "
                f"the nearest is at {nearest}"
            )
        return errors
