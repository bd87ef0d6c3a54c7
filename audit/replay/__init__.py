"""Record and replay: an audit that looks inside, from two executions a side.

`replay` executes a mechanism with a generator that records (`generator`), whose noise
stays a linear map of draws for as long as it can (`tracked`, `moves`), so that the laws
of noisy values are known exactly (`laws`). What that proves stands in `judge`.
"""

from dpaudit.audit.replay.auditing import EXECUTIONS, replay
from dpaudit.audit.replay.declare.libraries import register
from dpaudit.audit.replay.declare.primitives import invariant, primitive
from dpaudit.audit.replay.follow.steps import Step
from dpaudit.audit.replay.result import Finding, ReplayResult, ReplayVerdict
from dpaudit.audit.replay.witness import (
    ReplayVerification,
    ReplayWitness,
    load_witness,
    verify_replay,
)

__all__ = [
    "EXECUTIONS",
    "Finding",
    "ReplayResult",
    "ReplayVerdict",
    "ReplayVerification",
    "ReplayWitness",
    "Step",
    "invariant",
    "load_witness",
    "primitive",
    "register",
    "replay",
    "verify_replay",
]
