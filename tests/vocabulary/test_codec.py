"""Whatever is stored comes back, exact to the bit, or is refused in one sentence."""

import json
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from dpaudit.algorithms import CATALOGUE, AnalyzeGauss, build, entry
from dpaudit.claims import (
    ApproxDP,
    GaussianDP,
    Profile,
    PureDP,
    ZeroConcentratedDP,
)
from dpaudit.codec import decode, encode, load_reference, reference_to
from dpaudit.errors import InputError
from dpaudit.neighbours import Relation
from dpaudit.subspace import second_moment


def through_text(value):
    return decode(json.loads(json.dumps(encode(value), allow_nan=False)))


def assert_same_bits(first, second):
    assert first.dtype == second.dtype
    assert first.shape == second.shape
    assert first.tobytes() == second.tobytes()


DTYPES = st.sampled_from(["f2", "f4", "f8", "i1", "i4", "i8", "u1", "u8", "?"])

plain_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc", min_size=1), inner),
    max_leaves=10,
)


@given(plain_json)
def test_plain_values_come_back(value):
    assert through_text(value) == value


@given(npst.arrays(DTYPES, npst.array_shapes(min_dims=0, max_dims=3, min_side=0)))
def test_arrays_come_back_to_the_bit(array):
    assert_same_bits(through_text(array), array)


@pytest.mark.parametrize("size", [1000, 1001])
def test_long_arrays_come_back_to_the_bit(size):
    array = np.random.default_rng(0).standard_normal((size, 1))
    assert_same_bits(through_text(array), array)


def test_special_floats_come_back_to_the_bit():
    tiny = np.finfo(np.float64).smallest_subnormal
    payload = np.array([0x7FF8000000000123], dtype=np.uint64).view(np.float64)
    array = np.array([0.0, -0.0, tiny, np.inf, -np.inf, np.nan, payload[0]])
    assert_same_bits(through_text(array), array)
    assert_same_bits(through_text(array[:3]), array[:3])


def test_arrays_of_any_memory_layout_come_back():
    array = np.arange(12.0).reshape(3, 4)
    for view in (array.T, array[::-2], np.asfortranarray(array), array.astype(">f8")):
        back = through_text(view)
        np.testing.assert_array_equal(back, view)
        assert back.dtype == np.float64
        assert back.flags.writeable


@pytest.mark.parametrize("value", [np.inf, -np.inf, 0.1, -0.0, 5e-324, 1.7e308])
def test_floats_come_back(value):
    assert through_text(value) == value
    assert np.signbit(through_text(value)) == np.signbit(value)
    assert through_text(np.float64(value)) == value


def test_nan_comes_back():
    assert np.isnan(through_text(float("nan")))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, (2.5, None)), [1, [2.5, None]]),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.float32(0.5), 0.5),
        (Relation.ADD_REMOVE, "add-remove"),
    ],
)
def test_the_nearest_plain_value_stands_for_others(value, expected):
    back = through_text(value)
    assert back == expected
    assert type(back) is type(expected)


@pytest.mark.parametrize(
    "claim",
    [
        PureDP(0.1),
        ApproxDP(1.0, 1e-5),
        GaussianDP(1 / 3),
        ZeroConcentratedDP(0.3),
        Profile((0.0, 0.1, 1.0), (0.3, 0.2, 1e-17)),
    ],
)
def test_claims_come_back(claim):
    assert through_text(claim) == claim


@pytest.mark.parametrize(
    ("name", "relation"), [(n, r) for n, e in CATALOGUE.items() for r in e.relations]
)
def test_mechanisms_come_back(name, relation):
    other_norm = {"row_norm": 2.0} if entry(name).has_row_norm else {}
    mechanism = build(name, epsilon=0.3, relation=relation, **other_norm)
    back = through_text(mechanism)
    assert back == mechanism
    assert back.relation is relation


@dataclass(frozen=True)
class Nested:
    """Holds what attacks and datasets hold."""

    weights: np.ndarray
    inner: AnalyzeGauss
    derived: int = field(init=False, default=3)


def test_nested_dataclasses_come_back():
    value = Nested(np.arange(3.0), AnalyzeGauss.calibrated(1.0, 1e-5))
    back = through_text({"parameters": [value]})["parameters"][0]
    assert isinstance(back, Nested)
    assert_same_bits(back.weights, value.weights)
    assert back.inner == value.inner


@pytest.mark.parametrize("value", [second_moment, AnalyzeGauss, AnalyzeGauss.release])
def test_functions_and_classes_come_back_by_name(value):
    assert through_text(value) is value
    assert load_reference(reference_to(value)) is value


# What cannot be rebuilt elsewhere


def local_function():
    def inner():
        return None

    return inner


@pytest.mark.parametrize(
    "value",
    [
        lambda x: x,
        local_function(),
        object(),
        type("Main", (), {"__module__": "__main__"}),
        1j,
        {"deep": [lambda x: x]},
    ],
)
def test_what_has_no_name_is_refused(value):
    with pytest.raises(InputError, match="cannot be imported by name elsewhere"):
        encode(value)


@pytest.mark.parametrize(
    "array", [np.array(["a"]), np.array([1j]), np.array([None]), np.longdouble([1, 2])]
)
def test_arrays_that_others_could_not_read_are_refused(array):
    with pytest.raises(InputError, match=f"arrays of {array.dtype} cannot be stored"):
        encode(array)


def test_a_long_double_is_refused():
    with pytest.raises(InputError, match="cannot be imported"):
        encode(np.longdouble(1.0))


# Malformed text

LONG = encode(np.random.default_rng(1).standard_normal(1001))
SHORT = encode(np.arange(3))


@pytest.mark.parametrize(
    "text",
    [
        LONG | {"$array": LONG["$array"][:-8]},
        LONG | {"$array": LONG["$array"][:-1]},
        LONG | {"$array": LONG["$array"][:100] + "!" + LONG["$array"][101:]},
        LONG | {"$array": ""},
        LONG | {"$array": 5},
        LONG | {"$array": None},
        LONG | {"shape": [1000]},
        LONG | {"shape": "x"},
        LONG | {"dtype": "nonsense"},
        LONG | {"dtype": "O"},
        {"$array": LONG["$array"]},
        SHORT | {"shape": [4]},
        SHORT | {"$array": [1, [2], 3]},
        SHORT | {"$array": ["a", "b", "c"]},
        SHORT | {"$array": [1, 2, 2**70]},
        {"$float": "one"},
        {"$float": None},
        {"$object": "dpaudit.claims:PureDP"},
        {"$object": "dpaudit.claims:PureDP", "arguments": [1.0]},
        {"$object": "dpaudit.claims:PureDP", "arguments": {"nonsense": 1.0}},
        {"$object": "math:pi", "arguments": {}},
    ],
)
def test_malformed_text_is_refused(text):
    with pytest.raises(InputError, match="malformed or truncated value"):
        decode([{"a": text}])


def test_arguments_are_validated_again():
    text = encode(PureDP(1.0)) | {"arguments": {"epsilon": -1.0}}
    with pytest.raises(InputError, match="epsilon must be a finite number > 0"):
        decode(text)


@pytest.mark.parametrize("tag", ["$object", "$reference"])
@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("no_such_module_here:x", "cannot import module 'no_such_module_here'"),
        ("dpaudit.claims:Nothing", "'dpaudit.claims' has no object 'Nothing'"),
        ("dpaudit.claims:PureDP.x", "'dpaudit.claims' has no object 'PureDP.x'"),
        ("dpaudit.claims", "expected module:object, got 'dpaudit.claims'"),
        (":PureDP", "expected module:object"),
        ("dpaudit.claims:", "expected module:object"),
        (".claims:PureDP", "expected module:object, got '.claims:PureDP'"),
        (None, "expected module:object, got None"),
    ],
)
def test_what_cannot_be_imported_is_named(tag, reference, message):
    with pytest.raises(InputError, match=message):
        decode({tag: reference, "arguments": {}})
