"""Where the pairs of an audit come from."""

from collections.abc import Sequence
from typing import Any, cast

from dpaudit.audit.search.pair_search import PairSource
from dpaudit.audit.search.proposals import Proposals
from dpaudit.domains import Domain
from dpaudit.errors import InputError
from dpaudit.mechanism import HasCanonicalPairs, HasWorstCase, Mechanism
from dpaudit.neighbours import Pair, Relation

__all__ = ["pair_source"]


class _Given:
    """Pairs that are given: nothing is searched beyond them."""

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
    pair: Pair | None,
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
        if pair is not None:
            raise InputError("pair and domain exclude each other")
        wanted = stated if relation is None else Relation.parse(relation)
        if wanted is None:
            raise InputError("relation is needed: the mechanism states none")
        return Proposals(mechanism, domain, wanted, seed)
    if pair is None:
        if isinstance(mechanism, HasWorstCase):
            pair = mechanism.worst_case()
        elif isinstance(mechanism, HasCanonicalPairs):
            wanted = stated or relation or mechanism.canonical_pairs()[0].relation
            return Proposals(cast(Mechanism, mechanism), None, wanted, seed)
        else:
            raise InputError(
                "pair or domain is needed: the mechanism names no worst case"
            )
    if not isinstance(pair, Pair):
        raise InputError(f"pair must be a Pair, got {type(pair).__name__}")
    stated = stated or (relation and Relation.parse(relation)) or pair.relation
    if stated != pair.relation:
        raise InputError(
            f"the claim is under {stated}, but the pair is "
            f"{pair.relation}; a claim is audited under its own relation"
        )
    return _Given(pair)
