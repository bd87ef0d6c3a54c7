"""Foreign code with transcripts and their losses: tests, intervals, both readings."""

import random

import numpy as np
import pytest
from replay_cases import line_of, right_late_sum, rows

from dpaudit import ApproxDP, GaussianDP, Pair, PureDP, Relation, UnsupportedError
from dpaudit.audit import audit, replay, white_box
from dpaudit.audit.layers.layer import view_transcript
from dpaudit.audit.replay.execute.executor import execute
from dpaudit.audit.replay.follow.tape import LAZY, Mode
from dpaudit.audit.replay.judge import judge
from dpaudit.audit.replay.judge.statistics import ReplayedMechanism
from dpaudit.mechanism import HasTranscript, HasTranscriptLoss

PAIR = Pair(rows(0.2), rows(0.2, 1.0))


def two_steps(x, rng):
    first = float(np.sum(x) + rng.normal(0, 1.0))
    return first + float(np.sum(x) * np.sign(first) + rng.normal(0, 2.0))


def test_transcripts_and_losses_are_those_of_the_closed_form():
    followed = ReplayedMechanism(two_steps)
    assert isinstance(followed, HasTranscript)
    assert isinstance(followed, HasTranscriptLoss)
    seen = followed.transcript(PAIR.data, 50, rng=np.random.default_rng(0))
    first, second = seen["value 0"], seen["value 1"]
    assert seen["release"][:, 0] == pytest.approx(first + second)

    def log_density(total):
        there = total * np.sign(first)
        return -((first - total) ** 2) / 2 - (second - there) ** 2 / 8

    wanted = log_density(0.2) - log_density(1.2)
    found = followed.transcript_loss(seen, PAIR.data, PAIR.neighbour)
    assert found == pytest.approx(wanted, abs=1e-9)


def test_white_box_intervals_hold_of_foreign_code():
    # (z1, z2) shifted by 1/1 and 1/2 standard deviations: mu = sqrt(1.25).
    followed = ReplayedMechanism(two_steps, relation=Relation.ADD_REMOVE)
    result = white_box(
        view_transcript(followed), PAIR, epsilon=0.5, max_samples=100, seed=0
    )
    exact = float(GaussianDP(np.sqrt(1.25)).delta_at(0.5))
    assert 0.1 < result.delta_low[0] <= exact <= result.delta_high[0]


def test_a_true_claim_on_transcripts_stands_and_a_false_one_falls():
    held, fallen = (
        replay(two_steps, claim=GaussianDP(mu), pair=PAIR, sees="transcript")
        for mu in (np.sqrt(1.25) + 1e-6, 0.1)
    )
    assert held.verdict == "NOT_REFUTED"
    assert (fallen.verdict, fallen.proof) == ("REFUTED", False)
    assert fallen.findings[0].message.endswith("the loss may be inf")
    assert {finding.proof for finding in fallen.findings} == {0.999}


def test_noise_to_which_data_are_added_twice_has_two_readings():
    pair = Pair(rows(0.3, 1), rows(0.3, 1, 1))
    eager = ReplayedMechanism(right_late_sum)
    lazy = ReplayedMechanism(right_late_sum, mode=LAZY)
    for followed in (eager, lazy):
        seen = followed.transcript(pair.data, 3, rng=np.random.default_rng(0))
        assert np.abs(followed.transcript_loss(seen, pair.data, pair.data)).max() == 0
    options = {"pair": Pair(rows(0.3, 0.0), rows(0.3, 1.0))}
    options["claim"] = ApproxDP(1.0, 1e-6)
    assert replay(right_late_sum, **options).verdict == "NOT_REFUTED"
    assert audit(eager, layer="transcript", budget=100, **options).refuted


def test_coins_have_no_transcript_and_returned_numbers_no_looks():
    followed = ReplayedMechanism(lambda x, rng: np.sum(x) + rng.zipf(3))
    with pytest.raises(UnsupportedError, match=r"test_followed\.py:\d+: zipf"):
        followed.transcript(PAIR.data, 1, rng=np.random.default_rng(0))

    # The interpreter stands elsewhere in a call that it has made often.
    def noisy_sum(x, rng):
        return float(np.sum(x) + rng.laplace())

    def noisy_item(x, rng):
        return (np.sum(x) + rng.laplace()).item()

    for noisy in (noisy_sum, noisy_item):
        assert all(execute(noisy, np.ones((2, 1)), k).open for k in range(40))


UNDER_ITS_NAME = {
    "random_raw": lambda x, rng: rng.bit_generator.random_raw() % 7,
    "generate_state": lambda x, rng: rng.bit_generator.seed_seq.generate_state(1),
    "randint": lambda x, rng: np.random.RandomState(rng.bit_generator).randint(2**20),
    "random.randint": lambda x, rng: random.randint(0, 2**20),
    "random.randrange": lambda x, rng: random.randrange(2**20),
    "integers": lambda x, rng: rng.integers(2**20),
}


@pytest.mark.parametrize("mode", [LAZY, Mode(decides=True, keeps=True)])
@pytest.mark.parametrize("name", UNDER_ITS_NAME)
def test_a_draw_is_named_as_the_code_names_it(name, mode):
    trace = execute(UNDER_ITS_NAME[name], 0.5, 0, mode=mode)
    told = {each.why for each in trace.tape.coins}
    assert told == {f"{name} draws from a law that is not followed"}


def test_bits_that_are_thrown_away_are_no_value():
    raw = execute(lambda x, rng: rng.bit_generator.random_raw(3, False), 0.5, 0)
    assert raw.value.size == 0


def running_totals(x, rng):
    """Of a walk of noise, kept in a list; and an array that is written into."""
    totals, total, every = [], 0.0, np.zeros(3)
    for _ in range(3):
        total += rng.laplace()
        totals.append(total)
        every += rng.laplace(size=3)
        every -= rng.laplace()
    return np.append(every, totals)


def test_a_number_is_bound_anew_and_an_array_written_into_by_an_operator_in_place():
    traced = execute(running_totals, PAIR.data, 0)
    plain = traced.plainly().value
    assert traced.value == pytest.approx(plain, abs=1e-12)
    assert len(set(plain)) == 6


LINEAR = {
    "cumsum": np.cumsum,
    "method": lambda v: v.cumsum(),
    "accumulate": np.add.accumulate,
    "diff": np.diff,
    "convolve": lambda v: np.convolve([1.0, 2.0], v),
    "average": lambda v: np.average(v, weights=[1, 2, 3, 4]),
    "einsum": lambda v: np.einsum("i,ij->j", v, np.arange(8.0).reshape(4, 2)),
    "interp": lambda v: np.interp([0.5, 1.0, 2.5], range(4), v),
    "solve": lambda v: np.linalg.solve(np.eye(4) + np.tri(4), v),
    "pad": lambda v: np.pad(v, 2),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_functions_keep_gaussian_noise(name):
    function, x = LINEAR[name], np.array([0.25, -1.0, 0.5, 2.0])
    trace = execute(lambda x, rng: function(x + rng.normal(size=4)), x, 0)
    assert (trace.open, trace.law.followed) == (True, True)
    assert trace.release.centre == pytest.approx(np.ravel(function(x)))
    matrix = np.stack([np.ravel(function(one)) for one in np.eye(4)], axis=1)
    terms, made = np.zeros((len(trace.value), 5)), trace.release
    for row, (index, coef) in enumerate(zip(made.index, made.coef, strict=True)):
        np.add.at(terms[row], index, coef)  # the last is that of no draw
    assert terms[:, :4] @ terms[:, :4].T == pytest.approx(matrix @ matrix.T)
    plain = trace.plainly()
    assert trace.agrees(plain, rtol=1e-9, atol=1e-12)


def test_functions_that_are_not_linear_look_at_the_noise():
    squares = execute(
        lambda x, rng: np.interp(x + rng.normal(), [0, 1], [0, 2]), 0.5, 0
    )
    assert len(squares.tape.observations) == 1
    ends = execute(
        lambda x, rng: np.pad(x + rng.normal(size=2), 1, constant_values=1.0),
        np.zeros(2),
        0,
    )
    assert len(ends.tape.observations) == 1


@pytest.mark.parametrize("mode", ["minimum", "maximum", "median"])
def test_what_is_linear_in_units_alone_is_no_linear_function(mode):
    def padded(x, rng):
        return x + np.pad(rng.normal(size=3), (0, 1), mode=mode)[3:]

    trace = execute(padded, np.zeros(1), 0)
    assert trace.tape.coins  # looked at, and not taken for a sum of Gaussians


def signs(x, rng):
    """More noisy comparisons than are taken for choices."""
    return np.sign(len(x) / 100 + rng.laplace(size=6)).sum()


def scale_in_the_end(x, rng):
    return (signs(x, rng) + 1 + rng.laplace(scale=10)) / len(x)


def gaussian_in_the_end(x, rng):
    return signs(x, rng) + x.sum() + rng.normal(0, 5)


def added_in_the_end(x, rng):
    """Data that meet a number with noise, after it is one."""
    return (signs(x, rng) + rng.laplace()) / 2 + x.sum()


def boosted(x, rng):
    """Residuals of several rows, each of which has the noise of its leaf."""
    cuts, fit, out = np.linspace(0, 1, len(x)), np.zeros(len(x)), []
    for cut in (0.25, 0.5, 0.75):
        sides = cuts <= cut, cuts > cut
        residuals = (np.clip(x.ravel()[side] - fit[side], -1, 1) for side in sides)
        leaves = [each.sum() + rng.laplace() for each in residuals]
        fit += np.where(sides[0], *leaves)
        out.append(leaves)
    return out


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "place"),
    [(scale_in_the_end, 2.0, "(signs("), (gaussian_in_the_end, 5.0, "rng.normal")],
)
def test_what_the_release_may_lose_is_told_though_little_was_lost(
    mechanism, epsilon, place
):
    """The loss has no bound, whatever was looked at before."""
    pair = Pair(rows(1, 1), rows(1, 1, 1))
    result = replay(mechanism, pair=pair, claim=PureDP(epsilon), budget=2)
    assert result.verdict == "NOT_FOLLOWED"
    assert result.loss > epsilon
    assert place in line_of(result.findings[0])


@pytest.mark.parametrize("mechanism", [added_in_the_end, boosted])
def test_a_reading_that_keeps_the_claim_does_so_from_all_seeds(mechanism):
    """In one of both readings data are added to noise that was seen."""
    pair = Pair(rows(1, 1), rows(1, 1, 1))
    result = replay(mechanism, pair=pair, claim=PureDP(4.0), budget=2)
    assert result.verdict == "NOT_REFUTED"
    assert result.explored.executions == judge._MORE_TURNS


def in_a_batch(x, rng):
    """The same, of rows in secret batches, which amplify what each step loses."""
    shown = np.sign(x[rng.random(len(x)) < 0.25].sum() + rng.laplace())
    return (float(shown) + rng.laplace()) + x[rng.random(len(x)) < 0.25].sum()


def test_a_release_may_lose_what_secret_batches_leave_of_it():
    claim = PureDP(2 * np.log1p(0.25 * np.expm1(1.0)))
    pair = Pair(rows(0, 1, 1, 0), rows(0, 1, 1, 1))
    assert replay(in_a_batch, pair=pair, claim=claim).verdict == "NOT_REFUTED"
