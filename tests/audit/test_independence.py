import json
import random
import secrets
import time

import numpy as np
import pytest
from audit_cases import PAIR, audited

from dpaudit import GaussianDP, InputError, PureDP
from dpaudit.attacks import BITS, PORTFOLIO, Identity
from dpaudit.audit import Run, Verdict, audit
from dpaudit.audit.game.pair_audit import PairAudit
from dpaudit.audit.judged import UNFOUNDED
from dpaudit.audit.sampling.draws import Memory
from dpaudit.audit.sampling.sampler import Signs

pytestmark = pytest.mark.usefixtures("in_few_rounds")

STATE, UNUSED = "the same seed gave another release", "does not use its rng"
SHARED = "they share noise"


def warnings_of(mechanism, size=10):
    pair_audit = PairAudit(mechanism, PAIR, [Identity()], seed=0, key=0)
    pair_audit.pilot(size)
    return Signs.seen(pair_audit.sampler, mechanism, pair_audit.repeats).warnings


def after(calls, late):
    """Return a mechanism that behaves otherwise after so many calls."""
    seen = []

    def mechanism(data, rng):
        seen.append(rng.normal())
        return late(rng) if len(seen) > calls else seen[-1]

    return mechanism


def fails(error):
    raise error


def mixed_outputs(data, rng):
    if rng.random() < 0.3:
        raise KeyError
    return {"a": rng.normal(), "b": np.array([np.nan, rng.normal()])}


def copied(rng):
    source = np.random.PCG64()
    source.state = rng.bit_generator.state
    return np.random.Generator(source)


class Batched:
    def draw(self, data, size, *, rng):
        return data.sum() + rng.laplace(size=size)


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda data, rng: rng.normal(size=3),
        lambda data, rng: np.nan * rng.normal(),
        mixed_outputs,
        Batched(),
        lambda data, rng: data.sum() + rng.spawn(1)[0].laplace(),
        # Constant almost always, and yet drawn: what counts is the generator.
        lambda data, rng: data.sum() + (rng.random() < 1e-9),
        # Read, and left as it was.
        lambda data, rng: copied(rng).laplace(),
        # Used on one dataset only.
        lambda data, rng: rng.normal() if len(data) == 2 else 0.0,
    ],
)
def test_pure_mechanisms_are_left_alone(mechanism):
    assert warnings_of(mechanism) == ()


@pytest.mark.parametrize(
    "late",
    [
        *(lambda rng: 1 + rng.normal(), lambda rng: rng.normal(size=2)),
        *(lambda rng: fails(TimeoutError()), lambda rng: fails(InputError("closed"))),
    ],
    ids=["another number", "another layout", "a failure", "a refusal"],
)
def test_state_between_calls_is_found(late):
    (warning,) = warnings_of(after(20, late))
    assert STATE in warning


@pytest.mark.parametrize("rows", [1, 2])
def test_state_on_one_dataset_is_found(rows):
    calls = []

    def mechanism(data, rng):
        calls.append(1)
        return rng.normal() + (len(calls) if np.size(data) == rows else 0)

    (warning,) = warnings_of(mechanism)
    assert STATE in warning


@pytest.mark.parametrize(
    "mechanism",
    [lambda data, rng: data.sum(), lambda data, rng: np.random.default_rng(0).normal()],
)
def test_an_unused_generator_is_found(mechanism):
    (warning,) = warnings_of(mechanism)
    assert UNUSED in warning


class SharedNoise:
    """One draw of the noise for a whole batch, as broadcasting makes it."""

    def __init__(self, spread):
        self.spread = spread

    def draw(self, data, size, *, rng):
        return data.sum() + rng.laplace() + self.spread * rng.normal(size=size)


@pytest.mark.parametrize("spread", [0.0, 1e-3])
def test_noise_that_a_batch_shares_is_found(spread):
    (warning,) = warnings_of(SharedNoise(spread))
    assert SHARED in warning


def test_independent_batches_are_left_alone_and_own_sources_may_be_declared():
    # Each is warned of with probability 1e-9 at most.
    pair_audits = (
        PairAudit(Batched(), PAIR, [Identity()], seed=seed, key=0) for seed in range(50)
    )
    assert not any(each.sampler.shares_noise() for each in pair_audits)
    # Its author answers for its releases; but a batch must not share noise.
    elsewhere = system()
    elsewhere.seedable = False
    result = audited(elsewhere, budget=1000, claim=GaussianDP(0.01))
    assert result.verdict is not Verdict.NO_VERDICT
    assert len(result.warnings) == 2
    shared = Leaking(shares=True)
    shared.seedable = False
    assert audited(shared, budget=60).verdict is Verdict.NO_VERDICT


class OfTheSystem:
    claim, relation = GaussianDP(1.0), "add-remove"

    def __init__(self, seedable):
        self.seedable, self.calls = seedable, 0

    def transcript(self, data, size, *, rng):
        self.calls += size
        draws = [secrets.randbelow(1000) / 1000 for _ in range(size)]
        return {"noise": data.sum() + rng.normal(size=size) + draws}

    def release(self, data, *, rng):
        return self.transcript(data, 1, rng=rng)["noise"][0]


@pytest.mark.parametrize("layer", ["black-box", "transcript"])
def test_what_draws_from_the_system_ends_soon_unless_it_says_so(layer):
    for seedable in (True, False):
        mechanism = OfTheSystem(seedable)
        result = audited(mechanism, claim=None, layer=layer, budget=6000)
        assert (result.verdict == "NO_VERDICT") == seedable
        assert (result.samples < 3000) == (mechanism.calls < 7000) == seedable
        assert not result.interrupted


SCALE = 1e-3  # far too little noise: whatever has a verdict is REFUTED


def global_state():
    return lambda data, rng: data.sum() + np.random.laplace(scale=SCALE)  # noqa: NPY002


def global_module():
    return lambda data, rng: data.sum() + random.gauss(0, SCALE)


def counter():
    calls = []

    def mechanism(data, rng):
        calls.append(1)
        return data.sum() + rng.laplace(scale=SCALE) + SCALE * len(calls)

    return mechanism


def cached():
    """Noise is drawn once for each call of the audit, and used again later."""
    kept = []

    def mechanism(data, rng):
        kept.append(rng.laplace(scale=SCALE))
        return data.sum() + kept[len(kept) // 2]

    return mechanism


def kept_generator():
    kept = []

    def mechanism(data, rng):
        kept.append(rng)
        return data.sum() + kept[0].laplace(scale=SCALE)

    return mechanism


def clock():
    return lambda data, rng: data.sum() + SCALE * (time.perf_counter_ns() % 1009)


def system():
    return lambda data, rng: data.sum() + SCALE * secrets.randbelow(1000)


class Leaking:
    def __init__(self, shares):
        self.shares = shares

    def draw(self, data, size, *, rng):
        noise = rng.laplace(scale=SCALE, size=1 if self.shares else size)
        return data.sum() + noise + np.zeros(size)


OUTSIDE = (global_state, global_module, counter, cached, kept_generator, clock, system)


@pytest.mark.parametrize(
    ("make", "run"),
    [
        *((make, Run()) for make in OUTSIDE),
        *((lambda: Leaking(shares=True), Run()), (cached, Run(attacks=BITS))),
        (lambda: Leaking(shares=True), Run(attacks=BITS)),
    ],
)
def test_there_is_no_verdict_where_the_assumption_was_seen_to_fail(make, run):
    np.random.seed(0)  # noqa: NPY002
    random.seed(0)
    result = audited(make(), claim=GaussianDP(1.0), budget=60, run=run)
    assert result.verdict is Verdict.NO_VERDICT
    assert not result.refuted
    assert (result.epsilon_lower, result.delta_lower, result.mu_lower) == (0, 0, 0)
    assert result.witness is result.event is result.attack is result.refuted_at is None
    assert result.trajectory == result.roc == ()
    assert result.warnings
    text = str(result)
    assert text.count("WARNING") == len(result.warnings)
    assert UNFOUNDED in text
    assert "confidence" not in text
    assert "epsilon" not in text.replace(str(result.claim), "")
    assert "NO_VERDICT" in repr(result)
    assert json.loads(json.dumps(result.to_dict()))["verdict"] == "NO_VERDICT"
    if make is cached:
        result.plot()


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda data, rng: data.sum() + rng.laplace(scale=SCALE),
        lambda data, rng: data.sum() + copied(rng).laplace(scale=SCALE),
        lambda data, rng: data.sum(),  # releases that never vary
        lambda data, rng: {"sum": data.sum(), "missing": np.nan},
        lambda data, rng: "a row" if len(data) > 1 else "none",
        Leaking(shares=False),
    ],
)
def test_other_mechanisms_keep_their_verdict(mechanism):
    result = audited(mechanism, budget=100, run=Run(attacks=PORTFOLIO))
    assert result.refuted
    assert result.witness is not None
    assert UNFOUNDED not in str(result)


def lazily(kept):
    if not kept:
        kept.append(np.random.default_rng().laplace())
    return kept[0]


class Lazy:
    noise = None

    def __call__(self, data, rng):
        self.noise = rng.laplace() if self.noise is None else self.noise
        return data.sum() + self.noise


class LazyBatches:
    noise = 0.0

    def draw(self, data, size, *, rng):
        self.noise = self.noise or rng.laplace()
        return data.sum() + self.noise + 1e-3 * rng.laplace(size=size)


def of_each_size():
    kept = {}
    return lambda data, rng: data.sum() + kept.setdefault(len(data), rng.laplace())


def beside_fresh_noise():
    kept = []

    def mechanism(data, rng):
        kept[1:] = [] if kept else [kept.append(rng.laplace())]
        return data.sum() + kept[0] + 1e-3 * rng.laplace()

    return mechanism


def in_a_default():
    return lambda data, kept=[]: data.sum() + lazily(kept)


def always_drawn():
    def mechanism(data, rng, kept={}):  # noqa: B006
        noise = kept.setdefault("noise", rng.laplace())
        return data.sum() + noise + 1e-3 * rng.laplace()

    return mechanism


class InAList:
    """Noise of whichever call came first, though each draws as much."""

    def __init__(self):
        self.kept = []

    def draw(self, data, size, *, rng):
        self.kept = [*self.kept, rng.laplace()]
        return data.sum() + self.kept[0] + 1e-3 * rng.laplace(size=size)


@pytest.mark.parametrize(
    "make",
    [
        *(Lazy, LazyBatches, of_each_size, beside_fresh_noise, in_a_default),
        *(always_drawn, InAList),
    ],
)
def test_noise_of_the_first_call_in_all_releases_leaves_no_verdict(make):
    """Here the claim is true, of one release as of all of them together."""
    mechanism = make()
    first = audited(mechanism, claim=PureDP(1.0), budget=60)
    again = audited(mechanism, claim=PureDP(1.0), budget=60)  # finds what that left
    assert first.verdict is again.verdict is Verdict.NO_VERDICT
    assert any("noise that its first call drew" in each for each in again.warnings)


def test_a_search_sees_noise_that_was_kept_on_its_first_pair():
    kept = []
    result = audit(
        lambda data, rng: data.sum() + (kept or kept.append(rng.laplace()) or kept)[0],
        domain="scalar:0,1",
        relation="add-remove",
        claim=PureDP(1.0),
        budget=300,
    )
    assert result.verdict is Verdict.NO_VERDICT


def test_noise_from_elsewhere_that_seldom_shows_leaves_no_verdict():
    """The first releases come out alike: what counts is that one of all did not."""
    calls = []

    def mechanism(data, rng):
        calls.append(1)
        return float(len(calls) == 100)

    result = audited(mechanism, budget=60)
    assert result.verdict is Verdict.NO_VERDICT
    (warning,) = result.warnings
    assert UNUSED in warning


def test_what_was_computed_of_one_dataset_and_is_used_on_the_other_leaves_no_verdict():
    kept = {}

    def mechanism(data, rng):  # without noise, but for what both releases have
        return kept.setdefault("sum", data.sum()) + rng.laplace(scale=1e-3)

    result = audited(mechanism, claim=PureDP(1.0), budget=60)
    assert result.verdict is Verdict.NO_VERDICT


def test_what_code_holds_is_put_back_whatever_comes_of_a_look():
    kept, seen = {"first": 1}, []

    def draw():
        seen.append({**kept})
        kept["more"] = 3
        if len(seen) == 2:
            raise RuntimeError

    memory = Memory(lambda data, rng: kept)
    kept["second"] = 2
    with pytest.raises(RuntimeError):
        memory.matters(draw)
    assert seen == [{"first": 1, "second": 2}, {"first": 1}]
    assert kept == {"first": 1, "second": 2}


def test_randomness_of_its_own_beside_a_log_is_no_noise_that_is_kept():
    log = []

    def mechanism(data, rng):
        log.append(len(data))
        return secrets.randbelow(10**9)

    found = warnings_of(mechanism)
    assert [words in each for words, each in zip((STATE, UNUSED), found, strict=True)]


class Spending:
    """Noise that is rounded away, beside what changes with every call, and a cache."""

    def __init__(self):
        self.calls, self.spent, self.log, self.sums = 0, 0.0, [], {}

    def __call__(self, data, rng):
        self.calls, self.spent = self.calls + 1, self.spent + 0.5
        self.log.append(len(data))
        total = self.sums.setdefault(len(data), data.sum())
        return np.round(total + 1e-6 * rng.normal())


def test_a_count_of_calls_a_budget_a_log_and_sums_are_no_noise_that_is_kept():
    mechanism = Spending()
    result = audited(mechanism, claim=PureDP(1.0), budget=60)
    assert result.verdict is Verdict.REFUTED
    assert mechanism.calls == len(mechanism.log) > 1
