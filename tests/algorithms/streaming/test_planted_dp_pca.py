"""DP-PCA with overlapping halves breaks its promise where the right one does not.

Type-I error: 1e-9 for each null hypothesis that is named (the seeds are fixed).
"""

import numpy as np
from scipy import stats
from scipy.special import ndtr
from seeded import rng

from dpaudit.algorithms.streaming.dp_pca import OverlappingDPPCA
from dpaudit.algorithms.streaming.moments import StreamedMoments

TYPE_I_ERROR = 1e-9
EPSILON, DELTA = 3.5, 1e-5


def test_the_mean_reads_the_whole_batch():
    rows, reads = rng().standard_normal((210, 3)), []

    def read(where):
        reads.append((where.start, where.stop))
        return rows[where]

    data = StreamedMoments(read, count=210, dimension=3)
    OverlappingDPPCA.planted(100.0, 1e-2, batch_size=101).draw(data, 5, rng=rng(1))
    starts = [start for start, _ in reads]
    assert starts == [0, 0, 0, 101, 101, 101]
    assert [stop for _, stop in reads[1:3]] == [101, 101]


def mean_of_columns(mechanism, rows, size):
    """The larger scale, or not, and the mean along u over that along v, of trials."""
    runs = mechanism.transcript(rows, size, rng=rng())
    first = runs["starts"][:, 0, 0]
    scales = runs["scales"][:, 0, 0] / first**2
    along_v, along_u = (
        runs["means"][:, 0, 0] @ u / first for u in ([1.0, 1.0], [1.0, -1.0])
    )
    return scales > 2.0**80, along_u / along_v


def test_on_the_pair_one_row_moves_a_group_and_the_mean():
    # Null hypothesis: two bins of 12 and 13 groups, of 11 and 14 in the neighbour,
    # with noise Lap(2/epsilon); given the larger scale, means that are mu apart.
    mechanism = OverlappingDPPCA.planted(EPSILON, DELTA)
    pair = mechanism.worst_case()
    (place,) = np.flatnonzero((pair.data != pair.neighbour).any(axis=(1, 2)))
    assert place < mechanism.batches(len(pair.data))[0] // 2
    size, means, deviations = 8000, [], []
    for rows, behind in ((pair.data, 1), (pair.neighbour, 3)):
        larger, along_u = mean_of_columns(mechanism, rows, size)
        margin = behind * EPSILON / 2
        chance = np.exp(-margin) * (2 + margin) / 4
        wins = int(larger.sum())
        assert stats.binomtest(wins, size, chance).pvalue >= TYPE_I_ERROR
        means.append(np.nanmean(along_u[larger]))
        deviations.append(np.nanstd(along_u[larger]) / np.sqrt(wins))
    noise = 0.05 * np.array([1.0, 2.0**-0.125])
    mu = mechanism.mean.split.noise(2).mu
    slack = 6.2 * np.hypot(*deviations)
    assert mu * noise.min() - slack < means[1] - means[0] < mu * noise.max() + slack


def test_both_together_break_the_promise():
    # The laws of the test above: both parts keep it, their product does not.
    noise = OverlappingDPPCA.planted(EPSILON, DELTA).mean.split.noise(2)
    odds = np.exp(EPSILON)
    win, lose = (np.exp(-x) * (2 + x) / 4 for x in (1.75, 5.25))
    assert win < odds * lose
    tails = np.linspace(-1, 4, 101)
    low, high = ndtr(noise.mu / 2 - tails), ndtr(-noise.mu / 2 - tails)
    assert (low - odds * high).max() < DELTA
    assert (win * low - odds * lose * high).max() > 1000 * DELTA
