"""The smallest report there is: every experiment, in seconds."""

from dataclasses import replace

from seeded import set_few_rounds

from dpaudit.algorithms import CATALOGUE, names_of
from dpaudit.profiles import PROFILES
from dpaudit.reports import experiment, sections
from dpaudit.reports.sections import Size, all_sections
from dpaudit.reports.site import mechanisms
from dpaudit.reports.writer import draw_figures

TINY = {
    name: Size(**options)
    for name, options in {
        "privacy": {"epsilons": 3, "max_samples": 60},
        "utility": {"repetitions": 2, "epsilons": 3, "timings": 1, "batch": 4},
        "symmetric_noise": {
            **{"paper_datasets": ("synthetic",), "paper_draws": 2, "paper_splits": 1},
            **{"paper_points": 2, "paper_rows": 2_000},
        },
        "streaming": {
            **{"streams": 2, "length_streams": 2, "spread_streams": 2},
            **{"stream_rows": (2_000, 4_000), "stream_samples": 40},
        },
        "dp_pca": {
            **{"rate_sets": 2, "rate_single_sets": 1, "rate_rows": (500, 1_000)},
            **{"rate_held_rows": (500, 1_000)},
            **{"rate_base": 1_000, "rate_lengths": (3, 5), "rate_epsilons": (0.4, 0.8)},
            **{"rate_spreads": (0.01, 0.1), "stage_rows": (500, 1_000)},
            **{"stage_spreads": (0.01, 0.1), "stage_near": (0.01,)},
            **{"stage_base": 1_000, "rate_floor_rows": (500, 1_000)},
            **{"rate_floor_sets": 2, "rate_samples": 20},
        },
        "robust": {
            **{"haystacks": 2, "haystack_rows": 60, "phase_rows": (40, 60)},
            **{"phase_lengths": (5, 8), "full_lengths": (5,), "reaper_rows": (40,)},
            **{"reaper_lengths": (5,), "phase_runs": 2, "slow_runs": 2},
            **{"tile_rows": 40, "epsilons": (0.5, 2.0), "deltas": (1e-3, 1e-2)},
            **{"batch_sizes": (2, 8), "inlier_shares": (0.4, 0.6)},
            **{"rank_lengths": (6, 8), "ranks": (1, 2), "robust_samples": 40},
            **{"constants": (1.0,), "ratios": (3.0,), "transcripts": 20},
            **{"genotypes": (30, 20, 25), "reaper_loci": 10},
        },
        "online": {
            **{"online_draws": 2, "online_rows": (8, 16, 24)},
            **{"online_long": (8, 16, 24), "online_long_draws": 2, "online_size": 16},
            **{"online_samples": 40},
        },
        "tracing": {
            **{"tracing_trials": 2, "tracing_symbols": 16, "tracing_padding": 1},
            **{"tracing_rows": (2, 8), "catalogue_rows": (2,), "catalogue_trials": 1},
        },
        "choosing": {
            **{"settings": 2, "held_out_columns": 20, "held_out_releases": 5},
            **{"grid_releases": 0},
        },
        "theorems": {"theorem_draws": 3, "theorem_points": 2, "theorem_stream": 2_000},
        **{"training": {"training_samples": 40}, "suite": {"suite_samples": 40}},
    }.items()
}

# Some mechanisms of a family: more would take most of a report's time.
FEW = {
    "covariance": ("analyze-gauss", "symmetric-noise"),
    **{"textbook": names_of("textbook")[:2], "subspace": ("power-method",)},
    "streaming": ("oja", "private-histogram"),
    "robust": ("dp-sggd-published", "dp-sggd"),
    "online": ("follow-perturbed-leader-published", "tree-aggregation"),
    "training": ("dp-sgd", "dp-sgd-batch-means"),
}

# Mechanisms that have a page of their own, audited or not.
PAGES = {name for some in FEW.values() for name in some}
PAGES |= {"dp-ggd", "dp-pca", "online-pca", *list(CATALOGUE)[::10]}

# Sections without those whose experiments run in test_dp_pca_section.py,
# test_recovery.py, test_symmetric_noise_section.py and test_theorems.py.
ELSEWHERE = {"dp_pca", "robust", "symmetric_noise", "theorems"}
RUN = [
    name
    for name, each in all_sections().items()
    if not each.optional and name not in ELSEWHERE
]

BLANK = {
    name: [f'<svg id="figure-{name}-{width}"><title>T</title></svg>' for width in pair]
    for each in all_sections().values()
    for name, pair in ((name, ("wide", "narrow")) for name in each.figures)
}
"""In place of the figures, on pages whose words are looked at."""


def mostly_wide(results, sections, *_):
    """Figures, of which narrow ones are blank, but for those of a section."""
    privacy = [each for each in sections if each.name == "privacy"]
    found = dict(draw_figures(results, privacy))
    for each in sections:
        for name, draw in each.figures.items():
            if name not in found:
                found[name] = [draw(results, False), BLANK[name][1]]
    return found


def install_tiny(patch):
    """Make "tiny" a profile like the others, and leave some mechanisms of a family.

    And few rounds to the audits: of so few releases, there would be one for each.
    """
    set_few_rounds(patch)
    some = {name: each for name, each in CATALOGUE.items() if name in PAGES}
    patch.setattr(mechanisms, "CATALOGUE", some)
    patch.setattr(experiment, "names_of", FEW.get)
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
