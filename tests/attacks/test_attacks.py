"""Each attack separates what it should, and says when it does not apply."""

import numpy as np
import pytest

from dpaudit import Pair, PureDP, Relation
from dpaudit.algorithms import (
    AnalyzeGauss,
    GOEGaussian,
    SymmetricNoise,
    SymmetrisedWishart,
)
from dpaudit.attacks import (
    PORTFOLIO,
    ExactLoss,
    LinearDiscriminant,
    LogisticClassifier,
    MeanShift,
    Support,
    Target,
)
from dpaudit.attacks.base import as_features


def sample(mechanism, pair, size=400, seed=0):
    rng = np.random.default_rng(seed)
    return [mechanism.draw(d, size, rng=rng) for d in (pair.data, pair.neighbour)]


def separation(attack, target, learn, judge):
    """Return the area under the ROC curve on releases that were not learned from."""
    parameters = attack.fit(target, *learn)
    scores = [attack.score(target, parameters, side) for side in judge]
    assert all(s.shape == (len(side),) for s, side in zip(scores, judge, strict=True))
    above = scores[0][:, np.newaxis] > scores[1]
    ties = scores[0][:, np.newaxis] == scores[1]
    return float((above + ties / 2).mean())


def target_of(mechanism, dimension=2):
    return Target(mechanism, mechanism.worst_case(dimension))


@pytest.mark.parametrize(
    ("attack", "mechanism", "least"),
    [
        (ExactLoss(), GOEGaussian.from_mu(1.5), 0.82),
        (ExactLoss(), SymmetricNoise.as_published(1.0), 0.78),
        (ExactLoss(), SymmetrisedWishart.calibrated(3.0), 0.9),
        (MeanShift(), GOEGaussian.from_mu(1.5), 0.82),
        (MeanShift(), AnalyzeGauss.calibrated(8.0, 1e-2), 0.85),
        (Support(), SymmetricNoise.as_published(1.0), 0.78),
        (LinearDiscriminant(), GOEGaussian.from_mu(1.5), 0.8),
        (LogisticClassifier(), GOEGaussian.from_mu(1.5), 0.8),
    ],
    ids=lambda x: getattr(x, "name", type(x).__name__),
)
def test_attacks_separate(attack, mechanism, least):
    """mu = 1.5 has area Phi(1.5/sqrt 2) = 0.856; five standard errors are 0.07."""
    target = target_of(mechanism)
    learn = sample(mechanism, target.pair)
    judge = sample(mechanism, target.pair, seed=1)
    assert separation(attack, target, learn, judge) >= least


def test_logistic_finds_a_change_of_spread():
    pair = Pair([0.0], [0.0, 1.0])
    rng = np.random.default_rng(0)
    spread = lambda size: [rng.normal(size=(size, 3)), 3 * rng.normal(size=(size, 3))]  # noqa: E731
    target = Target(lambda d, g: g.normal(size=3), pair)
    assert separation(LogisticClassifier(), target, spread(300), spread(300)) > 0.9


def test_logistic_survives_wild_constant_and_missing_entries():
    pair = Pair([0.0], [0.0, 1.0])
    rng = np.random.default_rng(0)
    target = Target(lambda d, g: g.normal(size=4), pair)

    def side(shift):
        x = rng.standard_cauchy(size=(200, 4)) ** 3 + shift
        x[:, 1] = 7.0
        x[::9, 2] = np.nan
        x[::11, 3] = np.inf
        return x

    parameters = LogisticClassifier().fit(target, side(0), side(1))
    assert np.isfinite(LogisticClassifier().score(target, parameters, side(0))).all()


@pytest.mark.parametrize("attack", [LinearDiscriminant(), LogisticClassifier()])
def test_learned_attacks_take_dictionaries(attack):
    rng = np.random.default_rng(0)
    target = Target(lambda d, g: {}, Pair([0.0], [0.0, 1.0]))
    sides = [
        {"b": rng.normal(size=(300, 2, 2)), "a": rng.normal(size=300) + shift}
        for shift in (3.0, 0.0)
    ]
    parameters = attack.fit(target, *sides)
    scores = [attack.score(target, parameters, side) for side in sides]
    assert (scores[0].mean() - scores[1].mean()) > 1


def test_which_attack_applies_where():
    def names(mechanism, releases, pair=None):
        target = Target(mechanism, pair or mechanism.worst_case(releases.shape[-1]))
        return {a.name for a in PORTFOLIO if a.applies(target, releases)}

    square, bigger = np.zeros((1, 2, 2)), np.zeros((1, 3, 3))
    known = {"mean-shift", "logistic"}
    assert names(GOEGaussian.from_mu(1.0), square) == known | {"exact-loss"}
    wishart = SymmetrisedWishart.calibrated(1.0)
    assert names(wishart, square) == known | {"exact-loss"}
    assert names(wishart, bigger) == known
    assert names(SymmetricNoise.as_published(1.0), bigger) == known | {
        "exact-loss",
        "support",
    }
    pair = Pair(np.zeros((1, 3)), np.eye(3)[:1], Relation.REPLACE_ONE)
    black_box = {"linear-discriminant", "logistic"}
    assert names(lambda d, g: 0.0, bigger, pair) == black_box | {"support"}
    assert names(lambda d, g: 0.0, square, pair) == black_box


def test_support_guess_matches_the_truth():
    mechanism = SymmetricNoise.as_published(1.0)
    pair = mechanism.worst_case(3)
    releases = np.concatenate(sample(mechanism, pair, 200))
    known = Support().score(Target(mechanism, pair), {}, releases)
    guessed = Support().score(Target(lambda d, g: None, pair), {}, releases)
    assert np.array_equal(known, guessed)
    assert set(np.unique(known)) == {0.0, 1.0}


def test_features_keep_one_triangle_of_symmetric_matrices():
    symmetric = np.array([[[1.0, 2.0], [2.0, 3.0]]])
    assert as_features(symmetric).tolist() == [[1.0, 2.0, 3.0]]
    general = np.array([[[1.0, 2.0], [5.0, 3.0]]])
    assert as_features(general).tolist() == [[1.0, 2.0, 5.0, 3.0]]
    assert as_features(np.array([1.0, np.nan])).tolist() == [[1.0], [0.0]]


def test_names_are_unique_and_parameters_are_arrays():
    assert len({attack.name for attack in PORTFOLIO}) == len(PORTFOLIO)
    mechanism = GOEGaussian.from_mu(1.0)
    target = target_of(mechanism)
    learn = sample(mechanism, target.pair, 50)
    for attack in PORTFOLIO:
        if attack.applies(target, learn[0]):
            fitted = attack.fit(target, *learn)
            assert all(isinstance(v, np.ndarray) for v in fitted.values())


def test_exact_loss_is_the_mechanisms_own():
    mechanism = GOEGaussian.from_mu(1.0)
    target = target_of(mechanism)
    releases = sample(mechanism, target.pair, 5)[0]
    expected = mechanism.privacy_loss(releases, target.pair.data, target.pair.neighbour)
    assert np.array_equal(ExactLoss().score(target, {}, releases), expected)
    assert mechanism.claim != PureDP(1.0)
