"""Experiments as declarations.

An experiment says what is asked, of which mechanisms, over which grid, how often and
with which measure; `dpaudit.reports.runner` carries it out. Adding one takes one
function here and one measure, where none fits.
"""

import numpy as np

from dpaudit.algorithms import names_of
from dpaudit.reports.experiment import CONFIDENCE, DELTA, Experiment
from dpaudit.reports.lower_bounds_plan import lower_bounds_experiments
from dpaudit.reports.measures import (
    BASELINE,
    FIRST_COMPONENT,
    RANDOM_SUBSPACE,
    audited_privacy,
    audited_suite,
    captured_variance,
    exact_privacy,
    reference_variance,
    run_time,
)
from dpaudit.reports.problems import SYNTHETIC
from dpaudit.reports.profiles import PROFILES, Profile, profile_named
from dpaudit.reports.rates import DP_PCA, MINIBATCH_OJA, streaming_errors
from dpaudit.reports.robust_plan import robust_experiments
from dpaudit.validation import check_count

__all__ = ["PROFILES", "Experiment", "Profile", "plan", "profile_named"]


# Digits are 64 pixels of 0 to 16, so no row is longer than 8 * 16 = 128. Half of that,
# the length at a root-mean-square ink of half the scale, follows from the format too.
_DATA = {"dataset": "digits", "row_norm": 64.0, "n_components": 10, "delta": DELTA}
# What draws one component only, or takes for ever to draw ten.
_FEW_COMPONENTS = frozenset({"exponential-pca", "exponential-pca-acg"})
# Where privacy costs nothing, and what is left is the sampling of the rows.
_WITHOUT_NOISE = 1000.0
_SYNTHETIC = {**_DATA, "dataset": SYNTHETIC, "row_norm": 1.0}
_STREAM = {"epsilon": 1.0, "delta": 1e-6}


def plan(profile: Profile, seed: int) -> tuple[Experiment, ...]:
    """Return the experiments of the report.

    Parameters
    ----------
    profile : Profile
    seed : int
        >= 0; every random number of the report derives from it.

    Examples
    --------
    >>> [experiment.name for experiment in plan(PROFILES["quick"], seed=0)]
    ['privacy-wall', 'exact-privacy', 'captured-variance', 'variance-references',
     'components', 'run-time', 'streaming-rates', 'streaming-dimensions',
     'signal-in-noise', 'robust-audits', 'robust-recovery', 'robust-phases',
     'genotypes', 'online-audits', 'online-regret', 'regret-optimum',
     'regret-length', 'regret-dimensions', 'regret-components',
     'tracing-references', 'tracing', 'list-culling', 'textbook-suite']
    """
    seed = check_count("seed", seed, minimum=0)
    covariance = names_of("covariance")
    private_pca = (*covariance, *names_of("subspace"))
    several = tuple(name for name in private_pca if name not in _FEW_COMPONENTS)
    rows = tuple(float(n) for n in profile.stream_rows)
    epsilons = tuple(float(e) for e in np.geomspace(0.1, 10.0, profile.epsilons))
    return (
        Experiment(
            name="privacy-wall",
            title="Privacy wall",
            question="How much privacy is lost: as claimed, in truth, as audited?",
            source="dpaudit",
            measure=audited_privacy,
            mechanisms=private_pca,
            grid={"epsilon": (1.0,)},
            seed=seed,
            options={
                "delta": DELTA,
                "confidence": CONFIDENCE,
                "max_samples": profile.max_samples,
            },
            effort=40.0,
        ),
        Experiment(
            name="exact-privacy",
            title="Exact privacy",
            question="At which epsilon is each claim true?",
            source="dpaudit",
            measure=exact_privacy,
            mechanisms=covariance,
            grid={"epsilon": epsilons},
            seed=seed,
            options={"delta": DELTA},
            effort=0.2,
        ),
        Experiment(
            name="captured-variance",
            title="Captured variance",
            question="How much variance do ten private components capture?",
            source="after Imtiaz, Sarwate, ICASSP 2016, Fig. 1",
            measure=captured_variance,
            mechanisms=covariance,
            grid={"epsilon": epsilons},
            repetitions=profile.repetitions,
            seed=seed,
            options=_DATA,
            effort=2.0,
        ),
        Experiment(
            name="variance-references",
            title="Captured variance without noise",
            question="How much do components capture that owe nothing to privacy?",
            source="dpaudit",
            measure=reference_variance,
            mechanisms=(BASELINE, FIRST_COMPONENT, RANDOM_SUBSPACE),
            seed=seed,
            options=_DATA,
            effort=0.1,
        ),
        Experiment(
            name="components",
            title="Ten components of a known spectrum",
            question="Which mechanism keeps most of the variance at epsilon 1?",
            source="after Imtiaz, Sarwate, ICASSP 2016, section 5",
            measure=captured_variance,
            mechanisms=several,
            grid={"epsilon": (1.0,)},
            repetitions=profile.repetitions,
            seed=seed,
            options=_SYNTHETIC,
            effort=4.0,
        ),
        Experiment(
            name="run-time",
            title="Run time",
            question="How long does a fit take, compared with PCA without privacy?",
            source="dpaudit",
            measure=run_time,
            mechanisms=(BASELINE, *several),
            grid={"epsilon": (1.0,)},
            repetitions=profile.timings,
            seed=seed,
            options={**_DATA, "batch": 64},
            effort=2.0,
            parallel=False,
        ),
        Experiment(
            name="streaming-rates",
            title="Rates of streaming PCA in n",
            question="How does the error fall with n: of sampling, and of privacy?",
            source="Liu, Kong, Jain, Oh, NeurIPS 2022, Theorem 5.1, Corollary 5.2",
            measure=streaming_errors,
            mechanisms=(DP_PCA,),
            grid={"epsilon": (1.0, _WITHOUT_NOISE), "n": rows},
            repetitions=profile.streams,
            seed=seed,
            options={**_STREAM, "d": 20},
            effort=3.0,
        ),
        Experiment(
            name="streaming-dimensions",
            title="Rates of streaming PCA in d",
            question="How does the error of privacy grow with d?",
            source="Liu, Kong, Jain, Oh, NeurIPS 2022, Corollary 5.2",
            measure=streaming_errors,
            mechanisms=(DP_PCA,),
            grid={"d": (5.0, 10.0, 20.0, 40.0)},
            repetitions=profile.streams,
            seed=seed,
            options={**_STREAM, "n": rows[-2]},
            effort=1.5,
        ),
        Experiment(
            name="signal-in-noise",
            title="Signal in noise",
            question="Does the price of privacy vanish with the spread of the rows?",
            source="Liu, Kong, Jain, Oh, NeurIPS 2022, Example 4.1",
            measure=streaming_errors,
            mechanisms=(DP_PCA, MINIBATCH_OJA),
            grid={"noise": (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)},
            repetitions=profile.streams,
            seed=seed,
            options={**_STREAM, "d": 20, "n": rows[1]},
            effort=2.0,
        ),
        *robust_experiments(profile, seed),
        *lower_bounds_experiments(profile, seed),
        Experiment(
            name="textbook-suite",
            title="Textbook suite",
            question="What does the audit find where the truth is known?",
            source="after Bichsel et al., S&P 2021, Table 1",
            measure=audited_suite,
            mechanisms=names_of("textbook"),
            seed=seed,
            options={
                "delta": DELTA,
                "confidence": CONFIDENCE,
                "max_samples": profile.suite_samples,
            },
            effort=40.0,
        ),
    )
