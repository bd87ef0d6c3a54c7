"""What tests of audits share: a pair, a claim, a mechanism, settings, few attacks."""

from dpaudit import Pair, PureDP
from dpaudit.attacks import PORTFOLIO
from dpaudit.audit import Layer
from dpaudit.audit.settings import Settings

PAIR = Pair([0.0], [0.0, 1.0])
CLAIM = PureDP(1.0)
SETTINGS = Settings(  # as `audit` has them if nothing is said
    claim=CLAIM,
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


def laplace_sum(data, rng):
    return data.sum() + rng.laplace()


def attacks(*names):
    return [attack for attack in PORTFOLIO if attack.name in names]


def values(result):
    """Return the fields of a result that do not hang on who computed it, and when."""
    transient = ("seconds", "from_store")
    return {k: v for k, v in result.to_dict().items() if k not in transient}
