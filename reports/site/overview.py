"""The first page: what the report says of all families, in one look.

Claims are counted in three groups that are never mixed: those of papers and ours, those
that are false on purpose, and the textbook suite, on which the audit itself is
measured. Sentences are chosen by the data.
"""

from collections.abc import Mapping
from typing import Any

from dpaudit.algorithms.catalogue import FAMILIES
from dpaudit.reports.site.mechanisms import Standing
from dpaudit.reports.words import count, listed, spelt

__all__ = ["broken", "context", "group_sentences", "headline", "lead"]

_SUITE = "textbook"


def _counted(found: Mapping[str, Standing]) -> list[Standing]:
    """Return the audited claims of papers and ours."""
    return [
        each
        for each in found.values()
        if each.audited and not each.planted and each.family != _SUITE
    ]


def broken(found: Mapping[str, Standing]) -> list[Standing]:
    """Return the claims of papers, and ours, that are false as audited."""
    return [each for each in _counted(found) if each.false]


def headline(found: Mapping[str, Standing]) -> str:
    """Return the title of the report: how many claims of all families are false.

    Those that are false on purpose do not count, and neither does the textbook suite.
    """
    total, fell = len(_counted(found)), len(broken(found))
    if total == 0:
        return "No privacy claim was audited"
    claims = "privacy claim" if total == 1 else "privacy claims"
    if fell == 0:
        return f"None of {spelt(total)} {claims} was refuted"
    verb = "is" if fell == 1 else "are"
    return f"{spelt(fell).capitalize()} of {spelt(total)} {claims} {verb} false"


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
        seen = sum(each.refuted for each in planted)
        parts.append(
            f"Of {spelt(len(planted))} mistakes made on purpose beside them, "
            f"{spelt(seen) if seen else 'none'} {'were' if seen > 1 else 'was'} found."
        )
    if any(not each.false for each in _counted(found)):
        parts.append("What was not refuted is not thereby proven private.")
    return " ".join(parts)


def group_sentences(found: Mapping[str, Standing]) -> list[tuple[str, str]]:
    """Return each family with one sentence on how its claims stand."""
    sentences = []
    for family, about in FAMILIES.items():
        some = [each for each in found.values() if each.family == family]
        audited = [each for each in some if each.audited]
        if not audited:
            text = f"{about}: {spelt(len(some))} in the catalogue, not audited here."
            sentences.append((family, text))
            continue
        fell = [each.name for each in audited if each.false]
        most = max(row.samples for each in audited for row in each.audits)
        verb = "were" if len(fell) > 1 else "was"
        named = f" ({listed(fell)})" if 0 < len(fell) <= 4 else ""
        text = (
            f"{about}: {spelt(len(fell)) if fell else 'none'} of "
            f"{spelt(len(audited))} audited claims {verb} refuted{named}, with up "
            f"to {count(most)} releases a side."
        )
        if len(audited) < len(some):
            text += f" {spelt(len(some) - len(audited)).capitalize()} not audited here."
        sentences.append((family, text))
    return sentences


def context(found: Mapping[str, Standing]) -> dict[str, Any]:
    """Return what the template of the first page says of claims."""
    standing = [each for each in _counted(found) if not each.false]
    return {
        "lead": lead(found),
        "groups": group_sentences(found),
        "broken": broken(found),
        "planted": _planted(found),
        "kept": [each for each in standing if each.kept],
        "unknown": [each for each in standing if not each.kept],
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
