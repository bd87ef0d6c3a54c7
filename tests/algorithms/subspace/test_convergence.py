"""R-hat and the effective sample size, on chains whose truth is known.

What is random is compared with bounds that are many standard errors wide, at fixed
seeds.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy import stats

from dpaudit.algorithms.subspace.gibbs import effective_sample_size, split_r_hat


def autoregressive(phi, chains=4, draws=4000, seed=0):
    """Stationary chains with autocorrelation phi^t."""
    noise = np.random.default_rng(seed).standard_normal((draws, chains))
    noise[0] /= np.sqrt(1 - phi**2)
    for before, now in itertools.pairwise(noise):
        now += phi * before
    return noise.T


def naive_r_hat(traces):
    """The definition, loop by loop."""
    half = traces.shape[1] // 2
    halves = [part for chain in traces for part in (chain[:half], chain[-half:])]

    def ratio(parts):
        everything = np.concatenate(parts)
        ranks = stats.rankdata(everything)
        z = stats.norm.ppf((ranks - 3 / 8) / (len(ranks) + 1 / 4))
        z = z.reshape(len(parts), half)
        b = half * np.var([row.mean() for row in z], ddof=1)
        w = np.mean([np.var(row, ddof=1) for row in z])
        return np.sqrt((half - 1) / half + b / (half * w))

    middle = np.median(np.concatenate(halves))
    return max(ratio(halves), ratio([np.abs(part - middle) for part in halves]))


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(8, 30))
def test_r_hat_is_that_of_the_definition(seed, chains, draws):
    traces = np.random.default_rng(seed).standard_normal((chains, draws))
    assert split_r_hat(traces) == pytest.approx(naive_r_hat(traces), rel=1e-12)


@pytest.mark.parametrize("kind", ["stuck", "shifted", "wider", "drifting"])
def test_chains_that_have_not_converged_are_seen(kind):
    traces = np.random.default_rng(0).standard_normal((4, 500))
    if kind == "stuck":
        traces = 0.1 * traces + np.arange(4)[:, np.newaxis]
    elif kind == "shifted":
        traces[0] += 2
    elif kind == "wider":
        traces[0] *= 4
    else:
        traces += np.linspace(0, 3, 500)
    assert split_r_hat(traces) > 1.1


def test_chains_that_stand_still():
    same = np.full((3, 20), 7.0)
    assert np.isnan(split_r_hat(same))
    assert np.isnan(effective_sample_size(same))
    apart = same + np.arange(3)[:, np.newaxis]
    assert split_r_hat(apart) == np.inf
    assert effective_sample_size(apart) < 10
    # Equally far from the median: only the ranks themselves tell.
    assert split_r_hat(np.repeat([[0.0], [1.0]], 20, axis=1)) == np.inf


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9, -0.5])
def test_the_effective_sample_size_of_autoregressive_chains(phi):
    # tau = 1 + 2 sum phi^t = (1 + phi)/(1 - phi).
    traces = autoregressive(phi)
    expected = traces.size * (1 - phi) / (1 + phi)
    assert effective_sample_size(traces) == pytest.approx(expected, rel=0.25)


def test_the_effective_sample_size_is_bounded():
    alternating = autoregressive(-0.999)
    size = alternating.size
    assert effective_sample_size(alternating) <= size * np.log10(size) * (1 + 1e-12)


def test_only_ranks_matter():
    traces = autoregressive(0.5, draws=200)
    assert effective_sample_size(np.exp(traces)) == effective_sample_size(traces)


test_bad_traces_are_refused = refused(
    (np.zeros((2, 7)), "at least 8 draws in each chain, got 7"),
    (np.zeros((0, 20)), "n >= 1"),
    (np.zeros(20), "traces must have shape"),
    (np.full((2, 20), np.nan), "traces must be finite"),
    by=lambda measure, traces: measure(traces),
    each=(split_r_hat, effective_sample_size),
)
