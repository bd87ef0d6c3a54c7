"""The section on online PCA: what is measured, and how it is shown."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from dpaudit.reports.experiment import CONFIDENCE, DELTA, Experiment
from dpaudit.reports.measures import audited_privacy
from dpaudit.reports.sections import Notes, Part, Results, Section
from dpaudit.reports.sections.online.figures import regret_by_length, regret_by_optimum
from dpaudit.reports.sections.online.findings import (
    exponents,
    online_notes,
    online_rows,
    score_notes,
    score_rows,
)
from dpaudit.reports.sections.online.measures import (
    ALGORITHM_3,
    ALGORITHM_4,
    CORRECTED_ONLINE,
    GAUSSIAN,
    LEADER,
    PUBLISHED_ONLINE,
    RIVALS,
    online_regret,
)
from dpaudit.reports.tables import refuted_mechanisms, standing_mechanisms

__all__ = ["ONLINE_AUDITS", "SECTION", "Size"]

_PAPER = "Dwork, Talwar, Thakurta, Zhang, STOC 2014"
_EXPONENTS = (ALGORITHM_3, ALGORITHM_4)
# Algorithm 4 has many epochs then, and its exponents are those of long streams.
_RIVALS = {"stream": RIVALS, "tuned": True, "epsilon": 100.0}
# The false claim first: where not all are audited, it is.
ONLINE_AUDITS = (ALGORITHM_3, *CORRECTED_ONLINE, *PUBLISHED_ONLINE[:-1])


@dataclass(frozen=True)
class Size:
    """How much of everything.

    Parameters
    ----------
    online_draws : int
        Releases on each stream.
    online_rows : tuple of int
        The lengths of these streams, ascending, three or more.
    online_size : int
        The length where d and k change, and not m.
    online_audits : int
        How many mechanisms are audited; the one whose claim is false is the first.
    online_samples : int
        Most releases a side in those audits.
    """

    online_draws: int
    online_rows: tuple[int, ...]
    online_size: int
    online_audits: int
    online_samples: int


def _experiments(size: Size, seed: int) -> tuple[Experiment, ...]:
    lengths = tuple(map(float, size.online_rows))
    experiment = partial(
        Experiment, measure=online_regret, repetitions=size.online_draws, seed=seed
    )
    rivals = partial(
        experiment, source=f"{_PAPER}, Theorems 14, 18", mechanisms=_EXPONENTS
    )
    return (
        Experiment(
            name="online-audits",
            title="Audits of online PCA",
            question="Which claims of online PCA do releases refute?",
            source="dpaudit",
            measure=audited_privacy,
            mechanisms=ONLINE_AUDITS[: size.online_audits],
            grid={"epsilon": (1.0,)},
            seed=seed,
            options={
                "delta": DELTA,
                "confidence": CONFIDENCE,
                "max_samples": size.online_samples,
            },
            effort=5.0,
        ),
        experiment(
            name="online-regret",
            title="Regret of online PCA",
            question="What does it cost to follow a subspace privately?",
            source=f"{_PAPER}, section 4",
            mechanisms=(*PUBLISHED_ONLINE, *CORRECTED_ONLINE, LEADER),
            grid={"rows": lengths},
            options={
                "stream": GAUSSIAN,
                "dimension": 20,
                "n_components": 3,
                "epsilon": 1.0,
                "delta": 1e-6,
            },
            effort=3.0,
        ),
        rivals(
            name="regret-optimum",
            title="Regret by OPT",
            question="How does regret grow with what there is to earn?",
            mechanisms=(*_EXPONENTS, LEADER),
            grid={"rows": lengths},
            options={
                **_RIVALS,
                "dimension": 16,
                "n_components": 1,
                "length": size.online_rows[-1],
            },
        ),
        rivals(
            name="regret-length",
            title="Regret by the length of the stream",
            question="How does regret grow with m, if m is what is declared?",
            grid={"rows": lengths},
            options={**_RIVALS, "dimension": 16, "n_components": 1},
        ),
        rivals(
            name="regret-dimensions",
            title="Regret by the length of rows",
            question="How does regret grow with d?",
            grid={"dimension": (16.0, 32.0, 64.0)},
            options={**_RIVALS, "rows": size.online_size, "n_components": 1},
            effort=2.0,
        ),
        rivals(
            name="regret-components",
            title="Regret by the number of components",
            question="How does regret grow with k?",
            grid={"n_components": (1.0, 2.0, 4.0)},
            options={**_RIVALS, "rows": size.online_size, "dimension": 32},
            effort=2.0,
        ),
    )


def _context(results: Results) -> dict[str, Any]:
    regrets, optimum = results["online-regret"], results["regret-optimum"]
    scores = exponents(results)
    return {
        "rows": online_rows(regrets, results["online-audits"]),
        "notes": online_notes(regrets),
        "scores": score_rows(scores),
        "score_notes": score_notes(scores, optimum),
        "most": int(regrets["rows"].max()),
        "setting": results.options("online-regret"),
        "audits": results.options("online-audits"),
        "optimum": results.options("regret-optimum"),
        "dimensions": results.options("regret-dimensions"),
        "components": results.options("regret-components"),
    }


def _by_length(found: Results, narrow: bool) -> str:
    audits = found["online-audits"]
    return regret_by_length(
        found["online-regret"],
        refuted=refuted_mechanisms(audits),
        standing=standing_mechanisms(audits),
        narrow=narrow,
    )


SECTION = Section(
    name="online",
    parts=(Part("online", "Online PCA", 500),),
    context=_context,
    figures={
        "online-regret": _by_length,
        "regret-optimum": lambda found, narrow: regret_by_optimum(
            found["regret-optimum"], narrow=narrow
        ),
    },
    sizes={
        "quick": Size(
            online_draws=3,
            online_rows=(200, 400, 800, 1600),
            online_size=400,
            online_audits=1,
            online_samples=2_000,
        ),
        "standard": Size(
            online_draws=6,
            online_rows=(1000, 2000, 4000, 8000, 16_000),
            online_size=8000,
            online_audits=6,
            online_samples=5_000,
        ),
        "paper": Size(
            online_draws=20,
            online_rows=(2000, 4000, 8000, 16_000, 32_000, 64_000),
            online_size=16_000,
            online_audits=6,
            online_samples=20_000,
        ),
    },
    experiments=_experiments,
    notes=(
        Notes(("online-regret",), lambda found: online_notes(found["online-regret"])),
    ),
)
