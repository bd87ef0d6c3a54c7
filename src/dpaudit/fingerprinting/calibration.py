r"""Where to accuse: thresholds from strangers, and p-values that need none.

`rank_p_values` compares a score with those of m strangers, codewords drawn like the
innocent users' and kept secret. Given the biases and the pirated word, the scores
of an innocent user and of the strangers are m + 1 independent draws of one law, so the
rank of the user's is uniform up to ties, and

.. math:: p = (1 + \#\{\text{strangers} \ge \text{score}\}) / (m + 1)

satisfies P(p <= a) <= a for every a, in finite samples, for all pirates.
`calibrated_threshold` is the same rule, solved for the score.

`conditional_p_values` is Chernoff's bound for the score of an innocent user, given the
biases and the pirated word:

.. math:: p = \min_l \exp\Big(-l s + \sum_j \log E e^{l y_j U_j}\Big), \quad
   U_j = (c_j - q_j)/\sqrt{1 - q_j^2},

an upper bound of P(S >= s) that no pirate changes, capped at 1, over a grid of l. (A
grid that depends on the scores is as good: the infimum over all l is a p-value, and the
minimum over any grid is no smaller.)
"""

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.fingerprinting.codes import check_biases, check_word
from dpaudit.validation import check_fraction, check_real

__all__ = ["calibrated_threshold", "conditional_p_values", "rank_p_values"]

_EXPONENTS = 96


def rank_p_values(scores: ArrayLike, strangers: ArrayLike) -> Array:
    """Return (1 + number of strangers that score as much)/(m + 1) for each score.

    Parameters
    ----------
    scores : array_like, shape (n,)
    strangers : array_like, shape (m,)
        Scores of codewords that no user has; m at least 1.

    Returns
    -------
    ndarray, shape (n,)
        In [1/(m + 1), 1].

    Raises
    ------
    InputError
        If a score is NaN, or there is no stranger.

    Examples
    --------
    >>> rank_p_values([5.0, 2.0], [1.0, 2.0, 3.0])
    array([0.25, 0.75])
    """
    scored = _scores("scores", scores)
    ordered = np.sort(_scores("strangers", strangers))
    reached = len(ordered) - np.searchsorted(ordered, scored, side="left")
    p_values: Array = (1 + reached) / (len(ordered) + 1)
    return p_values


def calibrated_threshold(strangers: ArrayLike, level: float) -> float:
    """Return the threshold above which the rank's p-value is at most `level`.

    Parameters
    ----------
    strangers : array_like, shape (m,)
    level : float
        In (0, 1), at least 1/(m + 1): otherwise no score would ever do.

    Returns
    -------
    float
        Accuse whose score is *larger*. An innocent user is then accused with
        probability at most `level`.

    Raises
    ------
    InputError
        If there are too few strangers for the level.

    Examples
    --------
    >>> calibrated_threshold([1.0, 2.0, 3.0, 4.0], 0.4)
    3.0
    """
    ordered = np.sort(_scores("strangers", strangers))
    level = check_fraction("level", level)
    above = int(np.floor(level * (len(ordered) + 1)))
    if above < 1:
        raise InputError(
            f"level must be at least 1/(m + 1) for m strangers, here "
            f"{1 / (len(ordered) + 1):.3g}, got {level!r}"
        )
    return float(ordered[-above])


def conditional_p_values(
    scores: ArrayLike, biases: ArrayLike, word: ArrayLike
) -> Array:
    """Return upper bounds of an innocent user's chances to score as much.

    Parameters
    ----------
    scores : array_like, shape (n_users,)
        From `dpaudit.fingerprinting.tracing_scores`.
    biases : array_like, shape (n,)
        In (-1, 1).
    word : array_like, shape (n,)
        y, in [-1, 1].

    Returns
    -------
    ndarray, shape (n_users,)
        In [0, 1]; 1 for scores that are not positive.

    Examples
    --------
    >>> import numpy as np
    >>> conditional_p_values([30.0], np.zeros(100), np.ones(100)).round(5)
    array([0.01038])
    """
    scored = _scores("scores", scores)
    q = check_biases(biases)
    y = check_word(word, len(q))
    up, down = np.sqrt((1 - q) / (1 + q)), np.sqrt((1 + q) / (1 - q))
    spread = max(float(np.sum(y**2)), 1e-300)
    # The best exponent is near s over the variance, and smaller where terms are skewed.
    largest = max(float(scored.max(initial=0.0)), 0.0) / spread
    exponents = largest * np.geomspace(1e-3, 2.0, _EXPONENTS)
    logs = np.empty(_EXPONENTS)
    for i, exponent in enumerate(exponents):
        tilt = np.logaddexp(
            np.log1p(q) + exponent * y * up, np.log1p(-q) - exponent * y * down
        )
        logs[i] = np.sum(tilt - np.log(2))
    best = np.max(np.multiply.outer(scored, exponents) - logs, axis=1)
    p_values: Array = np.exp(-np.maximum(best, 0.0))
    return p_values


def _scores(name: str, value: ArrayLike) -> Array:
    scores = check_real(name, value, "a vector of numbers")
    if scores.ndim != 1 or not len(scores) or np.isnan(scores).any():
        raise InputError(
            f"{name} must be a vector of at least one number, none of them NaN, "
            f"got shape {scores.shape}"
        )
    return scores
