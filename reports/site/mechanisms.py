"""What the site says of each mechanism: all that the catalogue and the sections know.

A mechanism is what the catalogue has, or what a table of the report names. Its page has
the claim, the verdicts with what they could not have seen, the definition and the proof
as its source has them, what it costs, and where else on the site it is met.

The first page says how the claims of all families stand. They are counted in three
groups that are never mixed: those of papers and ours, those that are false on purpose,
and the textbook suite, on which the audit itself is measured. Sentences are chosen by
the data.
"""

import inspect
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from typing import Any

from dpaudit.algorithms import CATALOGUE, Entry
from dpaudit.algorithms.catalogue import FAMILIES
from dpaudit.reports.page import GLOSSARY
from dpaudit.reports.sections import Fact, Results, Section, TopicPage
from dpaudit.reports.tables import Printed, verdict_rows
from dpaudit.reports.words import count, delta, listed, number, setting, spelt

FOLDER = "mechanisms"
_SUITE = "textbook"
_WORDS = ("neighbour", "side", "event", "claim", "refuted", "not refuted")
_CLAIMS = ("audited claim", "audited claims")
_MISTAKES = ("mistake that we made on purpose", "mistakes that we made on purpose")


@dataclass(frozen=True)
class Standing:
    """How the claim of one mechanism stands, after all audits of a report."""

    # name, family: the second is empty for what is not in the catalogue
    name: str
    family: str
    # from `verdict_rows`, each with the experiment that it is from
    audits: tuple[Printed, ...] = ()
    notes: tuple[str, ...] = ()  # what is known beside that
    planted: bool = False  # whether the claim is false on purpose

    @property
    def audited(self) -> bool:
        """Whether any claim of it was audited."""
        return bool(self.audits)

    @property
    def founded(self) -> bool:
        """Whether none of its audits came to no verdict."""
        return all(row.founded for row in self.audits)

    @property
    def refuted(self) -> bool:
        """Whether releases refute a claim."""
        return any(row.refuted for row in self.audits)

    @property
    def false(self) -> bool:
        """Whether a claim as audited is false: by releases, or by its exact loss."""
        return any(row.refuted or row.false for row in self.audits)

    @property
    def kept(self) -> bool:
        """Whether the exact loss of every audited pair is known, and as claimed."""
        return self.audited and all(row.kept for row in self.audits)

    @property
    def verdict(self) -> str:
        if self.refuted:
            return "REFUTED"
        if self.false:
            return "FALSE by formula"
        if not self.founded:
            return "NO VERDICT"
        return "NOT REFUTED" if self.audited else "not audited here"

    @property
    def witness_file(self) -> str | None:
        return next((a.witness_file for a in self.audits if a.witness_file), None)


def standings(
    results: Results, sections: Sequence[Section], remarks: Mapping[str, Sequence[str]]
) -> dict[str, Standing]:
    """Return how every claim stands: those of the catalogue first, in its order.

    ``sections``: those whose audits count. ``remarks``: what sections know of claims
    beside that, by the name of the mechanism.
    """
    audited: dict[str, list[Printed]] = {}
    for section in sections:
        for experiment in section.audits:
            table = results.tables.get(experiment)
            if table is None or isinstance(table, Exception):
                continue
            for row in verdict_rows(table):
                row.experiment, row.section = experiment, section.name
                audited.setdefault(row.name, []).append(row)
    return {
        name: _standing(name, tuple(audited.get(name, ())), remarks.get(name, ()))
        for name in dict.fromkeys((*CATALOGUE, *audited))
    }


def _standing(
    name: str, audits: tuple[Printed, ...], remarks: Sequence[str]
) -> Standing:
    entry = CATALOGUE.get(name)
    if entry is None:
        return Standing(name, "", audits, tuple(remarks))
    notes = [*remarks]
    seen = any(row.refuted for row in audits)
    if entry.refutation is not None and audits and not seen:
        drawn = max(row.samples for row in audits)
        notes.append(
            "Its claim is false all the same, and an audit of up to "
            f"{count(entry.refutation.releases)} releases a side refutes it; this one "
            f"drew {count(drawn)}."
        )
    if entry.lost:
        notes.append(f"Where most is lost: {entry.lost}.")
    return Standing(name, entry.family, audits, tuple(notes), entry.planted)


def pages(
    results: Results,
    found: Mapping[str, Standing],
    facts: Sequence[Fact],
    elsewhere: Sequence[TopicPage],
) -> list[TopicPage]:
    """Return the pages of all mechanisms.

    ``found``: from `standings`. ``facts``: of all sections. ``elsewhere``: pages that
    may be about a mechanism as well: their ``mechanisms`` say so.
    """
    return [
        TopicPage(
            folder=FOLDER,
            name=name,
            template="mechanism.html.j2",
            context=partial(_context, results, standing, facts, elsewhere),
            group=standing.family,
            line=CATALOGUE[name].summary if name in CATALOGUE else "",
            verdict=standing.verdict,
            refuted=standing.false,
        )
        for name, standing in found.items()
    ]


def _context(
    results: Results,
    standing: Standing,
    facts: Sequence[Fact],
    elsewhere: Sequence[TopicPage],
) -> dict[str, Any]:
    name = standing.name
    entry = CATALOGUE.get(name)
    return {
        "standing": standing,
        "entry": None if entry is None else _described(entry),
        "facts": [fact for fact in facts if fact.mechanism == name],
        "experiments": [
            each for each in results.experiments.values() if name in each.mechanisms
        ],
        "others": [topic for topic in elsewhere if name in topic.mechanisms],
    }


def _described(entry: Entry) -> Printed:
    """Return what the catalogue and the source say of a mechanism."""
    module = inspect.getmodule(entry.owner)
    claim = f"ε = {setting(entry.epsilon)}"
    return Printed(
        source=entry.source,
        claim=f"{claim}, δ = {delta(1e-5)}" if entry.approximate else f"{claim}, δ = 0",
        relations=[str(each) for each in entry.relations],
        installed=entry.installed,
        extra=entry.extra,
        truth=None if entry.truth is None else number(entry.truth),
        made_by=entry.made_by,
        module="" if module is None else module.__name__,
        definition=inspect.getdoc(entry.owner) or "",
        proof="" if module is None else module.__doc__ or "",
    )


def _counted(found: Mapping[str, Standing]) -> list[Standing]:
    """Return the audited claims of papers and ours, of which a verdict came."""
    return [
        each for each in _audited(found, planted=False) if each.founded or each.false
    ]


def broken(found: Mapping[str, Standing]) -> list[Standing]:
    """Return the claims of papers, and ours, that are false as audited."""
    return [each for each in _counted(found) if each.false]


def headline(found: Mapping[str, Standing]) -> str:
    """Return the title of the report: how many claims of all families fell.

    Those that are false on purpose do not count, and neither does the textbook suite.
    """
    if (total := len(_counted(found))) == 0:
        return "No privacy claim was audited"
    fell = len(broken(found))
    number = spelt(fell).capitalize() if fell else "None"
    return f"{number} of {spelt(total)} audited privacy claim{'s' * (total > 1)} fell"


def lead(found: Mapping[str, Standing]) -> str:
    """Return what belongs to the title: whose claims, and what was found besides."""
    parts = []
    if fell := broken(found):
        seen = all(each.refuted for each in fell)
        start = "Audits refuted what is" if seen else "False is what is"
        parts.append(f"{start} claimed for {listed(each.name for each in fell)}.")
    if planted := _audited(found, planted=True):
        text = _of([each for each in planted if each.refuted], planted, *_MISTAKES)
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
        text = f"{about}: {spelt(len(some))} in the catalogue, not audited here."
        if audited:
            planted = [e for e in audited if e.planted and family != _SUITE]
            own = [each for each in audited if each not in planted]
            fell = [each.name for each in own if each.false]
            named = f" ({listed(fell)})" if 0 < len(fell) <= 4 else ""
            told = [f"{_of(fell, own, *_CLAIMS)} refuted{named}"] if own else []
            if planted:
                seen = [each for each in planted if each.refuted]
                told.append(f"{_of(seen, planted, *_MISTAKES)} found")
            most = count(max(row.samples for each in audited for row in each.audits))
            text = f"{about}: {', and '.join(told)}; up to {most} releases a side."
            if left := len(some) - len(audited):
                text += f" {spelt(left).capitalize()} not audited here."
        sentences.append((family, text))
    return sentences


def _of(some: Sized, all_of: Sized, one: str, many: str) -> str:
    """Return how many of how many things, with the verb that belongs to it."""
    some_of = spelt(len(some)) if some else "none"
    things = one if len(all_of) == 1 else many
    verb = "were" if len(some) > 1 else "was"
    return f"{some_of} of {spelt(len(all_of))} {things} {verb}"


def overview(found: Mapping[str, Standing]) -> dict[str, Any]:
    """Return what the template of the first page says of claims."""
    standing = [each for each in _counted(found) if not each.false]
    rows = [row for each in found.values() for row in each.audits]
    return {
        "lead": lead(found),
        "words": {term: GLOSSARY[term] for term in _WORDS},
        "groups": group_sentences(found),
        "broken": broken(found),
        "planted": _audited(found, planted=True),
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


def _audited(found: Mapping[str, Standing], *, planted: bool) -> list[Standing]:
    """Return the audited claims that are false on purpose, or all others of papers."""
    return [
        each
        for each in found.values()
        if each.audited and each.planted == planted and each.family != _SUITE
    ]
