"""Signs that an audit does not see what it seems to see.

Every statement of an audit assumes that, given the dataset, each release is drawn anew
from the same distribution, with the generator that it was handed. Three checks find the
usual ways to break this, and no more than these:

- the same seeds are used again after the audit: a release that differs from the first
  depends on the calls in between, or on randomness of the mechanism's own;
- a mechanism that leaves its generator untouched does not use it;
- a batched draw whose releases are nearer each other than one of another batch shares
  noise between them.

Where one of them shows that the assumption fails, there is no verdict. Two things are
no such showing. A mechanism that never uses its generator and always releases the same
is deterministic: its releases are of one law. And a mechanism may say that it draws
from the operating system instead, with an attribute `seedable` that is False: its
author then answers for its releases, which are to be independent all the same.

And an audit sees only what it can read and compare: outputs of which the type alone is
known, and words that never occur twice, tell it nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpaudit.audit.game.pair_audit import PairAudit
from dpaudit.audit.sampling.sampler import Sampler
from dpaudit.batches import Batch
from dpaudit.errors import DPAuditError
from dpaudit.outputs import UNREAD, read

__all__ = [
    "Signs",
    "repeats",
    "same_output",
    "signs",
    "signs_of_dependence",
    "signs_seen",
    "unreadable",
]

_STATE = (
    "the same seed gave another release at the end than at the beginning: the "
    "mechanism keeps state between calls, or draws randomness of its own"
)
_UNUSED = (
    "the mechanism does not use its rng: its releases are constant, or draw randomness "
    "from elsewhere"
)

_SHARED = (
    "releases of one batched draw resemble each other more than those of another one: "
    "they share noise, so that they are fewer independent releases than they seem"
)

_NAMED = 3
_MOST = 0.5


@dataclass(frozen=True)
class Signs:
    """What was seen of the assumption that releases are independent draws of one law.

    Parameters
    ----------
    warnings : tuple of str
        What speaks against it.
    refute_it : bool
        Whether it was seen to fail, so that nothing follows from the releases.
    """

    warnings: tuple[str, ...]
    refute_it: bool


def signs_of_dependence(pair_audit: PairAudit, mechanism: Any) -> Signs:
    """Return what was seen of the mechanism on the pair."""
    return signs_seen(pair_audit.sampler, mechanism, lambda: repeats(pair_audit))


def signs_seen(sampler: Sampler, mechanism: Any, repeats: Callable[[], bool]) -> Signs:
    """Return what was seen of the mechanism that is sampled.

    Parameters
    ----------
    sampler : Sampler
        Which drew the releases.
    mechanism : Mechanism or callable
        Not its view at the audit's layer.
    repeats : callable
        Says whether the same streams give the first releases once more.
    """
    try:
        return signs(
            mechanism,
            repeats=repeats(),
            uses_rng=sampler.uses_rng(),
            shares_noise=sampler.shares_noise(),
            varies=sampler.varies,
        )
    except DPAuditError:
        # It refuses now what it took at the beginning.
        return signs(mechanism, repeats=False, uses_rng=True)


def repeats(pair_audit: PairAudit) -> bool:
    """Say whether the same streams give the first releases on a pair once more.

    Raises
    ------
    DPAuditError
        Whatever the mechanism raises of dpaudit's own.
    """
    first = pair_audit.first_look
    assert first is not None  # the pilot was drawn
    again = pair_audit.replay_pilot()
    return all(a.equals(b) for a, b in zip(first, again, strict=True))


def signs(
    mechanism: Any,
    *,
    repeats: bool,
    uses_rng: bool,
    shares_noise: bool = False,
    varies: bool = False,
) -> Signs:
    """Return what was seen of a mechanism.

    Parameters
    ----------
    mechanism : Mechanism or callable
    repeats : bool
        Whether the same seed gave the same release at the end as at the beginning.
    uses_rng : bool
        Whether it ever drew from the generator that it was handed.
    shares_noise : bool
        Whether the releases of a batch resemble each other.
    varies : bool
        Whether two releases on one dataset differed.
    """
    found = {_STATE: not repeats, _UNUSED: not uses_rng, _SHARED: shares_noise}
    seeded = getattr(mechanism, "seedable", True) is not False
    elsewhere = not repeats or (varies and not uses_rng)
    return Signs(
        warnings=tuple(sign for sign, seen in found.items() if seen),
        refute_it=shares_noise or (seeded and elsewhere),
    )


def same_output(first: Any, second: Any) -> bool:
    """Say whether a mechanism gave the same output twice; NaN equals NaN."""
    one, other = (Batch.gather([read(output)]) for output in (first, second))
    return one.equals(other)


def unreadable(pair_audit: PairAudit) -> tuple[str, ...]:
    """Return warnings about outputs that nothing could be learned from."""
    found = []
    if pair_audit.portfolio.only_output is not None:
        found.append(
            f"every output was the same one, {pair_audit.portfolio.only_output}: does "
            "the mechanism return its result?"
        )
    if kinds := pair_audit.portfolio.unread:
        names = ", ".join(kind.removeprefix(UNREAD) for kind in kinds[:_NAMED])
        more = ", ..." if len(kinds) > _NAMED else ""
        found.append(
            f"some outputs can be told by their type alone ({names}{more}): return "
            "numbers, words, or lists and dictionaries of them"
        )
    if pair_audit.portfolio.unrepeated > _MOST:
        found.append(
            "most outputs are words that never occur twice, which cannot be compared: "
            "return the numbers that they hold"
        )
    return tuple(found)
