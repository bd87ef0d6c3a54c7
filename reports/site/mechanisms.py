"""What the site says of each mechanism: all that the catalogue and the sections know.

A mechanism is what the catalogue has, or what a table of the report names. Its page has
the claim, the verdicts with what they could not have seen, the definition and the proof
as its source has them, what it costs, and where else on the site it is met.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dpaudit.algorithms import CATALOGUE, Entry
from dpaudit.reports.sections import Fact, Results, Section, TopicPage
from dpaudit.reports.tables import Printed, verdict_rows
from dpaudit.reports.words import count, delta, number, setting

FOLDER = "mechanisms"
SUITE = "textbook"


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
    def strongest(self) -> Printed | None:
        """The audit that says most: one that refutes, or else one that was made."""
        order = sorted(self.audits, key=lambda row: (not row.refuted, not row.false))
        return next(iter(order), None)

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


def promised(entry: Entry | None) -> tuple[str, ...]:
    """Return the claim that is made if nothing else is asked for."""
    if entry is None:
        return ("not known",)
    at = delta(1e-5 if entry.approximate else 0.0)
    return f"ε = {setting(entry.epsilon)}", f"δ = {at}"


def _described(entry: Entry) -> Printed:
    """Return what the catalogue and the source say of a mechanism."""
    module = inspect.getmodule(entry.owner)
    return Printed(
        source=entry.source,
        claim=", ".join(promised(entry)),
        relations=[str(each) for each in entry.relations],
        installed=entry.installed,
        extra=entry.extra,
        truth=None if entry.truth is None else number(entry.truth),
        made_by=entry.made_by,
        module="" if module is None else module.__name__,
        definition=inspect.getdoc(entry.owner) or "",
        proof="" if module is None else module.__doc__ or "",
    )
