import math

import numpy as np
import pytest
from attack_cases import SCALARS, auc, black_box, words

from dpaudit import Pair
from dpaudit.attacks import Abnormal, Atoms, BitPatterns, Target
from dpaudit.attacks.bits import _low_bits
from dpaudit.attacks.learned import shrunk_log_ratio
from dpaudit.batches import repeating_columns

TARGET = Target(black_box, SCALARS)


def fit_and_score(attack, first, second, judged, target=TARGET):
    return attack.score(target, attack.fit(target, first, second), judged)


def test_shrunk_log_ratio_is_antisymmetric_and_cautious():
    hits, other = np.array([0, 1, 3, 50, 400, 0]), np.array([0, 0, 4, 0, 100, 60])
    forth = shrunk_log_ratio(hits, 1000, other, 900)
    back = shrunk_log_ratio(other, 900, hits, 1000)
    assert np.array_equal(forth, -back)
    plain = np.log((hits + 0.5) / 1001) - np.log((other + 0.5) / 901)
    assert (np.abs(forth) <= np.abs(plain)).all()
    assert (np.sign(forth) * np.sign(plain) >= 0).all()
    assert forth[0] == forth[1] == 0
    assert 3.0 < forth[3] < plain[3]
    ratio = math.log(10 / 100) + math.sqrt(2 / 9.5)
    assert shrunk_log_ratio(9, 99, 9, 9) == pytest.approx(ratio)


def test_atoms_score_outputs_by_their_counts_where_they_repeat():
    first = np.repeat([0.0, 1.0, 2.0], [50, 30, 20])[:, np.newaxis]
    second = np.repeat([0.0, 1.0, 2.0], [20, 30, 50])[:, np.newaxis]
    scores = fit_and_score(
        Atoms(), first, second, np.array([[0.0], [1.0], [2.0], [7.0]])
    )
    expected = shrunk_log_ratio([50, 30, 20], 100, [20, 30, 50], 100)
    np.testing.assert_array_equal(scores[:3], expected)
    assert scores[3] == 0.0
    rng = np.random.default_rng(0)

    def applies(releases):
        return Atoms().applies(TARGET, releases)

    continuous = rng.normal(size=(20, 3))
    assert not applies(continuous)
    assert not applies(np.hstack([continuous, np.zeros((20, 1))]))
    assert applies(np.hstack([continuous, rng.integers(2, size=(20, 1))]))
    assert applies(np.where(rng.random((20, 3)) < 0.2, np.nan, continuous))
    assert applies(np.zeros(20))
    assert applies({"kind": rng.integers(3, size=20), "value": continuous})
    assert not applies(np.zeros(1))


def test_atoms_see_codes_among_numbers_if_they_repeat():
    """NaN, infinities and codes are values; other numbers are all alike."""
    rng = np.random.default_rng(0)
    sides = rng.normal(size=(2, 900, 2))
    sides[:, ::3, 0], sides[:, 1::3, 0] = -1.0, np.nan
    sides[0, ::2, 1] = -np.inf
    judged = np.array(
        [[0.3, 5.0], [-9.0, 0.1], [0.3, -np.inf], [-1.0, -np.inf], [np.nan, -np.inf]]
    )
    scores = fit_and_score(Atoms(), *sides, judged)
    assert scores[0] == scores[1] < 0
    assert (scores[2:] > 3).all()
    rng = np.random.default_rng(0)
    assert not Atoms().applies(TARGET, rng.standard_cauchy(size=(50_000, 1)))


def test_atoms_keep_the_most_telling_outputs_and_take_both_zeros_for_one():
    rng = np.random.default_rng(0)
    first, second = rng.integers(2000, size=(2, 4000, 1)).astype(float)
    first[::10] = 5000.0
    parameters = Atoms().fit(TARGET, first, second)
    assert len(parameters["scores"]) <= 256
    scores = Atoms().score(TARGET, parameters, np.array([[5000.0], [-3.0]]))
    assert scores[0] == max(parameters["scores"])
    assert abs(scores[1]) < scores[0]
    zeros = np.array([[0.0], [-0.0]])
    assert len(set(fit_and_score(Atoms(), 1 + zeros, zeros, zeros).tolist())) == 1


@pytest.mark.parametrize("size", [4, 60, 66, 3000])
@pytest.mark.parametrize("least", [2, 3])
def test_columns_that_repeat_are_those_that_sorting_finds(size, least):
    rng = np.random.default_rng(size)
    numbers = rng.normal(size=(size, 40))
    numbers[:, 1], numbers[:, 2] = 0.5, rng.choice([0.0, -0.0], size=size)
    numbers[:, 3], numbers[:, 4] = (
        rng.integers(9, size=size),
        np.round(numbers[:, 4], 3),
    )
    numbers[rng.random(size) < 0.02, 5:8] = [np.nan, np.inf, 7.0]
    numbers[-2:, 20], numbers[-3:, 39] = 0.25, 0.25
    numbers[-3:, 30] = -np.nan, np.nan, np.nan
    ordered = np.sort(numbers, axis=0)
    one, other = ordered[: 1 - least], ordered[least - 1 :]
    again = ((one == other) | (np.isnan(one) & np.isnan(other))).any(axis=0)
    varies = (numbers != numbers[0]).any(axis=0)
    found = repeating_columns([numbers[: size // 3], numbers[size // 3 :]], least)
    assert found[0]
    assert found[1].tolist() == np.flatnonzero(again & varies).tolist()
    assert repeating_columns([numbers[:, 1:3]], least)[0] is False


def continuous_with_rare_atoms(rng, size, side, rate, columns=1):
    numbers = rng.laplace(size=(size, columns)) + side
    numbers[rng.random(size) < rate] = side
    return numbers


@pytest.mark.parametrize("columns", [1, 100])
def test_atoms_that_are_rare_among_numbers_that_never_repeat_are_found(columns):
    """Each scores for the side that it is on, and next to no other release does."""
    rng = np.random.default_rng(0)
    sides = [continuous_with_rare_atoms(rng, 4000, s, 2e-3, columns) for s in (1, 0)]
    assert Atoms().applies(TARGET, np.vstack(sides))
    scores = Atoms().honest_scores(TARGET, *sides)
    for own, (numbers, score) in enumerate(zip(sides, scores, strict=True)):
        raw = (numbers == 1 - own).all(axis=1)
        assert raw.sum() >= 4
        assert (np.sign(score[raw]) == 1 - 2 * own).all()
        assert np.count_nonzero(score[~raw]) <= 40  # equal in 30 bits by accident


@pytest.mark.parametrize("rate", [0.3, 1e-3])
def test_honest_scores_of_atoms_tell_nothing_of_the_side_they_are_on(rate):
    """Where both sides have one law, the scores of both have, too.

    Null: the sides' honest scores are exchangeable. To leave out the judged release
    alone would give all releases of one side the lower score. 6 standard errors of the
    Mann-Whitney statistic have probability 2e-9.
    """
    rng, size = np.random.default_rng(1), 4000
    sides = [rng.geometric(rate, size=size).astype(float) for _ in range(2)]
    area = auc(*Atoms().honest_scores(TARGET, *sides))
    assert abs(area - 0.5) < 6 * np.sqrt((2 * size + 1) / (12 * size**2))


def test_honest_scores_of_atoms_are_those_of_a_fit_to_the_others():
    """Against fits without one in sixteen releases, where all values keep a code."""
    rng = np.random.default_rng(1)
    sides = [rng.integers(1, 4, size=size).astype(float) for size in (320, 256)]
    honest = Atoms().honest_scores(TARGET, *sides)
    for fold in range(16):
        judged = np.arange(320) % 16 == fold
        others = [side[~judged[: len(side)]] for side in sides]
        fitted = Atoms().fit(TARGET, *others)
        for side, scores in zip(sides, honest, strict=True):
            mine = judged[: len(side)]
            alone = Atoms().score(TARGET, fitted, side[mine])
            np.testing.assert_allclose(scores[mine], alone, atol=1e-12)


def test_layouts_are_counted_and_may_hold_any_text():
    first = words(["shape ()"] * 60 + ["raises ValueError"] * 40)
    second = words(["shape ()"] * 95 + ["shape (3,)"] * 5)
    judged = words(["raises ValueError", "shape (3,)", "shape ()", "never seen"])
    scores = fit_and_score(Abnormal(), first, second, judged)
    expected = shrunk_log_ratio([40, 0, 60], 100, [0, 5, 95], 100)
    assert scores.tolist() == [*expected, 0.0]
    texts = ["", "ünïcödé", "日本", "a b\tc\n", "😀", "x" * 500]
    first, second = words(texts * 90), words(texts[:1] * 540)
    parameters = Abnormal().fit(TARGET, first, second)
    scores = Abnormal().score(TARGET, parameters, words(texts))
    assert (scores[1:] > 0).all()
    assert scores[0] < 0
    assert parameters["layouts"].dtype == np.uint32
    assert not Abnormal().applies(TARGET, words(["shape ()"] * 2))
    assert not Abnormal().applies(TARGET, np.ones(3))
    assert not Abnormal().applies(TARGET, {"a": np.ones(3)})


def test_low_bits_match_exact_arithmetic():
    rng = np.random.default_rng(0)
    numbers = np.concatenate(
        [
            rng.normal(size=50),
            rng.integers(-1000, 1000, 50) / 8,
            [1.0, -0.5, 3.0, 2.0**60, 2.0**-100],
        ]
    )
    numbers = numbers[numbers != 0]
    lowest, trailing = _low_bits(numbers)
    for number, low, zeros in zip(numbers.tolist(), lowest, trailing, strict=True):
        numerator, denominator = number.as_integer_ratio()
        twos = (numerator & -numerator).bit_length() - 1
        exponent = twos - (denominator.bit_length() - 1)
        assert low == exponent + 130
        width = math.frexp(number)[1] - exponent
        assert zeros - 201 == 53 - width


def test_bits_use_the_statistic():
    """Noise on a grid of 2^-20: the release minus f(D) is on the grid, on D only."""

    class Grid:
        sensitivity = None

        def statistic(self, data):
            return np.array([data.sum(), 0.0])

    rng = np.random.default_rng(0)
    pair = Pair([0.1], [0.1, 1 / 3])
    sides = [
        np.stack([data.sum() + noise / 2**20, rng.normal(size=500)], axis=1)
        for data in (pair.data, pair.neighbour)
        for noise in [rng.integers(-(2**20), 2**20, 500)]
    ]
    target = Target(Grid(), pair)
    parameters = BitPatterns().fit(target, *sides)
    expected = [[0, 0], [pair.data.sum(), 0], [pair.neighbour.sum(), 0]]
    np.testing.assert_array_equal(parameters["references"], expected)
    assert auc(*(BitPatterns().score(target, parameters, s) for s in sides)) > 0.95
    assert not BitPatterns().applies(target, np.arange(20.0))


NANS = np.array([0x7FF8 << 48, 0xFFF8 << 48, (0x7FF8 << 48) + 1], np.uint64)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *[(0.0, -0.0), (np.inf, -np.inf), (np.inf, np.nan), (np.nan, 0.0)],
        *[(NANS.view(float)[i], NANS.view(float)[j]) for i, j in ((0, 1), (0, 2))],
    ],
)
def test_zeros_infinities_and_nan_are_told_apart(one, other):
    """Which is which in half of the entries, and normal numbers in the others."""
    rng = np.random.default_rng(0)
    sides = rng.normal(size=(2, 400, 2))
    sides[:, :, 0] = np.array([[one], [other]])
    target = Target(lambda data, rng: 0.0, Pair([0.0], [1.0]))
    assert BitPatterns().applies(target, sides[:, :, :1].reshape(-1, 1)) == (
        not math.isinf(other)
    )
    parameters = BitPatterns().fit(target, *sides)
    assert auc(*(BitPatterns().score(target, parameters, s) for s in sides)) == 1.0
