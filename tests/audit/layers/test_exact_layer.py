"""The exact layer refutes what is false, and nothing that is true with equality.

And which layers a mechanism offers, the transcript as a release, and confidence
intervals for bounded means: coverage by enumeration, which is exact.
"""

import json
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from refusals import refuses
from scipy.stats import binom

from dpaudit import Claim, GaussianDP, InputError, Pair, Relation
from dpaudit.algorithms import AnalyzeGauss, GOEGaussian, SymmetricNoise
from dpaudit.audit import Verdict, audit
from dpaudit.audit.layers.exact import ExactOutcome, exact_verdict
from dpaudit.audit.layers.layer import Layer, TranscriptView, applicable_layers
from dpaudit.audit.layers.means import BettingInterval, BettingLowerBound
from dpaudit.claims import ApproxDP, Profile, PureDP, ZeroConcentratedDP
from dpaudit.gaussian import gaussian_delta
from dpaudit.mechanism import HasBatchedDraw, HasExactClaim, HasWorstCase, Mechanism

PAIR = Pair([0.0], [1.0])


@dataclass(frozen=True)
class Known:
    """A mechanism of which only the tightest claim is known."""

    exact: Claim
    relation: Relation = Relation.REPLACE_ONE

    def exact_claim(self, pair):
        return self.exact


def decided(mechanism, pair, claim=None):
    verdict = exact_verdict(mechanism, pair, claim)
    assert verdict is not None
    return verdict


def outcome(exact, claim):
    return decided(Known(exact), PAIR, claim).outcome


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-10])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 6.0])
def test_calibrated_mechanisms_hold_with_equality(epsilon, delta, relation):
    for family in (AnalyzeGauss, GOEGaussian):
        mechanism = family.calibrated(epsilon, delta, relation=relation, row_norm=1.7)
        verdict = decided(mechanism, mechanism.worst_case(3))
        assert verdict.outcome is ExactOutcome.HOLDS, str(verdict)
        assert verdict.exact_delta == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-10])
def test_a_tenth_of_a_percent_of_a_small_delta_is_seen(delta):
    mu = GaussianDP.from_approx(2.0, delta).parameters["mu"]
    assert outcome(GaussianDP(mu), ApproxDP(2.0, 1.001 * delta)) is ExactOutcome.HOLDS
    assert outcome(GaussianDP(mu), ApproxDP(2.0, delta / 1.001)) is (
        ExactOutcome.REFUTED
    )


def test_the_published_analyze_gauss_is_refuted_where_the_theory_says():
    """The row replaced: true delta 3.74e-5 at (1, 1e-5); true epsilon 1.098."""
    mechanism = AnalyzeGauss.as_published(1.0, 1e-5, relation="replace-one")
    verdict = decided(mechanism, mechanism.worst_case())
    assert verdict.refuted
    assert verdict.epsilon == pytest.approx(1.0, abs=1e-10)
    mu = np.sqrt(2) / np.sqrt(2 * np.log(1.25e5))
    assert verdict.exact_delta == pytest.approx(float(gaussian_delta(1.0, mu)))
    assert verdict.excess == pytest.approx(2.74e-5, rel=0.01)
    for epsilon, delta, refuted in ((7.0, 1e-3, False), (8.0, 1e-3, True)):
        added = AnalyzeGauss.as_published(epsilon, delta)
        assert decided(added, added.worst_case()).refuted is refuted


# Their deltas at the epsilon: 0.0027, 1e-61, and 1e-1000, which no double can hold.
GAUSSIANS = [(1.0, 3.0), (0.3, 5.0), (0.0411, 2.80018)]


@pytest.mark.parametrize(("mu", "epsilon"), GAUSSIANS)
@pytest.mark.parametrize("pure", [PureDP, lambda e: ApproxDP(e, 0.0)])
def test_a_pure_claim_of_a_gaussian_is_false_whatever_a_double_can_hold(
    mu, epsilon, pure
):
    verdict = decided(Known(GaussianDP(mu)), PAIR, pure(epsilon))
    assert verdict.refuted
    text = str(verdict)
    assert "the exact delta is 0," not in text
    if gaussian_delta(epsilon, mu) < 1e-15:
        # By sign: there is nothing that it had to exceed, and its size is said.
        assert verdict.epsilon == epsilon
        assert verdict.tolerance == 0.0
        assert verdict.exact_delta == gaussian_delta(epsilon, mu)
        assert ("positive" in text) == (verdict.exact_delta == 0)


@pytest.mark.parametrize("delta", [5e-324, 1e-300, 1e-62, 1e-16])
@pytest.mark.parametrize(("mu", "epsilon"), GAUSSIANS[1:])
def test_a_violation_below_the_tolerance_of_a_positive_delta_is_not_reported(
    mu, epsilon, delta
):
    """Whether or not the exact delta is larger, and a double."""
    verdict = decided(Known(GaussianDP(mu)), PAIR, ApproxDP(epsilon, delta))
    assert verdict.outcome is ExactOutcome.HOLDS
    assert verdict.tolerance >= 1e-15
    assert "up to the tolerance" in str(verdict)
    assert "the exact delta is 0," not in str(verdict)
    assert outcome(GaussianDP(1.0), ApproxDP(epsilon, delta)) is ExactOutcome.REFUTED


def test_zeros_of_tables_are_numbers_and_pure_epsilons_have_one_tolerance():
    """A Gaussian's own table, that underflows at its end, holds with equality."""
    mu, epsilons = 0.0411, np.linspace(0.0, 3.0, 7)
    table = Profile(epsilons, gaussian_delta(epsilons, mu))
    assert table.delta_at(3.0) == 0.0
    assert outcome(GaussianDP(mu), table) is ExactOutcome.HOLDS
    assert outcome(GaussianDP(2 * mu), table) is ExactOutcome.REFUTED
    assert outcome(GaussianDP(1.0), Profile((3.0,), (0.0,))) is ExactOutcome.REFUTED
    assert outcome(PureDP(1.0), Profile((0.9,), (0.0,))) is ExactOutcome.UNDECIDED
    # Of 4e-12 (1 + epsilon), either way; not more of one kind of claim.
    for epsilon in (0.01, 1.0, 30.0):
        step = 4e-12 * (1 + epsilon)
        for claim, expected in (
            (PureDP(epsilon - 0.9 * step), ExactOutcome.HOLDS),
            (PureDP(epsilon - 1.1 * step), ExactOutcome.REFUTED),
        ):
            assert outcome(PureDP(epsilon), claim) is expected


AT_POINTS = np.linspace(0.0, 8.0, 9)
TABLE = Profile(AT_POINTS, gaussian_delta(AT_POINTS, 1.0))
REFUTED, HOLDS, UNDECIDED = ExactOutcome


@pytest.mark.parametrize(
    ("exact", "claim", "expected"),
    [
        (GaussianDP(mu), GaussianDP(mu * factor), expected)
        for mu in (1e-4, 0.03, 1.0, 7.0)
        for factor, expected in (
            *((1.0, HOLDS), (1 + 1e-12, HOLDS), (1 - 1e-12, HOLDS), (1.001, HOLDS)),
            (0.999, REFUTED),
        )
    ]
    + [
        # It breaks every pure claim, and keeps its concentrated one.
        (GaussianDP(0.3), PureDP(5.0), REFUTED),
        (GaussianDP(0.3), ZeroConcentratedDP(0.045), HOLDS),
        (GaussianDP(0.3), ZeroConcentratedDP(0.02), REFUTED),
        # A claim at one epsilon says nothing about others.
        (GaussianDP(1.0), ApproxDP(1.0, float(gaussian_delta(1.0, 1.0))), HOLDS),
        (GaussianDP(1.0), Profile((1.0, 2.0), (0.13, 0.001)), REFUTED),
        # A pure bound says where delta becomes positive, and bounds it from above.
        (PureDP(1.0), PureDP(1.0), HOLDS),
        (PureDP(1.0), PureDP(1 - 1e-12), HOLDS),
        (PureDP(1.0), PureDP(0.999), REFUTED),
        (PureDP(1.0), ApproxDP(0.9, 0.5), HOLDS),
        # A Laplace mechanism at epsilon 1 keeps this one; randomised response does not.
        (PureDP(1.0), ApproxDP(0.5, 0.25), UNDECIDED),
        # A table is exact at its points only, not on the chords between them.
        (TABLE, GaussianDP(1.0), UNDECIDED),
        (TABLE, GaussianDP(0.99), REFUTED),
        (TABLE, TABLE, HOLDS),
        # Other forms can only show that a claim holds.
        (ZeroConcentratedDP(0.5), ZeroConcentratedDP(0.6), HOLDS),
        (ZeroConcentratedDP(0.5), ZeroConcentratedDP(0.4), UNDECIDED),
        (ApproxDP(1.0, 0.1), ApproxDP(1.0, 0.05), REFUTED),
        (ApproxDP(1.0, 0.1), ApproxDP(0.9, 0.1), UNDECIDED),
    ],
)
def test_outcomes(exact, claim, expected):
    assert outcome(exact, claim) is expected


def test_what_has_no_profile_or_no_exact_delta():
    verdict = decided(Known(PureDP(1.0)), PAIR, PureDP(0.9))
    assert verdict.exact_delta is None
    assert verdict.excess is None
    assert "positive" in str(verdict)
    mechanism = SymmetricNoise.as_published(1.0)
    mechanism = replace(mechanism, relation=Relation.REPLACE_ONE)
    pair = Pair([[1.0, 0.0]], [[0.0, 1.0]])  # eigenvalues of both signs
    assert isinstance(mechanism, HasExactClaim)
    assert exact_verdict(mechanism, pair) is None
    assert exact_verdict(lambda data, rng: 0.0, pair, mechanism.claim) is None


def test_the_verdict_is_readable_and_bad_arguments_are_named():
    mechanism = SymmetricNoise.as_published(1.0)
    verdict = decided(mechanism, mechanism.worst_case())
    stored = json.loads(json.dumps(verdict.to_dict()))
    assert stored["outcome"] == "REFUTED"
    assert stored["claim"]["text"] == "PureDP(epsilon=1.0)"
    assert stored["excess"] == verdict.excess
    assert "REFUTED" in str(verdict)
    mechanism = SymmetricNoise.as_published(1.0)
    refuses("relation", decided, mechanism, Pair([[1.0]], [[0.0]]))
    refuses("claim", decided, Known(PureDP(1.0)), PAIR)
    with pytest.raises(InputError, match="pair"):
        exact_verdict(mechanism, None)  # type: ignore[arg-type]


ONE_MORE = Pair([0.0], [0.0, 1.0])
CLAIM = GaussianDP(1.0)


@dataclass(frozen=True)
class LeakyMean:
    """Two noisy sums, of which the release shows the average; one has little noise."""

    claim: Claim = CLAIM
    relation: Relation = Relation.ADD_REMOVE

    def release(self, data, *, rng):
        steps = self.transcript(data, 1, rng=rng)
        return (steps["first"][0] + steps["second"][0]) / 2

    def transcript(self, data, size, *, rng):
        total = np.sum(data)
        return {
            "first": total + 20.0 * rng.standard_normal(size),
            "second": total + 0.1 * rng.standard_normal(size),
        }


class WithWorstCase(LeakyMean):
    def worst_case(self, dimension=2):
        return ONE_MORE


def test_layers_follow_the_capabilities_and_worst_cases_are_passed_on():
    assert applicable_layers(GOEGaussian.from_mu(1.0)) == (
        Layer.EXACT,
        Layer.WHITE_BOX,
        Layer.BLACK_BOX,
    )
    assert applicable_layers(LeakyMean()) == (Layer.TRANSCRIPT, Layer.BLACK_BOX)
    assert applicable_layers(lambda data, rng: 0.0) == (Layer.BLACK_BOX,)
    assert str(Layer.WHITE_BOX) == "white-box"
    assert isinstance(TranscriptView(WithWorstCase()), HasWorstCase)
    assert TranscriptView(WithWorstCase()).worst_case() is ONE_MORE
    refuses("pair is needed", TranscriptView(LeakyMean()).worst_case)
    refuses("GOEGaussian", TranscriptView, GOEGaussian.from_mu(1.0))


def test_the_transcript_is_the_release():
    view = TranscriptView(LeakyMean())
    assert isinstance(view, Mechanism)
    assert isinstance(view, HasBatchedDraw)
    assert (view.claim, view.relation) == (CLAIM, Relation.ADD_REMOVE)
    batch = view.draw(ONE_MORE.data, 5, rng=np.random.default_rng(0))
    assert {key: value.shape for key, value in batch.items()} == {
        "first": (5,),
        "second": (5,),
    }
    one = view.release(ONE_MORE.data, rng=np.random.default_rng(0))
    again = view.draw(ONE_MORE.data, 1, rng=np.random.default_rng(0))
    assert one == {key: value[0] for key, value in again.items()}


def test_a_transcript_falls_where_the_release_stands(in_few_rounds):
    """The false alarm of the second audit has probability at most 0.001."""
    options = {"pair": ONE_MORE, "budget": 300, "seed": 1}
    view = audit(TranscriptView(LeakyMean()), **options)
    release = audit(LeakyMean(), **options)
    assert view.verdict is Verdict.REFUTED
    assert release.verdict is Verdict.NOT_REFUTED


ALPHA = 0.1


def bounds(values, batch, interval):
    for start in range(0, len(values), batch):
        interval.update(values[start : start + batch])
    return interval


@pytest.mark.parametrize("batch", [1, 3])
def test_the_lower_bound_errs_with_probability_at_most_alpha(batch):
    """All sequences of eight zeros and ones, weighted by their probability."""
    outcomes = []
    for sequence in product((0.0, 1.0), repeat=8):
        bound = BettingLowerBound(ALPHA, horizon=8)
        outcomes.append((sum(sequence), bounds(np.array(sequence), batch, bound).value))
    hits, values = np.array(outcomes).T
    assert values.max() > 0.3
    for mean in (0.02, 0.3, 0.7, 0.95):
        chances = mean**hits * (1 - mean) ** (8 - hits)
        assert chances[values > mean].sum() <= ALPHA


def test_sides_get_half_each_and_stakes_that_know_their_batch_would_be_seen():
    alpha, values = 0.04, np.random.default_rng(0).beta(2, 5, (5, 40))
    interval = BettingInterval(alpha, horizon=200)
    below, above = (BettingLowerBound(alpha / 2, horizon=200) for _ in range(2))
    for batch in values:
        interval.update(batch)
        below.update(batch)
        above.update(1 - batch)
    assert interval.low == below.value
    assert interval.high == 1 - above.value
    assert 0 < interval.low < values.mean() < interval.high < 1

    class Peeking(BettingLowerBound):
        def update(self, values):
            self._learn(values)
            super().update(values)

    assert mean_wealth(Peeking, 0.3, 3, 3) > 1.1


def test_bounds_are_as_narrow_as_values_allow():
    # 1.96 standard errors are what any asymptotic interval at 95 % has.
    n = 20_000
    values = np.random.default_rng(0).random(n)
    interval = bounds(values, 500, BettingInterval(0.05, horizon=n))
    half = 1.96 * np.sqrt(1 / 12 / n)
    assert interval.high - interval.low < 1.6 * (2 * half)
    interval = bounds(np.zeros(10_000), 500, BettingInterval(0.002, horizon=10_000))
    assert interval.low == 0
    assert interval.high <= 1.5 * np.log(1000) / 10_000
    values = np.random.default_rng(0).random(1000) / 2
    exact, bracket = (BettingInterval(0.01, horizon=1000) for _ in range(2))
    exact.update(values)
    bracket.update(values, values + 0.1)
    assert bracket.low == exact.low
    assert bracket.high >= exact.high + 0.09
    interval = BettingInterval(0.01, horizon=10)
    interval.update(np.empty(0))
    assert (interval.low, interval.high) == (0.0, 1.0)


def mean_wealth(bound, mean, size, batches):
    """The exact mean of the wealth at the true mean, over all outcomes of batches."""
    total = 0.0
    for counts in product(range(size + 1), repeat=batches):
        test, weight = bound(0.1, horizon=30), 1.0
        for ones in counts:
            weight *= binom.pmf(ones, size, mean)
            test.update(np.repeat([1.0, 0.0], [ones, size - ones]))
        total += weight * np.exp(test._log_wealth(np.array([mean]))[0])
    return total


@pytest.mark.parametrize("mean", [0.05, 0.3, 0.5, 0.8])
@pytest.mark.parametrize(("size", "batches"), [(1, 6), (3, 3), (8, 2)])
def test_the_wealth_has_mean_one_at_the_truth(mean, size, batches):
    """Exactly one, less the rounding allowed for: no stake knows its own batch."""
    assert mean_wealth(BettingLowerBound, mean, size, batches) == pytest.approx(
        1 - 1e-9, abs=1e-12
    )
