import decimal
import fractions
import sys
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from dpaudit.batches import Batch
from dpaudit.errors import MechanismError
from dpaudit.outputs import Output, raised, read, read_stack


class Unspeakable:
    """Raises whatever it is asked."""

    def __array__(self, *arguments, **options):
        raise RuntimeError("no array")

    def __repr__(self):
        raise RuntimeError("no words")

    __str__ = __repr__


class Tensor:
    """What NumPy does not take of PyTorch."""

    layout = "torch.strided"

    def __init__(self, numbers):
        self._numbers = numbers

    def __array__(self, *arguments, **options):
        raise RuntimeError("Use tensor.detach().numpy() instead.")

    def detach(self):
        return self

    cpu = resolve_conj = resolve_neg = detach

    def is_floating_point(self):
        return True

    def double(self):
        return np.array(self._numbers)


class Sparse(Tensor):
    layout = "torch.sparse_coo"


FIELDS = np.array([(1, 2.5)], dtype=[("count", "i4"), ("sum", "f8")])[0]
MASKED = np.ma.array([1.0, 2.0], mask=[False, True])


@pytest.mark.parametrize(
    ("output", "layout", "numbers"),
    [
        *((np.float32(1.5), "shape ()", 1.5), (7, "int64, shape ()", 7)),
        *((True, "bool, shape ()", 1), ([1.0, np.nan], "shape (2,)", [1, np.nan])),
        *(((1, 2), "int64, shape (2,)", [1, 2]), ([], "shape (0,)", [])),
        (1 + 2j, "complex128, shape ()", [1, 2]),
        (10**400 // 10**380, "int, shape ()", 1e20),
        (fractions.Fraction(1, 4), "Fraction, shape ()", 0.25),
        (decimal.Decimal("2.5"), "Decimal, shape ()", 2.5),
        (np.array([1.0, 2.0], dtype=">f8"), "shape (2,)", [1, 2]),
        (np.datetime64("1970-01-03"), "datetime64[D], shape ()", 2),
        (np.datetime64("NaT", "s"), "datetime64[s], shape ()", np.nan),
        ({2, 1, 3}, "int64, shape (3,)", [1, 2, 3]),
        ({"b": 1.0, "a": 2.0}, "shapes {b: (), a: ()}", {"a": 2, "b": 1}),
        ({"a": 1, "b": [1.0]}, "shapes {a: int64 (), b: (1,)}", {"a": 1, "b": [1]}),
        ({1: 2.0}, "shapes {1: ()}", {"1": 2.0}),
        ({1: 2.0, "1": 3.0}, "shapes {1: (), '1': ()}", {"1": 2.0, "'1'": 3.0}),
        ({"a": {"b": 1.0}}, "shapes {a: {b: ()}}", {"a.b": 1.0}),
        ({"a.b": 1.0}, "shapes {'a.b': ()}", {"'a.b'": 1.0}),
        ([[1.0], [1.0, 2.0]], "shapes [(1,), (2,)]", {"0": [1], "1": [1, 2]}),
        ([1.0, "two 2"], "shapes [(), 'two {}']", {"0": 1, "1": 2}),
        (FIELDS, "shapes {count: int32 (), sum: ()}", {"count": 1, "sum": 2.5}),
        (
            MASKED,
            "masked {data: (2,), mask: bool (2,)}",
            {"data": [1, 2], "mask": [0, 1]},
        ),
        ("17.2", "value '{}'", 17.2),
        ("0.30000000000000004", "value '{}'", 0.1 + 0.2),
        ("-1e3, nan", "value '{}, {}'", [-1000, np.nan]),
        *(('{"a": 1}', "value '{{\"a\": {}}}'", 1), (b"sum 4", "value b'sum {}'", 4)),
        (np.array("sum 4"), "value 'sum {}'", 4),
        (np.array(["a", "b"]), "shapes ['a', 'b']", None),
        *(("{}", "value '{{}}'", None), ("a1b2", "value 'a1b2'", None)),
        ("123456789012345678", "value '123456789012345678'", None),
        *(("٣", "value '٣'", None), ({"a": None}, "shapes {a: None}", None)),
        *(({}, "shapes {}", None), (None, "value None", None)),
        (object(), "returns object", None),
        (Unspeakable(), "returns Unspeakable", None),
        ({Unspeakable(): 1.0}, "shapes {<Unspeakable>: ()}", {"<Unspeakable>": 1}),
    ],
)
def test_an_output_is_a_layout_and_numbers(output, layout, numbers):
    found = read(output)
    assert found.layout == layout
    np.testing.assert_equal(found.numbers, numbers)
    if isinstance(found.numbers, np.ndarray):
        assert found.numbers.dtype == np.float64


def test_long_texts_and_sets_are_told_by_all_members():
    """Nothing is cut: what differs in the last of many characters differs."""
    texts = ["x" * 10_000 + end for end in ("a", "b", "é", "\ud800")]
    layouts = {read(text).layout for text in texts}
    assert len(layouts) == 4
    assert all(len(layout) <= 80 for layout in layouts)
    assert read("x" * 100 + " 17").numbers == 17
    digest = read("x" * 100).layout
    assert read(digest).layout != digest
    # By its place in memory a NaN comes anywhere among the others.
    strange = [float("nan") for _ in range(50)]
    orders = {str(read({3.0, nan, 1.0, 2.0}).numbers) for nan in strange}
    assert orders == {"[ 1.  2.  3. nan]"}
    groups = [frozenset({i, i + 1}) for i in range(0, 4000, 64)]
    forwards, backwards = set(groups), set(reversed(groups))
    assert list(forwards) != list(backwards)  # in the order in which they were put in
    one, two = read(forwards), read(backwards)
    assert one.layout == two.layout
    assert str(one.numbers) == str(two.numbers)


def test_what_is_nested_deeply_ends_and_so_does_a_cycle():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert read(deep).numbers is None
    assert read({"a": deep}).numbers is None
    cycle = [1.0]
    cycle += [cycle, "word"]
    assert read(cycle).layout.startswith("shapes [")


@pytest.mark.parametrize(
    ("stacked", "layout"),
    [
        (np.arange(8.0).reshape(4, 2), "shape (2,)"),
        (np.ones((5, 1), dtype=np.int64), "int64, shape (1,)"),
        *((np.zeros(4, dtype=np.int64), "int64, shape ()"), ([1.0, 2.0], "shape ()")),
        ({"a": np.zeros((4, 2)), "b": np.zeros(4)}, "shapes {a: (2,), b: ()}"),
        ({"a": {"b": np.zeros(4)}}, "shapes {a: {b: ()}}"),
        (np.zeros(4, dtype=complex), "complex128, shape ()"),
        (np.zeros(4, dtype=[("x", "f8")]), "shapes {x: ()}"),
    ],
)
def test_a_stack_has_the_layout_of_one(stacked, layout):
    found = read_stack(stacked)
    assert found.layout == layout
    if isinstance(stacked, np.ndarray):
        alone = [read(single) for single in stacked]
        assert {each.layout for each in alone} == {layout}
        if isinstance(found.numbers, np.ndarray):
            np.testing.assert_array_equal([x.numbers for x in alone], found.numbers)


# Batches of single numbers, pairs and words.
SINGLES = st.lists(
    st.one_of(
        st.floats(),
        st.tuples(st.floats(), st.floats()),
        st.sampled_from(["no", "yes"]),
        st.builds(lambda a, b: {"a": a, "b": [b]}, st.floats(), st.floats()),
    ),
    max_size=12,
)


def batch_of(singles):
    return Batch.gather([read(single) for single in singles])


def outputs_of(batch):
    """Return the outputs in order, as text so that NaN equals itself."""
    found = [None] * batch.size
    for layout, part in batch.parts.items():
        assert (np.diff(part.places) > 0).all()
        for index, place in enumerate(part.places):
            assert found[place] is None
            numbers = part.numbers
            if isinstance(numbers, dict):
                numbers = {key: value[index].tolist() for key, value in numbers.items()}
            elif numbers is not None:
                numbers = numbers[index].tolist()
            found[place] = f"{layout} {numbers!r}"
    assert None not in found
    return found


def words(singles):
    return [text for single in singles for text in outputs_of(batch_of([single]))]


@given(SINGLES, st.integers(0, 14), st.integers(0, 14))
def test_a_batch_holds_its_outputs_in_order(singles, start, stop):
    """So do its sections, and its halves are all of it."""
    batch, expected = batch_of(singles), words(singles)
    assert outputs_of(batch) == expected
    assert sum(batch.counts.values()) == batch.size == len(singles)
    for layout, count in batch.counts.items():
        assert batch.count(layout) == count
        assert (batch.layouts == layout).sum() == count
        section = batch.section(0, batch.end(layout, start))
        assert section.count(layout) == min(start, count)
    assert batch.end("never seen", start) == batch.size
    section = batch.section(start, stop)
    assert outputs_of(section) == expected[start : max(start, stop)]
    first, second = batch.halves()
    assert abs(first.size - second.size) <= 1
    assert outputs_of(first) + outputs_of(second) == expected


@given(st.lists(SINGLES, max_size=4))
def test_joining_keeps_order(several):
    joined = Batch.join(batch_of(singles) for singles in several)
    assert outputs_of(joined) == words([single for s in several for single in s])


@given(SINGLES, SINGLES)
def test_batches_are_equal_if_their_outputs_are(first, second):
    same = words(first) == words(second)
    assert batch_of(first).equals(batch_of(first))
    # -0.0 equals 0.0.
    assert batch_of(first).equals(batch_of(second)) or not same


def test_a_distance_is_the_largest_difference_and_numbers_are_copies():
    def distance(one, other):
        return Batch.gather([read(one)]).distance(Batch.gather([read(other)]))

    assert distance([1.0, 2.0], [1.5, 0.0]) == 2.0
    assert distance({"a": 1.0, "b": [1.0]}, {"a": 2.0, "b": [4.0]}) == 3.0
    assert distance([np.nan, np.inf], [np.nan, np.inf]) == 0.0
    assert distance([np.nan], [1.0]) == distance([np.inf], [-np.inf]) == np.inf
    assert distance("yes", "yes") == 0.0
    assert distance("yes", "no") == distance([1.0], [1.0, 2.0]) == np.inf
    buffer = np.zeros(3)
    copies = (read(buffer).numbers, read_stack(buffer).numbers)
    for numbers in (*copies, read({"a": buffer}).numbers["a"]):
        assert not np.shares_memory(numbers, buffer)
    assert raised(ValueError("17")) == Output("raises ValueError", None)
    kind = type("E" * 200, (Exception,), {})
    assert len(raised(kind()).layout) <= 80
    for output in ("words", None, {}, {"a": None}):
        refuses("draw must return numbers", read_stack, output, error=MechanismError)
    words = read_stack(["no", 1.0])
    assert [word.layout for word in words] == ["value 'no'", "shape ()"]
    assert len(read_stack(np.array(["no", "yes"]))) == 2
    first, second = object(), object()
    assert repr(first) != repr(second)
    assert read({first: 1.0}).layout == read({second: 1.0}).layout
    assert read({" at 0x1": 1.0}).layout != read({" at 0x2": 1.0}).layout


def test_tensors_that_numpy_does_not_take_are_read(monkeypatch):
    torch = ModuleType("torch")
    monkeypatch.setitem(sys.modules, "torch", torch)
    torch.Tensor = Tensor
    output = read({"w": Tensor([1.0, 2.0]), "b": [Tensor(3.0)]})
    assert output.layout == "shapes {w: (2,), b: [()]}"
    assert {key: each.tolist() for key, each in output.numbers.items()} == {
        "w": [1.0, 2.0],
        "b.0": 3.0,
    }
    assert read(Sparse([1.0])).layout == "returns Sparse"
    assert read_stack(Tensor([[1.0], [2.0]])).numbers.tolist() == [[1.0], [2.0]]
