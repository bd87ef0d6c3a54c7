"""Sequences of subspaces: what they are made of and promise, how they end epochs.

And their regret, the best subspace in hindsight, and the bounds.

Type-I error: 2e-9 for each case of conformance; the chance that an epoch ends for its
noise alone is bounded by beta = 0.05 each way, and the test leaves room for 400 runs
that would fail with probability 1e-9 at that rate; the law of transcripts is compared
with their loss 24 times at 1e-10.
"""

from dataclasses import dataclass, replace
from math import exp, log, sqrt

import numpy as np
import pytest
from online_oracles import nodes_of_row
from refusals import refused, refuses
from scipy.stats import binom
from seeded import in_ball, rng

from dpaudit import ApproxDP, GaussianDP, InputError, Relation
from dpaudit.algorithms import (
    CATALOGUE,
    DoublingOnlinePCA,
    FollowPerturbedLeader,
    OnlinePCA,
    names_of,
)
from dpaudit.algorithms.online.doubling import ExactTestDoubling
from dpaudit.algorithms.online.doubling_rules import (
    CalibratedRule,
    EagerRule,
    Epochs,
    PublishedRule,
)
from dpaudit.algorithms.online.noise import PublishedStepNoise, tree_height
from dpaudit.algorithms.online.prefix_sums import replaced_row
from dpaudit.algorithms.online.regret import (
    best_fixed_reward,
    corollary_17_bound,
    follow_the_leader,
    proven_regret_bound,
    regret,
    rewards,
    theorem_18_bound,
)
from dpaudit.algorithms.online.subspace_sequence import SubspaceSequence, leading_bases
from dpaudit.algorithms.shared.bases import orient
from dpaudit.codec import encode, rebuild
from dpaudit.gaussian import gaussian_mu

MU = gaussian_mu(2.0, 1e-3)

FORMS = {
    "online": OnlinePCA.calibrated(2.0, 1e-3, n_components=2),
    "online-published": OnlinePCA.as_published(2.0, 1e-3, length=12),
    "leader": FollowPerturbedLeader.calibrated(2.0, 1e-3),
    "doubling": DoublingOnlinePCA.calibrated(2.0, 1e-3, length=12),
    "doubling-published": DoublingOnlinePCA.as_published(2.0, 1e-3, n_components=2),
    "eager": DoublingOnlinePCA(
        rule=EagerRule(MU), claim=ApproxDP(2.0, 1e-3), length=14
    ),
}
forms = pytest.mark.parametrize("form", FORMS)
entries = pytest.mark.parametrize("name", names_of("online"))


# The catalogue
@entries
def test_entries_are_built(name):
    entry = CATALOGUE[name]
    mechanism = entry.build()
    assert entry.family == "online"
    assert mechanism.claim == ApproxDP(entry.epsilon, 1e-5)
    assert mechanism.relation is Relation.REPLACE_ONE
    other = entry.build(epsilon=0.7, delta=1e-4, row_norm=2.0)
    assert other.claim == ApproxDP(0.7, 1e-4)
    assert other.row_norm == 2.0
    assert rebuild(encode(other)) == other


# What they are made of
@pytest.mark.parametrize("form", ["online", "online-published", "leader"])
def test_subspaces_are_those_of_the_noisy_prefixes(form):
    mechanism, data = FORMS[form], in_ball(9, 4)
    k = mechanism.n_components
    bases = mechanism.draw(data, 3, rng=rng(2))
    assert bases.shape == (3, 9, 4, k)
    prefixes = mechanism.sums.draw(data, 3, rng=rng(2))
    np.testing.assert_allclose(bases, leading_bases(prefixes, k), atol=1e-12)
    np.testing.assert_array_equal(mechanism.components(bases, k), bases[:, -1])


@forms
def test_bases_are_orthonormal_and_oriented_and_bad_data_named(form):
    mechanism = FORMS[form]
    bases = mechanism.draw(in_ball(9, 4), 5, rng=rng())
    k = mechanism.n_components
    np.testing.assert_allclose(
        bases.swapaxes(-1, -2) @ bases,
        np.broadcast_to(np.eye(k), (5, 9, k, k)),
        atol=1e-12,
    )
    np.testing.assert_array_equal(orient(bases), bases)
    mechanism = FORMS[form]
    k = mechanism.n_components
    for use in (mechanism.draw, mechanism.transcript):
        refuses("data must have shape", use, np.zeros((0, 3)), 2, rng=rng())
        if mechanism.length:
            with pytest.raises(InputError, match="rows of the declared length, got 99"):
                use(np.zeros((99, 3)), 2, rng=rng())
        if k > 1:
            refuses("n_components must be at most", use, np.zeros((5, 1)), 2, rng=rng())
    with pytest.raises(InputError, match=f"n_components must be the {k} that"):
        mechanism.components(mechanism.draw(np.zeros((3, 3)), 1, rng=rng()), 3)


def test_the_leader_says_what_is_true_of_a_step_and_of_all():
    published = FollowPerturbedLeader.as_published(1.0, 1e-5, length=64)
    assert published.step_claim().delta_at(1.0) > 1e-5
    assert published.step_claim().delta_at(1.0) == pytest.approx(3.74e-5, rel=1e-2)
    assert published.composed_claim() == GaussianDP(
        8 * published.step_claim().parameters["mu"]
    )
    calibrated = FollowPerturbedLeader.calibrated(1.0, 1e-5, length=64)
    assert calibrated.composed_claim().epsilon_at(1e-5) == pytest.approx(1.0)
    assert published.claim == calibrated.claim == ApproxDP(1.0, 1e-5)


# The doubling trick
def replayed(mechanism, data, transcript):
    """Return what Algorithm 4 does with given noisy nodes: (Q_t, epoch, place)."""
    n, d = data.shape
    plan = mechanism.plan(d, n)
    moments = mechanism.rule.noise.ratio
    assert moments > 0
    seen, epoch, begin, kept = [], 0, 0, {}
    for t in range(n):
        place = t + 1 - begin
        scale = plan.deviation * sqrt(2.0) ** epoch
        kept[place] = transcript[t] * scale
        total = sum(kept[node] for node in _parts(place))
        seen.append((total, epoch, place))
        matrix = np.zeros((d, d))
        rows, columns = np.triu_indices(d)
        weights = np.where(rows == columns, 1.0, mechanism.rule.noise.ratio)
        matrix[rows, columns] = matrix[columns, rows] = total / weights
        top = np.linalg.eigvalsh(matrix)[-mechanism.n_components :].sum()
        margin = plan.margin * (sqrt(2.0) ** epoch if plan.margin_grows else 1)
        if top > plan.guess * 2**epoch - margin:
            epoch, begin, kept = epoch + 1, t + 1, {}
    return seen


def _parts(place):
    while place:
        yield place
        place &= place - 1


def in_coordinates(rows, ratio):
    first, second = np.triu_indices(rows.shape[1])
    products = rows[:, first] * rows[:, second]
    return products * np.where(first == second, 1.0, ratio)


@pytest.mark.parametrize("form", ["doubling", "doubling-published", "eager"])
def test_a_slow_replay_of_the_nodes_agrees(form):
    mechanism, data = FORMS[form], in_ball(12, 3)
    other = data.copy()
    other[4] = [0.0, 0.0, 1.0]
    transcript = mechanism.transcript(data, 6, rng=rng(4))
    plan = mechanism.plan(3, 12)
    ratio = mechanism.rule.noise.ratio
    for side in (data, other):
        means = mechanism.step_means(transcript, side)["sums"]
        products = in_coordinates(side, ratio)
        for trial in range(6):
            seen = replayed(mechanism, side, transcript["sums"][trial])
            for t, (_, epoch, place) in enumerate(seen):
                held = products[t + 1 - (place & -place) : t + 1].sum(axis=0)
                expected = held / (plan.deviation * sqrt(2.0) ** epoch)
                np.testing.assert_allclose(means[trial, t], expected, atol=1e-12)
    epochs = [epoch for _, epoch, _ in seen]
    if form != "doubling":
        assert epochs[-1] > 0


@pytest.mark.parametrize("form", ["doubling", "eager"])
def test_bases_are_those_of_the_replayed_prefixes(form):
    mechanism, data = FORMS[form], in_ball(12, 3)
    bases = mechanism.draw(data, 4, rng=rng(4))
    transcript = mechanism.transcript(data, 4, rng=rng(4))["sums"]
    rows, columns = np.triu_indices(3)
    weights = np.where(rows == columns, 1.0, mechanism.rule.noise.ratio)
    forgotten = 0
    for trial in range(4):
        seen = replayed(mechanism, data, transcript[trial])
        for t, (total, epoch, _) in enumerate(seen):
            matrix = np.zeros((3, 3))
            matrix[rows, columns] = matrix[columns, rows] = total / weights
            expected = leading_bases(matrix, 1)
            if form == "eager" and t + 1 < len(seen) and seen[t + 1][1] > epoch:
                expected, forgotten = np.eye(3)[:, :1], forgotten + 1
            if t + 1 < len(seen):
                np.testing.assert_allclose(bases[trial, t], expected, atol=1e-9)
    assert forgotten > 0 or form == "doubling"


@pytest.mark.parametrize("form", ["doubling", "doubling-published", "eager"])
def test_a_row_is_paid_for_at_most_once_whatever_the_epochs(form):
    # The squares of the shifts of one row, over all nodes, in any run: at most mu^2.
    mechanism = FORMS[form]
    data = in_ball(12, 2)
    plan, ratio = mechanism.plan(2, 12), mechanism.rule.noise.ratio
    length = mechanism.length or 12
    most = 2 * tree_height(length) / plan.deviation**2
    for place in range(12):
        other, first = data.copy(), data.copy()
        first[place], other[place] = np.eye(2)
        transcript = mechanism.transcript(first, 200, rng=rng(place))
        shift = mechanism.step_means(transcript, first)["sums"]
        shift = shift - mechanism.step_means(transcript, other)["sums"]
        spent = (shift**2).sum(axis=(1, 2))
        assert spent.max() <= most * (1 + 1e-12)
        alone = 2 * len(nodes_of_row(place + 1, 12)) / plan.deviation**2
        if form == "doubling" and ratio > 1:  # no epoch ends in 12 rows
            np.testing.assert_allclose(spent, alone)


def test_the_numbers_of_algorithm_4_and_where_epochs_end():
    plan = PublishedRule(0.05, 1e-6).plan(
        dimension=9, n_components=2, length=100, row_norm=2.0
    )
    size = 4 * 2 * 3 * np.log(1e8) ** 2
    assert plan.guess == pytest.approx(size / 0.05**2)
    assert plan.margin == pytest.approx(10 * size / 0.05)
    assert plan.deviation**2 == pytest.approx(16 * 50 * np.log(1e8) ** 3 / 0.05**2)
    assert (plan.padded_to, plan.forgets, plan.margin_grows) == (7, True, False)
    for length, filled in ((1, 0), (2, 1), (8, 3), (9, 4)):
        plan = PublishedRule(1.0, 0.1).plan(
            dimension=2, n_components=1, length=length, row_norm=1.0
        )
        assert plan.padded_to == filled
    # From epsilon = 0.1 on the first epochs end at once.
    assert plan.margin > plan.guess
    # In epoch 2 the guess is 4 times the first and a margin that grows twice the first.
    for rule, margin in ((CalibratedRule(2.0), 2.0), (PublishedRule(0.05, 0.1), 1.0)):
        plan = rule.plan(dimension=3, n_components=1, length=9, row_norm=1.0)
        epochs = Epochs(plan, 2, tree_height(9), 6)
        epochs.number[:] = 2
        epochs.advance()
        assert epochs.deviation == pytest.approx(2 * plan.deviation)
        edge = 4 * plan.guess - margin * plan.margin
        ended = epochs.end(edge + np.array([-1e-9, 1e-9]) * plan.guess)
        assert ended.tolist() == [False, True]
        assert epochs.number.tolist() == [2, 3]
        assert epochs.step.tolist() == [1, 0]


def test_first_epochs_end_at_once_as_published_and_planted_ones_by_exact_rows():
    for epsilon, ends in ((0.09, 0), (1.0, 4), (4.0, 6)):
        mechanism = DoublingOnlinePCA.as_published(epsilon, 1e-5, length=20)
        stream = mechanism.start(3, rng=rng())
        epochs = []
        for _ in range(7):
            stream.add(np.zeros(3))
            epochs.append(stream.epoch)
        # Until 2^j > 10 epsilon; noise may end one more, or keep one for a row longer.
        assert abs(epochs[-1] - ends) <= 1
    # Beyond the guess of 6, an epoch begins with V_1 whatever the noise is.
    planted = ExactTestDoubling.planted(1.0, 1e-5)
    pair = planted.worst_case()
    for rows, begun in ((pair.data, True), (pair.neighbour, False)):
        bases = planted.draw(rows, 50, rng=rng())[:, -1, :, 0]
        assert (np.array_equal(bases, [[1.0, 0.0]] * 50)) == begun
    assert len(pair.data) == 7


def test_padding_gives_the_noise_one_law():
    @dataclass(frozen=True)
    class Padded(CalibratedRule):
        def plan(self, **shape):
            return replace(super().plan(**shape), padded_to=4)

    mechanism = DoublingOnlinePCA(rule=Padded(0.01), claim=GaussianDP(0.01), length=15)
    # With noise alone, the angle of the leader is uniform in any case; with a strong
    # row of signal, its spread tells how much noise there is.
    rows = np.zeros((15, 2))
    rows[0, 0] = 1.0
    loud = replace(mechanism, rule=Padded(8.0), claim=GaussianDP(8.0))
    # A median errs by 1.5 %: the largest is 15 % above the least of the 15 with a
    # probability below 1e-8.
    tilt = loud.draw(rows, 6000, rng=rng(3))[:, :, 1, 0]
    spread = np.median(np.abs(tilt), axis=0)
    assert spread.max() / spread.min() < 1.15
    plain = replace(loud, rule=CalibratedRule(8.0))
    tilt = plain.draw(rows, 4000, rng=rng(3))[:, :, 1, 0]
    spread = np.median(np.abs(tilt), axis=0)
    assert spread.max() / spread.min() > 1.5


@pytest.mark.parametrize("signal", [False, True])
def test_epochs_end_for_the_data_and_not_for_the_noise(signal):
    # On zero rows none may end; on rows at e_1 the first ends before the guess is
    # passed by more than one row, and not before half of it is reached.
    mechanism = DoublingOnlinePCA(rule=CalibratedRule(20.0), claim=GaussianDP(20.0))
    n = 20
    rows = np.zeros((n, 3))
    rows[:, 0] = signal
    plan = mechanism.plan(3, n)
    failures = 0
    for seed in range(400):
        stream = replace(mechanism, length=n).start(3, rng=rng(seed))
        ended = None
        for t in range(n):
            stream.add(rows[t])
            if ended is None and stream.epoch:
                ended = t + 1
        if signal:
            failures += ended is None or not plan.guess / 2 < ended <= plan.guess + 1
        else:
            failures += ended is not None
        if seed == 99 and failures == 0:
            break  # far below the rate already
    assert failures <= binom.isf(1e-9, 400, CalibratedRule.failure)
    assert plan.guess == pytest.approx(4 * plan.margin)


# Transcripts
@pytest.mark.parametrize("form", ["online", "doubling", "doubling-published", "eager"])
def test_the_loss_of_transcripts_is_that_of_their_law(form):
    # E_Q[e^L; L <= t] = P(L <= t), both ways round; by Hoeffding's inequality the two
    # means differ by more than the slack with probability at most 1e-10.
    mechanism, size = FORMS[form], 4000
    ours, theirs = in_ball(9, 2), in_ball(9, 2)
    ours[1], theirs[1] = np.eye(2)
    if form == "doubling-published":  # loud enough to have a loss
        rule = PublishedRule(300.0, 0.1)
        mechanism = replace(mechanism, n_components=1, rule=rule)

    def loss(transcript):
        first, second = (
            mechanism.step_means(transcript, side)["sums"] for side in (ours, theirs)
        )
        seen = transcript["sums"] - (first + second) / 2
        return ((first - second) * seen).sum(axis=(1, 2))

    on_data = loss(mechanism.transcript(ours, size, rng=rng(1)))
    on_neighbour = loss(mechanism.transcript(theirs, size, rng=rng(2)))
    assert on_data.std() > 0.2
    for one, two in ((on_data, on_neighbour), (-on_neighbour, -on_data)):
        for t in (-1.0, 0.0, 1.0):
            expected = np.mean(one <= t)
            found = np.mean(np.exp(two) * (two <= t))
            slack = sqrt(np.log(2e10) * (1 + np.exp(2 * t)) / (2 * size))
            assert abs(found - expected) <= slack


# Bad input


@pytest.mark.parametrize("length", [1, 7, 8, 33])
def test_doubling_spends_its_mu_on_the_first_row_and_no_more(length):
    # No epoch ends on zero rows, so the loss is that of one tree: exactly mu-GDP.
    mechanism = DoublingOnlinePCA.calibrated(1.0, 1e-5, length=length)
    for place in {0, length // 2, length - 1}:
        pair = replaced_row(length, 2, place, row_norm=1.0)
        seen = mechanism.transcript(pair.data, 3, rng=np.random.default_rng(place))
        ours, theirs = (
            mechanism.step_means(seen, rows)["sums"]
            for rows in (pair.data, pair.neighbour)
        )
        spent = np.sqrt(np.sum((ours - theirs) ** 2, axis=(1, 2)))
        whole = gaussian_mu(1.0, 1e-5)
        assert np.all(spent < whole * (1 + 1e-9))
        if place == 0:
            assert np.allclose(spent, whole)


def stream(deviations, count=60):
    rows = rng(3).standard_normal((count, len(deviations))) * deviations
    return rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))


SPIKED = stream([1.0, 0.8, 0.2, 0.1, 0.1])


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_optimum_is_that_of_the_best_subspace(k):
    rows = SPIKED
    optimum = best_fixed_reward(rows, k)
    bases = np.linalg.qr(rng().standard_normal((2000, 5, 5)))[0][..., :k]
    earned = ((rows @ bases) ** 2).sum(axis=(1, 2))
    assert earned.max() <= optimum + 1e-9
    leader = follow_the_leader(rows, k)[-1]
    assert ((rows @ leader) ** 2).sum() == pytest.approx(optimum)
    if k < 5:
        assert earned.max() >= 0.8 * optimum
    else:
        assert earned.min() == pytest.approx(optimum)


def test_rewards_are_those_of_the_subspace_before_the_row():
    rows = stream([1.0] * 3, 7)
    bases = np.linalg.qr(rng(1).standard_normal((4, 7, 3, 3)))[0][..., :2]
    found = rewards(rows, bases)
    for trial in range(4):
        for t in range(7):
            basis = np.eye(3)[:, :2] if t == 0 else bases[trial, t - 1]
            expected = (rows[t] @ basis) @ (rows[t] @ basis)
            assert found[trial, t] == pytest.approx(expected)
    total = best_fixed_reward(rows, 2) - found.sum(axis=1)
    np.testing.assert_allclose(regret(rows, bases), total)
    # The last basis earns nothing.
    changed = bases.copy()
    changed[:, -1] = np.eye(3)[:, 1:]
    np.testing.assert_array_equal(rewards(rows, changed), found)


def test_follow_the_leader_is_what_little_noise_gives_and_bad_arguments_are_named():
    rows = SPIKED
    quiet = OnlinePCA.calibrated(1e12, 0.5, n_components=2)
    bases = quiet.release(rows, rng=rng())
    expected = follow_the_leader(rows, 2)
    late = slice(5, None)
    overlap = np.linalg.norm(bases[late].swapaxes(1, 2) @ expected[late], axis=(1, 2))
    np.testing.assert_allclose(overlap, sqrt(2), atol=1e-4)
    refuses("sums must be PrefixSums", SubspaceSequence, sums=1.0)


def test_the_proven_bound_in_numbers_and_those_of_the_paper_as_printed():
    setting = {"length": 10, "dimension": 4, "n_components": 2}
    noise = PublishedStepNoise(0.5, 0.01).deviation(uses=1, length=1, row_norm=1.0)
    bound = proven_regret_bound(
        optimum=8.0, sigma=noise, epsilon=0.5, delta=0.01, **setting
    )
    expected = (1 - exp(-0.5)) * 8 + exp(-0.5) * (4 * 2 * noise * 2 + 0.09 + 1)
    assert bound == pytest.approx(expected)
    whole = setting | {"n_components": 4}
    assert (
        proven_regret_bound(optimum=8.0, sigma=5.0, epsilon=1.0, delta=0.1, **whole)
        == 0
    )
    setting = {"optimum": 1e6, "length": 1000, "dimension": 100, "n_components": 3}
    second = corollary_17_bound(**setting)
    assert second == pytest.approx(sqrt(3 * 1e6 * 10 * log(1000)))
    third = theorem_18_bound(delta=1e-7, **setting)
    assert third == pytest.approx(sqrt(3 * 1e6 * 10 * log(1e10) ** 5))


test_bad_input_is_named = refused(
    (lambda: rewards(np.eye(3), np.zeros((2, 3, 1))), "bases must have shape"),
    (lambda: rewards(np.zeros((0, 3)), np.zeros((0, 3, 1))), "data must have shape"),
    (lambda: best_fixed_reward(np.eye(2), 3), "n_components must be at most"),
    (lambda: best_fixed_reward(np.eye(2), 0), "n_components must be an integer"),
    (lambda: follow_the_leader(np.eye(2), 3), "n_components must be at most"),
    (
        lambda: corollary_17_bound(optimum=1.0, length=1, dimension=2, n_components=1),
        "length must be an integer >= 2",
    ),
    (
        lambda: corollary_17_bound(optimum=-1.0, length=9, dimension=2, n_components=1),
        "optimum must be",
    ),
    (
        lambda: theorem_18_bound(
            optimum=1.0, length=9, dimension=2, n_components=1, delta=0.0
        ),
        "delta must be in",
    ),
)
