"""Laws of declared primitives, each held to sums and integrals of its own."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import laplace

from dpaudit import (
    ApproxDP,
    GaussianDP,
    InputError,
    Profile,
    PureDP,
    ZeroConcentratedDP,
)
from dpaudit.audit.replay.declare.declarations import KERNELS, TrustedLaw
from dpaudit.audit.replay.laws.comparison import compare, loss
from dpaudit.audit.replay.laws.composition import Composition
from dpaudit.audit.replay.laws.non_affine import discrete_gaussian_log_sum

WHOLE = np.arange(-300, 301)


def discrete(name, x, scale, low=-math.inf, high=math.inf):
    """Return the probabilities of discrete noise as a dictionary, by adding up."""
    weights = {
        "discrete-laplace": lambda k: np.exp(-np.abs(k) / scale),
        "discrete-gaussian": lambda k: np.exp(-(k**2) / (2 * scale**2)),
    }[name](WHOLE)
    values, places = np.unique(np.clip(x + WHOLE, low, high), return_inverse=True)
    added = np.bincount(places, weights / weights.sum())
    return dict(zip(values.tolist(), added.tolist(), strict=True))


def gaps(p, q):
    """Return the log-ratios of two dictionaries, where both are above rounding."""
    both = [y for y in p if p[y] > 1e-200 and q.get(y, 0.0) > 1e-200]
    return {y: math.log(p[y] / q[y]) for y in both}


@settings(max_examples=15)
@given(
    st.sampled_from(["discrete-laplace", "discrete-gaussian"]),
    st.integers(-3, 3),
    st.integers(-3, 3),
    st.floats(0.3, 4),
    st.floats(0.3, 4),
)
def test_losses_on_a_lattice_are_log_ratios_of_sums(name, x, x2, scale, other):
    one, two = KERNELS[name](x, scale), KERNELS[name](x2, other)
    wanted = gaps(discrete(name, x, scale), discrete(name, x2, other))
    assert wanted
    for y in sorted(wanted, key=abs)[:12]:
        found = loss(one, two, np.array([y]))
        assert found == pytest.approx(wanted[y], abs=1e-9)


@settings(max_examples=25)
@given(
    st.integers(-6, 6),
    st.integers(-6, 6),
    st.floats(0.3, 4),
    st.sampled_from([-math.inf, -4, 0, 0.5]),
    st.sampled_from([1, 2, 3.5, 5, math.inf]),
    st.sampled_from([0.0, 0.5]),
)
def test_the_supremum_of_clamped_discrete_noise_is_the_largest_log_ratio(
    x, x2, scale, low, high, off
):
    name = "discrete-laplace"
    one, two = (KERNELS[name](each + off, scale, low, high) for each in (x, x2))
    p, q = (discrete(name, each + off, scale, low, high) for each in (x, x2))
    wanted = gaps(p, q)
    compared = compare(one, two)
    assert compared.supremum == pytest.approx(max(map(abs, wanted.values())), abs=1e-9)
    assert compared.supremum <= abs(x - x2) / scale + 1e-9
    for y in list(wanted)[:20]:
        assert loss(one, two, np.array([y])) == pytest.approx(wanted[y], abs=1e-9)


@settings(max_examples=25)
@given(
    st.floats(-6, 6),
    st.floats(-6, 6),
    st.floats(0.3, 4),
    st.sampled_from([-math.inf, -4.0, 0.0]),
    st.sampled_from([0.5, 1.0, 5.0, math.inf]),
)
def test_clamped_laplace_noise_against_tails_and_a_grid(x, x2, scale, low, high):
    one, two = (KERNELS["laplace"](each, scale, low, high) for each in (x, x2))
    p, q = laplace(x, scale), laplace(x2, scale)
    ends = [np.clip(end, -80, 80) for end in (low, high)]
    inside = np.linspace(*ends, 2001)[1:-1]
    wanted = dict(zip(inside, p.logpdf(inside) - q.logpdf(inside), strict=True))
    if np.isfinite(low):
        wanted[low] = p.logcdf(low) - q.logcdf(low)
    if np.isfinite(high):
        wanted[high] = p.logsf(high) - q.logsf(high)
    compared = compare(one, two)
    # Between points of the grid the loss moves by 2/scale a unit at most.
    room = 2 / scale * (ends[1] - ends[0]) / 2000 + 1e-9
    largest = max(map(abs, wanted.values()))
    assert largest - 1e-6 <= compared.supremum <= largest + room
    for y in list(wanted)[::400] + [y for y in (low, high) if np.isfinite(y)]:
        assert loss(one, two, np.array([y])) == pytest.approx(wanted[y], abs=1e-6)


def by_rejection(x, scale, low, high, y):
    """Return the log-density of Laplace noise within bounds."""
    law = laplace(min(max(x, low), high), scale)
    return law.logpdf(y) - np.log(law.cdf(high) - law.cdf(low))


def by_images(x, scale, low, high, y):
    """Return the log-density of reflected Laplace noise, image by image."""
    law, width = laplace(x, scale), high - low
    if not np.isfinite(width):
        mirror = low if np.isfinite(low) else high
        return np.log(law.pdf(y) + law.pdf(2 * mirror - y))
    turns = 2 * width * np.arange(-300, 301)[:, np.newaxis]
    images = law.pdf(y + turns) + law.pdf(2 * low - y + turns)
    return np.log(images.sum(axis=0))


@settings(max_examples=25)
@given(
    st.sampled_from(
        [("truncated-laplace", by_rejection), ("folded-laplace", by_images)]
    ),
    st.floats(-6, 6),
    st.floats(-6, 6),
    st.floats(0.3, 4),
    st.sampled_from([(-math.inf, 5.0), (-4.0, 0.5), (0.0, 1.0), (0.0, math.inf)]),
)
def test_noise_within_bounds_against_rejection_and_images(named, x, x2, scale, bounds):
    name, log = named
    one, two = (KERNELS[name](each, scale, *bounds) for each in (x, x2))
    y = np.linspace(max(bounds[0], -12), min(bounds[1], 12), 500)
    wanted = log(x, scale, *bounds, y) - log(x2, scale, *bounds, y)
    for place in range(0, 500, 71):
        found = loss(one, two, y[[place]])
        assert found == pytest.approx(wanted[place], abs=1e-8)
    room = 2 / scale * (y[1] - y[0]) + 1e-8
    largest = np.abs(wanted).max()
    assert largest - 1e-8 <= compare(one, two).supremum <= largest + room


@pytest.mark.parametrize("sigma", [0.1, 0.4, 0.99, 1.0, 1.7, 30.0])
def test_the_sum_of_discrete_normal_weights(sigma):
    with mpmath.workdps(30):
        wanted = mpmath.log(mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * sigma**2))))
    # Of some 600 terms at most, each rounded: 1e-13 of the sum.
    assert discrete_gaussian_log_sum(sigma) == pytest.approx(float(wanted), abs=1e-12)


def test_losses_without_a_bound():
    one, two = (KERNELS["discrete-gaussian"](x, 2.0) for x in (0, 1))
    assert compare(one, two).supremum == math.inf
    assert loss(one, two, np.array([-1000.0])) == pytest.approx(2001 / 8)
    assert compare(one, one).supremum == 0
    one, two = (KERNELS["discrete-laplace"](x, 2.0) for x in (0, 0.5))
    compared = compare(one, two)
    assert (compared.supremum, compared.shift.tolist()) == (math.inf, [0.5])
    assert compared.note[0] == "distance"
    assert loss(one, two, np.array([3.0])) == math.inf
    kept, other = (KERNELS["discrete-laplace"](x, 2.0, 0, 4) for x in (0, 0.5))
    assert math.isfinite(loss(kept, other, np.array([0.0])))  # clamped on both sides
    assert loss(kept, other, np.array([1.0])) == math.inf


@pytest.mark.parametrize(
    ("name", "one", "two", "y"),
    [
        ("discrete-laplace", (0, 1.0), (2, 0.0), 1.0),
        ("laplace", (0, 1.0, 0, 9), (0, 1.0, 1, 9), 0.5),
        ("laplace", (0, 1.0, 0, 9), (0, 1.0, 0, 8), 8.0),
    ],
)
def test_no_noise_on_one_side_or_other_bounds(name, one, two, y):
    one, two = (KERNELS[name](*each) for each in (one, two))
    compared = compare(one, two)
    assert compared.scales_differ
    assert compared.supremum == math.inf
    assert compared.note or compared.other_scale[0] == 0
    assert loss(one, two, np.array([y])) == math.inf


def test_rounded_bounds_and_constants_are_told():
    one, two = (KERNELS["laplace"](0.5, 1.0, low, 1.0) for low in (0.3, 0.1 + 0.2))
    assert compare(one, two).supremum == 0
    assert loss(one, two, np.array([0.3])) == pytest.approx(0, abs=1e-12)
    noisy, fixed, other = (
        KERNELS["discrete-laplace"](*each) for each in ((0, 1.0), (2, 0), (3, 0))
    )
    wanted = -math.log(discrete("discrete-laplace", 0, 1.0)[2.0])
    assert loss(fixed, noisy, np.array([2.0])) == pytest.approx(wanted)
    assert compare(fixed, other).singular


def test_the_exponential_mechanism_and_its_candidates():
    scores, measure = np.array([0.0, 1.0, 3.0, 3.0]), [1.0, 2.0, 0.0, 1.0]
    weights = np.exp(scores / 2) * measure
    law = KERNELS["exponential"](scores, 2.0, ["a", "b", "c", "d"], measure)
    assert np.exp(law.log[0]) == pytest.approx(weights / weights.sum())
    # The same outcomes in another order, one of them split in two.
    other = KERNELS["exponential"]([3.0, 3.0, 1.0, 0.0, 3.0], 2.0, list("dcbac"))
    e = math.exp
    b = weights[1] / weights.sum()
    wanted = math.log(b / (e(0.5) / (e(0.5) + 1 + 3 * e(1.5))))
    place = law.places("b")[0]
    assert law.loss(other, place) == pytest.approx(wanted)
    assert law.supremum(other) == math.inf  # "c" is impossible on one side
    assert KERNELS["exponential"]([0.0, 2.0, 2.0], 0.0).log[0] == pytest.approx(
        np.array([-math.inf, -math.log(2), -math.log(2)])
    )


def test_the_names_of_candidates_count_and_not_their_order():
    one = KERNELS["permute-and-flip"]([1.0, 1.0], 1.0, ["a", "b"])
    two = KERNELS["permute-and-flip"]([1.0, 1.0], 1.0, ["a", "c"])
    assert one.loss(two, one.places("b")[0]) == math.inf
    assert one.loss(two, one.places("a")[0]) == pytest.approx(0.0)
    assert one.supremum(two) == math.inf
    one = KERNELS["exponential"]([1.0, 2.0, 5.0], 1.0, ["b", "a", 3])
    two = KERNELS["exponential"]([5.0, 1.0, 2.0], 1.0, [3.0, "b", "a"])
    assert (one.keys, one.supremum(two)) == (two.keys, 0)
    assert one.log == pytest.approx(two.log, rel=1e-14)


def test_randomised_response_and_promises_add_up():
    law = KERNELS["randomised-response"](np.array([0, 2]), 0.5, 3)
    assert np.exp(law.log) == pytest.approx(
        np.array([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])
    )
    words = KERNELS["randomised-response"]("yes", 0.75, ["no", "yes"])
    other = KERNELS["randomised-response"]("no", 0.75, ["yes", "no"])
    assert words.supremum(other) == pytest.approx(math.log(3))
    assert words.loss(other, words.places("yes")[0]) == pytest.approx(math.log(3))
    assert of(PureDP(0.5), PureDP(0.4)).holds(PureDP(0.9))
    assert not of(PureDP(0.5), PureDP(0.4)).holds(PureDP(0.89))
    assert of(PureDP(0.5), ApproxDP(0.4, 1e-6)).holds(ApproxDP(0.9, 1e-6))
    assert not of(PureDP(0.5), ApproxDP(0.4, 1e-6)).holds(PureDP(0.9))
    assert of(ZeroConcentratedDP(0.1), PureDP(0.2)).holds(ZeroConcentratedDP(0.12))
    assert not of(ZeroConcentratedDP(0.1), PureDP(0.2)).holds(ZeroConcentratedDP(0.11))
    assert not of(ZeroConcentratedDP(0.5)).holds(GaussianDP(1.0))
    # Randomised response is no easier to tell than normal laws from mu = 0.6238 on.
    assert of(PureDP(0.5)).holds(GaussianDP(0.63))
    assert not of(PureDP(0.5)).holds(GaussianDP(0.62))


def test_a_promise_holds_for_near_inputs_only():
    def promise(value, *arguments):
        return KERNELS["trusted"](value, *(arguments or (1.0, 0.5)), norm=2)

    x = promise(0.0)
    near, far, same = (compare(x, promise(v)) for v in (0.9, 1.1, 0.0))
    assert (near.bound, near.known) == (PureDP(0.5), False)
    assert (far.bound, far.note[0]) == (None, "distance")
    assert same.supremum == loss(x, promise(0.0), np.zeros(1)) == 0
    other = compare(x, promise(0.0, 2.0, 0.5))
    assert (other.bound, other.note[0]) == (None, "scale")
    delta = [promise(v, 1.0, 0.5, 1e-5) for v in (0.0, 1.0)]
    assert compare(*delta).bound == ApproxDP(0.5, 1e-5)
    # The norm is the one that is asked for.
    spectral = [promise(v * np.ones((2, 2)), 2.0, 0.5) for v in (0, 1)]
    assert compare(*spectral).bound


def promised(x, claim):
    return TrustedLaw(x, (), lambda a, b: abs(a - b), lambda far: claim, "it is said")


def of(*claims):
    return Composition.of([compare(promised(0, c), promised(1, c)) for c in claims])


def test_nothing_is_refuted_by_a_promise_and_what_is_lost_beside_it_is_lost():
    def beside(name, scale, far):
        lost = compare(*[KERNELS[name](x, scale) for x in (0, far)])
        promise = compare(*[promised(x, PureDP(0.5)) for x in (0, 1)])
        return Composition.of([lost, promise])

    assert not of(PureDP(5.0)).refutes(PureDP(1.0))
    assert beside("gaussian", 1.0, 2).refutes(GaussianDP(1.9))
    assert not beside("gaussian", 1.0, 2).refutes(GaussianDP(2.1))
    assert not beside("gaussian", 1.0, 2).holds(GaussianDP(2.1))
    assert beside("laplace", 2.0, 1).holds(PureDP(1.0))
    assert not beside("laplace", 2.0, 1).holds(PureDP(0.99))


def delta_of_two(epsilon):
    """Return the delta of two Laplace steps of loss 1, by the law of one's loss."""

    def of_one(e):
        return -math.expm1(min((e - 1) / 2, 0.0)) if e > -1 else -math.expm1(e)

    inner = mpmath.quad(
        lambda x: math.exp((x - 1) / 2) / 4 * of_one(epsilon - x),
        sorted({-1.0, epsilon - 1.0, 1.0}),
    )
    return of_one(epsilon - 1) / 2 + math.exp(-1) / 2 * of_one(epsilon + 1) + inner


@pytest.mark.parametrize("kind", [ApproxDP, lambda e, d: Profile([e], [d])])
@pytest.mark.parametrize("epsilon", [0.626, 1.337, 1.837])
def test_steps_are_held_to_a_claim_at_its_own_epsilon(kind, epsilon):
    steps = [compare(*[KERNELS["laplace"](x, 1.0) for x in (0, 1)])] * 2
    both, delta = Composition.of(steps), float(delta_of_two(epsilon))
    less, more = (kind(epsilon, share * delta) for share in (0.98, 1.02))
    assert (both.refutes(less), both.holds(less)) == (True, False)
    assert (both.refutes(more), both.holds(more)) == (False, True)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        *(("laplace", (0.0, -1.0)), ("laplace", (0.0, math.nan))),
        *(("laplace", (0.0, math.inf)), ("laplace", ("one", 1.0))),
        *(("laplace", (0.0, 1.0, 2.0, 1.0)), ("gaussian", (0.0, [1.0, 2.0]))),
        *(("exponential", ([], 1.0)), ("exponential", ([1.0, math.nan], 1.0))),
        ("exponential", ([1.0], 1.0, ["a", "b"])),
        *(("noisy-max", ([0.0] * 1001, 1.0)), ("randomised-response", (3, 0.5))),
        *(("randomised-response", (0, 1.5)), ("trusted", (0.0, -1.0, 1.0))),
        *(("trusted", (0.0, 1.0, math.nan)), ("trusted", (0.0, 1.0, 1.0, 1.0))),
    ],
)
def test_what_has_no_law_is_refused(name, arguments):
    with pytest.raises(InputError):
        KERNELS[name](*arguments)
