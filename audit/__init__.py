"""The audit engine: lower bounds on the privacy loss, with a proof in finite samples.

`audit` attacks a mechanism on pairs of neighbours; `verify` replays a witness;
`replay` records a mechanism on one dataset and replays it on its neighbour;
`exact_verdict` and `white_box` use what a mechanism knows of itself;
`audit_canaries` guesses which of many rows are in the data of a single release;
`audit_scores` and `audit_guesses` judge one run that was made elsewhere;
`dpaudit.audit.bounds` serves given counts and scores. What is proven, and how, stands
in `dpaudit.audit.betting.evidence` and `dpaudit.audit.betting.families`.

The package itself may be called as `audit` is, so that ``from dpaudit import audit``
gives something to call, too. What replays is imported when it is asked for: that takes
as long as all the rest.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dpaudit.audit.harness import audit
from dpaudit.audit.judged import Judged, Verdict
from dpaudit.audit.keeping.database import StoreWarning
from dpaudit.audit.keeping.store import Store
from dpaudit.audit.keeping.witness import Witness
from dpaudit.audit.layers.exact import ExactVerdict, exact_verdict
from dpaudit.audit.layers.layer import Layer, applicable_layers
from dpaudit.audit.layers.whitebox import white_box
from dpaudit.audit.layers.whitebox_result import WhiteBoxResult
from dpaudit.audit.one_run.canaries import CanaryAttack, audit_canaries
from dpaudit.audit.one_run.guesses import audit_guesses, audit_scores
from dpaudit.audit.one_run.result import CanaryAudit
from dpaudit.audit.result import AuditResult
from dpaudit.audit.sampling.pools import process_pool
from dpaudit.audit.settings import Budget, Progress, Run
from dpaudit.audit.verification import Verification, verify
from dpaudit.mechanism import Mechanism

if TYPE_CHECKING:
    from dpaudit.audit.replay import ReplayResult, replay

__all__ = [
    "AuditResult",
    "Budget",
    "CanaryAttack",
    "CanaryAudit",
    "ExactVerdict",
    "Judged",
    "Layer",
    "Progress",
    "ReplayResult",
    "Run",
    "Store",
    "StoreWarning",
    "Verdict",
    "Verification",
    "WhiteBoxResult",
    "Witness",
    "applicable_layers",
    "audit",
    "audit_canaries",
    "audit_guesses",
    "audit_scores",
    "exact_verdict",
    "process_pool",
    "replay",
    "verify",
    "white_box",
]


def _of_replay(name: str) -> Any:
    return getattr(import_module("dpaudit.audit.replay"), name)


class _Package(ModuleType):
    ReplayResult = property(lambda _: _of_replay("ReplayResult"))
    # An import of the package `replay` would put it in the place of the function.
    replay = property(lambda _: _of_replay("replay"), lambda _, package: None)

    def __call__(
        self, mechanism: Mechanism | Callable[..., Any], **options: Any
    ) -> AuditResult:
        return audit(mechanism, **options)


sys.modules[__name__].__class__ = _Package
