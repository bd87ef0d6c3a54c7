"""The section on other libraries, from what ``make third-party`` has left.

Of a tour there is a line for each subject. What a verdict says is at the head of `dpaudit.reports.sections.libraries.tour`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from dpaudit.errors import InputError
from dpaudit.neighbours import Relation
from dpaudit.reports.experiment import Record
from dpaudit.reports.sections import Part, Results, Section, TopicPage
from dpaudit.reports.sections.libraries.measures import (
    LibraryComparison,
    load_comparison,
)
from dpaudit.reports.store import load_json
from dpaudit.reports.tables import Printed
from dpaudit.reports.words import (
    aligned,
    delta,
    duration,
    listed,
    number,
    percent,
    setting,
    spelt,
    verdict,
)

__all__ = ["SECTION"]


FILE = "tour.json"
"""The name of the file, beside the results of the other audits of libraries."""

_MODELS, _FAKE = "diffprivlib.models", "multi_freq_ldpy.RSpFD_solution"
EXPLAINED = {
    **dict.fromkeys(
        (
            f"{_MODELS}.LinearRegression(fit_intercept=False)",
            f"{_MODELS}.LinearRegression",
        ),
        "Linear regression without noise on squares",
    ),
    **dict.fromkeys(
        (f"{_MODELS}.GaussianNB", f"{_MODELS}.GaussianNB.partial_fit"),
        "A class without rows",
    ),
    f"{_FAKE}.RSpFD_GRR_Client": "Random sampling plus fake data",
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


def tour_table(records: Iterable[Record]) -> str:
    """Return the verdicts as lines of text, one per subject, under a heading."""
    rows = [
        ("subject", "relation", "verdict", "claim", "NaN rows", "executions", "seconds")
    ]
    rows += [
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
    return "\n".join(aligned(rows))


@dataclass(frozen=True)
class Beside:
    """What ``make third-party`` has left: each None where it has not."""

    comparison: LibraryComparison | None = None
    tour: list[dict[str, Any]] | None = None  # the records of a tour
    # the files that hold those of refuted subjects: their names and texts
    witnesses: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> list[TourRow]:
        """The lines of the table of the tour."""
        return tour_rows(self.tour or [])


def beside(folder: Path) -> Beside:
    folder /= "third-party"
    found = Beside(load_comparison(folder), load_tour(folder))
    names = [name for row in found.rows for name in row.witnesses]
    paths = [folder / Path(name).name for name in names]
    texts = {path.name: _text(path) for path in paths if path.is_file()}
    return replace(found, witnesses=texts)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {str(path)!r}: {error}") from error


def _left(results: Results) -> Beside:
    return results.beside.get("libraries") or Beside()


def tour_note(found: list[TourRow]) -> str:
    """Return how many subjects came out how.

    Examples
    --------
    >>> tour_note([])
    '0 mechanisms and models of no other libraries: nothing.'
    """
    counted = Counter(verdict(each.verdict) for each in found)
    told = ", ".join(f"{count} {name}" for name, count in counted.most_common())
    number_of = len({each.library for each in found})
    libraries = "library" if number_of == 1 else "libraries"
    return (
        f"{len(found)} mechanisms and models of {spelt(number_of)} other {libraries}: "
        f"{told or 'nothing'}."
    )


def settings_of(comparison: LibraryComparison | None) -> list[tuple[int, int]]:
    """Return the dimensions and numbers of components in which libraries compared."""
    records = [] if comparison is None else comparison.records
    return list(dict.fromkeys((r["dimension"], r["n_components"]) for r in records))


def library_rows(comparison: LibraryComparison | None) -> list[Printed]:
    """Return the comparison of libraries, medians in the order of the records."""
    if comparison is None:
        return []
    fits = pd.DataFrame(comparison.records)
    return [
        Printed(
            name=name,
            centre=centre,
            claim=(f"ε = {number(comparison.epsilon)}", f"δ = {delta(at)}"),
            cells=tuple(
                _fitted(own[own["dimension"].eq(d) & own["n_components"].eq(k)])
                or ("no fit", f"within {setting(comparison.limit_s)} s")
                for d, k in settings_of(comparison)
            ),
        )
        for (name, centre, at), own in fits.groupby(
            ["contender", "centre", "delta"], sort=False
        )
    ]


def library_notes(comparison: LibraryComparison | None) -> list[str]:
    """Return whose fits capture most, in every setting."""
    if comparison is None:
        return []
    fits = pd.DataFrame(comparison.records)
    fits["captured_share"] = fits["captured_share"].astype(float)
    notes = []
    for d, k in settings_of(comparison):
        own = fits[fits["dimension"].eq(d) & fits["n_components"].eq(k)]
        middle = own.groupby("contender", sort=False)["captured_share"].median()
        if middle.notna().any():
            best = middle.idxmax()
            notes.append(
                f"With {k} of {d} components {best} captures most, "
                f"{percent(middle[best])}."
            )
    return notes


def _fitted(fits: pd.DataFrame) -> tuple[str, str] | None:
    """Return the medians of share and time of the fits that ended, if any did."""
    medians = fits[["captured_share", "fit_seconds"]].astype(float).median()
    if medians.isna().any():
        return None
    return percent(medians["captured_share"]), duration(medians["fit_seconds"])


def context(results: Results) -> dict[str, Any]:
    left = _left(results)
    comparison = left.comparison
    return {
        "tour": left.rows,
        "tour_note": tour_note(left.rows),
        "witnesses": left.witnesses,
        "comparison": comparison,
        "settings": settings_of(comparison),
        "libraries": library_rows(comparison),
        "library_notes": library_notes(comparison),
    }


def files(results: Results) -> dict[str, str]:
    return dict(_left(results).witnesses)


def tables(results: Results) -> dict[str, pd.DataFrame]:
    found = [asdict(each) for each in _left(results).rows]
    table = pd.DataFrame(found, columns=list(TourRow.__dataclass_fields__))
    for name in ("findings", "notes", "witnesses"):
        table[name] = table[name].map("; ".join)
    table["readings"] = table["readings"].map(
        lambda each: "; ".join(f"{name}: {verdict}" for name, verdict in each.items())
    )
    return {"tour": table}


def pages(results: Results) -> list[TopicPage]:
    """Return a page for each library that was visited."""
    left = _left(results)
    found, topics = left.rows, []
    for library in dict.fromkeys(each.library for each in found):
        own = [each for each in found if each.library == library]
        fell = sum(each.verdict.startswith("REFUTED") for each in own)
        told = {"tour": own, "tour_note": tour_note(own), "witnesses": left.witnesses}
        topics.append(
            TopicPage(
                folder="libraries",
                name=library,
                template="libraries/library.html.j2",
                context=partial(dict, told),
                group=listed(dict.fromkeys(each.version for each in own)),
                line=f"{len(own)} mechanisms and models",
                verdict=f"{fell} REFUTED" if fell else "NOT REFUTED",
                refuted=fell > 0,
            )
        )
    return topics


SECTION = Section(
    name="libraries",
    title="Other libraries",
    parts=(
        Part("libraries", "Beside other libraries", 700),
        Part("tour", "Other libraries, audited", 710),
    ),
)
