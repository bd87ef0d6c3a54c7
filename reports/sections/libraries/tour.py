"""A tour of other libraries: what they ship, as its documentation uses it, audited.

Each subject that is listed (`dpaudit.algorithms.third_party.subjects`) is visited in a
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
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import distributions
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dpaudit.algorithms.third_party.subjects.subject import Subject, subjects_of
from dpaudit.atomic import replacing
from dpaudit.reports.escaping import file_name
from dpaudit.reports.experiment import Record
from dpaudit.reports.runner import Job, WorkProgress, carry_out
from dpaudit.reports.sections.libraries.findings import FILE, NOT_FINISHED, tour_lines
from dpaudit.reports.store import STORE, WorkStore, save_json
from dpaudit.validation import check_count, check_fraction, check_name, check_positive

__all__ = ["tour_lines", "toured"]

MODULES = tuple(
    f"dpaudit.algorithms.third_party.subjects.{name}"
    for name in ("of_diffprivlib", "opendp_measurements", "others")
)
"""Modules that list what is audited."""

CONFIDENCE = 0.99999
_SECONDS, _LIMIT_S, _SAMPLES = 12.0, 120.0, 200_000


def toured(
    folder: Path,
    names: Sequence[str] = (),
    *,
    modules: Sequence[str] = MODULES,
    seconds: float = _SECONDS,
    limit_s: float = _LIMIT_S,
    max_samples: int = _SAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Callable[[WorkProgress], None] | None = None,
) -> list[Record]:
    """Visit subjects, as far as that is not done, and write what is found.

    ``folder``: created if need be. Gets `FILE`, and a witness of each refutation.
    ``names``: subjects, such as ``"diffprivlib.tools.mean"``, or libraries; by default
    all. ``modules``: modules that list subjects. ``seconds``: > 0, about: for the
    releases of one subject. ``limit_s``: > 0: after which a visit is ended, whatever it
    does. ``max_samples``: most releases a side in each audit of them, >= 2.
    ``confidence``: in (0, 1), of each test. ``executor``, ``progress``: as for
    `dpaudit.reports.runner.carry_out`.

    Raises `InputError` if an argument is not allowed, or the folder cannot be written
    to.

    Returned is a record for each: what the subject is, and what `visit` returns.
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
        str(each): each for module in modules for each in subjects_of(module).values()
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
                subject.module,
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
    about: Record, module: str, name: str, *, limit_s: float, **options: Any
) -> Record:
    """Make a visit in a process of its own, and return what it found in time."""
    with TemporaryDirectory() as folder:
        path, output = Path(folder) / "record.json", Path(folder) / "output"
        asked = {"path": str(path), "module": module, "name": name}
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
            found["notes"].append(f"{NOT_FINISHED}: {said}")
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
