"""What a comparison has to do: the jobs of every mechanism at every epsilon.

A job's name says all that its record depends on: what is done, with which mechanism (of
the user's own, a digest of its code and of a few releases), at which epsilon, on which
rows. So a store does not return for one what was found for another.
"""

import hashlib
import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from dpaudit.algorithms import CATALOGUE, entry, names_of
from dpaudit.audit.keeping.description import describe
from dpaudit.codec import load_reference
from dpaudit.errors import DPAuditError, InputError
from dpaudit.mechanism import HasWorstCase
from dpaudit.printable import said
from dpaudit.reports.comparison import measures
from dpaudit.reports.comparison.contenders import Contender, Setting, blamed
from dpaudit.reports.experiment import Record
from dpaudit.reports.runner import Job
from dpaudit.reports.sections.libraries.audits import library_versions

__all__ = ["Point", "points"]


@dataclass(frozen=True)
class Point:
    """A mechanism at one epsilon, and the jobs that are carried out for it.

    Parameters
    ----------
    contender : Contender
    epsilon : float
    jobs : mapping of str to Job
        ``measured``, ``timed`` and ``audited``, as the functions of that name in
        `dpaudit.reports.comparison.measures`.
    told_apart : bool
        Whether the same seed gives the same releases, so that a store can tell its
        code from other code.
    """

    contender: Contender
    epsilon: float
    jobs: Mapping[str, Job]
    told_apart: bool


def points(
    mechanisms: Sequence[str],
    own: Mapping[str, Any],
    problem: measures.Problem,
    epsilons: tuple[float, ...],
    settings: Mapping[str, Any],
    notes: list[str],
    *,
    stored: bool,
    executor: Executor | None,
) -> tuple[list[Point], dict[str, Exception]]:
    """Return the points of all mechanisms, and why some have none; add to the notes."""
    names = list(dict.fromkeys(mechanisms))
    if all(":" in name for name in names):
        names += suitable(problem.setting)
    digest = problem.digest()
    points: list[Point] = []
    failed: dict[str, Exception] = {}
    for name in [*own, *(each for each in names if each not in own)]:
        try:
            subject = own.get(name)
            if subject is None and ":" in name:
                subject = load_reference(name)
            elif subject is None:
                _check_known(name)
            contender = Contender(name, problem.setting, subject)
            with nullcontext() if subject is None else blamed(name):
                wanted = contender.points(epsilons)
                built = contender.build(wanted[0])
            # The worst pair that the catalogue names does not depend on the rows.
            named = subject is None and isinstance(built.mechanism, HasWorstCase)
            audit = repr(problem.setting) if named else digest
            identities: dict[float, str | None] = dict.fromkeys(wanted, "")
            if stored:
                seed = settings["seed"]
                identities = {e: _identity(problem, contender, e, seed) for e in wanted}
            if None in identities.values():
                notes.append(
                    f"{name} is compared anew each time: the same seed does not give "
                    "the same releases."
                )
            if executor is not None:
                _check_sendable(contender)
        except DPAuditError as error:
            failed[name] = error
            continue
        points += [
            Point(
                contender,
                epsilon,
                _jobs(
                    problem,
                    contender,
                    epsilon,
                    settings,
                    what=[identities[epsilon], settings["seed"]],
                    about={"measured": digest, "timed": digest, "audited": audit},
                ),
                told_apart=identities[epsilon] is not None,
            )
            for epsilon in wanted
        ]
    return points, failed


def _check_known(name: str) -> None:
    try:
        entry(name)
    except InputError as error:  # which lists the whole catalogue
        raise InputError(f"{str(error).partition(' (known')[0]}") from None


def _identity(
    problem: measures.Problem, contender: Contender, epsilon: float, seed: int
) -> str | None:
    """Return what tells code that is not dpaudit's from other; None if nothing does."""
    if contender.own is None:
        return json.dumps(library_versions(entry(contender.name).extra))
    first, again = (measures.shown(problem, contender, epsilon, seed) for _ in range(2))
    if first != again:
        return None
    return hashlib.sha256(describe(contender.own).encode() + first).hexdigest()


def _check_sendable(contender: Contender) -> None:
    try:
        pickle.dumps(contender)
    except Exception as error:
        raise InputError(
            f"{contender.name} cannot be sent to another process ({said(error)}): "
            "define it at the top level of a module, or use one worker"
        ) from error


def _jobs(
    problem: measures.Problem,
    contender: Contender,
    epsilon: float,
    settings: Mapping[str, Any],
    *,
    what: list[Any],
    about: Mapping[str, str],
) -> dict[str, Job]:
    seed = settings["seed"]
    how: dict[str, tuple[Callable[..., Record], dict[str, int], float]] = {
        "measured": (measures.measured, {"repetitions": settings["repetitions"]}, 1.0),
        "timed": (measures.timed, {}, 0.2),
        "audited": (measures.audited, {"samples": settings["samples"]}, 3.0),
    }
    what = ["compare", contender.name, epsilon, *what]
    return {
        kind: Job(
            name=json.dumps([*what, kind, about[kind], size]),
            seed=seed,
            work=partial(work, problem, contender, epsilon, seed=seed, **size),
            label=contender.name,
            effort=effort,
            alone=kind == "timed",
        )
        for kind, (work, size, effort) in how.items()
    }


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
