"""What a tour of other libraries found: a line for each subject, and as a table.

What a verdict says is at the head of `dpaudit.reports.sections.libraries.tour`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit.neighbours import Relation
from dpaudit.reports.experiment import Record
from dpaudit.reports.store import load_json

FILE = "tour.json"
"""The name of the file, beside the results of the other audits of libraries."""

_SQUARES, _ROWS = "Linear regression without noise on squares", "A class without rows"
EXPLAINED = {
    "diffprivlib.models.LinearRegression(fit_intercept=False)": _SQUARES,
    "diffprivlib.models.LinearRegression": _SQUARES,
    "diffprivlib.models.GaussianNB": _ROWS,
    "diffprivlib.models.GaussianNB.partial_fit": _ROWS,
    "multi_freq_ldpy.RSpFD_solution.RSpFD_GRR_Client": "Random sampling plus fake data",
}
"""Refuted subjects whose reason is known, with their heading in docs/findings.md."""

NOT_FINISHED = "not finished"
_REFUTED, _TRANSCRIPTS = "REFUTED", "REFUTED for transcripts"
_OURS = "third_party/subjects/"  # no line of a library
_MILDEST = ("NOT_REFUTED", "FAILED", _TRANSCRIPTS, _REFUTED)


@dataclass(frozen=True)
class TourRow:
    """What the tour says of one subject: a line of its table."""

    library: str
    version: str
    name: str
    # claim, relation: as documented; the relation is "not stated" where none is named
    claim: str
    relation: str
    stated: str  # where that is
    # REFUTED, REFUTED for transcripts, NOT_REFUTED, FAILED or SKIPPED; for relations
    # that are not stated the mildest of both
    verdict: str
    # the verdict under each relation that the claim may be read for; FAILED where no
    # audit under it came to an end
    readings: dict[str, str]
    # that on rows of NaN and infinities; empty where rows are categories, or where the
    # visit ended before
    strange: str
    findings: tuple[str, ...]  # each once, with its place in the library
    explained: str  # the heading in docs/findings.md, if it is there.
    executions: int  # on either side together
    seconds: float
    # why it was skipped; what the library did beyond its business
    notes: tuple[str, ...]
    # names of the files that hold them, if it is refuted
    witnesses: tuple[str, ...] = ()

    @property
    def remark(self) -> str:
        """What belongs to the verdict."""
        if self.verdict.startswith(_REFUTED):
            return self.explained or "not yet explained"
        told = [
            f"REFUTED under {name}"
            + (" alone" if "NOT_REFUTED" in self.readings.values() else "")
            for name, each in self.readings.items()
            if each == _REFUTED
        ]
        told += [NOT_FINISHED for each in self.notes if each.startswith(NOT_FINISHED)]
        return ", ".join(told)


def load_tour(folder: Path) -> list[Record] | None:
    """Return the records that a folder holds, None if there are none.

    Raises `InputError` if the file there is something else.
    """
    return load_json(folder / FILE, _records, "make third-party")


def _records(found: Any) -> list[Record]:
    """Return the records of a file, or fail if a table cannot be made of them."""
    records: list[Record] = found["records"]
    tour_rows(records)
    return records


def tour_rows(records: Iterable[Record]) -> list[TourRow]:
    """Return the lines of the table, in the order of the records."""
    return list(map(_row, records))


def _row(record: Record) -> TourRow:
    finite = [leg for leg in record["legs"] if leg["rows"] == "finite"]
    # All of them, whether or not the visit came so far.
    meant = [record["relation"]] if record["relation"] else [*map(str, Relation)]
    readings = {
        relation: _reading([leg for leg in finite if leg["relation"] == relation])
        for relation in meant
        if finite
    }
    verdict = min(readings.values(), key=_MILDEST.index, default="SKIPPED")
    strange = [leg for leg in record["legs"] if leg["rows"] == "strange"]
    return TourRow(
        library=record["library"],
        version=record["version"] or "",
        name=record["subject"].removeprefix(f"{record['library']}."),
        claim=record["claim"],
        relation=record["relation"] or "not stated",
        stated=record["stated"],
        verdict=verdict,
        readings=readings,
        strange=_on_strange(strange, len(meant)),
        findings=tuple(
            dict.fromkeys(
                f"{each['where']} {each['kind']}".strip()
                for leg in finite
                for each in leg["findings"]
                if each["kind"] not in ("event", "coin") and _OURS not in each["where"]
            )
        ),
        explained=EXPLAINED.get(record["subject"], ""),
        executions=sum(leg["executions"] for leg in record["legs"]),
        seconds=record["seconds"],
        notes=(*record["notes"], *filter(None, [record["skipped"]])),
        witnesses=tuple(
            leg["witness"]
            for leg in finite
            if leg["verdict"] == _REFUTED and leg.get("witness")
        )
        if verdict.startswith(_REFUTED)
        else (),
    )


def _reading(legs: list[Record]) -> str:
    refuted = {leg["how"] for leg in legs if leg["verdict"] == _REFUTED}
    if refuted - {"replay, transcript"}:
        return _REFUTED
    if refuted:
        return _TRANSCRIPTS
    seen = {leg["verdict"] for leg in legs}
    return "NOT_REFUTED" if "NOT_REFUTED" in seen else "FAILED"


def _on_strange(legs: list[Record], relations: int) -> str:
    """Return what strange rows do under all relations that are meant."""
    if not legs:
        return ""
    found = {leg["verdict"] for leg in legs}
    if len(legs) < relations:
        found.add("FAILED")
    if found == {_REFUTED}:
        return _REFUTED
    if "FAILED" in found:
        return "FAILED"
    return "refused" if found == {"REFUSED"} else "NOT_REFUTED"


def tour_lines(records: Iterable[Record]) -> list[tuple[str, ...]]:
    """Return the verdicts as lines of cells, one per subject, under a heading."""
    rows = [
        (
            f"{each.library}.{each.name}",
            each.relation,
            each.verdict + (f" ({each.remark})" if each.remark else ""),
            each.claim,
            each.strange,
            f"{each.executions:,}",
            f"{each.seconds:.0f}",
        )
        for each in tour_rows(records)
    ]
    heads = "subject", "relation", "verdict", "claim", "NaN rows", "executions"
    return [(*heads, "seconds"), *rows]
