"""Claims against each other, closed forms, mpmath at 50 digits, and dp-accounting."""

import pickle
import re
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.pld import common, privacy_loss_distribution
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused, refuses

from dpaudit import ApproxDP, GaussianDP, Profile, PureDP, ZeroConcentratedDP
from dpaudit.claims import polygon_delta
from dpaudit.errors import InputError
from dpaudit.gaussian import classical_mu, gaussian_delta, gaussian_epsilon, gaussian_mu

EPSILONS = st.floats(0.01, 6.0)
DELTAS = st.sampled_from([0.0, 1e-12, 1e-5, 0.01]) | st.floats(0.0, 0.6)


@st.composite
def profiles(draw):
    knots = draw(st.lists(st.floats(0.0, 5.0), min_size=1, max_size=6, unique=True))
    deltas = [draw(DELTAS) for _ in knots]
    return Profile(sorted(knots), sorted(deltas, reverse=True))


CLAIMS = st.one_of(
    st.builds(PureDP, EPSILONS),
    st.builds(ApproxDP, EPSILONS, DELTAS),
    st.builds(GaussianDP, st.floats(0.05, 4.0)),
    st.builds(ZeroConcentratedDP, st.floats(0.005, 3.0)),
    profiles(),
)
SAMPLES = [
    *(PureDP(1.0), ApproxDP(1.0, 1e-5), GaussianDP(1.0), ZeroConcentratedDP(0.5)),
    Profile((0.0, 1.0, 2.0), (0.3, 0.1, 0.0)),
]


def false_positive_rates():
    """Dense at both ends, where claims bend."""
    small = np.geomspace(1e-14, 0.5, 200)
    return np.unique(np.concatenate([[0.0], small, 1 - small, [1.0]]))


def largest_gap(claim, epsilon):
    """sup over q of tpr(q) - e^epsilon q, by zooming in on a concave maximum."""
    fpr = false_positive_rates()
    for _ in range(6):
        gap = claim.tpr(fpr) - np.exp(epsilon) * fpr
        best = int(np.argmax(gap))
        low, high = fpr[max(best - 1, 0)], fpr[min(best + 1, len(fpr) - 1)]
        fpr = np.linspace(low, high, 101)
    return gap.max()


# The three questions have one answer
@settings(max_examples=15)
@given(CLAIMS, st.floats(-4.0, 4.0))
def test_delta_is_the_support_function_of_tpr(claim, epsilon):
    # A tabulated envelope lies above the curve between its lines, by little.
    loose = 1e-5 if isinstance(claim, ZeroConcentratedDP) else 1e-9
    gap, delta = largest_gap(claim, epsilon), float(claim.delta_at(epsilon))
    assert delta - 1e-9 <= gap <= delta + loose


@settings(max_examples=25)
@given(CLAIMS)
def test_tpr_is_concave_and_its_own_mirror_image(claim):
    fpr = false_positive_rates()
    tpr = claim.tpr(fpr)
    assert (tpr >= fpr).all()
    assert (tpr <= 1).all()
    assert (np.diff(tpr) >= 0).all()
    middle = claim.tpr((fpr[1:] + fpr[:-1]) / 2)
    assert (middle >= (tpr[1:] + tpr[:-1]) / 2 - 1e-12).all()
    # (q, p) -> (1 - p, 1 - q) on the part of the curve where 1 - p has its digits.
    rises = tpr < 1 - 1e-6
    mirrored = claim.tpr(1 - tpr[rises])
    np.testing.assert_allclose(mirrored, 1 - fpr[rises], atol=1e-9)


@settings(max_examples=50)
@given(CLAIMS, st.floats(1e-9, 0.9))
def test_epsilon_inverts_delta(claim, delta):
    epsilon = claim.epsilon_at(delta)
    assert epsilon >= 0
    if np.isinf(epsilon):
        assert claim.delta_at(50.0) > delta
        return
    assert claim.delta_at(epsilon) <= delta + 1e-15
    if epsilon > 1e-9:
        assert claim.delta_at(epsilon * (1 - 1e-6) - 1e-9) > delta


@pytest.mark.parametrize(
    ("claim", "at_zero"),
    [
        *((PureDP(1.5), 1.5), (ApproxDP(1.5, 1e-9), np.inf), (GaussianDP(1.0), np.inf)),
        (ZeroConcentratedDP(1.0), np.inf),
        (Profile((0.5, 2.0, 3.0), (0.1, 0.0, 0.0)), 2.0),
        (Profile((0.5, 2.0), (0.1, 0.01)), np.inf),
    ],
)
def test_epsilon_at_delta_zero(claim, at_zero):
    assert claim.epsilon_at(0.0) == pytest.approx(at_zero, rel=1e-14)


@pytest.mark.parametrize(
    "claim",
    [
        *(PureDP(1e100), ApproxDP(1e-100, 5e-324), ApproxDP(1e100, 1 - 2**-53)),
        *(GaussianDP(1e-100), GaussianDP(1e7), ZeroConcentratedDP(1e-100)),
        ZeroConcentratedDP(5e7),
        Profile((0.0, 5e-324, 700.0), (1 - 2**-53, 5e-324, 0.0)),
    ],
)
def test_claims_at_the_edge_of_what_is_allowed_have_answers(claim):
    # Without a warning, and so without an overflow or a NaN on the way.
    epsilon = np.ravel(next(iter(claim.parameters.values())))
    epsilon = np.concatenate([[-1e4, -1.0, 0.0, 1e-100, 1.0, 700.0, 1e4], epsilon])
    epsilon = np.sort(np.concatenate([epsilon, epsilon**2 / 2]))
    delta = claim.delta_at(epsilon)
    assert ((delta >= 0) & (delta <= 1)).all()
    assert (np.diff(delta) <= 1e-14).all()
    for level in (0.0, 5e-324, 1e-300, 1e-12, 0.5, 1 - 2**-53):
        assert claim.epsilon_at(level) >= 0
    fpr = np.array([0.0, 5e-324, 1e-300, 1e-12, 0.5, 1 - 2**-53, 1.0])
    assert (claim.tpr(fpr) >= fpr).all()
    assert (claim.tpr(fpr) <= 1).all()


@pytest.mark.parametrize(
    ("build", "low", "high"),
    [
        (PureDP, "1e-100", "1e+100"),
        (lambda x: ApproxDP(x, 0.5), "1e-100", "1e+100"),
        *((GaussianDP, "1e-100", "1e+07"), (ZeroConcentratedDP, "1e-100", "5e+07")),
    ],
)
def test_parameters_beyond_arithmetic_are_named(build, low, high):
    for wrong in (5e-324, 9e-101, float(high) * 1.001, 1e300):
        message = re.escape(f"must be from {low} to {high}, got {wrong!r}")
        refuses(message, build, wrong)
    for beyond in (10**400, 10**5000):  # of which the latter cannot even be printed
        refuses("must be a finite number, got one beyond", build, beyond)


@pytest.mark.parametrize("mu", [1e3, 1e4, 1e6, 1e7])
def test_large_gaussian_claims_keep_their_digits(mu):
    """Where the loss of a digit would refute true claims: about epsilon = mu^2/2."""
    epsilons = mu**2 / 2 + mu * np.array([-5.0, -1.0, 0.0, 1.0, 5.0])
    with mpmath.workdps(400):
        exact = [float(exact_gaussian_delta(epsilon, mu)) for epsilon in epsilons]
    loose = {"rtol": 1e-11} if mu <= 1e4 else {"rtol": 0, "atol": 1e-9}
    np.testing.assert_allclose(GaussianDP(mu).delta_at(epsilons), exact, **loose)
    if mu <= 1e4:
        weaker = ZeroConcentratedDP(mu**2 / 2).delta_at(epsilons)
        assert (weaker >= exact).all()


@given(profiles(), st.floats(-5.0, 5.0))
def test_a_profile_is_the_hull_of_its_points(profile, epsilon):
    # The support function of an intersection of half-planes is the largest convex
    # function of the ratio below all of theirs: below their minimum, and attained at
    # the points that the hull keeps.
    knots, deltas = (np.array(profile.parameters[k]) for k in ("epsilons", "deltas"))
    points = list(zip(knots, deltas, strict=True))
    singly = min(float(polygon_delta(epsilon, *point)) for point in points)
    assert profile.delta_at(epsilon) <= singly + 1e-13
    assert (profile.delta_at(knots) <= deltas + 1e-13).all()
    fpr = false_positive_rates()
    singly = np.min([ApproxDP(max(k, 1e-100), d).tpr(fpr) for k, d in points], axis=0)
    np.testing.assert_allclose(profile.tpr(fpr), singly, rtol=1e-13)


# Against dp-accounting, whose tables are pessimistic: every loss is rounded up by at
# most one interval, so its delta lies between ours there and one interval before.

INTERVAL = 1e-3
TABULATED = np.array([-0.5, 0.0, 0.1, 0.5, 0.9, 1.0, 1.3, 2.0, 4.0])


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(0.1, 1e-5), ApproxDP(3, 0.3)])
def test_approx_dp_is_the_dominating_pair(claim):
    pld = privacy_loss_distribution.from_privacy_parameters(
        common.DifferentialPrivacyParameters(**claim.parameters),
        value_discretization_interval=INTERVAL,
    )
    theirs = np.array([pld.get_delta_for_epsilon(e) for e in TABULATED])
    assert (claim.delta_at(TABULATED) <= theirs + 1e-12).all()
    assert (theirs <= claim.delta_at(TABULATED - INTERVAL) + 1e-12).all()


def test_an_accountant_may_say_that_nearly_all_is_lost():
    told = {"get_delta_for_epsilon": lambda epsilon: np.where(epsilon < 5, 1.0, 0.5)}
    pld = SimpleNamespace(**told)
    assert Profile.from_pld(pld, points=11).epsilon_at(0.5) == pytest.approx(6)


@pytest.mark.parametrize("mu", [0.2, 2.5])
def test_a_profile_from_an_accountant_tabulates_it(mu):
    pld = privacy_loss_distribution.from_gaussian_mechanism(
        1 / mu, value_discretization_interval=INTERVAL
    )
    profile = Profile.from_pld(pld, max_epsilon=20.0, points=2001)
    knots = np.array(profile.parameters["epsilons"])
    theirs = pld.get_delta_for_epsilon(knots)
    np.testing.assert_array_equal(profile.parameters["deltas"], theirs)
    # Rounding may dent the convexity of their table by little.
    np.testing.assert_allclose(profile.delta_at(knots), theirs, rtol=1e-3, atol=1e-12)
    fpr = false_positive_rates()
    exact = GaussianDP(mu).tpr(fpr)
    assert (profile.tpr(fpr) >= exact * (1 - 1e-9)).all()
    assert (profile.tpr(fpr) <= exact * (1 + 5 * INTERVAL) + 1e-11).all()


@pytest.mark.parametrize("rho", [0.01, 0.1, 1.0])
def test_zcdp_is_the_conversion_of_a_renyi_accountant(rho):
    # A Gaussian mechanism has the Renyi curve rho alpha exactly.
    orders = 1 + np.geomspace(0.011, 500.0, 4000)
    accountant = RdpAccountant(orders)
    accountant.compose(GaussianDpEvent(1 / np.sqrt(2 * rho)))
    claim = ZeroConcentratedDP(rho)
    for delta in (1e-2, 1e-5, 1e-9):
        theirs = accountant.get_epsilon(delta)
        # Theirs is minimal over a grid of orders, ours over all.
        assert claim.epsilon_at(delta) <= theirs * (1 + 1e-9)
        assert claim.epsilon_at(delta) == pytest.approx(theirs, rel=1e-4)
        assert float(claim.delta_at(theirs)) == pytest.approx(delta, rel=1e-3)


@pytest.mark.parametrize("rho", [1e-100, 1e-30, 1e-12])
def test_tiny_zcdp_claims_are_larger_ones_scaled_down(rho):
    # Their orders are as large as 1/sqrt(rho).
    scaled = np.array([0.0, 1.0, 5.0, 20.0])
    found = ZeroConcentratedDP(rho).delta_at(scaled * np.sqrt(rho)) / np.sqrt(rho)
    larger = ZeroConcentratedDP(1e-6).delta_at(scaled * 1e-3) / 1e-3
    np.testing.assert_allclose(found, larger, rtol=0.02)


@settings(max_examples=8)
@given(st.floats(1e-4, 3.0), st.floats(-3.0, 8.0), st.floats(0.0, 1.0))
def test_zcdp_is_between_the_gaussian_and_the_textbook(rho, epsilon, fpr):
    claim, gaussian = ZeroConcentratedDP(rho), GaussianDP(np.sqrt(2 * rho))
    assert claim.delta_at(epsilon) >= gaussian.delta_at(epsilon) - 1e-15
    assert claim.tpr(fpr) >= gaussian.tpr(fpr) - 1e-12
    textbook = rho + 2 * np.sqrt(rho * np.log(1e6))
    assert gaussian.epsilon_at(1e-6) * (1 - 1e-9) <= claim.epsilon_at(1e-6) <= textbook


# Gaussian closed forms
def exact_gaussian_delta(epsilon, mu):
    epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
        -mu / 2 - epsilon / mu
    )


@pytest.mark.parametrize("mu", [1e-6, 0.268, 0.999, 1.0, 10.0, 100.0])
def test_gaussian_delta_agrees_with_fifty_digits(mu):
    # Down to deltas of 1e-300, in relative terms.
    epsilons = [-50.0, -1.0, -1e-3, 0.0, 1e-6, 1e-3, 0.1, 1.0, 5.0, 30.0, 300.0, 1000.0]
    epsilons += [mu * z for z in (0.3, 3.0, 9.0, 17.0, 25.0, 36.0)]
    with mpmath.workdps(400):
        exact = [float(exact_gaussian_delta(epsilon, mu)) for epsilon in epsilons]
    far = np.array(exact) < 1e-300
    delta = gaussian_delta(epsilons, mu)
    np.testing.assert_allclose(delta[~far], np.array(exact)[~far], rtol=1e-11)
    assert (delta[far] < 2e-300).all()
    np.testing.assert_equal(gaussian_delta([1e160, 1e300], mu), 0)


# The last are next to 1: seen as deltas they have no digits.
NEARLY_ONE = [1 - 1e-9, 1 - 1e-14, 1 - 2**-53]


@pytest.mark.parametrize("delta", [0.5, 1e-2, 1e-7, 1e-100, 1e-250, *NEARLY_ONE])
def test_gaussian_inverses_err_to_the_safe_side_by_little(delta):
    with mpmath.workdps(300):
        for mu in (1e-5, 0.05, 1.0, 5.0, 40.0):
            epsilon = gaussian_epsilon(delta, mu)
            assert exact_gaussian_delta(epsilon, mu) <= delta
            if epsilon > 0:
                less = epsilon * (1 - 5e-13) - 2e-14 * delta
                assert exact_gaussian_delta(less, mu) > delta
        assert gaussian_mu(1e90, delta) == pytest.approx(np.sqrt(2e90), rel=1e-11)
        for epsilon in (2e-4, 0.016, 1.0, 100.0):
            mu = gaussian_mu(epsilon, delta)
            assert exact_gaussian_delta(epsilon, mu) <= delta
            assert exact_gaussian_delta(epsilon, mu * (1 + 3e-12)) > delta
            assert epsilon * (1 - 1e-10) - 4e-12 * mu**2 < gaussian_epsilon(delta, mu)
            assert gaussian_epsilon(delta, mu) <= epsilon


@pytest.mark.parametrize("delta", [5e-324, 1e-320])
def test_deltas_with_few_digits_are_kept(delta):
    with mpmath.workdps(400):
        for epsilon in (1e-12, 1.0, 37.0, 700.0):
            mu = gaussian_mu(epsilon, delta)
            assert delta / 4 < exact_gaussian_delta(epsilon, mu) <= delta


@pytest.mark.parametrize("mu", [0.1, 1.0, 2.0])
@pytest.mark.parametrize("less", [1e-15, 1e-13, 1e-10])
def test_tiny_gaussian_epsilons_err_upwards_too(mu, less):
    delta = float(gaussian_delta(0.0, mu)) * (1 - less)
    epsilon = gaussian_epsilon(delta, mu)
    assert 0 < epsilon < 10 * less + 4e-14
    with mpmath.workdps(50):
        assert exact_gaussian_delta(epsilon, mu) <= delta


def test_no_shift_is_no_loss():
    found = gaussian_delta([-1.0, 0.0, 1.0], 0.0)
    np.testing.assert_allclose(found, [1 - np.exp(-1), 0, 0], rtol=1e-15)


@pytest.mark.parametrize(("delta", "limit"), [(1e-3, 7.5), (1e-5, 8.4), (1e-6, 8.8)])
def test_the_classical_constant_fails_for_large_epsilon(delta, limit):
    def achieved(epsilon):
        return gaussian_delta(epsilon, classical_mu(epsilon, delta))

    assert achieved(limit - 0.1) < delta < achieved(limit + 0.1)
    for epsilon, bad in ((0.0, delta), (1.0, 0.0)):
        with pytest.raises(InputError):
            classical_mu(epsilon, bad)


@pytest.mark.parametrize("claim", SAMPLES)
def test_a_claim_is_its_class_and_parameters(claim):
    again = eval(repr(claim))
    assert again == claim
    assert hash(again) == hash(claim)

    class Pure(PureDP):
        pass

    others = [*SAMPLES, ApproxDP(1.0, 0.0), PureDP(1.5), Pure(1.0), 1.0]
    assert sum(other == claim for other in others) == 1
    assert pickle.loads(pickle.dumps(claim)) == claim
    with pytest.raises(TypeError):
        claim.parameters["epsilon"] = 2.0
    for shape in [(), (0,), (2, 3)]:
        assert claim.delta_at(np.full(shape, 0.5)).shape == shape
        assert claim.tpr(np.full(shape, 0.5)).shape == shape


# Bad input
@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, "1", None, True, [1.0]])
@pytest.mark.parametrize(
    ("name", "build"),
    [
        *(("epsilon", PureDP), ("epsilon", lambda x: ApproxDP(x, 1e-5))),
        *(("epsilon", lambda x: gaussian_mu(x, 1e-5)), ("mu", GaussianDP)),
        ("rho", ZeroConcentratedDP),
    ],
)
def test_bad_positive_parameters_are_named(name, build, bad):
    refuses(f"^{name} must be .*{re.escape(repr(bad))}", build, bad)


@pytest.mark.parametrize("bad", [-1e-9, 1.0, np.nan, np.inf, "0.1", None, True])
def test_bad_deltas_are_named(bad):
    uses = [claim.epsilon_at for claim in SAMPLES]
    uses += [lambda x: ApproxDP(1.0, x), lambda x: gaussian_epsilon(x, 1.0)]
    uses += [lambda x: GaussianDP.from_approx(1.0, x), lambda x: gaussian_mu(1.0, x)]
    for use in uses:
        refuses(rf"^delta must be .*{re.escape(repr(bad))}", use, bad)
    refuses(r"^mu must be a finite number >= 0, got -1", gaussian_epsilon, 1e-5, -1)


@pytest.mark.parametrize("bad", [-1e-9, 1.1, np.nan, [0.5, -0.25]])
def test_bad_false_positive_rates_are_named(bad):
    for claim in SAMPLES:
        refuses(r"^fpr must be in \[0, 1\], got", claim.tpr, bad)


test_wrong_tables_are_named = refused(
    ([], [], "non-empty and of equal length, got lengths 0 and 0"),
    ([0.0, 1.0], [0.1], "of equal length, got lengths 2 and 1"),
    ([1.0, 0.5], [0.1, 0.0], "epsilons must be strictly increasing, got 0.5 after"),
    ([1.0, 1.0], [0.1, 0.0], "epsilons must be strictly increasing, got 1.0 after"),
    ([0.0, 1.0], [0.1, 0.2], "deltas must be non-increasing, got 0.2 after 0.1"),
    ([-1.0], [0.1], "epsilons must be a finite number >= 0, got .*-1.0"),
    ([701.0], [0.1], "epsilons must be at most 700, got 701.0"),
    ([0.0], [1.0], r"deltas must be in \[0, 1\), got .*1.0"),
    (np.broadcast_to(1.0, 100_001), [0.5], "100,000 entries, got 100,001"),
    ([0.5], np.broadcast_to(1.0, 100_001), "100,000 entries, got 100,001"),
    by=lambda epsilons, deltas: Profile(epsilons, deltas),
)


@pytest.mark.parametrize("delta", [1e-12, 1e-17, 1e-90])
@pytest.mark.parametrize(
    "claim",
    [
        lambda delta: Profile((0.0,), (delta,)),
        lambda delta: Profile((0.0, 1.0), (2 * delta, delta)),
        lambda delta: ApproxDP(delta / 1e3, delta),
    ],
)
def test_tiny_deltas_are_kept(claim, delta):
    # In 1 - (1 - delta) they were rounded, and nothing at all was lost below 1e-16.
    promised = claim(delta)
    least = promised.parameters.get("deltas", 2 * [delta])[0]
    assert promised.delta_at(0.0) == pytest.approx(least, rel=1e-3, abs=0)
    assert promised.epsilon_at(0.0) == np.inf
    assert promised.tpr(0.0) == pytest.approx(delta, rel=1e-6, abs=0)


@pytest.mark.parametrize("delta", [0.5, 1e-5, 1e-300])
def test_what_a_large_knot_promises_at_half_its_delta(delta):
    found = Profile((0.0, 700.0), (delta, 0.0)).epsilon_at(delta / 2)
    assert found == pytest.approx(700 - np.log(2), rel=1e-9)


def test_a_tiny_rho_keeps_its_digits_at_negative_epsilons():
    claim = ZeroConcentratedDP(1e-24)
    size = np.array([1e-20, 1e-13, 1e-9])
    mirrored = np.exp(-size) * claim.delta_at(size) - np.expm1(-size)
    assert claim.delta_at(-size) == pytest.approx(mirrored, rel=1e-9, abs=0)
