"""Keys of audits: the same for what looks alike, in every process."""

import functools
import math
import re
import subprocess
import sys
import threading
from dataclasses import InitVar, dataclass, fields, make_dataclass, replace
from enum import Enum
from inspect import signature
from random import choice
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from audit_cases import SETTINGS
from refusals import refused

from dpaudit import ApproxDP, Domain, Pair, Profile, PureDP
from dpaudit.algorithms import CATALOGUE
from dpaudit.attacks import BITS, PORTFOLIO
from dpaudit.audit import Budget, Run, audit
from dpaudit.audit.keeping.identity import code_version, describe, key_of
from dpaudit.audit.settings import Settings

SCALE = 0.5
CALLS = threading.Lock()


def helper(data):
    return data.sum()


def uses_globals(data, rng):
    return helper(data) + rng.laplace(scale=SCALE)


def late(filled):
    """Return a mechanism that closes over what may not be there yet."""

    def mechanism(data, rng):
        return later

    if filled:
        later = None
    return mechanism


def closure(scale):
    def mechanism(data, rng):
        return data.sum() + rng.laplace(scale=scale)

    return mechanism


def held(scale):
    """Return a mechanism that closes over a module."""
    module = ModuleType("held")
    module.scale = scale
    return lambda data, rng: module.scale


def default(data, rng, scale=1.0):
    return data.sum() + rng.laplace(scale=scale)


def keyword(data, rng, *, scale=1.0):
    return data.sum() + rng.laplace(scale=scale)


@dataclass(frozen=True)
class Frozen:
    scale: float = 1.0

    @functools.cached_property
    def noise(self):
        return object()

    def release(self, data, *, rng):
        return self.scale


@dataclass
class Thawed:
    scale: float = 1.0


class Plain:
    rate = 0.3

    def __init__(self, scale):
        self.scale = scale

    def release(self, data, *, rng):
        return self.scale

    @property
    def claim(self):
        return PureDP(1.0)


class Slotted:
    __slots__ = ("scale",)

    def __init__(self, scale):
        self.scale = scale


class Listed:
    """It hands pickle what it holds one by one, as a generator."""

    def __init__(self, *held):
        self.held = held

    def __reduce__(self):
        return Listed, (), None, (each for each in self.held)


class Scale(float):
    def __new__(cls, value, factor=1.0):
        made = super().__new__(cls, value)
        made.factor = factor
        return made


@dataclass(frozen=True)
class Handed:
    """What it was handed is in none of its fields."""

    scale: InitVar[float]

    def __post_init__(self, scale):
        object.__setattr__(self, "_scale", scale)


class Beside(Frozen):
    """A subclass that is no dataclass itself."""

    def __init__(self, rate):
        super().__init__()
        object.__setattr__(self, "rate", rate)


class Colour(Enum):
    RED = 1
    BLUE = 2


@functools.lru_cache
def cached(data):
    return 1


class Child(Plain):
    pass


def recursive(data, rng):
    return recursive(data, rng)


def locks(data, rng):
    with CALLS:
        return rng.laplace()


DIFFERENT = [
    *(None, True, 1, 1.0, -0.0, 0.0, float("nan"), 1j, 2**64, hex(2**64), ...),
    *("1", b"1", bytearray(b"1"), [1], (1,), {1}, frozenset({1}), {1: 1}, {1: 2}),
    *(Colour.RED, Colour.BLUE),
    np.zeros(2),
    np.zeros((2, 1)),
    np.zeros(2, dtype=np.float32),
    np.ones(2),
    np.float32(1.0),
    np.array([1, None]),
    *(np, np.sin, np.cos),
    np.random.default_rng(0),
    np.random.default_rng(0).normal,
    np.random.default_rng(0).laplace,
    *(default, keyword, uses_globals, closure(1.0), closure(2.0)),
    *(late(filled=False), late(filled=True)),
    lambda data, rng: 1.0,
    lambda data, rng: 2.0,
    lambda data, rng: lambda: 2.0,
    lambda data, rng: lambda: 3.0,
    functools.partial(default, scale=1.0),
    functools.partial(default, scale=2.0),
    cached,
    *(Frozen, Frozen(), Frozen(2.0), Frozen().release, Thawed(), Thawed(2.0)),
    *(Plain(1.0), Plain(2.0), Plain(1.0).release, Plain(2.0).release),
    *(Child(1.0), Slotted(1.0), Slotted(2.0), Listed(1.0), Listed(2.0)),
    *(SimpleNamespace(a=1), SimpleNamespace(a=2)),
    *(PureDP(1.0), ApproxDP(1.0, 1e-5)),
    *(Profile((0.0,), (0.2,)), Profile((0.0,), (0.3,))),
    Domain.parse("box:0,1:3"),
    Domain.parse("box:0,1:4"),
    Pair([0.0], [0.0, 1.0]),
    Pair([0.0], [0.0, 2.0]),
    *(len, [].append, [1].append),
    # One name, argument, flag or handler apart.
    lambda data, rng: rng.laplace(),
    lambda data, rng: rng.standard_normal(),
    lambda data, *rng: rng.laplace(),
    lambda data, rng, *, a, b: a,
    lambda data, rng, *, b, a: b,
    # Of which another object of the same look, or class, is in this list.
    *(Scale(1.0), Scale(1.0, factor=2.0)),
    np.zeros((2, 1)).view(np.matrix),
    np.ma.masked_array([0.0, 0.0], [True, False]),
    np.ma.masked_array([0.0, 0.0], [False, True]),
    np.array([(0.0,)], dtype=[("a", float)]),
    np.array([(0.0,)], dtype=[("b", float)]),
    np.ones((2, 2)),
    np.ones((2, 2), order="F"),
    np.ones((1, 4)),
    np.ones((4, 1)),
    *(Handed(1.0), Handed(2.0), Beside(1.0), Beside(2.0)),
    type("Made", (Plain,), {"rate": 0.3}),
    type("Made", (Plain,), {"rate": 0.4}),
    make_dataclass("Made", [("scale", float, 1.0)])(),
    make_dataclass("Made", [("scale", float, 2.0)])(),
    *(re.compile("a"), re.compile("b")),
    type("Made", (Plain,), {"rate": property(lambda self: 0.3)}),
    type("Made", (Plain,), {"rate": property(lambda self: 0.4)}),
    *(held(1.0), held(2.0)),
    functools.lru_cache(lambda data: 2),
    functools.lru_cache(lambda data: 3),
]


circle: list[object] = []
circle.append(circle)


def test_what_behaves_differently_is_described_differently_state_shown_or_not():
    described = [describe(value) for value in DIFFERENT]
    assert len(set(described)) == len(described)
    # What it does is looked at before a store is believed.
    for make in (
        *(lambda: (number for number in []), threading.Lock, lambda: memoryview(b"1")),
        lambda: np.frompyfunc(lambda x: 2 * x, 1, 1),
        *(lambda: closure(threading.Lock()), lambda: np.random.default_rng()),
    ):
        assert describe(make()) == describe(make())
    kinds = [describe(n for n in []), describe(threading.Lock()), describe(Unsaid(1))]
    assert len(set(kinds)) == 3
    assert describe(Unsaid(1.0)) == describe(Unsaid(1.0)) != describe(Unsaid(2.0))


@pytest.mark.parametrize(
    "make",
    [
        *(lambda: closure(1.0), lambda: Frozen(2.0), lambda: Plain(2.0)),
        *(lambda: Slotted(2.0), lambda: functools.partial(default, scale=2.0)),
        *(lambda: Pair([0.0], [0.0, 1.0]), lambda: np.random.default_rng(3)),
        lambda: {"b": {1.5, "x", 2}, "a": [np.arange(3)]},
        *(lambda: (1.5, 1.5, (2.5,), (2.5,)), lambda: circle, lambda: recursive),
        *(lambda: locks, lambda: closure(threading.Lock())),
    ],
)
def test_what_behaves_alike_is_described_alike(make):
    assert describe(make()) == describe(make())


def test_what_does_not_matter_is_left_out_and_nothing_else():
    one, warm, changed = [1.5], Frozen(), Thawed()
    assert warm.noise is not None
    changed.beside = 1
    assert describe([one, one]) == describe([[1.5], [1.5]])
    assert describe(warm) == describe(Frozen())
    assert describe(changed) != describe(Thawed())


def test_members_of_a_class_and_its_bases_matter(monkeypatch):
    before = describe(Child(1.0))
    monkeypatch.setattr(Plain, "rate", 0.4)
    assert describe(Child(1.0)) != before
    monkeypatch.undo()
    assert describe(Child(1.0)) == before


class Unsaid:
    def __init__(self, scale):
        self.scale = scale

    def __reduce_ex__(self, protocol):
        raise TypeError("no")


def shuffled(data, rng):
    return choice(data) + np.random.random()  # noqa: NPY002


def test_generators_of_all_have_no_state_and_deep_nests_go_by_class():
    """They are seeded anew in every process, and would make every key another."""
    before = describe(shuffled), describe(np.random.normal)
    choice([0.0])
    np.random.random()  # noqa: NPY002
    assert (describe(shuffled), describe(np.random.normal)) == before
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert describe(deep) == describe([deep]) != describe((deep,))


def test_the_catalogue_has_keys_and_audits_take_settings_by_name():
    entries = [e for e in CATALOGUE.values() if getattr(e, "installed", True)]
    keys = {key_of(mechanism=entry.build()) for entry in entries}
    assert len(keys) == len(entries)
    assert len({key_of(a=attack) for attack in PORTFOLIO + BITS}) == len(
        {*PORTFOLIO, *BITS}
    )
    # Or in its run; and nothing else decides a result, but for what is audited.
    subject = {"mechanism", "pair", "domain", "relation"}
    beside = {"executor", "store", "progress", "should_stop"}
    settings = {field.name for field in fields(Settings)}
    of_the_run = {field.name for field in fields(Run)}
    assert beside == of_the_run - settings
    taken = set(signature(audit).parameters)
    assert taken == subject | {"run"} | (settings - of_the_run)
    assert len(taken) <= 10
    timed = replace(SETTINGS, budget=replace(SETTINGS.budget, seconds=5.0))
    assert key_of(settings=timed) == key_of(settings=SETTINGS)


def test_a_key_is_one_of_code_libraries_and_every_part(monkeypatch):
    key = key_of(seed=0, name="a")
    assert key == key_of(seed=0, name="a")
    assert len(key) == 64
    assert len({key, key_of(seed=1, name="a"), key_of(seed=0, name="b")}) == 3
    monkeypatch.setattr("dpaudit.audit.keeping.identity.code_version", lambda: "other")
    assert key_of(seed=0, name="a") != key
    monkeypatch.undo()
    monkeypatch.setattr("dpaudit.audit.keeping.identity.version", lambda name: "9.9")
    assert key_of(seed=0, name="a") != key


@pytest.mark.parametrize("room", ["", "algorithms", "attacks", "audit", "reports"])
def test_another_line_in_a_room_is_another_version(tmp_path, monkeypatch, room):
    """But for the reports, on which no result depends."""
    places = {}
    for name in ("", ".algorithms", ".attacks", ".audit", ".reports"):
        places[name] = tmp_path / f"room{name}"
        places[name].mkdir()
        (places[name] / "module.py").write_text("x = 1\n")
    monkeypatch.setattr(
        "dpaudit.audit.keeping.identity.files",
        lambda package: places[package.removeprefix("dpaudit")],
    )
    before = code_version.__wrapped__()
    assert len(before.split("+")[-1]) == 12
    (places[f".{room}" if room else ""] / "module.py").write_text("x = 2\n")
    assert (code_version.__wrapped__() == before) == (room == "reports")


def test_sources_go_by_their_names_and_contents(tmp_path, monkeypatch):
    versions = []
    for number, sources in enumerate(
        [
            *({"a.py": "x", "b.py": "y"}, {"a.py": "y", "b.py": "x"}),
            *({"a.py": "x", "c.py": "y"}, {"a.py": "xb.pyy"}, {"a.py": "x"}),
            *({"a.py": "x", "a.toml": "y"}, {"a.py": "x", "a.toml": "z"}),
        ]
    ):
        room = tmp_path / f"{number}"
        room.mkdir()
        for name, content in sources.items():
            (room / name).write_text(content)
        monkeypatch.setattr(
            "dpaudit.audit.keeping.identity.files", lambda _, at=room: at
        )
        versions.append(code_version.__wrapped__())
    assert len(set(versions)) == len(versions)


@pytest.mark.parametrize("setting", [field.name for field in fields(Settings)])
def test_every_setting_is_in_the_key(setting):
    other = replace(SETTINGS)
    object.__setattr__(other, setting, "another")
    assert key_of(settings=other) != key_of(settings=SETTINGS)
    assert key_of(settings=replace(SETTINGS)) == key_of(settings=SETTINGS)


test_a_setting_that_is_not_allowed_is_named = refused(
    ({"claim": 1.0}, "claim must be a Claim, got 1.0"),
    ({"confidence": 1.0}, r"confidence must be in \(0, 1\), got 1.0"),
    ({"confidence": math.nan}, r"confidence must be in \(0, 1\), got nan"),
    ({"confidence": "high"}, "confidence must be a real number"),
    ({"confidence": 1e-300}, "confidence must be .* not next to 0"),
    ({"seed": -1}, "seed must be an integer >= 0, got -1"),
    ({"seed": None}, "seed must be an integer >= 0, got None"),
    ({"layer": "exact"}, "layer must be one of"),
    by=lambda wrong: replace(SETTINGS, **wrong),
)


test_an_option_that_is_not_allowed_is_named = refused(
    (Budget, {"releases": 1}, "releases must be an integer >= 2, got 1"),
    (Budget, {"releases": 10.5}, "releases must be an integer >= 2, got 10.5"),
    (Budget, {"refine": -0.1}, "refine must be"),
    (Budget, {"refine": math.nan}, "refine must be"),
    *((Budget, {"seconds": s}, "seconds must") for s in (0, math.nan, math.inf)),
    (Run, {"attacks": ["identity"]}, "instances of Attack, got 'identity'"),
    (Run, {"name": 5}, "name must be a string or None, got 5"),
    (Run, {"reference": 5}, "reference must be a string or None, got 5"),
    by=lambda kind, wrong: kind(**wrong),
)


SCRIPT = """
from dataclasses import dataclass
from dpaudit.audit.keeping.identity import key_of

@dataclass(frozen=True)
class Mechanism:
    kinds: frozenset = frozenset("abc")

    def release(self, data, *, rng):
        return rng.laplace() if data in {"x", "y", "z"} else 0

print(key_of(mechanism=Mechanism()))
"""


def test_a_script_has_the_same_key_every_time_and_comments_are_free(tmp_path):
    """In other processes, with other hashes of strings."""

    def key(comment="", seed="1"):
        path = tmp_path / "script.py"
        path.write_text(comment + SCRIPT)
        done = subprocess.run(
            [sys.executable, str(path)],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    first = key()
    assert key("# something else\n", seed="2") == first
