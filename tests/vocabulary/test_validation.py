from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

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
