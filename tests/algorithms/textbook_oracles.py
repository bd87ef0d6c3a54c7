"""Independent oracles for the textbook mechanisms: quadrature and exact tests."""

from itertools import pairwise

import numpy as np
from scipy import stats

TYPE_I_ERROR = 1e-9
SIZE = 100_000

NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)


def integrate(function, kinks, scales):
    """Integrate a function made of exponentials of these scales between its kinks."""
    narrow, wide = min(scales), max(scales)
    kinks = np.unique(kinks)
    ends = [kinks[0] - 45 * wide, *kinks, kinks[-1] + 45 * wide]
    pieces = [
        np.linspace(left, right, int(np.ceil((right - left) / narrow)), endpoint=False)
        for left, right in pairwise(ends)
    ]
    edges = np.append(np.concatenate(pieces), ends[-1])
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    at = middle[:, np.newaxis] + half[:, np.newaxis] * NODES
    return float(np.sum(function(at) * WEIGHTS * half[:, np.newaxis]))


def stream_probability(mechanism, answers, cells):
    """Return the probability that the first answers of a stream fall into cells.

    A cell is "below", "above", or an interval (low, high): above, with the compared
    value in it. The noisy threshold is drawn once.
    """
    b1, b2 = mechanism.scales
    noise = stats.laplace(scale=b2)
    threshold = stats.laplace(loc=mechanism.threshold, scale=b1)
    kinks = [mechanism.threshold, *answers]
    kinks += [edge for cell in cells if isinstance(cell, tuple) for edge in cell]

    def integrand(s):
        value = threshold.pdf(s)
        for answer, cell in zip(answers, cells, strict=False):
            if cell == "below":
                value = value * noise.cdf(s - answer)
            elif cell == "above":
                value = value * noise.sf(s - answer)
            else:
                low, high = cell
                inside = noise.sf(np.maximum(low, s) - answer) - noise.sf(high - answer)
                value = value * np.maximum(inside, 0.0)
        return value

    return integrate(integrand, np.array(kinks)[np.isfinite(kinks)], mechanism.scales)


def all_streams(length, cutoff):
    """Return every stream of "below" and "above" that may be released, ends cut."""
    streams, open_ones = [], [[]]
    for _ in range(length):
        longer = [[*s, cell] for s in open_ones for cell in ("below", "above")]
        streams += [s for s in longer if s.count("above") == cutoff]
        open_ones = [s for s in longer if s.count("above") < cutoff]
    return streams + open_ones


def coded(stream, length):
    """Return a stream as it is released."""
    codes = [float(cell == "above") for cell in stream]
    return np.array(codes + [-1.0] * (length - len(stream)))


def assert_frequencies(counts, probabilities, size):
    """Test the frequency of each cell by an exact binomial test.

    Null hypothesis: the probabilities are right. Type-I error: at most 1e-9 in all, by
    Bonferroni.
    """
    assert sum(probabilities) <= 1 + 1e-9
    for count, probability in zip(counts, probabilities, strict=True):
        probability = min(probability, 1.0)
        p_value = stats.binomtest(int(count), size, probability).pvalue
        assert p_value >= TYPE_I_ERROR / len(counts), (count / size, probability)


def assert_distribution(sample, cdf):
    """Test a sample by Kolmogorov and Smirnov, at type-I error 1e-9."""
    assert stats.kstest(sample, cdf).pvalue >= TYPE_I_ERROR


def draws(mechanism, data, *, seed=0, size=SIZE):
    return mechanism.draw(data, size, rng=np.random.default_rng(seed))
