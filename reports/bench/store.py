"""Finished units of work, one line of JSON each, appended as they finish.

A line holds what the unit was, the version of the code that carried it out, its seed
and its record. Only lines of the present version count; older ones stay as history. A
line that an interruption cut off in the middle is ignored, and the next one begins on a
line of its own.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from dpaudit.errors import InputError
from dpaudit.reports.bench.study import Record, Unit

__all__ = ["Store"]


class Store:
    """The records of one study in a folder.

    Parameters
    ----------
    folder : Path
        Created if need be.
    study : str
    code : str
        The version under which records are written, and read.

    Raises
    ------
    InputError
        If the folder cannot be written to.
    """

    def __init__(self, folder: Path, study: str, code: str) -> None:
        self.path = folder / f"{study}.jsonl"
        self._code = code
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab+") as file:
                if file.tell():
                    file.seek(-1, 2)
                    if file.read(1) != b"\n":
                        file.write(b"\n")
        except OSError as error:
            raise InputError(
                f"cannot write to {str(self.path)!r}: {error.strerror}"
            ) from error

    def load(self, units: Iterable[Unit]) -> dict[Unit, Record]:
        """Return the records of those units that are finished, in the given order."""
        known: dict[str, Record] = {}
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue  # cut off by an interruption
            if entry["code"] == self._code:
                known[entry["unit"]] = entry["record"]
        return {unit: known[unit.key] for unit in units if unit.key in known}

    def append(self, unit: Unit, record: Record, seconds: float) -> None:
        """Write one finished unit."""
        entry = {
            "unit": unit.key,
            "study": unit.study,
            "case": unit.case,
            "index": unit.index,
            "options": dict(unit.options),
            "seed": unit.seed,
            "code": self._code,
            "seconds": round(seconds, 4),
            "record": record,
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, allow_nan=False) + "\n")
