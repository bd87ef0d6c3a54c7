"""Where the pairs of an audit come from, and which of them plays the next round.

With one pair there is nothing to choose. `dpaudit.audit.search` chooses among several.
"""

from collections.abc import Sequence, Set
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from dpaudit.domains import Domain
from dpaudit.errors import InputError, MechanismError
from dpaudit.mechanism import HasCanonicalPairs, HasWorstCase, Mechanism
from dpaudit.neighbours import Pair, Relation
from dpaudit.object_pairs import ObjectPair

__all__ = ["OnePair", "PairChoice", "PairSource", "Round", "pair_source"]

_EITHER = " or ".join(each.value for each in Relation)


class PairSource(Protocol):
    """Where pairs come from; `dpaudit.audit.search.proposals.Proposals` is one."""

    domain: Domain | None

    @property
    def endless(self) -> bool:
        """Whether there are pairs beyond the first."""
        ...

    def first(self) -> Sequence[Pair]:
        """Return the pairs to begin with, the most promising first."""
        ...

    def random(self, rng: np.random.Generator) -> Pair:
        """Return a random pair."""
        ...

    def ascend(self, pair: Pair, scale: float, rng: np.random.Generator) -> Pair:
        """Return a pair near to one that has done well."""
        ...


class Round(NamedTuple):
    """What is played next: an arm, how many releases a side, and whether it is bet on.

    A round without bets only teaches.
    """

    arm: int
    size: int
    bets: bool = True


class PairChoice(Protocol):
    """Which pair plays the coming round, by what was reported of those before.

    `dpaudit.audit.search.pair_search.PairSearch` is one, and says what is meant.
    """

    @property
    def searching(self) -> bool:
        """Whether there is any pair to choose beside the first."""
        ...

    @property
    def live(self) -> Set[int]:
        """The pairs that may be played again, by their numbers."""
        ...

    def next_round(self, size: int) -> Round:
        """Return the pair of the coming round and its size: a round of bets.

        It draws at most `size` releases a side; one without bets may draw more.
        """
        ...

    def report(self, arm: int, score: float, releases: int) -> None:
        """Take note of a round."""
        ...

    def pair(self, arm: int) -> Pair:
        """Return a pair."""
        ...

    def best(self) -> int:
        """Return the pair that seems worst now."""
        ...


class OnePair:
    """The choice where there is none: a pair plays until it is refused."""

    searching = False

    def __init__(self, pair: Pair, number: int = 0) -> None:
        self._pair, self._number = pair, number
        self.live = {number}

    def next_round(self, size: int) -> Round:
        if not self.live:
            raise MechanismError("the mechanism refuses the pair")
        return Round(self._number, size)

    def report(self, arm: int, score: float, releases: int) -> None:
        if score == -np.inf:
            self.live.discard(arm)

    def pair(self, arm: int) -> Pair:
        return self._pair

    def best(self) -> int:
        return self._number


class _Given:
    """Pairs that are given: nothing is searched beyond them."""

    domain: Domain | None = None
    endless = False

    def __init__(self, *pairs: Pair) -> None:
        self._pairs = pairs

    def first(self) -> Sequence[Pair]:
        return self._pairs

    def random(self, rng: Any) -> Pair:
        raise NotImplementedError

    def ascend(self, pair: Pair, scale: float, rng: Any) -> Pair:
        raise NotImplementedError


def pair_source(
    mechanism: Any,
    pair: Pair | tuple[Any, Any] | None,
    domain: Domain | str | None,
    relation: Relation | str | None,
    seed: int,
) -> PairSource:
    """Return where an audit's pairs come from: given, named by the mechanism, or found.

    Raises
    ------
    InputError
        If the arguments exclude each other, or name no pair, or more than one relation.
    """
    stated = getattr(mechanism, "relation", None)
    if relation is not None and stated not in (None, Relation.parse(relation)):
        raise InputError(
            f"the mechanism's claim is under {stated}, not {relation}; a claim is "
            "audited under its own relation"
        )
    if isinstance(domain, str):
        domain = Domain.parse(domain)
    if not isinstance(domain, Domain | None):
        raise InputError(f"domain must be a Domain or a string, got {domain!r}")
    if domain is not None:
        if pair is not None and not isinstance(pair, Pair):
            raise InputError(
                "pair must be a Pair where a domain is given, got "
                f"{type(pair).__name__}"
            )
        wanted = stated if relation is None else Relation.parse(relation)
        if wanted is None and pair is not None:
            wanted = pair.relation
        if wanted is None:
            raise InputError(
                f"relation is needed: the mechanism states none; {_EITHER}"
            )
        return _proposals(mechanism, domain, wanted, seed, pair)
    if pair is None:
        if isinstance(mechanism, HasWorstCase):
            pair = mechanism.worst_case()
        elif isinstance(mechanism, HasCanonicalPairs):
            wanted = stated or relation or mechanism.canonical_pairs()[0].relation
            return _proposals(mechanism, None, wanted, seed, None)
        else:
            raise InputError(
                "pair or domain is needed: the mechanism names no worst case"
            )
    if isinstance(pair, tuple):
        pair = _object_pair(pair, stated or relation)
    if not isinstance(pair, Pair):
        raise InputError(
            "pair must be a Pair, or a tuple of two datasets of any kind, got "
            f"{type(pair).__name__}"
        )
    stated = stated or (relation and Relation.parse(relation)) or pair.relation
    if stated != pair.relation:
        raise InputError(
            f"the claim is under {stated}, but the pair is "
            f"{pair.relation}; a claim is audited under its own relation"
        )
    return _Given(pair)


def _object_pair(sides: tuple[Any, ...], relation: Any) -> ObjectPair:
    if len(sides) != 2:
        raise InputError(
            f"pair must be a tuple of two datasets, got one of {len(sides)}"
        )
    if relation is None:
        raise InputError(
            f"relation is needed with a pair of datasets that are objects: {_EITHER}"
        )
    return ObjectPair(*sides, relation)


def _proposals(
    mechanism: Any,
    domain: Domain | None,
    relation: Relation | str,
    seed: int,
    begin: Pair | None,
) -> PairSource:
    from dpaudit.audit.search.proposals import Proposals

    return Proposals(cast(Mechanism, mechanism), domain, relation, seed, begin)
