"""One subject of another library, audited: what runs in a process of its own.

A visit imports the library, watches one plain execution (does it start processes? does
it leave global state as it was?), and then holds the subject to its claim, under the
relation that is documented, or under both where none is:

1. It is replayed on canonical and searched pairs, for whoever sees the release, and if
   that does not settle it, for whoever sees every noisy value.
2. Releases are drawn, on the worst pair of the replay and on searched ones, each for a
   given time.
3. Rows of NaN and infinities take a place in a dataset, one at a time.

What is found is written after each step, so that a visit that is ended at its limit, or
crashes, has shown what it had.
"""

import json
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.algorithms.third_party.subjects.subject import Subject, subjects_of
from dpaudit.atomic import replacing
from dpaudit.audit import Budget, Run, Verdict, audit
from dpaudit.audit.judged import UNFOUNDED
from dpaudit.audit.replay import replay
from dpaudit.domains import Binary, Box, Domain, WithNonfinite
from dpaudit.errors import DPAuditError, InputError
from dpaudit.neighbours import Pair, Relation
from dpaudit.printable import said
from dpaudit.reports.experiment import Record
from dpaudit.reports.store import plain_number

_TRANSCRIPTS = 100  # executions a side, where transcripts are put to a test
_REPLAY_S = 8.0  # for the pairs of a replay
_STRANGE = 2_000  # releases a side, for each kind of strange rows
_PILOT = 2  # of releases, after a replay: the black box draws its own
_STARTS = {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn"}
_STARTS |= {"os.system", "subprocess.Popen"}


def visit(
    subject: Subject,
    *,
    seconds: float,
    samples: int,
    confidence: float,
    seed: int,
    tell: Callable[[Record], None] = lambda record: None,
) -> Record:
    """Audit one subject.

    ``seconds``: > 0, about: for the releases that are drawn, replays not counted.
    ``samples``: most releases a side in each audit of them. ``confidence``: in (0, 1),
    of each statistical test. ``tell``: called with the record as it grows.

    The record is JSON-ready: ``skipped`` (a sentence, or None), ``notes`` on how the
    library behaves, ``legs`` (an audit each: ``rows``, ``relation``, ``how``,
    ``verdict``, ``proof``, ``findings``, ``executions``, ``seconds``, ``witness``).
    """
    record: Record = {"version": None, "skipped": None, "notes": [], "legs": []}
    tell(record)
    domain = Domain.parse(subject.domain)
    mechanism = subject.mechanism()
    rng = np.random.default_rng(seed)
    rows = np.array([domain.random_row(rng=rng) for _ in range(domain.n_rows)])
    try:
        with _watched(record["notes"]):
            import_module(subject.library)
            record["version"] = _version(subject.distribution)
            _until_taken(lambda data: mechanism.release(data, rng=rng), rows, domain)
    except ImportError as error:
        record["skipped"] = f"does not import: {said(error)}"
    except Exception as error:
        record["skipped"] = f"does not run: {said(error)}"
    if record["skipped"] is not None:
        tell(record)
        return record

    def put(leg: Record, relation: Relation, rows: str = "finite") -> None:
        record["legs"].append({"rows": rows, "relation": relation.value, **leg})
        tell(record)

    options: dict[str, Any] = {"confidence": confidence, "seed": seed}
    share = seconds / (2 * len(subject.relations))
    for relation in subject.relations:
        worst = None
        for sees, most in (("release", _PILOT), ("transcript", _TRANSCRIPTS)):
            leg, worst = _replayed(subject, relation, sees, most, **options)
            put(leg, relation)
            if leg["verdict"] == "REFUTED" or not leg["findings"]:
                break
        if (sees, leg["verdict"]) == ("release", "REFUTED"):
            continue
        for where in ({"pair": worst}, {"domain": domain, "relation": relation}):
            if None not in where.values():
                budget = Budget(samples, seconds=share)
                found = _drawn(mechanism, subject, where, budget, **options)
                put(found, relation)
                if found["verdict"] == "REFUTED":
                    break
    if isinstance(domain, Box) and not isinstance(domain, Binary):
        budget = Budget(min(samples, _STRANGE), seconds=share / 3)
        for relation in subject.relations:
            found = _strange(mechanism, subject, rows, relation, budget, **options)
            put(found, relation, "strange")
    return record


def _replayed(
    subject: Subject, relation: Relation, sees: Any, most: int, **options: Any
) -> tuple[Record, Pair | None]:
    """Return what a replay says, and the worst pair that it saw, if it saw any."""
    begun = time.perf_counter()
    mechanism: Any = subject.mechanism()  # a function with a name: no claim of its own
    try:
        result = replay(
            mechanism,
            domain=subject.domain,
            relation=relation,
            claim=subject.claim,
            budget=Budget(most, seconds=_REPLAY_S),
            sees=sees,
            run=Run(name=str(subject)),
            **options,
        )
    except Exception as error:
        return _failed(f"replay, {sees}", error, begun), None
    leg = _leg(
        f"replay, {sees}",
        result.verdict.value,
        proof=result.proof,
        findings=[_finding(each.to_dict()) for each in result.findings],
        executions=result.executions + result.repeats + 2 * result.samples,
        seconds=result.seconds,
        witness=None if result.witness is None else result.witness.to_dict(),
    )
    return leg, result.pair


def _drawn(
    mechanism: Any,
    subject: Subject,
    where: dict[str, Any],
    budget: Budget,
    **options: Any,
) -> Record:
    """Return what an audit of releases says."""
    begun = time.perf_counter()
    try:
        result = audit(
            mechanism,
            claim=subject.claim,
            budget=budget,
            run=Run(name=str(subject)),
            **where,
            **options,
        )
    except Exception as error:
        return _failed("black box", error, begun)
    witness = None if result.witness is None else result.witness.to_dict()
    if witness is not None:
        witness["versions"] |= {
            subject.distribution: str(_version(subject.distribution))
        }
    if result.verdict is Verdict.NO_VERDICT:
        return _failed("black box", InputError(UNFOUNDED), begun)
    findings = []
    if result.event is not None and result.refuted:
        findings.append({"kind": "event", "where": "", "message": result.event})
    return _leg(
        "black box",
        result.verdict.value,
        findings=findings,
        executions=2 * result.samples,
        seconds=result.seconds,
        epsilon_lower=result.epsilon_lower,
        delta_lower=result.delta_lower,
        witness=witness,
    )


def _leg(how: str, verdict: str, **known: Any) -> Record:
    """Return what an audit says; what is not known of it is nothing."""
    nothing = {"proof": False, "findings": [], "executions": 0, "seconds": 0.0}
    return {"how": how, "verdict": verdict, **nothing, "witness": None, **known}


def _strange(
    mechanism: Any,
    subject: Subject,
    rows: Any,
    relation: Relation,
    budget: Budget,
    **options: Any,
) -> Record:
    """Return what rows of NaN and infinities do, the worst of them."""
    domain = Domain.parse(subject.domain)
    refused = []
    worst: Record | None = None
    for strange in WithNonfinite(domain).strange_rows():
        value = str(np.ravel(strange)[0])
        spoilt = np.concatenate([rows[:-1], [strange]])
        rest = rows if relation is Relation.REPLACE_ONE else rows[:-1]
        pair = Pair(rest, spoilt, relation, allow_nonfinite=True)
        try:
            mechanism.release(
                pair.neighbour, rng=np.random.default_rng(options["seed"])
            )
        except Exception as error:
            refused.append(f"{value}: {type(error).__name__}")
            continue
        leg = _drawn(mechanism, subject, {"pair": pair}, budget, **options)
        for each in leg["findings"]:
            each["message"] = f"a row of {value}: {each['message']}"
        if worst is None or leg["verdict"] != "NOT_REFUTED":  # failed, or refuted
            worst = leg
        if leg["verdict"] == "REFUTED":
            break
    if worst is None:
        worst = _leg("black box", "REFUSED", executions=len(refused))
    worst["refused"] = refused
    return worst


def _failed(how: str, error: Exception, begun: float) -> Record:
    found = [{"kind": "error", "where": "", "message": said(error)}]
    seconds = time.perf_counter() - begun
    return _leg(how, "FAILED", findings=found, seconds=seconds)


def _finding(found: Record) -> Record:
    """Return a finding whose places are those in the packages, on any machine."""
    for key in ("where", "where_neighbour"):
        for mark in ("site-packages/", "dist-packages/"):
            found[key] = found[key].rpartition(mark)[2]
    return found


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _until_taken(execute: Callable[[Any], Any], rows: Any, domain: Domain) -> None:
    """Execute on data that the subject takes, its own refusals being no failure."""
    rng = np.random.default_rng(1)
    for turn in range(20):
        try:
            execute(rows)
        except DPAuditError:
            if turn == 19:
                raise
            rows = np.array([domain.random_row(rng=rng) for _ in range(len(rows))])
        else:
            return


@contextmanager
def _watched(notes: list[str]) -> Iterator[None]:
    """Note what a block does beyond its own business."""
    started: set[str] = set()
    watching = True

    def hook(event: str, arguments: Any) -> None:
        if watching and event in _STARTS:
            started.add(event)

    sys.addaudithook(hook)  # cannot be taken away; the process ends with the visit
    before = _state()
    try:
        yield
    finally:
        watching = False
        after = _state()
        changed = [name for name, value in before.items() if value != after[name]]
        if "the environment" in changed:
            one, two = (
                set(each["the environment"].items()) for each in (before, after)
            )
            names = ", ".join(sorted({name for name, _ in one ^ two}))
            changed[changed.index("the environment")] = f"the environment ({names})"
        if changed:
            notes.append("changes " + ", ".join(changed))
        if started:
            notes.append("starts processes (" + ", ".join(sorted(started)) + ")")


def _state() -> dict[str, Any]:
    return {
        "the working directory": os.getcwd(),
        "the environment": dict(os.environ),
        "the import path": list(sys.path),
        "the recursion limit": sys.getrecursionlimit(),
        "NumPy's handling of errors": np.geterr(),
        "NumPy's printing": str(np.get_printoptions()),
        "NumPy's global generator": str(np.random.get_state()),  # noqa: NPY002
        "Python's global generator": random.getstate(),
        "signal handlers": [
            repr(signal.getsignal(each)) for each in (signal.SIGINT, signal.SIGTERM)
        ],
    }


def main() -> None:
    """Make the visit that standard input describes, and write what it finds."""
    asked = json.load(sys.stdin)
    path = Path(asked.pop("path"))
    subject = subjects_of(asked.pop("module"))[asked.pop("name")]

    def tell(record: Record) -> None:
        with replacing(path) as new:
            new.write_text(json.dumps(record, default=plain_number), encoding="utf-8")

    warnings.simplefilter("ignore")
    record = visit(subject, tell=tell, **asked)
    tell(record | {"finished": True})
    os._exit(0)  # whatever threads the library has left behind


if __name__ == "__main__":
    main()
