"""Attacks: scores that separate releases on D from releases on D'.

`PORTFOLIO` is what an audit over the real numbers tries unless told otherwise; each of
its attacks says itself where it applies, and stands back where another one does the
same better. `BITS` is for audits of the doubles that a mechanism returns, which is
another question with other answers. Adding an attack takes one file and one line here.

`TracingAttack` and the pirates are not in it: they ask about many rows at once, of a
single release (`dpaudit.audit.audit_canaries`).
"""

from dpaudit.attacks.abnormal import Abnormal
from dpaudit.attacks.atoms import Atoms
from dpaudit.attacks.base import Attack, Parameters, Target
from dpaudit.attacks.bits import BitPatterns
from dpaudit.attacks.by_layout import ByLayout
from dpaudit.attacks.canary_overlap import CanaryOverlap
from dpaudit.attacks.canary_quadratic import CanaryQuadratic
from dpaudit.attacks.exact_loss import ExactLoss
from dpaudit.attacks.gaussian_transcript import GaussianTranscript
from dpaudit.attacks.gradient_boosting import GradientBoosting
from dpaudit.attacks.identity import Identity
from dpaudit.attacks.laplace_location import LaplaceLocation
from dpaudit.attacks.logistic import LogisticClassifier
from dpaudit.attacks.pirates import EigenvectorPirate, SubspacePirate
from dpaudit.attacks.projection import LinearDiscriminant, MeanShift
from dpaudit.attacks.reconstruction import Reconstruction
from dpaudit.attacks.support import Support
from dpaudit.attacks.tracing import Tracing
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
