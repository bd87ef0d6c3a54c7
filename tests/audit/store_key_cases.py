"""Mechanisms whose scale is where no key may see it: same code text, other behaviour.

Each case takes the scale of the noise, sets whatever of the world hides it, and returns
the mechanism. `audit_all` is for other processes, too.
"""

import copy
import functools
import importlib
import itertools
import math
import operator
import os
import sqlite3
import sys
import threading
import types
import weakref
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import ClassVar
from unittest import mock

import numpy as np
from audit_cases import audited

from dpaudit.audit import Run

HERE = sys.modules[__name__]
FEW = 3  # releases a side
KINDS = {"finished": None, "unfinished": lambda: True}
INSTALLED = """
import math
SCALE = 1.0

def from_global(data, rng):
    return data.sum() + rng.laplace(scale=SCALE)

def logged(function):
    def inner(*arguments):
        return function(*arguments)
    return inner

class Handle:
    def __init__(self, scale):
        self.__dict__["scale"] = scale
    def __reduce_ex__(self, protocol):
        raise TypeError("handles cannot be pickled")
"""


def audit_all(folder, kinds):
    """Audit cases at scale 1 into a store of each kind: which were known?

    What is stopped goes on in one way, so of that kind a few cases are enough.
    """
    library = Path(folder) / "site-packages"
    library.mkdir(exist_ok=True)
    (library / "installed_for_keys.py").write_text(INSTALLED)
    sys.path.insert(0, str(library))
    os.environ["FOLDER_FOR_KEYS"] = str(folder)
    known = {}
    names = [("finished", name) for name in CASES]
    names += [("unfinished", name) for name in [*CASES][::6]]
    for kind, name in names:
        told = []
        run = Run(
            store=f"{folder}/{kind}", progress=told.append, should_stop=kinds[kind]
        )
        try:
            result = audited(CASES[name](1.0), budget=FEW, run=run)
            known[f"{kind} {name}"] = result.from_store or told[0].resumed_at > 0
        except Exception as error:
            known[f"{kind} {name}"] = str(error)
    return known


def noisy(scale_of):
    """Return a mechanism that asks for its scale in every release."""
    return lambda data, rng: data.sum() + rng.laplace(scale=scale_of())


def held(make, read):
    """Return a case that holds what `make` makes of the scale, to `read` it there."""

    def build(scale):
        made = make(scale)
        return noisy(lambda: read(made))

    return build


def put(module, name, read):
    """Return a case that holds nothing: the scale is in a module."""
    return held(lambda s: setattr(importlib.import_module(module), name, s), read)


def having(subject, **attributes):
    for name, value in attributes.items():
        setattr(subject, name, value)
    return subject


class Closing(sqlite3.Connection):
    """A connection that nobody has to close."""

    def __del__(self):
        self.close()


class Noisy:
    """A mechanism that asks itself."""

    def release(self, data, *, rng):
        return data.sum() + rng.laplace(scale=self.scale)


class Given(Noisy):
    def __init__(self, scale):
        self.scale = scale


# Modules and names.
def module(**attributes):
    return having(types.ModuleType("somewhere"), **attributes)


def other_globals(scale):
    space = {"SCALE": scale}
    exec("def scale_of(): return globals()['SCALE']", space)
    return noisy(space["scale_of"])


# Classes.
class Dunder(Noisy):
    scale = property(operator.attrgetter("__scale__"))


class Descriptor:
    kept: ClassVar = weakref.WeakKeyDictionary()

    def __get__(self, instance, owner):
        return 1.0 if instance is None else self.kept[instance]


class WithDescriptor(Noisy):
    scale = Descriptor()

    def __init__(self, scale):
        Descriptor.kept[self] = scale


@dataclass(frozen=True)
class Registered(Noisy):
    given: InitVar[float]
    name: str = "REGISTERED"

    def __post_init__(self, given):
        setattr(HERE, self.name, given)

    @property
    def scale(self):
        return vars(HERE)[self.name]


class Batched:
    def __init__(self, scale):
        globals()["BATCHED"] = scale

    def draw(self, data, size, *, rng):
        return data.sum() + rng.laplace(scale=globals()["BATCHED"], size=size)


# State.
class Reduced(Given):
    def __reduce__(self):
        return Reduced, (1.0,)


class Unpicklable(Given):
    __slots__ = ("scale",)

    def __reduce_ex__(self, protocol):
        raise TypeError


class Liar(Noisy):
    def __init__(self, scale):
        object.__setattr__(self, "hidden", scale)

    def __getattribute__(self, name):
        if name == "scale":
            return object.__getattribute__(self, "hidden")
        return {} if name == "__dict__" else object.__getattribute__(self, name)


@dataclass(frozen=True)
class NotCompared(Noisy):
    scale: float = field(compare=False, repr=False)


@dataclass(frozen=True)
class Cached(Noisy):
    @functools.cached_property
    def scale(self):
        return 1.0


def overwritten(scale):
    made = Cached()
    made.__dict__["scale"] = scale
    return made


def replaced_code(scale):
    source = f"lambda data, rng: data.sum() + rng.laplace(scale={scale})"
    return having(lambda data, rng: 0.0, __code__=eval(source).__code__)


def nested(scale):
    return functools.reduce(lambda inner, _: [inner], range(10_000), scale)


def innermost(deep):
    while isinstance(deep, list):
        (deep,) = deep
    return deep


# Objects of C, what shows no state, and the world.

KEPT = {}


def database(scale):
    db = sqlite3.connect(":memory:", factory=Closing)
    db.execute("CREATE TABLE t AS SELECT ? AS scale", (scale,))
    return db


def written(scale):
    path = Path(os.environ["FOLDER_FOR_KEYS"]) / "scale.txt"
    path.write_text(str(scale))
    return path


def installed():
    return importlib.import_module("installed_for_keys")


CASES = {
    "module_in_a_closure": held(lambda s: module(SCALE=s), lambda m: m.SCALE),
    "module_with_getattr": held(
        lambda s: module(__getattr__={"LAZY": s}.__getitem__), lambda m: m.LAZY
    ),
    "lookup_in_globals": put(__name__, "NAMED", lambda _: globals()["NAMED"]),
    "getattr_on_a_module": put(
        __name__, "THERE", lambda _: getattr(HERE, "THE" + "RE")
    ),
    "code_with_other_globals": other_globals,
    "metaclass_attribute": held(
        lambda s: type("Meta", (type,), {"scale": s})("Subject", (), {}),
        lambda kind: kind.scale,
    ),
    "patched_on_the_instance": lambda s: having(Noisy(), release=Given(s).release),
    "dunder_attribute": lambda s: type("Made", (Dunder,), {"__scale__": s})(),
    "descriptor": WithDescriptor,
    "kept_elsewhere_at_construction": Registered,
    "batched_draw": Batched,
    "reduce_that_hides": Reduced,
    "slots_without_pickle": Unpicklable,
    "getattribute_that_lies": Liar,
    "field_that_is_not_compared": NotCompared,
    "overwritten_cached_property": overwritten,
    "replaced_code": replaced_code,
    "nested_too_deeply": held(nested, innermost),
    "partial_of_c": lambda s: noisy(functools.partial(math.fabs, s)),
    "method_of_c": lambda s: noisy(s.conjugate),
    "universal_function": held(
        lambda s: np.frompyfunc(lambda x: s * x, 1, 1), lambda times: float(times(1.0))
    ),
    "array_of_objects": held(lambda s: np.array([lambda: s, None]), lambda a: a[0]()),
    "mapping_proxy": held(
        lambda s: types.MappingProxyType({"scale": s}), lambda proxy: proxy["scale"]
    ),
    "iterator": held(itertools.repeat, lambda scales: next(scales)),
    "running_generator": held(lambda s: (s for _ in itertools.count()), next),
    "weak_reference": held(
        lambda s: weakref.ref(KEPT.setdefault(s, Reduced(s))), lambda to: to().scale
    ),
    "local_of_a_thread": held(
        lambda s: having(threading.local(), scale=s), lambda local: local.scale
    ),
    "single_dispatch": held(
        lambda s: functools.singledispatch(lambda subject: s), lambda of: of(0)
    ),
    # Every release takes the first number of a generator that is kept.
    "seeded_generator": held(
        lambda s: np.random.default_rng(0 if s == 1.0 else 1),
        lambda source: 0.1 + copy.deepcopy(source).random(),
    ),
    "mock_object": lambda s: noisy(mock.Mock(return_value=s)),
    "database": held(
        database, lambda db: db.execute("SELECT scale FROM t").fetchone()[0]
    ),
    "environment": held(
        lambda s: os.environ.update(IN_KEYS=str(s)),
        lambda _: float(os.environ["IN_KEYS"]),
    ),
    "file_at_call_time": held(written, lambda path: float(path.read_text())),
    "global_of_a_library": lambda s: having(installed(), SCALE=s).from_global,
    "decorator_of_a_library": lambda s: installed().logged(noisy(lambda: s)),
    "handle_of_a_library": held(
        lambda s: installed().Handle(s), lambda handle: handle.scale
    ),
}
