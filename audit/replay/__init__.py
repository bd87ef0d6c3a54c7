"""Record and replay: an audit that looks inside, from two executions a side.

`replay` executes a mechanism with a generator that records. Its noise stays a linear
map of draws for as long as it can (`follow`), so that the laws of noisy values are
exactly known (`laws`). What is not followed is declared (`declare`). `execute` makes
one execution, and `judge` says what two of them prove. Of these folders each imports
only the later ones: judge, execute, declare, follow, laws.
"""

from dpaudit.audit.replay.auditing import (
    EXECUTIONS,
    load_witness,
    replay,
    verify_replay,
)
from dpaudit.audit.replay.declare.libraries import register
from dpaudit.audit.replay.declare.primitives import invariant, primitive
from dpaudit.audit.replay.judge.judgement import Finding, Step
from dpaudit.audit.replay.result import ReplayResult, ReplayVerdict, ReplayVerification
from dpaudit.audit.replay.witness import ReplayWitness

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
