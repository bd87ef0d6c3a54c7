from itertools import pairwise

import numpy as np
import pytest
from refusals import refuses
from scipy.special import expit
from scipy.stats import norm

from dpaudit.audit.betting.families import families_for, verdict_family
from dpaudit.claims import ApproxDP, GaussianDP, Profile, PureDP, ZeroConcentratedDP

ZCDP = ZeroConcentratedDP(0.4)
PROFILE = Profile((0.0, 0.5, 2.0), (0.3, 0.1, 1e-3))
FAMILIES = {
    "pure": (verdict_family(PureDP(1.0)), PureDP),
    "epsilon": (verdict_family(ApproxDP(1.0, 1e-3)), lambda e: ApproxDP(e, 1e-3)),
    "delta": (
        families_for(ApproxDP(1.0, 1e-3), 1e-3, 1.0)["delta"],
        lambda d: ApproxDP(1.0, min(d, 1 - 1e-12)),
    ),
    "mu": (verdict_family(GaussianDP(0.7)), GaussianDP),
    "profile": (verdict_family(PROFILE), lambda _: PROFILE),
    "total variation": (
        verdict_family(Profile((0.0,), (0.3,))),
        lambda _: Profile((0.0,), (0.3,)),
    ),
    "zcdp": (verdict_family(ZCDP), lambda _: ZCDP),
}
# Dense in log-odds, where the corners of the polygons and the Gaussian tails lie.
FPR = np.concatenate([[0.0], expit(np.linspace(-36, 36, 1201)), [1.0]])


def estimates(rng, n):
    """Return estimated p >= q: likely ones, and absurd ones."""
    low, high = np.sort(rng.random((2, n)), axis=0)
    absurd = [1e-300, 1e-12, 1e-6, 0.5, 1 - 1e-6, 1 - 1e-12]
    p, q = np.array([(p, q) for p in absurd for q in absurd if p >= q]).T
    tiny = 10 ** rng.uniform(-9, 0, n)
    return np.concatenate([high, p, tiny]), np.concatenate(
        [low, q, tiny * rng.random(n)]
    )


@pytest.mark.parametrize("key", FAMILIES)
def test_half_planes_contain_their_null(key):
    """Every point (p, q) that the null allows satisfies every half-plane returned."""
    family, claim_of = FAMILIES[key]
    p, q = estimates(np.random.default_rng(0), 40)
    nulls = np.unique(np.linspace(0, len(family) - 1, 40).astype(np.intp))
    log_ratio, delta = family.half_planes(nulls, p, q)
    assert log_ratio.shape == delta.shape == (len(nulls), len(p), delta.shape[2])
    assert not np.isnan(log_ratio).any()
    for row, null in enumerate(nulls):
        tpr = claim_of(family.parameter[null]).tpr(FPR)
        slopes, limits = log_ratio[row].ravel(), delta[row].ravel()
        finite = np.unique(np.stack([slopes, limits]), axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            # From the log, so that 0 times an overflow is 0.
            product = np.exp(finite[0][:, np.newaxis] + np.log(np.maximum(FPR, 1e-320)))
            product = np.where(FPR > 0, product, 0.0)
        excess = tpr - product - finite[1][:, np.newaxis]
        # `ZeroConcentratedDP.tpr` is an envelope of finitely many tangents.
        assert excess.max() <= (1e-6 if key == "zcdp" else 1e-9)


@pytest.mark.parametrize("key", ["pure", "epsilon", "delta", "mu"])
def test_half_planes_touch_their_null_and_nulls_are_nested(key):
    """The half-planes are not needlessly wide: each is tight somewhere."""
    family, claim_of = FAMILIES[key]
    p, q = np.array([0.3, 0.6, 0.9]), np.array([0.1, 0.3, 0.5])
    shown = np.flatnonzero(family.parameter < 2.5)[::150]
    log_ratio, delta = family.half_planes(shown, p, q)
    fpr = expit(np.linspace(-36, 36, 40_001))
    for row, null in enumerate(shown):
        tpr = claim_of(family.parameter[null]).tpr(fpr)
        for slope, limit in zip(
            log_ratio[row].ravel(), delta[row].ravel(), strict=True
        ):
            assert (tpr - np.exp(slope) * fpr).max() == pytest.approx(limit, abs=1e-3)
    family, claim_of = FAMILIES[key]
    curves = [claim_of(t).tpr(FPR) for t in family.parameter[::60]]
    assert all((a <= b + 1e-12).all() for a, b in pairwise(curves))
    assert (np.diff(family.parameter) > 0).all()


def test_gaussian_half_planes_touch_half_way_between_the_estimates():
    """As far below p as above q, in normal quantiles; with the curve's slope there."""
    mu, null = 0.7, np.array([verdict_family(GaussianDP(0.7)).claimed])
    p, q = np.array([0.2, 0.7, 0.95, 0.3]), np.array([0.01, 0.1, 0.5, 0.25])
    log_ratio, delta = verdict_family(GaussianDP(mu)).half_planes(null, p, q)
    below_p = (norm.ppf(p) - norm.ppf(q) - mu) / 2
    touched_q = norm.cdf(norm.ppf(q) + below_p)
    touched_p = norm.cdf(norm.ppf(p) - below_p)
    np.testing.assert_allclose(GaussianDP(mu).tpr(touched_q), touched_p)
    slope = norm.pdf(norm.ppf(touched_p)) / norm.pdf(norm.ppf(touched_q))
    np.testing.assert_allclose(np.exp(log_ratio[0, :, 0]), slope)
    np.testing.assert_allclose(delta[0, :, 0], touched_p - slope * touched_q)


def test_half_planes_are_chosen_by_estimates_of_each_null():
    family = verdict_family(GaussianDP(0.7))
    nulls = np.array([3, 900])
    p, q = np.array([[0.3, 0.6], [0.8, 0.9]]), np.array([[0.1, 0.2], [0.3, 0.4]])
    log_ratio, delta = family.half_planes(nulls, p, q)
    for row in (0, 1):
        one = family.half_planes(nulls[row : row + 1], p[row], q[row])
        np.testing.assert_array_equal(log_ratio[row : row + 1], one[0])
        np.testing.assert_array_equal(delta[row : row + 1], one[1])
    # In standard errors of p - R q, over all slopes of the grid; that comes first.
    family = verdict_family(ZeroConcentratedDP(0.4))
    p, q = np.array([0.2, 0.7, 0.95, 0.3]), np.array([0.01, 0.1, 0.5, 0.05])
    ratio, limit = np.exp(family._log_ratio), family._delta
    found, _ = family.half_planes(np.zeros(1, dtype=np.intp), p, q)
    for a, b, log_ratio in zip(p, q, found[0, :, 0], strict=True):
        error = np.sqrt(a * (1 - a) + ratio**2 * b * (1 - b))
        expected = np.argmax((a - ratio * b - limit) / error)
        assert log_ratio == family._log_ratio[expected]


def test_the_claim_is_on_the_grid_and_the_first_family_decides():
    families = families_for(ApproxDP(2.0, 1e-4), 1e-4, 2.0)
    assert families["epsilon"].parameter[families["epsilon"].claimed] == 2.0
    assert families["delta"].parameter[families["delta"].claimed] == 1e-4
    assert families["delta"].parameter[0] == 0.0
    pure = families_for(PureDP(2.0), 0.0, 2.0)
    assert pure["delta"].claimed == 0
    mu = families_for(GaussianDP(0.3), 1e-5, 1.0)
    assert mu["mu"].parameter[mu["mu"].claimed] == 0.3
    assert mu["epsilon"].claimed is None
    refuses("not in this family", mu["epsilon"].claim_only, error=ValueError)
    assert next(iter(families_for(PureDP(1.0), 0.0, 1.0))) == "epsilon"
    assert next(iter(families_for(ApproxDP(1.0, 0.1), 0.1, 1.0))) == "epsilon"
    assert next(iter(families_for(GaussianDP(1.0), 1e-5, 1.0))) == "mu"
    assert next(iter(families_for(PROFILE, 0.5, 0.1))) == "claim"
    assert next(iter(families_for(ZeroConcentratedDP(1.0), 1e-5, 1.0))) == "claim"


@pytest.mark.parametrize("key", FAMILIES)
def test_one_null_of_a_family(key):
    """It counts as the claim, and is held to the same half-planes."""
    family, _ = FAMILIES[key]
    null = min(700, len(family) - 1)
    alone = family.only(null)
    assert len(alone) == 1
    assert alone.claimed == 0
    assert alone.parameter[0] == family.parameter[null]
    p, q = np.array([0.5, 0.9]), np.array([0.2, 0.1])
    for found, expected in zip(
        alone.half_planes(np.array([0]), p, q),
        family.half_planes(np.array([null]), p, q),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)
    assert len(family.claim_only()) == 1


@pytest.mark.parametrize("centre", [0.003, 0.1, 1.0, 30.0, 400.0])
def test_resolution_and_reach_of_the_grids(centre):
    """Small values are reached whatever the claim, in steps of a part in a thousand."""
    for family in (verdict_family(PureDP(centre)), verdict_family(GaussianDP(centre))):
        grid = family.parameter
        assert grid[family.claimed] == centre
        assert grid[0] <= 0.0503
        assert grid[0] <= centre / 19.9
        assert grid[-1] >= min(max(19.9 * centre, 39.9), 499)
        assert grid[-1] <= 500
        assert np.diff(np.log(grid)).max() <= 0.001 + 1e-9


def test_resolution_and_reach_of_the_grid_in_delta():
    grid = families_for(ApproxDP(1.0, 1e-3), 1e-3, 1.0)["delta"].parameter
    assert grid[0] == 0.0
    assert grid[-1] < 1
    assert np.diff(grid).max() < 0.003
    rare = grid[grid > 0]
    assert (rare[1:] / rare[:-1]).max() < 1.07
    refuses("501", verdict_family, PureDP(501.0))
