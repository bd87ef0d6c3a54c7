"""Attacks: scores that separate releases on D from releases on D'.

`PORTFOLIO` is what an audit tries unless told otherwise. Adding an attack takes one
file and one line here.
"""

from dpaudit.attacks.base import Attack, Parameters, Target
from dpaudit.attacks.exact_loss import ExactLoss
from dpaudit.attacks.logistic import LogisticClassifier
from dpaudit.attacks.projection import LinearDiscriminant, MeanShift
from dpaudit.attacks.support import Support

__all__ = [
    "PORTFOLIO",
    "Attack",
    "ExactLoss",
    "LinearDiscriminant",
    "LogisticClassifier",
    "MeanShift",
    "Parameters",
    "Support",
    "Target",
]

PORTFOLIO: tuple[Attack, ...] = (
    ExactLoss(),
    MeanShift(),
    Support(),
    LinearDiscriminant(),
    LogisticClassifier(),
)
