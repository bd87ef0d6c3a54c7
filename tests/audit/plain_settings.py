"""Settings of an audit as `audit` has them if nothing is said."""

from dpaudit import PureDP
from dpaudit.attacks import PORTFOLIO
from dpaudit.audit import Layer
from dpaudit.audit.settings import Settings

SETTINGS = Settings(
    claim=PureDP(1.0),
    confidence=0.999,
    max_samples=100,
    seed=0,
    stop_when_refuted=True,
    refine=0.0,
    layer=Layer.BLACK_BOX,
    bits=False,
    attacks=PORTFOLIO,
    name=None,
    reference=None,
)
