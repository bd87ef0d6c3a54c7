"""Terms that are not written out: images of noisy values, blocks of draws, columns."""

import numpy as np
import pytest
from replay_cases import rows

from dpaudit import ApproxDP, Pair, PureDP
from dpaudit.audit.replay import replay
from dpaudit.audit.replay.execute.executor import execute
from dpaudit.audit.replay.follow.arithmetic import no_kernel
from dpaudit.audit.replay.follow.observations import Observation, Observations
from dpaudit.audit.replay.follow.tape import EAGER, LAZY
from dpaudit.audit.replay.laws.affine import AffineLaw
from dpaudit.audit.replay.laws.comparison import compare, loss, losses

ROWS = np.random.default_rng(3).standard_normal((12, 4))
PAIR = Pair(ROWS[:-1], ROWS)


def noisy_mean(x, rng):
    return x.sum(axis=0) / 10 + rng.normal(0, 0.7, x.shape[1])


def differences(x, rng):
    w = noisy_mean(x, rng)
    return w - x[:5], w


def products(x, rng):
    w = noisy_mean(x, rng)
    return ROWS @ w, 2 * (ROWS[:6] @ w) - np.arange(6.0), w


def chains(x, rng):
    w = noisy_mean(x, rng)
    image = -(ROWS[:7] @ (w - 1.0)) * np.linspace(1, 2, 7) / 3
    return image + np.ones((2, 7)), 1.0 - image, w * 0.1


def changed(x, rng):
    w = noisy_mean(x, rng)
    image = w - x[:3]
    w += 5.0
    w[0] = 0.0
    return image, w


def factors(x, rng):
    z = rng.laplace(0, 2.0, 3)
    return 3 - 2 * z / 5 + x[0, :3], -z * np.array(0.0) + 1, z * np.ones((1, 3))


MECHANISMS = [differences, products, chains, changed, factors]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.__name__)
def test_values_are_their_terms_times_the_draws(mechanism):
    followed, plain = (execute(mechanism, ROWS, 5, follows=each) for each in (1, 0))
    assert followed.open
    assert np.allclose(followed.value, plain.value, rtol=1e-12)


@pytest.mark.parametrize("mechanism", MECHANISMS[:-1], ids=lambda m: m.__name__)
def test_who_looks_at_an_image_learns_its_source(mechanism):
    def looked_at(x, rng):
        parts = mechanism(x, rng)
        return [np.array([float(e) for e in np.ravel(np.cbrt(p))]) for p in parts]

    seen = execute(looked_at, ROWS, 5)
    plain = execute(looked_at, ROWS, 5, follows=False)
    assert np.allclose(seen.value, plain.value, rtol=1e-9)
    assert [one.shape for one in seen.tape.observations] == [(4,)]
    assert not [*seen.tape.unfollowed, *seen.tape.coins]
    assert not len(seen.law.first)
    assert seen.tape.observations[0].law.alone.all()


def test_an_image_of_draws_alone_hides_no_data():
    # A noisy value is the sum of both, not the draws, which are the same on both sides.
    def correlated(x, rng):
        noisy = np.tril(np.ones((3, 3))) @ rng.normal(0, 5.0, 3) + x[:, :3].sum(axis=0)
        return np.maximum(noisy, 0)

    here, there = (execute(correlated, x, 1) for x in (PAIR.data, PAIR.neighbour))
    (one,), (other,) = (each.tape.observations for each in (here, there))
    assert loss(one.law, other.law, one.value) != 0


def test_descent_on_products_is_followed_in_both_readings():
    def logistic(x, rng):
        w = np.zeros(3)
        for _ in range(6):
            batch = x[rng.random(len(x)) < 0.5]
            slope = np.tanh(batch[:, :3] @ w) - batch[:, 3]
            sizes = np.clip(slope, -1, 1)[:, np.newaxis] * np.clip(batch[:, :3], -1, 1)
            w -= 0.1 * (sizes.sum(axis=0) + rng.normal(0, 8.0, 3))
        return w

    for reading in (EAGER, LAZY):
        trace = execute(logistic, ROWS, 2, mode=reading)
        assert not trace.tape.unfollowed
        noisy = [
            one for one in trace.tape.observations if isinstance(one.law, AffineLaw)
        ]
        assert {one.shape for one in noisy} == {(3,)}
    result = replay(logistic, pair=PAIR, claim=ApproxDP(8.0, 1e-3), budget=2)
    assert result.verdict == "NOT_REFUTED"
    assert len(result.steps) == 6


def test_a_value_that_shares_its_terms_keeps_them():
    def halves(x, rng):
        noisy = np.array([len(x), 0.0]) + rng.laplace(0, 1.0, 2)
        half = noisy / 2
        other = +noisy
        half[0] = other[1] = 0.0
        return noisy, half[1]

    result = replay(halves, pair=Pair(rows(0), rows(0, 1)), claim=PureDP(1.0))
    assert (result.verdict, result.findings) == ("NOT_REFUTED", ())


@pytest.mark.parametrize(
    ("matrix", "without"),
    [
        *((np.eye(3), True), (np.vander(np.linspace(-1, 1, 40), 4), True)),
        *((np.ones((9, 2)), False), (np.eye(3)[:2], False)),
        (np.eye(3)[[0, 0, 1, 1]], False),
        (np.vstack([np.zeros((50, 2)), np.eye(2)]), True),
        *((np.array([[1.0], [np.inf]]), False), (np.zeros((4, 2)), False)),
    ],
)
def test_a_matrix_without_a_kernel_is_known(matrix, without):
    assert no_kernel(matrix) is without


def test_both_readings_are_of_the_same_draws():
    # After some first values the second has too little noise; in both readings.
    def walk(x, rng):
        total = float(np.sum(x))
        first = total + rng.laplace(scale=10.0)
        second = total + rng.laplace(scale=0.5 if first > 5 else 10.0)
        return float(first > 0) + float(second > 0)

    pair = Pair(rows(0.2), rows(0.2, 0.9))
    found = [
        replay(walk, pair=pair, claim=PureDP(1.0), sees="transcript", seed=seed)
        for seed in range(6)
    ]
    assert all(each.verdict == "REFUTED" for each in found if each.loss > 1.0)
    assert sum(each.executions == 10 for each in found) > 0  # in a later turn


@pytest.mark.parametrize("noise", ["normal", "laplace"])
def test_a_transcript_refutes_by_what_its_next_value_could_cost(noise):
    # No draw shows a loss near 8; Gaussian noise may lose any number.
    def looked_at(x, rng):
        return float(float(np.sum(x)) + getattr(rng, noise)() > 50)

    pair = Pair(rows(0.2), rows(0.2, 0.9))
    result = replay(looked_at, pair=pair, claim=PureDP(8.0), sees="transcript")
    wanted = ("REFUTED", True) if noise == "normal" else ("NOT_REFUTED", False)
    assert (result.verdict, result.proof) == wanted


def observed():
    rng = np.random.default_rng(8)
    made = []
    for number in range(40):
        n = int(rng.integers(1, 4))
        index = np.where(rng.random((n, 2)) < 0.3, -1, rng.integers(0, 9, (n, 2)))
        family = np.arange(9) % 2
        law = AffineLaw.of(rng.normal(size=n), index, rng.normal(size=(n, 2)), family)
        made.append(Observation(f"a.py:{number % 3}", "x", law, law.mean + 1, (n,)))
    return made


def test_observations_come_back_as_they_were():
    made = observed()
    kept = Observations(made)
    assert len(kept) == len(made)
    assert {each.law.known for each in made} == {True, False}
    for one, other in zip(kept, made, strict=True):
        assert (one.place, one.shape) == (other.place, other.shape)
        assert np.array_equal(one.value, other.value)
        for name in ("mean", "unit", "ratio", "first", "draw", "family", "alone"):
            assert np.array_equal(getattr(one.law, name), getattr(other.law, name))
    shape, value = kept.output(7)
    assert (shape, value.tolist()) == (made[7].shape, made[7].value.tolist())


@pytest.mark.parametrize("stop", [5, None])
def test_several_values_at_once_have_the_losses_of_each(stop):
    known = [each for each in observed() if each.law.known]
    there = Observations(
        Observation(e.place, e.how, _moved(e.law), e.value, e.shape) for e in known
    )
    here = Observations(known)
    end = stop or len(known)
    run, other = here.part(3, end), there.part(3, end)
    each = zip(here[3:stop], there[3:stop], strict=True)
    alone = [loss(a.law, b.law, a.value) for a, b in each]
    assert compare(run.law, other.law).known
    assert losses(run.law, other.law, run.value) == pytest.approx(sum(alone))
    assert run.entries.sum() == len(run.value)
    assert run.units.sum() == len(run.law.first)


def _moved(law):
    # Constants may not move, nor entries of one unit apart from each other.
    steps = np.append(0.1 * np.arange(1.0, len(law.first) + 1), 0.0)
    mean = law.mean + steps[law.unit] * law.ratio
    parts = law.unit, law.ratio, law.first, law.draw, law.family, law.alone
    return AffineLaw(mean, *parts)
