"""Sparse vector techniques against quadrature over the noisy threshold.

Type-I error: 1e-9 per sampler test, fewer than 30 of them, all seeded.
"""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from textbook_oracles import (
    SIZE,
    all_streams,
    assert_distribution,
    assert_frequencies,
    coded,
    draws,
    stream_probability,
)

from dpaudit.algorithms.textbook.svt import (
    SVT1,
    SVT2,
    SVT3,
    SVT4,
    SVT5,
    SVT6,
    NumericalSVT,
    SVT34Parallel,
)

ROWS = np.array([[0, 1, 1, 0, 1], [0, 1, 0, 0, 1], [0, 1, 0, 1, 0]], dtype=float)
ANSWERS = ROWS.sum(axis=0)
BELOW, ABOVE = "below", "above"


def frequencies(releases, streams):
    length = releases.shape[1]
    return [
        np.count_nonzero((releases == coded(stream, length)).all(axis=1))
        for stream in streams
    ]


# What the samplers draw


@pytest.mark.parametrize("cutoff", [1, 2])
@pytest.mark.parametrize(("kind", "epsilon"), [(SVT1, 2.0), (SVT4, 0.1)])
def test_streams_have_the_right_probabilities(kind, epsilon, cutoff):
    mechanism = kind(epsilon, cutoff=cutoff)
    streams = all_streams(5, cutoff)
    probabilities = [stream_probability(mechanism, ANSWERS, s) for s in streams]
    assert sum(probabilities) == pytest.approx(1.0, rel=1e-12)
    counts = frequencies(draws(mechanism, ROWS), streams)
    assert sum(counts) == SIZE
    assert_frequencies(counts, probabilities, SIZE)


def run_probability(mechanism, stream):
    """Return the probability where each run has its own threshold."""
    probability, start = 1.0, 0
    for place, cell in enumerate(stream):
        if cell == ABOVE or place == len(stream) - 1:
            run = stream[start : place + 1]
            probability *= stream_probability(mechanism, ANSWERS[start:], run)
            start = place + 1
    return probability


@pytest.mark.parametrize("cutoff", [1, 2])
def test_renewed_thresholds_make_runs_independent(cutoff):
    mechanism = SVT2(1.0, cutoff=cutoff)
    streams = all_streams(5, cutoff)
    probabilities = [run_probability(mechanism, s) for s in streams]
    assert sum(probabilities) == pytest.approx(1.0, rel=1e-12)
    counts = frequencies(draws(mechanism, ROWS), streams)
    assert_frequencies(counts, probabilities, SIZE)


def test_endless_streams():
    mechanism = SVT6(1.0)
    streams = all_streams(5, np.inf)
    probabilities = [stream_probability(mechanism, ANSWERS, s) for s in streams]
    counts = frequencies(draws(mechanism, ROWS), streams)
    assert_frequencies(counts, probabilities, SIZE)


def test_streams_without_noise_on_the_queries():
    releases = draws(SVT5(1.0), ROWS)
    np.testing.assert_array_equal(releases[:, 0], releases.sum(axis=1) == 5)
    # Exactly the answers from x on are above if the noisy threshold is in (x - 1, x].
    law, places = stats.laplace(loc=1.0, scale=2.0), np.array([1, 2, 3])
    same = [(releases == (ANSWERS >= place)).all(axis=1) for place in places]
    assert_frequencies(
        np.sum(same, axis=1), law.cdf(places) - law.cdf(places - 1), SIZE
    )


@pytest.mark.parametrize("cutoff", [1, 2])
def test_released_values_that_were_compared(cutoff):
    mechanism = SVT3(1.0, cutoff=cutoff)
    releases = draws(mechanism, ROWS)
    streams = all_streams(5, cutoff)
    counts, probabilities = [], []
    for stream in streams:
        last = len(stream) - 1
        cells = [*stream]
        code = np.where(np.isnan(releases), 0.0, np.isfinite(releases))
        code[np.isneginf(releases)] = -1.0
        same = (code == coded(stream, 5)).all(axis=1)
        if stream[last] == BELOW:
            counts.append(np.count_nonzero(same))
            probabilities.append(stream_probability(mechanism, ANSWERS, stream))
            continue
        for low, high in pairwise((-np.inf, 0.0, 2.0, 5.0, np.inf)):
            cells[last] = (low, high)
            value = releases[:, last]
            counts.append(np.count_nonzero(same & (value > low) & (value <= high)))
            probabilities.append(stream_probability(mechanism, ANSWERS, cells))
    assert sum(probabilities) == pytest.approx(1.0, rel=1e-9)
    assert_frequencies(counts, probabilities, SIZE)


def test_fresh_values():
    mechanism = NumericalSVT(1.0)
    releases = draws(mechanism, ROWS)
    code = np.where(np.isnan(releases), 0.0, np.isfinite(releases))
    code[np.isneginf(releases)] = -1.0
    streams = all_streams(5, 2)
    probabilities = [stream_probability(mechanism, ANSWERS, s) for s in streams]
    assert_frequencies(frequencies(code, streams), probabilities, SIZE)
    # Whatever the stream, a released value is fresh.
    for place in (0, 1, 4):
        values = releases[np.isfinite(releases[:, place]), place]
        law = stats.laplace(loc=ANSWERS[place], scale=6.0)
        assert_distribution(values[:20_000], law.cdf)


def test_parallel_streams_are_those_of_the_parts():
    mechanism = SVT34Parallel(1.0)
    releases = draws(mechanism, ROWS)
    assert releases.shape == (SIZE, 10)
    streams = all_streams(5, 2)
    second = [stream_probability(mechanism.parts[1], ANSWERS, s) for s in streams]
    assert_frequencies(frequencies(releases[:, 5:], streams), second, SIZE)
    first = [stream_probability(mechanism.parts[0], ANSWERS, s) for s in streams]
    code = np.where(np.isnan(releases), 0.0, np.isfinite(releases))
    code[np.isneginf(releases)] = -1.0
    assert_frequencies(frequencies(code[:, :5], streams), first, SIZE)
    # Independent parts: a joint frequency is a product.
    joint = (code[:, 0] == 1) & (releases[:, 5] == 1)
    chances = [stream_probability(part, ANSWERS, [ABOVE]) for part in mechanism.parts]
    assert_frequencies([np.count_nonzero(joint)], [np.prod(chances)], SIZE)


# What is true of them


def loss(mechanism, pair, cells):
    """Return the log-ratio of the probabilities of one stream on a pair."""
    one, two = (
        stream_probability(mechanism, x.sum(axis=0), cells)
        for x in (pair.data, pair.neighbour)
    )
    return np.log(one / two)


def value_loss(mechanism, pair, stream):
    """Return the most that the released values of a stream can lose."""
    if not isinstance(mechanism, NumericalSVT):
        return 0.0
    moved = np.abs(pair.data.sum(axis=0) - pair.neighbour.sum(axis=0))
    above = [cell == ABOVE for cell in stream]
    scale = 3 * mechanism.cutoff / mechanism.epsilon
    return float(moved[: len(stream)][above].sum() / scale)


@pytest.mark.parametrize("kind", [SVT1, SVT2, SVT4, NumericalSVT])
def test_the_true_epsilon_is_approached_on_long_streams(kind):
    mechanism = kind(0.1)
    losses = []
    for length in (5, 40, 640):
        stream = [BELOW] * (length - mechanism.cutoff) + [ABOVE] * mechanism.cutoff
        pair = mechanism.worst_case(length)
        losses.append(
            loss(mechanism, pair, stream) + value_loss(mechanism, pair, stream)
        )
    assert losses == sorted(losses)
    assert losses[-1] <= mechanism.true_epsilon + 1e-12
    assert losses[-1] == pytest.approx(mechanism.true_epsilon, rel=2e-3)


def test_each_run_of_a_renewed_threshold_ends_with_a_vote():
    pair = SVT2(0.1, cutoff=2).worst_case(6)
    assert pair.data.sum(axis=0).tolist() == [0, 0, 1, 0, 0, 1]
    assert pair.neighbour.sum(axis=0).tolist() == [1, 1, 0, 1, 1, 0]


@pytest.mark.parametrize(
    ("mechanism", "truth"),
    [(SVT4(0.1), 0.175), (SVT4(0.1, cutoff=2), 0.325), (SVT4(2.0), 3.5)],
)
def test_too_little_noise_costs_what_is_stated(mechanism, truth):
    assert mechanism.true_epsilon == pytest.approx(truth, rel=1e-12)
    assert mechanism.true_epsilon > mechanism.epsilon


def test_a_stream_without_noise_on_the_queries_gives_itself_away():
    mechanism = SVT5(0.1)
    assert mechanism.true_epsilon == np.inf
    pair = mechanism.worst_case()
    sides = (draws(mechanism, x) for x in (pair.data, pair.neighbour))
    hits, others = (
        np.count_nonzero((side[:, ::2] < side[:, 1::2]).any(axis=1)) for side in sides
    )
    assert others == 0
    # The noisy threshold, 1 + Lap(20), is in (0, 10].
    assert_frequencies([hits], [1 - (np.exp(-0.05) + np.exp(-0.45)) / 2], SIZE)


@pytest.mark.parametrize(
    ("threshold", "length", "expected"),
    [
        (1.0, 2, [[0, 2], [1, 1]]),
        (1.0, 3, [[0, 2, 2], [1, 1, 3]]),
        (1.0, 6, [[0, 2, 2, 4, 4, 6], [1, 1, 3, 3, 5, 5]]),
        (7.0, 5, [[5, 7, 7, 9, 9], [6, 6, 8, 8, 10]]),
    ],
)
def test_stairs_give_a_stream_without_noise_away(threshold, length, expected):
    mechanism = SVT5(0.1, threshold=threshold)
    pair = mechanism.worst_case(length)
    answers = [mechanism.answers(x).tolist() for x in (pair.data, pair.neighbour)]
    assert answers == expected


@pytest.mark.parametrize("length", [2, 10, 100])
def test_endless_streams_lose_without_bound(length):
    mechanism = SVT6(0.1)
    assert mechanism.true_epsilon == np.inf
    half = length // 2
    lost = loss(
        mechanism, mechanism.worst_case(length), [BELOW] * half + [ABOVE] * half
    )
    assert length * 0.1 / 4 <= lost <= length * 0.1 / 2
    if length == 10:
        assert lost == pytest.approx(0.4145, abs=5e-5)


# Codes and arguments


def test_codes():
    many = np.tile([[0.0, 1.0, 1.0, 1.0]], (1000, 1))
    np.testing.assert_array_equal(draws(SVT1(10.0), many, size=1)[0], [0, 1, -1, -1])
    np.testing.assert_array_equal(
        draws(SVT4(10.0, cutoff=2, threshold=500.0), many, size=1)[0], [0, 1, 1, -1]
    )
    np.testing.assert_array_equal(draws(SVT6(10.0), many, size=1)[0], [0, 1, 1, 1])
    for kind in (SVT3, NumericalSVT):
        numbers = draws(kind(10.0, threshold=500.0, cutoff=2), many, size=1)[0]
        assert np.isnan(numbers[0])
        np.testing.assert_allclose(numbers[1:3], 1000.0, atol=50)
        assert np.isneginf(numbers[3])


def test_defaults_are_those_of_the_suite():
    assert (SVT1().threshold, SVT1().cutoff) == (0.5, 1)
    assert (SVT4().threshold, SVT4().cutoff) == (1.0, 1)
    for kind in (NumericalSVT, SVT34Parallel):
        assert (kind().threshold, kind().cutoff) == (1.0, 2)
    scales = {
        SVT1: (20.0, 40.0),
        SVT2: (20.0, 40.0),
        SVT3: (20.0, 20.0),
        SVT4: (40.0, 40 / 3),
        SVT6: (20.0, 20.0),
        NumericalSVT: (30.0, 120.0),
    }
    for kind, expected in scales.items():
        mechanism = kind(0.1)
        found = mechanism.threshold_scale, mechanism.query_scale
        assert found == pytest.approx(expected, rel=1e-12)
