"""Mutated and forged witnesses: read or refused, and never confirmed without cause.

Real witnesses are damaged in seeded ways: bytes, keys, types, numbers, arrays, names of
code. Whatever comes of it,

- `Witness.load` returns, or raises `InputError` with one sentence;
- `verify`, on a mechanism that is given, returns or raises `InputError` or
  `MechanismError`, and imports nothing;
- no violation is confirmed of a mechanism that keeps the claim.

Null of the last: releases do not depend on the data, so that every claim holds. A
confirmation errs with probability at most 1e-9 each, so a whole run with at most 1e-6.
"""

import functools
import importlib
import json
import random
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from dpaudit import InputError, MechanismError, Pair, PureDP
from dpaudit.attacks import BITS, PORTFOLIO
from dpaudit.audit import Witness, audit, verify

SHIPPED = Path(__file__).parents[2] / "docs" / "witnesses"
PAIR = Pair([[0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]])
CONFIDENCE = 1 - 1e-9
SENTINEL = "module_that_a_witness_names"


@dataclass(frozen=True)
class Silent:
    """A fair coin in place of a release of some shape, which keeps every claim."""

    shape: tuple[int, ...]

    def draw(self, data, size, *, rng):
        coins = rng.integers(0, 2, size).astype(float)
        return np.multiply.outer(coins, np.ones(self.shape))

    def release(self, data, *, rng):
        return self.draw(data, 1, rng=rng)[0]

    def transcript(self, data, size, *, rng):
        return {"first": self.draw(data, size, rng=rng), "second": np.zeros(size)}

    def privacy_loss(self, releases, data, other):
        return np.zeros(len(releases))


# What leaks, so that there are witnesses


def leaks(data, rng):
    return len(data) * np.array([1.0, 2.0]) + rng.laplace(scale=0.2, size=2)


def leaks_a_number(data, rng):
    return len(data) + rng.laplace(scale=0.1)


def leaks_by_failing(data, rng):
    if rng.random() < (0.9 if len(data) == 1 else 0.05):
        raise KeyError("lost")
    return rng.normal()


@dataclass(frozen=True)
class LeakyTranscript:
    """A release that says little, made of a value that says much."""

    def release(self, data, *, rng):
        return rng.laplace(size=2)

    def transcript(self, data, size, *, rng):
        first = np.array([leaks(data, rng) for _ in range(size)])
        return {"first": first, "second": rng.laplace(size=size)}


FRESH = {
    "identity": (leaks_a_number, ()),
    "abnormal": (leaks_by_failing, ()),
    "logistic": (leaks, (2,)),
    "linear-discriminant": (LeakyTranscript(), (2,)),
}


@functools.cache
def fresh(name):
    mechanism, _ = FRESH[name]
    layer = "transcript" if isinstance(mechanism, LeakyTranscript) else "black-box"
    result = audit(
        mechanism,
        pair=PAIR,
        claim=PureDP(1.0),
        layer=layer,
        attacks=[attack for attack in PORTFOLIO if attack.name == name],
        confidence=0.99,
        max_samples=1000,
    )
    assert result.witness is not None, name
    return result.witness.to_dict()


def specimens():
    """Return real witnesses, each with the shape of the releases that it is about."""
    shipped = json.loads((SHIPPED / "symmetric-noise.json").read_text(encoding="utf-8"))
    return [*((fresh(name), FRESH[name][1]) for name in FRESH), (shipped, (2, 2))]


# Mutations


NUMBERS = [
    *(0, 1, -1, 2, 7, 1000, 2**31, 2**53, 2**53 + 1, 2**63, 2**64, 10**18, 10**300),
    *(0.5, -0.5, 1.5, 1e-9, 5e-324, 1e-300, 1e300, 1.7e308, -1e308, -0.0, 1 - 2**-53),
    *({"$float": "inf"}, {"$float": "-inf"}, {"$float": "nan"}, True, False),
]
TEXTS = [
    *("", "a\x1b[2J\nCONFIRMED", "\u202e", "\ud800", "\0", "x" * 10_000),
    *("replace-one", "transcript", "white-box", "shape ()", "<i8", "O", "<M8[s]"),
    *(attack.name for attack in PORTFOLIO + BITS),
]
THINGS = [
    *(None, [], {}, [[]], {"": 0}),
    {"$array": [], "dtype": "<f8", "shape": [0, 3]},
    {"$array": "", "dtype": "<f8", "shape": [2**40]},
    {"$array": [[0.0]], "dtype": "<f8", "shape": [1, 1]},
    {"$object": "dpaudit.claims:PureDP", "arguments": {"epsilon": 1e300}},
    {"$object": "dpaudit.claims:GaussianDP", "arguments": {"mu": 0.01}},
]
CODE = [
    {"$object": f"{SENTINEL}:Trap", "arguments": {}},
    {"$reference": f"{SENTINEL}:trap"},
    {"$object": "os:system", "arguments": {"command": "true"}},
    {"$reference": "scipy:datasets"},
    {"$object": "dpaudit.claims:NO_LOSS", "arguments": {}},
]


def paths(value, path=()):
    """Yield the way to every part of a value but the whole."""
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in parts:
        yield (*path, key)
        if isinstance(part, dict | list):
            yield from paths(part, (*path, key))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def change_anything(stored, rng):
    ways = list(paths(stored))
    *way, key = rng.choice(ways)
    part = at(stored, way)
    choice = rng.randrange(6)
    if choice == 0:
        del part[key]
    elif choice == 1:
        part[key] = rng.choice(NUMBERS)
    elif choice == 2:
        part[key] = rng.choice(TEXTS)
    elif choice == 3:
        part[key] = rng.choice(THINGS + CODE)
    elif choice == 4:
        part[key] = json.loads(json.dumps(at(stored, rng.choice(ways))))
    elif isinstance(part[key], float | int):
        part[key] = part[key] * rng.choice([-1, 0, 2, 1e-3, 1e3, 1e9]) + rng.choice(
            [0, 1]
        )


def change_text(text, rng):
    """Damage the bytes of a file."""
    start, length = rng.randrange(len(text)), rng.choice([1, 1, 2, 10, 200])
    end = start + length
    choice = rng.randrange(6)
    if choice == 0:
        return text[:start]
    if choice == 1:
        return text[:start] + bytes([rng.randrange(256)]) + text[start + 1 :]
    if choice == 2:
        return text[:start] + text[end:]
    if choice == 3:
        return text[:end] + text[start:]
    if choice == 4:
        digits = [i for i, byte in enumerate(text) if chr(byte).isdigit()]
        place = rng.choice(digits)
        return text[:place] + b"%d" % rng.randrange(10) + text[place + 1 :]
    token = rng.choice(
        [
            *(
                b"NaN",
                b"-Infinity",
                b"1e999",
                b"9" * 5000,
                b"[" * 5000,
                b'{"a":' * 5000,
            ),
            *(b"\xef\xbb\xbf", b"\xff", b"\0", b'"', b",", b"}", b"//", b"\\ud800"),
        ]
    )
    return text[:start] + token + text[start:]


def mutated(stored, rng):
    """Return the bytes of a file that once was a witness."""
    stored = json.loads(json.dumps(stored))
    in_text = rng.random() < 0.25
    if not in_text:
        for _ in range(rng.choice([1, 1, 2, 3])):
            try:
                with np.errstate(all="ignore"):
                    change_anything(stored, rng)
            except (LookupError, TypeError, AttributeError, ValueError, OverflowError):
                pass  # an earlier change has taken what this one would change
    text = json.dumps(stored, indent=rng.choice([None, 2])).encode("ascii")
    return change_text(text, rng) if in_text else text


# What must hold


def check_sentence(error):
    text = str(error)
    assert text
    assert "\n" not in text
    assert len(text) < 3000


def check(path, text, shape, seed):
    """Read a file and verify what it holds; hold both to what they promise, and return
    what came of it.
    """
    path.write_bytes(text)
    try:
        witness = Witness.load(path)
    except InputError as error:
        check_sentence(error)
        return "refused when read"
    json.dumps(witness.to_dict(), allow_nan=False)
    try:
        outcome = verify(
            witness,
            mechanism=Silent(shape),
            confidence=CONFIDENCE,
            max_samples=64,
            seed=witness.seed + 1 + seed,
        )
    except (InputError, MechanismError) as error:
        check_sentence(error)
        return "refused when verified"
    assert not outcome.confirmed, (seed, str(outcome))
    assert all(line.isprintable() for line in str(outcome).split("\n"))
    json.dumps(outcome.to_dict(), allow_nan=False)
    return "not confirmed"


@pytest.fixture
def trap(tmp_path, monkeypatch):
    """A module that leaves a trace when it is imported."""
    trace = tmp_path / "imported"
    source = f"import pathlib\npathlib.Path({str(trace)!r}).touch()\n"
    (tmp_path / f"{SENTINEL}.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    return trace


@pytest.mark.parametrize("name", FRESH)
def test_the_witnesses_that_are_mutated_are_confirmed(name):
    """Power: each leak shows in 400 releases with probability > 0.999."""
    witness = Witness.from_dict(fresh(name))
    outcome = verify(
        witness,
        mechanism=FRESH[name][0],
        confidence=CONFIDENCE,
        max_samples=400,
        seed=witness.seed + 1,
    )
    assert outcome.confirmed


def test_mutations_are_read_or_refused_and_never_confirmed(tmp_path, trap):
    path, seen = tmp_path / "witness.json", Counter()
    for place, (stored, shape) in enumerate(specimens()):
        check(path, json.dumps(stored).encode("ascii"), shape, 0)
        before = set(sys.modules)
        for seed in range(10**6 * place, 10**6 * place + 30):
            text = mutated(stored, random.Random(seed))
            seen[check(path, text, shape, seed)] += 1
        assert set(sys.modules) == before
    assert not trap.exists()
    assert min(seen["refused when read"], seen["not confirmed"]) > 5, str(seen)
