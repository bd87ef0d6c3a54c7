"""One hypothesis profile for all tests.

The same examples on every run, so that a failure is somebody's change; and no
deadline, because how busy the machine is must not decide a test.
"""

from hypothesis import settings

settings.register_profile("dpaudit", deadline=None, derandomize=True)
settings.load_profile("dpaudit")
