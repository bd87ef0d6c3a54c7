"""The reported faults as a study of `dpaudit bench-audit`.

dpaudit bench-audit --also benchmarks.styles.study:REPORTED

Each mechanism is attacked as a black box, with its pair and with its domain alone,
within a minute of processor time, at confidence 0.999.
"""

import zlib
from collections import defaultdict
from pathlib import Path
from statistics import median

from benchmarks.styles.registry import Style, corpus
from benchmarks.styles.run import attack
from dpaudit.reports.bench import Study, TargetTable, Unit
from dpaudit.reports.bench.study import Figure, Records, TargetRow
from dpaudit.reports.experiment import Record
from dpaudit.reports.sections import sizes

__all__ = ["REPORTED"]

_SIZES = sizes(
    wrong=(3, 40, 1000),  # how many of the faults, spread over the corpus
    right=(1, 20, 1000),
    seeds=(1, 1, 3),
    releases=(500, 200_000, 200_000),
)
_TARGETS = {"pair": 0.92, "domain": 0.85}
_COST = 2.0  # of a release in a search, over one with the pair
_LEAST = 5_000  # releases a side of audits whose times are compared
# Of the quick profile: they fall within a second.
_QUICK = ("columns_added_as_one", "formula_clamped_first", "layers_noised_in_a_copy")


def _spread(styles: list[Style], count: int) -> list[Style]:
    """Return so many styles, evenly spaced."""
    step = max(1.0, len(styles) / count)
    return [styles[int(n * step)] for n in range(min(count, len(styles)))]


class Reported(Study):
    """Of faults that were reported, how many a black box refutes, and at which cost."""

    name = "reported"
    title = "Reported faults"

    def units(self, profile: str) -> list[Unit]:
        size, styles = _SIZES[profile], corpus()
        wrong = [style for style in styles.values() if style.twin]
        if profile == "quick":
            wrong = [styles[name] for name in _QUICK]
        chosen = _spread(wrong, size.wrong)
        chosen += [styles[each.twin] for each in _spread(wrong, size.right)]
        options = (("releases", size.releases), ("corpus", _fingerprint()))
        return [
            Unit(self.name, f"{style.name} by {by}", index, options)
            for style in chosen
            for by in _TARGETS
            for index in range(size.seeds)
        ]

    def measure(self, unit: Unit) -> Record:
        name, _, by = unit.case.rpartition(" by ")
        most = unit.option("releases")
        found = attack(corpus()[name], unit.seed, by=by, releases=most)
        refuted = found.verdict == "REFUTED"
        return {
            "right": found.right,
            "refuted": refuted,
            "releases": found.releases,
            "seconds": found.seconds,
            "said": found.findings[0],
        }

    def tables(self, profile: str, records: Records) -> list[TargetTable]:
        found: dict[tuple[str, bool], list[tuple[str, bool]]] = defaultdict(list)
        costs: dict[tuple[str, int], dict[str, float]] = defaultdict(dict)
        for unit, record in records.items():
            name, _, by = unit.case.rpartition(" by ")
            found[by, record["right"]].append((name, record["refuted"]))
            if record["releases"] >= _LEAST:
                each = record["seconds"] / record["releases"]
                costs[name, unit.index][by] = each
        ratios = [c["domain"] / c["pair"] for c in costs.values() if len(c) > 1]
        tables = [
            TargetTable("What a search costs", _cost(ratios), "In processor time.")
        ]
        for kind, is_right in (("Reported faults", False), ("Right versions", True)):
            rows = [_share(by, is_right, found[by, is_right]) for by in _TARGETS]
            odd = sorted(
                {
                    n
                    for by in _TARGETS
                    for n, refuted in found[by, is_right]
                    if refuted == is_right
                }
            )
            note = f"At 0.999. Not as they should be: {', '.join(odd) or 'none'}."
            tables.insert(-1, TargetTable(kind, tuple(filter(None, rows)), note))
        return tables


def _share(
    by: str, is_right: bool, outcomes: list[tuple[str, bool]]
) -> TargetRow | None:
    if not outcomes:
        return None
    share = sum(refuted for _, refuted in outcomes) / len(outcomes)
    target = 0.0 if is_right else _TARGETS[by]
    kind = "right" if is_right else "wrong"
    return TargetRow.of(
        share <= target if is_right else share >= target,
        Figure("case", f"{kind} by {by}", "mechanisms", f"{kind}, by {by}"),
        Figure("audits", len(outcomes), "audits", str(len(outcomes))),
        Figure("refuted", share, "refuted", f"{share:.1%}"),
        Figure("target", target, "target", f"{target:.0%}"),
    )


def _cost(ratios: list[float]) -> tuple[TargetRow, ...]:
    if not ratios:
        return ()
    middle = median(ratios)
    row = TargetRow.of(
        middle <= _COST,
        Figure("audits", len(ratios), "audits", str(len(ratios))),
        Figure("ratio", middle, "a release by domain over by pair", f"{middle:.2f}"),
        Figure("target", _COST, "target", f"{_COST:g}"),
    )
    return (row,)


def _fingerprint() -> int:
    """Return what changes with the corpus."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return zlib.crc32(b"".join(path.read_bytes() for path in files))


REPORTED = Reported()
