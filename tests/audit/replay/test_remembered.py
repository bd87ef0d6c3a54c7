"""Secret batches that the code remembers: exact losses over all ways, and verdicts."""

from functools import partial

import numpy as np
import pytest
from replay_cases import rows
from scipy.stats import norm

from dpaudit import ApproxDP, GaussianDP, Pair, PureDP
from dpaudit.audit.replay import replay
from dpaudit.audit.replay.follow.tape import LAZY, Mode
from dpaudit.audit.replay.judge.statistics import ReplayedMechanism

D = 2
ROWS = np.random.default_rng(0).standard_normal((2, D))
PAIR = Pair(np.vstack([ROWS, [[30.0, 30.0]]]), ROWS)


def clipped(gradients):
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return gradients / np.maximum(norms, 1.0)


def remembered(x, rng, *, sigma=1.0):
    """Two sums, the second of which is over both batches."""
    total, seen = 0.0, []
    for _ in range(2):
        total = total + x[rng.random(len(x)) < 0.25].sum()
        seen.append(total + rng.normal(0, sigma))
    return seen


@pytest.mark.parametrize("swapped", [False, True])
def test_losses_over_remembered_batches_are_those_of_all_ways(swapped):
    pair = Pair(rows(0.0, 1.0), rows(0.0))
    pair = pair.swapped if swapped else pair
    for mode in (Mode(eager=True), LAZY):
        followed = ReplayedMechanism(remembered, pair=pair, mode=mode)
        seen = followed.transcript(pair.data, 4, rng=np.random.default_rng(2))
        found = followed.transcript_loss(seen, pair.data, pair.neighbour)
        flat = [v[:, None] if v.ndim == 1 else v for v in seen.values()]
        noisy = np.concatenate([v for v in flat if v.dtype.kind == "f"], axis=1)[:, -2:]
        ways = [
            (0.25 if one else 0.75)
            * (0.25 if two else 0.75)
            * norm.pdf(noisy, [one, one + two]).prod(axis=1)
            for one in (0, 1)
            for two in (0, 1)
        ]
        wanted = np.log(sum(ways)) - norm.logpdf(noisy).sum(axis=1)
        assert found == pytest.approx(-wanted if swapped else wanted)


def one_batch(x, rng, steps=4):
    w, batch = np.zeros(D), x[rng.random(len(x)) < 0.1]
    for _ in range(steps):
        w = w - 0.1 * (clipped(w - batch).sum(axis=0) + rng.normal(0, 1.0, D))
    return w


def accumulated(x, rng, noise=1.0):
    w = np.zeros(D)
    for _ in range(2):
        batches = [x[rng.random(len(x)) < 0.2] for _ in range(3)]
        total = sum(clipped(w - batch).sum(axis=0) for batch in batches)
        w = w - 0.1 * (total + rng.normal(0, noise, D))
    return w


@pytest.mark.parametrize(
    ("mechanism", "claim", "verdict"),
    [
        (one_batch, (1.1, 0.02), "NOT_REFUTED"),  # 0.0177 is lost
        (one_batch, (0.3, 1e-5), "REFUTED"),
        (one_batch, (1.1, 5e-3), "NOT_FOLLOWED"),
        (accumulated, (0.3, 1e-3), "REFUTED"),
        (partial(accumulated, noise=20.0), (0.3, 1e-2), "NOT_REFUTED"),
    ],
)
def test_batches_that_the_code_remembers_are_mixtures_over_all_ways(
    mechanism, claim, verdict
):
    options = {"sees": "transcript", "budget": 24 if verdict == "REFUTED" else 8}
    result = replay(mechanism, pair=PAIR, claim=ApproxDP(*claim), **options)
    assert result.verdict == verdict


@pytest.mark.parametrize(("epsilon", "verdict"), [(1.45, "NOT_"), (1.2, "")])
def test_one_batch_for_two_values_costs_what_both_may(epsilon, verdict):
    def twice(x, rng):
        kept = x[rng.random(len(x)) < 0.5].sum()
        return kept + rng.laplace(), kept + rng.laplace()  # at most log(1/2 + e^2/2)

    pair = Pair(rows(0.2, 0.7), rows(0.2, 0.7, 1.0))
    result = replay(twice, pair=pair, claim=PureDP(epsilon), sees="transcript")
    assert result.verdict == verdict + "REFUTED"


def path_of_weights(x, rng, *, again=True):
    """All weights of two steps; the second has noise of its own, or the first one's."""
    w, path = np.zeros(D), []
    noise = rng.normal(0, 2.0, D)
    for step in range(2):
        if step and not again:
            noise = rng.normal(0, 2.0, D)
        w = w - 0.1 * (clipped(w - x).sum(axis=0) + noise)
        path.append(w)
    return {"path": np.array(path)}


@pytest.mark.parametrize("again", [False, True])
def test_a_release_that_shows_its_transcript_is_held_to_its_loss(again):
    mechanism = partial(path_of_weights, again=again)
    result = replay(mechanism, pair=PAIR, claim=GaussianDP(0.72), budget=40)
    assert result.verdict == ("REFUTED" if again else "NOT_REFUTED")
    assert 0 <= result.samples <= (30 if again else 0)


def rate_by_the_first_batch(x, rng):
    first = x[rng.random(len(x)) < 0.5].sum()
    second = x[rng.random(len(x)) < (0.4 if first > 5 else 0.5)].sum()
    return first + second + rng.laplace()


def outcomes_in_an_order_of_the_batches(x, rng):
    kept = sum(x[rng.random(len(x)) < 0.5].sum() for _ in range(2))
    places = [0, 1] if kept < 0.5 else [1, 0]  # each has its probability in either
    chosen = rng.choice(np.array([3.0, 5.0])[places], p=np.array([0.8, 0.2])[places])
    return chosen, kept + rng.laplace()


def size_of_a_batch(x, rng):
    kept = [x[rng.random(len(x)) < 0.5] for _ in range(2)]
    return len(kept[0]), sum(each.sum() for each in kept) + rng.laplace()


@pytest.mark.parametrize(
    ("mechanism", "move", "lost", "verdict"),
    [
        # The flips of the other row are those of the rate: of none, 3/5 to 1/2.
        (rate_by_the_first_batch, 10.0, (0.25, 0.61, 0.24), "NOT_REFUTED"),
        (outcomes_in_an_order_of_the_batches, 1.0, (0.25, 0.5, 0.25), "NOT_FOLLOWED"),
        (size_of_a_batch, 1.0, (1e9, 0.0, 0.0), "NOT_FOLLOWED"),
    ],
)
def test_what_depends_on_a_remembered_batch_refutes_no_true_claim(
    mechanism, move, lost, verdict
):
    epsilon = np.log(np.polyval(lost[::-1], np.exp(move))) + 1e-6
    pair = Pair(rows(0.0, move), rows(0.0))
    claim = PureDP(epsilon)
    result = replay(mechanism, pair=pair, claim=claim, sees="transcript", budget=200)
    assert result.verdict == verdict
