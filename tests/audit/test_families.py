"""Null families: nested, contained in their half-planes, with the claim on the grid."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit

from dpaudit import ApproxDP, GaussianDP, InputError, Profile, PureDP
from dpaudit.audit.families import (
    delta_family,
    epsilon_family,
    families_for,
    mu_family,
    single_null,
)

FAMILIES = {
    "epsilon": (epsilon_family(1.0, 1e-3, claimed=True), lambda e: ApproxDP(e, 1e-3)),
    "delta": (delta_family(1.0, 1e-3, claimed=True), lambda d: ApproxDP(1.0, d)),
    "mu": (mu_family(0.7), GaussianDP),
}


@pytest.mark.parametrize("key", FAMILIES)
def test_half_planes_contain_their_null(key):
    """Every point (p, q) that the null allows satisfies all its half-planes."""
    family, claim_of = FAMILIES[key]
    q = np.linspace(0, 1, 201)
    for index in range(0, len(family), 40):
        p = claim_of(family.parameter[index]).tpr(q)
        excess = p - np.exp(family.log_ratio[index])[:, np.newaxis] * q
        assert (excess <= family.delta[index][:, np.newaxis] + 1e-12).all()


@pytest.mark.parametrize("key", FAMILIES)
def test_half_planes_touch_their_null(key):
    """The half-planes are not needlessly wide: each is tight somewhere."""
    family, claim_of = FAMILIES[key]
    # Dense in log-odds, where the corners of the polygons and the Gaussian tails lie.
    q = expit(np.linspace(-36, 36, 200_001))
    shown = np.flatnonzero(family.parameter < 2.5)  # beyond, q underflows the grid
    for index in shown[::150]:
        p = claim_of(family.parameter[index]).tpr(q)
        excess = p - np.exp(family.log_ratio[index])[:, np.newaxis] * q
        np.testing.assert_allclose(excess.max(axis=1), family.delta[index], atol=5e-4)


@pytest.mark.parametrize("key", FAMILIES)
def test_nulls_are_nested(key):
    family, claim_of = FAMILIES[key]
    q = np.linspace(0, 1, 101)
    curves = [claim_of(t).tpr(q) for t in family.parameter[::60]]
    assert all((a <= b + 1e-12).all() for a, b in pairwise(curves))
    assert (np.diff(family.parameter) > 0).all()


def test_the_claim_is_on_the_grid():
    families = families_for(ApproxDP(2.0, 1e-4), 1e-4, 2.0)
    assert families["epsilon"].parameter[families["epsilon"].claimed] == 2.0
    assert families["delta"].parameter[families["delta"].claimed] == 1e-4
    assert families["delta"].parameter[0] == 0.0
    mu = families_for(GaussianDP(0.3), 1e-5, 1.0)["mu"]
    assert mu.parameter[mu.claimed] == 0.3
    alone = mu.claim_only()
    assert len(alone) == 1
    assert alone.parameter[alone.claimed] == 0.3


def test_the_first_family_decides():
    assert next(iter(families_for(PureDP(1.0), 0.0, 1.0))) == "epsilon"
    assert next(iter(families_for(GaussianDP(1.0), 1e-5, 1.0))) == "mu"
    assert next(iter(families_for(Profile((0.0,), (0.3,)), 0.5, 0.1))) == "claim"


def test_single_null_of_a_total_variation_claim():
    family = single_null(Profile((0.0,), (0.3,)))
    assert family.delta.min() >= 0.3
    np.testing.assert_allclose(family.delta[family.log_ratio >= 0], 0.3)


def test_grids_reach_down_to_small_values_whatever_the_claim():
    for centre in (0.01, 1.0, 30.0, 400.0):
        family = epsilon_family(centre, 0.0, claimed=True)
        assert family.parameter[0] <= 0.0503
        assert family.parameter[family.claimed] == pytest.approx(centre, rel=1e-12)


def test_claims_beyond_double_precision_are_refused():
    with pytest.raises(InputError, match="501"):
        epsilon_family(501.0, 0.0, claimed=True)
