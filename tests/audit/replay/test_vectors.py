"""A radius times a direction: laws of vectors by their densities, and near misses."""

import math
from functools import partial

import numpy as np
import pytest
from scipy import integrate, special, stats

from dpaudit import ApproxDP, Pair, PureDP
from dpaudit.audit import replay
from dpaudit.audit.replay.execute.executor import execute
from dpaudit.audit.replay.laws.comparison import compare, losses

PAIR = Pair([[0.5, 0.5, 0.0]], [[0.5, 0.5, 0.0], [0.6, 0.0, 0.8]])
LARGEST = 0.8


def normed(data, rng):
    v = rng.normal(0, 2.0, size=3)
    v /= np.linalg.norm(v)
    return data.sum(axis=0) + rng.gamma(3, 2.0) * v


def by_squares(data, rng):
    v = rng.standard_normal(3)
    return data.sum(axis=0) - rng.gamma(3, 2.0) * v / np.sqrt((v**2).sum())


def by_product(data, rng):
    v = 3 * rng.standard_normal(3)
    return data.sum(axis=0) + v / np.sqrt(v @ v) * (2 * rng.gamma(3))


def by_ratio(data, rng):
    v = rng.normal(size=3)
    return data.sum(axis=0) + v * (rng.gamma(3, 2.0) / math.sqrt((v**2).sum()))


def of_exponentials(data, rng):
    v = rng.normal(size=(1, 3))
    v = v / np.linalg.norm(v, axis=1, keepdims=True)
    return data.sum(axis=0) + (rng.exponential(2.0, size=3).sum() * v)[0]


def by_sum(data, rng):
    v = [rng.normal() for _ in range(3)]
    radius = sum(rng.exponential(2.0) for _ in range(3))
    return data.sum(axis=0) + radius * np.array(v) / sum(x * x for x in v) ** 0.5


def by_distance(data, rng):
    v = stats.norm.rvs(size=3, random_state=rng)
    radius = stats.gamma.rvs(3, scale=2.0, random_state=rng)
    return data.sum(axis=0) + radius * v / math.dist([0.0, 0.0, 0.0], v)


def cube(data, rng):
    return data.sum(axis=0) + rng.gamma(4, 2.0) * rng.uniform(-1, 1, size=3)


def on_sphere(x):
    """Return the density of a radius of scale 2 times a direction, at a vector."""
    r, area = np.linalg.norm(x), 2 * math.pi**1.5 / special.gamma(1.5)
    return stats.gamma(3, scale=2.0).pdf(r) / (area * r**2)


def in_cube(x):
    """Return that of a radius times a point of a cube, by an integral over radii."""
    h = stats.gamma(4, scale=2.0).pdf
    return integrate.quad(lambda r: h(r) / (2 * r) ** 3, np.abs(x).max(), math.inf)[0]


WAYS = [
    *((each, on_sphere) for each in (normed, by_squares, by_product, by_sum)),
    *((each, on_sphere) for each in (by_ratio, of_exponentials)),
    (by_distance, on_sphere),
    (cube, in_cube),
]


@pytest.mark.parametrize(("mechanism", "density"), WAYS)
def test_losses_are_those_of_the_density(mechanism, density):
    here, there = (execute(mechanism, x, 0) for x in (PAIR.data, PAIR.neighbour))
    assert here.open
    mean, other = (x.sum(axis=0) for x in (PAIR.data, PAIR.neighbour))
    releases = here.law.sample(400, rng=np.random.default_rng(1))
    found = losses(here.law, there.law, releases)
    wanted = [math.log(density(y - mean) / density(y - other)) for y in releases[:20]]
    assert found[:20] == pytest.approx(wanted, rel=1e-6, abs=1e-9)
    supremum = compare(here.law, there.law).supremum
    length = 1.0 if density is on_sphere else LARGEST
    assert supremum == pytest.approx(length / 2)
    assert np.abs(found).max() <= supremum + 1e-12
    far = losses(here.law, there.law, mean - 50 * (other - mean)[np.newaxis])
    assert far == pytest.approx([supremum])
    # Kolmogorov's test, false alarm 1e-4: the radius of what is drawn.
    norms = np.linalg.norm(releases - mean, 2 if density is on_sphere else np.inf, 1)
    assert stats.kstest(norms, stats.gamma(3, scale=2.0).cdf).pvalue > 1e-4


def reused_radius(data, rng):
    radius, total = rng.gamma(3, 9.0), data.sum(axis=0)
    v, w = rng.normal(size=(2, 3))
    one, two = (radius * (each / np.linalg.norm(each)) for each in (v, w))
    return total + one, total + two


def reused_direction(data, rng):
    v = rng.normal(size=3)
    u = v / np.linalg.norm(v)
    total = data.sum(axis=0)
    return total + rng.gamma(3, 9.0) * u, total + rng.gamma(3, 9.0) * u


def shown_direction(data, rng):
    v = rng.normal(size=3)
    u = v / np.linalg.norm(v)
    return data.sum(axis=0) + rng.gamma(3, 9.0) * u, u


def other_norm(data, rng):
    v, w = rng.normal(size=3), rng.normal(size=3)
    return data.sum(axis=0) + rng.gamma(3, 9.0) * v / np.linalg.norm(w)


def other_shape(data, rng):
    v = rng.normal(size=3)
    return data.sum(axis=0) + rng.gamma(2.5, 9.0) * v / np.linalg.norm(v)


def stretched(data, rng):
    v = rng.normal(size=3) * np.array([1.0, 1.0, 2.0])
    return data.sum(axis=0) + rng.gamma(3, 9.0) * v / np.linalg.norm(v)


def some_entries(data, rng):
    return normed(data, rng)[:2]


@pytest.mark.parametrize(
    "mechanism",
    [
        *(reused_radius, reused_direction, shown_direction),
        *(other_norm, other_shape, stretched),
    ],
)
def test_near_misses_have_no_such_law(mechanism):
    for data in (PAIR.data, PAIR.neighbour):
        trace = execute(mechanism, data, 0)
        assert not (trace.open and trace.law.followed)


@pytest.mark.parametrize(
    ("mechanism", "claim", "verdict"),
    [
        (normed, PureDP(0.5), "NOT_REFUTED"),
        (normed, PureDP(0.49), "REFUTED"),
        (cube, PureDP(0.4), "NOT_REFUTED"),
        (cube, PureDP(0.39), "REFUTED"),
        (some_entries, PureDP(0.5), "NOT_REFUTED"),
        (normed, ApproxDP(0.1, 1e-3), "REFUTED"),
    ],
)
def test_claims_are_held_to_the_loss_of_the_vector(mechanism, claim, verdict):
    result = replay(mechanism, pair=PAIR, claim=claim)
    assert result.verdict == verdict
    assert result.proof == (verdict == "REFUTED" and isinstance(claim, PureDP))


PLANE = Pair([[0.5, 0.5]], [[0.5, 0.5], [0.6, 0.8]])


def in_turn(x, rng):
    t, r, place = rng.uniform(-math.pi, math.pi), rng.gamma(2, 2.0), x.sum(axis=0)
    return place[0] + r * math.cos(t), place[1] + r * math.sin(t)


def at_once(x, rng, turn=2 * math.pi, shape=2, phase=0.0):
    t, r = turn * rng.random(), 2 * rng.gamma(shape)
    return x.sum(axis=0) + r * np.array([np.cos(t), np.sin(t + phase)])


def in_columns(x, rng):
    t, r = rng.uniform(0, 2 * np.pi, 1), rng.exponential(2.0, (1, 2)).sum(axis=1)
    return x.sum(axis=0) + np.column_stack([np.cos(t) * r, np.sin(t) * r])[0]


@pytest.mark.parametrize("mechanism", [in_turn, at_once, in_columns])
def test_an_angle_and_a_radius_are_planar_laplace_noise(mechanism):
    here, there = (execute(mechanism, x, 0) for x in (PLANE.data, PLANE.neighbour))
    releases = here.law.sample(20, rng=np.random.default_rng(1))
    lengths = [
        np.linalg.norm(releases - x.sum(axis=0), axis=1) / 2
        for x in (PLANE.neighbour, PLANE.data)
    ]
    wanted = lengths[0] - lengths[1]  # of densities as e^(-|y - x| / 2)
    assert losses(here.law, there.law, releases) == pytest.approx(wanted, abs=1e-9)
    for epsilon, verdict in ((0.5, "NOT_REFUTED"), (0.49, "REFUTED")):
        assert replay(mechanism, pair=PLANE, claim=PureDP(epsilon)).verdict == verdict


@pytest.mark.parametrize("near", [{"turn": math.pi}, {"shape": 1.5}, {"phase": 0.1}])
def test_another_angle_or_radius_is_no_such_noise(near):
    trace = execute(partial(at_once, **near), PLANE.data, 0)
    assert not (trace.open and trace.law.followed)


ANGLES = np.array([0.5]), np.array([3.0])
COUNTS = np.array([3.0, 2.0, 4.0]), np.array([3.0, 3.0, 3.0])


def around(x, rng):
    return 90 / math.pi * ((2 * x - 2 * rng.vonmises(0.0, 0.7, size=1)) % (4 * math.pi))


def shares(x, rng):
    drawn = np.array([2 * rng.gamma(each) for each in x])
    return drawn / np.sum(drawn)


@pytest.mark.parametrize(
    ("mechanism", "sides", "law"),
    [
        (lambda x, rng: rng.vonmises(x, 0.7), ANGLES, lambda x: stats.vonmises(0.7, x)),
        (lambda x, rng: rng.vonmises(0.0, x), ANGLES, stats.vonmises),
        (lambda x, rng: rng.dirichlet(x), COUNTS, stats.dirichlet),
        (shares, COUNTS, stats.dirichlet),
    ],
)
def test_draws_whose_parameters_hold_data_have_their_densities(mechanism, sides, law):
    one, two = (execute(mechanism, x, 0) for x in sides)
    assert (one.open, one.law.followed) == (True, True)
    # Null: the first number has that law. False-alarm probability 1e-3 each; seeded.
    sample = one.law.sample(400, rng=np.random.default_rng(1))
    drawn = np.stack([execute(mechanism, sides[0], 1 + k).value for k in range(200)])
    assert stats.ks_2samp(sample[:, 0], drawn[:, 0]).pvalue > 1e-3
    wanted = [law(x).logpdf(sample.T).ravel() for x in sides]
    found = losses(one.law, two.law, sample)
    assert found == pytest.approx(wanted[0] - wanted[1], abs=1e-9)
    if sides is ANGLES:
        grid = np.linspace(-math.pi, math.pi, 20_001)[:, np.newaxis]
        seen, compared = losses(one.law, two.law, grid), compare(one.law, two.law)
        ways = compared.suprema[0], compared.back[0]
        assert ways == pytest.approx((seen.max(), -seen.min()), rel=1e-6, abs=1e-9)
        assert compared.supremum == max(ways)
    else:
        assert compare(one.law, two.law).supremum == math.inf


def on_the_line(x, rng):
    return np.cos(x + rng.vonmises(0.0, 0.7, size=1))


def of_half_a_circle(x, rng):
    return (x + rng.vonmises(0.0, 0.7, size=1)) % math.pi


def turned_before(x, rng):
    return (x + rng.vonmises(0.3, 0.7, size=1)) % (2 * math.pi)


def test_angles_are_followed_modulo_the_circle_alone():
    one, two = (execute(around, x, 0) for x in ANGLES)
    far = 2 * 0.7 * abs(math.sin((ANGLES[0] - ANGLES[1]).item() / 2))
    assert compare(one.law, two.law).supremum == pytest.approx(far)
    for hidden in (on_the_line, of_half_a_circle, turned_before):
        pair, claim = Pair(*ANGLES), PureDP(1.5)
        result = replay(hidden, pair=pair, claim=claim, sees="transcript")
        assert result.verdict == "NOT_FOLLOWED", hidden


def test_two_vectors_that_follow_on_each_other_are_told_apart():
    def parts(data, rng):
        one, two = normed(data, rng), normed(data, rng)
        return np.concatenate([one[1:], two[:1], two[1:], one[:1]])

    def mixed(data, rng):
        return np.concatenate([normed(data, rng)[1:], normed(data, rng)[:1]])

    whole, half = (execute(each, PAIR.data, 0) for each in (parts, mixed))
    assert whole.law.known
    assert not half.law.known
    both = compare(whole.law, execute(parts, PAIR.neighbour, 0).law)
    assert both.supremum == pytest.approx(1.0)
