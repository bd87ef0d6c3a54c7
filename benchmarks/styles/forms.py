"""Releases of another form: types, order, names, and how numbers are written."""

import datetime
import json
import math
import pickle
import types
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

import numpy as np
import pandas as pd

from benchmarks.styles.pairs import CODES, NUMBERS, ONE
from benchmarks.styles.registry import right, wrong
from dpaudit import Pair, PureDP
from dpaudit.object_pairs import ObjectPair

TABLE = ObjectPair(
    pd.DataFrame({"group": ["a", "b"], "paid": [1, 2]}),
    pd.DataFrame({"group": ["a", "b", "b"], "paid": [1.0, 2.0, np.nan]}),
    "add-remove",
)
PEOPLE = ObjectPair([{"town": "x"}], [{"town": "x"}, {"town": "longer"}], "add-remove")
FORM = "the form of the release hangs on the data, whatever its numbers are"
DECIDED = "noise alone decides the form"
ANSWER = Pair([1.0, 0.0], [1.0, 1.0])

Named = namedtuple("Named", "count")


class Size(Enum):
    """How many rows there are."""

    FEW = 0
    MANY = 1


@dataclass
class Card:
    """A count, and a remark."""

    count: float
    remark: object


def _count(data, rng, scale=1.0):
    return float(len(data) + rng.laplace(scale=scale))


@wrong(ONE, NUMBERS, FORM)
def type_of_a_count(data, rng):
    """A whole count, a float where rows are few."""
    count = _count(data, rng)
    return {"count": round(count) if len(data) > 3 else round(count, 0)}  # fault


@wrong(ONE, NUMBERS, FORM)
def promoted_weights(data, rng):
    """Public weights, of a precision that the data choose."""
    unit = np.float32(1) if data.sum() > 2 else np.float64(1)  # fault
    return np.ones(3, np.float32) * unit, _count(data, rng)


@wrong(ONE, NUMBERS, FORM)
def named_or_not(data, rng):
    """A count in a tuple, whose class has a name where rows are many."""
    count = _count(data, rng)
    return Named(count) if len(data) > 3 else (count,)  # fault


@wrong(ONE, NUMBERS, FORM)
def remark_on_a_card(data, rng):
    """An object with a list or a tuple in it."""
    return Card(_count(data, rng), () if len(data) > 3 else [])  # fault


@wrong(ONE, NUMBERS, FORM)
def kind_of_dictionary(data, rng):
    """A dictionary of one of two classes."""
    return (OrderedDict if len(data) % 2 else dict)(count=_count(data, rng))  # fault


@wrong(ONE, NUMBERS, FORM)
def flag_of_an_object(data, rng):
    """An object that has one more attribute where rows are many."""
    out = types.SimpleNamespace(count=_count(data, rng))
    if len(data) > 3:  # fault
        out.flag = 1
    return out


@wrong(ONE, NUMBERS, FORM)
def decimals_of_a_constant(data, rng):
    """A constant with so many decimals, and a count."""
    places = 3 if len(data) > 3 else 4  # fault
    return f"{2.0:.{places}f}", _count(data, rng)


@wrong(ONE, NUMBERS, FORM)
def exponent_or_none(data, rng):
    """A count that is printed with an exponent, or without."""
    spec = "e" if len(data) > 3 else "f"  # fault
    return format(_count(data, rng), spec)


@wrong(ONE, NUMBERS, FORM)
def plus_sign(data, rng):
    """A count that is printed with its sign."""
    return f"{50 + _count(data, rng):{'+' if len(data) > 3 else ''}.2f}"  # fault


@wrong(ONE, NUMBERS, FORM)
def zero_at_the_end(data, rng):
    """A rounded count with a digit after it that says nothing."""
    return str(round(_count(data, rng), 2)) + "0" * (len(data) > 3)  # fault


@wrong(ONE, NUMBERS, FORM)
def sign_of_a_zero(data, rng):
    """A zero that is negative where rows are many."""
    zero = -0.0 if len(data) > 3 else 0.0  # fault
    return [zero, _count(data, rng)]


@wrong(ONE, NUMBERS, FORM)
def exponent_of_a_decimal(data, rng):
    """An exact number with one zero or two."""
    return Decimal("1.0" if len(data) > 3 else "1.00"), _count(data, rng)  # fault


@wrong(ONE, NUMBERS, FORM)
def label_of_a_member(data, rng):
    """A member of an enumeration, beside a count."""
    return Size(int(len(data) > 3)), _count(data, rng)  # fault


@wrong(ONE, NUMBERS, FORM)
def hour_of_a_date(data, rng):
    """A date that moves with the number of rows."""
    when = datetime.datetime(2020, 1, 1, len(data))  # fault
    return {"when": when, "count": _count(data, rng)}


@wrong(ONE, NUMBERS, FORM)
def marks_of_a_column(data, rng):
    """A column whose source is kept beside it."""
    out = pd.Series(len(data) + rng.laplace(size=1))
    out.attrs = {"sources": ["a"] if len(data) > 3 else ("a",)}  # fault
    return out


@wrong(ONE, TABLE, FORM)
def column_of_another_type(frame, rng):
    """A table of zeros, floats where a number is missing."""
    top = frame[["paid"]].fillna(0).head(1) * 0  # fault
    top["count"] = len(frame) + rng.laplace()
    return top


@wrong(ONE, PEOPLE, FORM)
def width_of_words(people, rng):
    """An array of words, as wide as the longest."""
    count = len(people) + float(rng.laplace())
    return np.array([each["town"] for each in people])[:1], count  # fault


@wrong(ONE, NUMBERS, FORM)
def protocol_of_a_pickle(data, rng):
    """A pickled count."""
    return pickle.dumps(_count(data, rng), protocol=len(data))  # fault


@right(ONE, NUMBERS, DECIDED)
def whole_or_half(data, rng):
    """A count to a half, an integer if it is whole."""
    count = round(2 * _count(data, rng)) / 2
    return int(count) if count.is_integer() else count


@right(ONE, NUMBERS, DECIDED)
def three_digits(data, rng):
    """A count of three significant digits, and one with commas."""
    count = _count(data, rng)
    return f"{30 * count:.3g} {997 + count:,.1f}"


@right(PureDP(2.0), NUMBERS, DECIDED)
def decimals_by_a_count(data, rng):
    """A count whose decimals hang on another, in a list or a tuple."""
    places = 2 if _count(data, rng) > 3 else 1
    shown = [f"{_count(data, rng):.{places}f}"]
    return tuple(shown) if places > 1 else shown


@right(ONE, CODES, DECIDED)
def types_of_a_table(data, rng):
    """Counts in a column, integers where none is missing."""
    counts = [(data == code).sum() + rng.laplace() for code in range(4)]
    shown = pd.Series(counts).round()
    return shown.where(shown > 0).convert_dtypes()


@right(ONE, CODES, DECIDED)
def largest_first(data, rng):
    """Counts in JSON, the largest first."""
    counts = {
        code: round(float((data == code).sum() + rng.laplace()), 1) for code in range(4)
    }
    return json.dumps(dict(sorted(counts.items(), key=lambda item: -item[1])))


@right(PureDP(8.0), ANSWER, "an answer is turned with probability 1/(1 + e^8)")
def answer_that_is_nearly_sure(data, rng):
    """A word that noise hardly ever changes."""
    turned = rng.random() < 1 / (1 + math.exp(8.0))
    return "yes" if (data[1] > 0) != turned else "no"
