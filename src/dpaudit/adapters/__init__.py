"""Mechanisms that you have already: estimators, and programs in any language.

An adapter turns what is there into a `~dpaudit.mechanism.Mechanism`:

- `from_estimator`: anything with ``fit`` and a ``random_state``;
- `from_command`: a program that reads requests and writes releases, line by line.

For a function none is needed: its first parameter is the dataset; a generator comes as
``rng``, ``generator`` or whatever the second one is called, a seed as ``seed`` or
``random_state``; and if it takes neither, the generators of `numpy.random` and
`random`, and those that it makes without a seed, are seeded. More arguments come by
`functools.partial`.
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
