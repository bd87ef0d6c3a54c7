"""Mechanisms whose releases are no independent draws of one law are warned about."""

import numpy as np
import pytest
from audit_cases import PAIR

from dpaudit.attacks import Identity
from dpaudit.audit.independence import signs_of_dependence
from dpaudit.audit.pair_audit import PairAudit
from dpaudit.errors import InputError

STATE, UNUSED = "the same seed gave another release", "does not use its rng"
SHARED = "they share noise"


def warnings_of(mechanism, size=10):
    pair_audit = PairAudit(mechanism, PAIR, [Identity()], seed=0, key=0)
    pair_audit.pilot(size)
    return signs_of_dependence(pair_audit)


def after(calls, late):
    """Return a mechanism that behaves otherwise after so many calls."""
    seen = []

    def mechanism(data, rng):
        seen.append(rng.normal())
        return late(rng) if len(seen) > calls else seen[-1]

    return mechanism


def fails(error):
    raise error


def own_randomness():
    own = np.random.default_rng(0)
    return lambda data, rng: own.normal()


def seeded_anew(data, rng):
    return np.random.default_rng(0).normal()


def mixed_outputs(data, rng):
    if rng.random() < 0.3:
        raise KeyError
    return {"a": rng.normal(), "b": np.array([np.nan, rng.normal()])}


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
        # Used on one dataset only.
        lambda data, rng: rng.normal() if len(data) == 2 else 0.0,
    ],
)
def test_pure_mechanisms_are_left_alone(mechanism):
    assert warnings_of(mechanism) == ()


@pytest.mark.parametrize(
    "late",
    [
        lambda rng: 1 + rng.normal(),
        lambda rng: rng.normal(size=2),
        lambda rng: fails(TimeoutError()),
        lambda rng: fails(InputError("closed")),
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


@pytest.mark.parametrize("mechanism", [lambda data, rng: data.sum(), seeded_anew])
def test_an_unused_generator_is_found(mechanism):
    (warning,) = warnings_of(mechanism)
    assert UNUSED in warning


def test_randomness_from_elsewhere_is_both():
    state, unused = warnings_of(own_randomness())
    assert STATE in state
    assert UNUSED in unused


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


def test_batches_of_independent_releases_are_left_alone():
    # Each is warned of with probability 1e-9 at most.
    pair_audits = (
        PairAudit(Batched(), PAIR, [Identity()], seed=seed, key=0) for seed in range(50)
    )
    assert not any(each.sampler.shares_noise() for each in pair_audits)
