"""What a coalition can do with its codewords: the marking condition, and strategies.

Source: Dwork, Talwar, Thakurta, Zhang, *Analyze Gauss*, STOC 2014, section 5. For a
coalition S, c_S is 1 or -1 where all its codewords agree on that symbol and 0 elsewhere
(`unanimous`); a word is beta-valid if it agrees with c_S on all but a share beta of the
unanimous positions (`invalid_share`). A word that is 0-valid obeys the marking
condition: the pirates have not seen the other symbol there, so cannot write it.

The strategies differ on the other positions: the more frequent symbol, the rarer one,
that of a pirate drawn afresh for each position (`interleaving`), a fair coin, always
1, or always -1.
"""

from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.fingerprinting.codes import Symbols, check_generator, check_symbols
from dpaudit.fingerprinting.codes import check_word as _check_word
from dpaudit.validation import check_name

__all__ = ["STRATEGIES", "Strategy", "collude", "invalid_share", "unanimous"]

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
    shared = np.where((words == words[0]).all(axis=0), words[0], 0)
    return shared.astype(np.int8)


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
    y = _check_word(word, len(shared))
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
    match strategy:
        case "majority":
            free = tied
        case "minority":
            free = -tied
        case "interleaving":
            free = words[rng.integers(len(words), size=n), np.arange(n)]
        case "coin":
            free = coins
        case "all-ones":
            free = np.ones(n, dtype=np.int8)
        case _:
            free = -np.ones(n, dtype=np.int8)
    shared = unanimous(words)
    return np.where(shared == 0, free, shared)
