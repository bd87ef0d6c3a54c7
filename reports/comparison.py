"""What `dpaudit.reports.libraries` found, and the file that holds it.

The comparison is made in an environment of its own (``make third-party``), so the
report has it from a file.
"""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from dpaudit.reports.saved import load_json, save_json

__all__ = ["FILE", "Comparison", "load_comparison"]

FILE = "comparison.json"
"""The name of the file, beside the results of the audits of other libraries."""


@dataclass(frozen=True)
class Comparison:
    """Fits of several libraries to the same rows.

    Parameters
    ----------
    versions : dict of str to str
        Of the libraries, dpaudit among them.
    epsilon : float
        What everybody claims, ...
    relation : str
        ... and for which neighbours.
    n_rows : int
    repetitions : int
        Fits of everybody in every setting.
    limit_s : float
        For one fit, in seconds by the clock.
    records : list of dict
        One for each fit: ``contender``, ``centre``, ``delta``, ``dimension``,
        ``n_components``, ``captured_share`` and ``fit_seconds``, its processor time.
        The last two are None where no fit ended in time.
    """

    versions: dict[str, str]
    epsilon: float
    relation: str
    n_rows: int
    repetitions: int
    limit_s: float
    records: list[dict[str, Any]]

    def save(self, folder: Path) -> Path:
        """Write the file into a folder, created if need be, and return its path.

        Raises
        ------
        InputError
            If it cannot be written.
        """
        path = folder / FILE
        save_json(path, asdict(self))
        return path


def load_comparison(folder: Path) -> Comparison | None:
    """Return the comparison that a folder holds, None if there is none.

    Raises
    ------
    InputError
        If the file there is something else.
    """
    return load_json(folder / FILE, _comparison, "make third-party")


def _comparison(found: dict[str, Any]) -> Comparison:
    return Comparison(**{each.name: found[each.name] for each in fields(Comparison)})
