"""Draws that go on after a comparison, and choices that wait: exact laws and losses."""

import math
from functools import partial

import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit import ApproxDP, Pair, PureDP
from dpaudit.audit import replay
from dpaudit.audit.replay.laws.by_name import GammaDifference
from dpaudit.audit.replay.laws.coded import Family, Lattice
from dpaudit.audit.replay.laws.cuts import Cut, WidenedLattice
from dpaudit.audit.replay.laws.expressions import Applied, Number, Root
from dpaudit.audit.replay.laws.pieces import few_values

BITS = Pair([1.0, 0.0, 1.0], [1.0, 0.0, 0.0])
MORE = Pair([0.5], [0.5, 1.0])
GEOMETRIC = Lattice(0, (math.log1p(-math.exp(-1.0)),), above=1.0)


def cut(kind, family, *ends):
    """Return a law between ends, and its density by SciPy's distribution function."""
    mass = sum(kind.cdf(high) - kind.cdf(low) for low, high in ends)

    def density(x):
        inside = any(low <= x <= high for low, high in ends)
        return kind.pdf(x) / mass if inside else 0.0

    return Cut(family, ends), density


def difference(shape, x):
    """Return the density of a difference of gamma draws by a convolution."""
    kind = stats.gamma(shape)
    return integrate.quad(lambda t: kind.pdf(t + x) * kind.pdf(t), 0, math.inf)[0]


def step(x, width=0.4):
    whole = math.floor(x)
    inside = whole >= 0 and x - whole < width
    return (1 - math.exp(-1)) * math.exp(-whole) / width if inside else 0.0


LAWS = {
    "a tail": cut(stats.laplace(), Family.LAPLACE, (2.0, math.inf)),
    "two tails": cut(stats.norm(), Family.GAUSSIAN, (-9.0, -1.0), (1.5, 9.0)),
    "of a uniform": cut(stats.uniform(), Family.UNIFORM, (0.25, 0.75)),
    "steps": (WidenedLattice(GEOMETRIC, 0.4), step),
    "gamma": (GammaDifference(1.5, 1.5), lambda x: difference(1.5, x)),
}


@pytest.mark.parametrize("name", LAWS)
def test_densities_and_draws_are_those_of_the_law(name):
    law, density = LAWS[name]
    for x in (-3.1, -1.2, 0.3, 0.61, 1.7, 2.2, 5.35):
        logs = np.exp(law.log_density(np.array([x])))
        assert logs == pytest.approx(density(x), rel=1e-6)
    draws = law.sample(np.random.default_rng(0), 20_000)
    for low, high in ((-2.0, 0.5), (0.3, 1.6), (2.0, 2.7)):
        points = np.linspace(low, high, 40_001)[1:] - (high - low) / 80_000
        p = np.exp(law.log_density(points)).mean() * (high - low)
        # Off by 5 deviations with probability 6e-7; seeded.
        off = 5 * math.sqrt(p / 20_000) + 1e-4
        assert np.mean((draws > low) & (draws < high)) == pytest.approx(p, abs=off)


def test_tails_of_what_is_left_reach_as_far_as_those_of_the_draw():
    # Of the far side 1 - q is 1: a comparison out there was taken for decided.
    q = np.array([1e-300, 1e-30, 1e-9, 0.3, 0.9, 1.0])
    one = Cut(Family.LAPLACE, ((-10.0, math.inf),)).law
    assert one.sf(one.isf(q)) == pytest.approx(q, rel=1e-9, abs=0)
    two, _ = LAWS["two tails"]
    assert two.law.sf(two.law.isf(q)) == pytest.approx(q, rel=1e-9, abs=1e-16)
    far = Applied(
        "greater", (Root(0, "coded", law=Cut(1, ((-3.0, math.inf),))), Number(20.0))
    )
    assert min(few_values(far)[1]) == pytest.approx(math.exp(-20) / 2 / 0.975, rel=1e-3)


def atoms(b):
    """Return delta of noise that is clipped at b, for a shift and an epsilon of 1."""
    kind = stats.laplace()
    return kind.cdf(1 - b) + kind.sf(b)  # where D' has nothing, and an atom


@pytest.mark.parametrize(
    ("clip", "b"),
    [
        (lambda noise, b: np.clip(noise, -b, b), 9.0),
        (lambda noise, b: np.minimum(np.maximum(-b, noise), b), 2.5),
    ],
)
def test_clipped_noise_has_the_delta_of_its_atoms(clip, b):
    def mechanism(data, rng):
        return data.sum() + clip(rng.laplace(), b)

    for share, verdict in ((1.001, "NOT_REFUTED"), (0.99, "REFUTED")):
        claim = ApproxDP(1.0, share * atoms(b))
        result = replay(mechanism, pair=MORE, claim=claim)
        assert (result.verdict, result.proof) == (verdict, verdict == "REFUTED")


def test_few_values_are_those_of_all_ways():
    u, k = Root(0, "uniform"), Root(1, "lattice", Lattice.among((1, 2), (0.3, 0.7)))
    lies = Applied("less", (u, Number(0.4)))
    values, p = few_values(Applied("multiply", (lies, k)))
    found = {value: p[values == value].sum() for value in (0.0, 1.0, 2.0)}
    assert found == pytest.approx({0.0: 0.6, 1.0: 0.12, 2.0: 0.28})
    assert few_values(Applied("multiply", (u, k))) is None  # of the number itself
    assert few_values(Applied("floor", (Applied("log", (u,)),))) is None  # no end


def by_sides(x, rng):
    u = rng.random() - 0.5
    return x.sum() + (math.log(1 + 2 * u) if u < 0 else -math.log(1 - 2 * u))


def staircase(x, rng):
    gamma, b = 1 / (1 + math.exp(0.5)), math.exp(-1.0)
    sign, place, u = rng.choice([-1, 1]), rng.geometric(1 - b) - 1, rng.random()
    if rng.random() < gamma / (gamma + (1 - gamma) * b):
        return x.sum() + sign * (place + gamma * u)
    return x.sum() + sign * (place + gamma + (1 - gamma) * u)


def shares(x, rng):
    total = x.sum()
    for _ in range(4):
        total += rng.gamma(0.25) - rng.gamma(0.25)
    return total


def two_coins(x, rng):
    return [int(bit) if rng.random() < 0.5 else rng.integers(0, 2) for bit in x]


def many_bits(x, rng):
    truth = np.repeat(x[:, np.newaxis], 12, axis=1) > 0
    return np.where(rng.random(truth.shape) < 0.6, truth, ~truth)


def unary(x, rng):  # what one bit loses and another gains is not the same
    hot = np.eye(4)[x.astype(int)] > 0
    u = rng.random(hot.shape)
    return np.where(hot, u < 1 / 2, u < 1 / (math.e + 1)).astype(int)


def by_shift(x, rng):
    lie = rng.random(len(x)) >= math.e / (math.e + 3)
    return (x.astype(int) + lie * rng.integers(1, 4, size=len(x))) % 4


def in_turn(x, rng):
    votes = np.array([x.sum(), len(x) - x.sum()])
    for k in rng.permutation(2):
        if rng.random() < math.exp((votes[k] - votes.max()) / 2):
            return int(k)
    return 0


@pytest.mark.parametrize(
    ("mechanism", "pair", "loss"),
    [
        (by_sides, MORE, 1.0),
        (staircase, MORE, 1.0),
        (staircase, Pair([], [0.5]), 1.0),  # far out its steps end at whole numbers
        (shares, MORE, 1.0),
        (two_coins, BITS, math.log(3)),
        (many_bits, BITS, 12 * math.log(1.5)),
        (unary, BITS, 1.0),
        (by_shift, BITS, 1.0),
        (in_turn, BITS, None),
    ],
)
def test_the_loss_is_that_of_the_law(mechanism, pair, loss):
    if loss is None:  # votes of 2 to 1, and of 1 to 2: the law of Ding et al. 2021
        p = 1 - math.exp(-0.5) / 2
        loss = math.log(p / (1 - p))
    kept = replay(mechanism, pair=pair, claim=PureDP(loss), budget=20)
    assert (kept.verdict, kept.loss) == ("NOT_REFUTED", pytest.approx(loss, abs=1e-5))
    assert replay(mechanism, pair=pair, claim=PureDP(0.98 * loss), budget=20).proof


@pytest.mark.parametrize(
    ("delta", "verdict"), [(1e-3, "NOT_REFUTED"), (4e-4, "REFUTED")]
)
def test_a_word_of_one_row_passes_the_threshold_with_delta(delta, verdict):
    def words(x, rng):
        found, counts = np.unique(x, return_counts=True)
        noisy = counts + rng.laplace(0, 1.0, len(found))
        kept = noisy >= 1 - math.log(2 * 5e-4)  # which noise is with 5e-4
        return found[kept], noisy[kept]

    pair = Pair([1.0, 1.0], [1.0, 1.0, 3.0])
    assert replay(words, pair=pair, claim=ApproxDP(1.0, delta)).verdict == verdict


def geometric_words(x, rng, unit=1):
    """Return words whose noisy count is above 4, an integer as Python has them."""
    found, counts = np.unique(x, return_counts=True)
    noise = [
        rng.geometric(1 - 1 / math.e) - rng.geometric(1 - 1 / math.e) for _ in found
    ]
    noisy = {
        word: unit * (k + z) for word, k, z in zip(found, counts, noise, strict=True)
    }
    return {word: int(n) for word, n in noisy.items() if n > 4 * unit}


@pytest.mark.parametrize(
    ("more", "unit", "verdict"),
    [(1.0001, 1, "NOT_REFUTED"), (0.99, 1, "REFUTED"), (1.5, 0.1, "NOT_FOLLOWED")],
)
def test_a_threshold_of_whole_numbers_is_passed_with_delta(more, unit, verdict):
    # 0.1 * 4 is compared with multiples of 0.1 in floats: rounding decides.
    delta = more * math.exp(-4) / (1 + math.exp(-1))
    result = replay(
        partial(geometric_words, unit=unit),
        pair=Pair([1.0, 1.0], [1.0, 1.0, 3.0]),
        claim=ApproxDP(1.0, delta),
        budget=8,
    )
    assert (result.verdict, result.proof) == (verdict, verdict == "REFUTED")


@pytest.mark.parametrize(("end", "verdict"), [(len, "REFUTED"), (lambda x: 9, "NOT_")])
def test_a_cut_that_is_converted_first_is_exact(end, verdict):
    def cut(x, rng):
        noisy = float(x.sum() + rng.laplace())
        return min(max(0.0, noisy), float(end(x)))

    result = replay(cut, pair=MORE, claim=PureDP(1.0))
    assert (result.verdict, result.samples) == (verdict.replace("_", "_REFUTED"), 0)


@pytest.mark.parametrize("width", [1e-5, 5e-5, 1e-3])
@pytest.mark.parametrize("place", [0.2571, 0.5, 0.671459])
def test_no_piece_of_a_comparison_is_missed(width, place):
    # Twice as probable on D', wherever it lies.
    def narrow(x, rng):
        return int(np.abs(rng.random() - place) < width * len(x))

    result = replay(narrow, pair=MORE, claim=PureDP(0.7))
    assert result.verdict == "NOT_REFUTED"
    assert result.loss == pytest.approx(math.log(2), rel=1e-6)
    assert replay(narrow, pair=MORE, claim=PureDP(0.69)).proof


def test_steps_within_one_step_of_a_grid_are_all_found():
    table = tuple(0.4 + 1e-6 * np.arange(30))
    place = Applied("searchsorted", (Number(table), Number("left"), Root(0, "uniform")))
    values, p = few_values(place)
    assert values.tolist() == list(range(31))
    assert p == pytest.approx([0.4, *[1e-6] * 29, 0.6 - 29e-6], rel=1e-6)
    u = Applied("multiply", (Number(50.0), Root(0, "uniform")))
    odd = Applied("less", (Applied("remainder", (u, Number(1.0))), Number(0.25)))
    values, p = few_values(odd)
    assert p[values == 1].sum() == pytest.approx(0.25, rel=1e-9)
    assert few_values(Applied("less", (Applied("cos", (u,)), Number(0.0)))) is None


def turned(draw, data, less):
    """Return a draw of whole numbers, or what is as good: turned on, by the data."""
    return (draw + 1) % less if len(data) > 1 else draw


def looked_at_after_that(data, rng):
    draw = turned(int(rng.integers(4)), data, 4)
    return int(draw > 1) if draw > 0 else 5


def numbers_of_an_array(data, rng):
    draws = turned(rng.integers(0, 4, size=3), data, 4)
    return [int(each > 1) for each in draws] if (draws > 0).all() else [5]


@pytest.mark.parametrize("private", [looked_at_after_that, numbers_of_an_array])
def test_a_function_of_a_draw_goes_by_what_is_left_of_that(private):
    """Of which the code saw another function, and not by what it was when made."""
    held = replay(private, pair=MORE, claim=PureDP(0.001), budget=2)
    assert (held.verdict, held.explored) == ("NOT_REFUTED", None)
    assert held.loss == pytest.approx(0, abs=1e-9)


def test_a_release_that_one_side_alone_gives_is_not_lost():
    def never_both(data, rng):
        draw = (len(data) + int(rng.integers(4))) % 4
        other = len(data) + int(rng.integers(3)) if draw > 0 else 0
        return [draw > 1, other > 3]

    result = replay(never_both, pair=MORE, claim=PureDP(19.0), budget=2)
    assert (result.verdict, result.loss) == ("REFUTED", math.inf)
