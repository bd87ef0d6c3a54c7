"""Audits of what other libraries ship.

Every mechanism of the family is held to the claim that its library makes, on its own
worst pair, to the end of its budget. What comes out is written to a folder:
``results.jsonl``, a line of JSON per audit, with the versions of the libraries; and the
witness of every refutation, ``NAME.witness.json``, for ``dpaudit verify``. Mechanisms
whose library is not installed are left out, and named.

Finished audits are kept in ``work.db`` in the same folder (`dpaudit.reports.store`),
under the versions of the libraries, and the rounds of unfinished ones in ``audits.db``:
the same command goes on where it was interrupted.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dpaudit.algorithms import Entry, entry, names_of
from dpaudit.algorithms.third_party.base import MissingLibraryError
from dpaudit.atomic import replacing
from dpaudit.audit import Budget, Run, Witness, audit
from dpaudit.extras import how_to_install
from dpaudit.reports.escaping import file_name
from dpaudit.reports.runner import Job, WorkProgress, carry_out
from dpaudit.reports.store import STORE, WorkStore
from dpaudit.reports.words import aligned
from dpaudit.validation import check_count, check_fraction

__all__ = ["audited", "verdict_table"]

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

    Raises `MissingLibraryError` if one of them is not installed.
    """
    try:
        return {name: version(name) for name in _DISTRIBUTIONS.get(extra or "", ())}
    except PackageNotFoundError as error:
        raise MissingLibraryError(
            f"{error.name} is not installed: {how_to_install(str(extra))}"
        ) from error


def examine(
    chosen: Entry,
    *,
    max_samples: int,
    confidence: float = 0.999,
    seed: int = 0,
    folder: Path | None = None,
) -> dict[str, Any]:
    """Audit one mechanism of the catalogue.

    ``max_samples``: releases a side. ``confidence``, ``seed``: as for
    `dpaudit.audit.audit`. ``folder``: where to keep the rounds of the audit while it
    runs.

    Raises `MissingLibraryError` if its library is not installed.

    Returns
    -------
    dict
        JSON-ready: the ``mechanism``'s name, the versions of its ``libraries``, the
        ``result`` of the audit. Its witness, if there is one, names the versions too.
    """
    libraries = library_versions(chosen.extra)
    result = audit(
        chosen.build(),
        run=Run(
            name=chosen.name, store=None if folder is None else folder / "audits.db"
        ),
        budget=Budget(max_samples, stop=False),
        confidence=confidence,
        seed=seed,
    ).to_dict()
    if result["witness"] is not None:
        result["witness"]["versions"] |= libraries
    return {"mechanism": chosen.name, "libraries": libraries, "result": result}


def verdict_table(findings: Iterable[dict[str, Any]]) -> str:
    """Return the verdicts as lines of text, one per finding, under a heading."""
    rows = [("mechanism", "claim", "releases", "verdict", "epsilon >=", "at delta")]
    rows += [
        (
            result["name"],
            result["claim"]["text"],
            f"{result['samples']:,}",
            result["verdict"],
            f"{result['epsilon_lower']:.3g}",
            f"{result['at_delta']:.3g}",
        )
        for result in (finding["result"] for finding in findings)
    ]
    return "\n".join(aligned(rows))


def audited(
    folder: Path,
    names: Sequence[str] = (),
    *,
    max_samples: int | None = None,
    confidence: float = 0.999,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Callable[[WorkProgress], None] | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> list[dict[str, Any]]:
    """Audit mechanisms, as far as they are not finished, and write what is found.

    Parameters
    ----------
    folder : Path
        Created if need be. Finished audits found in it are not repeated.
    names : sequence of str
        Of the catalogue; by default all whose library is installed.
    max_samples : int, optional
        Releases a side; that of `BUDGETS` by default, 10,000 where there is none.
    confidence, seed
        As for `dpaudit.audit.audit`.
    executor : concurrent.futures.Executor, optional
        Where to work; by default here. No result depends on it.
    progress : callable, optional
        Called with how far the work is.
    tell : callable
        Called with a line on each that is left out.

    Returns
    -------
    list of dict
        As `examine` returns them.

    Raises
    ------
    MissingLibraryError
        If the library of a mechanism that is named is not installed.
    InputError
        If an argument is not allowed, or the folder cannot be written to.
    """
    if max_samples is not None:
        check_count("max_samples", max_samples, minimum=2)
    check_fraction("confidence", confidence)
    check_count("seed", seed, minimum=0)
    store = WorkStore(folder / STORE)
    store.prepare()
    jobs = []
    for name in names or names_of("third-party"):
        chosen = entry(name)
        if not (names or chosen.installed):
            tell(f"{name}: left out, {how_to_install(str(chosen.extra))}")
            continue
        size = BUDGETS.get(name, 10_000) if max_samples is None else max_samples
        options: dict[str, Any] = {
            "max_samples": size,
            "confidence": confidence,
            "seed": seed,
        }
        what = {"audit": name, "of": library_versions(chosen.extra), **options}
        jobs.append(
            Job(
                name=json.dumps(what),
                seed=seed,
                work=partial(examine, chosen, folder=folder, **options),
                label=name,
            )
        )
    done = carry_out(jobs, store=store, executor=executor, progress=progress)
    findings = list(done.values())
    with replacing(folder / "results.jsonl") as new:
        new.write_text("".join(map(_line, findings)), encoding="utf-8")
    for finding in findings:
        if (witness := finding["result"]["witness"]) is not None:
            Witness.from_dict(witness).save(folder / _witness_name(finding))
    return findings


def _line(finding: dict[str, Any]) -> str:
    """Return a line on a finding, the witness by the name of its file."""
    witness = finding["result"]["witness"] and _witness_name(finding)
    result = finding["result"] | {"witness": witness}
    return json.dumps(finding | {"result": result}, allow_nan=False) + "\n"


def _witness_name(finding: dict[str, Any]) -> str:
    return f"{file_name(finding['mechanism'])}.witness.json"
