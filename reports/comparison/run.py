"""Mechanisms for private PCA side by side on somebody's rows: what they keep, and cost.

What is measured is in `dpaudit.reports.comparison.measures`. None of it is private. To
choose a mechanism by it is a release of its own, which no claim counts (`WARNING`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dpaudit.errors import DPAuditError, InputError
from dpaudit.neighbours import Relation
from dpaudit.printable import said
from dpaudit.reports.comparison import measures
from dpaudit.reports.comparison.plan import Point, points
from dpaudit.reports.experiment import CONFIDENCE, Record
from dpaudit.reports.runner import Failure, Progress, carry_out
from dpaudit.reports.store import STORE, WorkStore
from dpaudit.reports.words import listed, percent, setting
from dpaudit.subspace import second_moment, top_components
from dpaudit.validation import check_count, check_positive

__all__ = ["WARNING", "Comparison", "compare", "compared", "told"]

WARNING = (
    "These measures are computed from the rows without noise. Choosing a mechanism (or "
    "a norm, or a number of components) by its result on private rows is itself a "
    "release about them, which no claim here counts. Compare on public rows, or on "
    "synthetic ones of the same shape (dpaudit.datasets), and run the chosen mechanism "
    "once on the private ones."
)


def told(name: str, error: Exception) -> str:
    """Return why a mechanism failed, to be read after its name."""
    text = str(error) if isinstance(error, DPAuditError) else said(error)
    return text.removeprefix(f"{name} ")


@dataclass(frozen=True, eq=False)
class Comparison:
    """What was found.

    Parameters
    ----------
    table : pandas.DataFrame
        See `compare`.
    failed : mapping of str to Exception
        Why a mechanism could not be compared, by its name.
    problem : Problem
    settings : mapping of str to object
        ``repetitions``, ``samples``, ``confidence``, ``seed``, ``epsilons``,
        ``mechanisms`` and ``own`` (by name) as asked for; ``public``, whether the rows
        are.
    audits : tuple of dict
        Every audit: ``mechanism``, ``epsilon``, and what `audited` returns.
    notes : tuple of str
        What else to know, a sentence each.
    """

    table: pd.DataFrame
    failed: Mapping[str, Exception]
    problem: measures.Problem
    settings: Mapping[str, Any]
    audits: tuple[Record, ...] = ()
    notes: tuple[str, ...] = ()


def compare(
    mechanisms: Sequence[str] = (),
    *,
    output: Path | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Compare mechanisms for private PCA on rows.

    Parameters
    ----------
    mechanisms : sequence of str
        Names of the catalogue and ``module:object`` of your own
        (`dpaudit.reports.comparison.contenders`). Without a name of the catalogue,
        those stand beside yours that are `suitable`.
    output : Path, optional
        A folder for the page, ``index.html``, with ``compare.csv``, the figures and the
        witnesses.
    **options
        Of `compared`.

    Returns
    -------
    pandas.DataFrame
        ``mechanism``, ``epsilon``, ``measure`` (one of `MEASURES`), ``median``,
        ``low``, ``high`` (the quartiles over releases), ``seconds`` (the median time of
        a release with its components), ``verdict``: ``REFUTED``, ``NOT_REFUTED``,
        ``NO_VERDICT``, ``not audited: ...`` with the reason; ``failed: ...`` with NaN
        where the mechanism could not be compared.

    Raises
    ------
    InputError
        If an argument is not allowed, or no mechanism could be compared.

    Examples
    --------
    >>> from dpaudit.reports import compare
    >>> table = compare(
    ...     ["goe-gaussian"], epsilons=[1.0], repetitions=3, samples=20
    ... )
    >>> table[["mechanism", "measure", "verdict"]].iloc[0].tolist()
    ['goe-gaussian', 'captured_variance', 'NOT_REFUTED']
    """
    found = compared(mechanisms, output=output, **options)
    return found.table


def compared(
    mechanisms: Sequence[str] = (),
    *,
    own: Mapping[str, Any] | None = None,
    data: ArrayLike | None = None,
    source: str = "data",
    row_norm: float | None = None,
    n_components: int | None = None,
    epsilons: Sequence[float] = (0.5, 1.0, 2.0),
    delta: float = 1e-5,
    relation: Relation | str = Relation.ADD_REMOVE,
    repetitions: int = 50,
    samples: int = 1000,
    seed: int = 0,
    output: Path | None = None,
    store: Path | None = None,
    executor: Executor | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Comparison:
    """Do what `compare` does, and return all that was found.

    Parameters
    ----------
    mechanisms : sequence of str
    own : mapping of str to object, optional
        Further mechanisms of your own, by the names that they are to have.
    data : array_like, shape (n, d), optional
        By default scikit-learn's digits, which are public.
    source : str
        What to call the data.
    row_norm : float, optional
        Public bound on the length of a row: longer ones are scaled down. By default 1,
        and 64 for the digits.
    n_components : int, optional
        k; by default half of the columns, and 10 at most.
    epsilons : sequence of float
    delta : float
        In [0, 1).
    relation : Relation or str
    repetitions : int
        Releases behind every median.
    samples : int
        Most releases a side of each audit, >= 2.
    seed : int
        >= 0. The same seed gives the same results, but for the times.
    output : Path, optional
    store : Path, optional
        Where finished work is kept and found again; by default ``work.db`` in `output`.
    executor : concurrent.futures.Executor, optional
        Where to work; no result depends on it.
    progress : callable, optional
        Called with how far the work is.

    Raises
    ------
    InputError
        As `compare`.
    """
    problem = measures.problem_of(data, source, row_norm, n_components, delta, relation)
    asked = epsilon_list(epsilons)
    settings: dict[str, Any] = {
        "repetitions": check_count("repetitions", repetitions),
        "samples": check_count("samples", samples, minimum=2),
        "confidence": CONFIDENCE,
        "seed": check_count("seed", seed, minimum=0),
        "public": data is None,
        "mechanisms": list(mechanisms),
        "own": list(own or {}),
        "epsilons": list(asked),
    }
    kept = None
    if output is not None or store is not None:
        kept = WorkStore(store or Path(output or "") / STORE)
    if output is not None:
        from dpaudit.reports.comparison.page import check_folder

        check_folder(Path(output))
    if kept is not None:
        kept.prepare()
    notes = _notes(problem)
    work, failed = points(
        mechanisms,
        own or {},
        problem,
        asked,
        settings,
        notes,
        stored=kept is not None,
        executor=executor,
    )
    found: dict[str, Any] = {}
    for where in dict.fromkeys((kept, None)):
        jobs = [
            job
            for each in work
            for job in each.jobs.values()
            if (kept if each.told_apart else None) is where
        ]
        found |= carry_out(
            jobs, store=where, executor=executor, progress=progress, go_on=True
        )
    result = _comparison(work, found, failed, problem, settings, notes)
    if output is not None:
        from dpaudit.reports.comparison.page import write_page

        write_page(result, Path(output))
    return result


def epsilon_list(epsilons: Sequence[float]) -> tuple[float, ...]:
    """Return epsilons in ascending order, each once.

    Raises
    ------
    InputError
        If there is none, or one is not a finite number > 0.

    Examples
    --------
    >>> epsilon_list([2, 0.5, 2])
    (0.5, 2.0)
    """
    if not len(epsilons):
        raise InputError("epsilon must be one number or more, got none")
    return tuple(sorted({check_positive("epsilon", each) for each in epsilons}))


def _notes(problem: measures.Problem) -> list[str]:
    """Return what is to be known of the rows, a sentence each."""
    notes, norm = [], problem.setting.row_norm
    if problem.scaled:
        k = problem.setting.n_components
        basis = top_components(second_moment(problem.rows), k)
        left = problem.measure(basis[np.newaxis])["captured_variance"][0]
        verb = "was" if problem.scaled == 1 else "were"
        notes.append(
            f"{problem.scaled:,} of {len(problem.rows):,} rows {verb} longer than the "
            f"row norm, {setting(norm)}, and {verb} scaled down to it; without noise, "
            f"PCA of the rows so scaled keeps {percent(left)}."
        )
    values = np.linalg.eigvalsh(problem.moment)[::-1]
    k = problem.setting.n_components
    if k == len(values):
        notes.append(
            "There are as many components as columns: whatever is released keeps all."
        )
    elif values[k - 1] - values[k] <= measures.EXACT * values[0]:
        notes.append(
            f"The {k} components of PCA without noise are not unique, for there is no "
            "gap after them: angles to them mean little."
        )
    return notes


def _comparison(
    work: Sequence[Point],
    found: Mapping[str, Any],
    failed: dict[str, Exception],
    problem: measures.Problem,
    settings: Mapping[str, Any],
    notes: list[str],
) -> Comparison:
    rows: list[Record] = []
    audits: list[Record] = []
    empty: dict[tuple[str, int], list[float]] = {}
    lost: dict[str, list[float]] = {}
    for point in work:
        name, epsilon = point.contender.name, point.epsilon
        record = {kind: found[job.name] for kind, job in point.jobs.items()}
        errors = [each.error for each in record.values() if isinstance(each, Failure)]
        if errors:
            failed.setdefault(name, errors[0])
            lost.setdefault(name, []).append(epsilon)
            rows += _failed_rows(name, epsilon, errors[0])
            continue
        if record["measured"]["empty"]:
            empty.setdefault((name, record["measured"]["empty"]), []).append(epsilon)
        audits.append({"mechanism": name, "epsilon": epsilon, **record["audited"]})
        for measure in measures.MEASURES:
            values = np.array(record["measured"][measure])
            low, median, high = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
            rows.append(
                {
                    "mechanism": name,
                    "epsilon": epsilon,
                    "measure": measure,
                    "median": median,
                    "low": low,
                    "high": high,
                    "seconds": float(np.median(record["timed"]["seconds"])),
                    "verdict": record["audited"]["verdict"],
                }
            )
    false: dict[str, list[float]] = {}
    for each in audits:
        if each.get("exact") == "false":
            false.setdefault(each["mechanism"], []).append(each["epsilon"])
    warned = dict.fromkeys(
        f"{each['mechanism']}: {text.rstrip('.')}"
        for each in audits
        for text in each.get("warnings", ())
    )
    shown = {row["mechanism"] for row in rows}
    for name, error in failed.items():
        if name not in shown:
            rows += _failed_rows(name, math.nan, error)
    if not audits:
        raise InputError(
            "no mechanism could be compared: "
            + "; ".join(str(error) for error in failed.values())
        )
    table = pd.DataFrame.from_records(rows)
    notes += [
        f"{name} said in {count:,} of {settings['repetitions']:,} releases at "
        f"{_at(epsilons)} that there are no components: they capture nothing."
        for (name, count), epsilons in empty.items()
    ]
    stands = {each["mechanism"] for each in audits}
    notes += [
        f"{name} failed at {_at(epsilons)} only; its other points stand."
        for name, epsilons in lost.items()
        if name in stands
    ]
    notes += [
        f"The claim of {name} is false at {_at(epsilons)}, whatever the audit saw: the "
        "exact loss on its worst pair is larger."
        for name, epsilons in false.items()
    ]
    notes += [f"{each}." for each in warned]
    return Comparison(table, failed, problem, settings, tuple(audits), tuple(notes))


def _at(epsilons: Sequence[float]) -> str:
    return f"ε = {listed(map(setting, epsilons))}"


def _failed_rows(name: str, epsilon: float, error: Exception) -> list[Record]:
    nothing = dict.fromkeys(("median", "low", "high", "seconds"), math.nan)
    key = {"mechanism": name, "epsilon": epsilon}
    verdict = {"verdict": f"failed: {told(name, error)}"}
    return [
        {**key, "measure": each, **nothing, **verdict} for each in measures.MEASURES
    ]
