"""Witnesses: replayed elsewhere, refused when damaged, useless when forged."""

import json
from dataclasses import replace

import numpy as np
import pytest

from dpaudit import InputError, Pair, PureDP
from dpaudit.algorithms import SymmetricNoise, SymmetrisedWishart
from dpaudit.audit import Witness, audit, verify
from dpaudit.codec import encode


@pytest.fixture(scope="module")
def witness() -> Witness:
    found = audit(SymmetricNoise.as_published(1.0), seed=3).witness
    assert found is not None
    return found


def half_laplace_sum(data, rng):
    return data.sum() + rng.laplace(scale=0.5)


def test_round_trip_through_json(witness, tmp_path):
    path = tmp_path / "witness.json"
    witness.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["witness.json"]
    loaded = Witness.load(path)
    assert loaded.to_dict() == witness.to_dict()
    assert json.loads(path.read_text()) == witness.to_dict()
    assert np.array_equal(loaded.pair.neighbour, witness.pair.neighbour)


def test_a_witness_verifies_on_fresh_randomness(witness):
    """Power: each of five verifications confirms with probability > 0.99."""
    for seed in range(10, 15):
        verification = verify(witness, seed=seed)
        assert verification.confirmed
        assert verification.samples <= 200
        assert verification.hits_neighbour == 0
        assert "CONFIRMED" in str(verification)


def test_verification_uses_fresh_randomness_by_default(witness):
    first, second = verify(witness), verify(witness)
    assert first.seed != second.seed
    with pytest.raises(InputError, match="differ from the witness's own, got 3"):
        verify(witness, seed=witness.seed)


def test_a_learned_attack_travels():
    pair = Pair([0.0], [0.0, 1.0])
    found = audit(half_laplace_sum, pair=pair, claim=PureDP(1.0)).witness
    assert found.attack in {"logistic", "linear-discriminant"}
    loaded = Witness.from_dict(json.loads(json.dumps(found.to_dict())))
    assert verify(loaded, mechanism=half_laplace_sum, seed=1).confirmed


def test_a_forged_witness_is_not_confirmed(witness):
    """Null: the symmetrised mechanism keeps its claim; alpha = 1e-3 a run."""
    honest = SymmetrisedWishart.calibrated(1.0)
    forged = replace(
        witness,
        mechanism=encode(honest),
        attack="mean-shift",
        parameters={"direction": np.diag([-1.0, 0.0])},
        threshold=-0.5,
        counts=(1000, 1000, 0, 1000),
    )
    for seed in range(20, 25):
        verification = verify(forged, seed=seed, max_samples=3000)
        assert not verification.confirmed
        assert verification.samples == 3000
        assert "NOT CONFIRMED" in str(verification)


def test_mechanisms_without_an_import_name_must_be_passed():
    mechanism = SymmetricNoise.as_published(1.0)
    found = audit(
        lambda d, rng: mechanism.release(d, rng=rng),
        pair=mechanism.worst_case(),
        claim=PureDP(1.0),
    ).witness
    assert found.mechanism is None
    with pytest.raises(InputError, match="cannot be imported by name"):
        verify(found)
    assert verify(found, mechanism=mechanism, seed=1).confirmed


def test_truncation_at_any_place_is_refused(witness, tmp_path):
    path = tmp_path / "witness.json"
    witness.save(path)
    text = path.read_text()
    for length in range(0, len(text) - 2, 97):
        path.write_text(text[:length])
        with pytest.raises(InputError, match=r"not complete JSON|not a witness"):
            Witness.load(path)


def drop(*keys):
    def change(stored):
        part = stored
        for key in keys[:-1]:
            part = part[key]
        del part[keys[-1]]

    return change


def put(value, *keys):
    def change(stored):
        part = stored
        for key in keys[:-1]:
            part = part[key]
        part[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (drop("event"), "truncated or malformed"),
        (drop("counts", "data", "hits"), "truncated or malformed"),
        (drop("neighbour"), "truncated or malformed"),
        (put(2, "version"), "version 2 is not supported"),
        (put("other", "format"), "not a witness"),
        (put(99999, "counts", "data", "hits"), "do not add up"),
        (put(-1, "counts", "neighbour", "hits"), "do not add up"),
        (put("telepathy", "event", "attack"), "unknown attack 'telepathy'"),
        (put(0.0, "event", "resolution"), "resolution must be > 0"),
        (put("sideways", "relation"), "relation must be one of"),
        (put({"$object": "no.such:Claim", "arguments": {}}, "claim"), "cannot import"),
        (put(3, "claim"), "is no claim"),
        (put("x", "found", "samples"), "truncated or malformed"),
    ],
)
def test_damage_is_named(witness, change, sentence):
    stored = json.loads(json.dumps(witness.to_dict()))
    change(stored)
    with pytest.raises(InputError, match=sentence):
        Witness.from_dict(stored)


def test_lists_and_numbers_are_no_witness():
    for stored in ([], 3, "text", None):
        with pytest.raises(InputError, match="not a witness"):
            Witness.from_dict(stored)


def test_unwritable_paths_leave_nothing(witness, tmp_path):
    with pytest.raises(InputError, match="cannot write"):
        witness.save(tmp_path / "no such folder" / "witness.json")
    blocked = tmp_path / "folder.json"
    blocked.mkdir()
    with pytest.raises(InputError, match="cannot write"):
        witness.save(blocked)
    assert [p.name for p in tmp_path.iterdir()] == ["folder.json"]


def test_verify_checks_its_arguments(witness):
    with pytest.raises(InputError, match="confidence"):
        verify(witness, confidence=2.0)
    with pytest.raises(InputError, match="confidence"):
        verify(witness, confidence=0.0)
    with pytest.raises(InputError, match="max_samples"):
        verify(witness, max_samples=-5)
