"""The experiments on robust PCA."""

from dpaudit.reports.experiment import CONFIDENCE, DELTA, Experiment
from dpaudit.reports.genotype_maps import MAPS, genotype_map
from dpaudit.reports.measures import audited_privacy
from dpaudit.reports.profiles import Profile
from dpaudit.reports.recovery import (
    CORRECTED,
    NOISELESS,
    PUBLISHED,
    recovery,
    recovery_paths,
)

__all__ = ["AUDITED", "robust_experiments"]

AUDITED = (*PUBLISHED, *CORRECTED)
_HAYSTACK = {"epsilon": 0.8, "n_components": 2, "inlier_share": 0.5}


def robust_experiments(profile: Profile, seed: int) -> tuple[Experiment, ...]:
    """Return them, for a profile and the user's seed."""
    return (
        Experiment(
            name="robust-audits",
            title="Audits of robust PCA",
            question="Which claims of robust PCA do releases refute?",
            source="dpaudit",
            measure=audited_privacy,
            mechanisms=AUDITED,
            grid={"epsilon": (1.0,)},
            seed=seed,
            options={
                "delta": DELTA,
                "confidence": CONFIDENCE,
                "max_samples": profile.robust_samples,
            },
            effort=10.0,
        ),
        Experiment(
            name="robust-recovery",
            title="Recovery of a subspace, step by step",
            question="How fast does private robust PCA find a subspace?",
            source="Maunu, Yu, Lerman, MSML 2022, Figure 1",
            measure=recovery_paths,
            mechanisms=(*PUBLISHED, *CORRECTED, NOISELESS),
            repetitions=profile.haystacks,
            seed=seed,
            options={**_HAYSTACK, "rows": profile.haystack_rows, "dimension": 20},
            effort=4.0,
        ),
        Experiment(
            name="robust-phases",
            title="Recovery by size",
            question="For which sizes does private robust PCA find a subspace?",
            source="Maunu, Yu, Lerman, MSML 2022, Figure 2",
            measure=recovery,
            mechanisms=("dp-sggd-published", "dp-sggd"),
            grid={
                "rows": tuple(map(float, profile.phase_rows)),
                "dimension": tuple(map(float, profile.phase_lengths)),
            },
            repetitions=profile.haystacks,
            seed=seed,
            options={**_HAYSTACK, "steps_per_row": 2.0},
            effort=4.0,
        ),
        Experiment(
            name="genotypes",
            title="Maps from genotypes",
            question="Does the map of where people are from survive noise?",
            source="Maunu, Yu, Lerman, MSML 2022, Figures 3, 10",
            measure=genotype_map,
            mechanisms=MAPS,
            seed=seed,
            options={
                "epsilon": 0.8,
                "inliers": profile.genotypes[0],
                "outliers": profile.genotypes[1],
                "dimension": profile.genotypes[2],
            },
            effort=2.0,
        ),
    )
