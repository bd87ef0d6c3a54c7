"""The audit engine: lower bounds on the privacy loss, with a proof in finite samples.

`audit` attacks a mechanism on a pair of neighbours; `verify` replays a witness. What
is proven, and how, stands in `dpaudit.audit.evidence`, `dpaudit.audit.families` and
`dpaudit.audit.sequential`.
"""

from dpaudit.audit.harness import audit
from dpaudit.audit.result import AuditResult, Verdict
from dpaudit.audit.verification import Verification, verify
from dpaudit.audit.witness import Witness

__all__ = ["AuditResult", "Verdict", "Verification", "Witness", "audit", "verify"]
