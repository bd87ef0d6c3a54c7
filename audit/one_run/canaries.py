r"""`audit_canaries`: one release, or a few, and a fair coin for each of many canaries.

1. Every canary gets a fair coin. Under ADD_REMOVE it is in the data if the coin shows
   1. Under REPLACE_ONE canaries come in pairs, rows 2i and 2i + 1, and the coin says
   which of the two is in: the number of rows is fixed.
2. One run of the mechanism. The attack gives every canary a score; of a pair the
   difference counts.
3. The attacker guesses r coins and abstains on the others: those whose number is
   farthest from zero, by its sign. Under REPLACE_ONE the number is the difference of
   the pair's scores, under ADD_REMOVE the score less the middle between the two groups
   into which the scores fall best. Ties are broken by chance.
4. `dpaudit.audit.bounds.one_run` turns the right guesses into a bound.

Why the bound applies. Its theorem needs that, given all the other coins, the laws of
the release for the two values of one coin satisfy the inequalities of the claim, and
that coins are fair and independent. Under ADD_REMOVE the two datasets differ by one
row, present or not; under REPLACE_ONE they differ in the one row, c_2i or c_2i+1, and
there are equally many: neighbours in both cases under the relation of the claim, with
the claim's own epsilon and delta. Rows are in the same order whatever the coins are.

Several runs. With R independent runs and fresh coins, the coins of all runs are fair
and independent, and one of them changes the law of its own run's release only: the R
releases together, given the other coins, satisfy the same inequalities (a factor that
both laws share changes nothing). So the theorem holds for the R m canaries, R r guesses
and the sum of the right ones, and nothing is paid for having more than one run.

Of a claim of Gaussian DP mu is bounded, which is worth more than epsilon at one delta.

Unless delta = 0 the theorem needs an r that was fixed before the release. It is given,
or chosen on `pilots` runs with coins of their own, whose guesses are not counted.

References
----------
Steinke, Nasr, Jagielski, *Privacy auditing with one (1) training run*, NeurIPS 2023.
Mahloujifar, Melis, Chaudhuri, *Auditing f-differential privacy in one run*, ICML 2025.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.arrays import Array
from dpaudit.attacks.pirates import ask
from dpaudit.audit.bounds.result import Bound
from dpaudit.audit.judged import Verdict
from dpaudit.audit.one_run.guesses import (
    bound_for,
    middle,
    p_value_against,
    promised,
    right_guesses,
)
from dpaudit.audit.one_run.result import CanaryAudit
from dpaudit.audit.sampling.draws import Memory
from dpaudit.audit.sampling.sampler import Signs
from dpaudit.audit.settings import name_of, stated
from dpaudit.batches import Batch
from dpaudit.claims import Claim
from dpaudit.errors import InputError
from dpaudit.mechanism import Mechanism, Release
from dpaudit.neighbours import Relation
from dpaudit.outputs import read
from dpaudit.streams import position, stream
from dpaudit.validation import check_count, check_fraction, check_matrix

__all__ = ["CanaryAttack", "audit_canaries"]

_PILOT, _TESTED, _LOOKED = range(3)  # keys of the streams
_CHOICES = 16


@dataclass(frozen=True)
class _Run:
    """One run of the mechanism: its coins, and what it released."""

    key: tuple[int, ...]
    coins: NDArray[np.bool_]
    release: Release
    used_rng: bool


class CanaryAttack(Protocol):
    """Scores of many canaries from one release, such as `TracingAttack`."""

    @property
    def rows(self) -> Array:
        """The canaries, shape (m, d)."""
        ...

    def scores(self, mechanism: Any, release: Release) -> Array:
        """Return one number per canary, larger where it is in the data; shape (m,)."""
        ...


@dataclass
class _Runs:
    """Runs of a mechanism on the same canaries, each with coins of its own."""

    mechanism: Any
    attack: CanaryAttack
    fixed: Array
    canaries: Array
    relation: Relation
    seed: int
    _first: _Run | None = None
    _used_rng: bool = False
    _made: int = 0

    def __post_init__(self) -> None:
        self._memory = Memory(self.mechanism)

    @property
    def coins(self) -> int:
        """How many coins a run has."""
        m = len(self.canaries)
        return m if self.relation is Relation.ADD_REMOVE else m // 2

    def judged(self, *key: int) -> NDArray[np.bool_]:
        """Run; return whether each guess is right, the most confident guess first."""
        run = self._run(*key)
        self._first, self._made = self._first or run, self._made + 1
        self._used_rng |= run.used_rng
        scores = self._scores(run.release)
        if self.relation is Relation.REPLACE_ONE:
            scores = scores[::2] - scores[1::2]
        else:
            scores = scores - middle(scores)
        return right_guesses(scores, run.coins, stream(self.seed, *key, 2))

    def signs(self) -> Signs:
        """Repeat the first run for signs that runs are not independent draws."""
        assert self._first is not None
        try:
            both = self._first, self._run(*self._first.key)
            kept = both[0].used_rng and not both[1].used_rng
            one, other = (Batch.gather([read(run.release)]) for run in both)
            repeats = one.equals(other)
            if repeats and self._made > 1:  # one alone depends on nothing kept
                kept = kept or self._memory.matters(self._look)
        except Exception:  # it refuses now what it took at the beginning
            repeats, kept = False, False
        return Signs.of(
            self.mechanism,
            repeats=repeats,
            uses_rng=self._used_rng,
            keeps_noise=kept,
        )

    def _look(self) -> Batch:
        return Batch.gather([read(self._run(_LOOKED, 0).release)])

    def _run(self, *key: int) -> _Run:
        """Toss the coins, and let the mechanism run."""
        rng, noise = (stream(self.seed, *key, part) for part in range(2))
        coins = rng.integers(0, 2, self.coins).astype(np.bool_)
        if self.relation is Relation.ADD_REMOVE:
            rows = self.canaries[coins]
        else:
            rows = np.where(
                coins[:, np.newaxis], self.canaries[::2], self.canaries[1::2]
            )
        before = position(noise)
        release = ask(self.mechanism, np.concatenate([self.fixed, rows]), noise)
        return _Run(key, coins, release, position(noise) != before)

    def _scores(self, release: Release) -> Array:
        scores = np.asarray(self.attack.scores(self.mechanism, release), dtype=float)
        if scores.shape != (len(self.canaries),) or np.isnan(scores).any():
            raise InputError(
                f"attack must score every canary with a number, shape "
                f"{(len(self.canaries),)}, got shape {scores.shape}"
            )
        return scores


def audit_canaries(
    mechanism: Mechanism | Callable[..., Any],
    attack: CanaryAttack,
    *,
    fixed: ArrayLike | None = None,
    claim: Claim | None = None,
    relation: Relation | str | None = None,
    delta: float | None = None,
    runs: int = 1,
    guesses: int | None = None,
    pilots: int | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    name: str | None = None,
) -> CanaryAudit:
    """Guess which canaries are in the data, and say what that shows of the claim.

    At the end the mechanism runs once more, as in its first run (and three times if its
    code has kept something): there is no verdict on mechanisms that keep state or draw
    randomness of their own, and a warning of those that ignore their generator.

    Parameters
    ----------
    mechanism : Mechanism or callable
        A `~dpaudit.mechanism.Mechanism`, or a function ``(data, rng) -> array``.
    attack : CanaryAttack
        `dpaudit.attacks.tracing_attack.TracingAttack`, or anything with `rows`, the
        canaries, and `scores`. Under REPLACE_ONE the rows 2i and 2i + 1 are a pair.
    fixed : array_like, shape (n, d), optional
        Rows that are always in the data, before the canaries. Without them the data
        may be as short as the coins have it, and empty.
    claim : Claim, optional
        By default the mechanism's own.
    relation : Relation or str, optional
        By default the mechanism's own.
    delta : float, optional
        Where epsilon is bounded. By default the claim's own delta, or 1e-5 for a claim
        that is a curve.
    runs : int
        How many independent runs, each with fresh coins.
    guesses : int, optional
        r, how many coins of a run to guess. By default chosen on the pilots.
    pilots : int, optional
        Runs to choose r on. By default a fifth of `runs`, at least one; none where
        `guesses` is given.
    confidence : float
        In (0, 1).
    seed : int
        >= 0. The same seed gives the same result.
    name : str, optional
        For the result; by default that of the mechanism's class or function.

    Returns
    -------
    CanaryAudit

    Raises
    ------
    InputError
        If an argument is not allowed; if claim or relation is missing and the mechanism
        states none; if under REPLACE_ONE the number of canaries is odd.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import PureDP
    >>> from dpaudit.attacks.tracing_attack import TracingAttack
    >>> from dpaudit.fingerprinting import HardInstance
    >>> from dpaudit.subspace import second_moment
    >>> rng = np.random.default_rng(0)
    >>> instance = HardInstance.generate(8, 200, cutoff=0.01, pad_ratio=1, rng=rng)
    >>> def pca(data, rng):
    ...     return second_moment(data)
    >>> options = dict(claim=PureDP(1.0), relation="add-remove", runs=10)
    >>> result = audit_canaries(pca, TracingAttack(instance), **options)
    >>> str(result.verdict)
    'REFUTED'
    """
    started = time.perf_counter()
    claim = stated(mechanism, "claim", claim)
    confidence = check_fraction("confidence", confidence)
    epsilon, delta = promised(claim, delta)
    made = _Runs(
        mechanism,
        attack,
        *_data(attack, fixed),
        Relation.parse(stated(mechanism, "relation", relation)),
        check_count("seed", seed, minimum=0),
    )
    if made.relation is Relation.REPLACE_ONE and len(made.canaries) % 2:
        raise InputError(
            "attack must have an even number of canaries under replace-one, where they "
            f"come in pairs, got {len(made.canaries)}"
        )
    runs = check_count("runs", runs)
    coins = made.coins
    if guesses is None:
        pilots = max(1, runs // 5) if pilots is None else check_count("pilots", pilots)
        total = np.zeros(coins, dtype=np.int64)
        for i in range(pilots):
            total += made.judged(_PILOT, i)
        guess = partial(bound_for, claim, delta, confidence)
        guesses = _choose(np.cumsum(total), pilots, runs, guess)
    elif pilots:
        raise InputError(
            f"pilots choose guesses, which are given; got pilots={pilots!r}"
        )
    guesses = check_count("guesses", guesses, maximum=coins)
    correct = 0
    for i in range(runs):
        right = made.judged(_TESTED, i)
        correct += int(np.count_nonzero(right[:guesses]))
    counts = {"correct": correct, "guesses": runs * guesses, "canaries": runs * coins}
    p_value = p_value_against(claim, delta, **counts)
    refuted = p_value <= 1 - confidence
    seen = made.signs()
    result = CanaryAudit(
        name=name_of(mechanism) if name is None else name,
        verdict=Verdict.REFUTED if refuted else Verdict.NOT_REFUTED,
        claim=claim,
        relation=made.relation,
        epsilon=epsilon,
        p_value=p_value,
        bound=bound_for(claim, delta, confidence, **counts),
        runs=runs,
        pilots=pilots or 0,
        canaries=coins,
        guesses=guesses,
        warnings=seen.warnings,
        seed=seed,
        seconds=time.perf_counter() - started,
    )
    return result.withdrawn() if seen.refute_it else result


def _choose(
    right: NDArray[np.int64], pilots: int, runs: int, bound: Callable[..., Bound]
) -> int:
    """Return the number of guesses that promises most; right[r - 1] are right of r."""
    coins = len(right)
    choices = np.unique(np.geomspace(1, coins, _CHOICES).round().astype(int))[::-1]

    def promise(r: int) -> float:
        # Laplace's rule keeps a few lucky guesses from promising everything.
        share = (right[r - 1] + 1) / (pilots * r + 2)
        correct = int(share * runs * r)
        return bound(correct=correct, guesses=runs * r, canaries=runs * coins).value

    return int(max((int(r) for r in choices), key=promise))


def _data(attack: CanaryAttack, fixed: ArrayLike | None) -> tuple[Array, Array]:
    if not hasattr(attack, "rows") or not hasattr(attack, "scores"):
        raise InputError(f"attack must have rows and scores, got {attack!r}")
    canaries = check_matrix("attack.rows", attack.rows, min_rows=1)
    if fixed is None:
        return np.empty((0, canaries.shape[1])), canaries
    rows = check_matrix("fixed", fixed)
    if rows.shape[1] != canaries.shape[1]:
        raise InputError(
            f"fixed must have rows of the canaries' length, {canaries.shape[1]}, "
            f"got shape {rows.shape}"
        )
    return rows, canaries
