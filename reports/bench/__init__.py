"""The auditor audited: studies that measure what dpaudit claims about itself.

- `coverage`: how often each bound that the package ships accuses the innocent.
- `equal-reals`: how often an audit refutes by the last bits of doubles.
- `tightness`: how near its lower bounds come to the truth.
- `refutation`: how many releases a refutation takes, against the information limit.
- `limits`: the same for black boxes of known laws, at two confidences.
- `suite`: lower bounds on the standard suite, against the best published ones.
- `cost`: the engine's share of an audit's time, and its memory.
- `replay`: the time of a recorded execution, and its memory.

`bench_audit` runs them; finished units of work are kept in the output folder, so that
the same call resumes where it was interrupted.
"""

from dpaudit.reports.bench.audited import STUDIES, bench_audit
from dpaudit.reports.bench.study import Study, Table, Unit

__all__ = ["STUDIES", "Study", "Table", "Unit", "bench_audit"]
