"""Mechanisms that you have already: estimators, and programs in any language.

An adapter turns what is there into a `~dpaudit.mechanism.Mechanism`:

- `from_estimator`: anything with ``fit`` and a ``random_state``;
- `from_command`: a program that reads requests and writes releases, line by line.

For a function ``(data, rng) -> array`` none is needed.
"""

from dpaudit.adapters.command import (
    BadReply,
    CommandMechanism,
    ProcessCrashed,
    ProcessTimedOut,
    from_command,
)
from dpaudit.adapters.estimator import EstimatorMechanism, from_estimator

__all__ = [
    "BadReply",
    "CommandMechanism",
    "EstimatorMechanism",
    "ProcessCrashed",
    "ProcessTimedOut",
    "from_command",
    "from_estimator",
]
