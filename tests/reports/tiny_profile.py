"""The smallest report there is: every experiment, in seconds."""

from dataclasses import replace

from dpaudit.reports import sections
from dpaudit.reports.sections import all_sections
from dpaudit.reports.sections.online import section as online
from dpaudit.reports.sections.privacy import section as privacy
from dpaudit.reports.sections.robust import section as robust
from dpaudit.reports.sections.streaming import section as streaming
from dpaudit.reports.sections.suite import section as suite
from dpaudit.reports.sections.tracing import section as tracing
from dpaudit.reports.sections.utility import section as utility

__all__ = ["TINY", "install_tiny", "tiny_plan"]

TINY = {
    "privacy": privacy.Size(epsilons=3, max_samples=200),
    "utility": utility.Size(repetitions=2, epsilons=3, timings=1),
    "streaming": streaming.Size(streams=2, stream_rows=(2_000, 4_000)),
    "robust": robust.Size(
        haystacks=2,
        haystack_rows=60,
        phase_rows=(40, 60),
        phase_lengths=(5, 8),
        robust_samples=40,
        genotypes=(30, 20, 25),
    ),
    "online": online.Size(
        online_draws=2,
        online_rows=(8, 16, 24),
        online_size=16,
        online_audits=1,
        online_samples=40,
    ),
    "tracing": tracing.Size(
        tracing_trials=2,
        tracing_symbols=16,
        tracing_rows=(2, 8),
        tracing_mechanisms=("analyze-gauss",),
    ),
    "suite": suite.Size(suite_samples=40),
}


def install_tiny(patch):
    """Make "tiny" a profile like the others."""
    patch.setattr(sections, "PROFILES", (*sections.PROFILES, "tiny"))
    for name, size in TINY.items():
        patch.setitem(all_sections()[name].sizes, "tiny", size)


def tiny_plan(seed=0, **changes):
    """Return its experiments by name, with other sizes here and there."""
    found = {}
    for name, size in TINY.items():
        own = {k: v for k, v in changes.items() if hasattr(size, k)}
        every = all_sections()[name].experiments(replace(size, **own), seed)
        found |= {each.name: each for each in every}
    return found
