"""Audits of what other libraries ship.

Every mechanism of the family is held to the claim that its library makes, on its own
worst pair, to the end of its budget. What comes out is written to a folder: a line of
JSON per audit, appended to ``results.jsonl`` as it finishes, with the versions of the
libraries; and the witness of every refutation, ``NAME.witness.json``, for ``dpaudit
verify``. Mechanisms whose library is not installed are left out, and named.

Audits are kept in a store in the same folder while they run, so that the same command
goes on where it was interrupted, and ``dpaudit export`` makes a table of the finished
ones. The store tells versions of the libraries apart.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dpaudit.algorithms import Entry, entry, names_of
from dpaudit.algorithms.third_party.base import MissingLibraryError
from dpaudit.audit import AuditResult, audit
from dpaudit.audit.identity import code_version
from dpaudit.errors import InputError
from dpaudit.reports.escaping import file_name

__all__ = [
    "BUDGETS",
    "Finding",
    "audited",
    "examine",
    "library_versions",
    "verdict_table",
]

BUDGETS = {
    "diffprivlib-bingham": 1_000,
    "diffprivlib-pca": 300,
    "diffprivlib-laplace": 200_000,
    "diffprivlib-gaussian": 200_000,
    "diffprivlib-gaussian-analytic": 200_000,
    "opendp-eigenvector": 1_000,
    "opendp-pca": 500,
    "opendp-pca-centred": 300,
    "opendp-laplace": 50_000,
    "opendp-gaussian": 50_000,
}
"""Releases a side: what takes minutes. Eigenvectors take up to a second each."""

_DISTRIBUTIONS = {
    "diffprivlib": ("diffprivlib", "scikit-learn", "numpy"),
    "opendp": ("opendp", "randomgen", "scikit-learn", "numpy"),
}


def library_versions(extra: str | None) -> dict[str, str]:
    """Return the versions of a library and of what its noise depends on, if any.

    Raises
    ------
    MissingLibraryError
        If one of them is not installed.
    """
    try:
        return {name: version(name) for name in _DISTRIBUTIONS.get(extra or "", ())}
    except PackageNotFoundError as error:
        raise MissingLibraryError(
            f"{error.name} is not installed: pip install 'dpaudit[{extra}]'"
        ) from error


@dataclass(frozen=True)
class Finding:
    """What the audit of one mechanism says, and of which versions it says so.

    Parameters
    ----------
    result : AuditResult
        The witness, if there is one, names the versions too.
    libraries : dict
        Versions of the library and of what its noise depends on.
    code : str
        Version of dpaudit, with a hash of its sources.
    """

    result: AuditResult
    libraries: dict[str, str]
    code: str

    @property
    def witness_name(self) -> str | None:
        """The name of the file that the witness goes to, None without one."""
        if self.result.witness is None:
            return None
        return f"{file_name(self.result.name)}.witness.json"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON-ready Python, the witness by its file's name."""
        return {
            "mechanism": self.result.name,
            "libraries": self.libraries,
            "code": self.code,
            "result": self.result.to_dict() | {"witness": self.witness_name},
        }

    def save(self, folder: Path) -> None:
        """Append the finding to ``results.jsonl``, and write its witness.

        Raises
        ------
        InputError
            If the folder cannot be written to.
        """
        _append(folder, json.dumps(self.to_dict(), allow_nan=False) + "\n")
        if self.witness_name is not None and self.result.witness is not None:
            self.result.witness.save(folder / self.witness_name)


def _append(folder: Path, text: str) -> None:
    path = folder / "results.jsonl"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from error


def examine(
    chosen: Entry,
    *,
    max_samples: int | None = None,
    confidence: float = 0.999,
    seed: int = 0,
    folder: Path | None = None,
) -> Finding:
    """Audit one mechanism of the catalogue.

    Parameters
    ----------
    chosen : Entry
    max_samples : int, optional
        Releases a side; that of `BUDGETS` by default, 10,000 where there is none.
    confidence, seed
        As for `dpaudit.audit.audit`.
    folder : Path, optional
        Where to keep the audit while it runs.

    Raises
    ------
    MissingLibraryError
        If its library is not installed.
    """
    libraries = library_versions(chosen.extra)
    result = audit(
        chosen.build(),
        name=chosen.name,
        max_samples=max_samples or BUDGETS.get(chosen.name, 10_000),
        confidence=confidence,
        seed=seed,
        stop_when_refuted=False,
        store=None if folder is None else folder / "audits.db",
    )
    if (witness := result.witness) is not None:
        witness = replace(witness, versions=witness.versions | libraries)
        result = replace(result, witness=witness)
    return Finding(result, libraries, code_version())


def verdict_table(findings: Iterable[Finding]) -> str:
    """Return the verdicts as lines of text, one per finding, under a heading."""
    rows = [("mechanism", "claim", "releases", "verdict", "epsilon >=", "at delta")]
    rows += [
        (
            result.name,
            str(result.claim),
            f"{result.samples:,}",
            result.verdict.value,
            f"{result.epsilon_lower:.3g}",
            f"{result.at_delta:.3g}",
        )
        for result in (finding.result for finding in findings)
    ]
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def audited(
    folder: Path,
    names: Sequence[str] = (),
    *,
    tell: Callable[[str], None] = lambda line: None,
    **options: Any,
) -> list[Finding]:
    """Audit mechanisms one after the other, and write what is found.

    Parameters
    ----------
    folder : Path
    names : sequence of str
        Of the catalogue; by default all whose library is installed.
    tell : callable
        Called with a line on each that is left out.
    options
        Of `examine`.
    """
    findings = []
    _append(folder, "")  # refuse before the work what fails after it
    for name in names or names_of("third-party"):
        chosen = entry(name)
        if not (names or chosen.installed):
            tell(f"{name}: left out, pip install 'dpaudit[{chosen.extra}]'")
            continue
        finding = examine(chosen, folder=folder, **options)
        finding.save(folder)
        findings.append(finding)
    return findings
