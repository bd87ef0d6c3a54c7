"""Whatever is stored comes back, exact to the bit, or is refused in one sentence."""

import base64
import importlib
import json
import sys
import tracemalloc
import zlib
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from refusals import refuses

from dpaudit import GaussianDP, InputError, Profile, PureDP, Relation
from dpaudit.algorithms import CATALOGUE, AnalyzeGauss, build, entry
from dpaudit.codec import decode, differences, encode, load_reference, rebuild
from dpaudit.subspace import second_moment


def through_text(value, read=decode):
    return read(json.loads(json.dumps(encode(value), allow_nan=False)))


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


@settings(max_examples=50)
@given(plain_json)
def test_plain_values_come_back(value):
    assert through_text(value) == value


@given(npst.arrays(DTYPES, npst.array_shapes(min_dims=0, max_dims=3, min_side=0)))
def test_arrays_come_back_to_the_bit(array):
    assert_same_bits(through_text(array), array)


def test_special_floats_and_long_arrays_come_back_to_the_bit():
    tiny = np.finfo(np.float64).smallest_subnormal
    payload = np.array([0x7FF8000000000123], dtype=np.uint64).view(np.float64)
    array = np.array([0.0, -0.0, tiny, np.inf, -np.inf, np.nan, payload[0]])
    long = np.random.default_rng(0).standard_normal((1001, 1))
    for each in (array, array[:3], long, long[1:]):
        assert_same_bits(through_text(each), each)
    for number in [*array[:-1].tolist(), 0.1]:
        assert repr(through_text(number)) == repr(number)


def test_arrays_of_any_memory_layout_and_nested_dataclasses_come_back():
    array = np.arange(12.0).reshape(3, 4)
    for view in (array.T, array[::-2], np.asfortranarray(array), array.astype(">f8")):
        back = through_text(view)
        np.testing.assert_array_equal(back, view)
        assert back.dtype == np.float64
        assert back.flags.writeable
    value = Nested(np.arange(3.0), AnalyzeGauss.calibrated(1.0, 1e-5))
    profile = Profile((0.0, 0.1, 1.0), (0.3, 0.2, 1e-17))
    assert through_text([profile]) == [profile]
    back = through_text({"parameters": [value]}, rebuild)["parameters"][0]
    assert isinstance(back, Nested)
    assert_same_bits(back.weights, value.weights)
    assert back.inner == value.inner


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *(((1, (2.5, None)), [1, [2.5, None]]), (np.int64(3), 3)),
        *((np.bool_(True), True), (np.float32(0.5), 0.5)),
        (Relation.ADD_REMOVE, "add-remove"),
    ],
)
def test_the_nearest_plain_value_stands_for_others(value, expected):
    back = through_text(value)
    assert back == expected
    assert type(back) is type(expected)


@pytest.mark.parametrize("name", CATALOGUE)
def test_mechanisms_come_back(name):
    relation = entry(name).relations[-1]
    other_norm = {"row_norm": 2.0} if entry(name).has_row_norm else {}
    mechanism = build(name, epsilon=0.3, relation=relation, **other_norm)
    back = through_text(mechanism, rebuild)
    assert back == mechanism
    assert back.relation is relation


@dataclass(frozen=True)
class Nested:
    """Holds what attacks and datasets hold."""

    weights: np.ndarray
    inner: AnalyzeGauss
    derived: int = field(init=False, default=3)


@pytest.mark.parametrize("value", [second_moment, AnalyzeGauss, AnalyzeGauss.release])
def test_functions_and_classes_come_back_by_name(value):
    assert through_text(value, rebuild) is value
    assert load_reference(encode(value)["$reference"]) is value


# What cannot be rebuilt elsewhere
@pytest.mark.parametrize(
    "value",
    [
        *(object(), np.longdouble(1.0), type("Main", (), {"__module__": "__main__"})),
        {"deep": [lambda x: x]},
    ],
)
def test_what_has_no_name_is_refused(value):
    refuses("cannot be imported by name elsewhere", encode, value)


# What is read, and what is run
SENTINEL = "module_that_a_text_names"


@pytest.fixture
def sentinel(tmp_path, monkeypatch):
    """A module that leaves a file when it is imported."""
    trace = tmp_path / "imported"
    source = f"""
import pathlib
from dataclasses import dataclass

pathlib.Path({str(trace)!r}).touch()

@dataclass
class Innocent:
    x: float = 0.0

@dataclass
class Refusing:
    def __post_init__(self):
        raise ZeroDivisionError("no way")

def called(**arguments):
    pathlib.Path({str(trace) + ".called"!r}).touch()
"""
    (tmp_path / f"{SENTINEL}.py").write_text(source)
    (tmp_path / "module_that_leaves.py").write_text("import sys\nsys.exit(1)\n")
    (tmp_path / "module_that_fails.py").write_text("1 / 0\n")
    (tmp_path / "module_in_pieces.py").write_text("def f(:\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield trace
    sys.modules.pop(SENTINEL, None)


def named(name, tag="$object", module=SENTINEL):
    text = {tag: f"{module}:{name}"}
    return text | {"arguments": {}} if tag == "$object" else text


BROKEN = encode(PureDP(1.0)) | {"arguments": {"epsilon": -1.0}}


def test_reading_values_imports_nothing(sentinel):
    before = set(sys.modules)
    claim = encode(PureDP(1.0))
    for text in (
        *(named("Innocent"), named("called"), named("Innocent", "$reference")),
        claim | {"arguments": {"epsilon": named("Innocent")}},
        *({"deep": [named("Innocent")]}, named("Path", module="pathlib")),
        named("PureDP", "$reference", module="dpaudit.claims"),
        named("check_positive", module="dpaudit.claims.polygons"),
        {"$object": ["dpaudit.claims:PureDP"], "arguments": {"epsilon": 1.0}},
        {"$object": 7, "arguments": {}},
    ):
        refuses("is none of the claims PureDP, ApproxDP", decode, text)
    assert not sentinel.exists()
    assert set(sys.modules) == before


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (BROKEN, "epsilon must be a finite number > 0"),
        (named("called"), "'module_that_a_text_names:called' must be a dataclass"),
        (named("Path", module="pathlib"), "'pathlib:Path' must be a dataclass or a cl"),
        (named("Refusing"), "cannot be built: ZeroDivisionError: no way"),
        (named("Innocent") | {"arguments": {"y": 1}}, "TypeError: .*keyword .*'y'"),
        (named("f", module="module_that_leaves"), "it raised SystemExit: 1"),
        (named("f", module="module_that_fails"), "it raised ZeroDivisionError: "),
        (named("f", module="module_in_pieces"), "it raised SyntaxError: "),
        (named("f", module="bad\0name"), "cannot import module 'bad"),
    ],
)
def test_what_goes_wrong_while_rebuilding_is_one_sentence(sentinel, text, sentence):
    assert rebuild(named("Innocent")).x == 0.0
    assert sentinel.exists()
    with pytest.raises(InputError, match=sentence) as caught:
        rebuild(text)
    assert "\n" not in str(caught.value)
    assert not sentinel.with_name("imported.called").exists()


def test_differences_are_named_and_what_others_could_not_read_refused():
    first = encode(AnalyzeGauss.calibrated(1.0, 1e-5))
    second = encode(AnalyzeGauss.calibrated(2.0, 1e-5))
    assert differences(first, first) == []
    assert ("claim.epsilon", 1.0, 2.0) in differences(first, second)
    (whole,) = differences(encode(PureDP(1.0)), encode(GaussianDP(1.0)))[:1]
    assert whole[0] == ""
    arrays = [{"a": encode(np.arange(n))} for n in (2, 3)]
    assert [name for name, *_ in differences(*arrays)] == ["a"]
    for array in (
        *(np.array(["a"]), np.array([1j]), np.array([None]), np.longdouble([1])),
    ):
        refuses(f"arrays of {array.dtype} cannot be stored", encode, array)
    for tag in ("$array", "$float", "$object", "$reference"):
        refuses(f"the key '\\{tag}' cannot be stored", encode, {"deep": {tag: "inf"}})


# Malformed text
def packed(raw, after=b""):
    return base64.b64encode(zlib.compress(raw) + after).decode("ascii")


LONG = encode(np.random.default_rng(1).standard_normal(1001))
SHORT = encode(np.arange(3))
MISSHAPEN = ([4], [3, 1], [-3], [3.0], [True], 3)
MISTYPED = ("O", "f8", ">f8", "<M8[s]", ["<f8"])


@pytest.mark.parametrize(
    "text",
    [
        LONG | {"$array": LONG["$array"][:-8]},
        LONG | {"$array": LONG["$array"][:100] + "!" + LONG["$array"][101:]},
        *(LONG | {"$array": LONG["$array"] + "AAAA"}, LONG | {"$array": None}),
        *(LONG | {"shape": [1000]}, LONG | {"dtype": "<f4"}),
        *({"$array": LONG["$array"]}, SHORT | {"$array": [1, [2], 3]}),
        *(SHORT | {"$array": ["a", "b", "c"]}, SHORT | {"$array": [1, 2, 2**70]}),
        *(SHORT | {"$array": [0.0, 1.0, 2.0]}, SHORT | {"$array": [0, 1, True]}),
        SHORT | {"$array": [0, 1, 10**400], "dtype": "<f8"},
        SHORT | {"$array": [0, 1, float("nan")], "dtype": "<f8"},
        SHORT | {"$array": [0, 1, 1e10], "dtype": "<f2"},
        *(SHORT | {"$array": [0, 1, 1], "dtype": "|b1"}, SHORT | {"more": 1}),
        *(SHORT | {"shape": shape} for shape in MISSHAPEN),
        *(SHORT | {"dtype": dtype} for dtype in MISTYPED),
        {"$array": packed(b"\x02"), "dtype": "|b1", "shape": [1]},
        {"$array": packed(b"\x01"), "dtype": "|b1", "shape": [1] * 33},
        {"$array": packed(b"") + packed(b""), "dtype": "|b1", "shape": [0]},
        {"$array": packed(b"\x01", b"more"), "dtype": "|b1", "shape": [1]},
        *({"$float": "0.1"}, {"$float": ["inf"]}, {"$float": "inf", "more": 1}),
        {"$object": "dpaudit.claims:PureDP"},
        {"$object": "dpaudit.claims:PureDP", "arguments": [1.0]},
        {"$object": "dpaudit.claims:PureDP", "arguments": {"nonsense": 1.0}},
    ],
)
def test_malformed_text_is_refused(text):
    refuses("malformed or truncated value", decode, [{"a": text}])


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
        (".claims:PureDP", "expected module:object"),
        (None, "expected module:object, got None"),
    ],
)
def test_what_cannot_be_imported_is_named(tag, reference, message):
    text = {tag: reference} | ({"arguments": {}} if tag == "$object" else {})
    refuses(message, rebuild, text)


# Text of hostile size
def test_bombs_are_not_unpacked_and_arrays_bounded_together():
    """64 MiB of zeros in 64 kB: no more is unpacked than the shape has room for."""
    bomb = packed(bytes(2**26))
    tracemalloc.start()
    try:
        for shape in ([1], [2**40], [2**20, 2**20], [0, 2**40], [2**63]):
            with pytest.raises(InputError, match=r"bytes of its shape|at most 134,217"):
                decode({"$array": bomb, "dtype": "<f8", "shape": shape})
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    half = {"$array": "", "dtype": "|b1", "shape": [2**26]}
    refuses("does not have the 67,108,864 bytes", decode, [half])
    empty = {"$array": [], "dtype": "|b1", "shape": [0, 2**26]}
    assert decode([empty, empty])[1].shape == (0, 2**26)
    refuses("at most 134,217,728 entries", decode, [empty, empty, empty])


@pytest.mark.parametrize("read", [decode, rebuild])
def test_depth_is_bounded(read):
    def nested(depth):
        return reduce(lambda value, _: [value], range(depth), [])

    assert read(nested(90)) == nested(90)
    for depth in (110, 100_000):
        refuses("nested at most 100 deep", read, nested(depth))
        refuses("nested at most 100 deep", differences, nested(depth), 1)
