"""The experiments on online PCA, and on lower bounds as attacks."""

from dpaudit.reports.experiment import CONFIDENCE, DELTA, Experiment
from dpaudit.reports.measures import BASELINE, audited_privacy
from dpaudit.reports.profiles import Profile
from dpaudit.reports.regret import (
    ALGORITHM_3,
    ALGORITHM_4,
    CORRECTED_ONLINE,
    GAUSSIAN,
    LEADER,
    PUBLISHED_ONLINE,
    RIVALS,
    online_regret,
)
from dpaudit.reports.tracing import HARD, STRATEGIES, culled, traced

__all__ = ["lower_bounds_experiments"]

_EXPONENTS = (ALGORITHM_3, ALGORITHM_4)
# Algorithm 4 has many epochs then, and its exponents are those of long streams.
_RIVALS = {"stream": RIVALS, "tuned": True, "epsilon": 100.0}
# The false claim first: where not all are audited, it is.
ONLINE_AUDITS = (ALGORITHM_3, *CORRECTED_ONLINE, *PUBLISHED_ONLINE[:-1])


def lower_bounds_experiments(profile: Profile, seed: int) -> tuple[Experiment, ...]:
    """Return them, for a profile and the user's seed."""
    stream_lengths = tuple(map(float, profile.online_rows))
    return (
        Experiment(
            name="online-audits",
            title="Audits of online PCA",
            question="Which claims of online PCA do releases refute?",
            source="dpaudit",
            measure=audited_privacy,
            mechanisms=ONLINE_AUDITS[: profile.online_audits],
            grid={"epsilon": (1.0,)},
            seed=seed,
            options={
                "delta": DELTA,
                "confidence": CONFIDENCE,
                "max_samples": profile.online_samples,
            },
            effort=5.0,
        ),
        Experiment(
            name="online-regret",
            title="Regret of online PCA",
            question="What does it cost to follow a subspace privately?",
            source="Dwork, Talwar, Thakurta, Zhang, STOC 2014, section 4",
            measure=online_regret,
            mechanisms=(*PUBLISHED_ONLINE, *CORRECTED_ONLINE, LEADER),
            grid={"rows": stream_lengths},
            repetitions=profile.online_draws,
            seed=seed,
            options={
                "stream": GAUSSIAN,
                "dimension": 20,
                "n_components": 3,
                "epsilon": 1.0,
                "delta": 1e-6,
            },
            effort=3.0,
        ),
        Experiment(
            name="regret-optimum",
            title="Regret by OPT",
            question="How does regret grow with what there is to earn?",
            source="Dwork, Talwar, Thakurta, Zhang, STOC 2014, Theorems 14, 18",
            measure=online_regret,
            mechanisms=(*_EXPONENTS, LEADER),
            grid={"rows": stream_lengths},
            repetitions=profile.online_draws,
            seed=seed,
            options={
                **_RIVALS,
                "dimension": 16,
                "n_components": 1,
                "length": profile.online_rows[-1],
            },
            effort=1.0,
        ),
        Experiment(
            name="regret-length",
            title="Regret by the length of the stream",
            question="How does regret grow with m, if m is what is declared?",
            source="Dwork, Talwar, Thakurta, Zhang, STOC 2014, Theorems 14, 18",
            measure=online_regret,
            mechanisms=_EXPONENTS,
            grid={"rows": stream_lengths},
            repetitions=profile.online_draws,
            seed=seed,
            options={**_RIVALS, "dimension": 16, "n_components": 1},
            effort=1.0,
        ),
        Experiment(
            name="regret-dimensions",
            title="Regret by the length of rows",
            question="How does regret grow with d?",
            source="Dwork, Talwar, Thakurta, Zhang, STOC 2014, Theorems 14, 18",
            measure=online_regret,
            mechanisms=_EXPONENTS,
            grid={"dimension": (16.0, 32.0, 64.0)},
            repetitions=profile.online_draws,
            seed=seed,
            options={**_RIVALS, "rows": profile.online_size, "n_components": 1},
            effort=2.0,
        ),
        Experiment(
            name="regret-components",
            title="Regret by the number of components",
            question="How does regret grow with k?",
            source="Dwork, Talwar, Thakurta, Zhang, STOC 2014, Theorems 14, 18",
            measure=online_regret,
            mechanisms=_EXPONENTS,
            grid={"n_components": (1.0, 2.0, 4.0)},
            repetitions=profile.online_draws,
            seed=seed,
            options={**_RIVALS, "rows": profile.online_size, "dimension": 32},
            effort=2.0,
        ),
        Experiment(
            name="tracing-references",
            title="Tracing principal components",
            question="Are rows traced in components that owe nothing to privacy?",
            source="Dwork, Talwar, Thakurta, Zhang, STOC 2014, section 5",
            measure=traced,
            mechanisms=(BASELINE,),
            grid={"rows": tuple(map(float, profile.tracing_rows))},
            repetitions=profile.tracing_trials,
            seed=seed,
            options={**HARD, "length": profile.tracing_symbols},
            effort=2.0,
        ),
        Experiment(
            name="tracing",
            title="Tracing private components",
            question="Is what is useful on hard instances traced, and what is private?",
            source="Dwork, Talwar, Thakurta, Zhang, STOC 2014, Corollaries 25, 32",
            measure=traced,
            mechanisms=profile.tracing_mechanisms,
            grid={
                "epsilon": (1.0, 3000.0),
                "rows": tuple(map(float, profile.tracing_rows)),
            },
            repetitions=profile.tracing_trials,
            seed=seed,
            options={**HARD, "length": profile.tracing_symbols},
            effort=5.0,
        ),
        Experiment(
            name="list-culling",
            title="List culling",
            question="Does it help to ignore half of what one knows?",
            source="Dwork, Talwar, Thakurta, Zhang, STOC 2014, Theorem 26",
            measure=culled,
            mechanisms=STRATEGIES,
            grid={"length": (500.0, 1000.0, 2000.0, 5000.0, 10_000.0, 20_000.0)},
            seed=seed,
            options={"closeness": 0.04, "erased": 0.02, "rate": 0.004, "games": 10_000},
            effort=0.1,
        ),
    )
