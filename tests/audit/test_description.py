"""What is set at run time in modules, somebody's own and installed ones."""

import importlib
import sys

import numpy as np
import pytest

from dpaudit.audit.keeping.identity import describe

SOURCE = """
import functools
import random
import threading
from elsewhere import helper

SCALE = 1.0
SOURCE = random.SystemRandom()  # which shows no state
LOCK = threading.Lock()

class Mechanism:
    scale = 1.0

    def release(self, data, *, rng):
        return data.sum() + rng.laplace(scale=self.scale)

class Settings:
    def __init__(self, scale):
        self.scale = scale

SETTINGS = Settings(1.0)

def by_default(data, rng, scale=1.0):
    return data.sum() + rng.laplace(scale=scale)

def by_keyword(data, rng, *, scale=1.0):
    return data.sum() + rng.laplace(scale=scale)

def by_attribute(data, rng):
    return data.sum() + rng.laplace(scale=by_attribute.scale)

by_attribute.scale = 1.0

def noise(rng):
    return rng.laplace(scale=SCALE)

def by_global(data, rng):
    SOURCE, LOCK
    return helper(data.sum()) + noise(rng)

def by_object(data, rng):
    return data.sum() + rng.laplace(scale=SETTINGS.scale)

def by_class(data, rng):
    return Mechanism().release(data, rng=rng)

def logged(function):
    def inner(*arguments):
        return function(*arguments)
    return inner

def logged_by_name(function):
    @functools.wraps(function)
    def inner(*arguments):
        return function(*arguments)
    return inner

def noisy(function):
    @functools.wraps(function)
    def inner(data, rng):
        return function(data) + rng.laplace(scale=SCALE)
    return inner

def times(factor):
    def decorate(function):
        @functools.wraps(function)
        def inner(data, rng):
            return factor * function(data, rng)
        return inner
    return decorate
"""
USER = """
import SOURCE as module
import holder

def by_module(data, rng):
    return data.sum() + rng.laplace(scale=module.SCALE)

def by_nested_module(data, rng):
    return data.sum() + rng.laplace(scale=holder.module.SCALE)

def by_function(data, rng):
    return module.by_global(data, rng)

def unaware(data, rng):
    return module.LOCK
"""


@pytest.fixture(params=["site-packages", "own"])
def module(request, tmp_path, monkeypatch):
    """A module with all kinds of mechanisms, installed or somebody's own."""
    folder = tmp_path / request.param
    folder.mkdir()
    name = "of_" + request.param.replace("-", "_")
    (folder / f"{name}.py").write_text(SOURCE)
    (folder / "elsewhere.py").write_text("def helper(number): return number")
    (tmp_path / "user.py").write_text(USER.replace("SOURCE", name))
    (tmp_path / "holder.py").write_text(f"import {name} as module")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield importlib.import_module(name)
    for new in set(sys.modules) - before:
        del sys.modules[new]


def is_own(module):
    """Say whether it is followed, and does not go by its file."""
    return module.__name__ == "of_own"


def a(data, rng):
    return data.sum() + rng.laplace()


def b(data, rng):
    return data.sum()


CHANGES = {
    "by_default": lambda m: setattr(m.by_default, "__defaults__", (0.2,)),
    "by_keyword": lambda m: m.by_keyword.__kwdefaults__.update(scale=0.2),
    "by_attribute": lambda m: setattr(m.by_attribute, "scale", 0.2),
    "by_global": lambda m: setattr(m, "SCALE", 0.2),
    "by_object": lambda m: setattr(m.SETTINGS, "scale", 0.2),
    "by_class": lambda m: setattr(m.Mechanism, "scale", 0.2),
    "by_function": lambda m: setattr(m, "noise", lambda rng: 0.0),
    "noise": lambda m: setattr(m.noise, "__code__", (lambda rng: 0.0).__code__),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_changed_at_run_time_matters(module, name):
    subject = getattr(module, {"by_function": "by_global"}.get(name, name))
    before = describe(subject)
    assert before == describe(subject)
    CHANGES[name](module)
    followed = is_own(module) or name in ("by_default", "by_keyword", "by_attribute")
    assert (describe(subject) != before) == (followed or name == "noise")


def test_wrappers_are_of_their_module_and_files_of_libraries_count(module):
    """Not of that whose name it bears: here a library that goes by its version."""
    before = describe(module.noisy(np.mean))
    module.SCALE = 0.2
    assert (describe(module.noisy(np.mean)) != before) == is_own(module)
    # And of one's own what matters: the code that is reached.
    before = describe([module.by_default, module.Mechanism])
    with open(module.__file__, "a") as file:
        file.write("# another line")
    after = describe([module.by_default, module.Mechanism])
    assert (before == after) == is_own(module)
    for wrapper in (module.logged, module.logged_by_name):
        assert describe(wrapper(a)) == describe(wrapper(a)) != describe(wrapper(b))
    assert describe(module.times(1)(a)) == describe(module.times(1)(a))
    assert describe(module.times(1)(a)) != describe(module.times(2)(a))


@pytest.mark.parametrize("name", ["by_module", "by_nested_module", "by_function"])
def test_attributes_of_modules_matter_where_they_are_named(module, name):
    user = importlib.import_module("user")
    before, unaware = describe(getattr(user, name)), describe(user.unaware)
    module.SCALE = 0.2
    assert (describe(getattr(user, name)) != before) == is_own(module)
    assert describe(user.unaware) == unaware
