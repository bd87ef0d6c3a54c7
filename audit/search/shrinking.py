"""The pair of a refutation, shrunk to the least on which the claim still falls.

As a failing example of a property test is shrunk (MacIver, Donaldson, *Test-case
reduction via test-case generation*, ECOOP 2020), a pair loses rows and its entries
become simpler, as long as it seems to violate the claim: two looks at a few fresh
releases each must show so much of the excess of the pair that was audited. What is left
of that is luck in part, as one is taken of many. So it is shown only if an audit of its
own refutes the claim there, on releases that are fresh again: the k-th that is tried
may err with 2^-k of the probability with which the whole may. Tried are the last pair,
and if it stands, larger ones. Whatever comes of it, the verdict is that of the pair
that was audited.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.game.pair_audit import OnePair
from dpaudit.audit.game.state import AuditState
from dpaudit.audit.result import AuditResult
from dpaudit.audit.search.cut import PairCut
from dpaudit.audit.settings import Settings
from dpaudit.domains import Domain
from dpaudit.neighbours import Pair, Relation

__all__ = ["descent", "shrunk", "with_smaller"]

_FRESH = 2**30  # the first number of pairs that no search has
_LONGER, _MORE = 10, 4000  # releases a side of all looks: per one to refute, and more
_FEWEST, _MOST = 60, 2000  # releases a side of a look
_SHARE, _LEAST = 0.5, 1.5  # of the excess that must be left, in standard errors
_TRIED = 3  # pairs that are audited
_ENTRIES = 50  # of a row that are made simpler in turn, before the next


def with_smaller(
    result: AuditResult,
    state: AuditState,
    settings: Settings,
    domain: Domain,
    told: Callable[..., AuditResult],
    ends: Callable[[], str],
) -> AuditResult:
    """Return a refutation with its pair in words, and a smaller one that falls too.

    Parameters
    ----------
    result : AuditResult
    state : AuditState
        That it came to.
    settings : Settings
    domain : Domain
        Of the pair.
    told : callable
        What a state has shown, under its `settings`.
    ends : callable
        Why to end, if there is a reason: whether it was ``"told to"``.
    """
    reasons = {""}

    def stop() -> bool:
        reasons.add(reason := ends())
        return bool(reason)

    def audited(pair: Pair, number: int, share: float) -> AuditResult | None:
        less = replace(settings.budget, releases=most, refine=0.0, stop=True)
        confidence = 1 - settings.alpha * share
        if confidence == 1:  # rounded
            return None
        own = replace(settings, confidence=confidence, budget=less)
        choice = OnePair(pair, _FRESH + number)
        again = AuditState(state.subject, choice, own, state.workers)
        if any(stop() for _ in again.rounds()):
            return None
        found = told(again, settings=own)
        return replace(found, neighbours=PairCut.words(pair, domain) or None)

    pair, refuted_at = state.best()[0].target.pair, state.refuted_at or state.samples
    most = min(settings.budget.releases, _LONGER * refuted_at + _MORE)
    found = shrunk(
        pair,
        domain,
        refuted_at=refuted_at,
        most=most,
        excess=lambda pair, n, size: state.excess_of(pair, _FRESH + n, size),
        audited=audited,
        stop=stop,
    )
    words = PairCut.words(pair, domain) or None
    told_to = "told to" in reasons
    return replace(result, neighbours=words, shrunk=found, interrupted=told_to)


def shrunk(
    pair: Pair,
    domain: Domain,
    *,
    refuted_at: int,
    most: int,
    excess: Callable[[Pair, int, int], float],
    audited: Callable[[Pair, int, float], Any],
    stop: Callable[[], bool],
) -> Any:
    """Return the audit of the smallest pair that was found to fall, or None.

    Parameters
    ----------
    pair : Pair
        With rows of the domain, on which the claim fell.
    domain : Domain
    refuted_at : int
        After so many releases a side.
    most : int
        Releases a side of all looks together, at most.
    excess : callable
        Of a pair, a number that no other call has, and releases a side: by how many
        standard errors they exceed the claim.
    audited : callable
        Of a pair, such a number, and the share of the error probability that an audit
        has: its result.
    stop : callable
        Whether it is time to end.
    """
    rows = pair.rows
    if rows is None or rows.data.shape[1:] != domain.shape:
        return None
    size, looks = int(np.clip(refuted_at, _FEWEST, _MOST)), 0
    least = max(_SHARE * excess(pair, looks, size), _LEAST)

    def seems(candidate: Pair) -> bool | None:
        nonlocal looks
        if stop() or (looks + 2) * size > most:
            return None
        for _ in range(2):
            looks += 1
            if excess(candidate, looks, size) < least:
                return False
        return True

    steps = descent(pair, domain, seems)
    tried = dict.fromkeys((len(steps) - 1, len(steps) // 2, 1))
    for n, step in enumerate([n for n in tried if 0 < n < len(steps)][:_TRIED], 1):
        if stop():
            break
        result = audited(steps[step], looks + n, 2.0**-n)
        if result is not None and result.refuted:
            return result
    return None


def descent(
    pair: Pair, domain: Domain, falls: Callable[[Pair], bool | None]
) -> list[Pair]:
    """Return a pair, and ever simpler ones that fall as well.

    Parameters
    ----------
    pair : Pair
        With rows of the domain.
    domain : Domain
    falls : callable
        Whether a pair does; None ends it.
    """
    if pair.rows is None or pair.rows.data.shape[1:] != domain.shape:
        return [pair]
    steps, cut, going = [pair], PairCut.of(pair.rows, domain), True
    while going:
        going = False
        for candidate in _simpler(cut, domain, pair.relation):
            smaller = candidate.pair(domain, pair.relation)
            fell = smaller is not None and falls(smaller)
            if fell is None:
                return steps
            if smaller is not None and fell:
                steps, cut, going = [*steps, smaller], candidate, True
                break
    return steps


def _simpler(cut: PairCut, domain: Domain, relation: Relation) -> Iterator[PairCut]:
    """Yield pairs that are simpler: with fewer rows, then with simpler ones."""
    common, n = list(cut.common), len(cut.common)
    size = n
    while size:
        for begin in range(0, n, size):
            end = min(begin + size, n)
            place = cut.place - max(0, min(cut.place, end) - begin)
            yield replace(cut, common=common[:begin] + common[end:], place=place)
        size //= 2
    zero = domain.extremes()[0]
    if any(_weight(row) > _weight(zero) for row in common):
        yield replace(cut, common=[zero] * n)
    for row in _simpler_rows(cut.after, domain):
        yield replace(cut, after=row)
    if relation is Relation.REPLACE_ONE:
        for row in _simpler_rows(cut.before, domain):
            yield replace(cut, before=row)
    distinct = {row.tobytes(): row for row in common}
    for key, old in distinct.items():
        for row in _simpler_rows(old, domain):
            moved = [row if each.tobytes() == key else each for each in common]
            yield replace(cut, common=moved)


def _simpler_rows(row: Array, domain: Domain) -> Iterator[Array]:
    """Yield legal rows that are simpler, the simplest first."""
    flat = row.ravel()
    found = [each for each in domain.extremes() if np.isfinite(each).all()]
    for place in np.flatnonzero(np.nan_to_num(flat))[:_ENTRIES]:
        for entry in (0.0, 1.0, np.rint(flat[place]), np.round(flat[place], 1)):
            moved = flat.copy()
            moved[place] = entry
            if np.isfinite(moved).all() or domain.nonfinite:
                found.append(domain.project(moved.reshape(row.shape)))
    seen = set()
    for each in sorted(found, key=_weight):
        if _weight(each) < _weight(row) and each.tobytes() not in seen:
            seen.add(each.tobytes())
            yield each


def _weight(row: Array) -> tuple[int, int]:
    """Return how many entries a row has that are not 0, and how long its numbers are.

    Each is looked at for itself, so that there are finitely many steps.
    """
    entries = np.ravel(row).tolist()
    return sum(x != 0 for x in entries), sum(len(repr(x)) for x in entries)
