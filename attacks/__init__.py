"""Attacks: scores that separate releases on D from releases on D'.

`PORTFOLIO` is what an audit over the real numbers tries unless told otherwise; each of
its attacks says itself where it applies, and stands back where another one does the
same better. `BITS` is for audits of the doubles that a mechanism returns, which is
another question with other answers. Adding an attack takes one file and one line here.

`TracingAttack` and the pirates are not in it: they ask about many rows at once, of a
single release (`dpaudit.audit.audit_canaries`).
"""

from dpaudit.attacks.base import Attack, Parameters, Target
from dpaudit.attacks.bits import BitPatterns
from dpaudit.attacks.canary import (
    CanaryOverlap,
    CanaryQuadratic,
    Reconstruction,
    Tracing,
)
from dpaudit.attacks.gradient_boosting import GradientBoosting
from dpaudit.attacks.layouts import Abnormal, ByLayout
from dpaudit.attacks.learned import Atoms, Identity, LogisticClassifier
from dpaudit.attacks.location import LaplaceLocation, LinearDiscriminant
from dpaudit.attacks.pirates import EigenvectorPirate, SubspacePirate
from dpaudit.attacks.stated import ExactLoss, GaussianTranscript, MeanShift, Support
from dpaudit.attacks.tracing_attack import TracingAttack

__all__ = [
    "BITS",
    "PORTFOLIO",
    "Abnormal",
    "Atoms",
    "Attack",
    "BitPatterns",
    "ByLayout",
    "CanaryOverlap",
    "CanaryQuadratic",
    "EigenvectorPirate",
    "ExactLoss",
    "GaussianTranscript",
    "GradientBoosting",
    "Identity",
    "LaplaceLocation",
    "LinearDiscriminant",
    "LogisticClassifier",
    "MeanShift",
    "Parameters",
    "Reconstruction",
    "SubspacePirate",
    "Support",
    "Target",
    "Tracing",
    "TracingAttack",
]

PORTFOLIO: tuple[Attack, ...] = (
    # What the mechanism says about itself.
    ExactLoss(),
    GaussianTranscript(),
    MeanShift(),
    Support(),
    # What the attacker knows about the data.
    Identity(),
    CanaryQuadratic(),
    CanaryOverlap(),
    Tracing(),
    Reconstruction(),
    # What past releases teach.
    Abnormal(),
    ByLayout(),
    Atoms(),
    LaplaceLocation(),
    LinearDiscriminant(),
    LogisticClassifier(),
    GradientBoosting(),
)

BITS: tuple[Attack, ...] = (BitPatterns(),)
