"""What a comparison has to do, and what came of it.

The jobs of every mechanism at every epsilon: a job's name says all that its record
depends on: what is done, with which mechanism (of the user's own, a digest of its code
and of a few releases), at which epsilon, on which rows. So a store does not return for
one what was found for another. And of their records the table, the audits, and what is
to be known of them.
"""

import hashlib
import json
import math
import pickle
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.algorithms import CATALOGUE, entry, names_of
from dpaudit.algorithms.third_party.base import library_versions
from dpaudit.audit.keeping.identity import describe
from dpaudit.codec import load_reference
from dpaudit.errors import DPAuditError, InputError
from dpaudit.gram import Gram
from dpaudit.mechanism import HasWorstCase
from dpaudit.printable import said
from dpaudit.reports.comparison import measures
from dpaudit.reports.comparison.candidates import (
    Built,
    ComparedMechanism,
    Setting,
    WithoutBound,
    blamed,
)
from dpaudit.reports.comparison.page import MechanismComparison, told
from dpaudit.reports.comparison.problem import MEASURES, PCAProblem
from dpaudit.reports.experiment import Record
from dpaudit.reports.runner import Failure, Job
from dpaudit.reports.tables import quarters
from dpaudit.reports.words import sentences

_WORK: dict[str, tuple[Callable[..., Record], tuple[str, ...], float]] = {
    "measured": (measures.measured, ("repetitions",), 1.0),
    "timed": (measures.timed, (), 0.2),
    "audited": (measures.audited, ("samples",), 3.0),
}
"""What is done at each point: with which settings, and for which effort."""


@dataclass(frozen=True)
class Point:
    """A mechanism at one epsilon, and the jobs that are carried out for it."""

    candidate: ComparedMechanism
    epsilon: float
    # measured, timed and audited, as the functions of that name in
    # `dpaudit.reports.comparison.measures`.
    jobs: Mapping[str, Job]
    # whether the same seed gives the same releases, so that a store can tell its code
    # from other code
    told_apart: bool


def points(
    own: Mapping[str, Any],
    problem: PCAProblem,
    settings: Mapping[str, Any],
    notes: list[str],
    *,
    stored: bool,
    sent: bool,
) -> tuple[list[Point], dict[str, Exception]]:
    """Return the points of all mechanisms, and why some have none; add to the notes.

    ``settings``: as `MechanismComparison` has them. ``stored``, ``sent``: whether
    records are kept, and whether work goes to other processes.
    """
    names, seed = list(dict.fromkeys(settings["mechanisms"])), settings["seed"]
    if all(":" in name for name in names):
        names += _beside(problem)
    digest = problem.digest()
    found: list[Point] = []
    failed: dict[str, Exception] = {}
    for name in dict.fromkeys((*own, *names)):
        try:
            subject = own.get(name)
            if subject is None and ":" in name:
                subject = load_reference(name)
            elif subject is None:
                _check_known(name.partition("@")[0])
                subject = WithoutBound.of(name)
            candidate = ComparedMechanism(name, problem.setting, subject)
            with nullcontext() if subject is None else blamed(name):
                wanted = candidate.points(tuple(settings["epsilons"]))
                built = candidate.build(wanted[0])
            if not _can_read(problem, built):
                raise InputError(
                    f"{name} needs the rows, and a file that is read in blocks has but "
                    "their second moment"
                )
            identities: dict[float, str | None] = dict.fromkeys(wanted, "")
            if stored:
                identities = {e: _identity(problem, candidate, e, seed) for e in wanted}
            if None in identities.values():
                notes.append(
                    f"{name} is compared anew each time: the same seed does not give "
                    "the same releases."
                )
            if sent:
                _check_sendable(candidate)
        except DPAuditError as error:
            failed[name] = error
            continue
        about = dict.fromkeys(_WORK, digest)
        if subject is None and isinstance(built.mechanism, HasWorstCase):
            # The worst pair that the catalogue names does not depend on the rows.
            about["audited"] = repr(problem.setting)
        for epsilon, identity in identities.items():
            jobs = _jobs(problem, candidate, epsilon, settings, identity, about)
            found.append(Point(candidate, epsilon, jobs, identity is not None))
    asked = {*own, *settings["mechanisms"]}
    if asked and failed.keys() >= asked:  # what is beside them was not asked for
        raise _none(failed, "that was named ")
    return found, failed


def _none(failed: Mapping[str, Exception], which: str = "") -> InputError:
    why = "; ".join(map(str, failed.values()))
    return InputError(f"no mechanism {which}could be compared: {why}")


def _check_known(name: str) -> None:
    try:
        entry(name)
    except InputError as error:  # which lists the whole catalogue
        raise InputError(f"{str(error).partition(' (known')[0]}") from None


def _identity(
    problem: PCAProblem, candidate: ComparedMechanism, epsilon: float, seed: int
) -> str | None:
    """Return what tells code that is not dpaudit's from other; None if nothing does."""
    if candidate.own is None:
        return json.dumps(library_versions(entry(candidate.name).extra))
    first, again = (measures.shown(problem, candidate, epsilon, seed) for _ in range(2))
    if first != again:
        return None
    return hashlib.sha256(describe(candidate.own).encode() + first).hexdigest()


def _check_sendable(candidate: ComparedMechanism) -> None:
    try:
        pickle.dumps(candidate)
    except Exception as error:
        raise InputError(
            f"{candidate.name} cannot be sent to another process ({said(error)}): "
            "define it at the top level of a module, or use one worker"
        ) from error


def _jobs(
    problem: PCAProblem,
    candidate: ComparedMechanism,
    epsilon: float,
    settings: Mapping[str, Any],
    identity: str | None,
    about: Mapping[str, str],
) -> dict[str, Job]:
    seed, jobs = settings["seed"], {}
    for kind, (work, names, effort) in _WORK.items():
        size = {name: settings[name] for name in names}
        what = ["compare", candidate.name, epsilon, identity, seed, kind, about[kind]]
        jobs[kind] = Job(
            name=json.dumps([*what, size]),
            seed=seed,
            work=partial(work, problem, candidate, epsilon, seed=seed, **size),
            label=candidate.name,
            effort=effort,
            alone=kind == "timed",
        )
    return jobs


def _beside(problem: PCAProblem) -> list[str]:
    """Return the names of the catalogue that suit, and can read what there is."""
    candidates = (
        ComparedMechanism(name, problem.setting) for name in suitable(problem.setting)
    )
    return [each.name for each in candidates if _can_read(problem, each.build(1.0))]


def _can_read(problem: PCAProblem, built: Built) -> bool:
    """Say whether the rows are there, or the mechanism needs their moment alone."""
    return not isinstance(problem.rows, Gram) or hasattr(built.mechanism, "draw_from")


def suitable(setting: Setting) -> tuple[str, ...]:
    """Return the names of the catalogue that are compared when none are given.

    Those that release a second-moment matrix or a basis, for rows of a public norm,
    whose claim can be made under this relation and delta and is not known to be false.
    Of ``X`` and ``X-published`` it is the first, dpaudit's own calibration.
    """
    k = setting.n_components
    # One draws one component; who asks the other for more than two may wait for ever,
    # and so may who asks the third for many dimensions.
    fits = {
        "exponential-pca": k == 1,
        "exponential-pca-acg": k == 2,
        "k-norm-covariance": False,
    }
    return tuple(
        name
        for name in (*names_of("covariance"), *names_of("subspace"))
        if setting.relation in (each := CATALOGUE[name]).relations
        and (setting.delta > 0 or not each.approximate)
        and not each.expected_refuted
        and name.removesuffix("-published") == name
        and fits.get(name, True)
    )


def comparison_of(
    work: Sequence[Point],
    found: Mapping[str, Any],
    failed: dict[str, Exception],
    problem: PCAProblem,
    settings: Mapping[str, Any],
    notes: list[str],
) -> MechanismComparison:
    """Return what the records of jobs say; `failed` and `notes` grow with it."""
    rows: list[Record] = []
    audits: list[Record] = []
    empty, lost, false = (defaultdict[Any, list[float]](list) for _ in range(3))
    for point in work:
        name, epsilon = point.candidate.name, point.epsilon
        record = {kind: found[job.name] for kind, job in point.jobs.items()}
        errors = [each.error for each in record.values() if isinstance(each, Failure)]
        if errors:
            failed.setdefault(name, errors[0])
            lost[name].append(epsilon)
            rows += _failed_rows(name, epsilon, errors[0])
            continue
        audit, measured = record["audited"], record["measured"]
        audits.append({"mechanism": name, "epsilon": epsilon, **audit})
        if measured["empty"]:
            empty[name, measured["empty"]].append(epsilon)
        if audit.get("exact") == "false":
            false[name].append(epsilon)
        seconds = float(np.median(record["timed"]["seconds"]))
        said = {"seconds": seconds, "verdict": audit["verdict"]}
        for measure in MEASURES:
            low, median, high = quarters(measured[measure])
            three = {"median": median, "low": low, "high": high}
            key = {"mechanism": name, "epsilon": epsilon, "measure": measure}
            rows.append({**key, **three, **said})
    if not audits:
        raise _none(failed)
    shown = {row["mechanism"] for row in rows}
    for name, error in failed.items():
        if name not in shown:
            rows += _failed_rows(name, math.nan, error)
    stands = {each["mechanism"] for each in audits}
    notes += sentences(
        *("comparison", "of_mechanisms"),
        repetitions=settings["repetitions"],
        empty=[(*key, at) for key, at in empty.items()],
        lost=[(name, at) for name, at in lost.items() if name in stands],
        untrue=list(false.items()),
        warned=dict.fromkeys(
            f"{each['mechanism']}: {text.rstrip('.')}."
            for each in audits
            for text in each.get("warnings", ())
        ),
    )
    table = pd.DataFrame.from_records(rows)
    return MechanismComparison(
        table, failed, problem, settings, tuple(audits), tuple(notes)
    )


def _failed_rows(name: str, epsilon: float, error: Exception) -> list[Record]:
    nothing = dict.fromkeys(("median", "low", "high", "seconds"), math.nan)
    key = {"mechanism": name, "epsilon": epsilon}
    verdict = {"verdict": f"failed: {told(name, error)}"}
    return [{**key, "measure": each, **nothing, **verdict} for each in MEASURES]
