"""The smallest report there is: every experiment, in seconds."""

from dataclasses import replace

from dpaudit.profiles import PROFILES
from dpaudit.reports import sections
from dpaudit.reports.sections import Size, all_sections

__all__ = ["TINY", "install_tiny", "tiny_plan"]

TINY = {
    "privacy": Size(epsilons=3, max_samples=200),
    "utility": Size(repetitions=2, epsilons=3, timings=1),
    "symmetric_noise": Size(
        paper_datasets=("synthetic",), paper_draws=2, paper_points=2, paper_rows=2_000
    ),
    "streaming": Size(
        streams=2, length_streams=2, spread_streams=2, stream_rows=(2_000, 4_000)
    ),
    "dp_pca": Size(
        rate_sets=2,
        rate_single_sets=1,
        rate_rows=(500, 1_000),
        rate_base=1_000,
        rate_lengths=(3, 5),
        rate_epsilons=(0.4, 0.8),
        rate_spreads=(0.01, 0.1),
        rate_floor_rows=(500, 1_000),
        rate_floor_sets=2,
        rate_samples=20,
    ),
    "robust": Size(
        haystacks=2,
        haystack_rows=60,
        phase_rows=(40, 60),
        phase_lengths=(5, 8),
        robust_samples=40,
        genotypes=(30, 20, 25),
    ),
    "online": Size(
        online_draws=2,
        online_rows=(8, 16, 24),
        online_size=16,
        online_audits=1,
        online_samples=40,
    ),
    "tracing": Size(
        tracing_trials=2,
        tracing_symbols=16,
        tracing_rows=(2, 8),
        tracing_mechanisms=("analyze-gauss",),
    ),
    "theorems": Size(theorem_draws=3, theorem_points=2, theorem_stream=2_000),
    "suite": Size(suite_samples=40),
}


def install_tiny(patch):
    """Make "tiny" a profile like the others."""
    for name, size in TINY.items():
        patch.setitem(all_sections()[name].sizes, "tiny", size)
    patch.setattr(sections, "PROFILES", (*PROFILES, "tiny"))


def tiny_plan(seed=0, **changes):
    """Return its experiments by name, with other sizes here and there."""
    found = {}
    for name, size in TINY.items():
        own = {k: v for k, v in changes.items() if hasattr(size, k)}
        size = Size(**{**vars(size), **own})
        for each in all_sections()[name].experiments(size):
            found[each.name] = replace(each, seed=seed)
    return found
