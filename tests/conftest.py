"""One hypothesis profile for all tests.

The same examples on every run, so that a failure is somebody's change; and no
deadline, because how busy the machine is must not decide a test. Options that the
environment has for pytest are for this run, not for those that tests start.
"""

import gc
import os
import signal
import sys

import pytest
from hypothesis import settings
from seeded import set_few_rounds

settings.register_profile("dpaudit", deadline=None, derandomize=True)
settings.load_profile("dpaudit")
os.environ.pop("PYTEST_ADDOPTS", None)


@pytest.fixture
def heeds_interrupts():
    """Undo what shells do to what they run in the background: it ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def objects_listed_once():
    """What is there before the tests is listed once, and not for each of their replays.

    A replay lists all objects, to find the generators among them. Where tests run,
    these are the objects of every test that was collected. They are frozen: the
    collector leaves them out then, and the generators among them are kept here. So are
    those that are there when what this gives is called.
    """
    foreign = sys.modules.get("dpaudit.audit.replay.follow.foreign")
    generators = []

    def freeze():
        generators[:] = foreign.ForeignGenerators().found
        gc.freeze()

    def objects():
        return [*generators, *gc.get_objects()]

    with pytest.MonkeyPatch.context() as patch:
        if foreign is not None:  # a file that replays has loaded it
            freeze()
            patch.setattr(foreign, "all_objects", objects)
        yield freeze


@pytest.fixture(scope="module")
def in_few_rounds():
    """Let each round of an audit draw as much as all before it, for a whole file.

    An audit's time goes by its rounds, of which there are a third as many then. For
    tests in which an audit of a few dozen releases is kept, told, drawn by others or
    seen through; how rounds follow each other is in tests/audit/test_state.py, and what
    they find in audit/checks/.
    """
    from dpaudit.audit.game import state

    usual = state.AuditState._growth, state._FINEST
    with pytest.MonkeyPatch.context() as patch:
        set_few_rounds(patch)
        yield usual


@pytest.fixture
def here_in_few_rounds(monkeypatch):
    """The same for one test, in a file whose others show what they find."""
    set_few_rounds(monkeypatch)


@pytest.fixture
def in_usual_rounds(in_few_rounds, monkeypatch):
    """Undo that for one test."""
    growth, finest = in_few_rounds
    monkeypatch.setattr("dpaudit.audit.game.state.AuditState._growth", growth)
    monkeypatch.setattr("dpaudit.audit.game.state._FINEST", finest)
