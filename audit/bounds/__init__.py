"""Privacy lower bounds for given counts and scores.

The number of releases is fixed beforehand, and so is the event, or it is chosen on a
part of the releases that is not tested. Every bound is exact in finite samples: it
exceeds the truth with probability at most 1 - confidence.

- `joint`: epsilon from the counts of one event; `clopper_pearson`: the same, looser.
- `gaussian`: mu of Gaussian DP from the counts of one event.
- `fixed_scores`: either of them from two arrays of scores; `split_scores`: the usual
  sample-splitting baseline.
- `one_run`: either of them from one run with many canaries.
"""

from dpaudit.audit.bounds.counts import clopper_pearson, gaussian, joint
from dpaudit.audit.bounds.one_run import one_run, one_run_p_value
from dpaudit.audit.bounds.result import Bound, Counts
from dpaudit.audit.bounds.scores import fixed_scores, split_scores

__all__ = [
    "Bound",
    "Counts",
    "clopper_pearson",
    "fixed_scores",
    "gaussian",
    "joint",
    "one_run",
    "one_run_p_value",
    "split_scores",
]
