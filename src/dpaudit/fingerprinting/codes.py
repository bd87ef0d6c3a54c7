r"""Tardos codes: codewords whose sums betray who contributed to them.

1. Biases. p_j = sin^2(r_j) with r_j uniform on [t', pi/2 - t'], sin^2(t') = t, the
   cut-off: the arcsine law, cut off at t and 1 - t. The design writes the bias as the
   mean of a symbol, q_j = 2 p_j - 1 in [-1 + 2t, 1 - 2t].
2. Codewords. Given q, the symbols c_ij in {-1, 1} are independent with mean q_j.
3. Tracing. Of a pirated word y in [-1, 1]^n, user i has the symmetric score

   .. math:: S_i = \sum_j y_j (c_{ij} - q_j) / \sqrt{1 - q_j^2}.

Given q and y, the score of an innocent user, whose codeword y owes nothing to, is a sum
of independent terms of mean zero and variance y_j^2 <= 1, none larger than
sqrt((1 - t)/t). How long a code must be, and where to accuse, follows from that in
`dpaudit.fingerprinting.lengths`.

Collusion (Dwork, Talwar, Thakurta, Zhang, *Analyze Gauss*, STOC 2014, section 5). For
a coalition S, c_S is 1 or -1 where all its codewords agree on that symbol and 0
elsewhere (`unanimous`); a word is beta-valid if it agrees with c_S on all but a share
beta of the unanimous positions (`invalid_share`). A word that is 0-valid obeys the
marking condition: the pirates have not seen the other symbol there, so cannot write it.
The strategies of `collude` differ on the other positions: the more frequent symbol, the
rarer one, that of a pirate drawn afresh for each position (`interleaving`), a fair
coin, always 1, or always -1.

Memory. A code of n users and m positions takes n m bytes, one per symbol; generating
and scoring it need 32 MiB, and 100 bytes per position, beside it.

References
----------
Tardos, *Optimal probabilistic fingerprint codes*, Journal of the ACM 55(2), 2008.
Škorić, Katzenbeisser and Celik, *Symmetric Tardos fingerprinting codes for arbitrary
alphabet sizes*, Designs, Codes and Cryptography 46, 2008 (the symmetric score).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.validation import (
    check_count,
    check_generator,
    check_name,
    check_positive,
    check_vector,
)

__all__ = [
    "STRATEGIES",
    "Strategy",
    "TardosCode",
    "check_biases",
    "check_cutoff",
    "check_symbols",
    "check_word",
    "collude",
    "draw_biases",
    "draw_codewords",
    "invalid_share",
    "tracing_scores",
    "unanimous",
]

Symbols = NDArray[np.int8]

_BLOCK = 2**22  # symbols that are floats at a time


@dataclass(frozen=True, eq=False, repr=False)
class TardosCode:
    """Codewords and the biases that they were drawn from.

    Parameters
    ----------
    codewords : ndarray of int8, shape (n_users, length)
        -1 or 1.
    biases : ndarray, shape (length,)
        q, in (-1, 1). Secret: who knows them can frame innocent users.

    Raises
    ------
    InputError
        If a symbol or a bias is out of range, or the lengths differ.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> code = TardosCode.generate(4, 1000, cutoff=0.01, rng=rng)
    >>> code
    TardosCode(4 users, 1000 positions)
    >>> stolen = np.sign(code.codewords[:3].sum(axis=0))
    >>> code.scores(stolen) > 150
    array([ True,  True,  True, False])
    """

    codewords: Symbols
    biases: Array

    def __post_init__(self) -> None:
        biases = check_biases(self.biases)
        object.__setattr__(self, "biases", biases)
        object.__setattr__(
            self, "codewords", check_symbols("codewords", self.codewords, len(biases))
        )

    @classmethod
    def generate(
        cls, n_users: int, length: int, *, cutoff: float, rng: np.random.Generator
    ) -> "TardosCode":
        """Return a code with fresh biases.

        Parameters
        ----------
        n_users, length : int
            At least 1.
        cutoff : float
            t, in (0, 1/2).
        rng : numpy.random.Generator
            Advanced by the call.
        """
        biases = draw_biases(length, cutoff=cutoff, rng=rng)
        return cls(draw_codewords(biases, n_users, rng=rng), biases)

    @property
    def n_users(self) -> int:
        """How many codewords there are."""
        return len(self.codewords)

    @property
    def length(self) -> int:
        """How many positions a codeword has."""
        return len(self.biases)

    def strangers(self, n_users: int, *, rng: np.random.Generator) -> Symbols:
        """Return codewords that no user has, with the same biases."""
        return draw_codewords(self.biases, n_users, rng=rng)

    def scores(self, word: ArrayLike) -> Array:
        """Return every user's score; see `tracing_scores`."""
        return tracing_scores(self.codewords, self.biases, word)

    def __repr__(self) -> str:
        return f"TardosCode({self.n_users} users, {self.length} positions)"


def draw_biases(length: int, *, cutoff: float, rng: np.random.Generator) -> Array:
    """Draw q_1, ..., q_n from the arcsine law between the cut-offs.

    Parameters
    ----------
    length : int
        n, at least 1.
    cutoff : float
        t, in (0, 1/2): q is in [-1 + 2t, 1 - 2t].
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, shape (n,)
    """
    length = check_count("length", length)
    cutoff = check_cutoff("cutoff", cutoff)
    check_generator(rng)
    least = np.arcsin(np.sqrt(cutoff))
    angles = rng.uniform(least, np.pi / 2 - least, length)
    # 2 sin^2 r - 1; the clip undoes rounding at the ends.
    limit = 1 - 2 * cutoff
    biases: Array = np.clip(-np.cos(2 * angles), -limit, limit)
    return biases


def draw_codewords(
    biases: ArrayLike, n_users: int, *, rng: np.random.Generator
) -> Symbols:
    """Draw independent symbols with the means `biases`.

    Parameters
    ----------
    biases : array_like, shape (n,)
        In (-1, 1).
    n_users : int
        At least 1.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int8, shape (n_users, n)
        -1 or 1.
    """
    q = check_biases(biases)
    n_users = check_count("n_users", n_users)
    check_generator(rng)
    words = np.empty((n_users, len(q)), dtype=np.int8)
    chances = (1 + q) / 2
    for block in _blocks(n_users, len(q)):
        part = words[block]
        np.less(rng.random(part.shape), chances, out=part.view(np.bool_))
        part *= 2
        part -= 1
    return words


def tracing_scores(codewords: ArrayLike, biases: ArrayLike, word: ArrayLike) -> Array:
    r"""Return :math:`\sum_j y_j (c_{ij} - q_j)/\sqrt{1 - q_j^2}` for every user i.

    Parameters
    ----------
    codewords : array_like of int, shape (n_users, n)
        -1 or 1.
    biases : array_like, shape (n,)
        q, in (-1, 1).
    word : array_like, shape (n,)
        y, in [-1, 1]; 0 where the pirates say nothing.

    Returns
    -------
    ndarray, shape (n_users,)
        Of mean 0 and variance at most n for innocent users, and large for some of the
        pirates.

    Raises
    ------
    InputError
        If a number is out of range or the lengths differ.

    Examples
    --------
    >>> tracing_scores([[1, -1], [-1, 1]], [0.0, 0.6], [1.0, -1.0])
    array([ 3. , -1.5])
    """
    q = check_biases(biases)
    words = check_symbols("codewords", codewords, len(q))
    weights = check_word(word, len(q)) / np.sqrt((1 - q) * (1 + q))
    scores = np.empty(len(words))
    for block in _blocks(*words.shape):
        scores[block] = words[block].astype(np.float64) @ weights
    scores -= q @ weights
    return scores


def _blocks(n_users: int, length: int) -> Iterator[slice]:
    step = max(_BLOCK // length, 1)
    return (slice(i, min(i + step, n_users)) for i in range(0, n_users, step))


def check_cutoff(name: str, value: object) -> float:
    """Return t as a float, or raise unless it is in (0, 1/2)."""
    cutoff = check_positive(name, value)
    if not cutoff < 0.5:
        raise InputError(f"{name} must be in (0, 1/2), got {value!r}")
    return cutoff


def check_biases(biases: ArrayLike) -> Array:
    """Return q as float64, or raise unless it is a vector of numbers in (-1, 1)."""
    q = check_vector("biases", biases)
    return _inside("biases", q, (q > -1) & (q < 1), "(-1, 1)")


def check_word(word: ArrayLike, length: int) -> Array:
    """Return y as float64, or raise unless it has that length and is in [-1, 1]."""
    y = check_vector("word", word)
    if len(y) != length:
        raise InputError(
            f"word must have the length of the code, {length}, got {len(y)}"
        )
    return _inside("word", y, np.abs(y) <= 1, "[-1, 1]")


def _inside(name: str, vector: Array, inside: NDArray[np.bool_], allowed: str) -> Array:
    if not inside.all():
        j = int(np.argmin(inside))
        raise InputError(
            f"{name} must be in {allowed}, but {name}[{j}] is {vector[j]!r}"
        )
    return vector


def check_symbols(name: str, value: ArrayLike, length: int | None = None) -> Symbols:
    """Return codewords as int8 of shape (n, length), or raise unless all are -1 or 1.

    An int8 array comes back as it is, not copied.
    """
    words = np.asarray(value)
    if words.ndim != 2 or words.dtype.kind not in "iuf" or 0 in words.shape:
        raise InputError(
            f"{name} must be a matrix of -1 and 1 with at least one codeword of at "
            f"least one symbol, got {words.dtype} of shape {words.shape}"
        )
    if length is not None and words.shape[1] != length:
        raise InputError(
            f"{name} must have the length of the code, {length}, got {words.shape[1]}"
        )
    for block in _blocks(*words.shape):
        # The square of -128 wraps to 0 in int8, which is refused like any other.
        if not (words[block] * words[block] == 1).all():
            row = block.start + int(np.argmin((words[block] ** 2 == 1).all(axis=1)))
            raise InputError(f"{name} must be -1 or 1, but row {row} has another value")
    return words if words.dtype == np.int8 else words.astype(np.int8)


Strategy: TypeAlias = Literal[
    "majority", "minority", "interleaving", "coin", "all-ones", "all-minus-ones"
]

STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)


def unanimous(codewords: ArrayLike) -> Symbols:
    """Return c_S: the symbol that all codewords share, or 0.

    Parameters
    ----------
    codewords : array_like of int, shape (c, n)
        -1 or 1.

    Returns
    -------
    ndarray of int8, shape (n,)

    Examples
    --------
    >>> unanimous([[1, 1, -1], [1, -1, -1]])
    array([ 1,  0, -1], dtype=int8)
    """
    words = check_symbols("codewords", codewords)
    shared: Symbols = words[0] * (words == words[0]).all(axis=0)
    return shared


def invalid_share(word: ArrayLike, codewords: ArrayLike) -> float:
    """Return the least beta for which a word is beta-valid for a coalition.

    Parameters
    ----------
    word : array_like, shape (n,)
        In [-1, 1]; what is not c_S is wrong, 0 included.
    codewords : array_like of int, shape (c, n)

    Returns
    -------
    float
        In [0, 1]; 0 if nothing is unanimous.

    Examples
    --------
    >>> invalid_share([1, 1, 1], [[1, 1, -1], [1, -1, -1]])
    0.5
    """
    shared = unanimous(codewords)
    y = check_word(word, len(shared))
    marked = shared != 0
    return float(np.mean(y[marked] != shared[marked])) if marked.any() else 0.0


def collude(
    codewords: ArrayLike, strategy: Strategy, *, rng: np.random.Generator
) -> Symbols:
    """Return a pirated word that obeys the marking condition.

    Parameters
    ----------
    codewords : array_like of int, shape (c, n)
        The coalition's.
    strategy : str
        One of `STRATEGIES`; coins break the ties of a majority and of a minority.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int8, shape (n,)
        -1 or 1.

    Raises
    ------
    InputError
        If the strategy is unknown or the codewords are none.
    """
    words = check_symbols("codewords", codewords)
    check_name("strategy", strategy, STRATEGIES)
    check_generator(rng)
    n = words.shape[1]
    coins = rng.choice(np.array([-1, 1], dtype=np.int8), n)
    total = words.sum(axis=0, dtype=np.int64)
    tied = np.where(total == 0, coins, np.sign(total)).astype(np.int8)
    ones = np.ones(n, dtype=np.int8)
    free = {
        **{"majority": tied, "minority": -tied, "coin": coins},
        **{"all-ones": ones, "all-minus-ones": -ones},
    }.get(strategy)
    if free is None:  # interleaving
        free = words[rng.integers(len(words), size=n), np.arange(n)]
    shared = unanimous(words)
    return np.where(shared == 0, free, shared)
