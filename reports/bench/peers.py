"""Study G: other tools' methods, on the same scores and on the same black boxes.

Its two parts are `dpaudit.reports.bench.peer_bounds` and
`dpaudit.reports.bench.peer_attacks`, which say whose methods they are.
"""

from dpaudit.reports.bench.peer_attacks import boxes, verdict_rows, verdicts_of
from dpaudit.reports.bench.peer_bounds import LAWS, SCORES, bound_rows, bounds_of
from dpaudit.reports.bench.study import NOTES, Records, Study, Table, Unit
from dpaudit.reports.experiment import Record
from dpaudit.reports.sections import sizes

_SIZES = sizes(
    trials=(20, 400, 2000),  # of each law of scores
    seeds=(1, 11, 21),  # of each black box
    releases=(3000, 30_000, 30_000),  # a side, of a black box
)
_CHUNK = 20  # trials of a unit


class Peers(Study):
    """Bounds and verdicts of other tools' methods, and what they cost."""

    name = "peers"
    title = "Other tools' methods"

    def units(self, profile: str) -> list[Unit]:
        size = _SIZES[profile]
        scores = [
            Unit(self.name, case, index, (("trials", _CHUNK),))
            for case in LAWS
            for index in range(size.trials // _CHUNK)
        ]
        return scores + [
            Unit(self.name, case, index, (("releases", size.releases),))
            for case in boxes()
            for index in range(size.seeds)
        ]

    def measure(self, unit: Unit) -> Record:
        if unit.case in LAWS:
            return bounds_of(LAWS[unit.case], unit.seed, unit.option("trials"))
        return verdicts_of(boxes()[unit.case], unit.seed, unit.option("releases"))

    def tables(self, profile: str, records: Records) -> list[Table]:
        bounds: dict[tuple[str, str], list[Record]] = {}
        verdicts: dict[tuple[str, str], list[Record]] = {}
        for unit, record in records.items():
            kept = bounds if unit.case in LAWS else verdicts
            for method, found in record.items():
                kept.setdefault((unit.case, method), []).append(found)
        about = NOTES["peer-bounds"].format(SCORES)
        return [
            Table("Other tools' bounds", bound_rows(bounds), about),
            Table(
                "Other tools' attacks", verdict_rows(verdicts), NOTES["peer-attacks"]
            ),
        ]
