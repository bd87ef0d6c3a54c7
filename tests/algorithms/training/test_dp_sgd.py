"""DP-SGD: its gradients, the law of its sums, its likelihood, and what is planted.

Type-I error: 1e-9 for each test of a law; seeds are fixed.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from refusals import refused, refuses
from scipy import stats
from scipy.special import logsumexp

from dpaudit import Relation, UnsupportedError
from dpaudit.algorithms import DPSGD, build, names_of
from dpaudit.algorithms.shared.batches import AllRows
from dpaudit.algorithms.training import dp_sgd
from dpaudit.algorithms.training.planted import BatchClippedSGD, FixedBatchSGD

ROWS = np.array([[0.3, -1.0, 1.0], [2.0, 2.0, 0.0], [-0.5, 4.0, 3.0]])
NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=64)


def few_steps(**options):
    usual = {"rows": 10, "batch_size": 4, "iterations": 2, "learning_rate": 3.0}
    return DPSGD.calibrated(1.0, 1e-5, **usual | options)


def test_gradients_are_clipped_each_or_in_sum_and_what_cannot_be_refused():
    mechanism, start = few_steps(clip_norm=0.5), np.zeros((1, 2))
    each = [mechanism.summed(mechanism.rows(r[np.newaxis]), start)[0] for r in ROWS]
    raw = np.array([0.5, -0.5, 0.5])[:, np.newaxis] * ROWS[:, :-1]
    lengths = np.linalg.norm(raw, axis=1, keepdims=True)
    np.testing.assert_allclose(each, raw * np.minimum(1, 0.5 / lengths))
    together = mechanism.summed(mechanism.rows(ROWS), start)[0]
    np.testing.assert_allclose(together, np.sum(each, axis=0))
    mechanism, start = BatchClippedSGD.planted(1.0, 1e-5), np.zeros((1, 2))
    raw = np.array([0.5, -0.5, 0.5]) @ ROWS[:, :-1]
    for factor in (1e-3, 1.0, 1e200):
        rows = ROWS * [factor, factor, 1.0]
        clipped = raw * min(factor, mechanism.clip_norm / np.linalg.norm(raw))
        found = mechanism.summed(mechanism.rows(rows), start)[0]
        np.testing.assert_allclose(found, clipped)
    message = "data must have a column or more beside that of the labels"
    refuses(message, few_steps().release, [[1.0], [2.0]], rng=np.random.default_rng(0))
    refuses("batch_size", few_steps, batch_size=11)
    mechanism = replace(few_steps(), batches=AllRows(), relation=Relation.REPLACE_ONE)
    steps = mechanism.transcript(ROWS, 1, rng=np.random.default_rng(0))
    with pytest.raises(UnsupportedError, match="no likelihood"):
        mechanism.transcript_loss(steps, ROWS, ROWS)
    with pytest.raises(UnsupportedError, match="no likelihood"):
        build("dp-sgd-batch-means").transcript_loss(steps, ROWS, ROWS)


@given(arrays(float, (1, 4), elements=NUMBERS), arrays(float, 3, elements=NUMBERS))
def test_no_row_moves_a_sum_by_more_than_the_clip(row, weights):
    mechanism = few_steps(clip_norm=2.0)
    found = mechanism.summed(mechanism.rows(row), weights[np.newaxis])
    assert np.linalg.norm(found) <= 2 * (1 + 1e-12)  # false for NaN


def test_a_noisy_sum_has_the_law_of_the_mixture():
    """A Kolmogorov-Smirnov test of 20,000 first steps along the first axis."""
    mechanism = few_steps()
    steps = mechanism.transcript(ROWS, 20_000, rng=np.random.default_rng(0))["steps"]
    rows, q = mechanism.rows(ROWS), 0.4
    terms = [mechanism.summed(row[np.newaxis], np.zeros((1, 2)))[0, 0] for row in rows]

    def law(x):
        total = 0.0
        for taken in product((0, 1), repeat=3):
            weight = np.prod([q if t else 1 - q for t in taken])
            total += weight * stats.norm.cdf(
                x, np.dot(taken, terms), mechanism.multiplier
            )
        return total

    assert stats.kstest(steps[:, 0, 0], law).pvalue > 1e-9


def test_steps_are_noise_of_the_whole_deviation_and_sum_to_the_release():
    """Chi-square, two-sided, at 1e-9; 3 % less noise would pass with chance 1e-9."""
    mechanism = few_steps(clip_norm=0.5)
    steps = mechanism.transcript(ROWS[:0], 20_000, rng=np.random.default_rng(8))
    noise = steps["steps"].ravel() / (0.5 * mechanism.multiplier)
    law = stats.chi2(noise.size)
    assert law.ppf(5e-10) < np.sum(noise**2) < law.isf(5e-10)
    mechanism = few_steps()
    rng = [np.random.default_rng(5) for _ in range(2)]
    steps = mechanism.transcript(ROWS, 4, rng=rng[0])["steps"]
    found = mechanism.draw(ROWS, 4, rng=rng[1])
    np.testing.assert_allclose(found, 3.0 / 4 * steps.sum(axis=1))


def test_what_is_drawn_together_is_as_what_is_drawn_in_parts(monkeypatch):
    """Runs have their own batches, noise and weights; in parts from other numbers."""
    together = few_steps().draw(ROWS, 4_000, rng=np.random.default_rng(6))
    monkeypatch.setattr(dp_sgd, "_WORK", 1_000)
    parts = few_steps().draw(ROWS, 4_000, rng=np.random.default_rng(7))
    assert stats.ks_2samp(together[:, 0], parts[:, 0]).pvalue > 1e-9
    assert len(np.unique(parts[:, 0])) == 4_000


def test_the_loss_of_a_transcript_is_that_of_all_batches_one_by_one():
    mechanism = few_steps()
    other = ROWS[:2]
    steps = mechanism.transcript(ROWS, 5, rng=np.random.default_rng(1))["steps"]

    def log_density(data, run):
        rows, weights, total = mechanism.rows(data), np.zeros(2), 0.0
        for noisy in run:
            logs = []
            for taken in product((False, True), repeat=len(rows)):
                batch = rows[np.array(taken)]
                mean = mechanism.summed(batch, weights[np.newaxis])[0]
                chance = np.prod([0.4 if t else 0.6 for t in taken])
                law = stats.norm(mean, mechanism.multiplier)
                logs.append(np.log(chance) + law.logpdf(noisy).sum())
            total += logsumexp(logs)
            weights = weights + 3.0 / 4 * noisy
        return total

    expected = [log_density(ROWS, run) - log_density(other, run) for run in steps]
    found = mechanism.transcript_loss({"steps": steps}, ROWS, other)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_the_noise_is_that_of_a_public_accountant_and_more_for_a_replaced_row():
    mechanism = DPSGD.calibrated(1.0, 1e-5)
    step = PoissonSampledDpEvent(0.1, GaussianDpEvent(mechanism.multiplier))
    accountant = PLDAccountant().compose(SelfComposedDpEvent(step, 50))
    assert accountant.get_epsilon(1e-5) == pytest.approx(1.0, rel=2e-3)
    assert few_steps(relation="replace-one").multiplier > 1.5 * few_steps().multiplier


@pytest.mark.parametrize("name", names_of("training"))
def test_dimensions_count_the_label(name):
    mechanism, rng = build(name), np.random.default_rng(0)
    data = mechanism.worst_case(4).neighbour
    assert data.shape[1] == 4
    assert mechanism.release(data, rng=rng).shape == (3,)
    assert np.isfinite(mechanism.transcript(data, 2, rng=rng)["steps"]).all()


def test_losses_on_fixed_batches_are_of_normal_sums_and_gradients_of_log_likelihoods():
    """Of one row, which is in the first of ten steps."""
    mechanism = FixedBatchSGD.planted(1.0, 1e-5)
    row = np.array([[4.0, 1.0]])
    steps = mechanism.transcript(row, 3, rng=np.random.default_rng(2))["steps"]
    found = mechanism.transcript_loss({"steps": steps}, row, row[:0])
    expected = (steps[:, 0, 0] - 0.5) / mechanism.multiplier**2
    np.testing.assert_allclose(found, expected)
    # By central differences; where nothing is clipped.
    mechanism, weights = few_steps(clip_norm=100.0), np.array([0.7, -0.2])
    signs = np.where(ROWS[:, -1] > 0, 1.0, -1.0)

    def log_likelihood(weights):
        return -np.logaddexp(0, -signs * (ROWS[:, :-1] @ weights)).sum()

    found = mechanism.summed(mechanism.rows(ROWS), weights[np.newaxis])[0]
    for place, move in enumerate(1e-6 * np.eye(2)):
        rise = log_likelihood(weights + move) - log_likelihood(weights - move)
        assert found[place] == pytest.approx(rise / 2e-6, rel=1e-6)


test_settings_that_are_not_allowed_are_refused = refused(
    ({"batches": AllRows()}, "relation must be replace-one"),
    *(({name: 0.0}, name) for name in ("clip_norm", "learning_rate", "multiplier")),
    by=lambda changes: replace(few_steps(), **changes),
)
