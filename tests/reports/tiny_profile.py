"""The smallest report there is: every experiment, in seconds."""

from dpaudit.reports.profiles import Profile

__all__ = ["TINY"]

TINY = Profile(
    "tiny",
    repetitions=2,
    epsilons=3,
    max_samples=200,
    suite_samples=40,
    timings=1,
    streams=2,
    stream_rows=(2_000, 4_000),
    haystacks=2,
    haystack_rows=60,
    phase_rows=(40, 60),
    phase_lengths=(5, 8),
    robust_samples=40,
    genotypes=(30, 20, 25),
    online_draws=2,
    online_rows=(8, 16, 24),
    online_size=16,
    online_audits=1,
    online_samples=40,
    tracing_trials=2,
    tracing_symbols=16,
    tracing_rows=(2, 8),
    tracing_mechanisms=("analyze-gauss",),
)
