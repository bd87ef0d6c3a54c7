"""Mutated and forged witnesses: read or refused, and never confirmed without cause.

Real witnesses are damaged in seeded ways: keys, types, numbers, arrays, names of code.
Whatever comes of it,

- `Witness.load` returns, or raises `InputError` with one sentence;
- `verify`, on a mechanism that is given, returns or raises `InputError` or
  `MechanismError`, and imports nothing;
- no violation is confirmed of a mechanism that keeps the claim.

Null of the last: releases do not depend on the data, so that every claim holds. A
confirmation errs with probability at most 1e-9 each, so a whole run with at most 1e-6.
"""

import contextlib
import json
import random
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpaudit import InputError, MechanismError, Pair, PureDP
from dpaudit.attacks import BITS, PORTFOLIO, LinearDiscriminant
from dpaudit.audit import Run, Witness, audit, verify

WITNESSES = Path(__file__).parents[2] / "docs/witnesses"
SHIPPED = WITNESSES / "symmetric-noise.json"
PAIR = Pair([[0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]])
CONFIDENCE = 1 - 1e-9


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


@dataclass(frozen=True)
class LeakyTranscript:
    """A release that says little, made of a value that says much."""

    def release(self, data, *, rng):
        return rng.laplace(size=2)

    def transcript(self, data, size, *, rng):
        noise = rng.laplace(scale=0.2, size=(size, 2))
        return {
            "first": len(data) * np.array([1.0, 2.0]) + noise,
            "second": rng.laplace(size=size),
        }


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


def mutated(stored, rng):
    """Return the text of a file that once was a witness."""
    stored = json.loads(json.dumps(stored))
    for _ in range(rng.choice([1, 1, 2, 3])):
        # An earlier change may have taken what this one would change.
        gone = LookupError, TypeError, AttributeError, ValueError, OverflowError
        with contextlib.suppress(*gone):
            change_anything(stored, rng)
    return json.dumps(stored)


def refusal(error, when):
    """Return what came of a file, if it was refused in one sentence."""
    assert re.fullmatch(".{1,3000}", str(error))
    return f"refused {when}"


def check(path, text, shape, seed):
    """Read a file and verify what it holds; hold both to what they promise, and return
    what came of it.
    """
    path.write_text(text)
    try:
        witness = Witness.load(path)
    except InputError as error:
        return refusal(error, "when read")
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
        return refusal(error, "when verified")
    assert not outcome.confirmed, (seed, str(outcome))
    assert all(line.isprintable() for line in str(outcome).split("\n"))
    json.dumps(outcome.to_dict(), allow_nan=False)
    return "not confirmed"


def test_mutations_are_read_or_refused_and_never_confirmed(tmp_path, in_few_rounds):
    run = Run(attacks=[LinearDiscriminant()])
    options = {"pair": PAIR, "claim": PureDP(1.0), "layer": "transcript"}
    found = audit(LeakyTranscript(), **options, run=run)
    shipped = json.loads(SHIPPED.read_text(encoding="utf-8"))
    path, seen = tmp_path / "witness.json", Counter()
    specimens = (found.witness.to_dict(), (2,)), (shipped, (2, 2))
    for place, (stored, shape) in enumerate(specimens):
        check(path, json.dumps(stored), shape, 0)
        before = set(sys.modules)
        for seed in range(10**6 * place, 10**6 * place + 60):
            text = mutated(stored, random.Random(seed))
            seen[check(path, text, shape, seed)] += 1
        assert set(sys.modules) == before
    assert min(seen["refused when read"], seen["not confirmed"]) > 5, str(seen)


def test_what_the_documentation_accuses_stands_where_it_says():
    for path in WITNESSES.glob("*.json"):
        text = path.read_text(encoding="utf-8")
        if ".third_party." not in text:
            assert type(Witness.load(path).build_mechanism()).__name__ in text
