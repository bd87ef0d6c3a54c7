"""One hypothesis profile for all tests.

The same examples on every run, so that a failure is somebody's change; and no
deadline, because how busy the machine is must not decide a test. Options that the
environment has for pytest are for this run, not for those that tests start.
"""

import os
import signal

import pytest
from hypothesis import settings

settings.register_profile("dpaudit", deadline=None, derandomize=True)
settings.load_profile("dpaudit")
os.environ.pop("PYTEST_ADDOPTS", None)


@pytest.fixture
def heeds_interrupts():
    """Undo what shells do to what they run in the background: it ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
