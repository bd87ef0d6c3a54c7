"""Which attacks an audit tries on which output, and what the oldest of them compute.

Learned and exact likelihood ratios are held to the truth.
"""

import subprocess
import sys
import warnings
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pytest
from attack_cases import (
    REPLACED,
    ROWS,
    SCALARS,
    Steps,
    auc,
    black_box,
    transcript,
    words,
)
from scipy import stats
from scipy.special import expit
from sklearn.covariance import ledoit_wolf
from sklearn.linear_model import LogisticRegression

from dpaudit import MechanismError, Pair, Relation, UnsupportedError, algorithms
from dpaudit.attacks import (
    PORTFOLIO,
    ByLayout,
    ExactLoss,
    GaussianTranscript,
    Identity,
    LaplaceLocation,
    LinearDiscriminant,
    LogisticClassifier,
    MeanShift,
    Support,
    Target,
)
from dpaudit.attacks.learned import _fit_logistic
from dpaudit.attacks.location import _shrunk_covariance
from dpaudit.audit.layers.layer import view_transcript
from dpaudit.batches import Batch
from dpaudit.outputs import read


def sample(mechanism, pair, size=400, seed=0):
    rng = np.random.default_rng(seed)
    return [mechanism.draw(d, size, rng=rng) for d in (pair.data, pair.neighbour)]


def target_of(mechanism, dimension=2):
    return Target(mechanism, mechanism.worst_case(dimension))


@pytest.mark.parametrize("attack", [LinearDiscriminant(), LogisticClassifier()])
def test_learned_attacks_take_dictionaries_and_missing_entries(attack):
    rng = np.random.default_rng(0)
    target = Target(black_box, SCALARS)
    sides = [
        {"b": rng.normal(size=(300, 2, 2)), "a": rng.normal(size=300) + shift}
        for shift in (3.0, 0.0)
    ]
    parameters = attack.fit(target, *sides)
    scores = [attack.score(target, parameters, side) for side in sides]
    assert (scores[0].mean() - scores[1].mean()) > 1
    # Which entry is NaN, +inf or -inf tells as much as a number would.
    rng = np.random.default_rng(0)
    target = Target(black_box, SCALARS)
    for code in (np.nan, np.inf, -np.inf):
        sides = rng.normal(size=(2, 400, 3))
        sides[0, ::2, 1] = code
        parameters = attack.fit(target, *sides)
        scores = [attack.score(target, parameters, side) for side in sides]
        assert auc(*scores) > 0.7


def names(mechanism, pair, releases):
    target = Target(mechanism, pair)
    reads = "outputs" if isinstance(releases, Batch) else "numbers"
    return {
        attack.name
        for attack in PORTFOLIO
        if attack.reads == reads and attack.applies(target, releases)
    }


BLACK_BOX = {"linear-discriminant", "logistic", "gradient-boosting"}


def test_which_attacks_apply_to_mechanisms():
    def applying(mechanism, dimension):
        pair = mechanism.worst_case(dimension)
        releases = mechanism.draw(pair.data, 20, rng=np.random.default_rng(0))
        return names(mechanism, pair, releases)

    known = {"mean-shift", "logistic"}
    for dimension in (1, 2):
        found = applying(algorithms.GOEGaussian.from_mu(1.0), dimension)
        assert found == known | {"exact-loss"}
    wishart = algorithms.SymmetrisedWishart.calibrated(1.0)
    assert applying(wishart, 2) == known | {"exact-loss"}
    assert applying(wishart, 3) == known
    assert applying(algorithms.SymmetricNoise.as_published(1.0), 3) == known | {
        "exact-loss",
        "support",
    }


def test_the_layout_and_its_numbers_tell_one_thing_each():
    """Ratios of 3 and of 1/3, up to what the table smooths, beside noise."""
    rng = np.random.default_rng(0)

    def side(short):
        lengths = rng.permutation([1] * short + [2] * (400 - short))
        return Batch.gather([read(rng.normal(size=n)) for n in lengths])

    target = Target(None, SCALARS)
    parameters = ByLayout().fit(target, side(300), side(100))
    fresh = Batch.gather([read(rng.normal(size=n)) for n in [1] * 200 + [2] * 200])
    scores = ByLayout().score(target, parameters, fresh)
    assert abs(np.mean(scores[:200]) - np.log(3)) < 0.3
    assert abs(np.mean(scores[200:]) + np.log(3)) < 0.3


def test_which_attacks_apply_to_black_boxes():
    rng = np.random.default_rng(0)
    squares = rng.normal(size=(20, 3, 3))
    bases = np.linalg.qr(rng.normal(size=(20, 3, 2))).Q
    cases = [
        (SCALARS, rng.normal(size=20), {"identity", "logistic"}),
        (SCALARS, rng.integers(3, size=20) * 1.0, {"identity", "logistic", "atoms"}),
        (SCALARS, rng.normal(size=(20, 4)), BLACK_BOX | {"laplace-location"}),
        (SCALARS, words(["returns None", "raises ValueError"] * 10), {"abnormal"}),
        (
            SCALARS,
            Batch.gather([read(1.5), read([1.5, 2.0])] * 10),
            {"abnormal", "by-layout"},
        ),
        (SCALARS, squares, BLACK_BOX),
        (ROWS, squares, BLACK_BOX | {"support", "canary-quadratic"}),
        (
            ROWS,
            squares + squares.swapaxes(1, 2),
            BLACK_BOX | {"support", "canary-quadratic", "canary-overlap"},
        ),
        # A projector's top eigenvector is arbitrary; its quadratic form is the overlap.
        (
            ROWS,
            bases @ bases.swapaxes(1, 2),
            BLACK_BOX | {"support", "canary-quadratic"},
        ),
        (ROWS, bases, BLACK_BOX | {"canary-overlap", "tracing"}),
        (ROWS, 2 * bases, BLACK_BOX | {"reconstruction"}),
        (
            ROWS,
            rng.normal(size=(20, 3)),
            BLACK_BOX | {"laplace-location", "tracing", "reconstruction"},
        ),
        (
            REPLACED,
            rng.normal(size=(20, 3)),
            BLACK_BOX | {"laplace-location", "tracing"},
        ),
        (ROWS, rng.normal(size=(20, 4, 4)), BLACK_BOX),
        (ROWS, {"a": squares, "b": rng.normal(size=20)}, BLACK_BOX),
    ]
    for pair, releases, expected in cases:
        assert names(black_box, pair, releases) == expected


def test_failing_capabilities_are_the_mechanisms_own():
    class Broken:
        sensitivity = None
        step_scales = MappingProxyType({"first": 1.0})

        def fail(self, *arguments):
            raise ZeroDivisionError("by zero")

        statistic = privacy_loss = in_support = step_means = fail

    target = Target(Broken(), SCALARS)
    for attack, releases in [
        *((ExactLoss(), np.zeros(3)), (MeanShift(), np.zeros(3))),
        *((Identity(), np.zeros(3)), (PORTFOLIO[1], {"first": np.zeros(3)})),
    ]:
        with pytest.raises(MechanismError, match="ZeroDivisionError: by zero"):
            attack.applies(target, releases)
    with pytest.raises(MechanismError, match="ZeroDivisionError: by zero"):
        Support().score(target, {}, np.zeros(3))


def test_support_guesses_match_the_truth_and_shifts_are_inner_products():
    mechanism = algorithms.SymmetricNoise.as_published(1.0)
    pair = mechanism.worst_case(3)
    releases = np.concatenate(sample(mechanism, pair, 200))
    known = Support().score(Target(mechanism, pair), {}, releases)
    guessed = Support().score(Target(black_box, pair), {}, releases)
    assert np.array_equal(known, guessed)
    assert set(np.unique(known)) == {0.0, 1.0}
    assert Support().event(0.5) == "the release is one of D alone"
    assert Support().event(0.5, reached=False) == "the release is not one of D alone"
    mechanism = algorithms.AnalyzeGauss.calibrated(1.0, 1e-5)
    pair = Pair(np.eye(3)[:2], np.eye(3)[:1], Relation.ADD_REMOVE)
    releases = mechanism.draw(pair.data, 4, rng=np.random.default_rng(0))
    releases[3, 0, 0] = np.nan
    target = Target(mechanism, pair)
    parameters = MeanShift().fit(target, releases, releases)
    expected = [*releases[:3, 1, 1], -np.inf]
    np.testing.assert_allclose(
        MeanShift().score(target, parameters, releases), expected, rtol=1e-12
    )


def test_identity_keeps_infinities_and_puts_nan_lowest():
    releases = np.array([[1.0], [np.nan], [np.inf], [-np.inf]])
    scores = Identity().score(Target(black_box, SCALARS), {}, releases)
    assert scores.tolist() == [1.0, -np.inf, np.inf, -np.inf]


TARGET = Target(black_box, SCALARS)


def area(attack, draw, learned, target=TARGET, judged=20_000):
    rng = np.random.default_rng(0)
    parameters = attack.fit(target, draw(rng, learned, 1), draw(rng, learned, 0))
    return auc(
        *(attack.score(target, parameters, draw(rng, judged, s)) for s in (1, 0))
    )


def best_area(loss, draw, judged=20_000):
    rng = np.random.default_rng(1)
    return auc(*(loss(draw(rng, judged, s)) for s in (1, 0)))


SHIFT = np.where(np.arange(10) < 6, 0.5, 0.0)


def laplace(rng, size, side):
    return side * SHIFT + rng.laplace(size=(size, 10))


def laplace_loss(y):
    return (np.abs(y) - np.abs(y - SHIFT)).sum(axis=1)


def gaussian(rng, size, side):
    return side * SHIFT + rng.normal(size=(size, 10))


def test_laplace_location_is_nearly_optimal_and_bounded():
    """Two standard errors of either area are below 0.006."""
    best = best_area(laplace_loss, laplace)
    assert area(LaplaceLocation(), laplace, 4096) > best - 0.01
    assert area(LaplaceLocation(), laplace, 256) > best - 0.02
    sides = np.random.default_rng(0).laplace(size=(2, 300, 3))
    parameters = LaplaceLocation().fit(TARGET, *sides)
    large = np.tile(sides[0], (75, 1))  # which are scored in parts
    scores = LaplaceLocation().score(TARGET, parameters, large)
    alone = LaplaceLocation().score(TARGET, parameters, sides[0])
    np.testing.assert_array_equal(scores, np.tile(alone, 75))
    bound = (
        np.abs(parameters["on_data"] - parameters["on_neighbour"]) / parameters["scale"]
    ).sum()
    wild = 1e9 * np.random.default_rng(1).normal(size=(50, 3))
    assert (
        np.abs(LaplaceLocation().score(TARGET, parameters, wild)).max() <= bound + 1e-6
    )


@pytest.mark.parametrize(
    ("draw", "loss"),
    [(laplace, laplace_loss), (gaussian, lambda y: y @ SHIFT)],
    ids=["laplace", "gaussian"],
)
def test_logistic_is_nearly_optimal(draw, loss):
    best = best_area(loss, draw)
    assert area(LogisticClassifier(), draw, 4096) > best - 0.02
    assert area(LogisticClassifier(), draw, 256) > best - 0.06


@pytest.mark.parametrize(
    ("size", "columns", "shift"),
    [(128, 1, 0.5), (128, 3, 5.0), (64, 60, 0.3), (500, 30, 0.1), (200, 3, 100.0)],
)
def test_the_fits_are_those_of_scikit_learn(size, columns, shift):
    rows = np.random.default_rng(0).normal(size=(2 * size + 7, columns))
    rows[:size] += shift
    rows = np.clip(rows, -20, 20)
    model = LogisticRegression(C=1.0, max_iter=50, solver="newton-cholesky", tol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows, np.arange(len(rows)) < size)
    expected = np.append(model.coef_[0], model.intercept_)
    np.testing.assert_allclose(_fit_logistic(rows, size), expected, atol=1e-3)
    centred = rows - rows.mean(axis=0)
    covariance, _ = ledoit_wolf(centred, assume_centered=True)
    np.testing.assert_allclose(_shrunk_covariance(centred), covariance, atol=1e-12)


def test_an_audit_waits_for_no_library_that_is_slow_to_import():
    """They would take longer than the audits of continuous integration themselves."""
    program = """
import sys
import numpy as np
from dpaudit import Pair, PureDP
from dpaudit.audit import audit
for d in (1, 5):
    pair = Pair(np.zeros((0, d)), np.eye(1, d))
    result = audit(
        lambda data, rng: data.sum(axis=0) + rng.laplace(size=d),
        pair=pair, claim=PureDP(8.0), budget=1_500,
    )
print(sorted({"sklearn", "pandas", "scipy.stats", "scipy.optimize"} & set(sys.modules)))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "[]\n"


def test_wild_features_do_not_keep_a_fit_from_its_optimum():
    """Rows of Cauchy entries and their squares: the slope vanishes, all the same."""
    generator = np.random.default_rng(1)
    for _ in range(50):
        ours, more, columns = generator.integers(1, 60, size=3)
        size = 60 + more
        wild = generator.standard_cauchy((size, columns % 5 + 1))
        rows = np.clip(wild * 10 ** generator.uniform(-1, 1.5), -20, 20)
        rows = np.hstack([rows, rows**2])
        weights = _fit_logistic(rows, ours)
        share = expit(rows @ weights[:-1] + weights[-1])
        slope = rows.T @ ((np.arange(size) < ours) - share) - weights[:-1]
        assert np.abs(slope).max() < 1e-2 * size


def test_logistic_takes_bits_and_transcripts_need_no_boosting():
    bits = np.random.default_rng(0).integers(2, size=(2, 300, 30)).astype(float)
    parameters = LogisticClassifier().fit(TARGET, *bits)
    assert len(parameters["coefficients"]) == 30
    assert parameters["curved"].size == 0
    releases = transcript(np.random.default_rng(0), 20, 1)
    assert names(Steps(), SCALARS, releases) == {
        "gaussian-transcript",
        "linear-discriminant",
        "logistic",
    }


def test_transcript_loss_is_the_difference_of_log_densities():
    steps, target = Steps(), Target(Steps(), SCALARS)
    values = transcript(np.random.default_rng(0), 50, 1)
    log_density = []
    for data in (SCALARS.data, SCALARS.neighbour):
        means = steps.step_means(values, data)
        first = stats.norm.logpdf(values["first"], means["first"], 1.0)
        second = stats.norm.logpdf(values["second"], means["second"], 2.0)
        log_density.append(first + second.sum(axis=1))
    np.testing.assert_allclose(
        GaussianTranscript().score(target, {}, values),
        log_density[0] - log_density[1],
        rtol=1e-9,
    )


def test_transcripts_of_another_kind_are_declined():
    values = transcript(np.random.default_rng(0), 5, 1)
    target = Target(Steps(), SCALARS)
    applies = GaussianTranscript().applies
    assert applies(target, values)
    assert applies(Target(view_transcript(Steps()), SCALARS), values)
    assert not applies(target, values["first"])
    assert not applies(target, {"first": values["first"]})
    assert not applies(target, {**values, "second": values["second"][:, :1]})
    assert not applies(Target(black_box, SCALARS), values)

    @dataclass(frozen=True)
    class Silent(Steps):
        @property
        def step_scales(self):
            return MappingProxyType({"first": 1.0, "second": 0.0})

    class Unsupported(Steps):
        def step_means(self, transcript, data):
            raise UnsupportedError("not here")

    assert not applies(Target(Silent(), SCALARS), values)
    assert not applies(Target(Unsupported(), SCALARS), values)
