"""The section on other libraries, from what ``make third-party`` has left."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from dpaudit.errors import InputError
from dpaudit.reports import words
from dpaudit.reports.sections import Results, TopicPage
from dpaudit.reports.sections.libraries.findings import TourRow, load_tour, tour_rows
from dpaudit.reports.sections.libraries.measures import (
    LibraryComparison,
    load_comparison,
)
from dpaudit.reports.tables import Printed


@dataclass(frozen=True)
class Beside:
    """What ``make third-party`` has left: each None where it has not."""

    comparison: LibraryComparison | None = None
    tour: list[dict[str, Any]] | None = None  # the records of a tour
    # the files that hold those of refuted subjects: their names and texts
    witnesses: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> list[TourRow]:
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

    >>> tour_note([])
    '0 mechanisms and models of no other libraries: nothing.'
    """
    counted = Counter(words.verdict(each.verdict) for each in found)
    libraries = len({each.library for each in found})
    told = {"counted": counted.most_common(), "libraries": libraries}
    (note,) = words.sentences("libraries", "tour_note", visited=len(found), **told)
    return note


def library_rows(comparison: LibraryComparison) -> list[Printed]:
    """Return the comparison of libraries, medians in the order of the records."""
    fits = pd.DataFrame(comparison.records)
    return [
        Printed(
            name=name,
            centre=centre,
            claim=(f"ε = {words.number(comparison.epsilon)}", f"δ = {words.delta(at)}"),
            cells=tuple(
                _fitted(own[own["dimension"].eq(d) & own["n_components"].eq(k)])
                or ("no fit", f"within {words.setting(comparison.limit_s)} s")
                for d, k in comparison.settings
            ),
        )
        for (name, centre, at), own in fits.groupby(
            ["contender", "centre", "delta"], sort=False
        )
    ]


def library_notes(comparison: LibraryComparison) -> list[str]:
    """Return whose fits capture most, in every setting."""
    fits = pd.DataFrame(comparison.records)
    fits["captured_share"] = fits["captured_share"].astype(float)
    best = []
    for d, k in comparison.settings:
        own = fits[fits["dimension"].eq(d) & fits["n_components"].eq(k)]
        middle = own.groupby("contender", sort=False)["captured_share"].median()
        if middle.notna().any():
            best.append((k, d, middle.idxmax(), middle.max()))
    return words.sentences("libraries", "library_notes", best=best)


def _fitted(fits: pd.DataFrame) -> tuple[str, str] | None:
    """Return the medians of share and time of the fits that ended, if any did."""
    medians = fits[["captured_share", "fit_seconds"]].astype(float).median()
    if medians.isna().any():
        return None
    return words.percent(medians["captured_share"]), words.duration(
        medians["fit_seconds"]
    )


def context(results: Results) -> dict[str, Any]:
    left = _left(results)
    told: dict[str, Any] = {"tour": left.rows, "tour_note": tour_note(left.rows)}
    told |= {"witnesses": left.witnesses, "comparison": left.comparison}
    if left.comparison is not None:
        told["settings"] = left.comparison.settings
        told["libraries"] = library_rows(left.comparison)
        told["library_notes"] = library_notes(left.comparison)
    return told


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
                group=words.listed(dict.fromkeys(each.version for each in own)),
                line=f"{len(own)} mechanisms and models",
                verdict=f"{fell} REFUTED" if fell else "NOT REFUTED",
                refuted=fell > 0,
            )
        )
    return topics
