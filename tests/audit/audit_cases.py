"""What tests of audits share: a pair, a claim, a mechanism, settings, few attacks."""

from dataclasses import replace

from dpaudit import Pair, PureDP
from dpaudit.attacks import PORTFOLIO
from dpaudit.audit import Budget, Layer, Run, audit
from dpaudit.audit.settings import Settings

PAIR = Pair([0.0], [0.0, 1.0])
CLAIM = PureDP(1.0)
SETTINGS = Settings(  # as `audit` has them if nothing is said
    claim=CLAIM,
    confidence=0.999,
    seed=0,
    layer=Layer.BLACK_BOX,
    budget=Budget(100),
    attacks=PORTFOLIO,
    name=None,
    reference=None,
)


def laplace_sum(data, rng):
    return data.sum() + rng.laplace()


def attacks(*names):
    return [attack for attack in PORTFOLIO if attack.name in names]


def audited(mechanism, *, run=Run(), **options):
    """Audit on that pair and by one attack, unless told of others."""
    if run.attacks is None:
        run = replace(run, attacks=attacks("identity"))
    return audit(mechanism, run=run, **{"pair": PAIR, "claim": CLAIM} | options)


def values(result):
    """Return the fields of a result that do not hang on who computed it, and when."""
    transient = ("seconds", "from_store")
    return {k: v for k, v in result.to_dict().items() if k not in transient}
