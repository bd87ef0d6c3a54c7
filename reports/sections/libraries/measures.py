"""The PCA of other libraries on the same rows: who captures what, in which time.

`dpaudit.PrivatePCA` and the PCA of diffprivlib and OpenDP fit the same rows, at the
same epsilon and for the same neighbours: replaced rows, for which the others make their
claim. What the components capture, the processor time of a fit (which depends little on
what else the machine is doing) and the versions are written to ``comparison.json``,
from where the report shows them: the comparison is made in an environment of its own
(``make third-party``).

The sampler behind the eigenvectors of both other libraries rejects so many candidates
that in more than a few dimensions one that it accepts does not come in time
(`dpaudit.algorithms.third_party.diffprivlib`). So a fit has a time limit, and runs in a
process of its own, which is killed at the limit.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from os import _exit
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from dpaudit import __version__
from dpaudit.algorithms import entry
from dpaudit.algorithms.estimators.private_pca import PrivatePCA
from dpaudit.algorithms.third_party.base import MissingLibraryError, library_versions
from dpaudit.arrays import Array
from dpaudit.errors import ExecutorError
from dpaudit.neighbours import Relation
from dpaudit.reports.sections.utility.measures import geometric_spectrum
from dpaudit.reports.store import load_json, save_json
from dpaudit.subspace import captured_variance_share
from dpaudit.validation import check_count, check_positive

__all__ = ["compare", "installed"]

FILE = "comparison.json"
"""The name of the file, beside the results of the audits of other libraries."""

EPSILON = 1.0
RELATION = Relation.REPLACE_ONE
SETTINGS = ((6, 2), (54, 10))
"""Dimensions and numbers of components: what all can do, and the report's own."""

_START_S = 120.0  # for a process to import everything on a busy machine


@dataclass(frozen=True)
class LibraryComparison:
    """Fits of several libraries to the same rows."""

    versions: dict[str, str]  # of the libraries, dpaudit among them
    epsilon: float  # what everybody claims, ...
    relation: str  # ... and for which neighbours
    n_rows: int
    repetitions: int  # fits of everybody in every setting
    limit_s: float  # for one fit, in seconds by the clock
    # one for each fit: contender, centre, delta, dimension, n_components,
    # captured_share and fit_seconds, its processor time. The last two are None where no
    # fit ended in time.
    records: list[dict[str, Any]]

    @property
    def settings(self) -> list[tuple[int, int]]:
        """Dimensions and numbers of components in which libraries are compared."""
        every = ((each["dimension"], each["n_components"]) for each in self.records)
        return list(dict.fromkeys(every))

    def save(self, folder: Path) -> Path:
        """Write the file into a folder, created if need be, and return its path.

        Raises `InputError` if it cannot be written.
        """
        path = folder / FILE
        save_json(path, asdict(self))
        return path


def load_comparison(folder: Path) -> LibraryComparison | None:
    """Return the comparison that a folder holds, None if there is none.

    Raises `InputError` if the file there is something else.
    """

    def parse(found: dict[str, Any]) -> LibraryComparison:
        names = [each.name for each in fields(LibraryComparison)]
        return LibraryComparison(**{name: found[name] for name in names})

    return load_json(folder / FILE, parse, "make third-party")


@dataclass(frozen=True)
class LibraryFit:
    """One way to fit principal components, of rows that are clipped to length 1."""

    name: str
    centre: str  # what the second moment is about
    delta: float
    # from rows (n, d), the number of components k and a generator to a basis (d, k)
    fit: Callable[[Array, int, np.random.Generator], Array]
    extra: str | None = None  # the library that it needs, if any


def _ours(
    rows: Array, k: int, rng: np.random.Generator, *, delta: float, center: Any
) -> Array:
    budget: dict[str, Any] = {"epsilon": EPSILON, "delta": delta, "relation": RELATION}
    model = PrivatePCA(k, center=center, random_state=rng, **budget)
    return np.asarray(model.fit(rows).components_.T)


def _theirs(rows: Array, k: int, rng: np.random.Generator, *, name: str) -> Array:
    mechanism: Any = entry(name).build(epsilon=EPSILON, n_components=k)
    return np.asarray(mechanism.components(mechanism.release(rows, rng=rng), k))


def _contenders() -> Iterator[LibraryFit]:
    known, private = "known centre", "private mean"
    for centre, center, delta in (
        (known, False, 0.0),
        (known, False, 1e-5),
        (private, "private", 0.0),
    ):
        fit = partial(_ours, delta=delta, center=center)
        yield LibraryFit("dpaudit PrivatePCA", centre, delta, fit)
    for name, centre, mechanism in (
        ("diffprivlib PCA", known, "diffprivlib-pca"),
        ("OpenDP make_private_pca", known, "opendp-pca-centred"),
        ("OpenDP PCA", private, "opendp-pca"),
    ):
        fit = partial(_theirs, name=mechanism)
        yield LibraryFit(name, centre, 0.0, fit, entry(mechanism).extra)


CONTENDERS = tuple(_contenders())
"""Who is compared, in the order of the table."""


def compare(
    contenders: Sequence[LibraryFit] = CONTENDERS,
    *,
    repetitions: int = 20,
    limit_s: float = 60.0,
    seed: int = 0,
    settings: Sequence[tuple[int, int]] = SETTINGS,
    progress: Callable[[str], None] = lambda line: None,
) -> LibraryComparison:
    """Let every contender fit, one after the other.

    ``repetitions``: fits of each contender in each setting, after one that is not
    counted. ``limit_s``: seconds by the clock for one fit; at the first that takes
    longer, a contender stops. ``seed``: of the noise, where a library takes a
    generator. ``settings``: dimensions with numbers of components. ``progress``: called
    with a line for each contender in each setting.

    Raises `MissingLibraryError` if a library is not installed; `ExecutorError` if a fit
    fails.
    """
    repetitions = check_count("repetitions", repetitions)
    limit_s = check_positive("limit_s", limit_s)
    seed = check_count("seed", seed, minimum=0)
    versions = {"dpaudit": __version__}
    for contender in contenders:
        versions |= library_versions(contender.extra)
    records: list[dict[str, Any]] = []
    for contender in contenders:
        for dimension, k in settings:
            work = partial(_fit_and_tell, contender, dimension, k, repetitions, seed)
            who = f"{contender.name} in {dimension} dimensions"
            fits = list(_fits(work, who, repetitions, limit_s))
            progress(f"{contender.name}, d = {dimension}: {len(fits)} fits")
            records += [
                {
                    "contender": contender.name,
                    "centre": contender.centre,
                    "delta": contender.delta,
                    "dimension": dimension,
                    "n_components": k,
                    "captured_share": share,
                    "fit_seconds": seconds,
                }
                for share, seconds in fits or [(None, None)]  # type: ignore[list-item]
            ]
    n_rows = len(geometric_spectrum(settings[0][0]).rows)
    return LibraryComparison(
        versions, EPSILON, RELATION.value, n_rows, repetitions, limit_s, records
    )


def _fits(
    work: Callable[[Connection], None], who: str, repetitions: int, limit_s: float
) -> Iterator[tuple[float, float]]:
    """Yield captured share and processor time of every fit that ends in time."""
    context = get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(there,), daemon=True)
    process.start()
    there.close()
    try:
        if not here.poll(_START_S):
            raise ExecutorError(f"{who} did not start in {_START_S:g} s")
        here.recv()
        # The first fit is a warm-up: lazy imports and page faults are not compared.
        for counted in (False, *[True] * repetitions):
            if not here.poll(limit_s):
                return
            told = here.recv()
            if counted:
                yield told
    except EOFError:
        raise ExecutorError(f"a fit of {who} failed: see above") from None
    finally:
        process.kill()
        process.join()


def _fit_and_tell(
    contender: LibraryFit,
    dimension: int,
    k: int,
    repetitions: int,
    seed: int,
    there: Connection,
) -> None:
    """Fit as often as wanted; runs in a process of its own."""
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    problem = geometric_spectrum(dimension)
    rng = np.random.default_rng(seed)
    there.send("ready")
    with threadpool_limits(limits=1):
        for _ in range(1 + repetitions):
            started = time.process_time()
            basis = contender.fit(problem.rows, k, rng)
            seconds = time.process_time() - started
            there.send((float(captured_variance_share(basis, problem.moment)), seconds))


def _end_with_the_parent() -> None:
    """End a fit whose result is not awaited any more: it may take for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        _exit(1)


def installed() -> tuple[list[LibraryFit], list[str]]:
    """Return those whose library is there, and a sentence on each of the others."""
    here, gone = [], []
    for contender in CONTENDERS:
        try:
            library_versions(contender.extra)
        except MissingLibraryError as error:
            gone.append(f"{contender.name} is left out: {error}")
        else:
            here.append(contender)
    return here, gone
