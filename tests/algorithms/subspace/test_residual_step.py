"""Residual steps: sensitivities, the law of the queries, the claim, bad input.

Type-I error: 1e-9 for each of the cases that name a null hypothesis, at fixed seeds.
"""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from residual_rows import low_rank, moved_by_a_row
from scipy import stats
from scipy.special import erf
from seeded import rng

from dpaudit import ApproxDP, Relation
from dpaudit.algorithms import GOEGaussian, PureResidualStepPCA, ResidualStepPCA
from dpaudit.algorithms.online.noise import pack
from dpaudit.algorithms.subspace.residual_plan import (
    StepPlan,
    _clipped,
    clipped_sums,
)
from dpaudit.audit import Budget, Verdict, audit
from dpaudit.gaussian import gaussian_delta, gaussian_mu
from dpaudit.rows import clip_rows
from dpaudit.subspace import largest_principal_angle_sine

ADD_REMOVE, REPLACE_ONE = Relation
TYPE_I_ERROR = 1e-9


def built(relation, *, mu=1.0, k=2, **options):
    return ResidualStepPCA.from_mu(mu, n_components=k, relation=relation, **options)


# Sensitivity: what a proof says of each query, whatever was released before
@settings(max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from(Relation), st.data())
def test_no_query_moves_further_than_its_share(seed, relation, data):
    mechanism, _, moved = moved_by_a_row(
        lambda relation, k: built(relation, k=k, mu=3.0, row_norm=2.0),
        *(relation, seed, data),
    )
    mus = [mechanism.mu * sqrt(share) for share in mechanism.shares]
    first = np.linalg.norm(moved["first"], axis=1)
    assert first.max() <= mus[0] * (1 + 1e-12)
    second = np.linalg.norm(moved["second"], axis=1)
    assert second.max() <= np.linalg.norm(mus[1:]) * (1 + 1e-12)
    steps = np.linalg.norm(moved["steps"], axis=2)
    assert np.all(steps.max(axis=0) <= np.array(mus[1:]) * (1 + 1e-12))
    # What is left after some steps may be spent on the second moment, and no more.
    together = np.sqrt(first**2 + second**2 + (steps**2).sum(axis=1))
    assert together.max() <= mechanism.mu * (1 + 1e-12)


# The law: each query by hand, and noise that is normal about it
def by_hand(rows, basis, clip, wide):
    """The sums of step 4, one row after the other."""
    cross, response = 0.0, 0.0
    for row in rows:
        inner = basis.T @ row
        outer = row - basis @ inner
        length = np.linalg.norm(inner) * np.linalg.norm(outer)
        weight = min(1.0, clip / length)
        squares = weight * inner**2
        cross += weight * np.outer(outer, inner)
        response += squares * min(1.0, wide / np.linalg.norm(squares))
    return np.vstack([cross, 0.3 * clip / wide * response])


@pytest.mark.parametrize("relation", list(Relation))
def test_means_are_those_of_the_definition_and_noise_is_normal(relation):
    # Null hypothesis: values less means are independent and standard normal.
    mechanism = built(relation, mu=2.0, row_norm=0.7)
    rows = low_rank(400)
    seen = mechanism.transcript(rows, 300, rng=rng(1))
    means = mechanism.step_means(seen, rows)
    draws = mechanism.draw(rows, 300, rng=rng(1))
    # In some the first query is so far off that it contradicts a step.
    stepped = ~seen["second"].any(axis=1)
    assert stepped.mean() > 0.8
    seen, means = ({x: y[stepped] for x, y in each.items()} for each in (seen, means))
    unit = clip_rows(rows, 0.7) / 0.7
    moved = sqrt(2) if relation is REPLACE_ONE else sqrt(1.01)
    first, *later = np.sqrt(mechanism.shares)
    assert sum(mechanism.shares) == pytest.approx(1)
    matrix = pack(unit.T @ unit, np.sqrt(2)) * first * 2 / moved
    np.testing.assert_allclose(
        means["first"][:, :21], matrix + 0 * means["first"][:, :21]
    )
    if relation is ADD_REMOVE:
        assert means["first"][0, 21] == pytest.approx(40 * first * 2 / moved)
    plan = mechanism._plan(seen, 6, len(rows))
    assert plan.steps.all()
    factor = sqrt(4.18) if relation is REPLACE_ONE else sqrt(1.09)
    for step, share in enumerate(later):
        scale = factor * plan.clip / (2 * share)
        for trial in range(3):
            expected = by_hand(
                unit, plan.basis[trial], plan.clip[trial], plan.wide[trial]
            )
            np.testing.assert_allclose(
                means["steps"][trial, step],
                expected.ravel() / scale[trial],
                rtol=1e-9,
                atol=1e-9,
            )
        plan = plan.moved(seen["steps"][:, step], scale)
    noise = np.hstack(
        [(seen[x] - means[x]).reshape(stepped.sum(), -1) for x in ("first", "steps")]
    )
    assert stats.kstest(noise.ravel(), "norm").pvalue >= TYPE_I_ERROR
    # Rows of independent noise: the lengths are chi-square.
    law = stats.chi2(noise.shape[1])
    assert stats.kstest((noise**2).sum(axis=1), law.cdf).pvalue >= TYPE_I_ERROR
    np.testing.assert_allclose(plan.basis, draws[stepped], atol=1e-9)


def test_rows_next_to_the_subspace_are_clipped_as_far_as_others():
    basis = np.linalg.qr(rng(2).standard_normal((6, 2)))[0]
    rows = rng(3).standard_normal((9, 2)) @ basis.T + 1e-7 * rng(4).standard_normal(6)
    seen = StepPlan(basis[None], *[np.full(1, 1e-8)] * 12)
    found = clipped_sums(rows, seen)[0]
    expected = by_hand(rows, basis, 1e-8, 1e-8)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


def lopsided(n=20_000):
    """Rows that a clip moves: those near one axis are short, near another one long."""
    rows = 0.05 * rng(8).standard_normal((n, 5))
    lengths = rng(9).standard_normal(n)
    rows[:, 0] += 0.3 * lengths
    rows[: n // 3, :2] += 0.3 * lengths[: n // 3, np.newaxis]
    return clip_rows(rows, 1.0)


@pytest.mark.parametrize("relation", list(Relation))
def test_where_the_clip_moves_the_rows_what_is_left_goes_to_their_moment(relation):
    """A bias 20 times the error of GOE noise; medians of 40 vary by a fifth."""
    rows, mu = lopsided(), 1.0 if relation is REPLACE_ONE else 0.5
    mechanism = built(relation, mu=mu, k=1)
    seen = mechanism.transcript(rows, 40, rng=rng(9))
    spent = [np.any(seen["steps"][:, step], axis=1) for step in range(3)]
    assert spent[0].all()
    assert spent[2].mean() < 0.1
    assert np.array_equal(np.any(seen["second"], axis=1), ~spent[2])
    truth = np.linalg.eigh(rows.T @ rows)[1][:, -1:]
    goe = GOEGaussian.from_mu(mu, relation=relation)
    both = (
        mechanism.draw(rows, 40, rng=rng(9)),
        goe.components(goe.draw(rows, 40, rng=rng(10)), 1),
    )
    ours, theirs = (
        np.median([largest_principal_angle_sine(basis, truth) for basis in bases])
        for bases in both
    )
    assert ours < 1.5 * theirs
    # By symmetric rows nothing is moved, and all steps are taken.
    mechanism = built(relation, mu=mu)
    seen = mechanism.transcript(low_rank(), 40, rng=rng(9))
    assert np.any(seen["steps"][:, 2], axis=1).mean() > 0.8


@pytest.mark.parametrize("relation", list(Relation))
def test_where_no_step_is_taken_the_law_is_that_of_one_draw(relation):
    # Null hypothesis: angles to an axis have the law that GOE noise of nearly the same
    # deviation gives (under ADD_REMOVE 0.15 % is lost, not seen here).
    mechanism = built(relation, mu=2.0, k=2)
    rows = rng(3).standard_normal((40, 2)) * [0.6, 0.5]
    seen = mechanism.transcript(rows, 3000, rng=rng(4))
    assert not seen["steps"].any()
    goe = GOEGaussian.from_mu(2.0, relation=relation)
    one = mechanism.draw(rows, 3000, rng=rng(4))
    two = goe.components(goe.draw(rows, 3000, rng=rng(5)), 2)
    samples = (np.abs(each[:, 0, 0]) for each in (one, two))
    assert stats.ks_2samp(*samples).pvalue >= TYPE_I_ERROR


# The claim
@pytest.mark.parametrize("relation", list(Relation))
def test_the_loss_has_the_profile_of_the_claim_at_most_and_nearly_attains_it(relation):
    # E_P[(1 - e^(epsilon - L))_+] <= delta for P either side; means of 4e4 variables in
    # [0, 1] with variance below 0.06, and so within 6.2 deviations of 0.0013.
    mechanism = ResidualStepPCA.calibrated(
        1.0, 0.1, n_components=1, relation=relation, row_norm=3.0
    )
    pair = mechanism.worst_case()
    assert pair.relation is relation
    sides = (pair.data, pair.neighbour), (pair.neighbour, pair.data)
    for data, other in sides:
        seen = mechanism.transcript(data, 40_000, rng=rng(6))
        loss = mechanism.transcript_loss(seen, data, other)
        for epsilon in (0.0, 0.5, 1.0, 2.0):
            delta = np.maximum(-np.expm1(epsilon - loss), 0).mean()
            claimed = float(gaussian_delta(epsilon, mechanism.mu))
            assert delta <= claimed + 0.008
            assert delta >= float(gaussian_delta(epsilon, 0.95 * mechanism.mu)) - 0.008
    assert mechanism.claim == ApproxDP(1.0, 0.1)
    assert mechanism.mu == gaussian_mu(1.0, 0.1)


@pytest.mark.parametrize("relation", list(Relation))
def test_an_audit_of_transcripts_sees_nine_tenths_of_mu(relation, here_in_few_rounds):
    result = audit(
        built(relation, mu=2.0, k=1),
        layer="transcript",
        confidence=0.999,
        budget=Budget(12_000, stop=False),
    )
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.mu_lower > 0.9 * 2.0


# What it is for


def test_steps_follow_where_they_promise_less_and_count_by_their_noise():
    moments = 1000 * np.diag([1.0, 0.8, 0.1, 0.1, 0.1])[np.newaxis]
    seen = {"noise": 5.0, "whole_noise": 2.5}
    quiet, loud, few = (
        StepPlan.made(moments, np.array([count]), 2, step_noise=noise, **seen)
        for noise, count in ((1.0, 1e6), (3e4, 1e6), (300.0, 1e4))
    )
    # Of few rows the clip weighs the sample anew, by more than the noise of one draw.
    assert (quiet.found & loud.found & few.found).all()
    assert (quiet.steps[0], loud.steps[0], few.steps[0]) == (True, False, False)
    noise = rng(7).standard_normal((1, 12))
    far, near = (
        largest_principal_angle_sine(quiet.moved(noise, at).basis, quiet.basis)[0]
        for at in (np.array([1e3]), np.array([1.0]))
    )
    assert far < 1e-3 < near  # a step of noise alone leaves V where it was


def test_the_response_and_what_a_clip_adds_are_those_of_normal_rows():
    """Means of 1e6 variables whose variances are below 3: within 0.01."""
    for m, reach in ((1, 0.3), (1, 1.0), (1, 2.5), (3, 0.5), (3, 1.0)):
        z = np.linalg.norm(rng(12).standard_normal((1_000_000, m)), axis=1) / sqrt(m)
        weights = np.minimum(1.0, reach / z)
        kept, anew = _clipped(np.array([reach]), np.array([m]))
        seen = np.mean(weights * z**2)
        assert kept == pytest.approx(seen, abs=0.01)
        moved = np.mean((weights / seen - 1) ** 2 * z**2)
        assert anew == pytest.approx(moved, abs=0.01)


def test_an_axis_outside_that_stands_out_is_turned_by_its_own_gap():
    """One step without noise, of rows that no clip shortens, finds both axes."""
    spectrum = np.array([1000.0, 700.0, 5.0, 5.0])
    turned = np.linalg.qr(np.eye(4) + 0.02 * rng(13).standard_normal((4, 4)))[0]
    moments = (turned * spectrum @ turned.T)[None]
    noise = {"noise": 10.0, "whole_noise": 5.0, "step_noise": 1e-3}
    plan = StepPlan.made(np.diag(spectrum)[None], np.array([1e9]), 1, **noise)
    seen = np.zeros((1, 5, 1))
    seen[:, :4] = moments @ plan.basis
    seen[:, 4] = plan.values * 0.3 * plan.clip / plan.wide
    after = plan.moved(seen.reshape(1, 5) / 1e-3, np.full(1, 1e-3))
    assert largest_principal_angle_sine(plan.basis, turned[:, :1]) > 0.02
    assert largest_principal_angle_sine(after.basis, turned[:, :1]) < 0.002


def test_the_clip_becomes_less_where_it_has_left_too_much_and_never_more():
    """A clip of r times the mean leaves about erf(r/sqrt 2) of the second moment."""
    moments, count = 1000 * np.diag([1.0, 0.8, 0.1, 0.1, 0.1])[None], np.array([1e3])
    noise = {"noise": 5.0, "whole_noise": 2.5, "step_noise": 100.0}
    plan = StepPlan.made(moments, count, 2, **noise)
    assert plan.clip == pytest.approx(0.3 * sqrt(1.8 * 0.3), rel=0.02)
    for large, expected in (
        (1.0, 1.0),
        (0.5, 1.0),
        (2.0, 0.5),
        (4.0, 0.25),
        (99, 0.125),
    ):
        left = erf(0.3 * large / sqrt(2))
        seen = np.zeros((1, 6, 2))
        seen[:, 5] = left * plan.values * 0.3 * plan.clip / plan.wide
        after = plan.moved(seen.reshape(1, 12), np.ones(1))
        assert after.clip == pytest.approx(plan.clip * expected)
        assert after.wide == pytest.approx(plan.wide * expected)


def test_blocks_are_the_rows_put_together_and_err_a_third_of_goe_noise_near_planes():
    rows = low_rank(500)
    mechanism = built(ADD_REMOVE)
    blocks = [rows[:100], rows[100:]]
    np.testing.assert_allclose(
        mechanism.release(blocks, rng=rng(8)),
        mechanism.release(rows, rng=rng(8)),
        atol=1e-9,
    )
    rows, axes = low_rank(8000, 20), np.eye(20)[:, :2]
    mechanism = ResidualStepPCA.calibrated(1.0, 1e-6, n_components=2)
    goe = GOEGaussian.calibrated(1.0, 1e-6)
    bases = goe.components(goe.draw(rows, 40, rng=rng(7)), 2)
    one, two = (
        np.median(largest_principal_angle_sine(each, axes))
        for each in (mechanism.draw(rows, 40, rng=rng(7)), bases)
    )
    assert one < two / 3


# Bad and degenerate input
BAD = {
    "no rows": (np.zeros((0, 4)), 1.0),
    "fewer than k": (np.ones((1, 4)), 1.0),
    "zeros": (np.zeros((50, 4)), 1.0),
    "all alike": (np.tile([3.0, 4.0, 0.0, 0.0], (3000, 1)), 1.0),
    "in a plane": (low_rank(3000, 4, 2, noise=0.0), 1.0),
    "R too large": (low_rank(3000, 4), 1e3),
    "R too small": (low_rank(3000, 4), 1e-3),
    "no gap": (np.tile(np.eye(4), (500, 1)), 1.0),
    "far": (1e150 * low_rank(3000, 4), 1e-50),
}


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("name", BAD)
def test_whatever_the_rows_a_basis_is_released(name, relation):
    rows, norm = BAD[name]
    mechanism = built(relation, mu=0.5, row_norm=norm)
    seen = mechanism.transcript(rows, 20, rng=rng(10))
    bases = mechanism.draw(rows, 20, rng=rng(10))
    gram = bases.swapaxes(1, 2) @ bases
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(2), gram.shape), atol=1e-9)
    # Whether components stand out is said by the first query alone.
    found = mechanism.found(seen, 4).mean()
    clear = name in ("in a plane", "R too small", "far")
    assert found > 0.9 if clear else found < 0.2


@pytest.mark.parametrize("made", [ResidualStepPCA, PureResidualStepPCA])
@pytest.mark.parametrize(("d", "k"), [(2, 1), (3, 2), (6, 1)])
def test_components_without_a_gap_are_seldom_found(made, d, k):
    """Of 600 first queries 96 at most, where k - 1 components stand far out.

    The chance is Beta(3, 57) over the draws of noise that they are held against, so the
    false alarm is below .003 a case. Without these draws up to 3 in 10 were found.
    """
    rows = np.repeat(np.eye(d), [3000] * (k - 1) + [300] * (d - k + 1), axis=0)
    delta = {"delta": 1e-5} if made is ResidualStepPCA else {}
    mechanism = made.calibrated(1.0, **delta, n_components=k)
    seen = mechanism.transcript(rows, 600, rng=rng(11))
    assert mechanism.found(seen, d).mean() <= 0.16


test_what_no_data_could_mend_is_refused = refused(
    ({"n_components": 0}, np.ones((5, 2)), "n_components must be an integer >= 1"),
    ({"shares": (1.0,)}, np.ones((5, 2)), "shares must have at least two"),
    ({"shares": (0.5, 0.0)}, np.ones((5, 2)), "shares must be a finite number > 0"),
    ({"n_components": 3}, np.ones((5, 2)), "at most the length of a row, 2"),
    ({}, iter([np.ones((5, 2))]), "readable more than once"),
    ({}, [[0.0, np.nan]], "row 0 has a NaN"),
    by=lambda fields, rows: ResidualStepPCA.from_mu(
        1.0, **{"n_components": 1, **fields}
    ).draw(rows, 1, rng=rng()),
)
