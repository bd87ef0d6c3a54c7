"""Mutated and forged witnesses: read or refused, and never confirmed without cause.

Real witnesses are damaged in seeded ways: bytes, keys, types, numbers, arrays, claims,
counts, names of code. Whatever comes of it,

- `Witness.load` returns, or raises `InputError` with one sentence;
- `verify`, on a mechanism that is given, returns or raises `InputError` or
  `MechanismError`, and imports nothing;
- no violation is confirmed of a mechanism that keeps the claim.

Null of the last: randomised response is 1-DP on every pair; where a mutated claim is
stronger, releases do not depend on the data. A confirmation errs with probability at
most 1e-9 each, so a whole run with probability at most 1e-5.
"""

import base64
import hashlib
import importlib
import json
import math
import random
import signal
import sys
import zlib
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from dpaudit import InputError, MechanismError, Pair, PureDP
from dpaudit.attacks import BITS, PORTFOLIO
from dpaudit.audit import Witness, audit, verify
from dpaudit.claims import CLAIMS

SHIPPED = Path(__file__).parents[2] / "docs" / "witnesses"
PAIR = Pair([[0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]])
CONFIDENCE = 1 - 1e-9
SENTINEL = "module_that_a_witness_names"
PATIENCE = 120  # seconds for one mutation, after which it hangs


@dataclass(frozen=True)
class RandomisedResponse:
    """One of two releases, which tells one bit of the data with epsilon = 1.

    The bit is a hash of the data and a salt, so this is 1-DP on every pair, and tightly
    so on half of them. If it is silent, the bit is always 0, and every claim holds.
    """

    shape: tuple[int, ...]
    salt: int = 0
    silent: bool = False

    def _told(self, data):
        if self.silent:
            return 0
        digest = hashlib.sha256(np.ascontiguousarray(data).tobytes())
        digest.update(bytes([self.salt]) + str(np.shape(data)).encode())
        return digest.digest()[0] & 1

    def draw(self, data, size, *, rng):
        lies = rng.random(size) < 1 / (1 + math.e)
        told = np.where(lies, 1 - self._told(data), self._told(data))
        releases = np.zeros((size, max(2, math.prod(self.shape))))
        releases[np.arange(size), told] = 1.0
        return releases[:, : math.prod(self.shape)].reshape(size, *self.shape)

    def release(self, data, *, rng):
        return self.draw(data, 1, rng=rng)[0]

    def transcript(self, data, size, *, rng):
        return {
            name: self.draw(data, size, rng=rng) if name == "first" else np.zeros(size)
            for name in ("first", "second")
        }

    def privacy_loss(self, releases, data, other):
        told = 1 - releases.reshape(len(releases), -1)[:, 0]
        return (self._told(data) - self._told(other)) * (2 * told - 1)


def keeps(claim):
    """Say whether every 1-DP mechanism keeps a claim.

    The region of 1-DP is the convex hull of its corner, the mirror image of that, and
    two points that every claim allows; and a claim's region is convex and symmetric.
    """
    corner = 1 / (1 + math.e)
    return float(claim.tpr(corner)) >= 1 - corner


# What leaks, so that there are witnesses


def leaks(data, rng):
    return len(data) * np.array([1.0, 2.0]) + rng.laplace(scale=0.2, size=2)


def leaks_a_number(data, rng):
    return len(data) + rng.laplace(scale=0.1)


def leaks_by_failing(data, rng):
    if rng.random() < (0.9 if len(data) == 1 else 0.05):
        raise KeyError("lost")
    return rng.normal()


def leaks_bits(data, rng):
    return (rng.random(2) < (0.95 if len(data) == 1 else 0.1)).astype(float)


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
    "atoms": (leaks_bits, (2,)),
    "logistic": (leaks, (2,)),
    "laplace-location": (leaks, (2,)),
    "gradient-boosting": (leaks, (2,)),
    "linear-discriminant": (LeakyTranscript(), (2,)),
}
QUICK = ("identity", "abnormal", "logistic", "linear-discriminant")


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


SHAPES = {
    "diffprivlib-bingham": (8,),
    "opendp-eigenvector": (8,),
    "symmetric-noise": (2, 2),
} | {
    name: (2, 1)
    for name in (
        "dp-sgd-reap-published",
        "dp-sggd-published",
        "dp-smd-reap-published",
        "noiseless-ggd",
        "private-subspace-published",
    )
}


def specimens(names):
    """Return real witnesses, each with the shape of the releases that it is about."""
    shipped = [
        (json.loads(path.read_text(encoding="utf-8")), SHAPES[path.stem])
        for path in sorted(SHIPPED.glob("*.json"))
    ]
    return [(fresh(name), FRESH[name][1]) for name in names] + shipped


# Mutations


def packed(size):
    return base64.b64encode(zlib.compress(bytes(size), 9)).decode("ascii")


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


NUMBERS = [
    *(0, 1, -1, 2, 7, 1000, 2**31, 2**53, 2**53 + 1, 2**63, 2**64, 10**18, 10**300),
    *(0.5, -0.5, 1.5, 1e-9, 5e-324, 1e-300, 1e300, 1.7e308, -1e308, -0.0, 1 - 2**-53),
    *({"$float": "inf"}, {"$float": "-inf"}, {"$float": "nan"}, True, False),
]
NAMES = [
    *("", "x", "a\x1b[2J\nCONFIRMED", "\u202e", "\ud800", "\0", "x" * 10_000, "1"),
    *("add-remove", "replace-one", "black-box", "transcript", "white-box", "shape ()"),
    *(attack.name for attack in PORTFOLIO + BITS),
    *("<f8", "<i8", "|b1", "<f2", "O", ">f8", "<M8[s]"),
]
CODE = [
    {"$object": f"{SENTINEL}:Trap", "arguments": {}},
    {"$reference": f"{SENTINEL}:trap"},
    {"$object": "os:system", "arguments": {"command": "true"}},
    {"$reference": "scipy:datasets"},
    {"$object": "dpaudit.claims:NO_LOSS", "arguments": {}},
]
THINGS = [
    None,
    [],
    {},
    [[]],
    [1.0, [2.0]],
    {"": 0},
    nested(50),
    nested(150),
    {"$array": packed(2**20), "dtype": "<f8", "shape": [2**17]},
    {"$array": packed(2**24), "dtype": "<f8", "shape": [1]},
    {"$array": "", "dtype": "<f8", "shape": [2**40]},
    {"$array": [], "dtype": "<f8", "shape": [0, 3]},
    {"$array": packed(8), "dtype": "<f8", "shape": []},
    {"$array": [[1.0, 0.0]], "dtype": "<f8", "shape": [1, 2]},
    {"$array": [[0.0]], "dtype": "<f8", "shape": [1, 1]},
]


def claims(rng):
    """Return a claim with parameters of any size."""
    kind = rng.choice(CLAIMS)
    small = [0.0, 1e-300, 1e-9, 0.1, 0.5, 1 - 2**-53]
    large = [
        5e-324,
        1e-100,
        1e-9,
        0.01,
        1.0,
        2.0,
        20.0,
        400.0,
        501.0,
        1e4,
        1e100,
        1e300,
    ]
    if kind.__name__ == "Profile":
        count = rng.randint(1, 3)
        arguments = {
            "epsilons": sorted(rng.sample(large, count)),
            "deltas": sorted(rng.sample(small, count), reverse=True),
        }
    else:
        name = {"GaussianDP": "mu", "ZeroConcentratedDP": "rho"}.get(kind.__name__)
        arguments = {name or "epsilon": rng.choice(large)}
        if kind.__name__ == "ApproxDP":
            arguments["delta"] = rng.choice(small)
    return {"$object": f"dpaudit.claims:{kind.__name__}", "arguments": arguments}


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
        part[key] = rng.choice(NAMES)
    elif choice == 3:
        part[key] = rng.choice(THINGS + CODE)
    elif choice == 4:
        part[key] = json.loads(json.dumps(at(stored, rng.choice(ways))))
    elif isinstance(part[key], float | int):
        part[key] = part[key] * rng.choice([-1, 0, 2, 1e-3, 1e3, 1e9]) + rng.choice(
            [0, 1]
        )


def change_numbers(stored, rng):
    """Change numbers only, which mostly leaves a witness that can be read."""
    ways = [w for w in paths(stored) if type(at(stored, w)) in (int, float)]
    for *way, key in rng.sample(ways, min(len(ways), rng.randint(1, 4))):
        part = at(stored, way)
        part[key] = type(part[key])(
            rng.choice([0, 1, -1, 3, 1e-9, 1e6, 1e15, part[key]])
        )


def change_event(stored, rng):
    event = stored["event"]
    arrays = [
        part
        for part in event["parameters"].values()
        if isinstance(part, dict) and isinstance(part.get("$array"), list)
    ]
    choice = rng.randrange(4)
    if choice == 0 or not arrays:
        event["attack"] = rng.choice(PORTFOLIO + BITS).name
    elif choice == 1:
        event["score_at_least"] = rng.choice(NUMBERS)
        event["resolution"] = rng.choice([5e-324, 1e-30, 1e-9, 1.0, 1e300])
    else:
        array = np.array(rng.choice(arrays)["$array"])
        array = [
            np.stack([array] * rng.randint(1, 9), axis=-1),
            array.reshape(-1)[: rng.randint(0, 3)],
            array * rng.choice([-1, 0, 1000]),
            np.full(array.shape, rng.choice([-1, 10**6, 2**31])),
        ][rng.randrange(4)]
        name = rng.choice(list(event["parameters"]))
        event["parameters"][name] = {
            "$array": packed_array(array),
            "dtype": array.astype("<f8").dtype.str,
            "shape": list(array.shape),
        }
        if choice == 3 and array.dtype.kind == "i":
            event["parameters"][name] |= {
                "$array": packed_array(array, "<i8"),
                "dtype": "<i8",
            }


def packed_array(array, dtype="<f8"):
    raw = zlib.compress(array.astype(dtype).tobytes())
    return base64.b64encode(raw).decode("ascii")


def change_counts(stored, rng):
    scored = [rng.choice([1, 10, 10**9, 2**53]) for _ in range(2)]
    for side, releases in zip(("data", "neighbour"), scored, strict=True):
        hits = rng.choice([0, 1, releases // 2, releases, releases, releases + 1])
        stored["counts"][side] = {"hits": hits, "releases": releases}


def change_claim(stored, rng):
    claim = claims(rng)
    stored["claim"] = claim
    arguments = claim["arguments"]
    if "epsilon" in arguments:
        stored["reference"] = {
            "epsilon": arguments["epsilon"],
            "delta": arguments.get("delta", 0.0),
        }


def change_rows(stored, rng):
    """Exchange the sides, or scale both datasets."""
    if rng.random() < 0.5:
        stored["data"], stored["neighbour"] = stored["neighbour"], stored["data"]
        return
    factor = rng.choice([0.0, -1.0, 1e-300, 1e9, 1e300])
    for side in ("data", "neighbour"):
        part = stored[side]
        if isinstance(part, dict) and isinstance(part.get("$array"), list):
            part["$array"] = (np.array(part["$array"], dtype=float) * factor).tolist()


def change_names(stored, rng):
    stored[rng.choice(["name", "layout", "layer"])] = rng.choice(NAMES)
    stored["mechanism"] = rng.choice([*CODE, None])


CHANGES = [
    *(change_anything, change_numbers, change_event, change_counts, change_claim),
    *(change_rows, change_names),
]


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
                    rng.choice(CHANGES)(stored, rng)
            except (LookupError, TypeError, AttributeError, ValueError, OverflowError):
                pass  # an earlier change has taken what this one would change
    text = json.dumps(stored, indent=rng.choice([None, 2])).encode("ascii")
    return change_text(text, rng) if in_text else text


# What must hold


@dataclass
class Tally:
    """What came of the mutations."""

    counts: Counter[str] = field(default_factory=Counter)

    def __str__(self):
        return ", ".join(f"{count:,} {what}" for what, count in self.counts.items())


@contextmanager
def at_most(seconds):
    """End what hangs."""

    def end(*_):
        raise TimeoutError(f"not done in {seconds} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def check_sentence(error):
    text = str(error)
    assert text
    assert "\n" not in text
    assert len(text) < 3000


def check(path, text, shape, seed, tally):
    """Read a file and verify what it holds, and hold both to what they promise."""
    path.write_bytes(text)
    tally.counts["mutations"] += 1
    try:
        witness = Witness.load(path)
    except InputError as error:
        check_sentence(error)
        tally.counts["refused when read"] += 1
        return
    json.dumps(witness.to_dict(), allow_nan=False)
    mechanism = RandomisedResponse(
        shape, salt=seed % 256, silent=not keeps(witness.claim)
    )
    try:
        outcome = verify(
            witness,
            mechanism=mechanism,
            confidence=CONFIDENCE,
            max_samples=64,
            seed=witness.seed + 1 + seed,
        )
    except (InputError, MechanismError) as error:
        check_sentence(error)
        tally.counts["refused when verified"] += 1
        return
    assert not outcome.confirmed, (seed, str(outcome))
    assert all(line.isprintable() for line in str(outcome).split("\n"))
    json.dumps(outcome.to_dict(), allow_nan=False)
    tally.counts["not confirmed"] += 1


@pytest.fixture
def trap(tmp_path, monkeypatch):
    """A module that leaves a trace when it is imported."""
    trace = tmp_path / "imported"
    source = f"import pathlib\npathlib.Path({str(trace)!r}).touch()\n"
    (tmp_path / f"{SENTINEL}.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    return trace


def run(names, each, path, trap):
    """Mutate every specimen so many times."""
    tally = Tally()
    for place, (stored, shape) in enumerate(specimens(names)):
        original = json.dumps(stored).encode("ascii")
        with at_most(PATIENCE):
            check(path, original, shape, 0, tally)
        before = set(sys.modules)
        for number in range(each):
            seed = 10**6 * place + number
            text = mutated(stored, random.Random(seed))
            try:
                with at_most(PATIENCE):
                    check(path, text, shape, seed, tally)
            except BaseException:
                print(f"specimen {place}, mutation {number}: {path}")
                raise
        assert set(sys.modules) == before
    assert not trap.exists()
    return tally


@pytest.mark.parametrize("name", QUICK)
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
    tally = run(QUICK, 25, tmp_path / "witness.json", trap)
    assert min(tally.counts.values()) > 10, str(tally)


@pytest.mark.hard
def test_thousands_of_mutations_are_read_or_refused_and_never_confirmed(tmp_path, trap):
    tally = run(tuple(FRESH), 300, tmp_path / "witness.json", trap)
    print(f"witnesses: {tally}")
    assert tally.counts["mutations"] >= 3000
    assert tally.counts["not confirmed"] >= 300
