"""A tour of other libraries: what they ship, as its documentation uses it, audited.

Each subject of the shelves (`dpaudit.algorithms.third_party.subjects`) is visited in a
process of its own (`dpaudit.reports.sections.libraries.visit`), which is ended at a
limit together with whatever it has started. So a library that is missing, hangs,
crashes, prints or forks is named, and the rest stands.

**What a verdict says.** A subject is *refuted* if releases of it refute its claim, by
proof or at the confidence of the tour, under the relation that its documentation names.
Where it names none, both are tried, and only what is refuted under both is refuted: one
of them is what is meant. If no release refutes it but its noisy values do, it says so:
the claim is false then for whoever sees these, which is what a proof by composition
promises, and whether the release shows it is open. Rows of NaN and infinities have a
column of their own, since hardly any documentation says that they are legal.

**Confidence.** Every one of the tests, some five of each subject, refutes a true claim
with probability at most 1e-5: that of a tour of a hundred subjects refutes any, with
probability at most 0.005. Each refutation has a witness beside the table, which
``dpaudit verify`` tests on releases of its own.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import distributions
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dpaudit.algorithms.third_party.subjects.shelf import Subject, subjects_of
from dpaudit.atomic import replacing
from dpaudit.neighbours import Relation
from dpaudit.reports.escaping import file_name
from dpaudit.reports.runner import Job, Progress, carry_out
from dpaudit.reports.store import STORE, WorkStore, load_json, save_json
from dpaudit.reports.words import aligned
from dpaudit.validation import check_count, check_fraction, check_name, check_positive

__all__ = ["SHELVES", "Stop", "load_tour", "stops", "tour_table", "toured"]

FILE = "tour.json"
"""The name of the file, beside the results of the other audits of libraries."""

SHELVES = tuple(
    f"dpaudit.algorithms.third_party.subjects.{name}"
    for name in (
        "diffprivlib_mechanisms",
        "diffprivlib_tools",
        "opendp_measurements",
        "pydp_algorithms",
        "pipelines",
        "local",
        "jax_noise",
    )
)
"""Modules that list what is audited."""

EXPLAINED: dict[str, str] = {
    "diffprivlib.models.LinearRegression(fit_intercept=False)": (
        "Linear regression without noise on squares"
    ),
    "diffprivlib.models.LinearRegression": (
        "Linear regression without noise on squares"
    ),
    "diffprivlib.models.GaussianNB": "A class without rows",
    "diffprivlib.models.GaussianNB.partial_fit": "A class without rows",
    "multi_freq_ldpy.RSpFD_solution.RSpFD_GRR_Client": (
        "Random sampling plus fake data"
    ),
}
"""Refuted subjects whose reason is known, with their heading in docs/findings.md."""

CONFIDENCE = 0.99999
_SECONDS, _LIMIT_S, _SAMPLES = 12.0, 120.0, 200_000
_NOT_FINISHED = "not finished"

Record = dict[str, Any]


@dataclass(frozen=True)
class Stop:
    """What the tour says of one subject: a line of its table.

    Parameters
    ----------
    library, version, name : str
    claim, relation : str
        As documented; the relation is "not stated" where none is named.
    stated : str
        Where that is.
    verdict : str
        ``REFUTED``, ``REFUTED for transcripts``, ``NOT_REFUTED``, ``FAILED`` or
        ``SKIPPED``; for relations that are not stated the mildest of both.
    readings : dict of str to str
        The verdict under each relation that the claim may be read for; ``FAILED``
        where no audit under it came to an end.
    strange : str
        That on rows of NaN and infinities; empty where rows are categories, or where
        the visit ended before.
    findings : tuple of str
        Each once, with its place in the library.
    explained : str
        The heading in docs/findings.md, if it is there.
    executions : int
        On either side together.
    seconds : float
    notes : tuple of str
        Why it was skipped; what the library did beyond its business.
    witnesses : tuple of str
        Names of the files that hold them, if it is refuted.
    """

    library: str
    version: str
    name: str
    claim: str
    relation: str
    stated: str
    verdict: str
    readings: dict[str, str]
    strange: str
    findings: tuple[str, ...]
    explained: str
    executions: int
    seconds: float
    notes: tuple[str, ...]
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
        told += [_NOT_FINISHED for each in self.notes if each.startswith(_NOT_FINISHED)]
        return ", ".join(told)


def toured(
    folder: Path,
    names: Sequence[str] = (),
    *,
    shelves: Sequence[str] = SHELVES,
    seconds: float = _SECONDS,
    limit_s: float = _LIMIT_S,
    max_samples: int = _SAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> list[Record]:
    """Visit subjects, as far as that is not done, and write what is found.

    Parameters
    ----------
    folder : Path
        Created if need be. Gets `FILE`, and a witness of each refutation.
    names : sequence of str
        Subjects, such as ``"diffprivlib.tools.mean"``, or libraries; by default all.
    shelves : sequence of str
        Modules that list subjects.
    seconds : float
        > 0, about: for the releases of one subject.
    limit_s : float
        > 0: after which a visit is ended, whatever it does.
    max_samples : int
        Most releases a side in each audit of them, >= 2.
    confidence : float
        In (0, 1), of each test.
    seed : int
    executor, progress
        As for `dpaudit.reports.runner.carry_out`.

    Returns
    -------
    list of dict
        A record for each: what the subject is, and what `visit` returns.

    Raises
    ------
    InputError
        If an argument is not allowed, or the folder cannot be written to.
    """
    check_fraction("confidence", confidence)
    check_positive("limit_s", limit_s)
    options: dict[str, Any] = {
        "seconds": check_positive("seconds", seconds),
        "samples": check_count("max_samples", max_samples, minimum=2),
        "confidence": confidence,
        "seed": check_count("seed", seed, minimum=0),
    }
    everything = {
        str(each): each for shelf in shelves for each in subjects_of(shelf).values()
    }
    groups = {each.library for each in everything.values()}
    for name in names:
        check_name("subject", name, (*everything, *sorted(groups)))
    store = WorkStore(folder / STORE)
    store.prepare()
    jobs = [
        Job(
            name=json.dumps(
                {"visit": name, "in": _environment(), "limit_s": limit_s, **options}
            ),
            seed=seed,
            work=partial(
                _visited,
                _about(subject),
                subject.shelf,
                subject.name,
                limit_s=limit_s,
                **options,
            ),
            label=name,
        )
        for name, subject in everything.items()
        if not names or name in names or subject.library in names
    ]
    done = carry_out(jobs, store=store, executor=executor, progress=progress)
    records = list(done.values())
    for record in records:
        for number, leg in enumerate(record["legs"]):
            witness = leg.pop("witness", None)
            if witness is None:
                continue
            leg["witness"] = f"{file_name(record['subject'])}.{number}.witness.json"
            with replacing(folder / leg["witness"]) as new:
                new.write_text(json.dumps(witness, indent=2) + "\n", encoding="utf-8")
    save_json(folder / FILE, {"records": _finite(records)})
    return records


def _finite(value: Any) -> Any:
    """Return JSON-ready Python in which infinite numbers are words."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    finite = not isinstance(value, float) or abs(value) < float("inf")
    return value if finite else str(value)


@cache
def _environment() -> str:
    """Return a digest of the packages that are installed, and of their versions."""
    found = sorted({f"{each.name}=={each.version}" for each in distributions()})
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]


def _about(subject: Subject) -> Record:
    return {
        "subject": str(subject),
        "library": subject.library,
        "distribution": subject.distribution,
        "claim": str(subject.claim),
        "relation": None if subject.relation is None else subject.relation.value,
        "stated": subject.stated,
    }


def _visited(
    about: Record, shelf: str, name: str, *, limit_s: float, **options: Any
) -> Record:
    """Make a visit in a process of its own, and return what it found in time."""
    with TemporaryDirectory() as folder:
        path, output = Path(folder) / "record.json", Path(folder) / "output"
        asked = {"path": str(path), "shelf": shelf, "name": name}
        begun = time.perf_counter()
        ended = _run(json.dumps(asked | options), output, limit_s)
        seconds = time.perf_counter() - begun
        printed = output.read_text(encoding="utf-8", errors="replace")
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except OSError:
            found = {"version": None, "skipped": None, "notes": [], "legs": []}
    if not found.pop("finished", False) and found["skipped"] is None:
        last = printed.strip().rpartition("\n")[2]
        said = f"{ended}: {last}" if last else ended
        if found["legs"]:
            found["notes"].append(f"{_NOT_FINISHED}: {said}")
        else:
            found["skipped"] = said
    elif printed:
        found["notes"].append(f"prints {len(printed):,} characters")
    return about | found | {"seconds": seconds}


def _run(asked: str, output: Path, limit_s: float) -> str:
    """Return how a process ended that makes a visit, with all that it started."""
    command = [sys.executable, "-m", "dpaudit.reports.sections.libraries.visit"]
    threads = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    with output.open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | dict.fromkeys(threads, "1"),
            start_new_session=True,
        )
        try:
            process.communicate(asked.encode(), timeout=limit_s)
        except subprocess.TimeoutExpired:
            return f"ended at {limit_s:g} s"
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return f"ended with exit code {process.returncode}"


def load_tour(folder: Path) -> list[Record] | None:
    """Return the records that a folder holds, None if there are none.

    Raises
    ------
    InputError
        If the file there is something else.
    """
    return load_json(folder / FILE, _records, "make third-party")


def _records(found: Any) -> list[Record]:
    """Return the records of a file, or fail if a table cannot be made of them."""
    records: list[Record] = found["records"]
    stops(records)
    return records


_REFUTED, _TRANSCRIPTS = "REFUTED", "REFUTED for transcripts"
_OURS = "third_party/subjects/"  # no line of a library
_MILDEST = ("NOT_REFUTED", "FAILED", _TRANSCRIPTS, _REFUTED)


def stops(records: Iterable[Record]) -> list[Stop]:
    """Return the lines of the table, in the order of the records."""
    return [_stop(record) for record in records]


def _stop(record: Record) -> Stop:
    finite = [leg for leg in record["legs"] if leg["rows"] == "finite"]
    # All of them, whether or not the visit came so far.
    meant = [record["relation"]] if record["relation"] else [*map(str, Relation)]
    readings = {
        relation: _reading([leg for leg in finite if leg["relation"] == relation])
        for relation in meant
        if finite
    }
    verdict = "SKIPPED"
    if readings:
        verdict = min(readings.values(), key=_MILDEST.index)
    strange = [leg for leg in record["legs"] if leg["rows"] == "strange"]
    notes = [*record["notes"]]
    if record["skipped"]:
        notes.append(record["skipped"])
    return Stop(
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
        notes=tuple(notes),
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
        for each in stops(records)
    ]
    return "\n".join(aligned(rows))
