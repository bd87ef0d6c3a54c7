from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from refusals import refused, refuses

from dpaudit import ApproxDP, Claim, PureDP, Relation, validation
from dpaudit.neighbours import Neighbouring
from dpaudit.validation import check_length, check_matrix, check_real

WHOLE = [
    *([[1.0, 2.0]], [[1, 2]], [[True, False]], [[Fraction(1, 2), 3]], [[2**70, 1]]),
    *(np.float32([[1, 2]]), np.longdouble([[1, 2]])),
    *(np.ma.getdata(np.ma.array([[1.0, 2.0]])), pd.DataFrame({"a": [1], "b": [2.5]})),
]


@pytest.mark.parametrize("value", WHOLE, ids=repr)
def test_numbers_of_any_type_become_doubles(value):
    for checked in (check_matrix("rows", value), check_real("rows", value)):
        assert checked.dtype == np.float64
        assert checked.tolist() == [[float(x) for x in np.asarray(value)[0]]]


CUT = {
    **{"complex": np.array([[1 + 2j]]), "complex, though real": np.array([[1 + 0j]])},
    **{"dates": np.array([["2020-01-01"]], "M8[D]"), "words": [["1", "2"]]},
    **{"nothing": [[None]], "decimals": [[Decimal("1.5")]]},
    "fields": np.zeros((2, 2), [("a", float)]),
    "an idle mask": np.ma.array([[1.0]]),
    "a mask within tuples": ((1.0,), np.ma.array([2.0], mask=[True])),
    **{"a masked entry": [[1.0, np.ma.masked]], "ragged": [[1.0], [1.0, 2.0]]},
    **{"too large": [[10**400]], "an object": object()},
}


@pytest.mark.parametrize("value", CUT.values(), ids=CUT)
def test_what_would_be_cut_is_refused_in_a_sentence(value):
    for check in (check_matrix, check_real):
        refuses(r"^rows must be a numeric array.*, got ", check, "rows", value)


def test_nan_and_infinities_stay_and_doubles_are_not_copied():
    value = [np.nan, np.inf, -np.inf]
    np.testing.assert_array_equal(check_real("rows", value), value)
    refuses("row 0 has a NaN or infinity", check_matrix, "rows", [value])
    doubles = np.zeros((2, 2))
    assert check_matrix("rows", doubles) is doubles


def test_rows_are_as_long_as_asked_for_or_by_default():
    assert check_length(None, 3) == 3
    assert check_length(5, 3, minimum=4) == 5
    refuses("dimension must be an integer >= 4, got 3", check_length, 3, 5, minimum=4)


# Fields that are checked by their types
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
