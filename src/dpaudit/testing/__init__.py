"""Checks whether mechanisms that others write obey what audits rely on.

`run_conformance` looks at one mechanism, `check_scaling` at the public bound on rows
that a mechanism is built with.
"""

from dpaudit.testing.conformance import ConformanceError, run_conformance
from dpaudit.testing.scaling import check_scaling

__all__ = ["ConformanceError", "check_scaling", "run_conformance"]
