"""The conformance kit catches planted bugs, and passes what is correct.

Seeds are fixed, so nothing here is random from run to run. Type-I error of the kit:
2e-9 per mechanism that is expected to pass, see `run_conformance`; 18 runs, 4e-8.
"""

import itertools
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
from refusals import refused, refuses

from dpaudit import Pair, PureDP, Relation, UnsupportedError
from dpaudit.algorithms import AnalyzeGauss, GOEGaussian, SymmetricNoise
from dpaudit.mechanism import Sensitivity
from dpaudit.testing import ConformanceError, run_conformance

PAIR = Pair(np.zeros((1, 2)), np.array([[0.0, 0.0], [1.0, 0.0]]))


class Correct(GOEGaussian):
    """A mechanism to break, one method at a time."""

    @classmethod
    def build(cls):
        return cls.from_mu(1.5)


@pytest.mark.parametrize("size", [100, 12_000])
@pytest.mark.parametrize("relation", list(Relation))
def test_correct_mechanisms_pass(size, relation):
    run_conformance(GOEGaussian.from_mu(1.5, relation=relation), size=size)
    run_conformance(SymmetricNoise.as_published(2.0, relation=relation), size=size)


def test_pairs_may_be_chosen_or_are_needed_and_failures_are_assertions():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((6, 4))
    run_conformance(AnalyzeGauss.calibrated(1.0, 1e-5), pair=Pair(rows, rows[1:]))
    assert issubclass(ConformanceError, AssertionError)
    run_conformance(Correct.build())
    refuses("pair is needed", run_conformance, Plain(lambda data, rng: rng.normal()))
    lengths = itertools.chain([2, 2, 2, 2], itertools.repeat(3))
    with pytest.raises(ConformanceError, match="changes its shape"):
        run_conformance(Plain(grows(lengths)), pair=PAIR, size=100)


# The promise
test_a_missing_promise_is_caught = refused(
    ({}, "has no claim"),
    ({"claim": (1.0, 1e-5)}, "has no claim"),
    ({"claim": PureDP(1.0)}, "has no relation"),
    ({"claim": PureDP(1.0), "relation": "add-remove"}, "has no relation"),
    ({"claim": PureDP(1.0), "relation": Relation.ADD_REMOVE}, "no method release"),
    by=lambda parts: run_conformance(SimpleNamespace(**parts), pair=PAIR),
    error=ConformanceError,
)


# Releases: a mechanism that has nothing but `release`
@dataclass(frozen=True)
class Plain:
    """Claim, relation, and a release made by a function."""

    make: object
    claim: PureDP = field(default_factory=lambda: PureDP(1.0))
    relation: Relation = Relation.ADD_REMOVE

    def release(self, data, *, rng):
        return self.make(data, rng)


def write_then_release(data, rng):
    data[0] += 1.0
    return data.sum(axis=0) + rng.laplace(size=2)


def grows(lengths):
    return lambda data, rng: rng.standard_normal(next(lengths))


private_rng = np.random.default_rng(0)

BAD_RELEASES = [
    (lambda data, rng: private_rng.normal(size=2), "release is not deterministic"),
    (lambda data, rng: data.sum(axis=0), "output does not depend on rng, 101"),
    (lambda data, rng: np.full(2, np.nan), "output does not depend on rng"),
    (
        lambda data, rng: np.random.default_rng(1).normal(size=2),
        "output does not depend on rng",
    ),
    (write_then_release, "release writes into the arrays"),
    (lambda data, rng: str(rng.normal()), "release must return real numbers"),
    (lambda data, rng: {"a": rng.normal(size=2), "b": "c"}, r"release \['b'\] must"),
    (lambda data, rng: rng.normal(size=1 + rng.integers(2)), "changes its shape"),
    (
        lambda data, rng: {"ab"[rng.integers(2)]: rng.normal(size=2)},
        "changes its shape",
    ),
]


@pytest.mark.parametrize(("make", "message"), BAD_RELEASES)
def test_bad_releases_are_caught(make, message):
    with pytest.raises(ConformanceError, match=message):
        run_conformance(Plain(make), pair=PAIR, size=100)


@pytest.mark.parametrize(
    "make",
    [
        lambda data, rng: data.sum(axis=0) + rng.laplace(size=2),
        lambda data, rng: {"noisy": rng.laplace(size=2), "n": rng.integers(0, 9)},
        lambda data, rng: rng.random() < 0.9,
        lambda data, rng: rng.choice([0.0, np.nan, np.inf, -np.inf]),
        lambda data, rng: {"a": rng.normal(size=2), "b": np.full(1, np.nan)},
    ],
)
def test_plain_correct_releases_pass(make):
    run_conformance(Plain(make), pair=PAIR)


@dataclass
class Stateful:
    """A mechanism with a memory, which each call changes before it is used."""

    remember: object
    memory: float = 0.0
    claim: PureDP = field(default_factory=lambda: PureDP(1.0))
    relation: Relation = Relation.ADD_REMOVE

    def release(self, data, *, rng):
        noise = rng.laplace()
        self.memory = self.remember(self.memory, data, noise)
        return data.sum() + self.memory + noise


@pytest.mark.parametrize(
    ("remember", "message"),
    [
        (lambda memory, data, noise: memory + 1, "release is not deterministic"),
        (lambda memory, data, noise: memory + 2**-40, "release is not deterministic"),
        (lambda memory, data, noise: max(memory, len(data)), "release .* keeps state"),
    ],
    ids=["counts", "counts slowly", "largest dataset"],
)
def test_state_between_releases_is_caught(remember, message):
    with pytest.raises(ConformanceError, match=message):
        run_conformance(Stateful(remember), pair=PAIR, size=100)


# Capabilities, broken one by one
class AsPublished(SymmetricNoise):
    @classmethod
    def build(cls):
        return cls.as_published(1.0)


def with_batches(change):
    """Return what changes batches alone: a release is one of a right batch."""

    class Changed(Correct):
        def draw(self, data, size, *, rng):
            return change(super().draw(data, size, rng=rng))

        def release(self, data, *, rng):
            return super().draw(data, 1, rng=rng)[0]

    return Changed


def with_noise(change):
    """Return what changes the noise of batches of more than one."""

    class Changed(Correct):
        def noise(self, size, dimension, *, rng):
            noise = super().noise(size, dimension, rng=rng)
            return noise if size == 1 else change(noise)

    return Changed


def with_loss(change, base=Correct):
    class Changed(base):
        def privacy_loss(self, releases, data, other):
            return change(super().privacy_loss(releases, data, other))

    return Changed


def with_statistic(change):
    class Changed(Correct):
        def statistic(self, data):
            return change(super().statistic(data))

        def draw(self, data, size, *, rng):
            return self.noise(size, data.shape[1], rng=rng)

    return Changed


def with_sensitivity(change):
    class Changed(Correct):
        @property
        def sensitivity(self):
            return Sensitivity(change(super().sensitivity.value), "frobenius")

    return Changed


class IgnoresRngInDraw(with_batches(None)):
    def draw(self, data, size, *, rng):
        return Correct.draw(self, data, size, rng=np.random.default_rng(0))


class DrawsFromGlobalState(IgnoresRngInDraw):
    _rng = np.random.default_rng(0)

    def draw(self, data, size, *, rng):
        return Correct.draw(self, data, size, rng=self._rng)


class SqueezesSmallBatches(Correct):
    def draw(self, data, size, *, rng):
        return np.squeeze(super().draw(data, size, rng=rng))

    def release(self, data, *, rng):
        return self.draw(data, 1, rng=rng)


def third_entries(value):
    """Return a change of a third of a batch, to what single releases never are."""

    def change(noise):
        noise[1::3, 0, 0] = value
        return noise

    return with_noise(change)


class OtherSignInBatches(Correct):
    """All releases have an infinite entry: half of them each sign, or one in three."""

    def noise(self, size, dimension, *, rng):
        noise = super().noise(size, dimension, rng=rng)
        negative = rng.random(size) < (1 / 2 if size == 1 else 1 / 8)
        noise[:, 0, 0] = np.where(negative, -np.inf, np.inf)
        return noise


class RemembersTheLargestDataset(Correct):
    def draw(self, data, size, *, rng):
        seen[0] = max(seen[0], len(data))
        return super().draw(data, size, rng=rng) + seen[0]

    def release(self, data, *, rng):
        return super().draw(data, 1, rng=rng)[0] + len(data)

    @classmethod
    def build(cls):
        seen[0] = 0
        return super().build()


seen = [0]


class WritesInDraw(Correct):
    def draw(self, data, size, *, rng):
        releases = super().draw(data, size, rng=rng)
        data /= 2.0
        return releases

    def release(self, data, *, rng):
        return super().draw(data, 1, rng=rng)[0]


class WritesInStatistic(Correct):
    def statistic(self, data):
        np.clip(data, 0.0, 0.5, out=data)
        return super().statistic(data)

    def draw(self, data, size, *, rng):
        return super().draw(data.copy(), size, rng=rng)


class OtherRelation(Correct):
    def worst_case(self, dimension=None):
        return Pair(np.zeros((1, 2)), np.eye(2)[:1])


class NoClaimOnThePair(Correct):
    def exact_claim(self, pair):
        return 1.0


class OutsideItsSupport(AsPublished):
    def in_support(self, releases, data):
        return ~super().in_support(releases, data)


class WritesInLoss(Correct):
    def privacy_loss(self, releases, data, other):
        releases -= self.statistic(data)
        return super().privacy_loss(releases, data, other)


class LossWithoutSupport(AsPublished):
    """The published proof: a bounded ratio, as if nothing escaped."""

    def privacy_loss(self, releases, data, other):
        loss = super().privacy_loss(releases, data, other)
        trace = np.trace(self.statistic(data) - self.statistic(other))
        return np.where(np.isfinite(loss), loss, trace / (2 * self.scale))


HALVED = with_loss(lambda loss: loss / 2)
WRONG_INFINITIES = with_loss(
    lambda loss: np.where(np.isinf(loss), -loss, loss), AsPublished
)


@pytest.mark.parametrize("side", ["data", "neighbour"])
def test_what_a_loss_calls_impossible_is_named(side):
    pair = Pair(PAIR.neighbour, PAIR.data) if side == "neighbour" else PAIR
    with pytest.raises(ConformanceError, match=f"a release on the {side} impossible"):
        run_conformance(WRONG_INFINITIES.build(), pair=pair)


PLANTED = {
    "draw: output does not depend on rng": [IgnoresRngInDraw],
    "draw is not deterministic": [DrawsFromGlobalState],
    "differ in distribution": [
        *(with_noise(lambda noise: noise / 1.6), with_noise(lambda noise: noise * 2)),
        with_noise(lambda noise: noise + Correct.build().sigma),
        with_noise(lambda noise: np.repeat(noise[:1], len(noise), axis=0)),
        *map(third_entries, (np.inf, -np.inf, np.nan)),
        OtherSignInBatches,
    ],
    "draw of 1 must have the shape": [SqueezesSmallBatches],
    "draw of 2000 must have the shape": [with_batches(lambda y: np.moveaxis(y, 0, -1))],
    "draw .* keeps state": [RemembersTheLargestDataset],
    "draw writes into": [WritesInDraw],
    "statistic writes into": [WritesInStatistic],
    "beyond its stated sensitivity": [with_sensitivity(lambda value: value / 2)],
    "beyond its stated sensitivity nan": [with_sensitivity(lambda value: np.nan)],
    "statistic returned a NaN or an infinity": [
        with_statistic(lambda values: np.full_like(values, np.inf))
    ],
    "statistic has the shape": [with_statistic(np.ravel)],
    "worst_case.. is a pair under replace-one": [OtherRelation],
    "exact_claim must return a Claim": [NoClaimOnThePair],
    "outside in_support": [OutsideItsSupport],
    "privacy_loss writes into": [WritesInLoss],
    "privacy_loss is not that of the releases": [
        *(with_loss(lambda loss: -loss), HALVED, with_loss(lambda loss: loss * 2)),
        *(with_loss(lambda loss: np.full_like(loss, loss.mean())), LossWithoutSupport),
    ],
    "change its sign": [with_loss(np.abs)],
    "privacy_loss must have shape": [with_loss(lambda loss: loss[:, np.newaxis])],
    "privacy_loss is NaN": [with_loss(lambda loss: loss * np.nan)],
    "impossible there": [WRONG_INFINITIES],
}


@pytest.mark.parametrize(
    ("broken", "message"),
    [(broken, message) for message, kinds in PLANTED.items() for broken in kinds],
)
def test_planted_bugs_are_caught(broken, message):
    refuses(message, run_conformance, broken.build(), error=ConformanceError)


def test_what_is_unsupported_is_passed_over_and_the_seed_decides():
    class Unsure(Correct):
        def privacy_loss(self, releases, data, other):
            raise UnsupportedError("no closed form")

        def exact_claim(self, pair):
            raise UnsupportedError("no closed form")

    run_conformance(Unsure.build())

    def message(seed):
        with pytest.raises(ConformanceError) as caught:
            run_conformance(HALVED.build(), seed=seed)
        return str(caught.value)

    assert message(3) == message(3)
    assert len({message(seed) for seed in range(3)}) == 3


def test_dictionaries_are_compared_field_by_field():
    class Two:
        claim = PureDP(1.0)
        relation = Relation.ADD_REMOVE
        batch_scale = 1.0

        def release(self, data, *, rng):
            batch = self.draw(data, 1, rng=rng)
            return {"z": batch["z"][0], "a": batch["a"][0]}

        def draw(self, data, size, *, rng):
            scale = 1.0 if size == 1 else self.batch_scale
            return {
                "a": rng.normal(size=(size, 2, 2)),
                "z": scale * rng.normal(size=(size, 3)),
            }

    run_conformance(Two(), pair=PAIR)
    Two.batch_scale = 3.0
    with pytest.raises(ConformanceError, match="differ in distribution"):
        run_conformance(Two(), pair=PAIR)


test_bad_arguments_are_named = refused(
    ({"size": 99}, "size must be an integer >= 100, got 99"),
    ({"seed": -1}, "seed must be an integer >= 0, got -1"),
    (
        {"pair": Pair(np.zeros((1, 2)), np.ones((1, 2)))},
        "pair must be a pair under add-remove, got replace-one",
    ),
    by=lambda options: run_conformance(Correct.build(), **options),
)
