"""Mechanisms whose scale is where no key may see it: same code text, other behaviour.

Each function takes the scale of the noise, sets whatever of the world hides it, and
returns the mechanism. `build` is for other processes, too.
"""

import array
import builtins
import contextvars
import copy
import ctypes
import functools
import importlib
import io
import itertools
import math
import operator
import os
import sqlite3
import statistics
import sys
import threading
import types
import weakref
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import ClassVar
from unittest import mock

import numpy as np

HERE = sys.modules[__name__]
CASES = {}
INSTALLED = """
import math
SCALE = 1.0

def from_global(data, rng):
    return data.sum() + rng.laplace(scale=SCALE)

def laplace_mechanism(scale):
    def mechanism(data, rng):
        return data.sum() + rng.laplace(scale=scale)
    return mechanism

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
FILES = {
    "site-packages/installed_for_keys.py": INSTALLED,
    "settings_for_keys.py": "SCALE = 1.0\n",
}


def prepare(folder):
    """Write the modules that mechanisms ask for, and make them importable."""
    for name, text in FILES.items():
        path = Path(folder) / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    sys.path[:0] = [str(folder), str(Path(folder) / "site-packages")]
    os.environ["FOLDER_FOR_KEYS"] = str(folder)


def case(make):
    CASES[make.__name__] = make
    return make


def noisy(scale_of):
    """Return a mechanism that asks for its scale in every release."""
    return lambda data, rng: data.sum() + rng.laplace(scale=scale_of())


class Noisy:
    """A mechanism that asks itself."""

    def release(self, data, *, rng):
        return data.sum() + rng.laplace(scale=self.scale)


# Modules and names.


@case
def module_in_a_closure(scale):
    module = types.ModuleType("somewhere")
    module.SCALE = scale
    return lambda data, rng: data.sum() + rng.laplace(scale=module.SCALE)


@case
def lookup_in_globals(scale):
    globals()["LOOKED_UP"] = scale
    return noisy(lambda: globals()["LOOKED_UP"])


@case
def getattr_on_a_module(scale):
    HERE.LOOKED_UP_THERE = scale
    return noisy(lambda: getattr(HERE, "LOOKED_UP" + "_THERE"))


@case
def name_made_at_run_time(scale):
    globals()["MADE_1"] = scale
    return noisy(lambda: eval("MADE_" + str(1)))


@case
def importlib_at_run_time(scale):
    importlib.import_module("settings_for_keys").SCALE = scale
    return noisy(lambda: importlib.import_module("settings_for_keys").SCALE)


@case
def import_within(scale):
    import settings_for_keys

    settings_for_keys.OTHER = scale

    def mechanism(data, rng):
        from settings_for_keys import OTHER

        return data.sum() + rng.laplace(scale=OTHER)

    return mechanism


@case
def swapped_module(scale):
    swapped = types.ModuleType("swapped_for_keys")
    swapped.SCALE = scale
    sys.modules["swapped_for_keys"] = swapped

    def mechanism(data, rng):
        import swapped_for_keys

        return data.sum() + rng.laplace(scale=swapped_for_keys.SCALE)

    return mechanism


@case
def module_with_getattr(scale):
    lazy = types.ModuleType("lazy_for_keys")
    lazy.__getattr__ = {"SCALE": scale}.__getitem__
    return noisy(lambda: lazy.SCALE)


@case
def builtin_name(scale):
    builtins.SCALE_FOR_KEYS = scale
    return noisy(lambda: SCALE_FOR_KEYS)  # noqa: F821


@case
def patched_standard_library(scale):
    statistics.SCALE_FOR_KEYS = scale
    return noisy(lambda: statistics.SCALE_FOR_KEYS)


@case
def patched_numpy(scale):
    np.SCALE_FOR_KEYS = scale
    return noisy(lambda: np.SCALE_FOR_KEYS)


@case
def code_with_other_globals(scale):
    space = {"SCALE": scale}
    exec("def scale_of(): return globals()['SCALE']", space)
    return noisy(space["scale_of"])


# Classes.


@case
def metaclass_attribute(scale):
    meta = type("Meta", (type,), {"scale": scale})
    return meta(
        "Subject", (Noisy,), {"scale": property(lambda s: type(type(s)).scale)}
    )()


@case
def metaclass_getattr(scale):
    cell = io.StringIO(str(scale))
    meta = type(
        "Meta", (type,), {"__getattr__": lambda c, name: float(cell.getvalue())}
    )
    hidden = meta("Hidden", (), {})
    return noisy(lambda: hidden.scale)


class WithAttribute(Noisy):
    scale = 1.0


@case
def class_attribute(scale):
    WithAttribute.scale = scale
    return WithAttribute()


class WithMethod(Noisy):
    pass


@case
def patched_method(scale):
    WithMethod.scale = property(functools.partial(lambda s, self: s, scale))
    return WithMethod()


@case
def patched_on_the_instance(scale):
    patched = Noisy()
    patched.release = types.MethodType(
        lambda self, data, *, rng: data.sum() + rng.laplace(scale=scale), patched
    )
    return patched


class Descriptor:
    kept: ClassVar = weakref.WeakKeyDictionary()

    def __get__(self, instance, owner):
        return 1.0 if instance is None else self.kept[instance]


class WithDescriptor(Noisy):
    scale = Descriptor()


@case
def descriptor(scale):
    made = WithDescriptor()
    Descriptor.kept[made] = scale
    return made


@case
def dunder_attribute(scale):
    made = type("Made", (Noisy,), {"__scale__": scale})
    made.scale = property(operator.attrgetter("__scale__"))
    return made()


@dataclass(frozen=True)
class OfItsClass(Noisy):
    scale: ClassVar[float] = 1.0


@case
def class_variable_of_a_dataclass(scale):
    OfItsClass.scale = scale
    return OfItsClass()


REGISTRY = {}


@dataclass(frozen=True)
class Registered(Noisy):
    given: InitVar[float]
    name: str = "it"

    def __post_init__(self, given):
        vars(HERE)["REGI" + "STRY"][self.name] = given

    @property
    def scale(self):
        return vars(HERE)["REGI" + "STRY"][self.name]


@case
def kept_elsewhere_at_construction(scale):
    return Registered(scale)


# State.


class Forgetful(Noisy):
    def __init__(self, scale):
        self.scale = scale

    def __getstate__(self):
        return {}


@case
def getstate_that_hides(scale):
    return Forgetful(scale)


class Reduced(Noisy):
    def __init__(self, scale):
        self.scale = scale

    def __reduce__(self):
        return Reduced, (1.0,)


@case
def reduce_that_hides(scale):
    return Reduced(scale)


class Unpicklable(Noisy):
    __slots__ = ("scale",)

    def __reduce_ex__(self, protocol):
        raise TypeError


@case
def slots_without_pickle(scale):
    made = Unpicklable()
    made.scale = scale
    return made


@dataclass(frozen=True)
class Cached(Noisy):
    @functools.cached_property
    def scale(self):
        return 1.0


@case
def overwritten_cached_property(scale):
    made = Cached()
    made.__dict__["scale"] = scale
    return made


class Liar(Noisy):
    def __init__(self, scale):
        object.__setattr__(self, "hidden", scale)

    def __getattribute__(self, name):
        if name == "scale":
            return object.__getattribute__(self, "hidden")
        return {} if name == "__dict__" else object.__getattribute__(self, name)


@case
def getattribute_that_lies(scale):
    return Liar(scale)


@dataclass(frozen=True)
class NotCompared(Noisy):
    scale: float = field(compare=False, repr=False)


@case
def field_that_is_not_compared(scale):
    return NotCompared(scale)


@case
def mutated_default(scale):
    def mechanism(data, rng, scales=[1.0]):  # noqa: B006
        return data.sum() + rng.laplace(scale=scales[0])

    mechanism.__defaults__[0][0] = scale
    return mechanism


@case
def attribute_of_a_function(scale):
    def mechanism(data, rng):
        return data.sum() + rng.laplace(scale=mechanism.scale)

    mechanism.scale = scale
    return mechanism


@case
def replaced_code(scale):
    def mechanism(data, rng):
        return 0.0

    source = f"lambda data, rng: data.sum() + rng.laplace(scale={scale})"
    mechanism.__code__ = eval(source).__code__
    return mechanism


@case
def nested_too_deeply(scale):
    deep = functools.reduce(lambda inner, _: [inner], range(10_000), [scale])

    def mechanism(data, rng):
        inner = deep
        while isinstance(inner[0], list):
            inner = inner[0]
        return data.sum() + rng.laplace(scale=inner[0])

    return mechanism


# Objects of C, and what shows no state.


@case
def partial_of_c(scale):
    return noisy(functools.partial(math.fabs, scale))


@case
def method_of_c(scale):
    return noisy(scale.conjugate)


@case
def universal_function(scale):
    times = np.frompyfunc(lambda x: scale * x, 1, 1)
    return noisy(lambda: float(times(1.0)))


@case
def changed_array(scale):
    scales = np.ones(1)
    mechanism = noisy(lambda: scales[0])
    scales[0] = scale
    return mechanism


@case
def array_of_objects(scale):
    scales = np.array([lambda: scale, None])
    return noisy(lambda: scales[0]())


@case
def view_of_memory(scale):
    view = memoryview(array.array("d", [scale]))
    return noisy(lambda: view[0])


@case
def ctypes_number(scale):
    number = ctypes.c_double(scale)
    return noisy(lambda: number.value)


@case
def ctypes_pointer(scale):
    pointer = ctypes.pointer(ctypes.c_double(scale))
    return noisy(lambda: pointer.contents.value)


@case
def mapping_proxy(scale):
    proxy = types.MappingProxyType({"scale": scale})
    return noisy(lambda: proxy["scale"])


@case
def iterator(scale):
    scales = itertools.repeat(scale)
    return noisy(lambda: next(scales))


@case
def running_generator(scale):
    scales = (scale for _ in itertools.count())
    return noisy(lambda: next(scales))


@case
def weak_reference(scale):
    kept = Reduced(scale)
    reference = weakref.ref(kept)
    KEPT.append(kept)
    return noisy(lambda: reference().scale)


KEPT = []


@case
def context_variable(scale):
    variable = contextvars.ContextVar("scale")
    variable.set(scale)
    return noisy(lambda: variable.get())


@case
def local_of_a_thread(scale):
    local = threading.local()
    local.scale = scale
    return noisy(lambda: local.scale)


@case
def warm_cache(scale):
    @functools.lru_cache
    def looked_up():
        return globals()["WARM"]

    globals()["WARM"] = scale
    looked_up()
    globals()["WARM"] = 1.0
    return noisy(looked_up)


@case
def single_dispatch(scale):
    @functools.singledispatch
    def scale_of(subject):
        return 1.0

    scale_of.register(int, lambda subject: scale)
    return noisy(lambda: scale_of(0))


@case
def seeded_generator(scale):
    """A fixed generator, of which every release takes the first number."""
    source = np.random.default_rng(0 if scale == 1.0 else 1)
    return noisy(lambda: 0.1 + copy.deepcopy(source).random())


@case
def mock_object(scale):
    return noisy(mock.Mock(return_value=scale))


@case
def database(scale):
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE t AS SELECT ? AS scale", (scale,))
    return noisy(lambda: db.execute("SELECT scale FROM t").fetchone()[0])


# The world.


@case
def environment(scale):
    os.environ["SCALE_FOR_KEYS"] = str(scale)
    return noisy(lambda: float(os.environ["SCALE_FOR_KEYS"]))


@case
def file_at_call_time(scale):
    path = Path(os.environ["FOLDER_FOR_KEYS"]) / "scale.txt"
    path.write_text(str(scale))
    return noisy(lambda: float(path.read_text()))


# Installed libraries.


def _installed():
    return importlib.import_module("installed_for_keys")


@case
def global_of_a_library(scale):
    _installed().SCALE = scale
    return _installed().from_global


@case
def closure_of_a_library(scale):
    return _installed().laplace_mechanism(scale)


@case
def decorator_of_a_library(scale):
    return _installed().logged(noisy(lambda: scale))


@case
def handle_of_a_library(scale):
    handle = _installed().Handle(scale)
    return noisy(lambda: handle.scale)


# With draws of its own.


@case
def batched_draw(scale):
    globals()["BATCHED"] = scale
    return Batched()


class Batched:
    def draw(self, data, size, *, rng):
        return data.sum() + rng.laplace(scale=globals()["BATCHED"], size=size)
