r"""Guesses about the coins of canaries: how they are made of scores, and judged.

`audit_scores` and `audit_guesses` judge one run that was made elsewhere, for instance a
training of hours. A coin is one canary that may be in the data, or two of which one is.

What has to be true of the run, and cannot be seen from it:

- **Every canary has a fair coin of its own.** It is in the data with probability 1/2,
  whatever the others are. Half of the canaries drawn without replacement, one coin for
  several canaries, or members against strangers of another distribution are something
  else, and no bound follows.
- **Scores and guesses are made of the release, and not of the coins.** A score that was
  trained on canaries whose coins are known, or a threshold that was tuned on them, has
  seen what it guesses.
- **The number of guesses was fixed beforehand**, or is paid for. Where the most
  confident guesses are chosen by scores alone it is free *which* canaries are guessed.

**What is paid for.** Let there be K ways to guess, each fixed before the coins are
looked at: some numbers of guesses, some thresholds. Each has a p-value of its own; the
probability that the least of them is alpha/K at most is alpha at most, whatever they
have to do with each other. So K times the least p-value is a p-value, and the largest
of the bounds at confidence 1 - alpha/K is a bound at confidence 1 - alpha. This is all
that is needed, and holds for guesses from one run, which depend on each other.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr

from dpaudit.arrays import Array
from dpaudit.audit.bounds.one_run import one_run, one_run_p_value
from dpaudit.audit.bounds.result import Bound, check_level
from dpaudit.audit.judged import Verdict
from dpaudit.audit.one_run.result import CanaryAudit
from dpaudit.audit.settings import reference_point
from dpaudit.claims import Claim, GaussianDP
from dpaudit.errors import InputError
from dpaudit.neighbours import Relation
from dpaudit.streams import stream
from dpaudit.validation import check_count, check_fraction, check_real

__all__ = [
    "audit_guesses",
    "audit_scores",
    "bound_for",
    "middle",
    "p_value_against",
    "promised",
    "right_guesses",
]

_HALVINGS = 8
_UNFAIR = 1e-6  # coins so far from half are none that were fair
_SUSPICIOUS = 100  # coins from which on exactly half is seldom


def audit_scores(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    claim: Claim,
    relation: Relation | str = Relation.ADD_REMOVE,
    delta: float | None = None,
    guesses: Sequence[int] = (),
    thresholds: Sequence[float] = (),
    confidence: float = 0.95,
    seed: int = 0,
    name: str = "scores",
) -> CanaryAudit:
    """Judge the scores of one run: guess the coins of those farthest from a threshold.

    Parameters
    ----------
    scores : array_like, shape (m,)
        One for each coin, larger where it shows 1; made of the release alone.
    included : array_like, shape (m,)
        The coins: 1 if the canary is in the data (or the first of a pair), else 0.
    claim : Claim
    relation : Relation or str
        Of the neighbours that a coin makes.
    delta : float, optional
        Where epsilon is bounded; by default as for `audit_canaries`.
    guesses : sequence of int, optional
        How many coins to guess, fixed beforehand. Several share the error alpha: see
        the module. By default all, half of them, a quarter, ..., eight numbers at most.
    thresholds : sequence of float, optional
        Scores above are guesses of 1, below of 0, fixed beforehand or by scores alone.
        Several share the error. By default the middle between the two groups into which
        the scores fall best, which no coin is needed for.
    confidence : float
        In (0, 1).
    seed : int
        >= 0. Ties are broken by chance, and not by the order of the canaries.
    name : str

    Returns
    -------
    CanaryAudit

    Raises
    ------
    InputError
        If an argument is not allowed, or the coins cannot have been fair.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import PureDP
    >>> coins = np.random.default_rng(0).integers(0, 2, 500)
    >>> result = audit_scores(coins, coins, claim=PureDP(1.0), guesses=[500])
    >>> str(result.verdict), result.bound.value > 4
    ('REFUTED', True)
    """
    started = time.perf_counter()
    coins = _coins("included", included)
    x = check_real("scores", scores)
    if x.shape != coins.shape or np.isnan(x).any():
        raise InputError(
            f"scores must be a number for every coin, shape {coins.shape}, without "
            f"NaN; got shape {x.shape}"
        )
    numbers = [
        check_count("guesses", each, maximum=len(coins)) for each in guesses
    ] or sorted({max(1, len(coins) // 2**power) for power in range(_HALVINGS)})
    levels = check_real("thresholds", thresholds).tolist() or [middle(x)]
    if not np.isfinite(levels).all():
        raise InputError(f"thresholds must be finite, got {levels}")
    seed = check_count("seed", seed, minimum=0)
    tried = []
    for turn, level in enumerate(dict.fromkeys(levels)):
        right = right_guesses(x - level, coins, stream(seed, turn))
        tried += [(int(right[:r].sum()), r) for r in dict.fromkeys(numbers)]
    return _judged(
        tried, coins, claim, relation, delta, confidence, seed, name, started
    )


def audit_guesses(
    guess: ArrayLike,
    truth: ArrayLike,
    abstain: ArrayLike | None = None,
    *,
    claim: Claim,
    relation: Relation | str = Relation.ADD_REMOVE,
    delta: float | None = None,
    guesses: int | None = None,
    confidence: float = 0.95,
    name: str = "guesses",
) -> CanaryAudit:
    """Judge given guesses from one run.

    Parameters
    ----------
    guess, truth : array_like, shape (m,)
        0 or 1 for each coin. Where it was abstained, `guess` may be anything.
    abstain : array_like, shape (m,), optional
        1 where no guess was made, else 0. By default every coin was guessed.
    claim, relation, delta, confidence, name
        As for `audit_scores`.
    guesses : int, optional
        How many guesses were to be made, as fixed before the run. It must be said where
        delta > 0 and some coins were not guessed: there the bound holds for no other
        number of guesses.

    Returns
    -------
    CanaryAudit

    Raises
    ------
    InputError
        If an argument is not allowed, or the coins cannot have been fair; if there are
        more guesses, or fewer, than was said.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> coins = [0, 1] * 20
    >>> result = audit_guesses(coins, coins, claim=PureDP(1.0))
    >>> str(result.verdict), result.p_value < 1e-5
    ('REFUTED', True)
    """
    started = time.perf_counter()
    coins = _coins("truth", truth)
    silent = (
        np.zeros(len(coins), dtype=np.bool_)
        if abstain is None
        else _bits("abstain", abstain)
    )
    told = check_real("guess", guess)
    for label, each in (("abstain", silent), ("guess", told)):
        if each.shape != coins.shape:
            raise InputError(
                f"{label} must have an entry for every coin, shape {coins.shape}, got "
                f"shape {each.shape}"
            )
    made = _bits("guess", told[~silent])
    if not len(made):
        raise InputError("abstain must leave a guess at least, got none")
    _, delta = promised(claim, delta)
    if guesses is None:
        if delta > 0 and silent.any():
            raise InputError(
                "guesses must be given where delta > 0 and some coins are not guessed: "
                "the bound holds for a number that was fixed before the run"
            )
    elif check_count("guesses", guesses, maximum=len(coins)) != len(made):
        raise InputError(
            f"guesses must be how many there are, {len(made)}, got {guesses}"
        )
    right = int(np.count_nonzero(made == coins[~silent]))
    tried = [(right, len(made))]
    return _judged(tried, coins, claim, relation, delta, confidence, 0, name, started)


def right_guesses(
    scores: Array, coins: NDArray[np.bool_], chance: np.random.Generator
) -> NDArray[np.bool_]:
    """Return whether each guess is right, the most confident guess first.

    A positive score is a guess of 1, a negative one of 0; the farther from zero, the
    more confident. Ties are broken by chance.
    """
    shuffled = chance.permutation(len(coins))
    order = shuffled[np.argsort(-np.abs(scores[shuffled]), kind="stable")]
    flips = chance.integers(0, 2, len(coins)).astype(np.bool_)
    guesses = np.where(scores == 0, flips, scores > 0)
    return np.asarray((guesses == coins)[order])


def middle(scores: Array) -> float:
    """Return the middle between the means of two groups, by Otsu's rule.

    The groups are the scores up to one of them and those above, with the largest
    variance between the groups. Whatever is returned, the bound is valid: guesses may
    depend on the release in any way.
    """
    ordered = np.sort(np.clip(scores, -1e150, 1e150))
    below = np.arange(1, len(ordered))
    if not len(below):
        return 0.0
    sums = np.cumsum(ordered)
    low = sums[:-1] / below
    high = (sums[-1] - sums[:-1]) / below[::-1]
    best = int(np.argmax(below * below[::-1] * (high - low) ** 2))
    return float((low[best] + high[best]) / 2)


def _judged(
    tried: list[tuple[int, int]],
    coins: NDArray[np.bool_],
    claim: Claim,
    relation: Relation | str,
    delta: float | None,
    confidence: float,
    seed: int,
    name: str,
    started: float,
) -> CanaryAudit:
    """Return what the best of some ways to guess says; they share the error."""
    epsilon, delta = promised(claim, delta)
    confidence = check_fraction("confidence", confidence)
    level = 1 - (1 - confidence) / len(tried)
    _, _, alpha = check_level(delta, level)
    counts = [{"correct": v, "guesses": r, "canaries": len(coins)} for v, r in tried]
    p_values = [p_value_against(claim, delta, **each) for each in counts]
    bounds = [bound_for(claim, delta, level, **each) for each in counts]
    best = int(np.lexsort((p_values, [-each.value for each in bounds]))[0])
    refuted = min(p_values) <= alpha
    return CanaryAudit(
        name=name,
        verdict=Verdict.REFUTED if refuted else Verdict.NOT_REFUTED,
        claim=claim,
        relation=Relation.parse(relation),
        epsilon=epsilon,
        p_value=min(1.0, len(tried) * min(p_values)),
        bound=replace(bounds[best], confidence=confidence),
        runs=1,
        pilots=0,
        canaries=len(coins),
        guesses=tried[best][1],
        warnings=_signs(coins, tried),
        seed=seed,
        seconds=time.perf_counter() - started,
        tried=len(tried),
    )


def promised(claim: object, delta: float | None) -> tuple[float, float]:
    """Return what a claim promises, epsilon, and at which delta, or raise."""
    if not isinstance(claim, Claim):
        raise InputError(f"claim must be a Claim, got {claim!r}")
    delta = reference_point(claim)[1] if delta is None else delta
    delta = check_fraction("delta", delta, allow_zero=True)
    epsilon = claim.epsilon_at(delta)
    if not np.isfinite(epsilon):
        raise InputError(f"the claim {claim} promises no epsilon at delta = {delta:g}")
    return float(epsilon), delta


def bound_for(claim: Claim, delta: float, confidence: float, **counts: int) -> Bound:
    """Return the bound on what a claim promises: mu, or epsilon at delta."""
    gaussian = isinstance(claim, GaussianDP)
    return one_run(**counts, delta=delta, confidence=confidence, gaussian=gaussian)


def p_value_against(claim: Claim, delta: float, **counts: int) -> float:
    """Return the p-value against what a claim promises: mu, or epsilon at delta."""
    if isinstance(claim, GaussianDP):
        return one_run_p_value(**counts, mu=claim.parameters["mu"])
    epsilon = max(float(claim.epsilon_at(delta)), 0.0)
    return one_run_p_value(**counts, epsilon=epsilon, delta=delta)


def _bits(name: str, value: ArrayLike) -> NDArray[np.bool_]:
    """Return zeros and ones as truth values, or raise `InputError`."""
    numbers = check_real(name, value)
    others = numbers[~np.isin(numbers, (0.0, 1.0))]
    if numbers.ndim != 1 or len(others):
        got = f"{others[0]:g}" if len(others) else f"shape {numbers.shape}"
        raise InputError(f"{name} must be 0 or 1 for every canary, got {got}")
    return numbers == 1


def _coins(name: str, value: ArrayLike) -> NDArray[np.bool_]:
    """Return coins, unless they cannot have been tossed."""
    coins = _bits(name, value)
    ones = int(np.count_nonzero(coins))
    if not 0 < ones < len(coins):
        raise InputError(
            f"{name} must have both 0 and 1, got {len(coins)} canaries of one kind: "
            "each is in the data by a fair coin of its own"
        )
    if 2 * bdtr(min(ones, len(coins) - ones), len(coins), 0.5) < _UNFAIR:
        raise InputError(
            f"{name} must be fair coins, got {ones:,} of {len(coins):,}: each canary "
            "is in the data with probability 1/2"
        )
    return coins


def _signs(coins: NDArray[np.bool_], tried: list[tuple[int, int]]) -> tuple[str, ...]:
    """Return warnings: coins not tossed one by one, guesses the wrong way round."""
    count, found = len(coins), []
    if count >= _SUSPICIOUS and 2 * np.count_nonzero(coins) == count:
        found.append(
            f"exactly half of {count:,} canaries are in, which happens seldom by "
            "fair coins: a half that was drawn is no evidence here"
        )
    for right, guesses in tried:
        if bdtr(right, guesses, 0.5) < _UNFAIR:
            found.append(
                f"only {right:,} of {guesses:,} guesses are right, fewer than chance "
                "allows: if scores are smaller where a canary is in, as losses are, "
                "change their sign, and halve 1 - confidence for this second test"
            )
            break
    return tuple(found)
