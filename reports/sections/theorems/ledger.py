"""The ledger: every numbered statement of the four papers, and what is known of it.

``ledger.toml`` has a ``[paper.KEY]`` for each paper, with the ``numbers`` of what it
numbers (made by hand, from the paper; the tests hold the ledger to them), and a
``[[KEY]]`` for each statement. What several have in common stands under ``[like]``.

Of a statement the file says in words of ours what is claimed (``says``), under which
hypotheses (``given``), and what here speaks of it. The verdict is computed from that,
wherever there is something to compute it from:

- ``rows``: theorems of ``rows.toml``, the verdict that their own pages have. Of several
  that differ, ``supported in part`` if one is supported, and contradicted if one is.
- ``claims``: catalogue entries whose claim is that of the statement: refuted if an
  audit of this report refutes it, or the exact loss; not refuted if all that were
  carried out did not; else not audited here.
- ``rule``: the name under ``[rules]`` of a function of
  `dpaudit.reports.sections.theorems.verdicts`, or of ``pictures`` beside it, that reads
  the tables of all of its ``experiments``; without one of these it is not measured
  here.
- ``experiments``: a figure or table is drawn again, and anything else measured without
  a verdict, if one of them has a table in this report.
- ``code``: catalogue entries, or files, that carry an algorithm out.

``false`` is the place of a proof or an example that what is printed does not hold; it
outweighs all but a refutation. What else there is then speaks of what holds instead.
Only where there is nothing of all this the file has a ``verdict`` of `DECLARED`, and
says ``why``. Nothing is supported by declaration. ``places`` are tests and pages that
have more to say.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from dpaudit.algorithms import CATALOGUE
from dpaudit.reports.experiment import declarations
from dpaudit.reports.sections import Results, all_sections
from dpaudit.reports.sections.theorems.rows import (
    CHANCES,
    ROWS,
    Chance,
    ExponentRow,
)
from dpaudit.reports.tables import Printed, fallen
from dpaudit.reports.words import count, listed, setting

PARTLY, UNMET, OPEN = "supported in part", "hypotheses not met", "not decided"
SUPPORTED, CONTRADICTED, VACUOUS = "supported", "CONTRADICTED", "vacuous"
FALSE = "false as printed"
REFUTED, STANDING, UNHEARD = "REFUTED", "not refuted", "not audited here"
DRAWN, MEASURED, ABSENT = "drawn again", "measured", "not measured here"
CARRIED = "carried out"
DECLARED = ("out of reach", ABSENT, "tool", "no claim")
_SHOWN = ("Figure", "Table")
_FIRST = (SUPPORTED, PARTLY, CONTRADICTED, VACUOUS, REFUTED, STANDING, FALSE, UNMET)
_TOLD = {  # verdicts in the order in which they are told, and how
    **{word: word for word in (*_FIRST, OPEN, UNHEARD, ABSENT)},
    MEASURED: "measured without a verdict",
    DRAWN: DRAWN,
    CARRIED: CARRIED,
    "out of reach": "out of reach",
    "not reproduced": "not reproduced",
    "tool": "used in proofs",
    "no claim": "without a claim",
}


Told = tuple[str, str]
"""A verdict, and what else there is to say."""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One statement of a paper, and what here speaks of it; see the module."""

    paper: str
    at: str  # its kind and number: "Theorem 4", or a section
    part: str = ""  # of a statement that says several things
    section: str = ""  # where it stands
    kind: str  # rate, probability, privacy, lower bound, algorithm, figure, ...
    says: str
    given: str = ""
    rows: Sequence[str] = ()
    claims: Sequence[str] = ()
    rule: str = ""
    experiments: Sequence[str] = ()
    size: str = ""  # of the paper's experiment
    code: Sequence[str] = ()
    places: Sequence[str] = ()
    false: str = ""
    verdict: str = ""
    why: str = ""


_DECLARED = declarations(Path(__file__).parent / "ledger.toml")
PAPERS: Mapping[str, Mapping[str, Any]] = _DECLARED["paper"]
JUDGES: Mapping[str, Mapping[str, Any]] = _DECLARED["rules"]
STATEMENTS = tuple(
    Statement(paper=paper["name"], **each)
    for key, paper in PAPERS.items()
    for each in _DECLARED[key]
)


def audits(results: Results) -> dict[str, bool]:
    """Return the mechanisms audited in this report, and whether their claims fell."""
    fell: dict[str, bool] = {}
    names = [name for section in all_sections().values() for name in section.audits]
    for name in (*names, "dp-pca-claims"):
        table = results.tables.get(name)
        if isinstance(table, pd.DataFrame) and {"verdict", "claim"} <= {*table}:
            for mechanism, false in zip(table["mechanism"], fallen(table), strict=True):
                fell[mechanism] = fell.get(mechanism, False) or bool(false)
    return fell


def ruling(
    each: Statement,
    words: Mapping[str, Told],
    fell: Mapping[str, bool],
    had: set[str],
) -> tuple[str, str]:
    """Return the verdict on a statement, and what else there is to say.

    ``words``: the verdict on each theorem of the scoreboard, and which of its rows do
    not support it; and that of each rule whose tables are there. ``fell``: see
    `audits`. ``had``: the experiments that have a table in this report.
    """
    named = [*each.rows, *[each.rule] * (each.rule in words)]
    told = {row: words[row][0] for row in named}
    heard = {None: UNHEARD, True: REFUTED, False: STANDING}
    told |= {name: heard[fell.get(name)] for name in each.claims}
    details = [each.why] if each.why else []
    if len({*told.values()}) > 1 or (each.false and told):
        details += [f"{name}: {word}" for name, word in told.items()]
    details += dict.fromkeys(words[row][1] for row in named if words[row][1])
    details += filter(None, (_too_few(name, fell) for name in each.claims))
    if each.false and REFUTED not in told.values():
        verdict = FALSE
    elif told:
        verdict = _together([*told.values()])
    elif each.experiments and not each.rule:
        again = DRAWN if each.at.startswith(_SHOWN) else MEASURED
        verdict = again if had.intersection(each.experiments) else ABSENT
    elif each.rule:
        verdict = ABSENT
    else:
        verdict = CARRIED if each.code else each.verdict
    return verdict, "; ".join(details)


def _too_few(name: str, fell: Mapping[str, bool]) -> str:
    """Say of a claim that is known to be false that these audits were too short."""
    known = CATALOGUE[name].refutation
    if known is None or fell.get(name, False):
        return ""
    return f"{name} falls within {count(known.releases)} releases a side"


def _together(words: Sequence[str]) -> str:
    """Return one verdict for several."""
    found = set(words)
    for worst in (CONTRADICTED, REFUTED):
        if worst in found:
            return worst
    if found & {SUPPORTED, PARTLY}:
        return SUPPORTED if found == {SUPPORTED} else PARTLY
    return found.pop() if len(found) == 1 else OPEN


def judged(
    results: Results, words: Mapping[str, Told]
) -> list[tuple[Statement, str, str]]:
    """Return every statement with its verdict and details, in the papers' order."""
    fell = results.once(audits)
    had = {n for n, t in results.tables.items() if isinstance(t, pd.DataFrame)}
    return [
        (
            replace(each, size=_sizes(each, results, had)),
            *ruling(each, words, fell, had),
        )
        for each in STATEMENTS
    ]


def _sizes(each: Statement, results: Results, had: set[str]) -> str:
    """Return how large the paper's experiment is, and that of this report."""
    rows: list[ExponentRow | Chance] = [*ROWS, *CHANCES]
    read = [row.experiment for row in rows if row.theorem in each.rows]
    names = dict.fromkeys((*each.experiments, *read))
    found = [results.experiments[name] for name in names if name in had]
    if not found:
        return each.size
    spans: dict[str, list[float]] = {}
    for one in found:
        for variable, values in {**one.grid, **_fixed(one.options)}.items():
            spans.setdefault(variable, []).extend(values)
    draws = [float(one.repetitions) for one in found]
    parts = [f"{_span(draws)} draws a point"]
    parts += [f"{name} {_span(values)}" for name, values in spans.items()]
    return "; ".join(
        [f"in print {each.size}"] * bool(each.size) + [f"here {', '.join(parts)}"]
    )


def _fixed(options: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
    """Return the options that are sizes."""
    sizes = "n d rows dimension length inliers outliers gradients".split()
    return {name: (float(options[name]),) for name in options if name in sizes}


def _span(values: Sequence[float]) -> str:
    ends = [min(values), max(values)]
    return " to ".join(dict.fromkeys(count(x) if x >= 10 else setting(x) for x in ends))


def table(found: Iterable[tuple[Statement, str, str]]) -> pd.DataFrame:
    """Return the table of the file ``ledger.csv``."""
    lines = []
    for each, verdict, details in found:
        told: dict[str, Any] = {"theorem": _named(each), **asdict(each)}
        for name in ("rows", "claims", "experiments", "code", "places"):
            told[name] = "; ".join(told[name])
        for name in ("paper", "at", "part", "why"):
            del told[name]
        lines.append({**told, "verdict": verdict, "details": details})
    return pd.DataFrame(lines)


def _named(each: Statement) -> str:
    return ", ".join(filter(None, (each.paper, each.at, each.part)))


def summary(found: Sequence[tuple[Statement, str, str]]) -> str:
    """Return how many statements have which verdict."""
    counted = Counter(verdict for _, verdict, _ in found)
    told = {**_TOLD, **{word: word for word in counted if word not in _TOLD}}
    parts = [f"{counted[w]} {words}" for w, words in told.items() if counted[w]]
    return f"Of {len(found)} statements: {listed(parts)}."


def folds(found: Sequence[tuple[Statement, str, str]]) -> list[Printed]:
    """Return the ledger, ready to print: a fold for each paper."""
    return [
        Printed(
            name=paper["name"],
            source=paper["source"],
            summary=summary(own),
            rows=[_printed(*each) for each in own],
        )
        for paper in PAPERS.values()
        if (own := [each for each in found if each[0].paper == paper["name"]])
    ]


def _printed(each: Statement, verdict: str, details: str) -> Printed:
    places = [each.false] * bool(each.false) + [*each.places]
    places += [name for name in each.code if name not in CATALOGUE]
    return Printed(
        at=f"{each.at}, {each.part}" if each.part else each.at,
        where=f"{each.kind}; section {each.section}" if each.section else each.kind,
        says=each.says,
        given=each.given,
        theorems=each.rows,
        mechanisms=[*each.claims, *(n for n in each.code if n in CATALOGUE)],
        experiments=each.experiments,
        places=[re.split(r"(?<=[/#_])", place) for place in places],
        verdict=verdict,
        refuted=verdict in (CONTRADICTED, REFUTED, FALSE),
        details=details,
        size=each.size if "in print" in each.size else "",
    )
