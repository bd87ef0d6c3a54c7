import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit
from scipy.stats import laplace, norm

from dpaudit.audit.betting import scores as module
from dpaudit.audit.betting.events import Events
from dpaudit.audit.betting.scores import ScoreRecord, _balance, count_hits, sides_of

# Few distinct values, so that ties are common.
SCORES = st.lists(
    st.sampled_from([-np.inf, -2.0, -1.0, 0.0, 0.5, 1.0, 7.0, np.inf]), max_size=40
).map(lambda scores: np.array(scores, dtype=np.float64))


def naive(scores, thresholds):
    return [sum(bool(s >= t) for s in scores) for t in thresholds]


@settings(max_examples=40)
@given(SCORES, SCORES)
def test_count_hits_is_a_count(scores, thresholds):
    """Ties count as hits; -inf and inf are scores and thresholds like any other."""
    decreasing = np.unique(thresholds)[::-1]
    assert count_hits(scores, decreasing).tolist() == naive(scores, decreasing)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from([0, 1]), SCORES), max_size=6))
def test_a_record_counts_what_it_was_given(additions):
    record = ScoreRecord()
    given_scores = [np.empty(0), np.empty(0)]
    for side, scores in additions:
        record.add(side, scores)
        given_scores[side] = np.concatenate([given_scores[side], scores])
    events = record.events(3)
    assert (np.diff(events.threshold) < 0).all()
    assert (events.attack == 3).all()
    for side in (0, 1):
        assert events.hits[side].tolist() == naive(given_scores[side], events.threshold)
        assert (events.scored[side] == len(given_scores[side])).all()
        assert (np.diff(events.hits[side]) >= 0).all()  # nested, rarest first
    for estimate in (events.p, events.q):
        assert ((estimate > 0) & (estimate < 1)).all()
    if len(events):
        # The sure event is none, and every event was hit by something.
        both = np.concatenate(given_scores)
        assert (events.hits.sum(axis=0) < len(both)).all()
        assert (events.hits.sum(axis=0) > 0).all()


@pytest.mark.parametrize("remembered", [1, 50, 100_000])
def test_fixed_thresholds_count_all_scores_since_the_beginning(monkeypatch, remembered):
    monkeypatch.setattr(module, "_REMEMBERED", remembered)
    rng = np.random.default_rng(0)
    record = ScoreRecord()
    everything = [np.empty(0), np.empty(0)]
    fixed = None
    for size in (0, 20, 30, 1, 200, 17):
        for side in (0, 1):
            scores = np.round(rng.normal(side, 1, size + side), 1)
            scores[:1] = np.inf if side else -np.inf
            record.add(side, scores)
            everything[side] = np.concatenate([everything[side], scores])
        events = record.events(0)
        for side in (0, 1):
            hits = naive(everything[side], events.threshold)
            assert events.hits[side].tolist() == hits
            assert (events.scored[side] == len(everything[side])).all()
        if fixed is not None:
            assert np.array_equal(events.threshold, fixed)
        if min(map(len, everything)) >= remembered:
            fixed = events.threshold
    assert (fixed is not None) == (remembered < 100_000)


def test_events_are_snapshots_single_ones_too_and_none_is_counted():
    """What later scores do to a record does not reach events it gave before."""
    record = ScoreRecord()
    for side in (0, 1):
        record.add(side, np.arange(10.0))
    events = record.events(0)
    before = events.hits.copy(), events.scored.copy()
    record.add(0, np.full(5, 100.0))
    record.events(0)
    assert np.array_equal(events.hits, before[0])
    assert np.array_equal(events.scored, before[1])
    event = Events.single(0.5, (3, 0), (9, 19))
    assert len(event) == 1
    assert event.attack.tolist() == [0]
    assert event.p[0] == pytest.approx(3.5 / 10)
    assert event.q[0] == pytest.approx(0.5 / 20)
    assert event.scored.ravel().tolist() == [9, 19]
    assert count_hits(np.array([1.0, 2.0]), np.empty(0)).shape == (0,)


@pytest.mark.parametrize("seed", range(3))
def test_no_event_left_out_is_much_better(seed):
    """For any slope, the candidates do nearly as well as the best of all thresholds."""
    rng = np.random.default_rng(seed)
    on_data, on_neighbour = rng.normal(0.7, 1, 400), rng.normal(0, 1, 400)
    record = ScoreRecord()
    record.add(0, on_data)
    record.add(1, on_neighbour)
    events = record.events(0)
    every = np.unique(np.concatenate([on_data, on_neighbour]))[1:]
    p = (np.array(naive(on_data, every)) + 0.5) / 401
    q = (np.array(naive(on_neighbour, every)) + 0.5) / 401
    for ratio in (0.05, 0.2, 0.6, 1.0, 1.7, 4.0, 20.0):
        for sign in (1, -1):  # the event, or its complement
            best = np.max(sign * (p - ratio * q))
            kept = np.max(sign * (events.p - ratio * events.q))
            assert kept >= best - 0.03 * max(1, ratio)
    assert len(events) < 80


def test_constant_scores_give_no_event_and_an_atom_at_infinity_one():
    record = ScoreRecord()
    for side in (0, 1):
        record.add(side, np.ones(10))
    assert len(record.events(0)) == 0
    assert len(ScoreRecord().events(0)) == 0
    assert len(Events.join([])) == 0
    record = ScoreRecord()
    record.add(0, np.array([np.inf] * 6 + [0.0] * 4))
    record.add(1, np.zeros(10))
    events = record.events(2)
    assert events.threshold.tolist() == [np.inf]
    assert events.p[0] == pytest.approx(6.5 / 11)
    assert events.q[0] == pytest.approx(0.5 / 11)


def test_taking_and_joining_events():
    rng = np.random.default_rng(1)
    parts = []
    for attack in (0, 2):
        record = ScoreRecord()
        for side in (0, 1):
            record.add(side, rng.normal(size=30 + side))
        parts.append(record.events(attack))
    joined = Events.join(parts)
    assert len(joined) == len(parts[0]) + len(parts[1])
    assert (np.diff(joined.attack) >= 0).all()
    one = joined.take([len(parts[0])])
    assert one.attack.tolist() == [2]
    assert one.threshold[0] == parts[1].threshold[0]
    assert one.hits[:, 0].tolist() == parts[1].hits[:, 0].tolist()
    assert np.array_equal(joined.less_likely, np.minimum(joined.p, joined.q))


# Scores that are exact privacy losses
def laplace_losses(rng, size, factor=1.0):
    """Return `factor` times the losses of scale 1 at 0 and at 1, on either side."""
    values = [rng.laplace(shift, 1.0, size) for shift in (0.0, 1.0)]
    return [np.round(factor * (np.abs(x - 1) - np.abs(x)), 9) for x in values]


@pytest.mark.parametrize("remembered", [50, 100_000])
def test_the_ratio_of_informed_estimates_is_known_at_once(monkeypatch, remembered):
    """The event of loss 1 has P = e Q, of which 100 releases a side tell nothing."""
    monkeypatch.setattr(module, "_REMEMBERED", remembered)
    rng, record = np.random.default_rng(0), ScoreRecord()
    for _ in range(5):
        for side, losses in enumerate(laplace_losses(rng, 20)):
            record.add(side, losses)
        counted = record.events(0)
        known = record.informed(counted)
    assert np.array_equal(known.threshold, counted.threshold)
    assert np.log(known.p[0] / known.q[0]) == pytest.approx(1.0, abs=1e-3)
    # The last cell holds a few other losses.
    last = np.log1p(-known.p[-1]) - np.log1p(-known.q[-1])
    assert last == pytest.approx(-1.0, abs=0.05)
    counts = counted.hits[0, 0] / counted.hits[1, 0]
    assert np.log(counts) != pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("steepness", [1e-4, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("empty", [0.0, 0.3])
def test_balancing_weights_make_the_tilt_vanish(steepness, empty):
    rng = np.random.default_rng(0)
    for cells in (2, 3, 20, 50):
        mass = rng.dirichlet(np.ones(cells)) * (rng.random(cells) >= empty)
        tilt = mass * np.tanh(steepness * rng.normal(size=cells))
        weights = _balance(mass, tilt)
        if (tilt >= 0).all() or (tilt <= 0).all():
            assert weights is None or (weights == 1).all()
            continue
        assert (weights > 0).all()
        assert abs(weights @ tilt) < 1e-12 * np.abs(weights * tilt).sum()
        # One number decides them all.
        used = tilt != 0
        c = (1 / weights[used] - 1) / (tilt[used] / mass[used])
        np.testing.assert_allclose(c, c[0], rtol=1e-6, atol=1e-9)


def test_informed_estimates_are_unbiased_and_of_less_variance():
    """Means of 500 estimates within 6 standard errors: fails with chance 1e-8."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(500):
        record = ScoreRecord()
        for side, losses in enumerate(laplace_losses(rng, 50)):
            record.add(side, losses)
        counts = record.counts(0.5)
        one = Events.single(0.5, counts[::2], counts[1::2])
        known = record.informed(one)
        found.append([known.p[0], known.q[0], one.hits[0, 0] / 50, one.hits[1, 0] / 50])
    truth = np.array([stats.laplace.cdf(0.25), stats.laplace.cdf(-0.75)] * 2)
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(500)
    # The weights of the cells make ratio estimates of them, of bias O(1/n).
    assert (np.abs(mean - truth) <= 6 * error + [2e-3, 2e-3, 0, 0]).all()
    assert (error[:2] < 0.9 * error[2:]).all()


@pytest.mark.parametrize("factor", [-1.0, 0.2, 3.0])
def test_losses_that_the_counts_contradict_are_scores_like_any_other(factor):
    rng, record = np.random.default_rng(2), ScoreRecord()
    for side, losses in enumerate(laplace_losses(rng, 3000, factor)):
        record.add(side, losses)
    counted = record.events(0)
    assert record.informed(counted) is counted


def test_true_losses_are_not_contradicted_and_infinite_ones_known():
    for seed in range(50):
        rng, record = np.random.default_rng(seed), ScoreRecord()
        for side, losses in enumerate(laplace_losses(rng, 400)):
            record.add(side, losses)
        counted = record.events(0)
        assert record.informed(counted) is not counted
    record = ScoreRecord()
    other = np.log(0.75)
    record.add(0, np.array([np.inf] * 7 + [other] * 13))
    record.add(1, np.full(20, other))
    known = record.informed(record.events(0))
    assert known.threshold.tolist() == [np.inf]
    assert known.p[0] == pytest.approx(0.25, rel=1e-3)
    assert known.q[0] < 1e-4


@pytest.mark.parametrize("sign", [1, -1])
def test_an_end_of_the_support_contradicts_what_is_fitted_elsewhere(sign):
    """Of 40,000 releases on D some 30 are below all on D', or above."""
    for end, kept in ((7.0, True), (np.inf, False)):
        rng, record = np.random.default_rng(3), ScoreRecord()
        for side in range(2):
            noise = rng.laplace(size=60_000)
            record.add(side, sign * (side + noise[noise > -end][:40_000]))
        counted = record.events(0)
        assert (record.modelled(counted) is counted) == kept


@pytest.mark.parametrize("remembered", [10, 100_000])
def test_counts_of_an_event(monkeypatch, remembered):
    monkeypatch.setattr(module, "_REMEMBERED", remembered)
    rng, record = np.random.default_rng(3), ScoreRecord()
    for _ in range(3):
        for side, losses in enumerate(laplace_losses(rng, 30)):
            record.add(side, losses)
        events = record.events(0)
        record.informed(events)
    for place, threshold in enumerate(events.threshold):
        assert record.counts(threshold) == (
            *(events.hits[0, place], events.scored[0, place], events.hits[1, place]),
            events.scored[1, place],
        )


def recorded(on_data, on_neighbour):
    record = ScoreRecord()
    record.add(0, on_data)
    record.add(1, on_neighbour)
    return record, record.events(0)


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_a_linear_log_ratio_is_found(share):
    # Counts without chance: the very shares of a logistic law, unequal sizes or not.
    centre = np.linspace(3, -3, 40)
    mass = norm.pdf(centre)
    truth = expit(2 * centre)
    counts = 1e5 * mass * np.stack([share * truth, (1 - share) * (1 - truth)])
    assert sides_of(centre, *counts) == pytest.approx(truth, abs=0.01)


def test_quadratic_log_ratios_and_constant_tails_are_found():
    centre = np.linspace(4, -4, 60)
    p, q = norm.pdf(centre, scale=1.5), norm.pdf(centre)
    assert sides_of(centre, 1e5 * p, 1e5 * q) == pytest.approx(p / (p + q), abs=0.02)
    centre = np.linspace(6, -5, 111)
    p, q = laplace.pdf(centre, 1.0), laplace.pdf(centre)
    found = sides_of(centre, 1e5 * p, 1e5 * q)
    tails = (centre > 1.2) | (centre < -0.2)
    assert found[tails] == pytest.approx((p / (p + q))[tails], abs=0.02)


def test_chance_is_no_difference_and_rare_events_known_better_than_by_hits():
    rng = np.random.default_rng(0)
    worst = []
    for _ in range(50):
        n = rng.multinomial(400, np.full(30, 1 / 30))
        hits = rng.binomial(n, 0.5)
        used = n > 0
        found = sides_of(np.linspace(1, -1, 30)[used], hits[used], (n - hits)[used])
        worst.append(np.abs(found - 0.5).max())
    assert np.median(worst) < 0.08  # the shares of the cells miss by 0.25
    # Of normal scores on either side, the ratio of probabilities beyond 2.5.
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(40):
        record, events = recorded(rng.normal(1, 1, 400), rng.normal(0, 1, 400))
        far = int(np.argmin(np.abs(events.threshold - 2.5)))
        t = events.threshold[far]
        truth = norm.logsf(t - 1) - norm.logsf(t)
        both = events, record.modelled(events)
        errors.append([np.log(e.p[far] / e.q[far]) - truth for e in both])
    counted, fitted = np.sqrt(np.mean(np.square(errors), axis=0))
    assert fitted < 0.5 * counted


def test_few_scores_an_infinite_one_and_a_bad_fit_leave_events_alone():
    rng = np.random.default_rng(2)
    assert sides_of(np.ones(1), np.array([3.0]), np.array([4.0])) is None
    record, events = recorded(*(rng.integers(0, high, 400) * 1.0 for high in (5, 4)))
    assert 0 < len(events) < 8
    assert record.modelled(events) is events
    x, y = rng.normal(1, 1, 400), rng.normal(0, 1, 400)
    record, events = recorded(x[:40], y[:40])
    assert record.modelled(events) is events
    x[0] = -np.inf
    record, events = recorded(x, y)
    assert record.modelled(events) is events
    # Every other unit interval belongs to one side alone.
    x = rng.integers(0, 6, 4000) * 2 + rng.random(4000)
    y = rng.integers(0, 6, 4000) * 2 + 1 + rng.random(4000)
    record, events = recorded(x, y)
    assert record.modelled(events) is events
