from dataclasses import dataclass, field

from refusals import refused, refuses

from dpaudit import ApproxDP, Claim, PureDP, Relation, validation
from dpaudit.neighbours import Neighbouring


@dataclass(frozen=True, kw_only=True)
class Parts(validation.Checked):
    claim: Claim
    relation: Neighbouring = Relation.ADD_REMOVE
    sigma: validation.Positive = 1.0
    share: validation.Fraction = 0.5
    offset: validation.Nonnegative = 0.0
    count: validation.Count = 1
    other: ApproxDP | None = None
    clip: validation.Positive | None = None
    free: float | None = None
    made: Claim = field(init=False)


@dataclass(frozen=True, kw_only=True)
class MoreParts(Parts):
    extra: validation.Positive = 3.0
    count: int = 2  # a default is no reason not to check

    def __post_init__(self):
        object.__setattr__(self, "made", self.claim)
        super().__post_init__()


def test_values_are_stored_as_checked_by_subclasses_too():
    made = Parts(claim=PureDP(1.0), relation="replace-one", sigma=2, clip=3)
    assert made.relation is Relation.REPLACE_ONE
    assert (made.sigma, made.clip) == (2.0, 3.0)
    assert type(made.sigma) is type(made.clip) is float
    assert made.other is None
    assert Parts(claim=PureDP(1.0), free=-1.0).free == -1.0
    refuses("extra must be", MoreParts, claim=PureDP(1.0), extra=-1.0)
    assert MoreParts(claim=PureDP(1.0)).made == PureDP(1.0)


test_bad_values_are_named = refused(
    ({"claim": "1-DP"}, "claim must be a Claim, got '1-DP'"),
    ({"relation": "swap"}, "relation must be one of"),
    ({"sigma": None}, "sigma must be a real number"),
    ({"share": 1.0}, "share must be in"),
    ({"offset": -1.0}, "offset must be a finite number >= 0"),
    ({"count": 0}, "count must be an integer >= 1"),
    ({"other": PureDP(1.0)}, "other must be an ApproxDP"),
    ({"clip": 0.0}, "clip must be a finite number > 0"),
    by=lambda kind, values: kind(**{"claim": PureDP(1.0)} | values),
    each=(Parts, MoreParts),
)
