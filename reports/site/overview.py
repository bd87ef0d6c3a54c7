"""The first page: what the report says of all families, in one look.

Claims are counted in three groups that are never mixed: those of papers and ours, those
that are false on purpose, and the textbook suite, on which the audit itself is
measured. Sentences are chosen by the data.
"""

from collections.abc import Mapping, Sized
from typing import Any

from dpaudit.algorithms.catalogue import FAMILIES
from dpaudit.reports.glossary import GLOSSARY
from dpaudit.reports.site.mechanisms import Standing
from dpaudit.reports.words import count, listed, spelt

__all__ = ["context", "headline"]

_SUITE = "textbook"
_WORDS = ("neighbour", "side", "event", "claim", "refuted", "not refuted")
_CLAIMS = ("audited claim", "audited claims")
_MISTAKES = ("mistake that we made on purpose", "mistakes that we made on purpose")


def _counted(found: Mapping[str, Standing]) -> list[Standing]:
    """Return the audited claims of papers and ours, of which a verdict came."""
    return [
        each
        for each in found.values()
        if each.audited
        and (each.founded or each.false)
        and not (each.planted or each.family == _SUITE)
    ]


def broken(found: Mapping[str, Standing]) -> list[Standing]:
    """Return the claims of papers, and ours, that are false as audited."""
    return [each for each in _counted(found) if each.false]


def headline(found: Mapping[str, Standing]) -> str:
    """Return the title of the report: how many claims of all families fell.

    Those that are false on purpose do not count, and neither does the textbook suite.
    """
    total, fell = len(_counted(found)), len(broken(found))
    if total == 0:
        return "No privacy claim was audited"
    claims = "claim" if total == 1 else "claims"
    number = spelt(fell) if fell else "none"
    return f"{number.capitalize()} of {spelt(total)} audited privacy {claims} fell"


def lead(found: Mapping[str, Standing]) -> str:
    """Return what belongs to the title: whose claims, and what was found besides."""
    fell = broken(found)
    parts = []
    if fell:
        parts.append(
            f"Audits refuted what is claimed for {listed(each.name for each in fell)}."
            if all(each.refuted for each in fell)
            else f"False is what is claimed for {listed(each.name for each in fell)}."
        )
    if planted := _planted(found):
        seen = [each for each in planted if each.refuted]
        text = _of(seen, planted, *_MISTAKES)
        parts.append(f"{text[:1].upper()}{text[1:]} found.")
    if any(not each.false for each in _counted(found)):
        parts.append("What was not refuted is not thereby proven private.")
    return " ".join(parts)


def group_sentences(found: Mapping[str, Standing]) -> list[tuple[str, str]]:
    """Return each family with one sentence on how its claims stand."""
    sentences = []
    for family, about in FAMILIES.items():
        some = [each for each in found.values() if each.family == family]
        audited = [each for each in some if each.audited]
        if not some:
            continue
        if not audited:
            text = f"{about}: {spelt(len(some))} in the catalogue, not audited here."
            sentences.append((family, text))
            continue
        planted = [e for e in audited if e.planted and family != _SUITE]
        own = [each for each in audited if each not in planted]
        fell = [each.name for each in own if each.false]
        named = f" ({listed(fell)})" if 0 < len(fell) <= 4 else ""
        told = []
        if own:
            told.append(f"{_of(fell, own, *_CLAIMS)} refuted{named}")
        if planted:
            seen = [each for each in planted if each.refuted]
            told.append(f"{_of(seen, planted, *_MISTAKES)} found")
        most = max(row.samples for each in audited for row in each.audits)
        text = f"{about}: {', and '.join(told)}; up to {count(most)} releases a side."
        if len(audited) < len(some):
            text += f" {spelt(len(some) - len(audited)).capitalize()} not audited here."
        sentences.append((family, text))
    return sentences


def _of(some: Sized, all_of: Sized, one: str, many: str) -> str:
    """Return how many of how many things, with the verb that belongs to it."""
    some_of = spelt(len(some)) if some else "none"
    things = one if len(all_of) == 1 else many
    verb = "were" if len(some) > 1 else "was"
    return f"{some_of} of {spelt(len(all_of))} {things} {verb}"


def context(found: Mapping[str, Standing]) -> dict[str, Any]:
    """Return what the template of the first page says of claims."""
    standing = [each for each in _counted(found) if not each.false]
    rows = [row for each in found.values() for row in each.audits]
    return {
        "lead": lead(found),
        "words": {term: GLOSSARY[term] for term in _WORDS},
        "groups": group_sentences(found),
        "broken": broken(found),
        "planted": _planted(found),
        "alpha": max((row.alpha for row in rows), default=0.0),
        "any": min(1.0, sum(row.alpha for row in rows)),
        "kept": [each for each in standing if each.kept],
        "unknown": [each for each in standing if not each.kept],
        "undecided": [
            each.name
            for each in found.values()
            if not (each.founded or each.false or each.planted)
        ],
        "left_out": [
            each.name
            for each in found.values()
            if not each.audited and each.family != "third-party"
        ],
    }


def _planted(found: Mapping[str, Standing]) -> list[Standing]:
    """Return the audited claims that are false on purpose."""
    return [
        each
        for each in found.values()
        if each.audited and each.planted and each.family != _SUITE
    ]
