"""Sparse vector techniques: quadrature over the noisy threshold, and exact losses.

The losses are held to integrals in many digits.

Type-I error: 1e-9 per sampler test, fewer than 30 of them, all seeded.
"""

from itertools import pairwise

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf
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

from dpaudit.algorithms.textbook.counts import neighbours_with
from dpaudit.algorithms.textbook.stream_losses import (
    ABOVE,
    BELOW,
    UNREACHED,
    Pieces,
    end_rule,
    log_laplace_interval,
    unit_rule,
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
from dpaudit.audit.layers.layer import Layer, applicable_layers
from dpaudit.errors import InputError

STOPPING = [SVT1, SVT2, SVT3, SVT4, NumericalSVT]
EVERY_SVT = [
    *(SVT1(), SVT2(), SVT3(), SVT4(), SVT5(), SVT6(), NumericalSVT(), SVT34Parallel())
]


def name(value):
    return getattr(value, "__name__", None) or type(value).__name__


# Oracles
def exact_mass(answers, codes, threshold, b1, b2, up_to=None):
    """Return the log-integral over the noisy threshold, term by term.

    Between break points the integrand is a sum of exponentials of whole numbers over
    b2, times one of 1/b1. The terms cancel, so enough digits are carried.
    """
    used = [
        (mpf(float(x)), c) for x, c in zip(answers, codes, strict=True) if c < UNREACHED
    ]
    span = max([*np.abs(answers), threshold, abs(up_to or 0.0)])
    with mp.workdps(40 + int(len(used) * (span / b2 + 1))):
        b1, b2, threshold = mpf(b1), mpf(b2), mpf(float(threshold))
        end = mp.inf if up_to is None else mpf(float(up_to))
        breaks = sorted({threshold, *(x for x, _ in used)})
        edges = [-mp.inf, *(x for x in breaks if x < end), end]
        total = mpf(0)
        for low, high in pairwise(edges):
            total += _exact_piece(low, high, used, threshold, b1, b2)
        return mpmath.log(total)


def _exact_piece(low, high, used, threshold, b1, b2):
    origin = high if low == -mp.inf else low
    sign = 1 if high <= threshold else -1
    terms = {0: mpmath.exp(sign * (origin - threshold) / b1) / (2 * b1)}
    for x, code in used:
        step = 1 if high <= x else -1
        tail = mpmath.exp(-abs(origin - x) / b2 if step * (x - origin) >= 0 else 0) / 2
        if step * (x - origin) < 0:
            tail = mpmath.exp(abs(origin - x) / b2) / 2
        pure = (code == BELOW) == (step == 1)
        moved = {} if pure else dict(terms)
        for power, coefficient in terms.items():
            change = coefficient * tail if pure else -coefficient * tail
            moved[power + step] = moved.get(power + step, 0) + change
        terms = moved
    total = mpf(0)
    for power, coefficient in terms.items():
        rate = mpf(power) / b2 + sign / b1
        if low == -mp.inf:
            total += coefficient / rate
        elif high == mp.inf:
            total -= coefficient / rate
        elif abs(rate) < mpf(10) ** (20 - mp.dps):
            total += coefficient * (high - low)
        else:
            total += coefficient * mpmath.expm1(rate * (high - low)) / rate
    return total


def split(mechanism, release):
    """Return the codes of a release."""
    if isinstance(mechanism, SVT3 | NumericalSVT):
        codes = np.where(np.isnan(release), BELOW, ABOVE)
        return np.where(np.isneginf(release), UNREACHED, codes)
    return np.where(release < 0, UNREACHED, release).astype(int)


def exact_density(mechanism, answers, release):
    """Return the log-density of one release."""
    codes = split(mechanism, release)
    b1, b2 = mechanism.scales
    threshold = mechanism.threshold
    if isinstance(mechanism, SVT2):
        total, run = mpf(0), np.cumsum(codes == ABOVE) - (codes == ABOVE)
        for number in range(run.max() + 1):
            part = np.where(run == number, codes, UNREACHED)
            total += exact_mass(answers, part, threshold, b1, b2)
        return total
    if isinstance(mechanism, SVT3 | NumericalSVT):
        compared = isinstance(mechanism, SVT3)
        scale = b2 if compared else mechanism.value_scale
        above = codes == ABOVE
        told = sum(
            -abs(mpf(float(v)) - mpf(float(x))) / scale - mpmath.log(2 * scale)
            for v, x in zip(release[above], answers[above], strict=True)
        )
        if not compared:
            return told + exact_mass(answers, codes, threshold, b1, b2)
        least = release[above].min() if above.any() else None
        codes = np.where(codes == BELOW, BELOW, UNREACHED)
        return told + exact_mass(answers, codes, threshold, b1, b2, least)
    return exact_mass(answers, codes, threshold, b1, b2)


def assert_exact(mechanism, releases, data, other):
    found = mechanism.privacy_loss(releases, data, other)
    answers, other_answers = mechanism.answers(data), mechanism.answers(other)
    expected = [
        float(
            exact_density(mechanism, answers, release)
            - exact_density(mechanism, other_answers, release)
        )
        for release in releases
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11)


def neighbours(length, people, rng):
    """Return fractional votes, and those after one person changed them."""
    data = rng.random((people, length)).round(3)
    other = data.copy()
    other[0] = rng.integers(0, 2, length)
    return data, other


# The loss against the oracles
@pytest.mark.parametrize("length", [1, 4, 11])
@pytest.mark.parametrize("epsilon", [0.1, 10.0])
@pytest.mark.parametrize("cutoff", [1, 2])
@pytest.mark.parametrize("kind", STOPPING, ids=name)
def test_losses_of_releases(kind, cutoff, epsilon, length):
    rng = np.random.default_rng(length)
    data, other = neighbours(length, 4, rng)
    for threshold in (0.0, 1.3):
        mechanism = kind(epsilon, cutoff=cutoff, threshold=threshold)
        assert_exact(mechanism, draws(mechanism, data, size=2), data, other)


@pytest.mark.parametrize(
    ("length", "epsilon"), [(1, 1.0), (4, 0.1), (11, 10.0), (30, 1.0)]
)
def test_losses_of_endless_streams(length, epsilon):
    data, other = neighbours(length, 2, np.random.default_rng(length))
    mechanism = SVT6(epsilon, threshold=0.7)
    assert_exact(mechanism, draws(mechanism, data, size=2), data, other)


@pytest.mark.parametrize("cutoff", [1, 2])
def test_values_anywhere_and_renewed_thresholds(cutoff):
    mechanism = SVT3(2.0, cutoff=cutoff)
    data, other = neighbours(5, 9, np.random.default_rng(1))
    values = [-1e3, -7.0, 0.0, 3.1, 4.9, 6.0, 20.0, 1e3, *mechanism.answers(data)]
    releases = np.full((len(values), 5), np.nan)
    releases[:, 3] = values
    releases[:, 4] = -np.inf if cutoff == 1 else 4.2
    assert_exact(mechanism, releases, data, other)
    mechanism = SVT2(1.0, cutoff=cutoff)
    streams = all_streams(5, cutoff)
    probabilities = [run_probability(mechanism, s) for s in streams]
    assert sum(probabilities) == pytest.approx(1.0, rel=1e-12)
    counts = frequencies(draws(mechanism, ROWS), streams)
    assert_frequencies(counts, probabilities, SIZE)


def test_counts_that_lie_far_apart():
    """Gaps of more than 80 scales, in which values lie as well."""
    first, second = [0, 12, 13, 25], [1, 12, 14, 24]
    pair = neighbours_with(first, second)
    for kind in (SVT4, SVT6):
        mechanism = kind(20.0, threshold=6.0)
        releases = np.array([[0.0, 0, 0, 1]])
        assert_exact(mechanism, releases, pair.data, pair.neighbour)
    unlikely = np.array([[1.0, 0, 1, 0]])
    assert_exact(SVT6(20.0), unlikely, pair.data, pair.neighbour)
    mechanism = SVT3(20.0, threshold=6.0)
    releases = np.full((5, 4), np.nan)
    releases[:, 3] = [3.0, 5.5, 6.5, 12.5, 19.0]
    assert_exact(mechanism, releases, pair.data, pair.neighbour)


@pytest.mark.parametrize("cutoff", [1, 2])
@pytest.mark.parametrize(("length", "epsilon"), [(3, 10.0), (30, 0.1)])
def test_compared_values_lose_exactly_what_is_stated(length, epsilon, cutoff):
    mechanism = SVT3(epsilon, cutoff=cutoff)
    pair = mechanism.worst_case(length)
    releases = np.full((4, length), np.nan)
    releases[:, -cutoff:] = np.array([[0.0], [-0.1], [-5.0], [-300.0]])
    loss = mechanism.privacy_loss(releases, pair.data, pair.neighbour)
    np.testing.assert_allclose(loss, length / mechanism.scales[1], rtol=1e-12)


@pytest.mark.parametrize("mechanism", EVERY_SVT, ids=name)
def test_a_loss_does_not_depend_on_the_batch_and_bad_shapes_are_named(mechanism):
    # Of long streams all are different: their tables are made in parts.
    data, other = neighbours(20, 3, np.random.default_rng(4))
    releases = draws(mechanism, data, size=600)
    loss = mechanism.privacy_loss(releases, data, other)
    for part in (slice(0, 1), slice(7, 600, 40), slice(40, 0, -1)):
        again = mechanism.privacy_loss(releases[part], data, other)
        np.testing.assert_allclose(again, loss[part], rtol=1e-10, atol=1e-12)
    assert mechanism.privacy_loss(releases[:0], data, other).shape == (0,)
    data, other = neighbours(3, 3, np.random.default_rng(0))
    releases = draws(mechanism, data, size=5)
    for bad in (releases[0], releases[:, :-1], releases[np.newaxis]):
        with pytest.raises(InputError, match=r"releases must have shape \(size, "):
            mechanism.privacy_loss(bad, data, other)
    for longer in ((data, np.ones((3, 4))), (np.ones((3, 4)), other)):
        with pytest.raises(InputError, match="releases must have shape"):
            mechanism.privacy_loss(releases, *longer)


def test_what_is_looked_into_has_blocks_and_intervals_may_be_empty():
    mechanism = SVT1()
    data, other = neighbours(2, 3, np.random.default_rng(4))
    releases = draws(mechanism, data, size=2**18 + 7)
    loss = mechanism.privacy_loss(releases, data, other)
    again = mechanism.privacy_loss(releases[-9:], data, other)
    np.testing.assert_allclose(loss[-9:], again, rtol=1e-10, atol=1e-12)
    assert all(
        Layer.WHITE_BOX in applicable_layers(mechanism) for mechanism in EVERY_SVT
    )
    low, high = np.array([0.0, 1.0, -1.0]), np.array([0.0, -1.0, -1.0])
    assert np.isneginf(log_laplace_interval(low, high, scale=2.0)).all()


# What cannot be


def test_no_noise_on_the_queries_in_closed_form():
    mechanism = SVT5(1.0, threshold=3.0)
    first, second = [2, 5, 9], [1, 5, 10]
    pair = neighbours_with(first, second)
    law = stats.laplace(loc=3.0, scale=2.0)
    releases = np.array([[1.0, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 0]])

    def chances(x):
        return [law.cdf(x[0]), *np.diff(law.cdf(x)), law.sf(x[2])]

    np.testing.assert_allclose(
        mechanism.privacy_loss(releases, pair.data, pair.neighbour),
        np.log(chances(first)) - np.log(chances(second)),
        rtol=1e-12,
        atol=1e-15,
    )


@pytest.mark.parametrize("low", [-np.inf, -800.0, -1.0, 0.0, 0.25, 800.0])
@pytest.mark.parametrize("width", [1e-12, 1.0, 2000.0, np.inf])
def test_intervals_of_laplace_noise(low, width):
    with mp.workdps(800):
        ends = [mpf(x) for x in (low, low + width if low > -np.inf else width)]
        below = [mpmath.exp(x) / 2 if x <= 0 else 1 - mpmath.exp(-x) / 2 for x in ends]
        expected = float(mpmath.log(below[1] - below[0]))
    found = log_laplace_interval(np.array([low]), np.array([float(ends[1])]), scale=1.0)
    assert found[0] == pytest.approx(expected, rel=1e-13, abs=1e-13)


NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("mechanism", "releases"),
    [
        (SVT1(), [[1, 0, 0], [0, -1, -1], [0, 1, 0], [0, 0, 2], [0, NAN, 1]]),
        (SVT2(cutoff=2), [[1, 1, 0], [1, -1, -1], [INF, 0, 0]]),
        (SVT3(), [[1, NAN, NAN], [NAN, -INF, -INF], [NAN, INF, -INF]]),
        (NumericalSVT(), [[1.5, 2.5, NAN], [1.5, -INF, -INF], [INF, NAN, NAN]]),
        (SVT5(), [[-1, -1, -1], [1, 0.5, 1]]),
        (SVT6(), [[1, 1, -1], [NAN, NAN, NAN]]),
    ],
    ids=lambda value: name(value) if hasattr(value, "claim") else "",
)
def test_what_is_no_stream_has_no_loss(mechanism, releases):
    data, other = neighbours(3, 3, np.random.default_rng(0))
    loss = mechanism.privacy_loss(np.array(releases, dtype=float), data, other)
    assert np.isnan(loss).all()


# Rules
@pytest.mark.parametrize("ratio", [1e-3, 1.0, 200.0])
@pytest.mark.parametrize("count", [1, 6, 100])
def test_the_rule_for_an_end_is_exact_for_powers(count, ratio):
    u, log_weights = end_rule(count, ratio)
    assert np.all((u > 0) & (u < 1))
    weights = np.exp(log_weights + ratio * np.log(u))
    for power in {0, 1, count, 2 * count - 1}:
        exact = 1 / (ratio + power)
        assert np.sum(weights * u**power) == pytest.approx(exact, rel=1e-11)


def test_pieces_are_cut_and_integrated():
    pieces = Pieces(np.array([0.0, 2.0, 5.0]), np.array([1.0, 2.0, 9.0]))
    cut = pieces.cut(np.array([2.0, 1.0, 0.3]))
    np.testing.assert_allclose(cut.left, [0.0, 0.5, 5.0, 7.0])
    np.testing.assert_allclose(cut.right, [0.5, 1.0, 7.0, 9.0])
    nodes, weights = unit_rule(3)
    at, log_weights = cut.nodes(nodes), cut.log_weights(weights)
    exact = (1 + 9**6 - 5**6) / 6
    assert np.sum(np.exp(log_weights) * at**5) == pytest.approx(exact, rel=1e-13)
    for rate in (-700.0, -1.0, 0.0, 1e-9, 3.0):
        found = cut.log_of_exponential(rate * cut.left, rate * cut.right)
        expected = []
        for low, high in zip(cut.left, cut.right, strict=True):
            share = -np.expm1(rate * (high - low)) / -rate if rate else high - low
            expected.append(rate * low + np.log(share))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


ROWS = np.array([[0, 1, 1, 0, 1], [0, 1, 0, 0, 1], [0, 1, 0, 1, 0]], dtype=float)
ANSWERS = ROWS.sum(axis=0)
LOW, HIGH = "below", "above"


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
        if cell == HIGH or place == len(stream) - 1:
            run = stream[start : place + 1]
            probability *= stream_probability(mechanism, ANSWERS[start:], run)
            start = place + 1
    return probability


def test_endless_streams_and_fresh_values():
    mechanism = SVT6(1.0)
    streams = all_streams(5, np.inf)
    probabilities = [stream_probability(mechanism, ANSWERS, s) for s in streams]
    counts = frequencies(draws(mechanism, ROWS), streams)
    assert_frequencies(counts, probabilities, SIZE)
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


def test_streams_without_noise_on_the_queries_and_what_is_impossible():
    releases = draws(SVT5(1.0), ROWS)
    np.testing.assert_array_equal(releases[:, 0], releases.sum(axis=1) == 5)
    # Exactly the answers from x on are above if the noisy threshold is in (x - 1, x].
    law, places = stats.laplace(loc=1.0, scale=2.0), np.array([1, 2, 3])
    same = [(releases == (ANSWERS >= place)).all(axis=1) for place in places]
    assert_frequencies(
        np.sum(same, axis=1), law.cdf(places) - law.cdf(places - 1), SIZE
    )
    mechanism = SVT5(0.1)
    pair = neighbours_with([0, 1, 1], [1, 0, 1])
    releases = np.array([[0.0, 1, 1], [1, 0, 1], [0, 0, 1], [1, 1, 1], [0, 1, 0]])
    loss = mechanism.privacy_loss(releases, pair.data, pair.neighbour)
    np.testing.assert_array_equal(loss, [np.inf, -np.inf, np.nan, 0.0, np.nan])


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
        if stream[last] == LOW:
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
    chances = [stream_probability(part, ANSWERS, [HIGH]) for part in mechanism.parts]
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
    above = [cell == HIGH for cell in stream]
    scale = 3 * mechanism.cutoff / mechanism.epsilon
    return float(moved[: len(stream)][above].sum() / scale)


@pytest.mark.parametrize("kind", [SVT1, SVT2, SVT4, NumericalSVT])
def test_the_true_epsilon_is_approached_on_long_streams(kind):
    mechanism = kind(0.1)
    losses = []
    for length in (5, 40, 640):
        stream = [LOW] * (length - mechanism.cutoff) + [HIGH] * mechanism.cutoff
        pair = mechanism.worst_case(length)
        losses.append(
            loss(mechanism, pair, stream) + value_loss(mechanism, pair, stream)
        )
    assert losses == sorted(losses)
    assert losses[-1] <= mechanism.true_epsilon + 1e-12
    assert losses[-1] == pytest.approx(mechanism.true_epsilon, rel=2e-3)


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
        *((1.0, 2, [[0, 2], [1, 1]]), (1.0, 3, [[0, 2, 2], [1, 1, 3]])),
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
    lost = loss(mechanism, mechanism.worst_case(length), [LOW] * half + [HIGH] * half)
    assert length * 0.1 / 4 <= lost <= length * 0.1 / 2
    if length == 10:
        assert lost == pytest.approx(0.4145, abs=5e-5)


# Codes and arguments
def test_codes_and_defaults_are_those_of_the_suite():
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
    assert (SVT1().threshold, SVT1().cutoff) == (0.5, 1)
    assert (SVT4().threshold, SVT4().cutoff) == (1.0, 1)
    for kind in (NumericalSVT, SVT34Parallel):
        assert (kind().threshold, kind().cutoff) == (1.0, 2)
    scales = {
        **{SVT1: (20.0, 40.0), SVT2: (20.0, 40.0), SVT3: (20.0, 20.0)},
        **{SVT4: (40.0, 40 / 3), SVT6: (20.0, 20.0), NumericalSVT: (30.0, 120.0)},
    }
    for kind, expected in scales.items():
        assert kind(0.1).scales == pytest.approx(expected, rel=1e-12)
    pair = SVT2(0.1, cutoff=2).worst_case(6)
    assert pair.data.sum(axis=0).tolist() == [0, 0, 1, 0, 0, 1]
    assert pair.neighbour.sum(axis=0).tolist() == [1, 1, 0, 1, 1, 0]
