import numpy as np
import pytest
from attack_cases import subspace
from refusals import refused
from scipy import stats
from seeded import rng

from dpaudit.attacks.pirates import ask
from dpaudit.attacks.tracing_attack import TracingAttack
from dpaudit.fingerprinting import HardInstance, calibrated_threshold, rank_p_values


def instance(m=8, n=300, k=1, seed=1):
    return HardInstance.generate(
        m, n, n_clusters=k, cutoff=0.02, pad_ratio=1, rng=rng(seed)
    )


@pytest.mark.parametrize("rounding", ["sign", "clip"])
@pytest.mark.parametrize("k", [1, 2])
def test_members_of_every_cluster_are_found(rounding, k):
    attack = TracingAttack(instance(8, 300, k), rounding)
    inside = np.tile(np.arange(8) < 3, k)
    release = ask(subspace(k), attack.rows[inside], rng())
    scores = attack.scores(subspace(k), release)
    assert scores.shape == (8 * k,)
    for cluster in range(k):
        part = slice(8 * cluster, 8 * cluster + 8)
        assert scores[part][:3].min() > scores[part][3:].max()
    p_values = attack.p_values(subspace(k), release)
    assert p_values[inside].min() < 1e-4
    assert p_values[~inside].min() > 1e-3


def test_clipped_words_are_in_units_of_the_padding_and_strangers_seeded():
    attack = TracingAttack(instance(4, 50), "clip")
    (disguise,) = attack.instance.disguises
    padded = np.full(disguise.dimension, 0.5)  # the padding agrees
    padded[:50] = np.linspace(-1, 1, 50)  # half of its entries are beyond
    hidden = disguise.undo(np.eye(len(padded))).T @ padded / np.linalg.norm(padded)
    (word,) = attack.words(subspace(1), hidden[:, np.newaxis])
    expected = np.clip(np.linspace(-2, 2, 50), -1, 1)
    np.testing.assert_allclose(np.abs(word), np.abs(expected), atol=1e-9)
    attack = TracingAttack(instance(4, 100))
    release = ask(subspace(1), attack.rows[:2], rng())
    first, again, other = (
        attack.stranger_scores(subspace(1), release, strangers=9, rng=rng(seed))[0]
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.isin(first, other).all()


def test_scores_do_not_depend_on_the_basis_and_no_subspace_moves_none():
    attack = TracingAttack(instance(6, 100, 2))
    release = ask(subspace(2), attack.rows[::2], rng())
    before = attack.scores(subspace(2), release)
    turn = np.array([[0.6, -0.8], [-0.8, -0.6]])
    projector = release @ release.T
    for other in (release @ turn, release.T, projector, 5 * projector):
        after = attack.scores(subspace(2), other)
        np.testing.assert_allclose(after, before, atol=1e-7)
    attack = TracingAttack(instance(4, 10, 2))
    nothing = np.full((20, 2), np.nan)
    assert not attack.scores(subspace(2), nothing).any()
    assert (attack.p_values(subspace(2), nothing) == 1).all()


def test_strangers_calibrate_the_threshold():
    """Innocents are accused with probability 0.05 at most: a binomial test at 1e-9."""
    accused = trials = found = 0
    for seed in range(40):
        attack = TracingAttack(instance(30, 100, seed=seed))
        release = ask(subspace(1), attack.rows[:3], rng())
        (strangers,) = attack.stranger_scores(
            subspace(1), release, strangers=99, rng=rng(seed)
        )
        scores = attack.scores(subspace(1), release)
        above = scores > calibrated_threshold(strangers, 0.05)
        np.testing.assert_array_equal(above, rank_p_values(scores, strangers) <= 0.05)
        # One innocent per instance: those of an instance share their strangers.
        accused, trials = accused + above[3], trials + 1
        found += above[:3].all()
    assert accused <= stats.binom.isf(1e-9, trials, 0.05)
    assert found > 35


test_bad_input = refused(
    (lambda: TracingAttack("instance"), "instance must be a HardInstance"),
    (lambda: TracingAttack(instance(), "round"), "unknown rounding"),
    (
        lambda: TracingAttack(instance()).scores(subspace(1), np.ones(3)),
        r"got shape \(3,\)",
    ),
    (
        lambda: TracingAttack(instance()).stranger_scores(
            subspace(1), np.ones(600), strangers=0, rng=rng()
        ),
        "strangers must be",
    ),
)
