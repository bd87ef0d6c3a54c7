"""The sequential test: calibrated on the boundary of the null, and quick beyond it."""

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import ApproxDP, Claim, GaussianDP, PureDP
from dpaudit.audit.events import candidates
from dpaudit.audit.evidence import growth, project
from dpaudit.audit.families import NullFamily, families_for
from dpaudit.audit.sequential import SequentialTest, best_bets
from dpaudit.gaussian import gaussian_mu

ALPHA = 0.05
RUNS = 200
# A correct test refutes at most Binomial(RUNS, ALPHA) times. Each calibration test
# below fails by chance with probability at most 1e-9.
MOST_REFUTATIONS = int(binom.isf(1e-9, RUNS, ALPHA))


def thin(family: NullFamily) -> NullFamily:
    """Keep every 25th null and the claim: a coarser grid, quicker to play."""
    kept = np.arange(len(family)) % 25 == 0
    claimed = None
    if family.claimed is not None:
        kept[family.claimed] = True
        claimed = int(kept[: family.claimed].sum())
    return NullFamily(
        family.parameter[kept], family.log_ratio[kept], family.delta[kept], claimed
    )


def claim_alone(claim: Claim) -> dict[str, NullFamily]:
    return {"claim": next(iter(all_families(claim).values())).claim_only()}


def all_families(claim: Claim) -> dict[str, NullFamily]:
    delta = claim.parameters.get("delta", 1e-5 if isinstance(claim, GaussianDP) else 0)
    return families_for(claim, delta, claim.epsilon(delta))


def play(scores, families, samples, seed, *, alpha=ALPHA, hindsight=False):
    """Run the rounds of an audit on scores drawn as ``scores(rng, side, size)``.

    Stops when the first family refutes; returns the tests and the releases a side.
    With `hindsight` the bets are chosen on the releases that settle them: a sin.
    """
    rng = np.random.default_rng(seed)
    tests = {key: SequentialTest(family, alpha) for key, family in families.items()}
    verdict = next(iter(tests.values()))
    past = [scores(rng, side, 10) for side in (0, 1)]
    while len(past[0]) < samples and not verdict.refutes_claim:
        size = max(4, len(past[0]) // 4)
        fresh = [scores(rng, side, size) for side in (0, 1)]
        events = candidates([(0, *(fresh if hindsight else past))])
        for test in tests.values():
            test.place_bets(events, size)
        hits = [(f[:, np.newaxis] >= events.threshold).sum(axis=0) for f in fresh]
        for test in tests.values():
            test.update(*hits, size)
        past = [np.concatenate(both) for both in zip(past, fresh, strict=True)]
    return tests, len(past[0])


def randomised_response(epsilon):
    """The pure-DP mechanism that sits on the corner of its region."""
    p = 1 / (1 + np.exp(-epsilon))
    return lambda rng, side, n: (rng.random(n) < (p if side == 0 else 1 - p)) * 1.0


def laplace(epsilon):
    def scores(rng, side, n):
        x = rng.laplace(scale=1 / epsilon, size=n) + (side == 0)
        return np.round(epsilon * (np.abs(x) - np.abs(x - 1)), 9)

    return scores


def gaussian(mu):
    return lambda rng, side, n: rng.normal(loc=mu * (side == 0), size=n)


def leaky(epsilon, delta):
    """Randomised response that names its dataset with probability delta."""
    respond = randomised_response(epsilon)

    def scores(rng, side, n):
        leak = rng.random(n) < delta
        return np.where(leak, 3.0 if side == 0 else -3.0, respond(rng, side, n))

    return scores


TRUE_CLAIMS = {
    "randomised response": (randomised_response(1.0), PureDP(1.0)),
    "laplace": (laplace(1.0), PureDP(1.0)),
    "laplace, tiny epsilon": (laplace(0.1), PureDP(0.1)),
    "leaky response": (leaky(1.0, 0.1), ApproxDP(1.0, 0.1)),
    "gaussian": (gaussian(1.0), GaussianDP(1.0)),
    "analytic gaussian": (gaussian(gaussian_mu(1.0, 0.05)), ApproxDP(1.0, 0.05)),
    "flipped laplace": (lambda r, side, n: -laplace(1.0)(r, 1 - side, n), PureDP(1.0)),
}


@pytest.mark.parametrize("name", TRUE_CLAIMS)
def test_true_claims_are_refuted_at_most_alpha_often(name):
    """Null: the claim holds with equality. With a look after every round."""
    scores, claim = TRUE_CLAIMS[name]
    families = claim_alone(claim)
    refuted = sum(
        play(scores, families, 300, seed)[0]["claim"].refutes_claim
        for seed in range(RUNS)
    )
    assert refuted <= MOST_REFUTATIONS


def test_the_calibration_can_fail():
    """An auditor that bets on what it has already seen is caught."""
    scores, claim = TRUE_CLAIMS["laplace"]
    refuted = sum(
        play(scores, claim_alone(claim), 2000, seed, hindsight=True)[0][
            "claim"
        ].refutes_claim
        for seed in range(RUNS)
    )
    assert refuted > MOST_REFUTATIONS


@pytest.mark.parametrize("name", ["laplace", "analytic gaussian", "gaussian"])
def test_lower_bounds_pass_the_truth_at_most_alpha_often(name):
    """Null: the lower bound is at most the true value, for every family at once."""
    scores, claim = TRUE_CLAIMS[name]
    families = {key: thin(family) for key, family in all_families(claim).items()}
    runs = [play(scores, families, 300, 10_000 + seed)[0] for seed in range(RUNS)]
    delta = claim.parameters.get("delta", 1e-5 if name == "gaussian" else 0.0)
    truth = {
        "epsilon": claim.epsilon(delta),
        "delta": delta,
        "mu": claim.parameters.get("mu"),
    }
    for key in runs[0]:
        above = sum(run[key].lower_bound > truth[key] for run in runs)
        assert above <= MOST_REFUTATIONS


@pytest.mark.parametrize(
    ("scores", "claim", "samples"),
    [
        (laplace(2.0), PureDP(1.0), 1000),
        (randomised_response(1.5), PureDP(1.0), 1000),
        (gaussian(1.5), GaussianDP(1.0), 1500),
        (leaky(1.0, 0.2), ApproxDP(1.0, 0.1), 2000),
    ],
)
def test_false_claims_fall(scores, claim, samples):
    families = claim_alone(claim)
    refuted = [
        play(scores, families, samples, seed)[0]["claim"].refutes_claim
        for seed in range(20)
    ]
    assert np.mean(refuted) >= 0.9


def test_stopping_time_is_within_twice_the_information_limit():
    """One known event, the half-noise Laplace mechanism at its threshold 1/2."""
    p1, q1 = 1 - np.exp(-1.0) / 2, np.exp(-1.0) / 2
    scores = randomised_response(np.log(p1 / q1))
    for alpha in (0.05, 1e-3, 1e-6):
        rates = [
            growth(p1, q1, *project(p1, q1, np.exp(s), d, 1, 1), 1, 1)
            for s, d in ((x, PureDP(1.0).delta(x)) for x in np.linspace(-1, 1, 41))
            if p1 - np.exp(s) * q1 > d
        ]
        limit = np.log(1 / alpha) / max(rates)
        families = claim_alone(PureDP(1.0))
        samples = [play(scores, families, 9999, i, alpha=alpha)[1] for i in range(31)]
        assert np.median(samples) <= 2 * limit + 14  # pilot and the smallest round


def test_best_bets_agree_with_trying_everything():
    rng = np.random.default_rng(0)
    family = families_for(PureDP(1.0), 0.0, 1.0)["epsilon"]
    events = candidates([(0, rng.normal(1, 1, 200), rng.normal(0, 1, 200))])
    nulls = np.array([0, 300, 500])
    found, event, half_plane, flipped = best_bets(family, nulls, events, 50)
    assert found.tolist() == nulls.tolist()
    for null, j, s, flip in zip(found, event, half_plane, flipped, strict=True):
        speeds = {}
        for t in range(len(events)):
            p1, q1 = sorted((events.p[t], events.q[t]), reverse=True)
            for i, (slope, delta) in enumerate(
                zip(family.log_ratio[null], family.delta[null], strict=True)
            ):
                if p1 - np.exp(slope) * q1 > delta:
                    p0, q0 = project(p1, q1, np.exp(slope), delta, 50, 50)
                    speeds[t, i] = float(growth(p1, q1, p0, q0, 50, 50))
        assert flip == (events.q[j] > events.p[j])
        assert speeds[j, s] >= max(speeds.values()) * (1 - 1e-3)


@pytest.mark.parametrize("alpha", [0.05, 1e-3, 1e-9])
def test_a_null_falls_when_its_wealth_reaches_one_over_alpha(alpha):
    """And stays fallen. The wealth is the sum of the log e-values of its bets."""
    family = thin(all_families(PureDP(1.0))["epsilon"])
    test, rng = SequentialTest(family, alpha), np.random.default_rng(0)
    scores, past = laplace(3.0), [laplace(3.0)(rng, side, 30) for side in (0, 1)]
    highest = np.zeros(len(family))
    events = candidates([(0, *past)])
    for _ in range(25):
        test.place_bets(events, 20)
        fresh = [scores(rng, side, 20) for side in (0, 1)]
        hits = [(f[:, np.newaxis] >= events.threshold).sum(axis=0) for f in fresh]
        before, bet, playing = test.log_wealth.copy(), test._bet, test._playing
        p, q = hits[0][test._event], hits[1][test._event]
        p, q = np.where(test._flipped, q, p), np.where(test._flipped, p, q)
        before[playing] += bet.log_e(p, q, 20, 20)
        test.update(*hits, 20)
        np.testing.assert_allclose(test.log_wealth, before)
        highest = np.maximum(highest, test.log_wealth)
        assert (test.rejected == (highest >= np.log(1 / alpha))).all()
    assert 0 < test.rejected.sum() < len(family)


def test_step_down_needs_every_smaller_null():
    test = SequentialTest(families_for(PureDP(1.0), 0.0, 1.0)["epsilon"], 0.05)
    assert test.lower_bound == 0.0
    test.rejected[:5] = True
    test.rejected[7:] = True
    assert test.lower_bound == test.family.parameter[4]
    assert not test.refutes_claim
    test.rejected[:] = True
    assert test.refutes_claim
    assert test.lower_bound == test.family.parameter[-1]


def test_bets_must_be_placed_first():
    test = SequentialTest(families_for(PureDP(1.0), 0.0, 1.0)["epsilon"], 0.05)
    with pytest.raises(RuntimeError, match="place_bets"):
        test.update(np.zeros(1, dtype=int), np.zeros(1, dtype=int), 4)
