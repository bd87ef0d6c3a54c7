"""The section on online PCA: what is measured, and how it is shown."""

from functools import partial
from typing import Any

from dpaudit.reports.experiment import Experiment
from dpaudit.reports.measures import audit_experiment
from dpaudit.reports.sections import Part, Results, Section, Size, sizes
from dpaudit.reports.sections.online import figures, findings, measures
from dpaudit.reports.tables import refuted_mechanisms, standing_mechanisms

__all__ = ["ONLINE_AUDITS", "SECTION"]

_PAPER = "Dwork, Talwar, Thakurta, Zhang, STOC 2014"
_EXPONENTS = (measures.ALGORITHM_3, measures.ALGORITHM_4)
_LENGTHS = (1000, 2000, 4000, 8000, 16_000, 32_000, 64_000)
# Algorithm 4 has many epochs then, and its exponents are those of long streams.
_RIVALS = {"stream": measures.RIVALS, "tuned": True, "epsilon": 100.0}
# The false claim first: where not all are audited, it is.
ONLINE_AUDITS = (
    measures.ALGORITHM_3,
    *measures.CORRECTED_ONLINE,
    *measures.PUBLISHED_ONLINE[:-1],
)


def _experiments(size: Size) -> tuple[Experiment, ...]:
    lengths = tuple(map(float, size.online_rows))
    experiment = partial(
        Experiment,
        measure=measures.online_regret,
        repetitions=size.online_draws,
    )
    rivals = partial(
        experiment, source=f"{_PAPER}, Theorems 14, 18", mechanisms=_EXPONENTS
    )
    return (
        audit_experiment(
            ONLINE_AUDITS[: size.online_audits],
            size.online_samples,
            name="online-audits",
            title="Audits of online PCA",
            question="Which claims of online PCA do releases refute?",
            effort=5.0,
        ),
        experiment(
            name="online-regret",
            title="Regret of online PCA",
            question="What does it cost to follow a subspace privately?",
            source=f"{_PAPER}, section 4",
            mechanisms=(
                *measures.PUBLISHED_ONLINE,
                *measures.CORRECTED_ONLINE,
                measures.LEADER,
            ),
            grid={"rows": lengths},
            options={
                "stream": measures.GAUSSIAN,
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
            mechanisms=(*_EXPONENTS, measures.LEADER),
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
    scores = findings.exponents(results)
    return {
        "rows": findings.online_rows(regrets, results["online-audits"]),
        "notes": findings.online_notes(regrets),
        "scores": findings.score_rows(scores),
        "score_notes": findings.score_notes(scores, optimum),
        "most": int(regrets["rows"].max()),
        "setting": results.options("online-regret"),
        "audits": results.options("online-audits"),
        "optimum": results.options("regret-optimum"),
        "dimensions": results.options("regret-dimensions"),
        "components": results.options("regret-components"),
    }


def _by_length(found: Results, narrow: bool) -> str:
    audits = found["online-audits"]
    return figures.regret_by_length(
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
        "regret-optimum": lambda found, narrow: figures.regret_by_optimum(
            found["regret-optimum"], narrow=narrow
        ),
    },
    sizes=sizes(
        online_draws=(3, 6, 20),  # releases on each stream
        # The lengths of streams, ascending, three or more.
        online_rows=((200, 400, 800, 1600), _LENGTHS[:5], _LENGTHS[1:]),
        online_size=(400, 8000, 16_000),  # the length where d and k change, and not m
        # Audited mechanisms; the one whose claim is false is the first.
        online_audits=(1, 6, 6),
        online_samples=(2_000, 5_000, 20_000),  # releases a side of an audit
    ),
    experiments=_experiments,
    notes={("online-regret",): findings.online_notes},
)
