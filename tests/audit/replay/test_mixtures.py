"""Hidden choices and noisy branches: exact mixtures against densities on a grid."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from replay_cases import line_of, rows
from scipy.stats import laplace, norm, poisson

from dpaudit import ApproxDP, Pair, PureDP
from dpaudit.audit import replay
from dpaudit.audit.replay.judge import trees
from dpaudit.audit.replay.laws.by_name import Poisson
from dpaudit.audit.replay.laws.coded import Family
from dpaudit.audit.replay.laws.thresholds import Event, log_joint

Y = np.linspace(-40, 40, 80001)  # with all kinks of all densities
PAIR = Pair(rows(1, 0), rows(1, 0, 1))
ONE = Pair(rows(1, 0), rows(1, 1), "replace-one")
POINTS = Pair(rows(0.2, 0.5, 0.9), rows(0.2, 0.5, 0.1), "replace-one")
ADDED = 0.0, -0.5, -1.0


def total(x):
    return float(np.clip(x, 0, 1).sum())


def sign(x, rng):
    e = rng.exponential()
    return total(x) + (e if rng.random() < 0.5 else -e)


def half_the_noise(x, rng):
    scale = 1.0 if rng.random() < 0.5 else 0.5
    return total(x) + scale * rng.laplace()


def two_scales(x, rng):
    return total(x) + [1.0, 2.0][rng.choice(2, p=[0.3, 0.7])] * rng.laplace()


def sampled_row(x, rng):
    kept = x[:2].sum() + (x[2:].sum() if rng.random() < 0.3 else 0.0)
    return kept + rng.laplace()


def two_coins(x, rng):
    told = [b if rng.random() < 0.75 else rng.random() < 0.4 for b in x.flat]
    return sum(map(float, told)) + rng.laplace(0, 2.0)


def quantile(x, rng):
    ends, height = steps(x)
    k = rng.choice(4, p=height * np.diff(ends))
    return rng.uniform(ends[k], ends[k + 1])


def asks_first(x, rng):
    return total(x) + rng.laplace(0, 2.0) if rng.random() < asked(x) else None


def gate(x, rng):
    if total(x) + rng.laplace(0, 2.0) > 1:
        return total(x) + rng.laplace(0, 2.0)
    return "no"


def sparse_vector(x, rng):
    level = 2 + rng.laplace(0, 2.0)
    answers = (total(x) + add + rng.laplace(0, 4.0) for add in ADDED)
    return next((k for k, answer in enumerate(answers) if answer > level), 3)


def bands(x, rng):
    noisy = total(x) + rng.normal()
    return "high" if noisy > 2 else "mid" if noisy > 1 else "low"


def steps(x):
    ends = np.concatenate([[0.0], np.sort(x.ravel()), [1.0]])
    height = np.exp(-np.abs(np.arange(4) - 1.5) / 2)
    return ends, height / (height @ np.diff(ends))


def asked(x):
    return 1 / (1 + math.exp(len(x) - 3))


def noise(x, scale=1.0):
    return laplace.pdf(Y, total(x), scale)


def told(x):
    yes = [0.85 if bit else 0.1 for bit in x.flat]
    return sum(
        (yes[0] if a else 1 - yes[0])
        * (yes[1] if b else 1 - yes[1])
        * laplace.pdf(Y, a + b, 2)
        for a, b in product((0, 1), repeat=2)
    )


def between(x):
    ends, height = steps(x)
    y = Y + 5e-4  # the middle of a cell
    return height @ [(low < y) & (y < high) for low, high in pairwise(ends)]


def first_above(x):
    below = [laplace.cdf(2 + Y - total(x) - add, scale=4) for add in ADDED]
    each = [np.prod(below[:k], axis=0) * (1 - below[k]) for k in range(3)]
    return np.array([*each, np.prod(below, axis=0)]) @ laplace.pdf(Y, scale=2) / 1000


# Of a mechanism: the probabilities of words, the density on the grid, where it errs.
LAWS = {
    sign: (PAIR, lambda x: ([], noise(x)), "e if rng.random"),
    half_the_noise: (PAIR, lambda x: ([], noise(x) + noise(x, 0.5)), "rng.laplace"),
    two_scales: (PAIR, lambda x: ([], 3 * noise(x) + 7 * noise(x, 2)), "rng.laplace"),
    sampled_row: (
        PAIR, lambda x: ([], 7 * noise(x[:2]) + 3 * noise(x)), "rng.laplace"
    ),
    two_coins: (ONE, lambda x: ([], told(x)), "rng.laplace"),
    quantile: (POINTS, lambda x: ([], between(x)), ""),
    asks_first: (PAIR, lambda x: ([1 - asked(x)], asked(x) * noise(x, 2)), ""),
    gate: (
        PAIR,
        lambda x: (
            [laplace.cdf(1 - total(x), scale=2)],
            laplace.sf(1 - total(x), scale=2) * noise(x, 2),
        ),
        "",
    ),
    sparse_vector: (PAIR, lambda x: (first_above(x), 0 * Y), "answer > level"),
    bands: (
        PAIR, lambda x: (np.diff(norm.cdf([-9, 1, 2, 99], total(x))), 0 * Y), "> 2"
    ),
}  # fmt: skip


@pytest.mark.parametrize("mechanism", LAWS)
def test_the_loss_and_the_delta_of_a_mixture_are_exact(mechanism):
    pair, law, piece = LAWS[mechanism]
    p, q = (np.concatenate(law(x)) for x in (pair.data, pair.neighbour))
    both = (p > 0) & (q > 0)
    loss = float(np.abs(np.log(p[both] / q[both])).max())
    kept = replay(mechanism, pair=pair, claim=PureDP(loss * 1.0001))
    assert (str(kept.verdict), kept.findings) == ("NOT_REFUTED", ())
    broken = replay(mechanism, pair=pair, claim=PureDP(loss * 0.9999))
    assert (str(broken.verdict), broken.proof) == ("REFUTED", True), str(broken)
    assert broken.loss == pytest.approx(loss, rel=2e-5)
    assert piece in line_of(broken.findings[0])
    words = len(p) - len(Y)
    mass = np.where(np.arange(len(p)) < words, 1.0, 1e-3)
    mass[words:] *= (1 - p[:words].sum()) / max(p[words:].sum() * 1e-3, 1e-9)
    factor = math.exp(loss / 2)
    delta = max((np.maximum(a - factor * b, 0) @ mass) for a, b in ((p, q), (q, p)))
    for by, refuted in ((1.004, False), (0.99, True)):
        found = replay(mechanism, pair=pair, claim=ApproxDP(loss / 2, by * delta))
        assert (found.refuted, found.proof) == (refuted, refuted)


def test_no_mixture_of_mechanisms_that_keep_a_claim_is_refuted():
    """Noise of scale 2 or more, and choices that lose half: at 1, whatever the seed."""
    for seed in range(5):
        draw = np.random.default_rng(seed)
        weights, scales = draw.random(3) + 0.01, 2 + 3 * draw.random(3)
        size = int(draw.integers(1, 4))

        def mechanism(x, rng, weights=weights, scales=scales, size=size):
            p = weights * np.exp(np.array([0.0, 0.25, -0.25]) * total(x))
            k = int(rng.choice(3, p=p / p.sum()))
            noise = (rng.laplace, rng.logistic, rng.laplace)[k](0, scales[k], size)
            y = np.append(total(x), np.zeros(size - 1)) + noise
            return y if rng.random() < 0.3 else -y

        found = replay(mechanism, pair=PAIR, claim=PureDP(1.0), budget=2)
        assert not found.refuted, (seed, str(found))
        assert found.loss <= 1.0


def test_independent_signs_of_several_numbers_lose_what_each_does():
    def mechanism(x, rng):
        signed = [e if rng.random() < 0.5 else -e for e in rng.exponential(2.0, 3)]
        return [total(x) + e for e in signed]

    kept = replay(mechanism, pair=PAIR, claim=PureDP(1.5001))
    assert (str(kept.verdict), kept.loss) == ("NOT_REFUTED", pytest.approx(1.5))
    assert replay(mechanism, pair=PAIR, claim=PureDP(1.4999)).proof


def test_a_loop_that_draws_until_something_holds_is_a_tree():
    """The exponential mechanism by rejection, and Laplace noise of a random scale."""

    def rejecting(x, rng):
        while True:
            k = rng.choice(2, p=[0.5, 0.5])
            if rng.random() < math.exp(-k * total(x) / 2):
                return int(k)

    def stopping(x, rng):
        scale = 1
        while rng.random() < 0.3:
            scale += 1
        return total(x) + rng.laplace(0, scale)

    p, q = ([1.0, math.exp(-m / 2)] / np.array(1 + math.exp(-m / 2)) for m in (1, 2))
    b = np.arange(1, 60)
    w = 0.7 * 0.3 ** (b - 1) / b
    losses = np.abs(np.log(p / q)).max(), math.log(w.sum() / (w @ np.exp(-1 / b)))
    for mechanism, loss in zip((rejecting, stopping), losses, strict=True):
        kept = replay(mechanism, pair=PAIR, claim=PureDP(loss * 1.001))
        assert (str(kept.verdict), kept.findings) == ("NOT_REFUTED", ())
        assert kept.loss == pytest.approx(loss, rel=1e-3)
        assert replay(mechanism, pair=PAIR, claim=PureDP(loss * 0.99)).proof


def test_noise_that_is_not_seen_beside_a_branch_refutes_nothing():
    """It comes out alike in all 26 executions with probability below 1e-7; seeded."""
    hidden = np.random.Generator(np.random.PCG64(1)).random(10**5).tolist()

    def mechanism(x, rng):
        scale = 1.0 if rng.random() < 0.3 else 2.0
        return len(x) + (hidden.pop() > 0.5) + rng.laplace(0, scale)

    assert not replay(mechanism, pair=PAIR, claim=PureDP(0.2), budget=2).refuted


def test_gaussian_noise_of_sampled_rows_keeps_its_claim_and_breaks_a_pure_one(
    monkeypatch,
):
    def mechanism(x, rng, ways=1):
        kept = x[[bool(rng.random() < 0.4) for _ in range(ways * len(x))][: len(x)]]
        return kept.sum() + rng.normal(0, 2.0, 2)

    assert replay(mechanism, pair=PAIR, claim=PureDP(1.0)).proof
    found = replay(mechanism, pair=PAIR, claim=ApproxDP(1.0, 0.05))
    assert str(found.verdict) == "NOT_REFUTED"
    options = {"pair": PAIR, "claim": PureDP(0.1), "budget": 2}
    # As with three flips of each row, and as many ways as are usual.
    monkeypatch.setattr(trees, "_MOST_KEPT", 16)
    monkeypatch.setattr(trees, "_MOST_OUTCOMES", 8)
    many = replay(lambda x, rng: mechanism(x, rng, 2), **options)
    assert (str(many.verdict), many.proof) == ("NOT_FOLLOWED", False)


@pytest.mark.parametrize("name", ["laplace", "gaussian", "exponential", "uniform"])
def test_comparisons_that_share_a_threshold_have_one_probability(name):
    rng, n, family = np.random.default_rng(3), 400_000, int(Family[name.upper()])
    draw = {"gaussian": rng.normal, "uniform": rng.random}.get(name)
    z = (draw or getattr(rng, name))(size=(3, n))
    events, held = [], np.ones(n, dtype=bool)
    for k, by in ((0, 1), (1, -1), (0, -1)):
        level, slope = rng.normal(size=2) / 2
        event = Event(level, {k: 1.0, 2: slope}, {k: family, 2: family})
        events.append(event if by > 0 else event.opposite)
        held &= by * (level + z[k] + slope * z[2]) > 0
    p = math.exp(log_joint(events))
    # Off by 5 deviations with probability 6e-7; seeded.
    assert abs(held.mean() - p) <= 5 * math.sqrt(p * (1 - p) / n) + 1e-12


def test_no_noise_and_noise_on_a_lattice_share_atoms():
    # Zero or not, a sign, and a geometric size: the discrete Laplace law.
    def discrete(x, rng):
        alpha = np.exp(-1.0)
        if rng.random() < (1 - alpha) / (1 + alpha):
            return float(len(x))
        size = rng.geometric(1 - alpha)
        return len(x) + (size if rng.random() < 0.5 else -size)

    pair = Pair([[0.2]], [[0.2], [0.9]])
    result = replay(discrete, pair=pair, claim=PureDP(1.0))
    assert result.verdict == "NOT_REFUTED"
    assert result.loss == pytest.approx(1.0, abs=1e-9)
    assert replay(discrete, pair=pair, claim=PureDP(0.99)).proof


@pytest.mark.parametrize(
    ("mechanism", "told"),
    [
        (
            lambda x, rng: 7 * len(x) if rng.random() < 0.7 else rng.geometric(0.5),
            "0 with noise in steps of 1 on D, and 21 without noise on D'",
        ),
        (
            lambda x, rng: (rng.random() < 0.3) * len(x) + 0.2 * rng.laplace(),
            "2 with noise of scale 0.2 on D, and 3 with noise of scale 0.2 on D'",
        ),
        (lambda x, rng: len(x) if rng.random() < 0.3 else 0, "one release has"),
        (
            lambda x, rng: (len(x) if rng.random() < 0.3 else 0, rng.laplace()),
            "one kind of release has",
        ),
    ],
)
def test_a_finding_says_what_is_noise_and_what_is_none(mechanism, told):
    result = replay(mechanism, pair=PAIR, claim=PureDP(1.0))
    assert told in result.findings[0].message
    assert result.proof


def test_claims_with_a_delta_are_tested_where_no_cells_are_known():
    def angle(x, rng):
        kappa = 2.0 * len(x)
        return rng.vonmises(0.0, kappa) if rng.random() < 0.5 else 9.0

    pair = Pair([[0.0]], [[0.0], [1.0]])
    for epsilon, holds in ((0.1, False), (4.0, True)):
        result = replay(angle, pair=pair, claim=ApproxDP(epsilon, 1e-5))
        assert (result.refuted, result.proof) == (not holds, False)
        assert result.loss == pytest.approx(3.601, abs=1e-3)


def whole(expression):
    """Return a mechanism that releases this of data, with the parts c and n."""
    return lambda data, rng: eval(
        expression, {"rng": rng, "c": rng.random(), "n": int(data.sum()), "max": max}
    )


@pytest.mark.parametrize(
    ("released", "loss"),
    [
        # The larger mean, or the slower fall, is far more probable where neither is.
        ("rng.poisson(2.0) if c < 0.5 else rng.poisson(2.0 + n / 10)", math.inf),
        ("rng.poisson(2.0 + n / 10) if c < 0.5 else -1", math.inf),
        ("rng.poisson(2.0 + n / 10) if c < 0.5 else rng.integers(5)", math.inf),
        ("rng.geometric(0.5) if c < 0.5 else rng.geometric(0.3 + n / 20)", math.inf),
        ("max(rng.poisson(2.0 + n / 10), 2)", math.inf),
        ("max(rng.geometric(0.3 + n / 20), 2)", math.inf),
        # Far out the component that falls more slowly is all there is.
        ("rng.poisson(2.0) if c < 0.4 + n / 10 else rng.poisson(3.0)", math.log(5 / 4)),
        ("rng.geometric(0.5) if c < n / 4 else rng.geometric(0.4)", math.log(3 / 2)),
        (
            "rng.binomial(90, 0.5 if c < 0.5 else n / 4)",
            math.log((1.5**90 + 1) / 2),
        ),
    ],
)
def test_losses_on_lattices_are_exact_far_out(released, loss):
    result = replay(whole(released), pair=PAIR, claim=PureDP(50.0))
    assert result.loss == pytest.approx(loss, rel=1e-5)
    assert result.proof == (loss == math.inf)


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e8, 1e12])
def test_rounded_noise_of_any_scale_loses_what_it_loses(scale):
    def mechanism(x, rng):
        value = scale * x.sum() if rng.random() < 0.5 else 0.0
        return float(np.rint(value + rng.laplace(0.0, scale)))

    pair, loss = Pair(rows(0), rows(0, 1)), math.log((1 + math.e) / 2)
    for claim, verdict in ((loss - 1e-3, "REFUTED"), (loss + 1e-3, "NOT_REFUTED")):
        found = replay(mechanism, pair=pair, claim=PureDP(claim), budget=2)
        assert found.verdict == verdict
        assert found.loss == pytest.approx(loss, rel=1e-6)


def test_tails_of_which_little_is_known_settle_no_pure_claim():
    """The negative binomial laws of sizes 3 and 4 lie log(k/3 + 1) apart, and more."""
    released = "rng.negative_binomial(3 if c < 0.5 else 2 + n, 0.5)"
    result = replay(whole(released), pair=PAIR, claim=PureDP(3.0))
    assert result.verdict == "NOT_FOLLOWED"
    assert "far out" in result.findings[0].message
    lower = replay(whole(released), pair=PAIR, claim=PureDP(0.5))
    assert lower.proof


@pytest.mark.parametrize(
    "held",
    [
        lambda k: k > 2,
        lambda k: k % 2 == 1,
        lambda k: (k == 1) | (k > 3),
        lambda k: k < 3,
    ],
)
def test_a_poisson_draw_of_which_something_is_known(held):
    k = np.arange(60.0)
    p = np.where(held(k), poisson(2.0).pmf(k), 0.0)
    law = Poisson.of_mean(2.0).among_those(held)
    found = np.exp(law.log_probability(k))
    np.testing.assert_allclose(found, p / p.sum(), rtol=1e-9, atol=1e-300)
    # With gaps the tail is cut, and no supremum is taken of such a table.
    far = law.log_probability(np.array([400.0]))[0]
    assert law.exact <= ((far > -math.inf) == bool(held(np.array([400.0]))[0]))
