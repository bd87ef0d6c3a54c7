"""One hypothesis profile for all tests.

The same examples on every run, so that a failure is somebody's change; and no
deadline, because how busy the machine is must not decide a test.
"""

import signal

import pytest
from hypothesis import settings

settings.register_profile("dpaudit", deadline=None, derandomize=True)
settings.load_profile("dpaudit")


@pytest.fixture
def heeds_interrupts():
    """Undo what shells do to what they run in the background: it ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
