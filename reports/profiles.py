"""Profiles: how much of every experiment a report runs."""

from dataclasses import dataclass

from dpaudit.validation import check_name

__all__ = ["PROFILES", "Profile", "profile_named"]


@dataclass(frozen=True)
class Profile:
    """How much of everything.

    Parameters
    ----------
    name : str
    repetitions : int
        Releases behind every median of a utility curve.
    epsilons : int
        Points of the grid of epsilon, from 0.1 to 10.
    max_samples : int
        Most releases that an audit draws on either side.
    suite_samples : int
        The same for each mechanism of the textbook suite, of which there are many.
    timings : int
        Repetitions of every time measurement.
    streams : int
        Independent data sets behind every point of the rates of streaming PCA.
    stream_rows : tuple of int
        Their sizes, ascending, two or more.
    haystacks : int
        Data sets behind every point of the figures of robust PCA.
    haystack_rows : int
        N of those whose errors are shown step by step.
    phase_rows, phase_lengths : tuple of int
        N and D of those of which the final errors are shown, ascending.
    robust_samples : int
        Most releases a side in the audits of robust PCA.
    genotypes : tuple of int
        How many people are on the map and off it, and their loci.
    online_draws : int
        Releases on each stream of online PCA.
    online_rows : tuple of int
        The lengths of these streams, ascending, three or more.
    online_size : int
        The length where d and k change, and not m.
    online_audits : int
        How many mechanisms for online PCA are audited; the one whose claim is false is
        the first.
    online_samples : int
        Most releases a side in those audits.
    tracing_trials : int
        Hard instances behind every point of tracing.
    tracing_symbols : int
        The length of their codewords.
    tracing_rows : tuple of int
        The rows per cluster, ascending.
    tracing_mechanisms : tuple of str
        Whose releases are traced; the first is drawn.
    """

    name: str
    repetitions: int
    epsilons: int
    max_samples: int
    suite_samples: int
    timings: int
    streams: int
    stream_rows: tuple[int, ...]
    haystacks: int
    haystack_rows: int
    phase_rows: tuple[int, ...]
    phase_lengths: tuple[int, ...]
    robust_samples: int
    genotypes: tuple[int, int, int]
    online_draws: int
    online_rows: tuple[int, ...]
    online_size: int
    online_audits: int
    online_samples: int
    tracing_trials: int
    tracing_symbols: int
    tracing_rows: tuple[int, ...]
    tracing_mechanisms: tuple[str, ...]


# An odd number of epsilons, so that epsilon = 1 is always among them.
PROFILES: dict[str, Profile] = {
    each.name: each
    for each in (
        Profile(
            "quick",
            repetitions=50,
            epsilons=9,
            max_samples=100_000,
            suite_samples=10_000,
            timings=20,
            streams=4,
            stream_rows=(100_000, 200_000, 400_000),
            haystacks=8,
            haystack_rows=1000,
            phase_rows=(250, 500, 1000),
            phase_lengths=(10, 40, 160),
            robust_samples=3_000,
            genotypes=(600, 400, 300),
            online_draws=3,
            online_rows=(200, 400, 800, 1600),
            online_size=400,
            online_audits=1,
            online_samples=2_000,
            tracing_trials=8,
            tracing_symbols=64,
            tracing_rows=(1, 2, 3, 4, 8, 128, 1024),
            tracing_mechanisms=("analyze-gauss",),
        ),
        Profile(
            "standard",
            repetitions=400,
            epsilons=17,
            max_samples=3_000_000,
            suite_samples=1_000_000,
            timings=200,
            streams=60,
            stream_rows=(100_000, 200_000, 400_000, 800_000),
            haystacks=40,
            haystack_rows=2000,
            phase_rows=(500, 1000, 2000),
            phase_lengths=(10, 20, 50, 100, 200),
            robust_samples=20_000,
            genotypes=(1387, 1000, 1000),
            online_draws=6,
            online_rows=(1000, 2000, 4000, 8000, 16_000),
            online_size=8000,
            online_audits=6,
            online_samples=5_000,
            tracing_trials=30,
            tracing_symbols=96,
            tracing_rows=(1, 2, 3, 4, 6, 8, 16, 64, 256, 1024),
            tracing_mechanisms=(
                "analyze-gauss",
                "symmetrised-wishart",
                "laplace-covariance",
                "power-method",
            ),
        ),
        Profile(
            "paper",
            repetitions=1000,
            epsilons=33,
            max_samples=30_000_000,
            suite_samples=10_000_000,
            timings=400,
            streams=120,
            stream_rows=(100_000, 200_000, 400_000, 800_000),
            haystacks=100,
            haystack_rows=2000,
            phase_rows=(500, 1000, 2000, 4000),
            phase_lengths=(10, 20, 50, 100, 200, 400),
            robust_samples=100_000,
            genotypes=(1387, 1000, 10_000),
            online_draws=20,
            online_rows=(2000, 4000, 8000, 16_000, 32_000, 64_000),
            online_size=16_000,
            online_audits=6,
            online_samples=20_000,
            tracing_trials=100,
            tracing_symbols=192,
            tracing_rows=(1, 2, 3, 4, 6, 8, 16, 64, 256, 1024, 4096),
            tracing_mechanisms=(
                "analyze-gauss",
                "goe-gaussian",
                "symmetrised-wishart",
                "laplace-covariance",
                "power-method",
                "private-subspace",
                "exponential-pca",
            ),
        ),
    )
}
"""Every profile by its name."""


def profile_named(name: str) -> Profile:
    """Return the profile of that name, or raise with the nearest suggestion.

    Examples
    --------
    >>> profile_named("quik")
    Traceback (most recent call last):
        ...
    dpaudit.errors.InputError: unknown profile 'quik'; did you mean 'quick'? ...
    """
    return PROFILES[check_name("profile", name, tuple(PROFILES))]
