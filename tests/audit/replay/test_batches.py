"""Secret batches: mixtures over the flip of the row that differs, and public ones."""

import numpy as np
import pytest
from scipy.stats import norm

from dpaudit import ApproxDP, Pair
from dpaudit.algorithms.shared.subsampling import noise_multiplier
from dpaudit.audit import replay
from dpaudit.audit.replay.statistics import Followed
from dpaudit.audit.replay.tape import LAZY, Reading

Q, B, STEPS, D = 0.2, 4.0, 6, 2
CLAIM = ApproxDP(1.0, 1e-5)
SIGMA = noise_multiplier(1.0, 1e-5, rate=Q, steps=STEPS)
ROWS = np.random.default_rng(0).standard_normal((12, D))
FAR = np.array([[30.0, 30.0]])
# In the middle, so that the rows after it are at other places on the other side.
PAIR = Pair(np.vstack([ROWS[:5], FAR, ROWS[5:]]), ROWS)


def clipped(gradients):
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return gradients / np.maximum(norms, 1.0)


def dp_sgd(x, rng, sigma=SIGMA, q=Q):
    w = np.zeros(x.shape[1])
    for _ in range(STEPS):
        batch = x[rng.random(len(x)) < q]
        total = clipped(batch - w).sum(axis=0)
        w = w + 0.5 * (total + rng.normal(0, sigma, w.shape)) / B
    return w


def clips_the_batch(x, rng):
    w = np.zeros(x.shape[1])
    for _ in range(STEPS):
        total = (x[rng.random(len(x)) < Q] - w).sum(axis=0, keepdims=True)
        w = w + 0.5 * (clipped(total)[0] * 2 + rng.normal(0, SIGMA, w.shape)) / B
    return w


def noise_for_the_batch(x, rng):
    w = np.zeros(x.shape[1])
    for _ in range(STEPS):
        batch = x[rng.random(len(x)) < Q]
        mean = clipped(batch - w).sum(axis=0) / max(len(batch), 1)
        w = w + 0.5 * (mean + rng.normal(0, SIGMA / B, w.shape))
    return w


def fixed_batches(x, rng):
    w = np.zeros(x.shape[1])
    for step in range(STEPS):
        total = clipped(x[step % 2 :: 2] - w).sum(axis=0)
        w = w + 0.5 * (total + rng.normal(0, SIGMA, w.shape)) / B
    return w


def rule_of_thumb(x, rng):
    return dp_sgd(x, rng, sigma=Q * np.sqrt(STEPS))


def private_count(x, rng):
    w = np.zeros(x.shape[1])
    for _ in range(STEPS):
        total = clipped(x[rng.random(len(x)) < Q] - w).sum(axis=0)
        w = w + 0.5 * (total + rng.normal(0, SIGMA, w.shape)) / (Q * len(x))
    return w


@pytest.mark.parametrize("pair", [PAIR, PAIR.swapped], ids=["leaves", "joins"])
@pytest.mark.parametrize("sees", ["release", "transcript"])
def test_dp_sgd_is_held_to_the_composition_of_its_samples(pair, sees):
    result = replay(dp_sgd, pair=pair, claim=CLAIM, sees=sees)
    assert (result.verdict, result.findings) == ("NOT_REFUTED", ())
    assert (result.samples, len(result.steps)) == (0, STEPS)
    assert [step.l2 for step in result.steps] == pytest.approx([1.0] * STEPS)
    assert {step.scale for step in result.steps} == {SIGMA}
    assert ("other rows" in str(result)) == (sees == "transcript")


def test_a_claim_that_needs_one_percent_less_noise_is_not_held():
    # The accountant's noise is the least, up to 0.1 %.
    result = replay(
        lambda x, rng: dp_sgd(x, rng, sigma=0.99 * SIGMA),
        pair=PAIR,
        claim=CLAIM,
        sees="transcript",
        max_samples=2,
    )
    assert result.samples > 0


def densities(x, y, places, bits):
    """Return the log-densities of steps, the rows in each batch being known."""
    w, logs = np.zeros(D), []
    for noisy, batch in zip(y, bits, strict=True):
        total = clipped(x[batch] - w).sum(axis=0)
        logs.append(norm.logpdf(noisy, total, SIGMA).sum())
        w = w + 0.5 * noisy / B
    return np.array(logs)


@pytest.mark.parametrize("reading", [Reading(eager=True), LAZY], ids=["eager", "lazy"])
@pytest.mark.parametrize("pair", [PAIR, PAIR.swapped], ids=["leaves", "joins"])
def test_losses_are_those_of_mixtures_over_the_flips_of_one_row(pair, reading):
    followed = Followed(dp_sgd, pair=pair, reading=reading)
    seen = followed.transcript(pair.data, 5, rng=np.random.default_rng(1))
    found = followed.transcript_loss(seen, pair.data, pair.neighbour)
    for turn in range(5):
        values = [v[turn] for k, v in seen.items() if k != "release"]
        masks = [v.astype(bool) for v in values if v.shape == (len(ROWS),)]
        sums = [v for v in values if v.shape == (D,)]
        if reading == LAZY:
            # It sees the weights; the last of them are the release.
            weights = np.array([np.zeros(D), *sums, seen["release"][turn]])
            sums = list(np.diff(weights, axis=0) * B / 0.5)
        assert (len(masks), len(sums)) == (STEPS, STEPS)
        out = densities(ROWS, sums, None, masks)
        with_row = [np.insert(mask, 5, True) for mask in masks]
        within = densities(np.insert(ROWS, 5, FAR, axis=0), sums, None, with_row)
        mixed = np.logaddexp(np.log(1 - Q) + out, np.log(Q) + within)
        loss = (mixed - out).sum() * (1 if len(pair.data) > len(ROWS) else -1)
        assert found[turn] == pytest.approx(loss, abs=1e-9)


def test_a_row_that_is_replaced_is_a_mixture_on_either_side():
    pair = Pair(np.vstack([ROWS, FAR]), np.vstack([ROWS, -FAR]), "replace-one")
    sigma = noise_multiplier(2.0, 1e-5, rate=Q, steps=STEPS, replaced="opposite")
    options = {"pair": pair, "sees": "transcript", "max_samples": 2}
    right = replay(
        lambda x, rng: dp_sgd(x, rng, sigma), claim=ApproxDP(2.0, 1e-5), **options
    )
    assert (right.verdict, right.findings) == ("NOT_REFUTED", ())
    assert max(step.l2 for step in right.steps) > 1.99
    # At a quarter of the noise.
    wrong = replay(
        lambda x, rng: dp_sgd(x, rng, sigma / 4), claim=ApproxDP(2.0, 1e-5), **options
    )
    assert any(finding.kind in ("distance", "budget") for finding in wrong.findings)


FAULTS = {
    clips_the_batch: "distance",
    noise_for_the_batch: "scale",
    fixed_batches: "distance",
    rule_of_thumb: "distance",
    private_count: "release",
}
